package subscriptions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/spool"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

func setup(t *testing.T) (*lektordir.Dir, *commit.Writer) {
	t.Helper()
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), &lektordir.Options{
		Sleep: func(context.Context, time.Duration) error { return nil }, // BeginWait does not wait for a locked feed
	})
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

// The id is written before all else, so that a subscription that fails or is killed leaves either nothing
// or a feed that names itself. Here nothing else can be written.
func TestIDFirst(t *testing.T) {
	d, _ := setup(t)
	sub := &Subscription{ID: "http://x.example/feed", URL: "http://x.example/other"}
	hash := lektordir.FeedHash(sub.ID)
	testdir.Write(t, d.Join("src", hash), "etc", "not a directory")
	n := newFeed{d: d, s: sub, base: d.Join("src", hash)}
	if err := n.describe(""); err == nil {
		t.Fatal("describe succeeds")
	}
	if id, err := atomicfile.Line(d.Join("src", hash, "id")); id != sub.ID {
		t.Error(id, err)
	}
}

func read(t *testing.T, d *lektordir.Dir, path string) string {
	t.Helper()
	data, err := os.ReadFile(d.Join(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAddReadRemove(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "HTTP://Example.com/rss.xml#x", Alias: "a\nb", Interval: "2h", Categories: []string{"x/y", " ", "z"}, About: "text"}
	added, err := Add(w, d, s, AddOptions{})
	if err != nil || !added || s.Hash != "80af8e84e5ef7ae6b68acb8d1987e58e3e5731dd" {
		t.Fatal(added, err, s.Hash)
	}
	for name, want := range map[string]string{
		"id": "http://example.com/rss.xml\n", "name": "example.com\n", "etc/fetch/url": "http://example.com/rss.xml\n",
		"etc/view/alias": "a b\n", "etc/fetch/interval": "2h\n", "etc/categories": "x/y\nz\n", "description": "text\n",
	} {
		if got := read(t, d, "src/"+s.Hash+"/"+name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	got, err := Read(d, s.Hash)
	want := &Subscription{Hash: s.Hash, ID: s.ID, URL: s.ID, Name: "example.com", Alias: "a b", Interval: "2h", Categories: []string{"x/y", "z"}, About: "text"}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if added, err := Add(w, d, &Subscription{ID: s.ID, Name: "other"}, AddOptions{}); added || err != nil {
		t.Errorf("added again: %v, %v", added, err)
	}
	// The journal stays; the other files of the subscription are removed.
	for _, name := range []string{"seen", "error", "etag"} {
		if err := os.WriteFile(filepath.Join(feedfiles.Area(d, s.Hash, "fetch"), name), []byte("x\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := Remove(w, d, s.Hash, nil); err != nil {
		t.Fatal(err)
	}
	names, _ := filepath.Glob(filepath.Join(feedfiles.Area(d, s.Hash, "fetch"), "*"))
	if len(names) != 1 || filepath.Base(names[0]) != "seen" {
		t.Errorf("left: %q", names)
	}
	if _, err := Read(d, s.Hash); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var not *NotSubscribedError
	if _, err := (&Finder{Dir: d}).Find(s.ID); !errors.As(err, &not) {
		t.Error(err)
	}
	if subs, err := List(d); err != nil || len(subs) != 0 {
		t.Error(subs, err)
	}
	// Alias and name are the user's and the feed's, not the subscription's.
	if f, err := d.ReadFeed(s.Hash); err != nil || f.Name != "example.com" || f.Alias != "a b" {
		t.Error(f, err)
	}
	if err := Purge(t.Context(), w, d, s.Hash, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Join("src", s.Hash)); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestBusy(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "urn:x"}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	txn, err := w.Begin(s.Hash)
	if err != nil {
		t.Fatal(err)
	}
	defer txn.Close()
	var busy *commit.BusyError
	for name, f := range map[string]func() error{
		"Remove": func() error { return Remove(w, d, s.Hash, nil) },
		"Purge":  func() error { return Purge(t.Context(), w, d, s.Hash, nil) },
		"Set":    func() error { return Set(w, d, s.Hash, "interval", "1h", nil) },
		"Unset":  func() error { return Unset(w, d, s.Hash, "interval", nil) },
	} {
		if err := f(); !errors.As(err, &busy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !feedfiles.Subscribed(d, s.Hash) {
		t.Error("the subscription was removed, though the feed is locked")
	}
}

func TestFind(t *testing.T) {
	d, w := setup(t)
	a := &Subscription{ID: "http://a.example/feed", URL: "http://moved.example/feed"}
	if _, err := Add(w, d, a, AddOptions{Unsynced: true}); err != nil {
		t.Fatal(err)
	}
	if feedfiles.Subscribed(d, a.Hash) {
		t.Error("subscribed before Finish")
	}
	if err := Finish(w, d, []*Subscription{a}); err != nil {
		t.Fatal(err)
	}
	// A feed of another fetcher whose hash has the same beginning.
	other := d.Join("src", a.Hash[:6]+strings.Repeat("0", 34))
	if err := os.MkdirAll(other, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{a.ID, "HTTP://A.example:80/feed", a.URL, a.Hash, a.Hash[:7], a.Hash[:5], d.Join("src", a.Hash)} {
		if h, err := (&Finder{Dir: d}).Find(name); err != nil || h != a.Hash {
			t.Errorf("%s: %s, %v", name, h, err)
		}
	}
	var none *lektordir.NotFoundError
	for _, name := range []string{"http://b.example/", "zzz", ""} {
		if _, err := (&Finder{Dir: d}).Find(name); !errors.As(err, &none) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Read replaces an empty url, and a missing id or name.
func TestReadDamaged(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "http://a.example/feed"}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	base := d.Join("src", s.Hash)
	url := filepath.Join(base, "etc/fetch/url")
	os.WriteFile(url, nil, 0o666)
	if got, err := Read(d, s.Hash); err != nil || got.URL != s.ID {
		t.Errorf("%+v, %v", got, err)
	}
	os.WriteFile(url, []byte(s.ID+"\n"), 0o666)
	os.Remove(filepath.Join(base, "name"))
	os.Remove(filepath.Join(base, "id"))
	if got, err := Read(d, s.Hash); err != nil || got.ID != s.ID || got.Name != "a.example" {
		t.Errorf("%+v, %v", got, err)
	}
	os.WriteFile(url, []byte("http://b.example/\n"), 0o666)
	if got, err := Read(d, s.Hash); err == nil {
		t.Errorf("%+v", got)
	}
	if subs, err := List(d); err == nil || len(subs) != 0 {
		t.Errorf("%v, %v", subs, err)
	}
}

func TestSettings(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "http://a.example/feed"}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		"url": "https://b.example/", "alias": "Mine", "interval": "90m", "on-update": "ignore",
		"categories": "a\nb/c", "headers": "A: b\nC: d",
	} {
		if err := Set(w, d, s.Hash, key, value, nil); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got, err := settings.Get(d, s.Hash, key); err != nil || got != value {
			t.Errorf("%s: %q, %v", key, got, err)
		}
		if key == "url" {
			continue
		}
		if err := Unset(w, d, s.Hash, key, nil); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if got, err := settings.Get(d, s.Hash, key); err != nil || got != "" {
			t.Errorf("%s: %q, %v", key, got, err)
		}
	}
	var unknown *settings.UnknownSettingError
	if err := Set(w, d, s.Hash, "seen", "x", nil); !errors.As(err, &unknown) {
		t.Error(err)
	}
	for _, c := range [][2]string{
		{"interval", "0s"}, {"interval", "often"}, {"on-update", "maybe"}, {"headers", "nothing"}, {"alias", " "},
		{"url", "exec:"}, {"url", "exec: "}, {"url", "example.com"}, {"url", "ftp://x/"}, {"url", ""}, {"url", "http://a/\nhttp://b/"},
		{"url", "file:relative"}, {"etag", "x"}, {"../x", "y"}, {"", ""},
	} {
		if err := Set(w, d, s.Hash, c[0], c[1], nil); err == nil {
			t.Errorf("%q can be set to %q", c[0], c[1])
		}
	}
	if err := Unset(w, d, s.Hash, "etag", nil); err == nil {
		t.Error("etag can be unset")
	}
	// Other users could write a command, so none can be set.
	if err := os.Chmod(d.Join("src", s.Hash), 0o777); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"filter": "cat", "url": "exec:date"} {
		if err := Set(w, d, s.Hash, key, value, nil); err == nil || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// If a user subscribes to a feed with a URL while a list with the same feed is imported,
// the user's URL stays.
func TestAddDuringImport(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "http://a.example/feed"}
	if _, err := Add(w, d, s, AddOptions{Unsynced: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(w, d, &Subscription{ID: s.ID, URL: "https://user:pw@new.example/feed"}, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // another import has the same feed
		if err := Finish(w, d, []*Subscription{s}); err != nil {
			t.Error(err)
		}
	}
	if got, err := Read(d, s.Hash); err != nil || got.URL != "https://user:pw@new.example/feed" {
		t.Errorf("%+v, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(feedfiles.Area(d, s.Hash, "fetch"), ".url*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// An unsynced feed is not subscribed to before it is synced. If the import is killed, the next one removes the
// settings of requests that it has left.
func TestUnsyncedSettings(t *testing.T) {
	d, w := setup(t)
	given := func() *Subscription {
		return &Subscription{
			ID: "http://a.example/feed", Alias: "A", Interval: "3h", Private: true, Paused: true, Origin: "http://a.example/", Categories: []string{"c"},
		}
	}
	add := func(s *Subscription) {
		t.Helper()
		if _, err := Add(w, d, s, AddOptions{Unsynced: true}); err != nil {
			t.Fatal(err)
		}
	}
	finish := func(s *Subscription) *Subscription {
		t.Helper()
		if err := Finish(w, d, []*Subscription{s}); err != nil {
			t.Fatal(err)
		}
		got, err := Read(d, s.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if origin, err := settings.Get(d, s.Hash, feedfiles.FileOrigin); err != nil || origin != s.Origin {
			t.Errorf("the origin is %q, %v", origin, err)
		}
		return got
	}
	add(given())
	if feedfiles.Subscribed(d, lektordir.FeedHash("http://a.example/feed")) {
		t.Error("subscribed before the sync")
	}
	plain := &Subscription{ID: "http://a.example/feed"}
	add(plain)
	if got := finish(plain); got.Interval != "" || got.Paused {
		t.Errorf("after an import without settings: %+v", got)
	}
	if err := os.Remove(d.Join(filepath.FromSlash(feedfiles.URLPath(plain.Hash)))); err != nil {
		t.Fatal(err)
	}
	s := given()
	add(s)
	if got := finish(s); got.Alias != "A" || got.Interval != "3h" || !got.Private || !got.Paused || !slices.Equal(got.Categories, s.Categories) {
		t.Errorf("after an import with settings: %+v", got)
	}
}

// An id that a power cut has damaged is written again.
func TestDamagedID(t *testing.T) {
	for _, damaged := range []string{"", "\x00\x00\x00", "http://a.ex"} {
		d, w := setup(t)
		s := &Subscription{ID: "http://a.example/feed"}
		path := d.Join("src", lektordir.FeedHash(s.ID), "id")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(damaged), 0o666)); err != nil {
			t.Fatal(err)
		}
		if _, err := Add(w, d, s, AddOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != s.ID+"\n" {
			t.Errorf("%q: the id is %q, %v", damaged, got, err)
		}
	}
}

// Add fails for a URL that is too long to be read again, and adds nothing.
func TestAddTooLong(t *testing.T) {
	d, w := setup(t)
	for _, n := range []int{feedfiles.MaxSize - 100, feedfiles.MaxSize, 2 << 20} {
		s := &Subscription{ID: "http://e.example/" + strings.Repeat("a", n)}
		added, err := Add(w, d, s, AddOptions{})
		if n < feedfiles.MaxSize {
			if got, rerr := Read(d, s.Hash); !added || errors.Join(err, rerr) != nil || got.URL != s.ID {
				t.Errorf("%d bytes: %v, %v, %v", n, added, err, rerr)
			}
			continue
		}
		if err == nil || len(err.Error()) > 1000 || added {
			t.Errorf("%d bytes: %v, %v", n, added, err)
		}
	}
	if hashes, err := d.FeedHashes(); len(hashes) != 1 || err != nil {
		t.Error(hashes, err)
	}
}

func TestFeedURL(t *testing.T) {
	for in, want := range map[string]string{
		"feed://Example.com/f": "http://example.com/f", "feed:https://example.com/f": "https://example.com/f",
		" http://example.com:80/ ": "http://example.com/", "urn:x": "urn:x", "feed:": "feed:",
	} {
		if got := FeedURL(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// The origin of a feed's URL is kept until the user sets the URL.
func TestOriginIsKept(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "http://10.0.0.1/feed", Origin: "http://public.example/"}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	origin := func(want string) {
		t.Helper()
		st, err := schedule.Load(d, s.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := st.Request(); err != nil || r.Origin != want {
			t.Errorf("%+v, %v", r, err)
		}
	}
	origin(s.Origin)
	if err := Set(w, d, s.Hash, "interval", "2h", nil); err != nil {
		t.Fatal(err)
	}
	origin(s.Origin)
	path := filepath.Join(feedfiles.FetchArea(d, s.Hash), feedfiles.FileOrigin)
	testdir.Write(t, feedfiles.FetchArea(d, s.Hash), feedfiles.FileOrigin, "")
	origin(path)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o777)); err != nil {
		t.Fatal(err)
	}
	origin(path)
	if err := Set(w, d, s.Hash, "url", s.ID, nil); err != nil {
		t.Fatal(err)
	}
	origin("")
}

// If Add fails, for example on a full disk, it leaves no files; files that existed before
// stay.
func TestAddFails(t *testing.T) {
	d, w := setup(t)
	for _, unsynced := range []bool{false, true} {
		s := &Subscription{ID: "http://example.com/rss.xml", Alias: "alias", Categories: []string{"x"}}
		if added, err := Add(w, d, s, AddOptions{Unsynced: unsynced, Headers: "nonsense"}); err == nil {
			t.Fatal(added, "no error")
		}
		if _, err := os.Lstat(d.Join("src", s.Hash)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("src/%s: %v", s.Hash, err)
		}
	}
	s := &Subscription{ID: "http://example.com/other.xml"}
	mine := d.Join("src", lektordir.FeedHash(s.ID), "etc/mine")
	if err := os.MkdirAll(mine, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Add(w, d, s, AddOptions{Headers: "nonsense"}); err == nil {
		t.Fatal("no error")
	}
	if _, err := os.Lstat(mine); err != nil {
		t.Error(err)
	}
	if added, err := Add(w, d, s, AddOptions{}); !added || err != nil {
		t.Error(added, err)
	}
}

// A url is restored with its origin: a private address that a document named never counts as the
// user's own.
func TestRestoreURL(t *testing.T) {
	d, w := setup(t)
	s := &Subscription{ID: "http://10.0.0.1/feed", Origin: "http://public.example/"}
	if _, err := Add(w, d, s, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	want := func(url, origin string) {
		t.Helper()
		st, err := schedule.Load(d, s.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := st.Request(); err != nil || r.URL != url || r.Origin != origin {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if err := Set(w, d, s.Hash, "url", "http://user.example/feed", nil); err != nil {
		t.Fatal(err)
	}
	want("http://user.example/feed", "")
	if err := RestoreURL(w, d, s.Hash, s.ID, s.Origin, nil); err != nil {
		t.Fatal(err)
	}
	want(s.ID, s.Origin)
	for _, bad := range [][2]string{{"", s.Origin}, {"http://a/\nb", s.Origin}, {"http://a/", "x\x00"}} {
		if err := RestoreURL(w, d, s.Hash, bad[0], bad[1], nil); err == nil {
			t.Errorf("%q is restored", bad)
		}
	}
	want(s.ID, s.Origin)
	// If the url cannot be written, the origin is there nevertheless.
	path := filepath.Join(feedfiles.FetchArea(d, s.Hash), feedfiles.FileURL)
	if err := Set(w, d, s.Hash, "url", "http://user.example/feed", nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o777), os.WriteFile(filepath.Join(path, "x"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if err := RestoreURL(w, d, s.Hash, s.ID, s.Origin, nil); err == nil {
		t.Error("a directory was replaced")
	}
	if b, err := os.ReadFile(filepath.Join(feedfiles.FetchArea(d, s.Hash), feedfiles.FileOrigin)); err != nil || string(b) != s.Origin+"\n" {
		t.Errorf("origin %q, %v", b, err)
	}
	// The other way round, the origin stays if the new url cannot be written.
	if err := Set(w, d, s.Hash, "url", "http://user.example/feed", nil); err == nil {
		t.Error("a directory was replaced")
	}
	if _, err := os.Stat(filepath.Join(feedfiles.FetchArea(d, s.Hash), feedfiles.FileOrigin)); err != nil {
		t.Error(err)
	}
}

// TestAddAfterAKilledRemove: settings that a killed removal has left are never those of the next
// subscription. Settings of a feed whose removal was whole stay, since they are the user's.
func TestAddAfterAKilledRemove(t *testing.T) {
	d, w := setup(t)
	for _, killed := range []bool{true, false} {
		s := &Subscription{ID: "http://example.com/rss.xml", Alias: "alias", Interval: "2h"}
		if added, err := Add(w, d, s, AddOptions{Headers: "Authorization: secret"}); err != nil || !added {
			t.Fatal(added, err)
		}
		for name, value := range map[string]string{"on-update": "ignore", "filter": "cat", "history": "off", "fulltext": "on"} {
			if err := Set(w, d, s.Hash, name, value, nil); err != nil {
				t.Fatal(err)
			}
		}
		fetch := feedfiles.Area(d, s.Hash, "fetch")
		testdir.Write(t, fetch, "marks", "")
		left := []string{"fetch/headers", "fetch/interval", "fetch/on-update", "fetch/filter", "history/follow", "fulltext"}
		base := feedfiles.Area(d, s.Hash, "")
		texts := map[string]string{}
		for _, name := range left {
			if data, err := os.ReadFile(filepath.Join(base, name)); err == nil {
				texts[name] = string(data)
			}
		}
		if len(texts) < 5 {
			t.Fatalf("only %v", texts)
		}
		// A removal that fails half-way, here since no url can be removed, is not whole.
		url := filepath.Join(fetch, "url")
		if err := errors.Join(os.Remove(url), os.MkdirAll(filepath.Join(url, "x"), 0o777)); err != nil {
			t.Fatal(err)
		}
		if err := Remove(w, d, s.Hash, nil); err == nil {
			t.Fatal("no error")
		}
		if err := os.RemoveAll(url); err != nil {
			t.Fatal(err)
		}
		if !killed {
			if err := Remove(w, d, s.Hash, nil); err != nil {
				t.Fatal(err)
			}
			for name, text := range texts {
				testdir.Write(t, filepath.Dir(filepath.Join(base, name)), filepath.Base(name), text)
			}
		}
		if !Ended(d, s.Hash) {
			t.Error("the subscription is not left")
		}
		if added, err := Add(w, d, &Subscription{ID: s.ID, Interval: "3h"}, AddOptions{}); err != nil || !added {
			t.Fatal(added, err)
		}
		for name, text := range texts {
			want := text
			if name == "fetch/interval" {
				want = "3h\n"
			} else if killed {
				want = "-"
			}
			if got := testdir.Text(t, base, name); got != want {
				t.Errorf("killed %v: %s is %q, want %q", killed, name, got, want)
			}
		}
		if testdir.Text(t, base, "fetch/marks") != "" || testdir.Text(t, base, "view/alias") != "alias\n" {
			t.Error("the marks or the alias are gone")
		}
		if err := Remove(w, d, s.Hash, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// Sweep removes old temporary files of killed processes, and keeps all others. A pending url is a temporary
// file.
func TestSweep(t *testing.T) {
	d, w := setup(t)
	dir := feedfiles.Area(d, "f", "fetch")
	old := time.Now().Add(-3 * time.Hour)
	for _, name := range []string{".etag1234567890123456", ".headers1234567890123456789", filepath.Base(PendingPath("f")), ".mine123", ".etag", "seen", "url"} {
		testdir.Write(t, dir, name, "x")
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	testdir.Write(t, dir, ".error1234567890123456", "young")
	Sweep(w, d, time.Now())
	if got, want := names(t, dir), []string{".error1234567890123456", ".etag", ".mine123", "seen", "url"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// After a feed is removed, only the records of archives and of a complete document stay.
func TestForgets(t *testing.T) {
	d, w := setup(t)
	sub := &Subscription{ID: "http://x.example/feed"}
	if _, err := Add(w, d, sub, AddOptions{}); err != nil {
		t.Fatal(err)
	}
	h := history.Of(d, sub.Hash)
	s, err := spool.Of(d, sub.Hash)
	if err != nil {
		t.Fatal(err)
	}
	_, missing := h.Missing(time.Now(), "http://x.example/1", "404", false, 0)
	for _, err := range []error{
		h.SetLinked(history.Linked{Kind: rfc5005.Archived, Prev: "http://x.example/9", Next: "http://x.example/p"}), h.SetBaseline(rfc5005.Baseline{URL: "http://x.example/9", Since: time.Now()}), missing,
		h.Store(rfc5005.Stored{URL: "http://x.example/9", Final: "http://x.example/9", Digest: "00ff"}), h.Present([]string{"0123456789abcdef"}), Set(w, d, sub.Hash, "history", "off", nil), s.Put(&spool.Spooled{URL: "u"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if h.Follow() {
		t.Error("archives are followed, though history is off")
	}
	if err := Remove(w, d, sub.Hash, nil); err != nil {
		t.Fatal(err)
	}
	if names := names(t, feedfiles.Area(d, sub.Hash, feedfiles.AreaHistory)); fmt.Sprint(names) != "[archives complete]" {
		t.Error(names)
	}
	if _, err := os.Stat(d.Join("etc/fetch/spool", sub.Hash)); !os.IsNotExist(err) {
		t.Error(err)
	}
	for _, v := range []string{"", "yes", "ON"} {
		if err := settings.Check("history", v); err == nil {
			t.Errorf("history %q", v)
		}
	}
}

func TestPublicURL(t *testing.T) {
	for _, tc := range []struct{ url, self, want string }{
		{"http://me:secret@a.example/", "http://b.example/", "http://a.example/"},
		{"exec:make-feed", "http://me:secret@b.example/", "http://b.example/"},
		{"file:/feed", "feed", "file:/feed"},
		{"", "http://b.example/", ""},
	} {
		files := []string{"etc/push/self=" + tc.self}
		if tc.url != "" {
			files = append(files, "etc/fetch/url="+tc.url)
		}
		made := testdir.New(t)
		hash := must.Get(made.Feed("http://a.example/", "A", files...))
		d := must.Get(lektordir.Open(made.Path, nil))
		if got := PublicURL(d, hash); got != tc.want {
			t.Errorf("%q, %q: %q", tc.url, tc.self, got)
		}
	}
}

// names returns the names of the files of a directory.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	ents, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range ents {
		all = append(all, e.Name())
	}
	return all
}
