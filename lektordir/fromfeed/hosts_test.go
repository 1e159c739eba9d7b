package fromfeed_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
	"github.com/lektordir/lektor/lektordir/fromfeed"
)

var update = flag.Bool("update", false, "write the .dir files anew")

// TestHosts: what is kept of podcasts in the shapes in which their hosts write them. Each document in testdata is
// named after a host or a program, and the file beside it has the feed and the entries as they are in a lektor-dir.
func TestHosts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(names) < 20 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		feed, err := feedconv.ParseBytes(document, feedconv.Options{URL: "https://h.example/feed"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var b strings.Builder
		for file, text := range fromfeed.Feed("https://h.example/feed", feed).Files() {
			if text != "" && file != "id" {
				b.WriteString(file + ": " + strings.ReplaceAll(text, "\n", "\n\t") + "\n")
			}
		}
		for i := range feed.Entries {
			b.WriteString("\n")
			e := fromfeed.Entry(&feed.Entries[i])
			for file, data := range e.Files() {
				text := strings.TrimSuffix(string(data), "\n")
				if file == "content" {
					text = e.Type + " " + text
				}
				if file != "type" && text != "" {
					b.WriteString(file + ": " + strings.ReplaceAll(text, "\n", "\n\t") + "\n")
				}
			}
		}
		golden := strings.TrimSuffix(name, ".xml") + ".dir"
		if *update {
			if err := os.WriteFile(golden, []byte(b.String()), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil || b.String() != string(want) {
			t.Errorf("%s: %v, got\n%s", name, err, &b)
		}
		back(t, name, feed)
	}
}

// back checks that a feed is the same if its elements are published in RSS and read again.
func back(t *testing.T, name string, feed *feedconv.Feed) {
	t.Helper()
	published := *feed
	_, published.Extensions = fromfeed.Extensions(fromfeed.Feed("", feed).Elements)
	published.Entries = nil
	for i := range feed.Entries {
		e := feed.Entries[i]
		e.Attributes, e.Extensions = fromfeed.Extensions(fromfeed.Entry(&e).Elements)
		published.Entries = append(published.Entries, e)
	}
	var out strings.Builder
	if err := feedconv.EncodeRSS(&out, &published); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	again, err := feedconv.Parse(strings.NewReader(out.String()), feedconv.Options{URL: "https://h.example/feed"})
	if err != nil || len(again.Entries) != len(feed.Entries) {
		t.Errorf("%s: %v\n%s", name, err, out.String())
		return
	}
	same := func(where string, a, b lektordir.Elements) {
		x, y := (&lektordir.Feed{Elements: a}), (&lektordir.Feed{Elements: b})
		if got, want := elementsOf(x), elementsOf(y); got != want {
			t.Errorf("%s, %s, published:\n%s\nwant\n%s", name, where, got, want)
		}
	}
	same("feed", fromfeed.Feed("", again).Elements, fromfeed.Feed("", feed).Elements)
	for i := range feed.Entries {
		same(feed.Entries[i].Title, fromfeed.Entry(&again.Entries[i]).Elements, fromfeed.Entry(&feed.Entries[i]).Elements)
	}
}

// elementsOf returns the lines of the elements of a feed.
func elementsOf(f *lektordir.Feed) string {
	for file, text := range f.Files() {
		if file == "etc/elements" {
			return text
		}
	}
	return ""
}
