package fetcher

import (
	"testing"

	"github.com/lektordir/lektor/internal/protocol/discover"
)

func TestESSOfSeveralFeeds(t *testing.T) {
	link := func(url, title string) discover.Link { return discover.Link{URL: url, Title: title} }
	feeds := []discover.Link{link("http://e/1", "One"), link("http://e/2", "Two")}
	for _, tc := range []struct {
		ess  []discover.Link
		want [2]string
	}{
		{nil, [2]string{}},
		{[]discover.Link{link("b", "Two"), link("a", "One")}, [2]string{"a", "b"}},
		{[]discover.Link{link("a", ""), link("b", "")}, [2]string{"a", "b"}},
		{[]discover.Link{link("a", "")}, [2]string{}},
		{[]discover.Link{link("a", "Two")}, [2]string{"", "a"}},
		{[]discover.Link{link("a", "One"), link("b", "One")}, [2]string{"a", "b"}},
	} {
		page := &discover.Result{Feeds: feeds, ESS: tc.ess}
		for i, f := range feeds {
			got := append(essFor(page, f), discover.Link{})[0].URL
			if got != tc.want[i] {
				t.Errorf("%v: of %s %q, want %q", tc.ess, f.Title, got, tc.want[i])
			}
		}
	}
}

func TestOnlyHTTPIsRecorded(t *testing.T) {
	for in, want := range map[string]string{
		"HTTP://E.com:80/ess#x": "http://e.com/ess", "https://e.com/ess": "https://e.com/ess",
		"file:///etc/passwd": "", "exec:reboot": "", "/ess": "", "": "",
	} {
		if got := first([]discover.Link{{URL: in}}); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}
