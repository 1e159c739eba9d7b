// Package index answers queries about the entries of a lektor-dir without reading it:
// it is a file of SQLite in the user's cache, one for each lektor-dir and machine. The lektor-dir
// stays the truth. The index has the names, the fields that listings show, and the words, but not
// the content.
//
// The index is not notified of changes. Each query compares the [stamp.Stamp] of each directory: if it
// changed, the names in the directory are read, and the entries whose names are new. An entry is
// known by its name and inode while it moves within its feed. Entries rarely change once they are
// delivered, so only [Index.Build] checks whether one did. Odd entries are candidates for every
// query: the caller has to read them.
//
// If the file is locked, or the home read-only, [Index.Look] returns nil, and the directory has to be read. A file
// that fails in any other way, as it is damaged, another program's, or the disk full, is removed, with one warning;
// later queries begin it anew. Nothing guards its bytes: if they are changed, answers may be wrong.
//
// Tokens and the tables: words.go, vocab.go, file.go. Updates: package stamp, scan.go, update.go. Answers: lookup.go,
// search.go.
package index

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// Options are the options of [New]. The zero value is for commands.
type Options struct {
	// Cache is the directory of the file, Host the machine; "" stands for
	// $XDG_CACHE_HOME/lektor and the name of this one.
	Cache, Host string
	// Clock is the clock of the file system; nil means time.Now.
	Clock func() time.Time
	// Budget is how long a query may spend on bringing the index up to date before it
	// reads the directory instead; 0 means a third of a second, or longer if there are so
	// many entries that reading the directory takes longer, too.
	Budget time.Duration
	// Least is the number of entries from which a query begins an index (default 1000).
	Least int
	// Brief is for processes that end soon: a query that adds something to the file does not
	// close it, unless the journal is long. Closing would checkpoint the journal and wait for the
	// disk; the next query that adds nothing does this.
	Brief bool
	// Shared treats the file system as one to which other machines write, as it may be without.
	Shared bool
	// About returns a feed, if the program knows the feeds of the lektor-dir as they are; nil reads them.
	About func(hash string) *lektordir.Feed
	// Warn takes a warning, once.
	Warn func(format string, a ...any)
}

// Index is the index of one lektor-dir. It is safe for concurrent use; each Look has the file open
// for itself.
type Index struct {
	dir  *lektordir.Dir
	o    Options
	rule stamp.Rule
	path string // path of the file; "" for none
	warn sync.Once
}

const (
	defaultBudget = time.Second / 3
	// budgetEach is the minimum time that listing an entry of the directory takes.
	budgetEach   = 4 * time.Microsecond
	defaultLeast = 1000
	// autoCheckpoint is the number of pages in the journal from which on SQLite brings them
	// to their places after each commit.
	autoCheckpoint = 1000
)

// New returns the index of a lektor-dir. It touches nothing.
func New(d *lektordir.Dir, o Options) *Index {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Least == 0 {
		o.Least = defaultLeast
	}
	return &Index{dir: d, o: o, rule: stamp.Rule{Clock: o.Clock, Shared: o.Shared || d.Shared()}, path: filePath(d, o)}
}

// Open opens the lektor-dir at path as [entrystore.Open] does, with its index: this is how
// programs for readers open one. Warnings of the index are printed to s unless o.Warn is set.
func Open(path string, now func() time.Time, s *cmdline.Streams, o Options) (*entrystore.Store, *Index, error) {
	st, err := entrystore.Open(path, now, s)
	if err != nil {
		return nil, nil, err
	}
	x := For(st.Dir, s, o)
	st.Index = x
	return st, x, nil
}

// For returns the index of a lektor-dir that is open, as [Open] does.
func For(d *lektordir.Dir, s *cmdline.Streams, o Options) *Index {
	if o.Warn == nil {
		o.Warn = s.Report.Warn
	}
	return New(d, o)
}

// Path returns the path of the file, which may not exist; "" if no cache directory is known.
func (x *Index) Path() string { return x.path }

// Exists reports whether the file exists.
func (x *Index) Exists() bool {
	return x.path != "" && atomicfile.Exists(x.path)
}

// View is a snapshot of the index. One goroutine at a time may use it; only the Words of its hits
// can be called by several. The caller must close it.
type View struct {
	x *Index
	s *session

	mu      sync.Mutex // for lookups, and with them the connection
	lookups map[string]*lookup
	vocab   [][]byte // the rows of the vocabulary, once they are read
	size    int64    // no entry has this id or a greater one

	known workers.Cache[*lektordir.Feed] // by hash; nil for one whose entries may say otherwise
}

// Close closes the file.
func (v *View) Close() {
	v.s.c.exec("COMMIT")
	// SQLite has brought a longer journal to its place already. The next process would read
	// it anew, append to it and bring all of it there once more.
	fi, err := os.Stat(v.x.path + "-wal")
	if v.x.o.Brief && v.s.wrote && v.s.c.err == nil && err == nil && fi.Size() < autoCheckpoint*pageSize {
		v.s.c = nil
	}
	v.s.close()
}

// Look brings the index up to date and returns a view of it, or nil if the directory has to be read
// instead. The error is the context's.
func (x *Index) Look(ctx context.Context) (entrystore.View, error) {
	if !x.Exists() {
		return nil, nil
	}
	s, err := x.open()
	if err == nil {
		budget := cmp.Or(x.o.Budget, max(defaultBudget, time.Duration(s.nextID())*budgetEach))
		err = s.refresh(ctx, time.Now().Add(budget), false, nil)
	}
	if err == nil {
		return &View{x: x, s: s, lookups: map[string]*lookup{}, size: s.nextID()}, nil
	}
	if s != nil {
		s.close()
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	x.Failed(err)
	return nil, nil
}

// Missed begins an index, which the next queries fill, if there is none and the directory that was
// read instead has at least Options.Least entries.
func (x *Index) Missed(entries int) {
	if entries < x.o.Least || x.path == "" || x.Exists() {
		return
	}
	if err := x.create(); err != nil {
		x.Failed(err)
	}
}

// errBehind means that the index could not be brought up to date within the budget.
var errBehind = errors.New("the index is behind")

// Failed deals with an error of a Look or of a View: unless the file can be used later, it removes the file and
// warns once.
func (x *Index) Failed(err error) {
	if transient(err) {
		return
	}
	then := "it was removed, and the directory is read until there is a new one"
	if failed := x.remove(); errors.As(failed, new(*BusyError)) {
		return // the process that uses it removes it
	} else if failed != nil {
		then = "the directory was read"
	}
	if x.o.Warn != nil {
		x.warn.Do(func() { x.o.Warn("the index %s cannot be used (%v): %s", x.path, err, then) })
	}
}

// Build brings the index up to date, however long it takes, and creates it if it does not exist. It
// calls progress with the work done and the total. The error is a *BusyError if another process
// does the same.
func (x *Index) Build(ctx context.Context, progress func(done, total int)) error {
	if x.path == "" {
		return cmdline.Hint(errors.New("there is no place for an index"), "set XDG_CACHE_HOME or HOME to a directory")
	}
	for again := false; ; again = true {
		if !x.Exists() {
			if err := x.create(); err != nil {
				return err
			}
		}
		err := x.build(ctx, progress)
		if err != nil && ctx.Err() == nil && !transient(err) && !again {
			if err := x.remove(); err != nil {
				return err
			}
			continue
		}
		return err
	}
}

func (x *Index) build(ctx context.Context, progress func(done, total int)) error {
	s, err := x.open()
	if err != nil {
		return err
	}
	defer s.close()
	s.c.exec("PRAGMA cache_size = -8000")
	// Pages that many batches change are checkpointed less often.
	s.c.exec("PRAGMA wal_autocheckpoint = 8000")
	_, built := s.c.meta("built")
	// The second round reads again the entries that perhaps were still being written in the
	// first; if they are many, this would take a query too long.
	for round := range 2 {
		if err := s.refresh(ctx, time.Time{}, round == 0, progress); err != nil {
			return err
		}
		s.c.exec("COMMIT")
	}
	if !built {
		s.merge(ctx)
		s.c.exec("BEGIN IMMEDIATE")
		s.c.setMeta("built", 1)
		s.c.query("PRAGMA incremental_vacuum").drain()
		s.c.exec("COMMIT")
	}
	return cmp.Or(context.Cause(ctx), s.c.err)
}

// merge merges the segments of the FTS5 index into one, which makes queries faster. It works in
// steps, because the journal holds the pages of a step. See section 6.8 of the documentation of
// FTS5.
func (s *session) merge(ctx context.Context) {
	const pages = 2000
	for step, more := -pages, true; more && s.c.err == nil && ctx.Err() == nil; step = pages {
		before := s.changes()
		s.c.exec("BEGIN IMMEDIATE")
		s.c.exec("INSERT INTO words (words, rank) VALUES ('merge', ?)", step)
		s.c.exec("COMMIT")
		more = s.changes()-before >= 2
	}
}

// changes returns the number of rows that the connection has changed.
func (s *session) changes() int64 {
	if r, ok := s.c.one("SELECT total_changes()"); ok {
		return r.int(0)
	}
	return 0
}

// Drop removes the index.
func (x *Index) Drop() error {
	if x.path == "" {
		return nil
	}
	return x.remove()
}
