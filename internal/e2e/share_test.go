package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// sharer is a machine whose lektor-dir is shared, with the programs.
type sharer struct {
	t    *testing.T
	bin  string
	path string
	name string
}

func (m *sharer) run(stdin, program string, args ...string) string {
	m.t.Helper()
	cmd := exec.Command(filepath.Join(m.bin, program), args...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+m.path)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		m.t.Fatalf("%s: %s %q: %v\n%s", m.name, program, args, err, stderr.String())
	}
	return string(out)
}

func (m *sharer) fetch() {
	m.t.Helper()
	// A peer may not name a private address.
	m.run("", "lektor-fetch", "update", "-a", "--gap", "1ms", "--per-host", "4", "--allow", "127.0.0.0/8")
}

func (m *sharer) sync() {
	m.t.Helper()
	m.run("", "lektor-share", "sync", "-q", "--allow", "127.0.0.0/8")
}

// listed is an entry as lektor-view lists it.
type listed struct{ Path, FeedID, ID, Flags string }

// entries returns the entries of all feeds, or of one, sorted by feed and id.
func (m *sharer) entries(feed string) []listed {
	m.t.Helper()
	var all []listed
	for line := range strings.Lines(m.run("", "lektor-view", "ls", "-a", "-o", "json")) {
		var e listed
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			m.t.Fatalf("%s: %v", line, err)
		}
		if feed == "" || e.FeedID == feed {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.FeedID+" "+a.ID, b.FeedID+" "+b.ID) })
	return all
}

// mark sets flags of entries.
func (m *sharer) mark(flags string, entries ...listed) {
	m.t.Helper()
	var paths strings.Builder
	for _, e := range entries {
		paths.WriteString(e.Path + "\n")
	}
	m.run(paths.String(), "lektor-view", "mark", "--set", flags, "-")
}

// state returns everything that must be equal on all machines: entries with their flags, and the
// subscriptions.
func (m *sharer) state() string {
	m.t.Helper()
	var b strings.Builder
	for _, e := range m.entries("") {
		fmt.Fprintf(&b, "%s %s %q\n", e.FeedID, e.ID, e.Flags)
	}
	return b.String() + m.run("", "lektor-fetch", "export")
}

func (m *sharer) flags(feed, id string) string {
	m.t.Helper()
	for _, e := range m.entries(feed) {
		if e.ID == id {
			return e.Flags
		}
	}
	return "missing"
}

// agree fails the test if the states of two machines differ, and reports the first lines that do.
func agree(t *testing.T, a, b *sharer) {
	t.Helper()
	x, y := strings.Split(a.state(), "\n"), strings.Split(b.state(), "\n")
	if slices.Equal(x, y) {
		return
	}
	printed := 0
	for _, l := range x {
		if !slices.Contains(y, l) && printed < 10 {
			printed++
			t.Errorf("%s has, and %s has not: %s", a.name, b.name, l)
		}
	}
	t.Errorf("%s and %s differ: %d lines and %d", a.name, b.name, len(x), len(y))
}

// TestShare: three machines fetch separately and share a directory. After two rounds, an edit on
// one machine, by any program, is on all of them.
func TestShare(t *testing.T) {
	bin := build(t)
	// LEKTOR_SHARE_RUNS runs the test with as many feeds and entries as a reader has.
	feeds, each, read, flagged := 6, 15, 40, 9
	if os.Getenv("LEKTOR_SHARE_RUNS") != "" {
		feeds, each, read, flagged = 20, 100, 500, 50
	}
	srv, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	url := func(i int) string { return srv.URL(fmt.Sprintf("/%d", i)) }
	title := func(i int) string { return fmt.Sprintf("Feed-%d", i) }
	list := `<opml version="2.0"><body>`
	for i := range feeds + 1 {
		srv.Handle(fmt.Sprintf("/%d", i), server.Doc("", server.RSS(title(i), 0, each)))
		if i < feeds {
			list += fmt.Sprintf(`<outline text="Folder %d"><outline type="rss" text="%s" xmlUrl="%s"/></outline>`, i%3, title(i), url(i))
		}
	}
	list += `</body></opml>`
	target := filepath.Join(t.TempDir(), "sync")
	var machines []*sharer
	for _, name := range []string{"here", "there", "away"} {
		m := &sharer{t, bin, filepath.Join(t.TempDir(), "lektor"), name}
		if err := (&testdir.Dir{Path: m.path}).Create(); err != nil {
			t.Fatal(err)
		}
		m.run(list, "lektor-fetch", "import", "--gap", "1ms", "--per-host", "4", "-")
		m.run("", "lektor-share", "init", "--name", name, target)
		if n := len(m.entries("")); n != feeds*each {
			t.Fatalf("%s has %d entries", name, n)
		}
		machines = append(machines, m)
	}
	here, there, away := machines[0], machines[1], machines[2]
	// Each machine has created all subscriptions. Once it has read the other sets, it knows that
	// they are the same.
	for range 2 {
		for _, m := range machines {
			m.sync()
		}
	}

	// Make an edit of each kind; some edits are of one entry on both machines.
	all := here.entries("")
	here.mark("S", all[:read]...)
	all = there.entries("")
	there.mark("F", all[read-flagged/2:read-flagged/2+flagged]...)
	here.run("", "lektor-fetch", "add", "--gap", "1ms", url(feeds))
	there.run("", "lektor-fetch", "rm", url(feeds-1))
	here.run("", "lektor-fetch", "set", url(1), "alias", "An alias")
	// Edit without programs of lektor.
	last := there.entries(url(1))[0]
	byHand := filepath.Join(there.path, "cur", testdir.Hash(url(1)))
	if err := os.MkdirAll(byHand, 0o777); err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(filepath.Base(last.Path), ";")
	if err := os.Rename(last.Path, filepath.Join(byHand, name+";2,FSk")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, m := range []*sharer{here, there} {
			m.sync()
			m.fetch()
			m.run("", "lektor-share", "apply", "--allow", "127.0.0.0/8")
		}
	}
	agree(t, here, there)
	agree(t, there, here)
	seen, both := 0, 0
	for _, e := range there.entries("") {
		if strings.Contains(e.Flags, "S") {
			seen++
		}
		if strings.Contains(e.Flags, "F") && strings.Contains(e.Flags, "S") {
			both++
		}
	}
	if seen < read || both < flagged/2 {
		t.Errorf("read: %d, of these flagged: %d", seen, both)
	}
	if f := here.flags(url(1), last.ID); f != "FSk" {
		t.Errorf("the entry marked by mv has %q", f)
	}
	export := here.run("", "lektor-fetch", "export")
	for _, c := range []struct {
		text string
		want bool
	}{{url(feeds) + `"`, true}, {url(feeds-1) + `"`, false}, {"An alias", true}} {
		if strings.Contains(export, c.text) != c.want {
			t.Errorf("export, with %s: %v\n%s", c.text, !c.want, export)
		}
	}
	if c := here.run("", "lektor-share", "conflicts") + there.run("", "lektor-share", "conflicts"); c != "" {
		t.Errorf("conflicts: %s", c)
	}

	// An entry is marked here before the other machine has fetched it. The mark waits there, and
	// apply sets it.
	srv.Handle("/0", server.Doc("", server.RSS(title(0), 1, each)))
	here.fetch()
	late := title(0) + fmt.Sprintf("-%d", each)
	for _, e := range here.entries(url(0)) {
		if e.ID == late {
			here.mark("S", e)
		}
	}
	here.sync()
	there.sync()
	if f := there.flags(url(0), late); f != "missing" {
		t.Fatalf("it came before it was fetched, with %q", f)
	}
	there.fetch()
	if f := there.flags(url(0), late); f != "" {
		t.Fatalf("before apply it has %q", f)
	}
	there.run("", "lektor-share", "apply", "--allow", "127.0.0.0/8")
	if f := there.flags(url(0), late); f != "S" {
		t.Errorf("when apply returned it has %q", f)
	}
	there.sync()
	agree(t, here, there)

	// The third machine made no sync meanwhile. After one sync, it agrees on the entries that it
	// has fetched, and after a fetch and apply, on the rest. It reverted no edit.
	before := here.state()
	away.sync()
	old := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(url(0)) + " " + late + ` .*\n|^` + regexp.QuoteMeta(url(feeds)) + ` .*\n`)
	if got, want := away.state(), old.ReplaceAllString(before, ""); withoutNames(got) != withoutNames(want) {
		t.Errorf("after one sync away has\n%s\nwant\n%s", got, want)
	}
	away.fetch()
	away.run("", "lektor-share", "apply", "--allow", "127.0.0.0/8")
	here.sync()
	there.sync()
	agree(t, here, away)
	agree(t, there, away)
	if here.state() != before {
		t.Error("a machine that was away took something back")
	}
}

// withoutNames removes names and sites of feeds, which a machine has only after it has fetched
// them.
func withoutNames(export string) string {
	return regexp.MustCompile(` (text|title|htmlUrl|description|language|version)="[^"]*"`).ReplaceAllString(export, "")
}
