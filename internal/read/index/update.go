package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/lektordir"
)

// refresh brings the file up to date, and leaves a transaction open in which it is read. After the deadline, unless
// that is zero, it keeps what it has done, and the error is errBehind. If thorough is set, it also finds entries of
// which a file was changed in place. It calls report, unless that is nil, with the number of entries that it has read,
// and of all that it has to read.
func (s *session) refresh(ctx context.Context, deadline time.Time, thorough bool, report func(done, total int)) error {
	err := errAgain
	for err == errAgain {
		err = s.refreshOnce(ctx, deadline, thorough, report)
	}
	return err
}

func (s *session) refreshOnce(ctx context.Context, deadline time.Time, thorough bool,
	report func(done, total int)) error {
	s.complaints = nil
	s.c.exec("BEGIN")
	found, err := s.scan(ctx, thorough)
	if err != nil || !found.dirty && len(found.changed) == 0 {
		return err
	}
	was := s.dataVersion()
	s.c.exec("COMMIT")
	s.c.exec("BEGIN IMMEDIATE")
	if s.c.err != nil {
		return s.c.err
	}
	// If another process wrote to the index meanwhile, scan once more, also what it read
	// while that was written.
	if s.dataVersion() != was {
		if found, err = s.scan(ctx, thorough); err != nil {
			return err
		}
	}
	u := &update{session: s, ctx: ctx, deadline: deadline, found: found, progress: progress{report: report},
		lists: map[int64]*dirList{}, inserter: s.newInserter(),
		versions: &versions{session: s, affected: map[int64]*feed{}, links: map[int64]bool{}}}
	if err := u.run(); err != nil {
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
	progress progress

	found    *scan
	lists    map[int64]*dirList
	arrivals []arrival
	versions *versions
	inserter *inserter
}

// progress counts the entries that were read, and reports them.
type progress struct {
	report      func(done, total int) // may be nil
	done, total int
}

func (p *progress) add(n int) {
	if p.done += n; p.report != nil {
		p.report(p.done, max(p.total, p.done))
	}
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

// run brings the file up to date with the directories.
func (u *update) run() error {
	u.c.exec("UPDATE entry SET young = 0 WHERE young = 1 AND ctime < ?", u.found.settled())
	u.progress.total = len(u.found.changed)
	for _, f := range u.feeds {
		if u.progress.report != nil {
			u.progress.total += u.estimate(f)
		}
	}
	u.forget(u.found.changed)
	feeds := slices.SortedFunc(maps.Values(u.feeds), func(a, b *feed) int { return cmp.Compare(a.hash, b.hash) })
	feeds = slices.DeleteFunc(feeds, func(f *feed) bool {
		return !u.dirty(f, inNew) && !u.dirty(f, inCur) && !u.dirty(f, ofList)
	})
	if err := u.findCommon(feeds); err != nil {
		return err
	}
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
	if err := u.finish(); err != nil {
		return err
	}
	if u.found.tops != nil && !u.behind {
		for place, now := range u.found.tops {
			u.c.setMeta("top "+lektordir.Place(place).String(), []byte(now))
		}
	}
	return u.c.err
}

// keep commits the entries that a build has read, if they are many: so they are not lost, and
// memory is bounded. If another process has written meanwhile, the data in memory differs from the file.
func (u *update) keep() error {
	if len(u.arrivals) < batchSize {
		return u.c.err
	}
	if err := u.finish(); err != nil || !u.deadline.IsZero() {
		return err
	}
	was := u.dataVersion()
	u.c.exec("COMMIT")
	u.c.exec("BEGIN IMMEDIATE")
	if u.c.err == nil && u.dataVersion() != was {
		return errAgain
	}
	return u.c.err
}

// late reports whether the deadline has passed.
func (u *update) late() bool { return !u.deadline.IsZero() && time.Now().After(u.deadline) }

// dataVersion changes when another connection has written.
func (s *session) dataVersion() int64 {
	if r, ok := s.c.one("PRAGMA data_version"); ok {
		return r.int(0)
	}
	return 0
}

// errAgain means that an update must start again.
var errAgain = errors.New("another process has written to the index")

// batchSize is the number of entries that are read before the index is written; a build commits them
// then.
const batchSize = 2048

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
	u.versions.links[r.int(0)] = true
	u.versions.affected[key] = f
}

// feed compares the directories of a feed that have changed with what the index has of
// them. new/ comes first, as what is moved meanwhile is better seen twice than not at
// all.
func (u *update) feed(f *feed) error {
	if f.id == 0 {
		if f.gone() {
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
		ref, err := u.parse(l.f, l.place, n)
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
		a := arrival{ref: ref, ino: n.ino, hash: h, dir: n.kind == unix.S_IFDIR, list: l}
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
	if !a.dir || u.found.thorough {
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
		u.versions.affected[key] = a.list.f
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

// complete takes note that another set of entries is in the document of a feed.
func (u *update) complete(f *feed) {
	u.keepList(f, u.x.rule.Begin(int(u.src.Fd()), f.now[ofList:], history.CompletePath(f.hash)).End()[0])
	for place := range 2 {
		for _, e := range u.list(f, place).entries {
			if r, ok := u.c.one("SELECT key FROM entry WHERE id = ?", int64(e.id)); ok {
				u.versions.affected[r.int(0)] = f
			}
		}
	}
}

// finish reads the new entries, and writes all changes.
func (u *update) finish() error {
	if err := u.read(); err != nil {
		return err
	}
	u.versions.list()
	for _, l := range u.lists {
		if l.touched {
			u.writeList(l)
		}
	}
	clear(u.lists)
	u.inserter.finish()
	return u.c.err
}

// read reads the new entries, on all processors, until the deadline.
func (u *update) read() error {
	for len(u.arrivals) > 0 {
		if u.late() {
			u.behind = true
			for _, a := range u.arrivals {
				a.list.stamp = ""
			}
			break
		}
		part := u.arrivals[:min(readAtOnce, len(u.arrivals))]
		docs := make([]*doc, len(part))
		begun := u.x.rule.Now()
		err := workers.ForEach(u.ctx, len(part), func(i int) { docs[i] = u.readOne(part[i].ref) })
		if err != nil {
			return err
		}
		for i, d := range docs {
			a := part[i]
			if d == nil {
				a.list.stamp = "" // it is somewhere else by now
				continue
			}
			d.young = d.torn || d.young && d.ctime >= u.found.settled()
			id := u.inserter.insert(a, d, begun)
			a.list.entries = append(a.list.entries, listed{a.hash, uint32(id)})
			u.versions.affected[keyOf(a.ref)] = a.list.f
		}
		if u.c.err != nil {
			return u.c.err
		}
		u.progress.add(len(part))
		u.arrivals = u.arrivals[len(part):]
	}
	u.arrivals = nil
	return nil
}

// readOne reads an entry that has come, or follows it where it has gone since; nil for
// one that is nowhere.
func (u *update) readOne(ref lektordir.Ref) *doc {
	d := read(u.x.dir, ref, u.inserter.common)
	if d != nil {
		return d
	}
	now, err := u.x.dir.Resolve(ref.Path())
	if err != nil || now == ref || now.Unique != ref.Unique {
		return nil
	}
	return read(u.x.dir, now, u.inserter.common)
}

// Pairs are kept of the words that are most frequent in a sample of the entries, which
// is of many feeds, as each has its own language and matter.
const (
	commonFeeds  = 64
	commonSample = 1024 // entries
	commonFrom   = 128  // entries, or there is no sample
)

// findCommon finds the frequent words once there are enough entries that are to be read.
func (u *update) findCommon(feeds []*feed) error {
	if u.inserter.common != nil || len(feeds) == 0 {
		return nil
	}
	var hashes []string
	for i := range min(len(feeds), commonFeeds) {
		hashes = append(hashes, feeds[i*len(feeds)/min(len(feeds), commonFeeds)].hash)
	}
	// A feed that cannot be listed is reported when it is read.
	refs, _ := u.x.dir.List(u.ctx, lektordir.ListOptions{Feeds: hashes})
	n := min(len(refs), commonSample)
	sample := make([][]string, n)
	err := workers.ForEach(u.ctx, n, func(i int) {
		if d := read(u.x.dir, refs[i*len(refs)/n], nil); d != nil && !u.late() {
			sample[i] = d.words
		}
	})
	if n >= commonFrom && !u.late() {
		u.inserter.choose(sample)
	}
	return err
}
