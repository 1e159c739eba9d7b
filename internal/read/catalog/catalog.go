// Package catalog knows which entries are in a lektor-dir, for programs that stay. It keeps the
// names of all entries in memory, and what lists show of feeds, and reads again only feeds that may have
// changed.
//
// It finds them by events of the kernel, or by comparing times; see [Catalog.Now].
package catalog

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/files/watch"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [Open].
type Options struct {
	// Key returns the key of an entry, by which snapshots order entries. It does not depend on the place or
	// the flags. If it is nil, there is no order: Find and Between of snapshots find no entry.
	Key func(lektordir.Ref) uint64
	// Poll is how often Changed receives a value if changes are not reported; 0 means never. In this interval it
	// also receives one if new/, cur/ or src/ is missing or has been replaced, which the kernel does not
	// report of a file system that is mounted or unmounted.
	Poll time.Duration
	// Also holds other directories, relative to the lektor-dir, after whose changes Changed receives a value.
	// Those that are missing at the start are not watched.
	Also []string
	// Notice takes a line of text if changes are not reported.
	Notice func(string)
	// Broken takes a panic of a goroutine; without it, one ends the process.
	Broken func(*workers.Panic)
	// Compare compares times even if changes would be reported.
	Compare bool
}

// Catalog knows a lektor-dir. It is safe for concurrent use.
type Catalog struct {
	dir    *lektordir.Dir
	o      Options
	rule   stamp.Rule
	end    context.CancelFunc
	events *watch.Watcher

	mu      sync.Mutex
	last    *Snapshot
	began   time.Time         // when the call that made last began to look
	tops    [3]os.FileInfo    // of the places
	known   map[string]*known // by hash
	stale   map[*known]bool   // those that may differ from last
	unsure  bool              // changes were taken that are not in stale
	turn    int               // number of the last search for changes
	numbers atomic.Uint32     // numbers that feeds were given
}

// known is what the catalogue knows of a feed.
type known struct {
	feed  *Feed
	dirs  bool // it has a directory in new/ or cur/
	seen  bool // it was read before
	since int  // the turn in which it was found to be stale
	parts [2]part
}

// part is a part of a feed that is read at once.
type part struct {
	stamps []stamp.Stamp // taken only if changes are not reported
	stale  bool          // it may have changed since
}

const (
	names = iota
	about
)

// places are the directories of feeds.
var places = [3]string{"new", "cur", "src"}

// Open begins to know a lektor-dir. The caller must call Close.
func Open(dir *lektordir.Dir, o Options) *Catalog {
	ctx, end := context.WithCancel(context.Background())
	c := &Catalog{
		dir: dir, o: o, rule: stamp.Rule{Shared: dir.Shared()}, end: end, last: &Snapshot{},
		known: map[string]*known{}, stale: map[*known]bool{}, unsure: true,
		events: watch.New(ctx, o.Poll, o.Notice, o.Broken),
	}
	if o.Compare || c.rule.Shared {
		c.events.Poll(errors.New("other machines may write to the file system"))
	}
	if o.Poll > 0 {
		c.events.Go(func() { c.look(ctx) })
	}
	return c
}

// look wakes the receiver of Changed if new/, cur/ or src/ is missing or has been replaced.
func (c *Catalog) look(ctx context.Context) {
	for ticker := time.NewTicker(c.o.Poll); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
		}
		for i, name := range places {
			now, _ := os.Stat(c.dir.Join(name))
			c.mu.Lock()
			same := os.SameFile(now, c.tops[i])
			c.mu.Unlock()
			if !same {
				c.events.Rouse()
			}
		}
	}
}

// Close ends the catalogue. Snapshots stay valid.
func (c *Catalog) Close() {
	c.end()
	c.events.Wait()
}

// Changed receives a value after something has changed, or may have. [Catalog.Now] then returns it.
func (c *Catalog) Changed() <-chan struct{} { return c.events.Wake() }

// Now returns the lektor-dir as it is now, or was while the call ran: every rename, delivery and setting
// that ended before the call is in it.
//
// The directories are watched, from before they are listed. Now waits until the events of all changes
// before the call have come, and reads the feeds that they are about. If changes are not reported, because
// other machines may write to the file system or the kernel's limit of watches is reached, Now compares
// the stamps of all feeds. If events were lost, it reads all feeds again.
//
// If some feeds cannot be read, Now returns them as they were before, and an error; it tries them again the
// next time.
func (c *Catalog) Now(ctx context.Context) (*Snapshot, error) { return c.Part(ctx, Part{}) }

// Part is which of the feeds that may have changed are read at once. The zero value is all.
type Part struct {
	// Recheck compares the stamps of all feeds, also if no change was reported.
	Recheck bool
	// Enough, if it is not nil, reports whether the other feeds can wait, after the feeds of so many
	// entries were read. A feed counts as at least a few entries. Enough is called concurrently.
	Enough func(entries int) bool
	// First holds the hashes of feeds that do not wait.
	First map[string]bool
}

// leastEntries is how many entries a feed counts at least, since it costs something to open.
const leastEntries = 20

// Part is like [Catalog.Now], but some feeds may wait for a later call: Changed then receives a value
// at once. Feeds that changed first are read first; at the start, these are the feeds to which an entry was
// delivered last. Feeds in First are as they are now, unless Part returns an error; if changes are not
// reported, the others are as they were at the last interval of Options.Poll.
func (c *Catalog) Part(ctx context.Context, part Part) (*Snapshot, error) {
	asked := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.After(asked) && !part.Recheck {
		return c.last, nil // another call began to look after this one came
	}
	began := time.Now()
	if err := c.events.CatchUp(ctx); err != nil {
		return c.last, err
	}
	at, err := unix.Open(c.dir.Path(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return c.last, &os.PathError{Op: "open", Path: c.dir.Path(), Err: err}
	}
	defer unix.Close(at)
	if err := c.find(ctx, at, part); err != nil {
		return c.last, err
	}
	if err := c.read(ctx, at, part); err != nil {
		return c.last, err
	}
	switch {
	case len(c.stale) > 0:
		c.events.Rouse()
	case part.Enough == nil || !c.events.Polling():
		c.began = began
	}
	return c.last, nil
}

// find finds the feeds that may have changed.
func (c *Catalog) find(ctx context.Context, at int, part Part) error {
	c.turn++
	all := c.unsure
	c.unsure = true
	changed := c.events.Take()
	all = all || changed[""] || part.Recheck || part.Enough == nil && c.events.Polling()
	list := all
	if c.events.Polling() {
		for hash := range part.First {
			if k := c.known[hash]; k != nil {
				c.touch(k, true, true)
			} else {
				list = true // it may have come
			}
		}
	}
	for dir := range changed {
		list = !c.touched(dir) || list
	}
	for i, name := range places {
		now, err := os.Stat(c.dir.Join(name))
		if err != nil {
			return err
		}
		if !os.SameFile(now, c.tops[i]) {
			// It is another directory, perhaps by a mount or a symbolic link.
			if err := cmp.Or(c.events.Add(c.dir.Path()), c.events.Add(c.dir.Join(name))); err != nil {
				return err
			}
			for _, dir := range c.o.Also {
				_ = c.events.Add(c.dir.Join(dir))
			}
			for _, k := range c.known {
				c.touch(k, true, true)
			}
			c.tops[i], list = now, true
		}
	}
	if all {
		feeds := slices.Collect(maps.Values(c.known))
		needed := make([][2]bool, len(feeds))
		if err := workers.ForEach(ctx, len(feeds), func(i int) {
			for p := range needed[i] {
				needed[i][p] = !c.events.Polling() || c.begin(at, feeds[i], p).Needed(feeds[i].parts[p].stamps)
			}
		}); err != nil {
			return err
		}
		for i, k := range feeds {
			c.touch(k, needed[i][names], needed[i][about])
		}
	}
	if list {
		if err := c.list(); err != nil {
			return err
		}
	}
	c.unsure = false
	return nil
}

// touch records that parts of a feed may have changed.
func (c *Catalog) touch(k *known, itsNames, itsAbout bool) {
	k.parts[names].stale = k.parts[names].stale || itsNames
	k.parts[about].stale = k.parts[about].stale || itsAbout
	if (itsNames || itsAbout) && !c.stale[k] {
		c.stale[k], k.since = true, c.turn
	}
}

// touched records that a directory has changed. It reports whether it is one of a feed that is known.
func (c *Catalog) touched(dir string) bool {
	place, rest, _ := strings.Cut(strings.TrimPrefix(dir, c.dir.Path()+"/"), "/")
	hash, _, _ := strings.Cut(rest, "/")
	k := c.known[hash]
	if k == nil {
		return false
	}
	c.touch(k, place != "src" || strings.HasPrefix(history.CompletePath(hash), rest), place == "src")
	return true
}

// list lists the feeds in new/, cur/ and src/. Feeds that it did not know, or that came to one of them,
// may have changed.
func (c *Catalog) list() error {
	for _, place := range places {
		hashes, err := dirfs.FeedsIn(c.dir.Join(place))
		if err != nil {
			return err
		}
		for _, hash := range hashes {
			k, ok := c.known[hash]
			if !ok {
				k = &known{feed: c.blank(hash)}
				c.known[hash] = k
			}
			if !ok || !c.events.Watches(c.dir.Join(place, hash)) {
				c.touch(k, true, true)
			}
		}
	}
	return nil
}

// blank returns a feed without entries, with a number of its own.
func (c *Catalog) blank(hash string) *Feed {
	return &Feed{Hash: hash, number: c.numbers.Add(1) - 1, catalog: c}
}

// begin begins to read a part of a feed. It looks at stamps only if changes are not reported.
func (c *Catalog) begin(at int, k *known, part int) *stamp.Reading {
	hash := k.feed.Hash
	if !c.events.Polling() {
		return c.rule.Begin(at, nil)
	}
	if part == names {
		return c.rule.Begin(at, k.parts[part].stamps, "new/"+hash, "cur/"+hash, "src/"+history.CompletePath(hash))
	}
	files, _ := subscriptions.AboutPaths(hash)
	return c.rule.Begin(at, k.parts[part].stamps, files...)
}

// read reads the feeds that may have changed, or a part of them, and makes the next snapshot.
func (c *Catalog) read(ctx context.Context, at int, part Part) error {
	stale, err := c.inTurn(ctx, at, part)
	failed, waits := make([]error, len(stale)), make([]bool, len(stale))
	var entries, turn atomic.Int64
	err = errors.Join(err, workers.ForEach(ctx, len(stale), func(int) {
		i := turn.Add(1) - 1
		k := stale[i]
		if !part.First[k.feed.Hash] && part.Enough != nil && part.Enough(int(entries.Load())) {
			waits[i] = true
			return
		}
		failed[i] = c.readFeed(ctx, at, k)
		entries.Add(int64(max(leastEntries, len(k.feed.names))))
	}))
	var changed []*Feed
	missing := 0
	for i, k := range stale {
		if k.parts[names].stale || k.parts[about].stale {
			if waits[i] && !k.seen {
				missing++
			}
			continue
		}
		delete(c.stale, k)
		k.seen = true
		if k.feed.About == nil && !k.dirs {
			delete(c.known, k.feed.Hash)
			k.feed = &Feed{Hash: k.feed.Hash, number: noNumber}
		}
		changed = append(changed, k.feed)
	}
	if c.last = c.last.with(changed, c.o.Key); c.last.Missing != missing {
		next := *c.last
		next.Missing = missing
		c.last = &next
	}
	return errors.Join(append(failed, err)...)
}

// inTurn returns the feeds that may have changed, in the order in which they are read.
func (c *Catalog) inTurn(ctx context.Context, at int, part Part) ([]*known, error) {
	stale := slices.Collect(maps.Keys(c.stale))
	if part.Enough == nil {
		return stale, nil
	}
	type waiting struct {
		*known
		delivered int64 // the mtime of its directory in new/, if it was never read
	}
	turns := make([]waiting, len(stale))
	err := workers.ForEach(ctx, len(stale), func(i int) {
		turns[i].known = stale[i]
		if !stale[i].seen {
			_, times := stamp.Look(at, "new/"+stale[i].feed.Hash)
			turns[i].delivered = unix.TimespecToNsec(times.Mtime)
		}
	})
	slices.SortFunc(turns, func(a, b waiting) int {
		x, y := a.known, b.known
		if first := part.First[x.feed.Hash]; first != part.First[y.feed.Hash] {
			if first {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.since, y.since), cmp.Compare(b.delivered, a.delivered),
			strings.Compare(x.feed.Hash, y.feed.Hash))
	})
	for i, t := range turns {
		stale[i] = t.known
	}
	return stale, err
}

// manyGone is how many entries more than half of all that a feed had may be gone before it is numbered anew.
const manyGone = 1024

// readFeed reads the parts of a feed that may have changed.
func (c *Catalog) readFeed(ctx context.Context, at int, k *known) error {
	hash := k.feed.Hash
	_, dirs := subscriptions.AboutPaths(hash)
	for _, dir := range append(dirs, "src/"+path.Dir(history.CompletePath(hash))) {
		_ = c.events.Add(c.dir.Join(dir)) // those that are missing come with a change of another
	}
	inNew, inCur := c.events.Add(c.dir.Join("new", hash)), c.events.Add(c.dir.Join("cur", hash))
	k.dirs = inNew == nil || inCur == nil
	if part := &k.parts[names]; part.stale {
		reading := c.begin(at, k, names)
		refs, err := c.dir.List(ctx, lektordir.ListOptions{Feeds: []string{hash}})
		if err = failure(err); err != nil {
			return err
		}
		k.feed = k.feed.with(refs)
		if k.feed.gone > len(k.feed.names)/2+manyGone {
			blank := c.blank(hash)
			blank.About = k.feed.About
			k.feed = blank.with(refs)
		}
		part.stamps, part.stale = reading.End(), false
	}
	if part := &k.parts[about]; part.stale {
		reading := c.begin(at, k, about)
		if a := subscriptions.ReadAbout(c.dir, hash); !reflect.DeepEqual(a, k.feed.About) {
			changed := *k.feed
			changed.About = a
			k.feed = &changed
		}
		part.stamps, part.stale = reading.End(), false
	}
	return nil
}

// failure returns an error of a listing without those about malformed names.
func failure(err error) error {
	return errors.Join(slices.DeleteFunc(humanize.Errors(err), func(err error) bool {
		return errors.As(err, new(*lektordir.MalformedError))
	})...)
}
