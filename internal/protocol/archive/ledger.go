// Package archive decides which document of an archived feed holds which entry (RFC 5005, section
// 4), and parses these documents. It does no I/O.
//
// An archived feed consists of a subscription document and archives, numbered from 1 in the order
// of their creation. The entries of an archive never change, so published entries must be recorded:
// in the [Ledger]. A run of a publisher assigns ids to the entries ([Ledger.IDs]), makes a [Plan],
// writes the documents, and records them ([Ledger.Archive], [Ledger.Subscribe]). A lost ledger is
// restored from the documents ([Ledger.Recover]).
//
// A Ledger is not safe for concurrent use; the functions are.
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

// Entry is the part of an entry that the plan needs.
type Entry struct {
	ID string // id in the published feed
	// Digest distinguishes versions of an entry as long as there are archives: it must not depend
	// on how documents are written. Printed distinguishes them by their element, see [Printed]; it
	// is needed only for a restored ledger, and may be empty otherwise.
	Digest, Printed string
	Origin          Origin
	Updated         time.Time
}

// Origin identifies an entry in its own feed, whatever id it is published under. Neither field may
// contain white space or a dot.
type Origin struct{ Feed, Entry string }

func (o Origin) known() bool { return o != Origin{} }

// is reports whether digest is a digest of the entry.
func (e Entry) is(digest string) bool {
	return digest == e.Digest || e.Printed != "" && digest == e.Printed
}

// Anew reports whether parts of the ledger were restored from documents, so that [Entry.Printed] is
// needed.
func (l *Ledger) Anew() bool {
	for _, n := range l.lines {
		if strings.HasPrefix(n.Digest, printed) || strings.HasPrefix(n.digest, printed) {
			return true
		}
	}
	return false
}

// line is the record of a published entry.
type line struct {
	Entry       // as in its archive; else as last published
	archive int // 0 if it is in no archive
	// gone is set for an entry that was withdrawn before it was archived. Its id stays reserved, as
	// a digest: the ledger is served with the documents, and must not reveal what was withdrawn.
	gone bool
	// revised is set if the subscription document had another version than the archive: the one
	// with digest and updated.
	revised bool
	digest  string
	updated time.Time
}

// hidden returns the id that replaces that of a withdrawn entry.
func hidden(id string) string { return "sha256:" + checksum([]byte("withdrawn "+id)) }

// lookup returns the line of an entry, nil if it was not published.
func (l *Ledger) lookup(id string) *line {
	if n := l.lines[id]; n != nil {
		return n
	}
	if n := l.lines[hidden(id)]; n != nil && n.gone {
		return n
	}
	return nil
}

// last returns the version that was last published.
func (n *line) last() (digest string, updated time.Time) {
	if n.revised {
		return n.digest, n.updated
	}
	return n.Digest, n.Updated
}

// Ledger is the record of the published entries of a feed. The zero value has none.
type Ledger struct {
	Self   string // URL of the subscription document
	Format string // format of the documents
	// Count is the number of archives that were made, including removed ones: the number of the
	// newest.
	Count int

	lines    map[string]*line // by id
	byOrigin map[Origin]*line
}

// magic begins the text of a ledger; the number is the version of the format.
const magic = "lektor archives 1"

// Parse parses the text that [Ledger.Bytes] returns. It returns an error if the text is damaged or
// not a ledger.
func Parse(text []byte) (*Ledger, error) {
	body, sum, ok := bytes.Cut(text, []byte("\nsum\t"))
	if !ok || checksum(append(bytes.Clone(body), '\n')) != strings.TrimSuffix(string(sum), "\n") {
		return nil, errors.New("it is damaged")
	}
	head, rest, _ := strings.Cut(string(body), "\n")
	f := strings.Split(head, "\t")
	if len(f) != 4 || f[0] != magic {
		return nil, errors.New("it has another format")
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
			return nil, errors.New("the number of the archive is invalid")
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

// Bytes returns the ledger as text: a line for the feed (format, URL of the subscription document,
// number of archives), one for each entry, and a checksum; fields are separated by tabs. The fields
// of an entry are the number of its archive (with "+" if it was revised since; "-" if it is in
// none, "x" if it was withdrawn before that), the digest, the origin or "-", the time of its
// update, and its id in quotes. For a revised entry, digest and time are followed, after a comma,
// by those of the version last published; for a withdrawn entry the id is a digest. Equal ledgers
// have equal texts.
func (l *Ledger) Bytes() []byte {
	all := make([]*line, 0, len(l.lines))
	for _, n := range l.lines {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *line) int {
		// Entries in no archive come last, as they change most.
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

// put adds a line, and replaces one with the same id.
func (l *Ledger) put(n *line) {
	if l.lines == nil {
		l.lines, l.byOrigin = map[string]*line{}, map[Origin]*line{}
	}
	n.Printed = ""
	// RSS loses fractions of a second, so a restored ledger would differ from the lost one.
	n.Updated, n.updated = n.Updated.Truncate(time.Second), n.updated.Truncate(time.Second)
	l.drop(l.lookup(n.ID))
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

// Archive records the next archive with its entries, and returns its number.
func (l *Ledger) Archive(list []Entry) int {
	l.Count++
	l.Recover(l.Count, list)
	return l.Count
}

// Recover records the entries found in the archive with a number. An entry in several archives
// belongs to the last.
func (l *Ledger) Recover(number int, list []Entry) {
	l.Count = max(l.Count, number)
	for _, e := range list {
		n := l.lookup(e.ID)
		if n != nil && n.archive > number {
			continue
		}
		if n != nil && !e.Origin.known() {
			e.Origin = n.Origin
		}
		l.put(&line{Entry: e, archive: number})
	}
}

// Subscribe records the subscription document: the entries of list at the indexes in plan.
func (l *Ledger) Subscribe(list []Entry, plan []int) {
	subscribed := map[string]bool{}
	for _, i := range plan {
		subscribed[list[i].ID] = true
	}
	var gone []*line
	for _, n := range l.lines {
		if n.archive == 0 && !n.gone && !subscribed[n.ID] {
			gone = append(gone, n)
		}
	}
	for _, n := range gone {
		l.drop(n)
		updated := *n
		updated.ID, updated.gone = hidden(n.ID), true
		l.put(&updated)
	}
	for _, e := range list {
		n := l.lookup(e.ID)
		switch {
		case n != nil && n.archive > 0:
			updated := *n
			updated.Origin = e.Origin
			if e.is(n.Digest) {
				updated.Digest = e.Digest
			}
			if subscribed[e.ID] {
				updated.revised, updated.digest, updated.updated = true, e.Digest, e.Updated
			}
			l.put(&updated)
		case subscribed[e.ID]:
			l.put(&line{Entry: e})
		}
	}
}

// RecoverSubscription records the entries found in a subscription document. newest is the number of
// its newest archive; entries in a later archive were moved there before the document was written.
func (l *Ledger) RecoverSubscription(newest int, list []Entry) {
	l.Count = max(l.Count, newest)
	for _, e := range list {
		switch n := l.lookup(e.ID); {
		case n == nil:
			l.put(&line{Entry: e})
		case n.archive > 0 && n.archive <= newest:
			n.revised, n.digest, n.updated = true, e.Digest, e.Updated.Truncate(time.Second)
		}
	}
}

// latest is the last time that RFC 3339 can express.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// Updated returns the time of the update to publish for an entry. Readers use the version
// updated last (section 4.2), in any document, so a new version must be later than the
// published one: if its own time is not later, the result is one second after the published
// time.
func (l *Ledger) Updated(e Entry) time.Time {
	n := l.lookup(e.ID)
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

// Newest returns the latest update of an archived entry, zero if there is none.
func (l *Ledger) Newest() time.Time {
	var t time.Time
	for _, n := range l.lines {
		if n.archive > 0 && n.Updated.After(t) {
			t = n.Updated
		}
	}
	return t
}
