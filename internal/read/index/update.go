package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeds/feedstate"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// refresh brings the file up to date, and leaves a transaction open in which it is
// read. After the deadline, unless that is zero, it keeps what it has done, and the
// error is errBehind.
func (s *session) refresh(ctx context.Context, deadline time.Time) error {
	for {
		err := s.refreshOnce(ctx, deadline)
		if err != errAgain {
			return err
		}
	}
}

func (s *session) refreshOnce(ctx context.Context, deadline time.Time) error {
	s.complaints = nil
	s.c.exec("BEGIN")
	s.load()
	dirty, err := s.survey(ctx)
	if err != nil {
		return err
	}
	changed, grown := s.compare(ctx)
	if s.c.err != nil {
		return s.c.err
	}
	if !dirty && len(changed) == 0 && grown.last == 0 {
		return nil
	}
	was := s.dataVersion()
	s.c.exec("COMMIT")
	s.c.exec("BEGIN IMMEDIATE")
	if s.c.err != nil {
		return s.c.err
	}
	// If another process wrote to the index meanwhile, survey once more, also what it read
	// while that was written.
	if s.dataVersion() != was {
		s.load()
		if _, err = s.survey(ctx); err != nil {
			return err
		}
		changed, grown = s.compare(ctx)
	}
	u := s.update(ctx, deadline)
	if err := u.run(changed, grown); err != nil {
		if s.c.err == nil {
			s.c.exec("ROLLBACK")
		}
		return err
	}
	s.c.exec("COMMIT")
	s.wrote = true
	if s.c.err == nil && u.behind {
		return errBehind
	}
	s.c.exec("BEGIN")
	// The first look in it is what makes it one moment.
	s.c.query("SELECT count(*) FROM meta").drain()
	return s.c.err
}

// update is the work of one refresh.
type update struct {
	*session
	ctx      context.Context
	deadline time.Time
	behind   bool

	lists    map[int64]*dirList
	affected map[int64]*feed // keys of entries whose versions have changed
	links    map[int64]bool  // links of entries that came, left, or are listed otherwise
	arrivals []arrival
	words    map[string]struct{} // words of new entries, not yet in the vocabulary
	common   map[string]struct{}
	young    bool // some came that may be still being written
	done     int
	total    int
}

// update begins one, in a transaction that may write.
func (s *session) update(ctx context.Context, deadline time.Time) *update {
	u := &update{session: s, ctx: ctx, deadline: deadline, lists: map[int64]*dirList{}, affected: map[int64]*feed{},
		links: map[int64]bool{}, words: map[string]struct{}{}}
	s.loadNext()
	if r, ok := s.c.meta("common"); ok {
		u.common = wordSet(string(r.blob(0)))
	}
	return u
}

// listed is an entry in a directory: what its name and inode make together, and its id.
type listed struct {
	hash uint64
	id   uint32
}

// dirList is what the index has of a directory.
type dirList struct {
	f       *feed
	place   int
	entries []listed
	stamp   stamp.Stamp
	gone    []uint32
	touched bool // to be written
}

const listedSize = 12

func (s *session) readList(f *feed, place int) *dirList {
	l := &dirList{f: f, place: place}
	if f.id == 0 {
		return l
	}
	if r, ok := s.c.one("SELECT list FROM names WHERE dir = ?", dirID(f, place)); ok {
		for b := r.blob(0); len(b) >= listedSize; b = b[listedSize:] {
			l.entries = append(l.entries, listed{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])})
		}
	}
	return l
}

func (s *session) writeList(l *dirList) {
	slices.SortFunc(l.entries, func(a, b listed) int { return cmp.Compare(a.hash, b.hash) })
	b := make([]byte, 0, listedSize*len(l.entries))
	for _, e := range l.entries {
		b = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, e.hash), e.id)
	}
	s.c.exec("INSERT OR REPLACE INTO names (dir, list) VALUES (?, ?)", dirID(l.f, l.place), b)
	s.c.exec("UPDATE feed SET "+lektordir.Place(l.place).String()+" = ? WHERE id = ?", []byte(l.stamp), l.f.id)
	l.f.stamps[l.place] = l.stamp
}

// arrival is a name that the index does not have in its place.
type arrival struct {
	ref  lektordir.Ref
	ino  uint64
	hash uint64
	dir  bool // and not a link
	list *dirList
}

func nameHash(n name) uint64 { return mix(hash(offset, n.name) ^ mix(n.ino)) }

// keyOf is what versions of an entry have in common, and an entry in two places.
func keyOf(r lektordir.Ref) int64 {
	return int64(mix(hash(hash(offset, r.Feed)^'/', cmp.Or(r.Identity(), r.Unique))))
}

// run brings the file up to date with the directories.
func (u *update) run(changed []int64, grown span) error {
	if grown.last > 0 {
		u.c.exec("UPDATE entry SET young = 0 WHERE id BETWEEN ? AND ? AND young = 1 AND ctime <= ?", grown.first,
			grown.last, grown.ctime)
	}
	feeds := slices.SortedFunc(maps.Values(u.feeds), func(a, b *feed) int { return cmp.Compare(a.hash, b.hash) })
	if u.common == nil {
		if err := u.findCommon(feeds); err != nil {
			return err
		}
	}
	if u.progress != nil {
		for _, f := range feeds {
			if u.dirty(f, inNew) || u.dirty(f, inCur) {
				u.total += u.estimate(f)
			}
		}
	}
	u.total += len(changed)
	u.forget(changed)
	for _, f := range feeds {
		if u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		if u.late() {
			u.behind = true
			break
		}
		if err := u.feed(f); err != nil {
			return err
		}
		if err := u.keep(); err != nil {
			return err
		}
	}
	if err := u.settle(); err != nil {
		return err
	}
	if u.tops != nil && !u.behind {
		for i, key := range []string{"new", "cur"} {
			u.c.setMeta("top "+key, []byte(u.tops[i]))
		}
	}
	return u.c.err
}

// keep commits the entries that a build has read, if they are many: so they are not lost, and
// memory is bounded.
func (u *update) keep() error {
	if len(u.arrivals) >= batch {
		if err := u.settle(); err != nil {
			return err
		}
		if u.deadline.IsZero() && !u.commitBatch() {
			return errAgain
		}
	}
	return u.c.err
}

// late reports whether the deadline has passed.
func (u *update) late() bool { return !u.deadline.IsZero() && time.Now().After(u.deadline) }

// commitBatch commits the work done so far. It returns false if another process has written since,
// because the data in memory then differs from the file.
func (u *update) commitBatch() bool {
	was := u.dataVersion()
	u.c.exec("COMMIT")
	u.c.exec("BEGIN IMMEDIATE")
	return u.c.err != nil || u.dataVersion() == was
}

// dataVersion changes when another connection has written.
func (s *session) dataVersion() int64 {
	if r, ok := s.c.one("PRAGMA data_version"); ok {
		return r.int(0)
	}
	return 0
}

// errAgain means that an update must start again.
var errAgain = errors.New("another process has written to the index")

// batch is the number of entries that are read before the index is written; a build commits them
// then.
const batch = 2048

// estimate is about how many entries are to be read of a feed.
func (u *update) estimate(f *feed) int {
	n := 0
	for place := range 2 {
		var st unix.Stat_t
		if u.dirty(f, place) && unix.Stat(u.x.dir.Join(lektordir.Place(place).String(), f.hash), &st) == nil {
			n += max(int(st.Nlink)-2, 0)
		}
	}
	return n
}

// forget removes entries from the index, so that they are read again.
func (u *update) forget(ids []int64) {
	gone := map[*dirList]map[uint32]bool{}
	for _, id := range ids {
		r, ok := u.c.one("SELECT dir, key FROM entry WHERE id = ?", id)
		if !ok {
			continue
		}
		f := u.byID[r.int(0)>>1]
		if f == nil {
			continue
		}
		l := u.list(f, int(r.int(0)&1))
		if gone[l] == nil {
			gone[l] = map[uint32]bool{}
		}
		gone[l][uint32(id)] = true
		u.delete(id, r.int(1), f)
	}
	for l, ids := range gone {
		l.entries = slices.DeleteFunc(l.entries, func(e listed) bool { return ids[e.id] })
		l.touched, l.f.stamps[l.place] = true, ""
	}
}

// list returns what the index has of a directory, as this update leaves it.
func (u *update) list(f *feed, place int) *dirList {
	l := u.lists[dirID(f, place)]
	if l == nil {
		l = u.readList(f, place)
		u.lists[dirID(f, place)] = l
	}
	return l
}

func (u *update) delete(id, key int64, f *feed) {
	u.c.exec("DELETE FROM words WHERE rowid = ?", id)
	r, _ := u.c.one("DELETE FROM entry WHERE id = ? RETURNING link", id)
	u.links[r.int(0)] = true
	u.affected[key] = f
}

// feed compares the directories of a feed that have changed with what the index has of
// them. new/ comes first, as what is moved meanwhile is better seen twice than not at
// all.
func (u *update) feed(f *feed) error {
	if !u.dirty(f, inNew) && !u.dirty(f, inCur) && !u.dirty(f, ofList) {
		return nil
	}
	if f.id == 0 {
		if f.now[inNew] == stamp.Absent && f.now[inCur] == stamp.Absent {
			return nil
		}
		u.c.exec("INSERT INTO feed (hash) VALUES (?)", []byte(f.hash))
		r, _ := u.c.one("SELECT last_insert_rowid()")
		if u.c.err != nil {
			return u.c.err
		}
		f.id = r.int(0)
		u.byID[f.id] = f
	}
	if u.dirty(f, ofList) {
		u.complete(f)
	}
	found, sure, err := u.listFeed(f)
	if err != nil {
		return err
	}
	if !sure {
		u.behind = true
	}
	var changed []*dirList
	for place, of := range found {
		if of == nil {
			continue
		}
		l := u.list(f, place)
		l.stamp, l.touched = of.stamp, true
		u.compare(l, of)
		changed = append(changed, l)
	}
	for _, l := range changed {
		for _, id := range l.gone {
			u.gone(l, int64(id))
		}
		l.gone = nil
	}
	return u.c.err
}

// compare finds the names that were added to a directory, and those that were removed.
func (u *update) compare(l *dirList, found *listing) {
	known := make(map[uint64]uint32, len(l.entries))
	for _, e := range l.entries {
		known[e.hash] = e.id
	}
	kept := make([]listed, 0, len(found.names))
	for _, n := range found.names {
		ref, err := u.session.parse(l.f, l.place, n)
		if err != nil {
			u.complaints = append(u.complaints, err)
			l.stamp = "" // so that the next query complains, too
			continue
		}
		h := nameHash(n)
		if id, ok := known[h]; ok {
			kept = append(kept, listed{h, id})
			delete(known, h)
			continue
		}
		a := arrival{ref: ref, ino: n.ino, hash: h, dir: n.kind == kindDir, list: l}
		if id, ok := u.moved(&a); ok {
			kept = append(kept, listed{h, uint32(id)})
			continue
		}
		u.arrivals = append(u.arrivals, a)
	}
	for _, id := range known {
		l.gone = append(l.gone, id)
	}
	l.entries = kept
}

// moved looks for an entry that the index has elsewhere in the feed, and notes where
// it is now. Its rename changed the ctime, so a thorough update reads it again.
func (u *update) moved(a *arrival) (id int64, ok bool) {
	if !a.dir || u.thorough {
		return 0, false
	}
	key := keyOf(a.ref)
	r := u.c.query("SELECT id, dir, name, ino FROM entry WHERE dir >> 1 = ? AND key = ?", a.list.f.id, key)
	for r.next() {
		if !ok && string(r.blob(2)) == a.ref.Unique && uint64(r.int(3)) == a.ino {
			id, ok = r.int(0), true
		}
	}
	if ok {
		unread, marked := flagBits(a.ref)
		u.c.exec("UPDATE entry SET dir = ?, info = ?, unread = ?, marked = ? WHERE id = ?",
			dirID(a.list.f, a.list.place), infoOf(a.ref), unread, marked, id)
		u.affected[key] = a.list.f
	}
	return id, ok
}

// gone removes an entry that is no longer in a directory, unless it was moved.
func (u *update) gone(l *dirList, id int64) {
	r, ok := u.c.one("SELECT dir, key FROM entry WHERE id = ?", id)
	if !ok || r.int(0) != dirID(l.f, l.place) {
		return
	}
	if slices.ContainsFunc(l.entries, func(e listed) bool { return int64(e.id) == id }) {
		return // it has other flags
	}
	// It was seen in both places, as it was moved while they were read, and was taken to
	// be in this one.
	other := u.list(l.f, 1-l.place)
	if slices.ContainsFunc(other.entries, func(e listed) bool { return int64(e.id) == id }) {
		other.entries = slices.DeleteFunc(other.entries, func(e listed) bool { return int64(e.id) == id })
		other.stamp, other.touched = "", true
		u.behind = true
	}
	u.delete(id, r.int(1), l.f)
}

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

// keepList keeps the stamp of the list of a feed's document.
func (s *session) keepList(f *feed, now stamp.Stamp) {
	s.c.exec("UPDATE feed SET complete = ? WHERE id = ?", []byte(now), f.id)
	f.stamps[ofList] = now
}

// complete takes note that another set of entries is in the document of a feed.
func (u *update) complete(f *feed) {
	u.keepList(f, u.x.rule.Begin(u.src, f.now[ofList:], feedstate.CompletePath(f.hash)).End()[0])
	for place := range 2 {
		for _, e := range u.list(f, place).entries {
			if r, ok := u.c.one("SELECT key FROM entry WHERE id = ?", int64(e.id)); ok {
				u.affected[r.int(0)] = f
			}
		}
	}
}

// settle reads the new entries, and writes all changes.
func (u *update) settle() error {
	if err := u.read(); err != nil {
		return err
	}
	u.relist()
	for _, l := range u.lists {
		if l.touched {
			u.writeList(l)
		}
	}
	clear(u.lists)
	u.addWords(u.words)
	clear(u.words)
	u.c.setMeta("next", u.next)
	if now, ok := upTime(); ok && u.young {
		u.c.setMeta("young", int64(now))
	}
	return u.c.err
}

// read reads the new entries, on all processors, until the deadline.
func (u *update) read() error {
	if len(u.arrivals) == 0 {
		return nil
	}
	bags := newBags(u.common)
	for from := 0; from < len(u.arrivals); from += readAtOnce {
		if u.ctx.Err() != nil {
			return context.Cause(u.ctx)
		}
		part := u.arrivals[from:min(from+readAtOnce, len(u.arrivals))]
		if u.late() {
			u.behind = true
			for _, a := range u.arrivals[from:] {
				a.list.stamp = ""
			}
			break
		}
		docs := make([]*doc, len(part))
		begun := u.x.rule.Now()
		share(bags, len(part), func(i int, b *bag) { docs[i] = u.readOne(part[i], b) })
		for i, d := range docs {
			if d == nil {
				part[i].list.stamp = "" // it is somewhere else by now
				continue
			}
			u.insert(part[i], d, begun)
		}
		if u.c.err != nil {
			return u.c.err
		}
		if u.done += len(part); u.progress != nil {
			u.progress(u.done, max(u.total, u.done))
		}
	}
	u.arrivals = nil
	return nil
}

// Pairs are kept of the words that are most frequent in a sample of the entries, which
// is of many feeds, as each has its own language and matter.
const (
	commonFeeds = 64
	commonEach  = 16   // entries of each
	commonFrom  = 128  // entries, or there is no sample
	commonWords = 1024 // words
)

// findCommon finds the frequent words once there are enough entries that are to be read.
func (u *update) findCommon(feeds []*feed) error {
	var fresh []*feed
	for _, f := range feeds {
		if u.dirty(f, inNew) || u.dirty(f, inCur) {
			fresh = append(fresh, f)
		}
	}
	var failed error
	u.chooseCommon(func(yield func([]string) bool) {
		b := newBag(nil)
		for i := range min(len(fresh), commonFeeds) {
			f := fresh[i*len(fresh)/min(len(fresh), commonFeeds)]
			for place := range 2 {
				l, err := u.session.list(f, place)
				if err != nil {
					failed = err
					return
				}
				for k := range min(len(l.names), commonEach) {
					if u.late() || u.ctx.Err() != nil {
						failed = context.Cause(u.ctx)
						return
					}
					ref, err := u.session.parse(f, place, l.names[k*len(l.names)/min(len(l.names), commonEach)])
					if err != nil {
						continue
					}
					if d, ok := read(u.x.dir, ref, b); ok && !yield(d.words) {
						return
					}
				}
			}
		}
	})
	return failed
}

// chooseCommon takes the words that are in most of some entries, if these are enough.
func (u *update) chooseCommon(sample iter.Seq[[]string]) {
	in := map[string]int{}
	entries := 0
	for words := range sample {
		entries++
		for _, w := range words {
			in[w]++
		}
	}
	if entries < commonFrom {
		return
	}
	words := slices.SortedFunc(maps.Keys(in), func(a, b string) int {
		return cmp.Or(cmp.Compare(in[b], in[a]),
			strings.Compare(a, b))
	})
	words = words[:min(len(words), commonWords)]
	slices.Sort(words)
	text := strings.Join(words, "\n")
	u.common = wordSet(text)
	u.c.setMeta("common", []byte(text))
	u.c.setMeta("paired", u.next)
}

// wordSet returns the set of words in a text that has one on each line.
func wordSet(text string) map[string]struct{} {
	set := map[string]struct{}{}
	for w := range strings.SplitSeq(text, "\n") {
		set[w] = struct{}{}
	}
	return set
}

// readOne reads an entry that has come, or follows it where it has gone since; nil for
// one that is nowhere.
func (u *update) readOne(a arrival, b *bag) *doc {
	d, ok := read(u.x.dir, a.ref, b)
	if ok {
		return d
	}
	ref, err := u.x.dir.Resolve(a.ref.Path())
	if err != nil || ref == a.ref || ref.Unique != a.ref.Unique {
		return nil
	}
	if d, ok = read(u.x.dir, ref, b); !ok {
		return nil
	}
	return d
}

// insert adds an entry that was read then, or later.
func (u *update) insert(a arrival, d *doc, then stamp.Moment) {
	id := u.next
	u.next++
	key := keyOf(a.ref)
	unread, marked := flagBits(a.ref)
	var date, nsec, dated, typ any
	young := int64(0)
	if !d.odd {
		when := a.ref.Delivered()
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
		if d.torn || d.young && !u.whole(d.ctime) {
			young, u.young = 1, true
		}
	}
	// A write to it in the same step of the clock leaves no trace, so it is read again.
	if at := unix.NsecToTimespec(d.ctime); d.ctime != 0 && !then.Settled(stamp.Times{Mtime: at, Ctime: at}) {
		d.ctime--
	}
	u.c.exec(`INSERT INTO entry (id, dir, key, name, info, ino, listed, unread, marked, date, nsec, dated, title, author, type, more, ctime, young, link, first, repeat)
		VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
		id, dirID(a.list.f, a.list.place), key, []byte(a.ref.Unique), infoOf(a.ref), int64(a.ino), unread, marked,
		date, nsec, dated, []byte(d.entry.Title), []byte(d.entry.Author), typ, nullable(d.more()), d.ctime, young,
		d.link, entrystore.First(a.ref, d.entry.Replaces))
	if !d.odd {
		u.c.exec("INSERT INTO words (rowid, text) VALUES (?, ?)", id, d.text)
		for _, w := range d.words {
			if _, ok := u.words[w]; !ok {
				u.words[strings.Clone(w)] = struct{}{} // and not all that it is a part of
			}
		}
	}
	a.list.entries = append(a.list.entries, listed{a.hash, uint32(id)})
	u.affected[key] = a.list.f
}

const htmlType = "text/html"

// nullable returns NULL for an empty value.
func nullable(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

// relist finds out which of the entries with the same key stands for them all, as
// [lektordir.Dir.List] does.
func (u *update) relist() {
	type version struct {
		id     int64
		ref    lektordir.Ref
		odd    bool
		listed int64
	}
	present := map[*feed]map[string]bool{}
	for key, f := range u.affected {
		var all []version
		r := u.c.query("SELECT id, dir, name, info, listed, date FROM entry WHERE dir >> 1 = ? AND key = ?", f.id, key)
		for r.next() {
			if ref, ok := u.ref(r.int(1), r.blob(2), r.blob(3), r.null(3)); ok {
				all = append(all, version{r.int(0), ref, r.null(5), r.int(4)})
			}
		}
		slices.SortFunc(all, func(a, b version) int { return a.ref.Compare(b.ref) })
		for i, v := range all {
			want := int64(listedNot)
			if i == len(all)-1 {
				want = listedShown
				if !u.present(present, f, v.ref) {
					want = listedWithdrawn
				}
				if v.odd {
					want++
				}
			}
			if want != v.listed {
				r, _ := u.c.one("UPDATE entry SET listed = ?, repeat = 0 WHERE id = ? RETURNING link", want, v.id)
				u.links[r.int(0)] = true
			}
		}
	}
	clear(u.affected)
	for link := range u.links {
		u.relink(link)
	}
	clear(u.links)
}

// relink finds out which of the entries with a link are repeats.
func (u *update) relink(link int64) {
	var p entrystore.Repeats
	var changed []int64
	for r := u.c.query("SELECT entry.id, hash, first, repeat FROM entry JOIN feed ON feed.id = dir >> 1 WHERE link = ? AND link != 0 AND listed = 1 ORDER BY first, hash", link); r.next(); {
		if p.Next(string(r.blob(1)), r.int(2)) != (r.int(3) == 1) {
			changed = append(changed, r.int(0))
		}
	}
	for _, id := range changed {
		u.c.exec("UPDATE entry SET repeat = 1 - repeat WHERE id = ?", id)
	}
}

// present reports whether the document of the feed, where it is complete, has the entry.
func (u *update) present(known map[*feed]map[string]bool, f *feed, r lektordir.Ref) bool {
	set, ok := known[f]
	if !ok {
		list, complete, err := u.x.dir.Complete(f.hash)
		// All that is said of the feed may be away now, and come back as it was.
		if now, _ := stamp.Look(u.src, feedstate.CompletePath(f.hash)); err != nil || now != f.stamps[ofList] {
			u.keepList(f, "")
		}
		if err != nil {
			u.complaints = append(u.complaints, err)
		} else if complete {
			set = make(map[string]bool, len(list))
			for _, id := range list {
				set[id] = true
			}
		}
		known[f] = set
	}
	id := r.Identity()
	return set == nil || id == "" || set[id]
}
