package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// lookupLimit is the maximum number of entries that are fetched one by one. If more match, the
// entries are scanned in the order of their dates.
const lookupLimit = 3000

// lookupLimit returns the limit for this query. If only the newest are wanted, entries with a
// frequent word are soon met in the order of dates: with n of all the entries, some fifty
// are among the first 50·all/n.
func (f *search) lookupLimit() int {
	if f.w.Enough == nil {
		return lookupLimit
	}
	return min(lookupLimit, max(100, int(math.Sqrt(3*float64(f.size)))))
}

// Complaints returns the errors that listing the lektor-dir would report.
func (v *View) Complaints() []error { return v.s.complaints }

// Find calls yield for every entry that the query may select, until yield returns false. Entries
// that lists do not show, or that w excludes, are not yielded. If w.Enough is set, Find walks large
// sets newest first, and now and then asks Enough whether the rest can be skipped. The error is the
// context's, or one for [Index.Failed].
func (v *View) Find(ctx context.Context, w entrystore.Wanted, yield func(entrystore.Hit) bool) error {
	f := &search{View: v, ctx: ctx, w: w, yield: yield, asks: w.Query.AsksAbout() || w.Query.AsksNames(),
		onlyUnread: w.OnlyUnread(), skipTrashed: w.SkipTrashed()}
	f.run()
	if v.s.c.err != nil {
		return v.s.c.err
	}
	return f.err
}

// search is a run of Find.
type search struct {
	*View
	ctx    context.Context
	w      entrystore.Wanted
	yield  func(entrystore.Hit) bool
	err    error
	stop   bool
	asked  int
	asks   bool           // the query asks about feeds
	allows map[int64]bool // by id of a feed: the query may select entries of it; nil for all
	// repeats holds the entries that are repeats; nil if the query does not mention them.
	repeats                 idSet
	onlyUnread, skipTrashed bool // as of the selection
}

func (f *search) run() {
	for _, step := range []func(){f.findRepeats, f.odd, f.feedsAllowed, f.listed} {
		if step(); f.stop {
			return
		}
	}
}

// listed yields the entries that lists show.
func (f *search) listed() {
	if f.w.Links != nil {
		var links, ids []int64
		for link := range f.w.Links {
			links = append(links, linkOf(link))
		}
		for r := f.s.c.query("SELECT entry.id FROM json_each(?) AS those CROSS JOIN entry ON link = those.value WHERE link != 0", array(links)); r.next(); {
			ids = append(ids, r.int(0))
		}
		f.fetchAll(ids)
	} else if ids, ok := f.chosen(); ok {
		f.fetchAll(ids)
	} else {
		f.walk()
	}
}

// findRepeats sets the repeats, if the query mentions them. Odd entries may be repeats of others, or have some, so
// with them the directory has to be read.
func (f *search) findRepeats() {
	if !f.w.Query.MentionsRepeat() {
		return
	}
	if _, odd := f.s.c.one("SELECT id FROM entry INDEXED BY entry_odd WHERE listed = 2"); odd {
		f.err, f.stop = errBehind, true
		return
	}
	f.repeats = make(idSet, f.size/64+1)
	for r := f.s.c.query("SELECT id FROM entry INDEXED BY entry_repeat WHERE repeat = 1"); r.next(); {
		f.repeats.add(r.int(0))
	}
}

// repeat returns a function that reports whether an entry is a repeat, nil if the query does not mention them.
func (f *search) repeat(id int64) func() bool {
	if f.repeats == nil {
		return nil
	}
	return func() bool { return f.repeats.has(id) }
}

// fetchAll yields the entries with these ids. If w.Enough is set, more than pace ids come newest
// first.
func (f *search) fetchAll(ids []int64) {
	if f.w.Enough == nil || len(ids) <= pace {
		for _, id := range ids {
			if f.goesOn(); f.stop {
				return
			}
			f.fetch(id, listedShown)
		}
		return
	}
	type dated struct{ id, date int64 }
	list := make([]dated, 0, len(ids))
	for r := f.s.c.query("SELECT entry.id, date FROM json_each(?) AS those CROSS JOIN entry ON entry.id = those.value WHERE listed = 1", array(ids)); r.next(); {
		list = append(list, dated{r.int(0), r.int(1)})
	}
	slices.SortFunc(list, func(a, b dated) int { return cmp.Compare(b.date, a.date) })
	now := f.w.Now.Unix()
	for _, e := range list {
		if f.goesOn(); f.stop || f.asked%pace == 0 && e.date <= now && f.w.Enough(time.Unix(e.date, 0)) {
			return
		}
		f.fetch(e.id, listedShown)
	}
}

// array returns ids as JSON, which is how one statement takes many.
func array(ids []int64) string {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(append(b, ']'))
}

// pace is the number of entries between two checks of the context, or of Enough.
const pace = 64

// goesOn counts an entry, and stops if the context is done.
func (f *search) goesOn() {
	if f.asked++; f.asked%pace == 0 && f.ctx.Err() != nil {
		f.err, f.stop = context.Cause(f.ctx), true
	}
}

// odd yields the entries of which the index has no words, and with w.Withdrawn the withdrawn ones.
func (f *search) odd() {
	r := f.s.c.query("SELECT id FROM entry INDEXED BY entry_odd WHERE listed = 2")
	var ids []int64
	for r.next() {
		ids = append(ids, r.int(0))
	}
	if f.w.Withdrawn() {
		for r = f.s.c.query("SELECT id FROM entry INDEXED BY entry_withdrawn WHERE listed >= 3"); r.next(); {
			ids = append(ids, r.int(0))
		}
	}
	for _, id := range ids {
		if !f.stop {
			f.fetch(id, listedOdd, listedWithdrawn, listedBoth)
		}
	}
}

// about returns the metadata of a feed from src/$feed; nil if its entries may have other metadata.
func (v *View) about(hash string) *lektordir.Feed {
	return v.known.Of(hash, func() *lektordir.Feed {
		if v.x.o.About != nil {
			return v.x.o.About(hash)
		}
		said, err := v.x.dir.ReadFeed(hash)
		if err != nil {
			return nil
		}
		return said
	})
}

// subject is an entry of which only a part is known.
func (f *search) subject(ref lektordir.Ref, unknown query.Unknown) *query.Subject {
	var about *lektordir.Feed
	if f.asks {
		about = f.about(ref.Feed)
	}
	if about == nil {
		unknown |= query.UnknownFeed
	}
	return &query.Subject{Ref: ref, Feed: about, Folders: func() []string { return f.w.Folders(ref.Feed) },
		Unknown: unknown}
}

// feedsAllowed finds the feeds whose entries the query may select.
func (f *search) feedsAllowed() {
	if !f.w.Query.AsksFeeds() {
		return
	}
	feeds := make([]*feed, 0, len(f.s.byID))
	for _, feed := range f.s.byID {
		if !feed.gone() {
			feeds = append(feeds, feed)
		}
	}
	may := make([]bool, len(feeds))
	_ = workers.ForEach(f.ctx, len(feeds), func(i int) {
		ref := lektordir.Ref{Feed: feeds[i].hash}
		may[i] = f.w.Matcher.Match(f.subject(ref, query.UnknownName|query.UnknownState), 0) != query.No
	})
	if f.ctx.Err() != nil {
		f.err, f.stop = context.Cause(f.ctx), true
	}
	f.allows = make(map[int64]bool, len(feeds))
	for i, feed := range feeds {
		f.allows[feed.id] = may[i]
	}
}

// chosen returns the entries that have the words of the query, or are in its feeds; ok is false if
// they are more than the lookupLimit.
func (f *search) chosen() (ids []int64, ok bool) {
	limit := f.lookupLimit()
	size := func(text string) int {
		if n := f.lookup(text); !n.void {
			return n.count
		}
		return limit + 1
	}
	total := 0
	cover := f.w.Matcher.Cover(size)
	for _, c := range cover {
		total += size(c.Text)
	}
	var feeds []int64
	switch {
	case cover != nil && total <= limit:
		for _, c := range cover {
			ids = f.lookup(c.Text).all(ids)
		}
		for id, feed := range f.s.byID {
			if f.named(feed, cover) {
				feeds = append(feeds, id)
			}
		}
	case f.allows != nil:
		total = 0
		for id, may := range f.allows {
			if may {
				feeds = append(feeds, id)
			}
		}
	default:
		return nil, false
	}
	for _, id := range feeds {
		if total += f.count(id); total > limit {
			return nil, false
		}
	}
	return f.withFeeds(ids, feeds), true
}

// named reports whether the feed itself may have a text of cover.
func (f *search) named(feed *feed, cover []query.Needle) bool {
	if feed.gone() || !slices.ContainsFunc(cover, func(c query.Needle) bool { return c.InFeed || c.ByFeed }) {
		return false
	}
	about := f.about(feed.hash)
	if about == nil {
		return true
	}
	for _, c := range cover {
		if c.InFeed && (strings.Contains(query.Fold(about.Name), c.Text) ||
			strings.Contains(query.Fold(about.Alias), c.Text)) ||
			c.ByFeed && strings.Contains(query.Fold(about.Author), c.Text) {
			return true
		}
	}
	return false
}

// count returns the number of entries of a feed in new/ and cur/.
func (f *search) count(feed int64) int {
	r, _ := f.s.c.one("SELECT sum(length(list)) FROM names WHERE dir IN (?, ?)", feed*2, feed*2+1)
	return int(r.int(0)) / listedSize
}

// withFeeds adds the entries of feeds to others, each once.
func (f *search) withFeeds(ids, feeds []int64) []int64 {
	for _, feed := range feeds {
		r := f.s.c.query("SELECT list FROM names WHERE dir IN (?, ?)", feed*2, feed*2+1)
		for r.next() {
			for b := r.blob(0); len(b) >= listedSize; b = b[listedSize:] {
				ids = append(ids, int64(binary.LittleEndian.Uint32(b[8:])))
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// all adds the ids that are found.
func (l *lookup) all(ids []int64) []int64 {
	for i, word := range l.set {
		for word != 0 {
			bit := word & -word
			ids = append(ids, int64(i*64)+int64(bits.TrailingZeros64(bit)))
			word &^= bit
		}
	}
	return ids
}

// columns are the columns that [search.hit] reads.
const columns = "dir, name, info, listed, date, nsec, dated, title, author, type, more"

// everything scans all entries in the order of the table.
func (f *search) everything() {
	what := columns
	if f.w.Want == 0 {
		what = "dir, name, info, listed, NULL, NULL, NULL, NULL, NULL, NULL, NULL"
	}
	r := f.s.c.query("SELECT id, " + what + " FROM entry WHERE listed = 1")
	defer r.close()
	for r.next() {
		if f.goesOn(); f.stop {
			return
		}
		f.hit(r, f.w.Want != 0, listedShown)
	}
}

// walk scans entries in the order of their dates, the newest first.
func (f *search) walk() {
	if f.w.Query.Empty() && f.w.Enough == nil && !f.onlyUnread {
		f.everything()
		return
	}
	from := "entry INDEXED BY entry_date WHERE listed = 1"
	switch {
	case f.w.Query.OnlyRepeats():
		from = "entry INDEXED BY entry_repeat WHERE repeat = 1"
	case f.onlyUnread || f.w.Query.OnlyUnread():
		from = "entry INDEXED BY entry_unread WHERE listed = 1 AND unread = 1"
	case f.w.Query.OnlyMarked():
		from = "entry INDEXED BY entry_marked WHERE listed = 1 AND marked = 1"
	}
	now := f.w.Now.Unix()
	span := f.w.Matcher.Span()
	low, high := int64(-1<<62), now
	if !span.From.IsZero() {
		low = span.From.Unix()
	}
	if !span.To.IsZero() && span.To.Unix() < high {
		high = span.To.Unix()
	}
	// An entry dated in the future has the time of its delivery.
	f.dated(from+" AND date > ?", true, now)
	if !f.stop {
		f.dated(from+" AND date BETWEEN ? AND ?", false, low, high)
	}
}

// dated scans entries of the table, the newest first.
func (f *search) dated(from string, future bool, args ...any) {
	r := f.s.c.query("SELECT id, date, dir, info FROM "+from+" ORDER BY date DESC", args...)
	defer r.close()
	for r.next() {
		if !f.stop {
			f.goesOn()
		}
		if f.stop {
			return
		}
		if f.asked%pace == 0 && f.w.Enough != nil && !future && f.w.Enough(time.Unix(r.int(1), 0)) {
			f.stop = true
			return
		}
		dir := r.int(2)
		if f.allows != nil && !f.allows[dir>>1] {
			continue
		}
		ref, ok := f.s.ref(dir, nil, r.blob(3), r.null(3))
		if !ok {
			f.inconsistent()
			return
		}
		if !f.shows(ref) {
			continue
		}
		if !f.w.Query.Empty() {
			s := f.subject(ref, query.UnknownName)
			s.Words, s.Repeat = f.knows(r.int(0)), f.repeat(r.int(0))
			if f.w.Matcher.Match(s, 0) == query.No {
				continue
			}
		}
		f.fetch(r.int(0), listedShown)
	}
}

// shows reports whether a list shows an entry with these flags.
func (f *search) shows(ref lektordir.Ref) bool {
	return (!f.onlyUnread || ref.Unread()) && (!f.skipTrashed || !ref.Trashed())
}

// knows returns a function that reports, from the index, whether an entry has a text.
func (f *search) knows(id int64) func(string) query.Verdict {
	return func(text string) query.Verdict {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.lookup(text).has(id)
	}
}

// fetch yields an entry that is listed in one of some ways.
func (f *search) fetch(id int64, listed ...int64) {
	r, ok := f.s.c.one("SELECT id, "+columns+" FROM entry WHERE id = ?", id)
	if !ok {
		f.inconsistent()
		return
	}
	f.hit(r, true, listed...)
}

// inconsistent ends the search, since the tables do not fit each other.
func (f *search) inconsistent() {
	f.s.c.fail(errInconsistent)
	f.stop = true
}

// hit yields the entry of a row, which has its id and then the columns, if it is listed
// in one of some ways; its fields if they are there.
func (f *search) hit(r *rows, whole bool, listed ...int64) {
	ref, ok := f.s.ref(r.int(1), r.blob(2), r.blob(3), r.null(3))
	if !ok {
		f.inconsistent()
		return
	}
	how := r.int(4)
	if !slices.Contains(listed, how) || !f.shows(ref) {
		return
	}
	h := entrystore.Hit{Ref: ref, Repeat: f.repeat(r.int(0))}
	h.Feed = f.about(ref.Feed)
	if whole && (how == listedShown || how == listedWithdrawn) {
		h.Have, h.Words = fields, f.knows(r.int(0))
		e := &h.Entry
		e.Title, e.Author = string(r.blob(8)), string(r.blob(9))
		if r.int(7) == 1 {
			e.PubDate = time.Unix(r.int(5), r.int(6)).UTC()
		}
		if e.Type = string(r.blob(10)); r.int(10) == 1 {
			e.Type = htmlType
		}
		if more := r.blob(11); len(more) > 0 {
			var x extras
			if json.Unmarshal(more, &x) != nil {
				f.inconsistent()
				return
			}
			e.Categories, e.Enclosures, e.Replaces, e.InReplyTo = x.Categories, x.Enclosures, x.Replaces, x.InReplyTo
			e.Duration, e.Episode, e.Season, e.Elements = x.Duration, x.Episode, x.Season, x.Elements
		}
	}
	if !f.yield(h) {
		f.stop = true
	}
}
