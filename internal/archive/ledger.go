// Package archive decides which entry of an archived feed stands in which of its
// documents (RFC 5005, section 4), and reads what those documents hold. It knows
// no disk and no network.
//
// An archived feed is a subscription document and archives, numbered from 1 in
// the order in which they were made. The entries of an archive never change, so
// what was published must be known: that is the [Ledger]. A run of a publisher
// gives the entries there are their ids ([Ledger.IDs]), asks for a [Plan], writes
// the documents, and records what it wrote ([Ledger.Archive],
// [Ledger.Subscribe]). A ledger that is lost is made anew from the documents
// ([Ledger.Recover]).
//
// A Ledger is used by one goroutine at a time; the functions are safe for
// concurrent use.
package archive

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Entry is an entry as far as the plan is concerned.
type Entry struct {
	ID string // its id in the feed that is published
	// Digest tells versions of an entry apart, for as long as there are archives:
	// it must not change by how documents are written. Printed tells them apart by
	// their element, see [Printed], which is what a ledger that was made
	// anew knows; it may be empty where the ledger knows better.
	Digest, Printed string
	Origin          Origin
	Updated         time.Time
}

// Origin is what an entry is where it comes from, whatever id it is published
// under. Neither part may hold white space or a dot.
type Origin struct{ Feed, Entry string }

func (o Origin) known() bool { return o != Origin{} }

// is tells whether a digest is that of an entry.
func (e Entry) is(digest string) bool {
	return digest == e.Digest || e.Printed != "" && digest == e.Printed
}

// Anew tells whether some of what is known was read from documents, so that
// [Entry.Printed] is wanted.
func (l *Ledger) Anew() bool {
	for _, n := range l.lines {
		if strings.HasPrefix(n.Digest, printed) || strings.HasPrefix(n.digest, printed) {
			return true
		}
	}
	return false
}

// line is what is known of an entry that was published.
type line struct {
	Entry       // as it stands in its archive; else as it was published last
	archive int // 0 for one that is in no archive
	// gone is set for one that was withdrawn before it came into an archive. Its
	// id is nobody else's all the same, and is kept by its digest alone: the file
	// lies where the documents are served, and what is taken back is not told of.
	gone bool
	// revised is set once another version than that of the archive was in the
	// subscription document: the one of this digest, updated at that time.
	revised bool
	digest  string
	updated time.Time
}

// hidden is the id of an entry that was withdrawn.
func hidden(id string) string { return "sha256:" + checksum([]byte("withdrawn "+id)) }

// of gives the line of an entry, nil for one that was not published.
func (l *Ledger) of(id string) *line {
	if n := l.lines[id]; n != nil {
		return n
	}
	if n := l.lines[hidden(id)]; n != nil && n.gone {
		return n
	}
	return nil
}

// last is the version that was published last.
func (n *line) last() (digest string, updated time.Time) {
	if n.revised {
		return n.digest, n.updated
	}
	return n.Digest, n.Updated
}

// Ledger is what was published. The zero value is that of a feed of which nothing
// was; Self and Format say what feed it is.
type Ledger struct {
	Self   string // URL of the subscription document
	Format string // of the documents
	// Count is how many archives were made: the number of the newest, also where
	// a document was removed since.
	Count int

	lines    map[string]*line // by id
	byOrigin map[Origin]*line
}

// magic begins the text of a ledger; the number is that of the format.
const magic = "lektor archives 1"

// Parse reads a ledger as [Ledger.Bytes] writes it. The error tells that it is
// damaged, or none.
func Parse(text []byte) (*Ledger, error) {
	body, sum, ok := bytes.Cut(text, []byte("\nsum\t"))
	if !ok || checksum(append(bytes.Clone(body), '\n')) != strings.TrimSuffix(string(sum), "\n") {
		return nil, errors.New("it is damaged")
	}
	head, rest, _ := strings.Cut(string(body), "\n")
	f := strings.Split(head, "\t")
	if len(f) != 4 || f[0] != magic {
		return nil, errors.New("it is of another format")
	}
	l := &Ledger{Format: f[1], Self: f[2]}
	var err error
	if l.Count, err = strconv.Atoi(f[3]); err != nil || l.Count < 0 {
		return nil, errors.New("it is damaged")
	}
	for s := range strings.Lines(rest) {
		n, err := parseLine(strings.TrimSuffix(s, "\n"))
		if err != nil || n.archive > l.Count {
			return nil, fmt.Errorf("it is damaged: %q", s)
		}
		l.put(n)
	}
	return l, nil
}

func parseLine(s string) (*line, error) {
	f := strings.SplitN(s, "\t", 5)
	if len(f) != 5 {
		return nil, errors.New("too few fields")
	}
	n := &line{}
	if n.gone = f[0] == "x"; !n.gone && f[0] != "-" {
		var number string
		number, n.revised = strings.CutSuffix(f[0], "+")
		var err error
		if n.archive, err = strconv.Atoi(number); err != nil || n.archive < 1 {
			return nil, errors.New("no number of an archive")
		}
	}
	n.Digest, n.digest, _ = strings.Cut(f[1], ",")
	if f[2] != "-" {
		n.Origin.Feed, n.Origin.Entry, _ = strings.Cut(f[2], ".")
	}
	first, second, _ := strings.Cut(f[3], ",")
	var errs [3]error
	n.Updated, errs[0] = time.Parse(time.RFC3339, first)
	if n.revised {
		n.updated, errs[1] = time.Parse(time.RFC3339, second)
	}
	n.ID, errs[2] = strconv.Unquote(f[4])
	return n, errors.Join(errs[:]...)
}

// Bytes gives the ledger as text: a line for the feed (format, URL of the
// subscription document, number of archives), one for each entry, and a checksum,
// with tabs between fields. The fields of an entry are the number of its archive
// (with "+" when it was revised since; "-" when it is in none yet, "x" when it was
// withdrawn before that), the digest, the origin or "-", the time of its update,
// and its id in quotes. Digest and time of a revised one are followed, after a
// comma, by those of the version that was published last; the id of a withdrawn one
// is a digest of it. Equal ledgers give equal texts.
func (l *Ledger) Bytes() []byte {
	all := make([]*line, 0, len(l.lines))
	for _, n := range l.lines {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *line) int {
		// Those in no archive come last: they change most.
		return cmp.Or(cmp.Compare(uint(a.archive-1), uint(b.archive-1)), cmp.Compare(a.ID, b.ID))
	})
	b := fmt.Appendf(nil, "%s\t%s\t%s\t%d\n", magic, l.Format, l.Self, l.Count)
	for _, n := range all {
		where, origin := "-", "-"
		if n.gone {
			where = "x"
		}
		if n.archive > 0 {
			where = strconv.Itoa(n.archive)
			if n.revised {
				where += "+"
			}
		}
		if n.Origin.known() {
			origin = n.Origin.Feed + "." + n.Origin.Entry
		}
		digest, updated := n.Digest, n.Updated.UTC().Format(time.RFC3339)
		if n.revised {
			digest += "," + n.digest
			updated += "," + n.updated.UTC().Format(time.RFC3339)
		}
		b = fmt.Appendf(b, "%s\t%s\t%s\t%s\t%s\n", where, digest, origin, updated, strconv.Quote(n.ID))
	}
	return fmt.Appendf(b, "sum\t%s\n", checksum(b))
}

func checksum(b []byte) string {
	return fmt.Sprintf("%.8x", sha256.Sum256(b))
}

// put adds a line, in the place of that with its id.
func (l *Ledger) put(n *line) {
	if l.lines == nil {
		l.lines, l.byOrigin = map[string]*line{}, map[Origin]*line{}
	}
	n.Printed = ""
	// A fraction of a second is lost in RSS, and must not tell a ledger that was
	// made anew from the one it replaces.
	n.Updated, n.updated = n.Updated.Truncate(time.Second), n.updated.Truncate(time.Second)
	l.drop(l.of(n.ID))
	l.lines[n.ID] = n
	if n.Origin.known() {
		l.byOrigin[n.Origin] = n
	}
}

func (l *Ledger) drop(n *line) {
	if n == nil {
		return
	}
	delete(l.lines, n.ID)
	if l.byOrigin[n.Origin] == n {
		delete(l.byOrigin, n.Origin)
	}
}

// Archive records an archive with these entries, as the next one, and gives its
// number.
func (l *Ledger) Archive(list []Entry) int {
	l.Count++
	l.Recover(l.Count, list)
	return l.Count
}

// Recover records what the archive of that number was found to hold. An entry
// that is in several stays with the last.
func (l *Ledger) Recover(number int, list []Entry) {
	l.Count = max(l.Count, number)
	for _, e := range list {
		n := l.of(e.ID)
		if n != nil && n.archive > number {
			continue
		}
		if n != nil && !e.Origin.known() {
			e.Origin = n.Origin
		}
		l.put(&line{Entry: e, archive: number})
	}
}

// Subscribe records what is in the subscription document: of the entries that
// there are, those that the plan puts there.
func (l *Ledger) Subscribe(list []Entry, plan []int) {
	there := map[string]bool{}
	for _, i := range plan {
		there[list[i].ID] = true
	}
	var gone []*line
	for _, n := range l.lines {
		if n.archive == 0 && !n.gone && !there[n.ID] {
			gone = append(gone, n)
		}
	}
	for _, n := range gone {
		l.drop(n)
		as := *n
		as.ID, as.gone = hidden(n.ID), true
		l.put(&as)
	}
	for _, e := range list {
		n := l.of(e.ID)
		switch {
		case n != nil && n.archive > 0:
			as := *n
			as.Origin = e.Origin
			if e.is(n.Digest) {
				as.Digest = e.Digest
			}
			if there[e.ID] {
				as.revised, as.digest, as.updated = true, e.Digest, e.Updated
			}
			l.put(&as)
		case there[e.ID]:
			l.put(&line{Entry: e})
		}
	}
}

// RecoverSubscription records what a subscription document was found to hold,
// whose newest archive has that number. What is in a later archive was moved
// there when the document had not been written yet.
func (l *Ledger) RecoverSubscription(newest int, list []Entry) {
	l.Count = max(l.Count, newest)
	for _, e := range list {
		switch n := l.of(e.ID); {
		case n == nil:
			l.put(&line{Entry: e})
		case n.archive > 0 && n.archive <= newest:
			n.revised, n.digest, n.updated = true, e.Digest, e.Updated.Truncate(time.Second)
		}
	}
}

// latest is the last moment that a date of RFC 3339 can tell.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Updated is when an entry was updated as readers are told. Of two versions they take
// the one that was updated last (section 4.2), wherever they stand, so another
// version than the one published before is always a later one: by a second, where
// its own time says otherwise.
func (l *Ledger) Updated(e Entry) time.Time {
	n := l.of(e.ID)
	if n == nil {
		return e.Updated
	}
	digest, least := n.last()
	if !e.is(digest) && least.Before(latest) {
		least = least.Add(time.Second)
	}
	if e.Updated.Before(least) {
		return least
	}
	return e.Updated
}

// Newest is when the newest of all archived entries was updated, zero without any.
func (l *Ledger) Newest() time.Time {
	var t time.Time
	for _, n := range l.lines {
		if n.archive > 0 && n.Updated.After(t) {
			t = n.Updated
		}
	}
	return t
}
