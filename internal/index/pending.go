package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"
)

// To put an entry's words into FTS5 costs more than to read the entry. So the entries
// that a query finds to have come wait with their texts, which queries look through. When
// they are many, each query puts some of them where they belong once it is answered: the
// more wait, the more of them, so that no query does much and what waits stays bounded
// however rarely somebody asks. FTS5 writes anew what it has, part after part, and that
// is done in the same steps, or it would come at once.

const (
	// waitFactor is by how many times more may wait than do without being worked off,
	// before whatever comes is paid for at once.
	waitFactor = 16
	// waitSize is how many bytes of texts are as good as Options.Pending entries.
	waitSize = 2 << 20
	// stepPart is of what waits the part that a step takes, but leastStep entries at
	// least, and stepSize bytes of texts at most.
	stepPart, leastStep, stepSize = 64, 8, 256 << 10
	// mergedPages is how many pages of FTS5 are written anew for an entry.
	mergedPages = 2
	// workStep is how many entries, or pages, are worked off before others may write.
	workStep = 256
)

// waiting gives the texts of the entries that wait, as [doc] has them, by id.
func (s *session) waiting() map[int64][]byte {
	if s.pending == nil {
		s.pending = map[int64][]byte{}
		for r := s.c.query("SELECT id, folded FROM pending"); r.next(); {
			s.pending[r.int(0)] = r.blob(1)
		}
	}
	return s.pending
}

// backlog is how much waits.
type backlog struct{ entries, bytes int64 }

// backlog gives what the file says; to count would read it all.
func (s *session) backlog() backlog {
	var b backlog
	if r, ok := s.c.meta("waiting"); ok && len(r.blob(0)) == 16 {
		b.entries, b.bytes = int64(binary.LittleEndian.Uint64(r.blob(0))), int64(binary.LittleEndian.Uint64(r.blob(0)[8:]))
	}
	return b
}

func (s *session) setBacklog(b backlog) {
	v := binary.LittleEndian.AppendUint64(nil, uint64(max(b.entries, 0)))
	s.c.setMeta("waiting", binary.LittleEndian.AppendUint64(v, uint64(max(b.bytes, 0))))
}

// over reports whether that is more than so many times what waits without being worked
// off.
func (b backlog) over(o Options, factor int64) bool {
	return b.entries > factor*int64(o.Pending) || b.bytes > factor*waitSize
}

// waitNot takes an entry out of those that wait.
func (u *update) waitNot(id int64) {
	if r, ok := u.c.one("SELECT length(folded) FROM pending WHERE id = ?", id); ok {
		u.waits.entries--
		u.waits.bytes -= r.int(0)
		u.c.exec("DELETE FROM pending WHERE id = ?", id)
	}
}

// admit puts of what waits the oldest into words: so many, or fewer where their texts
// are long. It tells how many.
func (u *update) admit(most, size int64) (admitted int, err error) {
	if u.common == nil {
		u.commonOfWaiting()
	}
	type text struct {
		id     int64
		folded string
	}
	b := newBag(u.common)
	for most > 0 && size > 0 && u.c.err == nil && u.ctx.Err() == nil {
		var some []text
		for r := u.c.query("SELECT id, folded FROM pending ORDER BY id LIMIT ?", min(most, 16)); r.next(); {
			some = append(some, text{r.int(0), string(r.blob(1))})
		}
		if len(some) == 0 {
			u.waits = backlog{}
			break
		}
		for _, t := range some {
			words, text := b.of(t.folded)
			u.addText(t.id, words, text)
			u.c.exec("DELETE FROM pending WHERE id = ?", t.id)
			admitted++
			most--
			size -= int64(len(t.folded))
			u.waits.entries--
			u.waits.bytes -= int64(len(t.folded))
		}
	}
	u.pending = nil
	u.putWords()
	return admitted, cmp.Or(context.Cause(u.ctx), u.c.err)
}

// commonOfWaiting finds the frequent words in what waits, where the index was begun with
// too few entries to tell.
func (u *update) commonOfWaiting() {
	b := newBag(nil)
	u.chooseCommon(func(yield func([]string) bool) {
		r := u.c.query("SELECT folded FROM pending ORDER BY id LIMIT ?", commonFeeds*commonEach)
		defer r.close()
		for r.next() {
			words, _ := b.of(string(r.blob(0)))
			if !yield(words) {
				return
			}
		}
	})
}

// step does a part of what queries leave for later, if there is enough of it. Whatever
// is in its way, a process that writes or a disk that is full, it is left for another
// time. No transaction is open, before and after.
func (s *session) step() {
	// Whoever has waited for what has come does not wait for this as well.
	factor := int64(1)
	if s.wrote {
		factor = waitFactor / 2
	}
	if s.c.err != nil || !s.backlog().over(s.x.o, factor) {
		return
	}
	s.c.exec("BEGIN IMMEDIATE")
	u := s.update(context.Background(), time.Time{})
	n, err := u.admit(max(u.waits.entries/stepPart, leastStep), stepSize)
	if err != nil {
		return // what is not committed has not happened
	}
	s.setBacklog(u.waits)
	s.merge(n * mergedPages)
	s.c.exec("COMMIT")
}

// work does all that queries have left for later.
func (s *session) work(ctx context.Context) error {
	for s.backlog() != (backlog{}) && s.c.err == nil {
		s.c.exec("BEGIN IMMEDIATE")
		u := s.update(ctx, time.Time{})
		if _, err := u.admit(workStep, workStep<<12); err != nil {
			if s.c.err == nil {
				s.c.exec("ROLLBACK")
			}
			return err
		}
		s.setBacklog(u.waits)
		s.c.exec("COMMIT")
	}
	for ctx.Err() == nil && s.c.err == nil && s.merge(workStep) {
	}
	if len(s.fresh()) > freshSize {
		s.c.exec("BEGIN IMMEDIATE")
		s.tidyWords()
		s.c.exec("COMMIT")
	}
	return cmp.Or(context.Cause(ctx), s.c.err)
}

// putWords puts the words of what came into the vocabulary.
func (u *update) putWords() {
	words := slices.Sorted(maps.Keys(u.words))
	clear(u.words)
	u.addWords(words, u.common)
}

// addText puts the words of an entry into the index.
func (u *update) addText(id int64, words []string, text string) {
	u.c.exec("INSERT INTO words (rowid, text) VALUES (?, ?)", id, text)
	for _, w := range words {
		if _, ok := u.words[w]; !ok {
			u.words[strings.Clone(w)] = struct{}{} // and not all that it is a part of
		}
	}
}

// waits looks for a needle in what waits.
func (n *needle) waits(text string) {
	for id, folded := range n.s.waiting() {
		if bytes.Contains(folded, []byte(text)) {
			n.found(id)
		}
	}
}
