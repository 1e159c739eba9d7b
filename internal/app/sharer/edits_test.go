package sharer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// Each machine finds the name and the address of a feed itself. A change of these alone is
// not an edit, and is not applied by other machines.
func TestNoEdit(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	for _, m := range all {
		m.subscribe(1, "Folder")
	}
	rounds(2, a, b)
	before, set := a.published(target, subsFile).Sharing.Until, a.set()
	src := "src/" + testdir.Hash(feedURL(1))
	a.write(src+"/name", "Another name\n")
	a.write(src+"/etc/fetch/url", "http://moved.example/feed\n")
	a.write(src+"/etc/fetch/interval", "1d\n")
	rounds(2, a, b)
	if now := a.published(target, subsFile).Sharing.Until; now != before || a.set() != set || b.set() != set {
		t.Errorf("until is %v, before %v:\n%s", now, before, a.set())
	}
	if s := b.state(); strings.Contains(s, "moved.example") {
		t.Errorf("the new address is applied: %s", s)
	}
	// An edit includes the new address, without a conflict with a machine that has the old one.
	a.write(src+"/etc/view/alias", "Alias\n")
	rounds(2, a, b)
	if s := b.state(); !strings.Contains(s, "http://feed1.example/ Alias") || a.conflicts()+b.conflicts() != "" {
		t.Errorf("%s, conflicts %s", s, b.conflicts())
	}
	// Both machines make the same edit; only one of them knows the new address.
	for _, m := range all {
		m.write(src+"/etc/view/alias", "The same\n")
	}
	rounds(2, b, a)
	if c := a.conflicts() + b.conflicts(); c != "" {
		t.Errorf("conflicts: %s", c)
	}
	// A new subscriber fetches the same feed from the new address.
	c := newMachine(t, a.clock, "c", target)
	c.sync()
	if url, err := os.ReadFile(filepath.Join(c.Path, src, "etc/fetch/url")); err != nil || string(url) != "http://moved.example/feed\n" {
		t.Errorf("%q, %v", url, err)
	}
}

// The id of a folder is derived from its path, unless a renamed folder has this id already.
func TestFolderIDs(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	hash := a.subscribe(1, "News")
	a.subscribe(3, "News")
	rounds(2, a, b)
	first := a.published(target, subsFile).Item(hash).Parent
	if !regexp.MustCompile(`^folder:[0-9a-f]{16}$`).MatchString(first) {
		t.Fatalf("id %s", first)
	}
	for _, n := range []int{1, 3} {
		a.categories(n, "Old news")
	}
	rounds(1, a, b)
	if now := a.published(target, subsFile).Item(hash).Parent; now != first {
		t.Errorf("the id of the renamed folder is %s, before %s", now, first)
	}
	other := b.subscribe(2, "News")
	rounds(2, b, a)
	second := a.published(target, subsFile).Item(other).Parent
	if !regexp.MustCompile(`^` + first + `-[0-9a-f]{16}$`).MatchString(second) {
		t.Errorf("the new folder is %s, and the old one %s", second, first)
	}
	same(t, a, b)
	if s := a.state(); !strings.Contains(s, `http://feed1.example/  ["Old news"]`) || !strings.Contains(s, `http://feed2.example/  ["News"]`) {
		t.Errorf("state: %s", s)
	}
}

// categories sets the categories of a feed, as a script would.
func (m *machine) categories(n int, list ...string) {
	m.t.Helper()
	m.write("src/"+testdir.Hash(feedURL(n))+"/etc/categories", strings.Join(list, "\n")+"\n")
}

// A feed that another machine puts into a folder stays there if this machine takes the only feed
// out of it. It goes along if this machine renames the folder, which takes two feeds, all of them,
// and a new name. Two moves of one feed are a conflict.
func TestMovedFeedsAndRenamedFolders(t *testing.T) {
	news := func(m *machine) { m.categories(2, "News") }
	move := func(n int, to ...string) func(*machine) { return func(m *machine) { m.categories(n, to...) } }
	both := func(to string) func(*machine) {
		return func(m *machine) { m.categories(1, to); m.categories(4, to) }
	}
	for name, c := range map[string]struct {
		feeds    map[int][]string // before
		a, b     func(*machine)
		want     map[int]string
		conflict string
	}{
		"the only feed is moved":        {map[int][]string{1: {"News"}, 2: nil}, news, move(1, "Tech"), map[int]string{1: `["Tech"]`, 2: `["News"]`}, ""},
		"it is moved to a known folder": {map[int][]string{1: {"News"}, 2: nil, 3: {"Tech"}}, news, move(1, "Tech"), map[int]string{1: `["Tech"]`, 2: `["News"]`, 3: `["Tech"]`}, ""},
		"two feeds are moved":           {map[int][]string{1: {"News"}, 2: nil, 4: {"News"}}, news, both("Tech"), map[int]string{1: `["Tech"]`, 2: `["Tech"]`, 4: `["Tech"]`}, ""},
		"one of two is moved":           {map[int][]string{1: {"News"}, 2: nil, 4: {"News"}}, news, move(1, "Tech"), map[int]string{1: `["Tech"]`, 2: `["News"]`, 4: `["News"]`}, ""},
		"two feeds, to a known folder":  {map[int][]string{1: {"News"}, 2: nil, 4: {"News"}, 3: {"Tech"}}, news, both("Tech"), map[int]string{1: `["Tech"]`, 2: `["News"]`, 4: `["Tech"]`}, ""},
		"two feeds, to a second place":  {map[int][]string{1: {"News"}, 2: nil, 4: {"News"}, 3: {"X", "Tech"}}, news, both("Tech"), map[int]string{1: `["Tech"]`, 2: `["News"]`, 4: `["Tech"]`, 3: `["X" "Tech"]`}, ""},
		"two feeds, to a folder's own":  {map[int][]string{1: {"News"}, 2: nil, 4: {"News"}, 3: {"Tech/Go"}}, news, both("Tech"), map[int]string{1: `["Tech"]`, 2: `["News"]`, 4: `["Tech"]`}, ""},
		"one feed, moved twice":         {map[int][]string{1: {"News"}, 2: nil}, move(1, "Sport"), move(1, "Tech"), map[int]string{1: `["Tech"]`}, "Feed 1 in Tech\tFeed 1 in Sport\n"},
	} {
		t.Run(name, func(t *testing.T) {
			all, _ := machines(t, "a b")
			a, b := all[0], all[1]
			for n, list := range c.feeds {
				a.subscribe(n, list...)
			}
			rounds(2, a, b)
			c.a(a)
			c.b(b)
			rounds(3, a, b)
			same(t, a, b)
			for n, want := range c.want {
				if s := a.state(); !strings.Contains(s, feedURL(n)+"  "+want) {
					t.Errorf("feed %d is not in %s: %s", n, want, s)
				}
			}
			if x, y := a.conflicts(), b.conflicts(); x != y || x != c.conflict {
				t.Errorf("conflicts %q and %q, want %q", x, y, c.conflict)
			}
		})
	}
}

// Names as other viewers write them: an entry in cur/ whose name has no ";2," is read; with
// ";2," and without flags it is unread.
func TestNamesInCur(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 3, a, b)
	rounds(2, a, b)
	rename := func(from, to string) {
		t.Helper()
		found, _ := filepath.Glob(filepath.Join(a.Path, from))
		if len(found) != 1 {
			t.Fatalf("%s: %q", from, found)
		}
		name, _, _ := strings.Cut(filepath.Base(found[0]), ";")
		cur := filepath.Join(a.Path, "cur", testdir.Hash(feedURL(1)))
		if err := errors.Join(os.MkdirAll(cur, 0o777), os.Rename(found[0], filepath.Join(cur, name+to))); err != nil {
			t.Fatal(err)
		}
	}
	flags := func(want string) {
		t.Helper()
		rounds(2, a, b)
		s := b.state()
		for n, f := range strings.Split(want, ",") {
			if !strings.Contains(s+"\n", fmt.Sprintf("000000010000000%d %s\n", n, f)) {
				t.Errorf("want %s: %s", want, s)
			}
		}
	}
	rename("new/*/*I0000000100000000.*", "")
	rename("new/*/*I0000000100000001.*", ";2,FS")
	rename("new/*/*I0000000100000002.*", ";2,")
	flags("S,FS,")
	rename("cur/*/*I0000000100000000.*", ";2,")
	rename("cur/*/*I0000000100000001.*", ";2,F")
	rename("cur/*/*I0000000100000002.*", ";2,Rk") // R is not shared
	flags(",F,k")
	rename("cur/*/*I0000000100000000.*", "") // read again
	rename("cur/*/*I0000000100000001.*", "")
	flags("S,S,k")
	if c := a.conflicts() + b.conflicts(); c != "" {
		t.Errorf("conflicts: %s", c)
	}
}

// A machine that fetched a feed before its guids changed has the entry under the old guid.
// Its journal also has the new guid, under which other machines have the entry.
func TestIdentityFromJournal(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	hash := a.subscribe(1)
	b.subscribe(1)
	deliver := func(m *machine, guid string) {
		t.Helper()
		d := m.dir()
		w, err := feedfiles.NewWriter(d, commit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		tx, err := w.BeginWait(t.Context(), hash)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Close()
		doc := `<rss version="2.0"><channel><title>t</title><item><title>Moved guids</title><link>http://feed1.example/x</link><guid isPermaLink="false">` + guid + `</guid><description>The same text.</description><pubDate>Sat, 21 May 2005 09:43:33 GMT</pubDate></item></channel></rss>`
		f, err := feedconv.ParseBytes([]byte(doc), feedconv.Options{URL: feedURL(1)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := feedstage.StageWith(t.Context(), feedstage.On(d, tx), f, lektordir.UpdateNew, feedstage.Options{}); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		tx.Commit(func(err error) { done <- err })
		w.Flush()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	deliver(a, "urn:old")
	deliver(a, "urn:new")
	deliver(b, "urn:new")
	list := func(m *machine) []lektordir.Ref {
		t.Helper()
		refs, err := m.dir().List(t.Context(), lektordir.ListOptions{})
		if err != nil || len(refs) != 1 {
			t.Fatalf("%v, %v", refs, err)
		}
		return refs
	}
	if list(a)[0].Identity() == list(b)[0].Identity() {
		t.Fatal("both entries have one identity, so this tests nothing")
	}
	// The id of the entry differs as well.
	found, _ := filepath.Glob(filepath.Join(a.Path, "new/*/*/id"))
	if len(found) != 1 {
		t.Fatalf("%q", found)
	}
	if err := os.WriteFile(found[0], []byte("urn:old\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	rounds(2, a, b)
	if _, err := b.dir().SetFlags(list(b)[0], "FS", ""); err != nil {
		t.Fatal(err)
	}
	rounds(1, b, a)
	if got := list(a)[0].Flags(); got != "FS" {
		t.Errorf("a has the flags %q", got)
	}
	if _, err := a.dir().SetFlags(list(a)[0], "", "S"); err != nil {
		t.Fatal(err)
	}
	rounds(1, a, b)
	if got := list(b)[0].Flags(); got != "F" {
		t.Errorf("after a cleared S, b has the flags %q", got)
	}
	// The other direction, before b has made a mark: the marks of a name both guids.
	all, _ = machines(t, "a b")
	a, b = all[0], all[1]
	a.subscribe(1)
	b.subscribe(1)
	deliver(a, "urn:old")
	a.sync()
	if _, err := a.dir().SetFlags(list(a)[0], "F", ""); err != nil {
		t.Fatal(err)
	}
	a.sync()
	deliver(a, "urn:new")
	deliver(b, "urn:new")
	rounds(2, a, b)
	if got := list(b)[0].Flags(); got != "F" || strings.Contains(b.err.String(), "waiting") {
		t.Errorf("with the identities from a's journal, b has the flags %q: %s", got, &b.err)
	}
	if _, err := b.dir().SetFlags(list(b)[0], "a", "F"); err != nil {
		t.Fatal(err)
	}
	rounds(1, b, a)
	if got := list(a)[0].Flags(); got != "a" {
		t.Errorf("after b's edit, a has the flags %q", got)
	}
}

// Two machines marked one entry under two identities. After a sync both have both marks, and
// a cleared flag stays cleared.
func TestMarksUnderTwoIdentities(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	for i, m := range all {
		m.subscribe(1)
		if _, err := m.Entry(feedURL(1), "cur", fmt.Sprintf("1503674340.M1P1Q1I00000000000000%d%d.h;2,%c", i, i, "FS"[i]), "id=urn:one"); err != nil {
			t.Fatal(err)
		}
	}
	flags := func(m *machine) string {
		t.Helper()
		refs, err := m.dir().List(t.Context(), lektordir.ListOptions{})
		if err != nil || len(refs) != 1 {
			t.Fatalf("%v, %v", refs, err)
		}
		return refs[0].Flags()
	}
	rounds(3, a, b)
	if x, y := flags(a), flags(b); x != "FS" || y != "FS" {
		t.Fatalf("a has %q, b %q", x, y)
	}
	refs, _ := b.dir().List(t.Context(), lektordir.ListOptions{})
	if _, err := b.dir().SetFlags(refs[0], "", "F"); err != nil {
		t.Fatal(err)
	}
	rounds(3, b, a)
	if x, y := flags(a), flags(b); x != "S" || y != "S" || strings.Contains(a.err.String()+b.err.String(), "waiting") {
		t.Errorf("cleared: a has %q, b %q", x, y)
	}
}

// A mark that was set on two machines at once is one mark; clearing it once is enough.
func TestSameMark(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 2, a, b)
	rounds(2, a, b)
	for _, change := range [][2]string{{"FS", ""}, {"", "S"}, {"S", "F"}} {
		for _, m := range all {
			m.mark(1, 0, change[0], change[1])
		}
		rounds(2, a, b)
		same(t, a, b)
		if c := a.conflicts() + b.conflicts(); c != "" || a.set() != b.set() {
			t.Errorf("%q: conflicts %s", change, c)
		}
	}
	if s := a.state(); !strings.Contains(s, "0000000100000000 S\n") {
		t.Errorf("state: %s", s)
	}
}

// An edit of an item in conflict settles the conflict on all machines, even on one that
// reads this edit before the edit that lost.
func TestEditSettles(t *testing.T) {
	all, _ := machines(t, "a b c")
	a, b, c := all[0], all[1], all[2]
	hash := a.subscribe(1)
	rounds(2, a, b, c)
	alias := func(m *machine, text string) { m.write("src/"+hash+"/etc/view/alias", text+"\n") }
	alias(b, "B")
	b.sync()
	alias(a, "A")
	a.sync()
	if !strings.Contains(a.conflicts(), "B") {
		t.Fatalf("want a conflict: %s", a.conflicts())
	}
	alias(a, "Decided")
	a.sync()
	c.sync() // c reads a first; b has not published since
	if c.conflicts() != "" || !strings.Contains(c.state(), " Decided ") {
		t.Errorf("%s, conflicts %s", c.state(), c.conflicts())
	}
	rounds(2, b, c, a)
	same(t, a, b, c)
	if all := a.conflicts() + b.conflicts() + c.conflicts(); all != "" || !strings.Contains(b.state(), " Decided ") {
		t.Errorf("%s, conflicts %s", b.state(), all)
	}
}

// A partial document is enough if the reader has read up to its beginning. Otherwise, and if
// this is unknown, the complete document is read.
func TestNeedsComplete(t *testing.T) {
	day := func(n int) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)
	}
	complete := []feedsync.Related{{Link: completeFile, Type: "complete"}}
	for _, c := range []struct {
		name         string
		since, until int // days; 0 is absent
		related      []feedsync.Related
		before       int // until when the reader has read
		want         bool
	}{
		{"read yesterday", 2, 9, complete, 8, false},
		{"read just now", 2, 9, complete, 9, false},
		{"read where it begins", 2, 9, complete, 2, false},
		{"read before it begins", 3, 9, complete, 2, true},
		{"never read", 2, 9, complete, 0, true},
		{"until fell", 2, 7, complete, 8, true},
		{"without until", 2, 0, complete, 8, true},
		{"without since, of what is complete", 0, 9, complete, 8, false},
		{"without since, never read", 0, 9, complete, 0, true},
		{"complete itself", 0, 9, nil, 0, false},
	} {
		doc := feedsync.New(feedsync.RSS, "t", "", "")
		doc.SetSharing(&feedsync.Sharing{Since: day(c.since), Until: day(c.until), Related: c.related})
		r := record{values.New(' ')}
		r.Set("until", feedsync.FormatDate(day(c.before)))
		if got := (&exchange{}).needsComplete(doc, r); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A sync does not wait for a feed that a fetcher has locked: it reports the subscription as
// waiting, and the next sync applies it. Marks need no lock.
func TestBusy(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 2, a, b)
	subscribeAll(2, 1, a, b)
	rounds(2, a, b)
	hash := testdir.Hash(feedURL(1))
	a.write("src/"+hash+"/etc/view/alias", "Alias\n")
	a.mark(1, 0, "FS", "")
	a.unsubscribe(2)
	rounds(1, a)
	w, err := feedfiles.NewWriter(b.dir(), commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var locks []*commit.Txn
	for _, feed := range []string{hash, testdir.Hash(feedURL(2))} {
		tx, err := w.BeginWait(t.Context(), feed)
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, tx)
	}
	b.sync()
	s := b.state()
	if !strings.Contains(s, "0000000100000000 FS") || strings.Contains(s, "Alias") || !strings.Contains(s, feedURL(2)) || !strings.Contains(b.err.String(), "2 items waiting") {
		t.Errorf("while they are busy: %s\n%s", s, &b.err)
	}
	a.sync()
	if s := a.state(); !strings.Contains(s, "Alias") || strings.Contains(s, feedURL(2)) {
		t.Errorf("a change that waits on the other machine became an edit: %s", s)
	}
	for _, tx := range locks {
		tx.Close()
	}
	if err := Apply(t.Context(), ApplyOptions{Common: b.common()}, b.streams()); err != nil {
		t.Fatal(err)
	}
	same(t, a, b)
}

// Up to half of the subscriptions, or two of two, end without --yes. If more would end, all
// of them wait, and they do not return on the machine that ended them.
func TestManyEnd(t *testing.T) {
	for _, c := range []struct {
		end, of int
		waits   bool
	}{{2, 2, false}, {1, 3, false}, {2, 3, true}, {11, 22, false}, {11, 21, true}} {
		all, _ := machines(t, "a b")
		a, b := all[0], all[1]
		for n := range c.of {
			a.subscribe(n)
		}
		rounds(2, a, b)
		for n := range c.end {
			a.unsubscribe(n)
		}
		rounds(1, a)
		err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams())
		left := strings.Count(b.state(), "http://feed")
		if many := err != nil && strings.HasPrefix(err.Error(), "refused to end "); many != c.waits || !many && err != nil || left != c.of && c.waits || left != c.of-c.end && !c.waits {
			t.Errorf("%d of %d ended: %v, %d are left", c.end, c.of, err, left)
		}
		rounds(1, a)
		if left := strings.Count(a.state(), "http://feed"); left != c.of-c.end {
			t.Errorf("%d of %d ended: %d returned", c.end, c.of, left-c.of+c.end)
		}
		if err := Sync(t.Context(), SyncOptions{Common: b.common(), Yes: true}, b.streams()); err != nil {
			t.Error(err)
		}
		same(t, a, b)
	}
}

// Status lists feeds that are not shared, with the reason and without their secrets.
func TestStatusOfUnsharedFeeds(t *testing.T) {
	all, _ := machines(t, "a")
	a := all[0]
	for id, files := range map[string][]string{
		"http://password.example/": {"etc/fetch/url=http://me:s3cret@password.example/"},
		"http://headers.example/":  {"etc/fetch/url=http://headers.example/", "etc/fetch/headers=Cookie: s3cret"},
		"http://filter.example/":   {"etc/fetch/url=http://filter.example/", "etc/fetch/filter=s3cret"},
		"exec:s3cret":              {"etc/fetch/url=exec:s3cret"},
	} {
		name, _, _ := strings.Cut(strings.NewReplacer("http://", "", "exec:s3cret", "command.").Replace(id), ".")
		if _, err := a.Feed(id, "The "+name, files...); err != nil {
			t.Fatal(err)
		}
	}
	if err := Status(t.Context(), StatusOptions{Common: a.common()}, a.streams()); err != nil {
		t.Fatal(err)
	}
	text := a.err.String()
	for _, want := range []string{"The password, which has a password or user name in its URL", "The headers, which ", "The filter, which ", "The command, which "} {
		if !strings.Contains(text, "not shared: "+want) {
			t.Errorf("want %q: %s", want, text)
		}
	}
	if strings.Contains(text, "s3cret") {
		t.Errorf("it shows a secret: %s", text)
	}
}

// The limits of lektor-fetch hold for the documents of peers, too. The error names the
// option, and no part of a document that exceeds the limit is used.
func TestLimitsOfPeers(t *testing.T) {
	srv := newDAV(t, nextcloud)
	a, b := onServer(t, srv)
	subscribeAll(1, 1, a, b)
	a.mark(1, 0, "F", "")
	a.syncAnyway()
	c := b.common()
	c.Fetch = fetch.Config{MaxBytes: 100}
	before := b.state()
	s := b.streams()
	err := Sync(t.Context(), SyncOptions{Common: c}, s)
	if cmdline.Status(err) != 1 || !strings.Contains(b.err.String(), "--max-bytes") || b.state() != before {
		t.Errorf("%v: %s", err, &b.err)
	}
	b.sync()
	same(t, a, b)
}

// Two folders that were moved into each other do not make an endless path: one of them is
// shown at the root, and conflicts lists it.
func TestFoldersWithinEachOther(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	for n := range 4 {
		a.subscribe(n, []string{"One", "Two"}[n%2])
	}
	rounds(2, a, b)
	for n := range 2 {
		a.categories(2*n, "Two/One")
		b.categories(2*n+1, "One/Two")
	}
	rounds(2, a, b)
	same(t, a, b)
	for _, m := range all {
		if c := m.conflicts(); strings.Count(c, "\n") != 1 || !strings.Contains(c, "within itself; move one of the folders") {
			t.Errorf("%s: conflicts %q, state %s", m.name, c, m.state())
		}
	}
}

// The mark of an expired entry waits only on machines that did not make it.
func TestExpiredIsNotWaiting(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 2, a, b)
	a.mark(1, 0, "S", "")
	rounds(2, a, b)
	for _, m := range all {
		found, _ := filepath.Glob(filepath.Join(m.Path, "cur/*/*I0000000100000000.*"))
		if len(found) != 1 {
			t.Fatalf("%s: %q", m.name, found)
		}
		if err := os.RemoveAll(found[0]); err != nil {
			t.Fatal(err)
		}
	}
	for m, want := range map[*machine]bool{a: false, b: true} {
		m.sync()
		if err := Status(t.Context(), StatusOptions{Common: m.common()}, m.streams()); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(m.err.String(), "1 item waiting"); got != want {
			t.Errorf("%s: %v, want %v: %s", m.name, got, want, &m.err)
		}
	}
}

// An alias that the user removed does not return from a machine that still has it from the
// previous subscription.
func TestAliasOfTheSubscriptionBefore(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 1, a, b)
	hash := testdir.Hash(feedURL(1))
	url, alias := filepath.Join(a.Path, "src", hash, "etc/fetch/url"), filepath.Join(a.Path, "src", hash, "etc/view/alias")
	rounds(2, a, b)
	a.write("src/"+hash+"/etc/view/alias", "Old\n")
	rounds(2, a, b)
	if same(t, a, b); !strings.Contains(b.state(), "Old") {
		t.Fatal(b.state())
	}
	if err := os.Remove(url); err != nil {
		t.Fatal(err)
	}
	rounds(2, a, b)
	if err := os.Remove(alias); err != nil {
		t.Fatal(err)
	}
	a.subscribe(1)
	rounds(3, a, b)
	if same(t, a, b); strings.Contains(a.state(), "Old") {
		t.Error(a.state())
	}
}
