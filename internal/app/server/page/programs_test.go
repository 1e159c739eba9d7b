package page

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/browser"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// A reader reads ten entries by keys, while lektor-view and a client of the API mark the others.
func TestTenInABrowser(t *testing.T) {
	f := newFixture(t, func(o *server.Options, _ *Options) { o.Now = time.Now })
	var want []string
	for i := range 12 {
		f.add(feedA, int64(100+i), "-", fmt.Sprintf("title=Entry %d.", i), "content=Text")
		want = append(want, fmt.Sprintf("%d:S", 100+i))
	}
	b := browser.Start(t)
	b.Window(1000, 700, false, true)
	b.Open(f.base + "login")
	logIn(b)
	atPage(b, "Unread (12)")
	b.Press("j")
	for i, key := range strings.Fields("o j n j n j n j n j") {
		b.Loads(func() { b.Press(key) })
		atPage(b, fmt.Sprintf("Entry %d.", 11-i))
		b.Await("document.querySelector('#m').value == 'unread'")
	}
	f.waitFor("100:new 101:new " + strings.Join(want[2:], " "))

	o := viewer.MarkOptions{Common: session.Common{Dir: f.Path}, Names: session.Names{Args: []string{testdir.Unique(100, 100)}}, Set: "S"}
	if err := viewer.Mark(t.Context(), o, cmdline.NewStreams("lektor-view", strings.NewReader(""), io.Discard, io.Discard)); err != nil {
		t.Fatal(err)
	}
	b.Open(f.base + "unread")
	atPage(b, "Unread (1)")
	call := func(path string, form url.Values) string {
		t.Helper()
		r, err := http.NewRequest("POST", f.base+"reader/api/0/"+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "GoogleLogin auth=ann")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		text := f.do(r)
		if f.seen.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s: %s", path, f.seen.Status, text)
		}
		return strings.TrimSpace(text)
	}
	token := call("token", nil)
	call("mark-all-as-read", url.Values{"s": {"user/-/state/com.google/reading-list"}, "T": {token}})
	f.waitFor(strings.Join(want, " "))
	b.Open(f.base + "unread")
	atPage(b, "Unread ·")
	b.Await("document.body.textContent.includes('Nothing is unread.')")
}
