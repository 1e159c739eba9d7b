package fetcher

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/lektordir"
)

func setupDir(t *testing.T) (*lektordir.Dir, *commit.Writer) {
	t.Helper()
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := feedfiles.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return d, w
}

func TestImportKeepsIDs(t *testing.T) {
	d, w := setupDir(t)
	s := &subscriptions.Subscription{ID: "http://old.example/feed", URL: "http://new.example/feed"}
	if _, err := subscriptions.Add(w, d, s, subscriptions.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	doc, err := opml.Parse([]byte(`<opml><body><outline text="F"><outline xmlUrl="http://new.example/feed"/><outline xmlUrl="feed://x.example/f"/></outline>
		<outline xmlUrl="http://old.example/feed"/><outline xmlUrl="file:///etc/passwd"/></body></opml>`))
	if err != nil {
		t.Fatal(err)
	}
	got, refused, err := subscribe(w, d, doc, false)
	if err != nil || len(got.Added) != 1 || got.Added[0].ID != "http://x.example/f" || len(got.Already) != 1 || !slices.Equal(refused, []string{"file:///etc/passwd"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if c := settings.Categories(d, s.Hash); !slices.Equal(c, []string{"F"}) {
		t.Errorf("categories %q", c)
	}
}

// An imported list that cannot be read is not overwritten.
func TestImportUnreadableList(t *testing.T) {
	d, w := setupDir(t)
	path := subscriptions.ListFile(d)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("opml", path); err != nil {
		t.Fatal(err)
	}
	doc, err := opml.Parse([]byte(`<opml><body><outline xmlUrl="http://new.example/feed"/></body></opml>`))
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := subscribe(w, d, doc, false)
	if err == nil || !strings.Contains(err.Error(), path) || len(got.Added) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if to, err := os.Readlink(path); err != nil || to != "opml" {
		t.Errorf("it was written over: %q, %v", to, err)
	}
}

// If the merged list could not be read again, the existing list stays unchanged.
func TestImportKeepsWhatItCanRead(t *testing.T) {
	d, w := setupDir(t)
	list := func(name string) *opml.Document {
		doc, err := opml.Parse([]byte("<opml><body><outline text='" + strings.Repeat(name, 9<<20) + "'/><outline xmlUrl='http://" + name + ".example/'/></body></opml>"))
		if err != nil {
			t.Fatal(err)
		}
		return doc
	}
	if _, _, err := subscribe(w, d, list("a"), false); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(subscriptions.ListFile(d))
	if err != nil {
		t.Fatal(err)
	}
	imp, _, err := subscribe(w, d, list("b"), false)
	if err == nil || !strings.Contains(err.Error(), "more than 16777216 bytes") || len(imp.Added) != 1 {
		t.Errorf("%v, %v", imp, err)
	}
	if after, err := os.ReadFile(subscriptions.ListFile(d)); err != nil || string(after) != string(before) {
		t.Errorf("%d bytes, %v", len(after), err)
	}
}

// A stopped import reports how many feeds were not fetched yet. The same import again fetches
// only these.
func TestImportStopped(t *testing.T) {
	s, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const doc = `<rss version="2.0"><channel><title>F</title><item><title>One</title><guid>1</guid></item></channel></rss>`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.Handle("/a", server.Doc("text/xml", doc))
	s.Handle("/b", func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}, server.Doc("text/xml", doc))
	list := filepath.Join(t.TempDir(), "list.opml")
	if err := os.WriteFile(list, []byte(`<opml><body><outline xmlUrl="`+s.URL("/a")+`"/><outline xmlUrl="`+s.URL("/b")+`"/></body></opml>`), 0o666); err != nil {
		t.Fatal(err)
	}
	o := ImportOptions{File: list}
	o.Dir, o.Jobs = filepath.Join(t.TempDir(), "feeds"), 1
	run := func(ctx context.Context) (string, error) {
		var told bytes.Buffer
		err := Import(ctx, o, cmdline.NewStreams("lektor-fetch", strings.NewReader(""), io.Discard, &told))
		return told.String(), err
	}
	told, err := run(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(told, "not fetched yet; to fetch them, run lektor-fetch or the same import") {
		t.Errorf("%v: %s", err, told)
	}
	told, err = run(t.Context())
	if err != nil || !strings.Contains(told, "0 feeds subscribed, 2 already, of which ") {
		t.Errorf("%v: %s", err, told)
	}
	if n := len(s.Requests("/b")); n != 2 {
		t.Errorf("the one that was left was asked for %d times", n)
	}
	if n := len(s.Requests("/a")); n != 1 {
		t.Errorf("the other was asked for %d times", n)
	}
	told, err = run(t.Context())
	if err != nil || strings.Contains(told, "never") || len(s.Requests("/b")) != 2 {
		t.Errorf("%v: %s", err, told)
	}
}

// A feed whose private setting cannot be read is left out of a list for others, with a
// warning.
func TestPublicListOfAFeedThatCannotBeRead(t *testing.T) {
	d, w := setupDir(t)
	sub := &subscriptions.Subscription{ID: "http://127.0.0.1/feed", URL: "http://127.0.0.1/feed"}
	if _, err := subscriptions.Add(w, d, sub, subscriptions.AddOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.Join("src", sub.Hash, "etc", "fetch"), "private"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, public := range []bool{false, true} {
		doc, bad := ExportOptions{Public: public}.list(d)
		if shown := strings.Contains(string(doc.Bytes()), sub.URL); shown == public || (bad != nil) != public {
			t.Errorf("public %v: its URL is shown: %v; %v", public, shown, bad)
		}
	}
}
