package sharer

import (
	"bytes"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unique"

	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// marks are the items for flags of entries, each a line that is parsed when the item is used.
type marks struct {
	ofFeed  map[string]map[string]mark // by feed, then by the rest of the id, see splitID
	stored  map[string]*storedMarks    // by feed: marks of the store that are not in ofFeed yet
	touched map[string]bool            // feeds with marks that the store lacks
	changes []byte                     // lines of these marks, unless these are longer than maxTorn/8
}

// mark is an item as a line of the store, see [appendMark].
type mark struct {
	line  []byte
	newer bool // changed since the last complete document
}

// storedMarks are the lines of the marks of a feed, in the order of the store.
type storedMarks struct{ older, newer lineRuns }

func newMarks() *marks {
	return &marks{ofFeed: map[string]map[string]mark{}, stored: map[string]*storedMarks{}, touched: map[string]bool{}}
}

// flags are the shared flags: seen, flagged, trashed, and the user's own.
const flags = "FSTabcdefghijklmnopqrstuvwxyz"

// stateID returns the id of the item for a flag of an entry.
func stateID(feed, identity string, flag byte) string {
	return feed + ":" + identity + ":" + string(flag)
}

// The places of the parts of an id of [stateID].
const (
	identityAt = 40 + 1
	flagAt     = identityAt + 16 + 1
	stateIDLen = flagAt + 1
)

// splitState splits an id into the arguments of [stateID]. ok is false for an item of
// another program.
func splitState(id string) (feed, identity string, flag byte, ok bool) {
	if len(id) != stateIDLen || id[identityAt-1] != ':' || id[flagAt-1] != ':' ||
		!entryname.IsFeedHash(id[:identityAt-1]) || !entryname.IsIdentity(id[identityAt:flagAt-1]) ||
		strings.IndexByte(flags, id[flagAt]) < 0 {
		return "", "", 0, false
	}
	return id[:identityAt-1], id[identityAt : flagAt-1], id[flagAt], true
}

// splitID returns the two keys of an item in [marks]. The first is "" for an item of another program.
func splitID(id string) (feed, rest string) {
	if feed, _, _, ok := splitState(id); ok {
		return feed, id[identityAt:]
	}
	return "", id
}

// keyOf splits the second key of a mark into the identity and the flag.
func keyOf(rest string) (identity string, flag byte) { return rest[:16], rest[17] }

// load adds the line of a mark, to be parsed when its feed is used.
func (s *marks) load(line []byte) {
	feed, _ := splitID(mark{line: line[len(markWord):]}.id())
	if s.stored[feed] == nil {
		s.stored[feed] = &storedMarks{}
	}
	s.stored[feed].newer.add(line)
}

// of returns the marks of a feed by the rest of their ids.
func (s *marks) of(feed string) map[string]mark {
	if s.stored[feed] != nil {
		s.ofFeed[feed] = map[string]mark{}
		for m := range s.unsorted(feed) {
			s.add(m)
		}
		delete(s.stored, feed)
	}
	return s.ofFeed[feed]
}

// unsorted yields the marks of a feed. It does not parse those of the store, of which one may come more
// than once: the last one counts.
func (s *marks) unsorted(feed string) iter.Seq[mark] {
	return func(yield func(mark) bool) {
		stored := s.stored[feed]
		if stored == nil {
			for _, m := range s.ofFeed[feed] {
				if !yield(m) {
					return
				}
			}
			return
		}
		for i, runs := range []lineRuns{stored.older, stored.newer} {
			for line := range runs.lines(markWord) {
				if !yield(mark{line, i == 1}) {
					return
				}
			}
		}
	}
}

// has reports whether a feed has marks.
func (s *marks) has(feed string) bool { return len(s.ofFeed[feed]) > 0 || s.stored[feed] != nil }

// item returns the item with an id, nil if there is none.
func (s *marks) item(id string) *feedsync.Item {
	feed, rest := splitID(id)
	if m, ok := s.of(feed)[rest]; ok {
		return m.item()
	}
	return nil
}

// isSet reports whether a flag of an entry is set.
func (s *marks) isSet(feed, identity string, flag byte) bool {
	m, ok := s.of(feed)[identity+":"+string(flag)]
	return ok && !m.deleted()
}

// add adds or replaces a mark.
func (s *marks) add(m mark) {
	feed, rest := splitID(m.id())
	if s.ofFeed[feed] == nil {
		s.ofFeed[feed] = map[string]mark{}
	}
	s.ofFeed[feed][strings.Clone(rest)] = m // without the rest of the id in memory
}

// put adds or replaces an item that the store lacks.
func (s *marks) put(it *feedsync.Item) {
	feed, _ := splitID(it.ID)
	m := mark{bytes.Clone(appendMark(nil, it)), true}
	s.of(feed)
	if s.touched[feed] = true; len(s.changes) <= maxTorn/8 {
		s.changes = m.append(s.changes)
	}
	s.add(m)
}

// saved records that the store has all marks.
func (s *marks) saved() { s.changes = nil; clear(s.touched) }

// published records that the complete document has all marks.
func (s *marks) published() {
	for _, stored := range s.stored {
		*stored = storedMarks{older: append(stored.older, stored.newer...)}
	}
	for _, marks := range s.ofFeed {
		for rest, m := range marks {
			m.newer = false
			marks[rest] = m
		}
	}
}

// feeds returns the sorted feeds that have marks.
func (s *marks) feeds() []string { return union(s.ofFeed, s.stored) }

// sorted yields the marks for which is returns true, or all if it is nil, sorted by feed and id, with their
// feeds.
func (s *marks) sorted(is func(mark) bool) iter.Seq2[string, mark] {
	return func(yield func(string, mark) bool) {
		for _, feed := range s.feeds() {
			found := is == nil
			for m := range s.unsorted(feed) {
				if found = found || is(m); found {
					break
				}
			}
			if !found {
				continue
			}
			marks := s.of(feed)
			for _, rest := range slices.Sorted(maps.Keys(marks)) {
				if m := marks[rest]; (is == nil || is(m)) && !yield(feed, m) {
					return
				}
			}
		}
	}
}

// write writes the lines of the marks that changed since the last complete document, or of the others.
func (s *marks) write(w io.Writer, newer bool) {
	var b []byte
	for _, m := range s.sorted(func(m mark) bool { return m.newer == newer }) {
		b = m.append(b[:0])
		_, _ = w.Write(b)
	}
}

// size returns the approximate length of the marks in a document without hidden feeds, in bytes.
func (s *marks) size(newer bool, hidden map[string]bool) (n int) {
	for _, feed := range s.feeds() {
		for m := range s.unsorted(feed) {
			if !hidden[feed] && (m.newer || !newer) {
				n += len(m.line) + 60
			}
		}
	}
	return n
}

// append appends the line of the store.
func (m mark) append(b []byte) []byte { return append(append(append(b, markWord...), m.line...), '\n') }

// field returns a field of the line.
func (m mark) field(n int) []byte {
	rest := m.line
	for range n {
		_, rest, _ = bytes.Cut(rest, []byte{'\t'})
	}
	field, _, _ := bytes.Cut(rest, []byte{'\t'})
	return field
}

func (m mark) id() string { return string(m.field(0)) }

// inConflict reports whether the item is in conflict.
func (m mark) inConflict() bool { return bytes.ContainsAny(m.field(1), "!x") && m.item().Conflict }

// deleted reports whether the item is a tombstone.
func (m mark) deleted() bool {
	flags := m.field(1)
	return bytes.IndexByte(flags, '-') >= 0 || string(flags) == "x" && m.item().Deleted
}

// item parses the item. A line that is invalid, though its checksum is right, counts as the oldest version.
func (m mark) item() *feedsync.Item {
	it, ok := readMark(m.line)
	if !ok {
		it = &feedsync.Item{ID: m.id(), Version: 1, History: []feedsync.Update{{}}, Content: []byte("<item></item>")}
	}
	return it
}

// markWord is the first word of the line of a mark.
const markWord = "mark "

// unescape returns the bytes of a field. It returns the field itself if nothing is escaped.
func unescape(field []byte) []byte {
	if bytes.IndexByte(field, '\\') < 0 {
		return field
	}
	return []byte(textfile.Unescape(field))
}

// appendMark appends the line of a mark without [markWord] and the newline: id, flags, version, updates,
// settled updates and content. If the item has more than that, the line has the flag x and the item as in
// a document.
func appendMark(b []byte, m *feedsync.Item) []byte {
	b = append(append(b, m.ID...), '\t')
	if !m.Flat() {
		return appendField(append(b, "x\t"...), m.Append(nil))
	}
	if m.Deleted {
		b = append(b, '-')
	}
	if m.Conflict {
		b = append(b, '!')
	}
	b = append(strconv.AppendUint(append(b, '\t'), m.Version, 10), '\t')
	b = append(appendUpdates(append(appendUpdates(b, m.History), '\t'), m.Settled), '\t')
	return appendField(b, m.Content)
}

func appendField(b, field []byte) []byte {
	if bytes.ContainsAny(field, "\\\t\n\r") {
		return textfile.AppendField(b, string(field))
	}
	return append(b, field...)
}

// appendUpdates appends updates as seconds/endpoint. An endpoint contains neither space nor
// slash.
func appendUpdates(b []byte, list []feedsync.Update) []byte {
	for i, u := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		if !u.When.IsZero() {
			b = strconv.AppendInt(b, u.When.Unix(), 10)
		}
		b = append(append(b, '/'), u.By...)
	}
	return b
}

// readMark reads the line of [appendMark].
func readMark(line []byte) (*feedsync.Item, bool) {
	f := bytes.SplitN(line, []byte{'\t'}, 6)
	if len(f) == 3 && string(f[1]) == "x" {
		it, err := feedsync.ReadItem(unescape(f[2]))
		return it, err == nil && it.ID == string(f[0])
	}
	if len(f) != 6 {
		return nil, false
	}
	version, err := strconv.ParseUint(string(f[2]), 10, 64)
	history, ok := readUpdates(f[3])
	settled, ok2 := readUpdates(f[4])
	return &feedsync.Item{ID: string(f[0]), Version: version, Deleted: bytes.IndexByte(f[1], '-') >= 0,
		Conflict: bytes.IndexByte(f[1], '!') >= 0, History: history, Settled: settled,
		Content: unescape(f[5])}, ok && ok2 && err == nil && len(history) > 0
}

func readUpdates(field []byte) (out []feedsync.Update, ok bool) {
	for len(field) > 0 {
		var one []byte
		one, field, _ = bytes.Cut(field, []byte{' '})
		when, by, complete := bytes.Cut(one, []byte{'/'})
		if !complete {
			return nil, false
		}
		var u feedsync.Update
		if len(when) > 0 {
			n, err := strconv.ParseInt(string(when), 10, 64)
			if err != nil {
				return nil, false
			}
			u.When = time.Unix(n, 0).UTC()
		}
		u.By = unique.Make(string(by)).Value() // there are few endpoints, so the strings are shared
		out = append(out, u)
	}
	return out, true
}
