package index

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/lektordir"
)

// Check brings the index up to date and then compares it with the directory: every
// entry is read, and looked for by each of its words. Problem is told each difference.
// The error is why it could not be compared.
func (x *Index) Check(ctx context.Context, progress func(done, total int), problem func(string)) (entries int, err error) {
	if !x.Exists() {
		return 0, command.Hint(errors.New("there is no index"), "lektor-view index builds one")
	}
	s, err := x.open()
	if err != nil {
		return 0, err
	}
	defer s.close()
	if err := s.refresh(ctx, time.Time{}); err != nil {
		return 0, err
	}
	r := s.c.query("PRAGMA quick_check(1)")
	for r.next() {
		if text := r.text(0); text != "ok" {
			problem("the file is damaged: " + text)
		}
	}
	refs, err := x.dir.List(ctx, lektordir.ListOptions{AllVersions: true, Withdrawn: true})
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	_ = err // what is no entry is in neither
	shown, err := x.dir.List(ctx, lektordir.ListOptions{Withdrawn: true})
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	_ = err
	isShown := make(map[lektordir.Ref]bool, len(shown))
	for _, ref := range shown {
		isShown[ref] = true
	}
	b, known := newBag(nil), s.vocabulary()
	for i, ref := range refs {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if why := s.differs(ref, isShown[ref], b, known); why != "" && !s.moved(ref) {
			problem(ref.Path() + ": " + why)
		}
		if progress != nil {
			progress(i+1, len(refs))
		}
	}
	if n, ok := s.c.one("SELECT count(*) FROM entry WHERE listed > 0"); ok && int(n.int(0)) > len(shown) {
		problem(fmt.Sprintf("the index has %d entries, the directory %d", n.int(0), len(shown)))
	}
	if n, ok := s.c.one("SELECT count(*), coalesce(sum(length(folded)), 0) FROM pending"); ok && s.backlog() != (backlog{n.int(0), n.int(1)}) {
		problem(fmt.Sprintf("%d entries wait for the words, and %d are said to", n.int(0), s.backlog().entries))
	}
	return len(refs), s.c.err
}

// moved reports whether an entry is not where it was listed any more.
func (s *session) moved(ref lektordir.Ref) bool {
	now, err := s.x.dir.Resolve(ref.Path())
	return err != nil || now != ref
}

// differs tells how the index differs from an entry, "" if it does not.
func (s *session) differs(ref lektordir.Ref, shown bool, b *bag, known *vocabulary) string {
	f := s.feeds[ref.Feed]
	if f == nil {
		return "the index does not have its feed"
	}
	r := s.c.query("SELECT id, dir, name, info, listed, date, dated, title, author, more FROM entry WHERE dir >> 1 = ? AND key = ?", f.id, keyOf(ref))
	var id int64
	var listed int64
	var odd bool
	var kept string
	for r.next() {
		if at, ok := s.ref(r.int(1), r.blob(2), r.blob(3), r.null(3)); ok && at == ref {
			id, listed, odd = r.int(0), r.int(4), r.null(5)
			kept = string(r.blob(7)) + "\x00" + string(r.blob(8)) + "\x00" + string(r.blob(9))
		}
	}
	d, there := read(s.x.dir, ref, b)
	switch {
	case !there:
		return ""
	case id == 0:
		return "the index does not have it"
	case shown != (listed > 0):
		return "another version of it is shown"
	case odd != d.odd:
		return "what is missing of it has come, or gone"
	case odd:
		return ""
	case kept != d.entry.Title+"\x00"+d.entry.Author+"\x00"+string(d.more()):
		return "title, author, categories or enclosures are others"
	}
	if folded, waits := s.waiting()[id]; waits {
		if string(folded) != d.folded {
			return "its text is another"
		}
		return ""
	}
	for len(d.words) > 0 {
		n := min(len(d.words), 32)
		parts := make([]string, n)
		for i, w := range d.words[:n] {
			if !known.has(w) {
				return "the vocabulary lacks a word of it"
			}
			parts[i] = quoted(w)
		}
		d.words = d.words[n:]
		if found, ok := s.c.one("SELECT rowid FROM words WHERE words MATCH ? AND rowid = ?", strings.Join(parts, " AND "), id); s.c.err == nil && (!ok || found.int(0) != id) {
			return "some of its words are missing"
		}
	}
	return ""
}
