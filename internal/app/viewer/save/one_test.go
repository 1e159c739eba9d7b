package save

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// TestEnclosure: enclosures are saved one by one. The last one sets the flag, and Save downloads
// none of them again. A download that was cancelled is continued.
func TestEnclosure(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path+" "+r.Header.Get("Range"))
		w.Header().Set("ETag", `"x"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("the whole file"))
	}))
	defer server.Close()
	f := newFixture(t)
	feed := server.URL + "/feed"
	if _, err := f.Feed(feed, "Cast"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Entry(feed, "new", "1700000000.1.h", "title=Pod", "+enclosure="+server.URL+"/1.mp3\taudio/mpeg\t", "+enclosure="+server.URL+"/2.mp3\taudio/mpeg\t"); err != nil {
		t.Fatal(err)
	}
	d, err := lektordir.Open(f.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	refs, err := d.List(t.Context(), lektordir.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	client := fetch.NewClient(fetch.Config{})
	defer client.Close()
	one := func(ctx context.Context, name string, progress func(int64, int64)) (string, error) {
		return Enclosure(ctx, entrystore.New(d, time.Now(), f.Streams("")), client, to, refs[0], server.URL+name, progress)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one(cancelled, "/1.mp3", func(int64, int64) {}); err == nil {
		t.Error("it was not cancelled")
	}
	var have, total int64
	path, err := one(t.Context(), "/1.mp3", func(h, n int64) { have, total = h, n })
	if want := filepath.Join(to, "Cast", "2023-11-14 Pod.mp3"); err != nil || path != want || have != 14 || total != 14 {
		t.Fatalf("%s %v, %d of %d", path, err, have, total)
	}
	if path, err := one(t.Context(), "/1.mp3", nil); err != nil || path != filepath.Join(to, "Cast", "2023-11-14 Pod.mp3") {
		t.Errorf("again: %s %v", path, err)
	}
	flags := func() string {
		refs, err = d.List(t.Context(), lektordir.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return refs[0].Flags()
	}
	if got := flags(); got != "" {
		t.Errorf("flags %q after the first", got)
	}
	if _, err := one(t.Context(), "/2.mp3", func(int64, int64) {}); err != nil || flags() != "d" {
		t.Errorf("%v, flags %q", err, flags())
	}
	names, _ := os.ReadDir(filepath.Join(to, "Cast"))
	var left []string
	for _, n := range names {
		left = append(left, n.Name())
	}
	if want := []string{"2023-11-14 Pod (2).mp3", "2023-11-14 Pod.mp3"}; !slices.Equal(left, want) {
		t.Errorf("%q", left)
	}
	if want := []string{"/1.mp3 ", "/2.mp3 "}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q", asked)
	}
	if _, err := one(t.Context(), "/3.mp3", nil); err == nil {
		t.Error("saved an enclosure that is not there")
	}
}

// TestEnclosureBeside: transcripts and chapters are saved with each enclosure, once. One that is not there fails
// nothing, and the entry has its flag when all are there.
func TestEnclosureBeside(t *testing.T) {
	c := newCast(t, []string{"title=Pod", "+enclosure=URL/a.mp3\taudio/mpeg\t", "+enclosure=URL/b.mp3\taudio/mpeg\t",
		"+element=podcast:transcript\t\turl=URL/t.vtt\ttype=text/vtt", "+element=podcast:chapters\t\turl=URL/c"})
	c.files["/a.mp3"], c.files["/b.mp3"], c.files["/c"] = "sound", "sound", "[]"
	d, err := lektordir.Open(c.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := fetch.NewClient(fetch.Config{})
	defer client.Close()
	save := func(name string) (asked []string, flags string) {
		t.Helper()
		c.asked = nil
		refs, err := d.List(t.Context(), lektordir.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s := entrystore.New(d, c.now, c.Streams(""))
		var last int64
		path, err := Enclosure(t.Context(), s, client, c.o.To, refs[0], c.url+name, func(have, _ int64) { last = have })
		if err != nil || filepath.Dir(path) != filepath.Join(c.o.To, "Cast") || s.Record(refs[0]).Saved(c.url+name) != path {
			t.Fatalf("%s: %s, %v", name, path, err)
		}
		if len(c.asked) > 0 && c.asked[0] == name && last != 5 {
			t.Errorf("%s: progress %d", name, last)
		}
		if refs, err = d.List(t.Context(), lektordir.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		return c.asked, refs[0].Flags()
	}
	for _, step := range []struct{ name, asked, flags string }{
		{"/a.mp3", "/a.mp3 /t.vtt /c", ""}, {"/b.mp3", "/b.mp3 /t.vtt", ""}, {"/b.mp3", "/t.vtt", "d"},
	} {
		if step.flags != "" {
			c.files["/t.vtt"] = "WEBVTT"
		}
		if asked, flags := save(step.name); strings.Join(asked, " ") != step.asked || flags != step.flags {
			t.Errorf("%s: asked for %q, flags %q, want %+v", step.name, asked, flags, step)
		}
	}
	var names []string
	list, _ := os.ReadDir(filepath.Join(c.o.To, "Cast"))
	for _, f := range list {
		names = append(names, f.Name())
	}
	if want := []string{"2023-11-15 Pod (2).mp3", "2023-11-15 Pod.chapters.json", "2023-11-15 Pod.mp3", "2023-11-15 Pod.vtt"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}
