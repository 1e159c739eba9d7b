package index

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// inserter adds entries to the tables.
type inserter struct {
	*session
	next   int64               // id of the next entry
	common map[string]bool     // words whose pairs are kept; nil if there are too few entries
	words  map[string]struct{} // words of new entries, not yet in the vocabulary
}

func (s *session) newInserter() *inserter {
	n := &inserter{session: s, next: s.nextID(), words: map[string]struct{}{}}
	if r, ok := s.c.meta("common"); ok {
		n.common = wordSet(string(r.blob(0)))
	}
	return n
}

// nextID returns the id of the next entry. In a damaged file the last one can be anything.
func (s *session) nextID() int64 {
	r, _ := s.c.one("SELECT max(id) FROM entry")
	return min(max(r.int(0), 0), math.MaxUint32-1) + 1
}

// commonWords is the number of words whose pairs are kept.
const commonWords = 1024

// choose takes the words that are in most entries of a sample.
func (n *inserter) choose(sample [][]string) {
	in := map[string]int{}
	for _, words := range sample {
		for _, w := range words {
			in[w]++
		}
	}
	words := slices.SortedFunc(maps.Keys(in), func(a, b string) int {
		return cmp.Or(cmp.Compare(in[b], in[a]), strings.Compare(a, b))
	})
	text := strings.Join(words[:min(len(words), commonWords)], "\n")
	n.common = wordSet(text)
	n.c.setMeta("common", []byte(text))
	n.c.setMeta("paired", n.next)
}

// wordSet returns the set of words in a text that has one on each line.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.SplitSeq(text, "\n") {
		set[w] = true
	}
	return set
}

// valueColumns are the columns of [values].
const valueColumns = "info, unread, marked, date, nsec, dated, title, author, type, more, link, first"

// values returns the values of an entry that follow from its name and its files alone.
func values(r lektordir.Ref, d *doc) []any {
	unread, marked := flagBits(r)
	var date, nsec, dated, typ any
	if !d.odd {
		when := r.Delivered()
		dated = int64(0)
		if t := d.entry.PubDate; !t.IsZero() {
			when, dated = t, int64(1)
		}
		date, nsec = when.Unix(), int64(when.Nanosecond())
		switch d.entry.Type {
		case "":
		case htmlType:
			typ = int64(1)
		default:
			typ = []byte(d.entry.Type)
		}
	}
	return []any{
		infoOf(r), unread, marked, date, nsec, dated, []byte(d.entry.Title), []byte(d.entry.Author), typ,
		d.more(), d.link, entrystore.First(r, d.entry.Replaces),
	}
}

// insert adds an entry that was read then, or later, and returns its id.
func (n *inserter) insert(a arrival, d *doc, then stamp.Moment) (id int64) {
	id = n.next
	n.next++
	young := int64(0)
	if d.young {
		young = 1
	}
	// A write to it in the same step of the clock leaves no trace, so it is read again.
	if at := unix.NsecToTimespec(d.ctime); d.ctime != 0 && !then.Reliable(stamp.Times{Mtime: at, Ctime: at}) {
		d.ctime--
	}
	n.c.exec("INSERT INTO entry (id, dir, key, name, ino, ctime, young, listed, repeat, "+valueColumns+
		") VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", append([]any{id,
		dirID(a.list.f, a.list.place), keyOf(a.ref), []byte(a.ref.Unique), int64(a.ino), d.ctime, young},
		values(a.ref, d)...)...)
	if !d.odd {
		n.c.exec("INSERT INTO words (rowid, text) VALUES (?, ?)", id, d.text)
		for _, w := range d.words {
			if _, ok := n.words[w]; !ok {
				n.words[strings.Clone(w)] = struct{}{} // and not all that it is a part of
			}
		}
	}
	return id
}

// finish writes the vocabulary.
func (n *inserter) finish() {
	n.addWords(n.words)
	clear(n.words)
}

const htmlType = "text/html"

// infoOf is the info of an entry as the table has it.
func infoOf(r lektordir.Ref) any {
	if r.Place == lektordir.New || r.Bare {
		return nil
	}
	return []byte(r.Info)
}

func flagBits(r lektordir.Ref) (unread, marked int64) {
	if r.Unread() {
		unread = 1
	}
	if strings.Trim(r.Flags(), "S") != "" {
		marked = 1
	}
	return unread, marked
}
