package stage

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
)

// Package delivery tests documents of real feeds, and package lektordir tests identity with
// a model of a feed.

const feedID = "urn:feed"

var feedHash = entryname.FeedHash(feedID)

// world is a lektor-dir of one feed.
type world struct {
	*testing.T
	d     *dirfs.Dir
	w     *commit.Writer
	dated func(path string) (time.Time, error)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	d := dirfs.New(t.TempDir(), dirfs.Options{})
	for _, name := range []string{"tmp", "new", "cur", "src"} {
		if err := os.Mkdir(d.Join(name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	w, err := commit.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return &world{T: t, d: d, w: w}
}

// begin begins a transaction, which is closed when the test ends.
func (wo *world) begin() *Stager {
	wo.Helper()
	t, err := wo.w.Begin(feedHash)
	if err != nil {
		wo.Fatal(err)
	}
	wo.Cleanup(t.Close)
	if err := t.PutFeed(maps.All(map[string]string{"id": feedID, "name": "Feed"})); err != nil {
		wo.Fatal(err)
	}
	return New(t, wo.dated)
}

// end commits and closes a transaction.
func (wo *world) end(t *Stager) {
	wo.Helper()
	done := make(chan error, 1)
	t.Commit(func(err error) { done <- err })
	wo.w.Flush()
	if err := <-done; err != nil {
		wo.Fatal(err)
	}
	t.Close()
}

func (wo *world) stage(t *Stager, doc Document) Result {
	wo.Helper()
	res, err := t.Stage(wo.Context(), doc)
	if err != nil {
		wo.Fatal(err)
	}
	return res
}

// deliver delivers a document.
func (wo *world) deliver(doc Document) Result {
	wo.Helper()
	t := wo.begin()
	res := wo.stage(t, doc)
	wo.end(t)
	return t.Outcome(res)
}

// take moves an entry from new/ to cur/, as a viewer does.
func (wo *world) take(unique string) {
	wo.Helper()
	if err := os.MkdirAll(wo.d.Join("cur", feedHash), 0o777); err != nil {
		wo.Fatal(err)
	}
	if err := os.Rename(wo.d.Join("new", feedHash, unique), wo.d.Join("cur", feedHash, unique+";2,S")); err != nil {
		wo.Fatal(err)
	}
}

func (wo *world) remove(unique string) {
	wo.Helper()
	if err := os.RemoveAll(wo.d.Join("new", feedHash, unique)); err != nil {
		wo.Fatal(err)
	}
}

// file returns the text of a file of an entry in new/, or the error of reading it.
func (wo *world) file(unique, name string) string {
	b, err := os.ReadFile(wo.d.Join("new", feedHash, unique, name))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func files(title, text, replaces string) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		_ = yield("title", []byte(title)) && yield("content", []byte(text)) && yield("replaces", []byte(replaces))
	}
}

func entry(guid, text string) Item {
	return Item{
		GUID: guid, Title: "Title of " + guid, Text: text, PubDate: time.Unix(1600000000, 0),
		Files: func(replaces string) iter.Seq2[string, []byte] { return files(guid, text, replaces) },
	}
}

// counts formats the counts of a result.
func counts(r Result) string {
	return fmt.Sprintf("%d new, %d updated, %d unchanged, %d ignored, %d repeated", len(r.New), len(r.Updated), r.Unchanged, r.Ignored, r.Repeated)
}

// Stage compares a document with the delivered entries, and handles changes by the policy and the
// place of the old version. Wanted returns the same entries before. A new version has the identity of
// the old one.
func TestStage(t *testing.T) {
	for _, c := range []struct {
		policy string
		viewer func(wo *world, unique string)
		want   string
	}{
		{"unread", func(*world, string) {}, "1 new, 1 updated, 1 unchanged, 0 ignored, 1 repeated"},
		{"unread", (*world).take, "1 new, 0 updated, 1 unchanged, 1 ignored, 1 repeated"},
		{"unread", (*world).remove, "1 new, 0 updated, 1 unchanged, 1 ignored, 1 repeated"},
		{Deliver, (*world).take, "1 new, 1 updated, 1 unchanged, 0 ignored, 1 repeated"},
		{Deliver, (*world).remove, "1 new, 1 updated, 1 unchanged, 0 ignored, 1 repeated"},
		{Ignore, func(*world, string) {}, "1 new, 0 updated, 1 unchanged, 1 ignored, 1 repeated"},
	} {
		wo := newWorld(t)
		first := wo.deliver(Document{Items: []Item{entry("b", "1"), entry("a", "1")}, Policy: c.policy})
		if got := counts(first); got != "2 new, 0 updated, 0 unchanged, 0 ignored, 0 repeated" || wo.file(first.New[0], "title") != "a" {
			t.Fatalf("%s: %s, %q", c.policy, got, first.New)
		}
		old := first.New[0]
		c.viewer(wo, old)
		doc := Document{Items: []Item{entry("c", "1"), entry("b", "1"), entry("a", "2"), entry("b", "1")}, Policy: c.policy}
		tx := wo.begin()
		wanted, err := tx.Wanted(doc)
		if err != nil {
			t.Fatal(err)
		}
		res := wo.stage(tx, doc)
		wo.end(tx)
		if got := counts(res); got != c.want || len(wanted) != len(res.New)+len(res.Updated) {
			t.Errorf("%s: %s, want %s; wanted are %v", c.policy, got, c.want, wanted)
		}
		for _, u := range res.Updated {
			if wo.file(u, "content") != "2" || wo.file(u, "replaces") != old || entryname.Identity(u) != entryname.Identity(old) || entryname.Compare(old, u) >= 0 {
				t.Errorf("%s: %s replaces %s, but its file replaces is %q", c.policy, u, old, wo.file(u, "replaces"))
			}
		}
		if want := []string{entryname.Identity(res.New[0]), entryname.Identity(first.New[1]), entryname.Identity(old)}; !slices.Equal(res.Ranked, want) {
			t.Errorf("%s: ranked %q, want %q", c.policy, res.Ranked, want)
		}
		// A delivered entry is never delivered again, even if a viewer moved or deleted it.
		tx = wo.begin()
		if again := wo.stage(tx, doc); len(again.New)+len(again.Updated) > 0 {
			t.Errorf("%s: staged again: %s", c.policy, counts(again))
		}
		tx.Close()
	}
}

// A viewer may take or remove an entry while its date is read.
func TestDatesBesideAViewer(t *testing.T) {
	other := errors.New("another error")
	at := func(day int) time.Time { return time.Unix(1600000000, 0).AddDate(0, 0, day) }
	for what, c := range map[string]struct {
		first      func(wo *world, unique string) error // called at the first call of dated
		asked      int                                  // calls of dated
		newer, not bool                                 // whether OnlyNewer, NotOlder accept a newer version
		err        error
	}{
		"in its place":        {func(*world, string) error { return nil }, 1, true, true, nil},
		"taken":               {func(wo *world, u string) error { wo.take(u); return fs.ErrNotExist }, 2, true, true, nil},
		"removed":             {func(wo *world, u string) error { wo.remove(u); return fs.ErrNotExist }, 1, false, true, nil},
		"there and not there": {func(*world, string) error { return fs.ErrNotExist }, 2, true, true, nil},
		"unreadable":          {func(*world, string) error { return other }, 1, false, false, other},
	} {
		for _, rule := range []Dates{OnlyNewer, NotOlder} {
			wo := newWorld(t)
			asked := 0
			var unique string
			wo.dated = func(path string) (time.Time, error) {
				if asked++; asked == 1 {
					if err := c.first(wo, unique); err != nil {
						return time.Time{}, err
					}
				}
				if _, err := os.Lstat(wo.d.Join(path)); err != nil {
					t.Errorf("%s: the date of %s is read: %v", what, path, err)
				}
				return at(5), nil
			}
			unique = wo.deliver(Document{Items: []Item{entry("a", "1")}}).New[0]
			it := entry("a", "2")
			it.Updated = at(6)
			tx := wo.begin()
			res, err := tx.Stage(t.Context(), Document{Items: []Item{it}, Policy: Deliver, Dates: rule})
			want := c.newer && rule == OnlyNewer || c.not && rule == NotOlder
			if !errors.Is(err, c.err) || asked != c.asked || (len(res.Updated) == 1) != want {
				t.Errorf("%s, rule %d: %s after %d calls of dated, %v", what, rule, counts(res), asked, err)
			}
			tx.Close()
		}
	}
}

// An entry that keeps moving counts as deleted.
func TestDatesOfOneThatMoves(t *testing.T) {
	wo := newWorld(t)
	asked := 0
	wo.dated = func(string) (time.Time, error) { asked++; return time.Time{}, fs.ErrNotExist }
	wo.deliver(Document{Items: []Item{entry("a", "1")}})
	for rule, want := range map[Dates]string{
		OnlyNewer: "0 new, 0 updated, 0 unchanged, 1 ignored, 0 repeated",
		NotOlder:  "0 new, 1 updated, 0 unchanged, 0 ignored, 0 repeated",
	} {
		asked = 0
		tx := wo.begin()
		if got := counts(wo.stage(tx, Document{Items: []Item{entry("a", "2")}, Policy: Deliver, Dates: rule})); got != want || asked != 3 {
			t.Errorf("rule %d: %s after %d calls of dated, want %s", rule, got, asked, want)
		}
		tx.Close()
	}
}

// A revision replaces its entry in new/, which still counts as unchanged. It is not delivered if a
// viewer has taken the entry. An entry that was never delivered cannot be revised.
func TestRevise(t *testing.T) {
	for _, viewer := range []func(wo *world, unique string){nil, (*world).take, (*world).remove} {
		wo := newWorld(t)
		doc := Document{Items: []Item{entry("a", "1")}}
		old := wo.deliver(doc).New[0]
		tx := wo.begin()
		if _, ok, err := tx.Revise(t.Context(), "1.x.y", files("x", "x", "")); ok || err != nil {
			t.Errorf("an entry that was never delivered: %v, %v", ok, err)
		}
		unique, ok, err := tx.Revise(t.Context(), old, files("a", "revised", old))
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if viewer != nil {
			viewer(wo, old)
		}
		wo.end(tx)
		res := tx.Outcome(Result{Updated: []string{unique}})
		names, err := dirfs.Names(wo.d.Join("new", feedHash))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case viewer == nil && (!slices.Equal(names, []string{unique}) || wo.file(unique, "content") != "revised" || len(res.Updated) != 1 || tx.Dropped(unique)):
			t.Errorf("new/ has %q, want the revision: %+v", names, res)
		case viewer != nil && (len(names) > 0 || len(res.Updated) > 0 || !tx.Dropped(unique)):
			t.Errorf("new/ has %q after a viewer took the entry: %+v", names, res)
		}
		if again := wo.deliver(doc); counts(again) != "0 new, 0 updated, 1 unchanged, 0 ignored, 0 repeated" {
			t.Errorf("delivered again: %s", counts(again))
		}
	}
}

// Find finds the newest version of an entry in new/ and cur/.
func TestFind(t *testing.T) {
	wo := newWorld(t)
	find := func() string {
		tx := wo.begin()
		defer tx.Close()
		return tx.Find(t.Context(), "a")
	}
	is := func(want string) {
		t.Helper()
		if got := find(); got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	is("")
	put := func(text string) string {
		res := wo.deliver(Document{Items: []Item{entry("a", text)}, Policy: Deliver, GUIDs: Own})
		return append(res.New, res.Updated...)[0]
	}
	old := put("1")
	is("new/" + feedHash + "/" + old)
	wo.take(old)
	is("cur/" + feedHash + "/" + old + ";2,S")
	is("new/" + feedHash + "/" + put("2"))
}

func TestID(t *testing.T) {
	at := time.Unix(1600000000, 0)
	for _, c := range []struct{ id, guid, link, want string }{
		{"i", "g", "l", "i"}, {"", "g", "l", "g"}, {"", "", "l", "l"},
	} {
		if got := ID(c.id, c.guid, c.link, "t", at, "", nil); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	seen := map[string]bool{}
	for _, id := range []string{
		ID("", "", "", "t", at, "", []byte("c")), ID("", "", "", "u", at, "", []byte("c")), ID("", "", "", "t", at, "", []byte("d")),
		ID("", "", "", "t", at.Add(time.Nanosecond), "", []byte("c")), ID("", "", "", "t", time.Time{}, "raw", []byte("c")),
	} {
		if len(id) != len("urn:sha256:")+64 || seen[id] {
			t.Errorf("%q", id)
		}
		seen[id] = true
	}
	if ID("", "", "", "t", at.UTC(), "other", nil) != ID("", "", "", "t", at.In(time.FixedZone("", 3600)), "", nil) {
		t.Error("the ID depends on the time zone, or on the text of a parsed date")
	}
}
