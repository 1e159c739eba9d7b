// Package marks keeps the flags of entries that are not delivered yet, and sets them on arrival.
package marks

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

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// Mark holds the flags that an entry had in another reader. If the entry is not delivered yet, the mark
// waits in src/$feed/etc/fetch/marks, and the fetcher that delivers the entry sets the flags. So an entry
// that was read in the other reader does not become unread.
type Mark struct {
	Flags string // letters, never empty
	// ID is the other reader's identifier of the entry, usually its guid. URL is that of its page.
	// Title identifies an entry without ID and URL, and one with the URL and a later date. Unknown
	// values are "".
	ID, URL, Title string
	// Date is the date of the entry, zero if unknown. An entry with the same URL, a later date and
	// another title is another entry.
	Date time.Time
}

const (
	// maxMarks is the maximum size of a file of marks in bytes, enough for 100,000 entries.
	maxMarks = 32 << 20
	// maxMarkField is the maximum length of an identifier, URL or title; longer marks are dropped.
	maxMarkField = 4 << 10
)

// marksPath returns the file of the waiting marks of a feed.
func marksPath(d *lektordir.Dir, hash string) string {
	return filepath.Join(feedfiles.FetchArea(d, hash), feedfiles.FileMarks)
}

// neverCompared is the modification time of a file of marks that were never compared with entries.
var neverCompared = time.Unix(1, 0)

// Add adds marks for the entries of a feed to the waiting ones, and replaces waiting marks for the
// same entries. Call [SetArrived] to mark entries that exist already. The caller must hold the feed's
// lock.
func Add(d *lektordir.Dir, hash string, marks []Mark) error {
	if err := feedfiles.Guard(d, hash, "fetch"); err != nil {
		return err
	}
	path := marksPath(d, hash)
	old, err := atomicfile.Optional(readMarks(path))
	if err != nil {
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
	if err := atomicfile.InDir(path, func() error { return writeMarks(path, append(all, marks...)) }); err != nil {
		return err
	}
	return os.Chtimes(path, neverCompared, neverCompared)
}

// SetArrived sets the flags of those entries of a feed for which marks wait, and removes these marks.
// The first call reads all entries; later calls read those in new/ that were delivered since. A mark
// matches the first of these that exist:
//
//   - the entries with its ID;
//   - the only entry with its URL, unless that is newer and has another title;
//   - if the mark has no URL, the only entry with its title and without a URL.
//
// moved maps each moved entry to its new name. The caller must hold the feed's lock. If no marks wait,
// SetArrived only tries to open their file.
func SetArrived(d *lektordir.Dir, hash string, now time.Time) (moved map[lektordir.Ref]lektordir.Ref, err error) {
	path := marksPath(d, hash)
	marks, err := readMarks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	last := neverCompared
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
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another program removed it
			bad = errors.Join(bad, err)
			continue
		}
		used[p.mark] = true
		if err == nil && to != ref {
			moved[ref] = to
		}
	}
	if bad != nil {
		return moved, bad // the marks stay, and the next call tries again
	}
	if slices.Contains(used, true) {
		remaining := make([]Mark, 0, len(marks))
		for i, m := range marks {
			if !used[i] {
				remaining = append(remaining, m)
			}
		}
		if len(remaining) == 0 {
			return moved, os.Remove(path)
		}
		if err := writeMarks(path, remaining); err != nil {
			return moved, err
		}
	}
	return moved, os.Chtimes(path, now, now)
}

// Waiting returns the number of marks that wait for entries of a feed, 0 if the file cannot be
// read.
func Waiting(d *lektordir.Dir, hash string) int {
	marks, _ := readMarks(marksPath(d, hash))
	return len(marks)
}

// Arrived reports for each mark whether its entry is in new/ or cur/, by the rules of
// [SetArrived]. It sets no flags.
func Arrived(d *lektordir.Dir, hash string, marks []Mark) ([]bool, error) {
	arrived, err := arrivedSince(d, hash, neverCompared)
	if err != nil {
		return nil, err
	}
	here := make([]bool, len(marks))
	for _, p := range pairs(marks, arrived) {
		here[p.mark] = true
	}
	return here, nil
}

// setFlags sets flags of an entry that a viewer may move at the same time.
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

// arrival is an entry that marks may match.
type arrival struct {
	ref            lektordir.Ref
	id, url, title string
	date           time.Time
}

// arrivedSince returns the entries of a feed: all, or those in new/ delivered since last.
func arrivedSince(d *lektordir.Dir, hash string, last time.Time) ([]arrival, error) {
	first := !last.After(neverCompared)
	refs, err := d.List(context.Background(), lektordir.ListOptions{Feeds: []string{hash}, Withdrawn: true})
	for _, err := range humanize.Errors(err) {
		if bad, ok := errors.AsType[*lektordir.MalformedError](err); !ok || !bad.NoEntry {
			return nil, err
		}
	}
	var out []arrival
	// Clocks of fetchers that share a directory may differ.
	last = last.Add(-time.Minute)
	for _, ref := range refs {
		if !first && (ref.Place != lektordir.New || ref.Delivered().Before(last)) {
			continue
		}
		e, err := d.ReadEntry(ref, lektordir.FieldID|lektordir.FieldTitle|lektordir.FieldLink|lektordir.FieldPubDate)
		if err != nil {
			continue // malformed, or a viewer has just moved it and shown it to the user
		}
		out = append(out, arrival{ref, strings.TrimSpace(e.ID), strings.TrimSpace(e.URL()), strings.TrimSpace(e.Title),
			e.PubDate})
	}
	return out, nil
}

// pair is a mark and a matching entry, by their indexes.
type pair struct{ mark, entry int }

// pairing is the state of pairs.
type pairing struct {
	marks                   []Mark
	arrived                 []arrival
	markPaired, entryPaired []bool // marks and entries that are paired
	found                   []pair
}

// pairs returns the matching marks and entries.
func pairs(marks []Mark, arrived []arrival) []pair {
	p := &pairing{marks: marks, arrived: arrived, markPaired: make([]bool, len(marks)),
		entryPaired: make([]bool, len(arrived))}
	p.byID()
	p.byKey()
	return p.found
}

// key returns by what marks and entries without a common id match: the URL, or without one the title. An entry
// without guid and link has a digest as its id, which no mark has.
func key(url, title string) string {
	if url == "" && title != "" {
		return "\n" + title
	}
	return url
}

func (p *pairing) add(mark, entry int) {
	p.found = append(p.found, pair{mark, entry})
	p.markPaired[mark], p.entryPaired[entry] = true, true
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
		// Some feeds have one guid for many entries: then the URL decides, and a mark without a URL
		// matches none.
		if len(entries) > 1 && slices.ContainsFunc(entries,
			func(i int) bool { return p.arrived[i].url != p.arrived[entries[0]].url }) {
			entries = slices.DeleteFunc(slices.Clone(entries), func(i int) bool { return p.arrived[i].url != mark.URL })
		}
		for _, e := range entries {
			p.add(m, e)
		}
	}
}

// byKey pairs a mark with an entry if each is the only unpaired one with a key. An empty key
// matches none.
func (p *pairing) byKey() {
	of, at := map[string][]int{}, map[string][]int{}
	for i, m := range p.marks {
		if key := key(m.URL, m.Title); key != "" && !p.markPaired[i] {
			of[key] = append(of[key], i)
		}
	}
	for i, a := range p.arrived {
		if key := key(a.url, a.title); key != "" && !p.entryPaired[i] {
			at[key] = append(at[key], i)
		}
	}
	for key, m := range of {
		e := at[key]
		if len(m) != 1 || len(e) != 1 {
			continue
		}
		a, mark := &p.arrived[e[0]], &p.marks[m[0]]
		// A feed may have the same URL for all of its entries, so a newer entry must have the title, too.
		if newer(a.date, mark.Date) && (a.title == "" || a.title != strings.TrimSpace(mark.Title)) {
			continue
		}
		p.add(m[0], e[0])
	}
}

// newer reports whether an entry is more than a day newer than a mark with the same URL, so that it may
// be another entry. A smaller difference may be that of a time zone.
func newer(entry, mark time.Time) bool {
	return !entry.IsZero() && !mark.IsZero() && entry.After(mark.Add(24*time.Hour))
}

// readMarks reads a file of marks. It skips malformed lines.
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
		m := Mark{Flags: string(fields[0]), ID: textfile.Unescape(fields[1]), URL: textfile.Unescape(fields[2]),
			Title: textfile.Unescape(fields[3])}
		if len(fields) > 4 {
			if n, err := strconv.ParseInt(string(fields[4]), 10, 64); err == nil {
				m.Date = time.Unix(n, 0)
			}
		}
		marks = append(marks, m)
	}
	return marks
}

// CheckFlags returns an error if flags is not valid for a [Mark].
func CheckFlags(flags string) error {
	if flags == "" || strings.Trim(flags, "abcdefghijklmnopqrstuvwxyzFST") != "" {
		return fmt.Errorf("%q is not a list of flags: flags are F, S, T and a to z", flags)
	}
	return nil
}

// writeMarks writes a file of marks. If the file would exceed maxMarks, it keeps the newest marks.
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
			b = textfile.AppendField(append(b, '\t'), strings.TrimSpace(v))
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
