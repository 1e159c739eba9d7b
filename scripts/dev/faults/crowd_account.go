//go:build linux && (amd64 || arm64)

package main

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// ref returns the name of an entry, unique across feeds.
func (x *entry) ref() string { return x.Feed + "/" + x.Unique }

// line is a line of a journal.
type line struct{ identity, content, unique, replaces string }

// evidence is the state at the end of a run, and the reports of processes during it. Entries are
// named by feed/unique.
type evidence struct {
	feeds    []*feed
	entries  []*entry
	journals map[string][]line

	removed map[string]int  // number of viewers that reported its removal
	hidden  map[string]bool // removed by lektor-view, which removes the older versions with it
	printed map[string]int  // number of fetchers that reported its delivery
	denied  map[string]bool // a viewer reported that it does not exist
	broken  map[string]bool // a viewer reported that it is incomplete

	clock     string // hash of the clock's feed
	clockRuns int    // number of entries that the clock reported as delivered
}

// gather reads a lektor-dir without the code of lektor. An invalid journal or entry is an error.
func (e *evidence) gather(path string) {
	e.entries = read(path)
	e.journals = readJournals(path)
}

// readJournals returns the lines of the journal of each feed.
func readJournals(path string) map[string][]line {
	all := map[string][]line{}
	for _, seen := range must.Get(filepath.Glob(filepath.Join(path, "src/*/etc/fetch/seen"))) {
		hash := strings.Split(strings.TrimPrefix(seen, path+"/"), "/")[1]
		for text := range strings.Lines(string(must.Get(os.ReadFile(seen)))) {
			l, err := parseLine(text)
			must.That(err, "%s", seen)
			all[hash] = append(all[hash], l)
		}
	}
	return all
}

// parseLine parses a line of a journal, with its newline.
func parseLine(text string) (line, error) {
	body, ended := strings.CutSuffix(text, "\n")
	f := strings.Split(body, " ")
	if !ended || len(f) != 6 {
		return line{}, fmt.Errorf("line %q is not a line of a journal", text)
	}
	sum := crc32.Checksum([]byte(body[:len(body)-8]), crc32.MakeTable(crc32.Castagnoli))
	if f[5] != fmt.Sprintf("%08x", sum) {
		return line{}, fmt.Errorf("line %q: its checksum is %08x", text, sum)
	}
	// The identity in the name is omitted if it is that of the line.
	l := line{identity: f[0], content: f[2], unique: strings.Replace(f[3], "I.", "I"+f[0]+".", 1), replaces: f[4]}
	if l.replaces == "-" {
		l.replaces = ""
	}
	return l, nil
}

// check accounts for every entry: each was delivered once and completely, and exists or was
// reported as removed.
func (e *evidence) check() []error {
	var bad []error
	fail := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	there := map[string][]*entry{}
	byFeed := map[string][]*entry{}
	for _, x := range e.entries {
		there[x.ref()] = append(there[x.ref()], x)
		byFeed[x.Feed] = append(byFeed[x.Feed], x)
	}
	for _, xs := range there {
		if len(xs) > 1 {
			fail("%s is the same entry as %s", xs[1], xs[0])
		}
	}
	knownFeeds := map[string]bool{}
	for _, f := range e.feeds {
		knownFeeds[f.hash] = true
		bad = append(bad, e.checkFeed(f, byFeed[f.hash], there)...)
	}
	if e.clock != "" {
		knownFeeds[e.clock] = true
		bad = append(bad, e.checkClock(byFeed[e.clock])...)
	}
	for _, x := range e.entries {
		if !knownFeeds[x.Feed] {
			fail("%s is of a feed that nobody fetched", x)
		}
	}
	for key, n := range e.printed {
		if n > 1 {
			fail("%s was delivered %d times, as the fetchers say", key, n)
		}
		feed, unique, _ := strings.Cut(key, "/")
		if !slices.ContainsFunc(e.journals[feed], func(l line) bool { return l.unique == unique }) {
			fail("%s was delivered, as a fetcher says, and is in no journal", key)
		}
	}
	for claim, keys := range map[string]map[string]bool{"it was not": e.denied, "it was not whole": e.broken} {
		for key := range keys {
			if len(there[key]) > 0 {
				fail("%s is there, and a viewer said that %s", there[key][0], claim)
			}
		}
	}
	slices.SortFunc(bad, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return bad
}

// accounts holds the evidence about a feed.
type accounts struct {
	*evidence
	f        *feed
	there    map[string][]*entry
	lines    []line
	byUnique map[string]line
	versions map[line]version // versions by identity and content only
	bad      []error
}

func (a *accounts) fail(format string, args ...any) {
	a.bad = append(a.bad, fmt.Errorf("feed %s (%s): %w", a.f.name, a.f.hash, fmt.Errorf(format, args...)))
}

func (e *evidence) checkFeed(f *feed, entries []*entry, there map[string][]*entry) []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := &accounts{evidence: e, f: f, there: there, lines: e.journals[f.hash], byUnique: map[string]line{},
		versions: map[line]version{}}
	for _, l := range a.lines {
		if _, ok := a.byUnique[l.unique]; ok {
			a.fail("the journal has %s twice", l.unique)
		}
		a.byUnique[l.unique] = l
	}
	for v := range f.may {
		id, content := f.digests(v)
		a.versions[line{identity: id, content: content}] = v
	}
	a.whole(entries)
	count := a.journaled()
	// An entry that a fetcher reported as delivered must be in the journal.
	first := map[int]bool{}
	for v := range count {
		first[v.entry] = true
	}
	for v := range f.must {
		if f.policy == deliver && count[v] == 0 || !first[v.entry] {
			a.fail("%s was never delivered", f.title(v))
		}
	}
	return a.bad
}

// version returns the version that a line of the journal delivered.
func (a *accounts) version(l line) (version, bool) {
	v, ok := a.versions[line{identity: l.identity, content: l.content}]
	return v, ok
}

// whole checks that each existing entry is complete, exists once, and is in the journal.
func (a *accounts) whole(entries []*entry) {
	f := a.f
	seen := map[version]*entry{}
	for _, x := range entries {
		v, err := f.versionOf(x)
		if err != nil {
			a.fail("%s: %w", x, err)
			continue
		}
		if other, ok := seen[v]; ok {
			a.fail("%s is what %s is", x, other)
		}
		seen[v] = x
		l, ok := a.byUnique[x.Unique]
		if !ok {
			a.fail("%s is in no journal", x)
		} else if noted, _ := a.version(l); noted != v {
			a.fail("%s: the journal has another version under its name", x)
		}
		if f.policy == unread && x.Place == "new" && v.number != f.latest[v.entry] {
			a.fail("%s is unread, and there is version %d of it", x, f.latest[v.entry])
		}
	}
}

// gone reports whether a viewer reported the removal of the entry of a line, or of a newer
// version, with which its older versions are removed.
func (a *accounts) gone(l line) bool {
	if a.removed[a.f.hash+"/"+l.unique] > 0 {
		return true
	}
	delivered := func(l line) time.Time { return lektordir.Ref{Unique: l.unique}.Delivered() }
	return a.f.policy == deliver && slices.ContainsFunc(a.lines, func(other line) bool {
		return other.identity == l.identity && a.hidden[a.f.hash+"/"+other.unique] &&
			!delivered(l).After(delivered(other))
	})
}

// journaled checks that each entry in the journal exists or was removed, and returns the number
// of deliveries of each version.
func (a *accounts) journaled() map[version]int {
	f := a.f
	count := map[version]int{}
	accounted := map[int]int{} // number of versions of an entry that exist or were removed
	delivered := map[int]int{} // number of versions of an entry in the journal
	for _, l := range a.lines {
		v, ok := a.version(l)
		if !ok {
			a.fail("the journal has %s, which no fetcher was given", l.unique)
			continue
		}
		delivered[v.entry]++
		if count[v]++; count[v] == 2 {
			a.fail("%s was delivered twice, the second time as %s", f.title(v), l.unique)
		}
		key := f.hash + "/" + l.unique
		here, removed := len(a.there[key]) > 0, a.removed[key]
		if here && removed > 0 {
			a.fail("%s came back after it was removed", a.there[key][0])
		}
		if removed > 1 {
			a.fail("%s was removed %d times, as viewers say", key, removed)
		}
		if l.replaces != "" && a.byUnique[l.replaces].identity != l.identity {
			a.fail("%s replaces %s, which is another entry", l.unique, l.replaces)
		}
		if here || a.gone(l) {
			accounted[v.entry]++
		} else if f.policy == deliver {
			a.fail("%s, %s, is lost", key, f.title(v))
		}
	}
	for entry, n := range delivered {
		if f.policy != deliver && accounted[entry] != 1 {
			a.fail("entry %d, of which %d versions were delivered, is there or removed %d times", entry, n,
				accounted[entry])
		}
		if n > 1 && f.policy == ignore {
			a.fail("%d versions of entry %d were delivered", n, entry)
		}
	}
	return count
}

var titleForm = regexp.MustCompile(`^Entry (\d+) of (\S+), version (\d+)\n$`)

// versionOf returns the version of an entry. It fails if the entry differs from what the server
// served.
func (f *feed) versionOf(x *entry) (version, error) {
	m := titleForm.FindStringSubmatch(x.Files["title"])
	if m == nil || m[2] != f.name {
		return version{}, fmt.Errorf("its title is %q", x.Files["title"])
	}
	var v version
	v.entry, _ = strconv.Atoi(m[1])
	v.number, _ = strconv.Atoi(m[3])
	if !f.may[v] {
		return v, errors.New("no fetcher was given it")
	}
	want := f.files(v)
	for _, name := range slices.Sorted(maps.Keys(x.Files)) {
		got := x.Files[name]
		if name == "extras" {
			got, _ = testdir.TakeReplaces(got) // a unique name, which is in the journal
		}
		if data, ok := want[name]; !ok || data != got {
			return v, fmt.Errorf("%s is %.80q, not %.80q", name, got, data)
		}
	}
	for name := range want {
		if _, ok := x.Files[name]; !ok {
			return v, fmt.Errorf("it has no file %s", name)
		}
	}
	return v, nil
}

// checkClock accounts for the entries of the sample fetcher, which has no journal: their number
// must be the number of deliveries.
func (e *evidence) checkClock(entries []*entry) []error {
	var bad []error
	n := len(entries)
	for key, times := range e.removed {
		if strings.HasPrefix(key, e.clock+"/") {
			n += times
		}
	}
	if n != e.clockRuns {
		bad = append(bad, fmt.Errorf("lektor-clock delivered %d entries, and %d are there or removed", e.clockRuns, n))
	}
	for _, x := range entries {
		secs, _, _ := strings.Cut(x.Unique, ".")
		date, err := time.Parse(time.RFC3339, strings.TrimSuffix(x.Files["pubdate"], "\n"))
		if err != nil || x.Files["title"] != "Current Time\n" || x.Files["content"] != secs+"\n" ||
			!strings.Contains(x.Files["id"], ":"+secs+".") || x.Files["feed"] != "../../../src/"+e.clock ||
			len(x.Files) != 5 ||
			date.IsZero() {
			bad = append(bad, fmt.Errorf("%s is no whole entry of lektor-clock: %q", x, x.Files))
		}
	}
	return bad
}
