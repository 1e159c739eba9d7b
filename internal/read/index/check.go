package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/lektordir"
)

// Check brings the index up to date and then compares it with the directory: every
// entry is read, and searched for by each of its words. Check calls problem for each difference,
// except in entries that changed since the index was brought up to date. The error says why the
// comparison failed.
func (x *Index) Check(ctx context.Context, report func(done, total int), problem func(string)) (entries int,
	err error) {
	if !x.Exists() {
		return 0, cmdline.Hint(errors.New("there is no index"), "lektor-view index builds one")
	}
	n, err := x.compare(ctx, report, problem)
	if !transient(err) {
		problem("the index cannot be used: " + err.Error())
		err = nil
	}
	return n, err
}

func (x *Index) compare(ctx context.Context, report func(done, total int), problem func(string)) (entries int,
	err error) {
	s, err := x.open()
	if err != nil {
		return 0, err
	}
	defer s.close()
	begun := x.o.Clock()
	if err := s.refresh(ctx, time.Time{}, false, nil); err != nil {
		return 0, err
	}
	n, _ := s.c.one("SELECT sum(length(list)) FROM names")
	c := &check{session: s, problem: problem, begun: begun, seen: map[*feed]bool{}, words: map[string][]uint32{},
		refs: map[uint32]lektordir.Ref{}, progress: progress{report: report, total: int(n.int(0)) / listedSize}}
	// Malformed entries are not in the index. Every listing reports them, so they are ignored here.
	for refs := range x.dir.ListFeeds(ctx, lektordir.ListOptions{AllVersions: true, Withdrawn: true}) {
		if len(refs) > 0 {
			c.feed(ctx, refs)
		}
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	c.postings()
	for _, f := range s.byID {
		if !c.seen[f] {
			c.count(f, 0)
		}
	}
	return c.progress.done, s.c.err
}

// check is a comparison of the index with the directory. It holds one feed at a time.
type check struct {
	*session
	problem  func(string)
	begun    time.Time // before the index was brought up to date
	progress progress
	seen     map[*feed]bool

	// words holds, for each word, the ids of the entries whose postings have to be checked.
	// Checking many entries at once is much faster than one by one.
	words map[string][]uint32
	pairs int // number of pairs of a word and an entry
	refs  map[uint32]lektordir.Ref
}

// feed compares the entries of a feed.
func (c *check) feed(ctx context.Context, refs []lektordir.Ref) {
	shown, _ := c.x.dir.List(ctx, lektordir.ListOptions{Feeds: []string{refs[0].Feed}, Withdrawn: true})
	isShown := make(map[lektordir.Ref]bool, len(shown))
	for _, ref := range shown {
		isShown[ref] = true
	}
	for part := range slices.Chunk(refs, readAtOnce) {
		docs := make([]*doc, len(part))
		if workers.ForEach(ctx, len(part), func(i int) { docs[i] = read(c.x.dir, part[i], nil) }) != nil {
			return
		}
		for i, ref := range part {
			if why := c.differs(ref, docs[i], isShown[ref]); why != "" && !c.changed(ref) {
				c.problem(ref.Path() + ": " + why)
			}
		}
		c.progress.add(len(part))
	}
	if f := c.feeds[refs[0].Feed]; f != nil {
		c.count(f, len(shown))
	}
}

// count compares the numbers of entries that are shown of a feed.
func (c *check) count(f *feed, shown int) {
	c.seen[f] = true
	n, ok := c.c.one("SELECT count(*) FROM entry WHERE dir >> 1 = ? AND listed > 0", f.id)
	if ok && int(n.int(0)) != shown && c.asBefore(f) {
		c.problem(fmt.Sprintf("feed %s: the index has %d entries, the directory %d", f.hash, n.int(0), shown))
	}
}

// asBefore reports whether the directories of a feed are unchanged since the index read them, so
// that it must have all their entries.
func (c *check) asBefore(f *feed) bool {
	for place, was := range f.now[:ofList] {
		if now, _ := stamp.Look(unix.AT_FDCWD, c.x.dir.Join(lektordir.Place(place).String(), f.hash)); now != was {
			return false
		}
	}
	now, _ := stamp.Look(int(c.src.Fd()), history.CompletePath(f.hash))
	return now == f.now[ofList] && now == f.stamps[ofList]
}

// changed reports whether an entry was added, moved, or written to since the index was brought up
// to date.
func (c *check) changed(ref lektordir.Ref) bool {
	if f := c.feeds[ref.Feed]; f != nil && !c.asBefore(f) {
		return true
	}
	_, t := stamp.Look(unix.AT_FDCWD, c.x.dir.Path()+"/"+ref.Path())
	return t == (stamp.Times{}) || !time.Unix(t.Ctime.Unix()).Before(c.begun)
}

// differs returns how the index differs from an entry, "" if it does not. d is the entry as it was
// read, nil if the entry is gone.
func (c *check) differs(ref lektordir.Ref, d *doc, shown bool) string {
	if d == nil {
		return ""
	}
	f := c.feeds[ref.Feed]
	if f == nil {
		return "the index does not have its feed"
	}
	r := c.c.query("SELECT id, dir, name, listed, "+valueColumns+" FROM entry WHERE dir >> 1 = ? AND key = ?", f.id,
		keyOf(ref))
	var id, listed int64
	var kept string
	for r.next() {
		if at, ok := c.ref(r.int(1), r.blob(2), r.blob(4), r.null(4)); ok && at == ref {
			id, listed, kept = r.int(0), r.int(3), fmt.Sprint(r.values[4:])
		}
	}
	switch {
	case id == 0:
		return "the index does not have it"
	case shown != (listed > 0):
		return "another version of it is shown"
	case kept != fmt.Sprint(values(ref, d)):
		return "its flags, date, title or other values differ"
	case d.odd:
		return ""
	}
	c.refs[uint32(id)] = ref
	for _, w := range d.words {
		ids, ok := c.words[w]
		if !ok {
			w = strings.Clone(w) // so that the rest of the text can be freed
		}
		c.words[w] = append(ids, uint32(id))
	}
	if c.pairs += len(d.words); c.pairs > manyPairs {
		c.postings()
	}
	return ""
}

// manyPairs is the number of pairs of word and entry that are checked together. A pair takes about
// ten bytes.
const manyPairs = 1 << 20

// postings compares the words of entries with their words in the index.
func (c *check) postings() {
	bad := map[uint32]string{}
	for w, those := range c.words {
		var ids []uint32 // in ascending order
		c.withWord(w, func(id int64) { ids = append(ids, uint32(id)) })
		for _, id := range those {
			if _, ok := slices.BinarySearch(ids, id); !ok {
				bad[id] = "some of its words are missing"
			}
		}
	}
	forgetKnown(c.session, c.words)
	for _, those := range c.words {
		for _, id := range those {
			bad[id] = "the vocabulary lacks a word of it"
		}
	}
	for _, id := range slices.Sorted(maps.Keys(bad)) {
		if ref := c.refs[id]; c.c.err == nil && !c.changed(ref) {
			c.problem(ref.Path() + ": " + bad[id])
		}
	}
	clear(c.words)
	clear(c.refs)
	c.pairs = 0
}
