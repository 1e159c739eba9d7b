package feeddir

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/tsv"
	"github.com/lektordir/lektor/lektordir"
)

// Mark are flags for an entry that another reader knew, and that may not have come
// yet. It waits in src/$feed/etc/fetch/marks for the entry, and whoever delivers that
// marks it: nobody sees as unread, be it for a moment that matters, what was read
// elsewhere.
type Mark struct {
	Flags string // letters, never empty
	// ID is what the other reader took for the entry's identifier, mostly the guid of
	// RSS or the id of Atom; URL that of its page. By its Title an entry is known that has
	// neither, and one that has the URL and a later date. What is not known is "".
	ID, URL, Title string
	// Date is that of the entry, zero if it is not known: what is newer is another one,
	// though it has the URL.
	Date time.Time
}

const (
	fileMarks = "marks"

	// maxMarks is the largest file of marks, in bytes: of a hundred thousand entries.
	maxMarks = 32 << 20
	// maxMarkField is the longest identifier, URL or title that is kept of one.
	maxMarkField = 4 << 10
)

// marksPath is where the marks of a feed wait.
func marksPath(d *lektordir.Dir, hash string) string {
	return filepath.Join(stateDir(d, hash), fileMarks)
}

// notYet is the modification time of a file of marks that were compared with no entry.
var notYet = time.Unix(1, 0)

// AddMarks lets marks wait for the entries of a feed, beside those that wait already. Of
// two for one entry the later counts. The caller sees to it that no other process has
// the feed; [MarkArrived] marks what is there already.
func AddMarks(d *lektordir.Dir, hash string, marks []Mark) error {
	if err := Guard(d, hash, "fetch"); err != nil {
		return err
	}
	path := marksPath(d, hash)
	old, err := readMarks(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	type entry struct{ id, url, title string }
	of := func(m Mark) entry {
		if m.URL != "" {
			m.Title = ""
		}
		return entry{m.ID, m.URL, m.Title}
	}
	replaced := make(map[entry]bool, len(marks))
	for _, m := range marks {
		replaced[of(m)] = true
	}
	all := slices.DeleteFunc(old, func(m Mark) bool { return replaced[of(m)] })
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if err := writeMarks(path, append(all, marks...)); err != nil {
		return err
	}
	return os.Chtimes(path, notYet, notYet)
}

// Awaits tells whether marks wait for entries of the feed, see [Mark].
func (s *State) Awaits() bool { return s.names[fileMarks] }

// MarkArrived marks those entries of a feed for which marks wait, and lets the others
// wait on. It looks at all entries at first, and from then on at those in new/ that
// were delivered since it looked last. An entry is the one that a mark means if it has
// its ID; else if it alone has its URL, and is not newer or has its title, too; else, where the mark has no
// URL, if it alone has its title, and no URL either.
//
// moved has for each entry that was moved where it is now. The feed's lock is held by
// the caller. Without marks it costs an attempt to open their file.
func MarkArrived(d *lektordir.Dir, hash string, now time.Time) (moved map[lektordir.Ref]lektordir.Ref, err error) {
	path := marksPath(d, hash)
	marks, err := readMarks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	last := notYet
	if fi, err := os.Stat(path); err == nil {
		last = fi.ModTime()
	}
	arrived, err := arrivedSince(d, hash, last)
	if err != nil {
		return nil, err
	}
	moved = map[lektordir.Ref]lektordir.Ref{}
	used := make([]bool, len(marks))
	var bad error
	for _, p := range pairs(marks, arrived) {
		ref, m := arrived[p.entry].ref, marks[p.mark]
		to, err := setFlags(d, ref, m.Flags)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // somebody removed it
			bad = errors.Join(bad, err)
			continue
		}
		used[p.mark] = true
		if err == nil && to != ref {
			moved[ref] = to
		}
	}
	if bad != nil {
		return moved, bad // those that were moved are not looked for again
	}
	if slices.Contains(used, true) {
		left := make([]Mark, 0, len(marks))
		for i, m := range marks {
			if !used[i] {
				left = append(left, m)
			}
		}
		if len(left) == 0 {
			return moved, os.Remove(path)
		}
		if err := writeMarks(path, left); err != nil {
			return moved, err
		}
	}
	return moved, os.Chtimes(path, now, now)
}

// Waiting counts the marks that wait for entries of a feed. A file of them that cannot be
// read has none.
func Waiting(d *lektordir.Dir, hash string) int {
	marks, _ := readMarks(marksPath(d, hash))
	return len(marks)
}

// Arrived tells of each mark whether the entry that it is for is in new/ or cur/, by the
// rules of [MarkArrived]. Nothing is marked.
func Arrived(d *lektordir.Dir, hash string, marks []Mark) ([]bool, error) {
	arrived, err := arrivedSince(d, hash, notYet)
	if err != nil {
		return nil, err
	}
	here := make([]bool, len(marks))
	for _, p := range pairs(marks, arrived) {
		here[p.mark] = true
	}
	return here, nil
}

// setFlags marks an entry that a viewer may take in the same moment.
func setFlags(d *lektordir.Dir, ref lektordir.Ref, flags string) (lektordir.Ref, error) {
	to, err := d.SetFlags(ref, flags, "")
	if !errors.Is(err, fs.ErrNotExist) {
		return to, err
	}
	if ref, err = d.Resolve(ref.Path()); err != nil {
		return ref, fs.ErrNotExist
	}
	return d.SetFlags(ref, flags, "")
}

// arrival is an entry that marks may be meant for.
type arrival struct {
	ref            lektordir.Ref
	id, url, title string
	date           time.Time
}

// arrivedSince reads what of the entries of a feed tells which they are.
func arrivedSince(d *lektordir.Dir, hash string, last time.Time) ([]arrival, error) {
	first := !last.After(notYet)
	refs, err := d.List(context.Background(), lektordir.ListOptions{Feeds: []string{hash}, Withdrawn: true})
	for _, err := range joined.Errors(err) {
		if bad, ok := errors.AsType[*lektordir.MalformedError](err); !ok || !bad.NoEntry {
			return nil, err
		}
	}
	var out []arrival
	// Clocks of fetchers that share a directory need not agree.
	last = last.Add(-time.Minute)
	for _, ref := range refs {
		if !first && (ref.Place != lektordir.New || ref.Delivered().Before(last)) {
			continue
		}
		e, err := d.ReadEntry(ref, lektordir.FieldID|lektordir.FieldTitle|lektordir.FieldLink|lektordir.FieldPubDate)
		if err != nil {
			continue // half an entry, or moved just now: whoever moved it has seen it
		}
		out = append(out, arrival{ref, strings.TrimSpace(e.ID), strings.TrimSpace(e.URL()), strings.TrimSpace(e.Title), e.PubDate})
	}
	return out, nil
}

// pair is a mark and an entry that it is for, by their places.
type pair struct{ mark, entry int }

// pairing pairs marks with the entries that they are for.
type pairing struct {
	marks       []Mark
	arrived     []arrival
	marked, met []bool // marks and entries that are paired
	found       []pair
}

// pairs finds the entries that marks are for.
func pairs(marks []Mark, arrived []arrival) []pair {
	p := &pairing{marks: marks, arrived: arrived, marked: make([]bool, len(marks)), met: make([]bool, len(arrived))}
	p.byID()
	p.byKey(func(m *Mark) string { return m.URL }, func(a *arrival) string { return a.url })
	// An entry without a link has as its id a digest.
	p.byKey(func(m *Mark) string { return only(m.Title, m.URL) }, func(a *arrival) string { return only(a.title, a.url) })
	return p.found
}

// only returns a title if there is no URL.
func only(title, url string) string {
	if url != "" {
		return ""
	}
	return title
}

func (p *pairing) take(mark, entry int) {
	p.found = append(p.found, pair{mark, entry})
	p.marked[mark], p.met[entry] = true, true
}

// byID pairs marks with all entries of their id.
func (p *pairing) byID() {
	at := make(map[string][]int, len(p.arrived))
	for i, a := range p.arrived {
		at[a.id] = append(at[a.id], i)
	}
	for m, mark := range p.marks {
		if mark.ID == "" {
			continue
		}
		entries := at[strings.TrimSpace(mark.ID)]
		// Some feeds have one guid for many entries: then their URLs tell them apart, and
		// without a URL no entry counts as read.
		if len(entries) > 1 && slices.ContainsFunc(entries, func(i int) bool { return p.arrived[i].url != p.arrived[entries[0]].url }) {
			entries = slices.DeleteFunc(slices.Clone(entries), func(i int) bool { return p.arrived[i].url != mark.URL })
		}
		for _, e := range entries {
			p.take(m, e)
		}
	}
}

// byKey pairs a mark with an entry if each is the only one left with a key; "" is none.
func (p *pairing) byKey(ofMark func(*Mark) string, ofEntry func(*arrival) string) {
	of, at := map[string][]int{}, map[string][]int{}
	for i := range p.marks {
		if key := ofMark(&p.marks[i]); key != "" && !p.marked[i] {
			of[key] = append(of[key], i)
		}
	}
	for i := range p.arrived {
		if key := ofEntry(&p.arrived[i]); key != "" && !p.met[i] {
			at[key] = append(at[key], i)
		}
	}
	for key, m := range of {
		e := at[key]
		if len(m) != 1 || len(e) != 1 {
			continue
		}
		a, mark := &p.arrived[e[0]], &p.marks[m[0]]
		// A page whose entry changes has one URL for all of them, and other titles.
		if newer(a.date, mark.Date) && (a.title == "" || a.title != strings.TrimSpace(mark.Title)) {
			continue
		}
		p.take(m[0], e[0])
	}
}

// newer tells whether an entry is so much newer than one that had its URL that it is
// another: a day is between zones that one of two readers did not heed.
func newer(entry, mark time.Time) bool {
	return !entry.IsZero() && !mark.IsZero() && entry.After(mark.Add(24*time.Hour))
}

// readMarks reads a file of marks. Lines that are none are left out.
func readMarks(path string) ([]Mark, error) {
	data, err := atomicfile.Read(path, maxMarks)
	return parseMarks(data), err
}

func parseMarks(data []byte) (marks []Mark) {
	for line := range bytes.Lines(data) {
		fields := bytes.Split(bytes.TrimRight(line, "\n"), []byte("\t"))
		if len(fields) < 4 || CheckFlags(string(fields[0])) != nil {
			continue
		}
		m := Mark{Flags: string(fields[0]), ID: tsv.Unescape(fields[1]), URL: tsv.Unescape(fields[2]), Title: tsv.Unescape(fields[3])}
		if len(fields) > 4 {
			if n, err := strconv.ParseInt(string(fields[4]), 10, 64); err == nil {
				m.Date = time.Unix(n, 0)
			}
		}
		marks = append(marks, m)
	}
	return marks
}

// CheckFlags is the error for what cannot be the flags of a [Mark].
func CheckFlags(flags string) error {
	if flags == "" || strings.Trim(flags, "abcdefghijklmnopqrstuvwxyzFST") != "" {
		return fmt.Errorf("%q are no flags: they are F, S, T and a to z", flags)
	}
	return nil
}

// writeMarks writes a file of marks; of too many the newest are kept.
func writeMarks(path string, marks []Mark) error {
	b, err := formatMarks(marks)
	if err != nil {
		return err
	}
	return atomicfile.Write(path, b)
}

func formatMarks(marks []Mark) (b []byte, err error) {
	slices.SortStableFunc(marks, func(a, b Mark) int { return cmp.Compare(b.Date.Unix(), a.Date.Unix()) })
	for _, m := range marks {
		if err := CheckFlags(m.Flags); err != nil {
			return nil, err
		}
		if max(len(m.ID), len(m.URL), len(m.Title)) > maxMarkField {
			continue
		}
		begin := len(b)
		b = append(b, m.Flags...)
		for _, v := range []string{m.ID, m.URL, m.Title} {
			b = tsv.Append(append(b, '\t'), strings.TrimSpace(v))
		}
		if !m.Date.IsZero() {
			b = strconv.AppendInt(append(b, '\t'), m.Date.Unix(), 10)
		}
		if b = append(b, '\n'); len(b) > maxMarks {
			return b[:begin], nil
		}
	}
	return b, nil
}
