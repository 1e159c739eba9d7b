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
	// the flags. The default is the time of delivery in microseconds.
	Key func(lektordir.Ref) uint64
	// Poll is how often Changed receives a value if changes are not reported; 0 means never.
	Poll time.Duration
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
	events *watch.Events
	hosts  *hosts

	mu      sync.Mutex
	last    *Snapshot
	began   time.Time // when the call that made last began to look
	tops    [3]identity
	known   map[string]*known // by hash
	stale   map[*known]bool   // those that may differ from last
	unsure  bool              // changes were taken that are not in stale
	numbers atomic.Uint32     // numbers that feeds were given
}

// known is what the catalogue knows of a feed.
type known struct {
	feed  *Feed
	dirs  bool // it has a directory in new/ or cur/
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

// identity is the device and inode of new/, cur/ or src/.
type identity struct{ dev, ino uint64 }

// places are the directories of feeds.
var places = [3]string{"new", "cur", "src"}

// Open begins to know a lektor-dir. The caller must call Close.
func Open(dir *lektordir.Dir, o Options) *Catalog {
	if o.Key == nil {
		o.Key = func(r lektordir.Ref) uint64 { return uint64(max(0, r.Delivered().UnixMicro())) }
	}
	ctx, end := context.WithCancel(context.Background())
	c := &Catalog{
		dir: dir, o: o, rule: stamp.Rule{Shared: dir.Shared()}, end: end, hosts: &hosts{}, last: &Snapshot{},
		known: map[string]*known{}, stale: map[*known]bool{}, unsure: true,
		events: watch.Collect(ctx, o.Poll, o.Notice, o.Broken),
	}
	if o.Compare || c.rule.Shared {
		c.events.Poll(errors.New("other machines may write to the file system"))
	}
	return c
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
func (c *Catalog) Now(ctx context.Context) (*Snapshot, error) {
	asked := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.After(asked) {
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
	if err := c.find(ctx, at); err != nil {
		return c.last, err
	}
	if err := c.read(ctx, at); err != nil {
		return c.last, err
	}
	c.began = began
	return c.last, nil
}

// find finds the feeds that may have changed.
func (c *Catalog) find(ctx context.Context, at int) error {
	all := c.unsure
	c.unsure = true
	changed := c.events.Take()
	all = all || changed[""] || c.events.Polling()
	list := all
	for dir := range changed {
		list = !c.touched(dir) || list
	}
	for i, name := range places {
		var st unix.Stat_t
		if err := unix.Fstatat(at, name, &st, 0); err != nil {
			return &os.PathError{Op: "stat", Path: c.dir.Join(name), Err: err}
		}
		if now := (identity{uint64(st.Dev), uint64(st.Ino)}); now != c.tops[i] {
			// It is another directory, perhaps by a mount or a symbolic link.
			if err := cmp.Or(c.events.Add(c.dir.Path()), c.events.Add(c.dir.Join(name))); err != nil {
				return err
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
	if itsNames || itsAbout {
		c.stale[k] = true
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
	return &Feed{Hash: hash, number: c.numbers.Add(1) - 1, hosts: c.hosts}
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

// read reads the feeds that may have changed, and makes the next snapshot.
func (c *Catalog) read(ctx context.Context, at int) error {
	stale := slices.Collect(maps.Keys(c.stale))
	failed := make([]error, len(stale))
	err := workers.ForEach(ctx, len(stale), func(i int) { failed[i] = c.readFeed(ctx, at, stale[i]) })
	var changed []*Feed
	for _, k := range stale {
		if k.parts[names].stale || k.parts[about].stale {
			continue
		}
		delete(c.stale, k)
		if k.feed.About == nil && !k.dirs {
			delete(c.known, k.feed.Hash)
			k.feed = &Feed{Hash: k.feed.Hash, number: noNumber}
		}
		changed = append(changed, k.feed)
	}
	c.last = c.last.with(changed, c.o.Key)
	return errors.Join(append(failed, err)...)
}

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
		if k.feed.gone > len(k.feed.names)/2+orderBlock {
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
