package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/lektordir"
)

// library is a lektor-dir, with the names of its entries in memory. Each request sees each rename that
// ended before it began.
type library struct {
	dir     *lektordir.Dir
	index   *index.Index
	names   *catalog.Catalog // by the ids of items
	editing sync.Mutex       // held while subscriptions are changed
	marking sync.Mutex       // held while entries are marked
	marks   undo.Chain       // the journal of the last marks

	unsynced sync.Mutex
	moved    []string // directories with renames that are not synced, see [Server.syncSoon]

	last      atomic.Pointer[catalog.Snapshot] // of the last request
	seen      readHere
	elsewhere elsewhere
}

// indexBudget is how long a search may take to bring the index up to date before it reads all entries. The server
// waits longer than a command does, since each later search is then fast.
const indexBudget = 5 * time.Second

// Entry is an entry and the id of its item.
type Entry struct {
	Key greader.ID
	catalog.Entry
}

// library returns the library at a path, which it opens when it is first asked for.
func (s *Server) library(path string) (*library, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.libraries[path]; l != nil {
		return l, nil
	}
	dir, err := cmdline.OpenDir(path, &lektordir.Options{Now: s.opts.Now, Sleep: s.opts.Sleep})
	if err != nil {
		return nil, err
	}
	l := &library{dir: dir, names: catalog.Open(dir, catalog.Options{
		// Items with one id get others, so that each has an id of its own. A collision takes two entries of one
		// microsecond, and then happens in 1 of 4 cases.
		Key:    func(r lektordir.Ref) uint64 { return uint64(greader.IDOf(r.Unique, r.Delivered())) },
		Notice: func(text string) { s.s.Report.Warn("%s: %s", path, text) },
	})}
	l.index = index.For(dir, s.s, index.Options{Budget: indexBudget, About: l.about})
	s.libraries[path] = l
	return l, nil
}

// about returns a feed as it was at the last request, nil if it cannot be read.
func (l *library) about(hash string) *lektordir.Feed {
	if s := l.last.Load(); s != nil {
		if f := s.Feed(hash); f != nil && f.About != nil && f.About.Err == nil {
			return f.About.Feed
		}
	}
	return nil
}

// shown reports whether clients see a feed: one that is subscribed to, or has entries that the user or another
// fetcher delivers, but not one that was unsubscribed from.
func shown(f *catalog.Feed) bool {
	return f.About != nil && !f.About.Ended && (f.Shown > 0 || f.About.Subscribed)
}

// Items returns the entries with some ids that clients see.
func (v *View) Items(ids []greader.ID) (list []Entry) {
	for _, id := range ids {
		if e, ok := v.Item(id); ok {
			list = append(list, e)
		}
	}
	return list
}

// Item returns the entry with an id, if clients see it.
func (v *View) Item(id greader.ID) (Entry, bool) {
	e, ok := v.Find(uint64(id))
	return Entry{id, e}, ok && !e.Trashed()
}
