package sharer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// clock is the time of all machines of a test, without their skews. It advances by a minute
// with every command.
type clock struct{ now time.Time }

// machine is a shared lektor-dir.
type machine struct {
	*testdir.Dir
	t       *testing.T
	name    string
	clock   *clock
	skew    time.Duration
	err     bytes.Buffer
	aliases int // written by settle
}

// newMachine returns a new lektor-dir that publishes in a target.
func newMachine(t *testing.T, c *clock, name, target string) *machine {
	t.Helper()
	m := &machine{Dir: testdir.New(t), t: t, name: name, clock: c}
	if err := Init(t.Context(), InitOptions{Common: m.common(), Target: target, Name: name}, m.streams()); err != nil {
		t.Fatal(err)
	}
	return m
}

// settling is longer than a step of the clock of the file system. A run does not list a feed
// that has not changed for this time. Some runs of a test wait for it, and all with
// LEKTOR_SHARE_RUNS.
const settling = 10 * time.Millisecond

func (m *machine) common() Common {
	m.clock.now = m.clock.now.Add(time.Minute)
	if os.Getenv("LEKTOR_SHARE_RUNS") != "" || rand.IntN(4) == 0 {
		time.Sleep(settling)
	}
	return Common{Dir: m.Path, Now: func() time.Time { return m.clock.now.Add(m.skew) }, Fetch: fetch.Config{Now: func() time.Time { return m.clock.now }},
		stamp: stamp.Rule{Clock: time.Now, Step: settling}}
}

func (m *machine) streams() *cmdline.Streams {
	m.err.Reset()
	return cmdline.NewStreams("lektor-share", strings.NewReader(""), &bytes.Buffer{}, &m.err)
}

// sync runs a sync that must succeed.
func (m *machine) sync() {
	m.t.Helper()
	if err := Sync(m.t.Context(), SyncOptions{Common: m.common()}, m.streams()); err != nil {
		m.t.Fatalf("%s: %v\n%s", m.name, err, &m.err)
	}
}

func (m *machine) dir() *lektordir.Dir {
	m.t.Helper()
	d, err := lektordir.Open(m.Path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return d
}

func feedURL(n int) string { return fmt.Sprintf("http://feed%d.example/", n) }

// subscribe subscribes to a feed, in categories, as a script would.
func (m *machine) subscribe(n int, categories ...string) string {
	m.t.Helper()
	files := []string{"etc/fetch/url=" + feedURL(n)}
	if len(categories) > 0 {
		files = append(files, "etc/categories="+strings.Join(categories, "\n"))
	}
	hash, err := m.Feed(feedURL(n), fmt.Sprintf("Feed %d", n), files...)
	if err != nil {
		m.t.Fatal(err)
	}
	return hash
}

// deliver delivers an entry of a feed. Its name differs from machine to machine.
func (m *machine) deliver(feed, n int) {
	m.t.Helper()
	name := fmt.Sprintf("15036743%02d.M1P1Q1I%08x%08x.%s", n%100, feed, n, m.name)
	if _, err := m.Entry(feedURL(feed), "new", name, fmt.Sprintf("title=Entry %d of %d", n, feed), fmt.Sprintf("id=%s%d", feedURL(feed), n)); err != nil {
		m.t.Fatal(err)
	}
}

// subscribeAll makes a subscription and its first entries on each machine, as if each had
// fetched the feed.
func subscribeAll(feed, entries int, all ...*machine) {
	for _, m := range all {
		m.t.Helper()
		m.subscribe(feed)
		for n := range entries {
			m.deliver(feed, n)
		}
	}
}

// mark sets and clears flags of an entry.
func (m *machine) mark(feed, n int, set, unset string) {
	m.t.Helper()
	d := m.dir()
	refs, err := d.List(context.Background(), lektordir.ListOptions{Feeds: []string{testdir.Hash(feedURL(feed))}})
	if err != nil {
		m.t.Fatal(err)
	}
	want := fmt.Sprintf("%08x%08x", feed, n)
	for _, r := range refs {
		if r.Identity() == want {
			if _, err := d.SetFlags(r, set, unset); err != nil {
				m.t.Fatal(err)
			}
			return
		}
	}
	m.t.Fatalf("%s has no entry %d of %d", m.name, n, feed)
}

func (m *machine) write(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.Path, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		m.t.Fatal(err)
	}
}

// state returns the state that machines share: subscriptions with alias and categories, and
// entries with their flags. It does not distinguish new/ from cur/.
func (m *machine) state() string {
	m.t.Helper()
	d := m.dir()
	var lines []string
	subs, err := subscriptions.List(d)
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range subs {
		lines = append(lines, fmt.Sprintf("%s %s %q", s.URL, s.Alias, s.Categories))
	}
	refs, err := d.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, r := range refs {
		lines = append(lines, fmt.Sprintf("%s %s %s", r.Feed, r.Identity(), r.Flags()))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// same fails the test unless the states of the machines are equal.
func same(t *testing.T, machines ...*machine) {
	t.Helper()
	for _, m := range machines[1:] {
		if a, b := machines[0].state(), m.state(); a != b {
			t.Errorf("the state of %s is\n%s\nand that of %s\n%s", machines[0].name, a, m.name, b)
		}
	}
}

// conflicts returns the items of a machine that are in conflict.
func (m *machine) conflicts() string {
	m.t.Helper()
	var out bytes.Buffer
	s := cmdline.NewStreams("lektor-share", nil, &out, &m.err)
	if err := Conflicts(m.t.Context(), ConflictsOptions{Common: m.common(), Print: cmdline.PrinterOptions{Format: "ours,theirs"}}, s); err != nil {
		m.t.Fatal(err)
	}
	return out.String()
}

func machines(t *testing.T, names string) (all []*machine, target string) {
	t.Helper()
	c := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	target = filepath.Join(t.TempDir(), "sync")
	for _, name := range strings.Fields(names) {
		all = append(all, newMachine(t, c, name, target))
	}
	return all, target
}

// rounds syncs all machines n times.
func rounds(n int, all ...*machine) {
	for range n {
		for _, m := range all {
			m.t.Helper()
			m.sync()
		}
	}
}

// Three machines fetch the same feeds and make edits of all kinds. A fourth machine is off
// during this time.
func TestThreeMachines(t *testing.T) {
	all, _ := machines(t, "a b c d")
	const feeds, entries = 8, 6
	for _, m := range all {
		for f := range feeds {
			if f == 5 {
				m.subscribe(f)
			} else {
				m.subscribe(f, "News", "Also")
			}
			for n := range entries {
				m.deliver(f, n)
			}
		}
	}
	a, b, c, d := all[0], all[1], all[2], all[3]
	rounds(2, all...)
	for n := range 30 {
		a.mark(n/entries, n%entries, "S", "")
	}
	for n := range 12 {
		b.mark(n%feeds, n%entries, "F", "")
	}
	c.subscribe(20, "New, with a comma", `a\/b/c`)
	if err := os.Remove(filepath.Join(b.Path, "src", testdir.Hash(feedURL(7)), "etc/fetch/url")); err != nil {
		t.Fatal(err)
	}
	c.mark(6, 3, "STz", "")
	rounds(2, a, b, c)
	same(t, a, b, c)
	if s := a.state(); strings.Count(s, " FS") < 3 || strings.Contains(s, feedURL(7)) || !strings.Contains(s, `http://feed20.example/  ["New, with a comma" "a\\/b/c"]`) || !strings.Contains(s, " STz") {
		t.Errorf("state: %s", s)
	}
	d.sync()
	same(t, a, d)
	for _, m := range all {
		if c := m.conflicts(); c != "" {
			t.Errorf("%s: %s", m.name, c)
		}
	}
	// Two flags are cleared, each on another machine than it was set on.
	d.mark(0, 0, "", "S")
	c.mark(0, 0, "", "F")
	rounds(2, all...)
	same(t, all...)
	if s := a.state(); !strings.Contains(s, "0000000000000000 \n") {
		t.Errorf("state: %s", s)
	}
	// An entry arrives after its marks.
	a.deliver(1, 99)
	a.mark(1, 99, "FS", "")
	rounds(1, a, b)
	b.deliver(1, 99)
	if err := Apply(t.Context(), ApplyOptions{Common: b.common()}, b.streams()); err != nil {
		t.Fatal(err)
	}
	if s := b.state(); !strings.Contains(s, "0000000100000063 FS") {
		t.Errorf("state: %s", s)
	}
}

// Two machines edit one subscription, and sync in both orders.
func TestConflicts(t *testing.T) {
	feed := testdir.Hash(feedURL(1))
	alias := func(text string) func(*machine) {
		return func(m *machine) { m.write("src/"+feed+"/etc/view/alias", text+"\n") }
	}
	move := func(path string) func(*machine) {
		return func(m *machine) { m.write("src/"+feed+"/etc/categories", path+"\n") }
	}
	end := func(m *machine) { os.Remove(filepath.Join(m.Path, "src", feed, "etc/fetch/url")) }
	again := func(m *machine) { end(m); m.sync(); m.subscribe(1, "Both") }
	for name, c := range map[string]struct {
		first, second func(*machine)
		conflict      bool
		has, not      string
	}{
		"alias and folder":          {alias("Al"), move("There"), true, feedURL(1), ""},
		"alias and alias":           {alias("One"), alias("Two"), true, feedURL(1) + " Two", ""},
		"the same alias":            {alias("One"), alias("One"), false, feedURL(1) + " One", ""},
		"unsubscribed and moved":    {end, move("There"), true, feedURL(1), ""},
		"both unsubscribed":         {end, end, false, feedURL(2), feedURL(1)},
		"subscribed again":          {again, func(*machine) {}, false, feedURL(1), ""},
		"only one does anything":    {func(*machine) {}, end, false, feedURL(2), feedURL(1)},
		"moved, and another folder": {move("X/Y"), func(*machine) {}, false, `["X/Y"]`, ""},
	} {
		for _, turn := range []bool{false, true} {
			if turn && !c.conflict {
				continue
			}
			t.Run(fmt.Sprint(name, turn), func(t *testing.T) {
				all, _ := machines(t, "a b")
				a, b := all[0], all[1]
				for _, m := range all {
					m.subscribe(1, "Both")
					m.subscribe(2, "Both")
				}
				rounds(2, all...)
				if a.conflicts() != "" {
					t.Fatalf("before: %s", a.conflicts())
				}
				c.first(a)
				c.second(b)
				if turn {
					rounds(1, a, b)
				} else {
					// The second in the order of time edits first.
					rounds(1, a)
					rounds(1, b)
				}
				rounds(2, a, b)
				same(t, a, b)
				s := a.state()
				if c.has != "" && !strings.Contains(s, c.has) && !(c.conflict && strings.Contains(a.conflicts(), "deleted")) || c.not != "" && strings.Contains(s, c.not) {
					t.Errorf("state: %s", s)
				}
				ca, cb := a.conflicts(), b.conflicts()
				if c.conflict != (ca != "") || ca != cb {
					t.Fatalf("conflicts: %q and %q", ca, cb)
				}
				if !c.conflict {
					return
				}
				// A choice on one machine settles the conflict on both.
				theirs := strings.TrimSuffix(ca[strings.Index(ca, "\t")+1:], "\n")
				if err := Resolve(t.Context(), ResolveOptions{Common: b.common(), Items: []string{feed[:8]}, Which: "theirs"}, b.streams()); err != nil {
					t.Fatal(err)
				}
				rounds(2, b, a)
				same(t, a, b)
				if a.conflicts() != "" || (theirs == "deleted") == strings.Contains(a.state(), feedURL(1)) {
					t.Errorf("conflicts %q after %q was chosen; state %s", a.conflicts(), theirs, a.state())
				}
			})
		}
	}
}

// An edit by a machine whose clock is ten years ahead loses to a later version.
func TestClockAhead(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	a.skew = 10 * 365 * 24 * time.Hour
	feed := a.subscribe(1)
	rounds(1, a, b)
	a.write("src/"+feed+"/etc/view/alias", "Future\n")
	rounds(1, a, b)
	b.write("src/"+feed+"/etc/view/alias", "Later\n")
	rounds(2, b, a)
	same(t, a, b)
	if !strings.Contains(a.state(), " Later ") || a.conflicts() != "" {
		t.Errorf("%s, %s", a.state(), a.conflicts())
	}
}

// A folder is renamed with its feeds, and two folders are moved into each other.
func TestFolders(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	for n := range 3 {
		a.subscribe(n, "Old/In")
		a.subscribe(10+n, "Two")
	}
	rounds(1, a, b)
	folder := func(s string) string {
		data, _ := os.ReadFile(filepath.Join(target, a.endpoint(), subsFile))
		_, rest, _ := strings.Cut(string(data), `text="`+s+`"`)
		_, rest, _ = strings.Cut(rest, ` id="`)
		id, _, _ := strings.Cut(rest, `"`)
		return id
	}
	before := folder("In")
	for n := range 3 {
		a.write("src/"+testdir.Hash(feedURL(n))+"/etc/categories", "Old/Renamed\n")
	}
	rounds(2, a, b)
	same(t, a, b)
	if id := folder("Renamed"); id != before || before == "" {
		t.Errorf("the folder %s became %s", before, id)
	}
	// a moves the first folder into the second, and b the second into the first.
	for n := range 3 {
		a.write("src/"+testdir.Hash(feedURL(n))+"/etc/categories", "Two/Renamed\n")
		b.write("src/"+testdir.Hash(feedURL(10+n))+"/etc/categories", "Old/Renamed/Two\n")
	}
	rounds(3, a, b)
	same(t, a, b)
	if a.conflicts() != b.conflicts() {
		t.Errorf("%q and %q", a.conflicts(), b.conflicts())
	}
}

// A peer's document that is broken, shorter than before, or hostile changes nothing.
func TestGuards(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	for n := range 30 {
		a.subscribe(n)
		a.deliver(n, 1)
	}
	a.mark(0, 1, "S", "")
	rounds(1, a, b)
	before := b.state()
	own := a.endpoint()
	subs := filepath.Join(target, own, subsFile)
	good, err := os.ReadFile(subs)
	if err != nil {
		t.Fatal(err)
	}
	try := func(name, doc, complaint string) {
		t.Helper()
		if err := os.WriteFile(subs, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams())
		text := b.err.String()
		if err != nil {
			text += err.Error()
		}
		if b.state() != before || !strings.Contains(text, complaint) {
			t.Errorf("%s: %v, %s\n%s", name, err, &b.err, b.state())
		}
	}
	try("truncated", string(good[:len(good)/2]), "before this error are used, and the document is read again next time")
	try("truncated before the first item", string(good[:200]), "none of its items are used")
	try("empty", "", "none of its items are used")
	try("shrunken", `<opml xmlns:sx="https://www.microsoft.com/schemas/rss/sse"><body/></opml>`, "1 peer read")
	try("another kind", `<rss><channel/></rss>`, "another kind")
	outline := func(id, attrs, sync string) string {
		return `<outline type="rss" text="x" title="x" ` + attrs + `><sx:sync id="` + id + `" version="9" ` + sync + `><sx:history by="evil"/></sx:sync></outline>`
	}
	doc := func(body string) string {
		return `<opml xmlns:sx="https://www.microsoft.com/schemas/rss/sse"><head/><body>` + body + `</body></opml>`
	}
	for i, u := range []string{"file:///etc/passwd", "exec:touch /tmp/x", "javascript:1", "http://user:pass@h.example/", "../../x"} {
		try(u, doc(outline(testdir.Hash(u), `xmlUrl="`+u+`"`, "")), "not subscribed to")
		_ = i
	}
	try("the id of another feed", doc(outline(testdir.Hash(feedURL(99)), `xmlUrl="`+feedURL(98)+`"`, "")), "not the hash of its feed's id")
	// Control characters are removed from names, and names are not used as paths.
	hostile := "http://evil.example/"
	evil := doc(`<outline type="rss" text="&#x9b;31m../../x" title="../../` + "&#10;" + `y" xmlUrl="` + hostile + `"><sx:sync id="` + testdir.Hash(hostile) + `" version="1"><sx:history by="evil"/></sx:sync></outline>`)
	if err := os.WriteFile(subs, []byte(evil), 0o600); err != nil {
		t.Fatal(err)
	}
	b.sync()
	if name, _ := atomicfile.Line(filepath.Join(b.Path, "src", testdir.Hash(hostile), "name")); strings.ContainsAny(name, "\n\x00") || name == "" {
		t.Errorf("name %q", name)
	}
	// If a peer ended all subscriptions, they stay until --yes is given.
	var graves strings.Builder
	for n := range 30 {
		graves.WriteString(outline(testdir.Hash(feedURL(n)), "", `deleted="true"`))
	}
	if err := os.WriteFile(subs, []byte(doc(graves.String())), 0o600); err != nil {
		t.Fatal(err)
	}
	before = b.state()
	err = Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams())
	if err == nil || !strings.HasPrefix(err.Error(), "refused to end 30 of ") || b.state() != before {
		t.Errorf("%v", err)
	}
	if err := Sync(t.Context(), SyncOptions{Common: b.common(), Yes: true}, b.streams()); err != nil || strings.Contains(b.state(), "feed1.example") {
		t.Errorf("%v: %s", err, b.state())
	}
	// A feed that a peer unsubscribed keeps its entries.
	if _, err := os.Stat(filepath.Join(b.Path, "src", testdir.Hash(feedURL(1)), "id")); err != nil {
		t.Error(err)
	}
}

// A document that was cut off in transit is reported with its line, and read again when it
// is whole. The peer's other documents and other peers are used as before.
func TestTruncated(t *testing.T) {
	all, target := machines(t, "a b c")
	a, b, c := all[0], all[1], all[2]
	subscribeAll(1, 3, all...)
	rounds(2, a, b, c)
	own := a.endpoint()
	for _, cut := range []string{subsFile, partialFile, completeFile} {
		t.Run(cut, func(t *testing.T) {
			n := slices.Index(documents, cut)
			flag := string("abc"[n])
			a.subscribe(10 + n)
			a.mark(1, 0, flag, "")
			if cut == completeFile {
				// Make b and c need the complete document.
				a.mark(1, 2, "defghijklmnopqrstuvwxyz", "")
				for _, m := range []*machine{b, c} {
					path := filepath.Join(m.Path, shareDir, readDir, own)
					data, err := os.ReadFile(path)
					if err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, regexp.MustCompile(`(?m)^until .*\n`).ReplaceAll(data, nil), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			a.sync()
			c.subscribe(20 + n)
			c.mark(1, 1, flag, "")
			c.sync()
			path := filepath.Join(target, own, cut)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			half := whole[:len(whole)*2/3]
			if err := os.WriteFile(path, half, 0o600); err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("%s: line %d: ", cut, bytes.Count(half, []byte("\n"))+1)
			for range 2 {
				err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams())
				if err == nil || !strings.Contains(b.err.String(), line) || !strings.Contains(b.err.String(), "1 peer read") {
					t.Errorf("%v, %s; want %s", err, &b.err, line)
				}
			}
			s := b.state()
			if !strings.Contains(s, feedURL(20+n)) {
				t.Errorf("an edit of another peer is not used: %s", s)
			}
			if cut != subsFile && !strings.Contains(s, feedURL(10+n)) {
				t.Errorf("the peer's other document is not used: %s", s)
			}
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			b.sync()
			a.sync()
			same(t, a, b)
			rounds(2, a, b, c)
			same(t, a, b, c)
		})
	}
}

// No document holds a secret.
func TestNothingLeaks(t *testing.T) {
	all, target := machines(t, "a")
	a := all[0]
	const secret = "s3cret"
	for id, files := range map[string][]string{
		"http://password.example/": {"etc/fetch/url=http://me:" + secret + "@password.example/"},
		"http://headers.example/":  {"etc/fetch/url=http://headers.example/", "etc/fetch/headers=Cookie: " + secret},
		"http://filter.example/":   {"etc/fetch/url=http://filter.example/", "etc/fetch/filter=" + secret},
		"exec:" + secret:           {"etc/fetch/url=exec:" + secret},
		"file:///home/" + secret:   {"etc/fetch/url=file:///home/" + secret},
		"http://never.example/":    {"etc/fetch/url=http://never.example/", "etc/view/alias=" + secret, "etc/share/never="},
		"http://private.example/":  {"etc/fetch/url=http://private.example/", "etc/view/alias=" + secret, "etc/fetch/private=yes"},
		"http://open.example/":     {"etc/fetch/url=http://open.example/", "etc/fetch/interval=1d"},
	} {
		if _, err := a.Feed(id, "Name", files...); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Entry(id, "cur", "1503674340.M1P1Q1I0000000000000001.h;2,S", "title=t http://me:"+secret+"@x.example/", "id=http://me:"+secret+"@x.example/1", "etc/link=http://me:"+secret+"@x.example/1"); err != nil {
			t.Fatal(err)
		}
	}
	a.write("etc/share/headers", "Authorization: "+secret+"\n")
	os.Chmod(filepath.Join(a.Path, "etc/share/headers"), 0o600)
	rounds(2, a)
	found := 0
	err := filepath.WalkDir(target, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		found++
		for _, s := range []string{secret, a.Path, target} {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s holds %s", path, s)
			}
		}
		if fi, _ := e.Info(); fi.Mode() != 0o600 {
			t.Errorf("%s has the mode %v", path, fi.Mode())
		}
		if strings.HasSuffix(path, ".opml") && strings.Count(string(data), "<outline") != 1 || strings.HasSuffix(path, "all.rss") && strings.Count(string(data), "<item") != 1 {
			t.Errorf("%s: %s", path, data)
		}
		return err
	})
	if err != nil || found != 3 {
		t.Errorf("%d documents, %v", found, err)
	}
}

// An empty lektor-dir reads the same items that another published. Unknown elements of
// another endpoint are passed on.
func TestPublishAndBack(t *testing.T) {
	all, target := machines(t, "a")
	a := all[0]
	for n := range 5 {
		a.subscribe(n, "F")
		a.deliver(n, n)
		a.mark(n, n, "FS", "")
	}
	rounds(1, a)
	foreign := filepath.Join(target, "foreign")
	if err := os.MkdirAll(foreign, 0o777); err != nil {
		t.Fatal(err)
	}
	const unknown = `<q:deep a='1'><!-- kept -->  <b/></q:deep>`
	if err := os.WriteFile(filepath.Join(foreign, subsFile), []byte(`<opml xmlns:q="urn:q" xmlns:s="http://www.microsoft.com/schemas/rss/sse"><head/><body><outline text="theirs">`+unknown+`<s:sync id="theirs" version="3"><s:history by="z"/></s:sync></outline></body></opml>`), 0o600); err != nil {
		t.Fatal(err)
	}
	rounds(1, a)
	b := newMachine(t, a.clock, "b", target)
	rounds(1, b)
	c := newMachine(t, a.clock, "c", target)
	rounds(2, b, c)
	items := func(m *machine, doc string) string {
		var lines []string
		for _, it := range m.items() {
			if _, _, _, state := splitState(it.ID); state == (doc == subsFile) {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s %d %v %v %s", it.ID, it.Version, it.Deleted, it.History, it.Content))
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	for _, doc := range documents {
		if x, y, z := items(a, doc), items(b, doc), items(c, doc); x != y || y != z || !strings.Contains(x, "feed") && doc != subsFile {
			t.Errorf("%s:\n%s\n%s\n%s", doc, x, y, z)
		}
	}
	data, err := os.ReadFile(filepath.Join(target, c.endpoint(), subsFile))
	if err != nil || !bytes.Contains(data, []byte(`<outline xmlns:ns1="urn:q" text="theirs"><ns1:deep a="1"><b/></ns1:deep>`)) {
		t.Errorf("%v: %s", err, data)
	}
}

// An unread entry that the user deletes counts as read. The state of other deleted or
// expired entries stays.
func TestGone(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	for _, m := range all {
		m.subscribe(1)
		m.subscribe(2)
		for n := range 4 {
			m.deliver(1, n)
		}
		m.deliver(2, 1)
	}
	a.mark(1, 1, "F", "")
	rounds(2, a, b)
	for _, pattern := range []string{"new/*/*I0000000100000000.*", "cur/*/*I0000000100000001.*"} {
		found, _ := filepath.Glob(filepath.Join(a.Path, pattern))
		if len(found) != 1 {
			t.Fatalf("%s: %q", pattern, found)
		}
		os.RemoveAll(found[0])
	}
	// A purge of the feed does not mark its entries as read.
	os.RemoveAll(filepath.Join(a.Path, "src", testdir.Hash(feedURL(2))))
	os.RemoveAll(filepath.Join(a.Path, "new", testdir.Hash(feedURL(2))))
	rounds(2, a, b)
	s := b.state()
	if !strings.Contains(s, "0000000100000000 S") || !strings.Contains(s, "0000000100000001 F\n") || strings.Contains(s, "0000000200000001 S") {
		t.Errorf("state: %s", s)
	}
}

// An entry that the feed withdrew on one machine still exists: it does not count as read,
// and marks of other machines are applied. When the feed has the entry again, this is not an
// edit.
func TestWithdrawn(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 4, all...)
	a.mark(1, 3, "F", "")
	rounds(2, a, b)
	set := a.set()
	complete := "src/" + testdir.Hash(feedURL(1)) + "/etc/history/complete"
	b.write(complete, "0000000100000000\n0000000100000001\n")
	if s := b.state(); strings.Contains(s, "0000000100000002") || strings.Contains(s, "0000000100000003") {
		t.Fatalf("the entries are not withdrawn: %s", s)
	}
	rounds(2, b, a)
	if s := a.set(); s != set || b.set() != set {
		t.Errorf("after b withdrew entries, the set of a is\n%s\nand that of b\n%s\nbefore\n%s", s, b.set(), set)
	}
	a.mark(1, 2, "F", "")
	a.mark(1, 3, "S", "F")
	rounds(1, a, b)
	flags := ""
	refs, err := b.dir().List(t.Context(), lektordir.ListOptions{Withdrawn: true})
	for _, r := range refs {
		flags += r.Identity()[15:] + r.Flags() + " "
	}
	if err != nil || flags != "0 1 2F 3S " {
		t.Errorf("flags of withdrawn entries differ from the other machine's: %s, %v", flags, err)
	}
	if err := os.Remove(filepath.Join(b.Path, complete)); err != nil {
		t.Fatal(err)
	}
	set = a.set()
	rounds(2, b, a)
	same(t, a, b)
	if a.set() != set || a.conflicts() != "" {
		t.Errorf("the return of the entries is an edit; conflicts %s, set\n%s\nbefore\n%s", a.conflicts(), a.set(), set)
	}
}

// If another lektor-share is running, a sync fails with an error that says so.
func TestTwoAtOnce(t *testing.T) {
	all, _ := machines(t, "a")
	r, err := all[0].common().begin(all[0].streams())
	if err != nil {
		t.Fatal(err)
	}
	defer r.end()
	if err := Sync(t.Context(), SyncOptions{Common: all[0].common()}, all[0].streams()); err == nil || !strings.Contains(err.Error(), "another lektor-share") {
		t.Errorf("%v", err)
	}
}

// If guids of a feed have changed, machines have its entries under different identities.
// Then an entry is found by its id, unless several entries have this id. Entries of a
// script, whose names have no identity, are found by their ids, too.
func TestOtherLineages(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	for _, m := range all {
		m.subscribe(1)
	}
	entry := func(m *machine, unique, id string) {
		t.Helper()
		if _, err := m.Entry(feedURL(1), "new", unique, "id="+id); err != nil {
			t.Fatal(err)
		}
	}
	entry(a, "1503674340.M1P1Q1I00000000000000aa.h", "urn:one")
	entry(b, "1503674340.M1P1Q1I00000000000000bb.h", "urn:one")
	entry(a, "1503674340.script.h", "urn:script")
	entry(b, "1503674350.77.k", "urn:script")
	// Two entries of b have this id, so no entry is found by it.
	entry(a, "1503674340.M1P1Q1I0000000000000001.h", "urn:twice")
	entry(b, "1503674340.M1P1Q1I0000000000000002.h", "urn:twice")
	entry(b, "1503674340.M1P1Q1I0000000000000003.h", "urn:twice")
	rounds(2, a, b)
	set := func(m *machine, part, set, unset string) {
		t.Helper()
		d := m.dir()
		refs, _ := d.List(t.Context(), lektordir.ListOptions{})
		for _, r := range refs {
			if strings.Contains(r.Unique, part) {
				if _, err := d.SetFlags(r, set, unset); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("no entry %s", part)
	}
	flagsOf := func(m *machine, part string) string {
		t.Helper()
		refs, _ := m.dir().List(t.Context(), lektordir.ListOptions{})
		for _, r := range refs {
			if strings.Contains(r.Unique, part) {
				return r.Flags()
			}
		}
		return "gone"
	}
	set(a, "aa.h", "FS", "")
	set(a, "script", "S", "")
	set(a, "0001.h", "S", "")
	rounds(2, a, b)
	if one, script, two := flagsOf(b, "bb.h"), flagsOf(b, "77.k"), flagsOf(b, "0002.h")+flagsOf(b, "0003.h"); one != "FS" || script != "S" || two != "" {
		t.Errorf("flags of the entry found by id: %q, of the script's entry: %q, of two entries with one id: %q", one, script, two)
	}
	// In the other direction, b's edits of these flags are applied by a.
	set(b, "bb.h", "", "S")
	set(b, "77.k", "a", "S")
	rounds(2, b, a)
	if one, script := flagsOf(a, "aa.h"), flagsOf(a, "script"); one != "F" || script != "a" {
		t.Errorf("after b's edits: %q, %q", one, script)
	}
	if c := a.conflicts() + b.conflicts(); c != "" {
		t.Errorf("conflicts: %s", c)
	}
}

// A file that cannot be read does not count as removed, so it is not an edit.
func TestUnreadable(t *testing.T) {
	for _, file := range []string{"etc/view/alias", "etc/categories", "etc/fetch/url"} {
		all, _ := machines(t, "a b")
		a, b := all[0], all[1]
		hash := a.subscribe(1, "Folder")
		a.write("src/"+hash+"/etc/view/alias", "Alias\n")
		rounds(2, a, b)
		before := a.state()
		// Reading a directory in its place fails even for root.
		path := filepath.Join(b.Path, "src", hash, file)
		if err := os.Rename(path, path+".aside"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams())
		if err == nil || err == errRemote || !strings.Contains(err.Error(), hash) {
			t.Errorf("%s: the sync does not report the file: %v", file, err)
		}
		a.sync()
		if s := a.state(); s != before {
			t.Errorf("%s: %s, not %s", file, s, before)
		}
	}
}

// If an entry cannot be read, its edit is neither published nor undone. It is published, with
// the title, when the entry can be read again. Other edits are published at once.
func TestUnreadableEntry(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	subscribeAll(1, 3, all...)
	a.mark(1, 0, "S", "")
	rounds(2, a, b)
	b.mark(1, 0, "", "S") // a does not know of this edit and edits the entry, too
	b.sync()
	a.mark(1, 0, "F", "")
	a.mark(1, 1, "F", "")
	a.mark(1, 2, "F", "")
	for n := range 2 {
		found, _ := filepath.Glob(filepath.Join(a.Path, fmt.Sprintf("cur/*/*I00000001%08x.*/title", n)))
		if len(found) != 1 {
			t.Fatalf("%q", found)
		}
		if err := errors.Join(os.Remove(found[0]), os.Mkdir(found[0], 0o777)); err != nil {
			t.Fatal(err)
		}
	}
	err := Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams())
	if err == nil || err == errRemote || !strings.Contains(err.Error(), "title") {
		t.Errorf("%v", err)
	}
	b.sync()
	if s := b.state(); !strings.Contains(s, "0000000100000002 F") || strings.Contains(s, "0000000100000001 F") {
		t.Errorf("b has %s", s)
	}
	if s := a.state(); !strings.Contains(s, "0000000100000000 F") || !strings.Contains(s, "0000000100000001 F") {
		t.Errorf("the user's edit is undone: %s", s)
	}
	found, _ := filepath.Glob(filepath.Join(a.Path, "cur/*/*/title"))
	for _, path := range found {
		if fi, err := os.Stat(path); err == nil && fi.IsDir() {
			if err := errors.Join(os.Remove(path), os.WriteFile(path, []byte("Named\n"), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rounds(2, a, b)
	same(t, a, b)
	if set := b.set(); strings.Count(set, "<title>Named<") < 2 || !strings.Contains(b.state(), "0000000100000001 F") {
		t.Errorf("b has %s, %s", b.state(), set)
	}
}
