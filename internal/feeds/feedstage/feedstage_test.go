package feedstage

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/lektordir"
)

const feedID = "http://example.com/feed"

var hash = lektordir.FeedHash(feedID)

// world is a lektor-dir with one feed, and a fetcher.
type world struct {
	t   *testing.T
	d   *lektordir.Dir
	w   *commit.Writer
	now time.Time
	p   lektordir.Policy
}

func newWorld(t *testing.T, p lektordir.Policy) *world {
	t.Helper()
	wo := &world{t: t, now: time.Unix(1700000000, 0), p: p}
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "d"), &lektordir.Options{Now: func() time.Time { return wo.now }, Host: "h", PID: 1})
	if err != nil {
		t.Fatal(err)
	}
	wo.d = d
	if wo.w, err = feedfiles.NewWriter(d, commit.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wo.w.Close() })
	return wo
}

// transact runs one transaction.
func (wo *world) transact(f func(*stage.Stager) (stage.Result, error)) stage.Result {
	wo.t.Helper()
	wo.now = wo.now.Add(time.Minute)
	tx, err := wo.w.Begin(hash)
	if err != nil {
		wo.t.Fatal(err)
	}
	defer tx.Close()
	if err := tx.PutFeed((&lektordir.Feed{ID: feedID, Name: "Example"}).Files()); err != nil {
		wo.t.Fatal(err)
	}
	txn := On(wo.d, tx)
	res, err := f(txn)
	if err != nil {
		wo.t.Fatal(err)
	}
	ch := make(chan error)
	tx.Commit(func(err error) { ch <- err })
	if err := <-ch; err != nil {
		wo.t.Fatal(err)
	}
	return txn.Outcome(res)
}

// fetch delivers a document.
func (wo *world) fetch(entries ...feedconv.Entry) stage.Result {
	wo.t.Helper()
	return wo.transact(func(tx *stage.Stager) (stage.Result, error) {
		return tx.Stage(context.Background(), Document(&feedconv.Feed{Format: feedconv.RSS20, Entries: entries}, wo.p, nil))
	})
}

// contents returns title and content of every version, sorted. Versions in cur/ have a star.
func (wo *world) contents() []string {
	wo.t.Helper()
	refs, err := wo.d.List(context.Background(), lektordir.ListOptions{AllVersions: true})
	if err != nil {
		wo.t.Fatal(err)
	}
	var out []string
	for _, r := range refs {
		e, err := wo.d.ReadEntry(r, lektordir.AllFields)
		if err != nil {
			wo.t.Fatal(err)
		}
		s := e.Title + "=" + string(e.Content)
		if r.Place == lektordir.Cur {
			s += "*"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return out
}

func (wo *world) want(what string, want ...string) {
	wo.t.Helper()
	if got := wo.contents(); !slices.Equal(got, want) {
		wo.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// readAll marks all entries in new/ as read.
func (wo *world) readAll() {
	wo.t.Helper()
	refs, _ := wo.d.List(context.Background(), lektordir.ListOptions{AllVersions: true, Places: []lektordir.Place{lektordir.New}})
	for _, r := range refs {
		if _, err := wo.d.SetFlags(r, "S", ""); err != nil {
			wo.t.Fatal(err)
		}
	}
}

// removeAll deletes all entries.
func (wo *world) removeAll() {
	wo.t.Helper()
	refs, _ := wo.d.List(context.Background(), lektordir.ListOptions{AllVersions: true})
	for _, r := range refs {
		if err := wo.d.Remove(r); err != nil {
			wo.t.Fatal(err)
		}
	}
}

func entry(guid, content string) feedconv.Entry {
	return feedconv.Entry{
		ID: cmp.Or(guid, "urn:x"), GUID: guid, Link: "http://example.com/" + guid, Title: guid, Content: content, Type: "text/html",
		PubDate: time.Unix(1600000000, 0).UTC(),
	}
}

func TestDeliveredOnce(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	a, b := entry("a", "A"), entry("b", "B")
	if res := wo.fetch(b, a); len(res.New) != 2 {
		t.Errorf("%+v", res)
	}
	if res := wo.fetch(b, a); len(res.New) != 0 || res.Unchanged != 2 {
		t.Errorf("%+v", res)
	}
	wo.readAll()
	wo.fetch(b, a)
	wo.want("read", "a=A*", "b=B*")
	// An entry that a viewer deleted stays deleted.
	wo.removeAll()
	wo.fetch(b, a)
	wo.want("deleted")
}

// The oldest entry of a document, which is the last, is delivered first.
func TestOrder(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	wo.fetch(entry("newest", "1"), entry("middle", "2"), entry("oldest", "3"))
	refs, _ := wo.d.List(context.Background(), lektordir.ListOptions{})
	var got []string
	for _, r := range refs {
		e, _ := wo.d.ReadEntry(r, lektordir.FieldTitle)
		got = append(got, e.Title)
	}
	if !slices.Equal(got, []string{"oldest", "middle", "newest"}) {
		t.Error(got)
	}
}

func TestPolicies(t *testing.T) {
	for _, c := range []struct {
		policy       lektordir.Policy
		unread, read []string // after a change of an unread, of a read entry
	}{
		{"", []string{"a=B"}, []string{"a=A*"}},
		{lektordir.UpdateNew, []string{"a=B"}, []string{"a=A*"}},
		{lektordir.UpdateAlways, []string{"a=A", "a=B"}, []string{"a=A*", "a=B"}},
		{lektordir.UpdateNever, []string{"a=A"}, []string{"a=A*"}},
	} {
		wo := newWorld(t, c.policy)
		wo.fetch(entry("a", "A"))
		wo.fetch(entry("a", "B"))
		wo.fetch(entry("a", "B"))
		wo.want(string(c.policy)+" unread", c.unread...)
		wo = newWorld(t, c.policy)
		wo.fetch(entry("a", "A"))
		wo.readAll()
		wo.fetch(entry("a", "B"))
		wo.fetch(entry("a", "B"))
		wo.want(string(c.policy)+" read", c.read...)
		wo = newWorld(t, c.policy)
		wo.fetch(entry("a", "A"))
		wo.removeAll()
		wo.fetch(entry("a", "A"))
		wo.want(string(c.policy) + " deleted")
	}
}

// If a feed alternates between two versions of an unread entry, UpdateNew keeps the present one,
// and UpdateAlways delivers each version once.
func TestBackAndForth(t *testing.T) {
	for policy, want := range map[lektordir.Policy][]string{lektordir.UpdateNew: {"a=A"}, lektordir.UpdateAlways: {"a=A", "a=B"}, lektordir.UpdateNever: {"a=A"}} {
		wo := newWorld(t, policy)
		for _, c := range []string{"A", "B", "A", "B", "A"} {
			wo.fetch(entry("a", c))
		}
		wo.want(string(policy), want...)
	}
}

func TestWhatCountsAsChanged(t *testing.T) {
	base := entry("a", "<p>Hello, <b>world</b></p>")
	for name, c := range map[string]struct {
		change  func(*feedconv.Entry)
		changed bool
	}{
		"markup":      {func(e *feedconv.Entry) { e.Content = "<div class=x>Hello,\n\n <i>world</i></div>" }, false},
		"white space": {func(e *feedconv.Entry) { e.Content = "  <p>Hello,   <b>world</b> </p>\n" }, false},
		"date":        {func(e *feedconv.Entry) { e.PubDate = e.PubDate.Add(time.Hour) }, false},
		"categories":  {func(e *feedconv.Entry) { e.Categories = []string{"new"} }, false},
		"text":        {func(e *feedconv.Entry) { e.Content = "<p>Hello, <b>World</b></p>" }, true},
		"title":       {func(e *feedconv.Entry) { e.Title = "other" }, true},
		"link":        {func(e *feedconv.Entry) { e.Link += "?" }, true},
	} {
		wo := newWorld(t, lektordir.UpdateNew)
		wo.fetch(base)
		e := base
		c.change(&e)
		res := wo.fetch(e)
		if (len(res.Updated) == 1) != c.changed || len(res.New) != 0 {
			t.Errorf("%s: %+v", name, res)
		}
	}
}

func TestVersionsShareTheirName(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateAlways)
	a := wo.fetch(entry("a", "A")).New[0]
	b := wo.fetch(entry("a", "B")).Updated[0]
	if entryname.Identity(a) == "" || entryname.Identity(a) != entryname.Identity(b) {
		t.Errorf("%s and %s", a, b)
	}
	e, _ := wo.d.ReadEntry(lektordir.Ref{Feed: hash, Unique: b}, lektordir.AllFields)
	if e.Replaces != a {
		t.Errorf("replaces %q", e.Replaces)
	}
	refs, _ := wo.d.List(context.Background(), lektordir.ListOptions{})
	if len(refs) != 1 || refs[0].Unique != b {
		t.Errorf("listed: %v", refs)
	}
}

// An entry of which only the guid changed is the same entry, also after further changes.
func TestGuidsRenumbered(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateAlways)
	doc := func(prefix string) []feedconv.Entry {
		var es []feedconv.Entry
		for i := range 3 {
			e := entry(fmt.Sprint(i), fmt.Sprint("text ", i))
			e.GUID = prefix + e.GUID
			es = append(es, e)
		}
		return es
	}
	first := wo.fetch(doc("old")...)
	for range 2 {
		if res := wo.fetch(doc("new")...); len(res.New) != 0 || res.Unchanged != 3 {
			t.Errorf("%+v", res)
		}
	}
	if res := wo.fetch(doc("newer")...); len(res.New) != 0 {
		t.Errorf("%+v", res)
	}
	// A change afterwards is a change of the same entry.
	es := doc("newer")
	es[0].Content = "changed"
	res := wo.fetch(es...)
	if len(res.Updated) != 1 || !slices.ContainsFunc(first.New, func(unique string) bool { return entryname.Identity(unique) == entryname.Identity(res.Updated[0]) }) {
		t.Errorf("%+v", res)
	}
}

func TestNotRenumbered(t *testing.T) {
	base := entry("a", "A")
	for name, change := range map[string]func(*feedconv.Entry){
		"title":   func(e *feedconv.Entry) { e.Title = "x" },
		"content": func(e *feedconv.Entry) { e.Content = "x" },
		"date":    func(e *feedconv.Entry) { e.PubDate = e.PubDate.Add(1e9) },
		"link":    func(e *feedconv.Entry) { e.Link = "x" },
	} {
		wo := newWorld(t, lektordir.UpdateNew)
		wo.fetch(base)
		e := base
		e.GUID = "b"
		change(&e)
		if res := wo.fetch(e); len(res.New) != 1 {
			t.Errorf("%s: %+v", name, res)
		}
	}
	b := base
	b.GUID = "b"
	// If the old guid is still in the document, there are two entries.
	wo := newWorld(t, lektordir.UpdateNew)
	wo.fetch(base)
	if res := wo.fetch(base, b); len(res.New) != 1 {
		t.Errorf("both in the document: %+v", res)
	}
	// Without a link, an entry with a new guid is a new entry.
	wo = newWorld(t, lektordir.UpdateNew)
	base.Link, b.Link = "", ""
	wo.fetch(base)
	if res := wo.fetch(b); len(res.New) != 1 {
		t.Errorf("no link: %+v", res)
	}
}

// If several entries share a guid, guid and link identify them.
func TestSharedGuid(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateAlways)
	doc := make([]feedconv.Entry, 3)
	for i := range doc {
		doc[i] = entry(fmt.Sprint(i), fmt.Sprint("text ", i))
		doc[i].GUID = "same"
	}
	// The first was alone in its document, so the guid alone identified it.
	wo.fetch(doc[0])
	res := wo.fetch(doc...)
	if len(res.New) != 2 || res.Unchanged != 1 {
		t.Errorf("%+v", res)
	}
	if res := wo.fetch(doc...); len(res.New)+len(res.Updated) != 0 {
		t.Errorf("again: %+v", res)
	}
	// Each entry is alone in a later document.
	for _, e := range doc {
		if res := wo.fetch(e); len(res.New)+len(res.Updated) != 0 {
			t.Errorf("%s alone: %+v", e.Title, res)
		}
	}
	wo.want("all", "0=text 0", "1=text 1", "2=text 2")
}

// If guid and link are shared, the content distinguishes the entries.
func TestSharedGuidAndLink(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	doc := make([]feedconv.Entry, 3)
	for i := range doc {
		doc[i] = entry(fmt.Sprint(i), fmt.Sprint("text ", i))
		doc[i].GUID, doc[i].Link = "same", "http://example.com/"
	}
	for range 2 {
		wo.fetch(doc...)
	}
	wo.want("all", "0=text 0", "1=text 1", "2=text 2")
	// If the document has the same entry twice, it is delivered once.
	wo = newWorld(t, lektordir.UpdateNew)
	if res := wo.fetch(doc[0], doc[0]); len(res.New) != 1 || res.Repeated != 1 {
		t.Errorf("%+v", res)
	}
}

// In Atom, entries with one id are versions of one entry, and the newest is delivered.
func TestAtomVersionsInOneDocument(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	a, b := entry("a", "A"), entry("a", "B")
	a.Updated, b.Updated = time.Unix(1, 0), time.Unix(2, 0)
	wo.transact(func(tx *stage.Stager) (stage.Result, error) {
		return tx.Stage(context.Background(), Document(&feedconv.Feed{Format: feedconv.Atom10, Entries: []feedconv.Entry{a, b}}, wo.p, nil))
	})
	wo.want("atom", "a=B")
}

func TestNoGuid(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	doc := []feedconv.Entry{entry("a", "A"), entry("b", "B"), entry("c", "C"), entry("d", "D"), entry("e", "E")}
	for i := range doc {
		doc[i].GUID = ""
	}
	doc[1].Link, doc[2].Link = "http://example.com/shared", "http://example.com/shared"
	doc[3].Link, doc[4].Link = "", ""
	for range 2 {
		wo.fetch(doc...)
	}
	wo.want("all", "a=A", "b=B", "c=C", "d=D", "e=E")
	doc[0].Content = "A2"
	if res := wo.fetch(doc...); len(res.Updated) != 1 {
		t.Errorf("by the link: %+v", res)
	}
	wo.want("changed", "a=A2", "b=B", "c=C", "d=D", "e=E")

	// The first was alone in its document and was read. Another one with the same link is a new
	// entry, not a change.
	for _, first := range []int{1, 2} {
		wo = newWorld(t, lektordir.UpdateNew)
		wo.fetch(doc[first])
		wo.readAll()
		for range 2 {
			wo.fetch(doc[1], doc[2])
		}
		if got := len(wo.contents()); got != 2 {
			t.Errorf("%d first: %q", first, wo.contents())
		}
	}
}

func TestPut(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	put := func(e feedconv.Entry) stage.Result {
		return wo.transact(func(tx *stage.Stager) (stage.Result, error) { return Put(context.Background(), tx, e, wo.p) })
	}
	a := entry("a", "A")
	put(a)
	if res := put(a); res.Unchanged != 1 {
		t.Errorf("%+v", res)
	}
	// An entry with another guid is a new one: scripts choose their own guids.
	b := a
	b.GUID, b.ID = "b", "b"
	if res := put(b); len(res.New) != 1 {
		t.Errorf("%+v", res)
	}
	a.Content = "A2"
	put(a)
	wo.want("put", "a=A", "a=A2")
}

// If entries never change, each is delivered exactly once, whatever documents it is in and in whatever
// order.
func TestExactlyOnce(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		wo := newWorld(t, []lektordir.Policy{lektordir.UpdateNew, lektordir.UpdateAlways, lektordir.UpdateNever}[rnd.IntN(3)])
		all := make([]feedconv.Entry, 8)
		for i := range all {
			all[i] = entry(fmt.Sprint(i), fmt.Sprint("text ", i))
			switch rnd.IntN(4) {
			case 0:
				all[i].GUID = "shared"
			case 1:
				all[i].GUID = ""
			}
		}
		seen := map[int]bool{}
		for range 12 {
			var doc []feedconv.Entry
			for _, i := range rnd.Perm(len(all))[:1+rnd.IntN(len(all))] {
				doc = append(doc, all[i])
				seen[i] = true
			}
			// Two entries with one guid that are never in the same document count as one entry
			// that changed, so all entries with the shared guid are in each document.
			for i := range all {
				if all[i].GUID == "shared" && !slices.ContainsFunc(doc, func(e feedconv.Entry) bool { return e.Title == all[i].Title }) {
					doc = append(doc, all[i])
					seen[i] = true
				}
			}
			wo.fetch(doc...)
			if rnd.IntN(3) == 0 {
				wo.readAll()
			}
		}
		var got []string
		for _, s := range wo.contents() {
			got = append(got, strings.TrimSuffix(s, "*"))
		}
		var want []string
		for i := range seen {
			want = append(want, fmt.Sprintf("%d=text %d", i, i))
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %q, want %q", seed, got, want)
		}
	}
}

func TestEntry(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	e := entry("a", "<p>A</p>")
	e.Authors = []feedconv.Person{{Name: "A", Email: "a@b"}, {Name: "B"}}
	e.Summary, e.SummaryType = "<b>short</b> &amp; sweet", "text/html"
	e.Updated = e.PubDate
	e.Enclosures = []feedconv.Enclosure{{URL: "u", Type: "t", Length: -1}}
	later := e
	later.GUID, later.Updated = "b", e.PubDate.Add(time.Second)
	res := wo.fetch(later, e)
	got, err := wo.d.ReadEntry(lektordir.Ref{Feed: hash, Unique: res.New[0]}, lektordir.AllFields)
	if err != nil || got.Author != "A <a@b>, B" || got.Summary != "short & sweet" || !got.Updated.IsZero() || got.Enclosures[0].Length != -1 || got.Type != "text/html" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = wo.d.ReadEntry(lektordir.Ref{Feed: hash, Unique: res.New[1]}, lektordir.AllFields); err != nil || !got.Updated.Equal(later.Updated) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each status of an entry that is broadcast live is a version of one entry.
func TestLiveStatusIsVersion(t *testing.T) {
	wo := newWorld(t, lektordir.UpdateNew)
	live := func(status, start string) feedconv.Entry {
		e := entry("live", "Tonight")
		const podcast = "https://podcastindex.org/namespace/1.0"
		e.Attributes = []feedconv.Attribute{{Namespace: podcast, Name: "status", Value: status}, {Namespace: podcast, Name: "start", Value: start}}
		return e
	}
	if res := wo.fetch(live("pending", "2026-05-01T18:00:00Z")); len(res.New) != 1 {
		t.Fatalf("%+v", res)
	}
	wo.readAll()
	if res := wo.fetch(live("pending", "2026-05-01T19:00:00Z")); len(res.Updated) != 0 || res.Unchanged != 1 {
		t.Errorf("another start: %+v", res)
	}
	for _, status := range []string{"live", "ended"} {
		if res := wo.fetch(live(status, "2026-05-01T18:00:00Z")); len(res.Updated) != 1 || len(res.New) != 0 {
			t.Errorf("%s: %+v", status, res)
		}
	}
	refs, _ := wo.d.List(t.Context(), lektordir.ListOptions{})
	e, err := wo.d.ReadEntry(refs[0], lektordir.FieldElements)
	if err != nil || len(refs) != 1 || e.Elements.Live().Get("status") != "ended" {
		t.Errorf("%v %+v %v", refs, e, err)
	}
}
