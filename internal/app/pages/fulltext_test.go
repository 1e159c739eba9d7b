package pages

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// TestFullTextIsNotPassedOn: the article of a page is for the user alone. A public site has the
// feed's own text, in lists too.
func TestFullTextIsNotPassedOn(t *testing.T) {
	base := t.TempDir()
	d := must.Get(lektordir.Create(filepath.Join(base, "d"), nil))
	must.Get(d.Deliver(t.Context(), &lektordir.Feed{ID: "http://a.example/feed", Name: "A"}, lektordir.UpdateNew, lektordir.Entry{
		ID: "http://a.example/1", Title: "One", Content: []byte("<p>Article of the page <img src=http://a.example/i.png>"), Type: "text/html",
		FeedContent: []byte("Text of the feed."), FullText: lektordir.FullText{URL: "http://a.example/1"},
	}))
	for _, private := range []bool{true, false} {
		to := filepath.Join(base, "www")
		var messages strings.Builder
		o := HTMLOptions{Common: Common{Dir: d.Path(), Private: private}, Output: to, Title: "T", PerPage: 50}
		if err := HTML(context.Background(), o, cmdline.NewStreams("lektor-pages", strings.NewReader(""), &messages, &messages)); err != nil {
			t.Fatal(err, messages.String())
		}
		var all strings.Builder
		must.Do(filepath.WalkDir(to, func(path string, e os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".html") {
				all.Write(must.Get(os.ReadFile(path)))
			}
			return err
		}))
		// The second site replaces the first one, of which nothing may stay.
		if strings.Contains(all.String(), "Article of the page") != private || !strings.Contains(all.String(), "Text of the feed.") {
			t.Errorf("private %v:\n%s", private, all.String())
		}
	}
}

// TestFullTextIsMailed: mail is for the user, so digests and messages contain the article, and not
// the feed's text.
func TestFullTextIsMailed(t *testing.T) {
	base := t.TempDir()
	d := must.Get(lektordir.Create(filepath.Join(base, "d"), nil))
	put := must.Get(d.Deliver(t.Context(), &lektordir.Feed{ID: "http://a.example/feed", Name: "A"}, lektordir.UpdateNew, lektordir.Entry{
		ID: "http://a.example/1", Title: "One", Content: []byte("<p>Article of the page"), Type: "text/html",
		FeedContent: []byte("Text of the feed."), FullText: lektordir.FullText{URL: "http://a.example/1"},
	}))
	c := Common{Dir: d.Path()}
	for what, run := range map[string]func(*cmdline.Streams) error{
		"digest": func(s *cmdline.Streams) error {
			return Digest(t.Context(), DigestOptions{Common: c, Entries: []string{put.New[0].Unique}, Lines: 4}, s)
		},
		"full digest": func(s *cmdline.Streams) error {
			return Digest(t.Context(), DigestOptions{Common: c, Entries: []string{put.New[0].Unique}, Full: true, Mail: "kim@example.org"}, s)
		},
		"mbox": func(s *cmdline.Streams) error { return Mbox(t.Context(), MboxOptions{Common: c}, s) },
	} {
		var out, messages strings.Builder
		if err := run(cmdline.NewStreams("lektor-pages", strings.NewReader(""), &out, &messages)); err != nil {
			t.Fatal(what, err, messages.String())
		}
		if !strings.Contains(out.String(), "Article of the page") || strings.Contains(out.String(), "Text of the feed.") {
			t.Errorf("%s:\n%s", what, out.String())
		}
	}
}
