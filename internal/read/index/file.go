package index

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// These identify the file. If the format or the text of entries ([htmltext.Text]) changes, increase
// the version: files of another version are replaced.
const (
	application = 0x6c6b7472
	version     = 10
	pageSize    = 8192
)

// schema creates the tables. Times are in seconds since 1970. An entry's id is the rowid of its
// words in the table words, which stores no text.
var schema = []string{
	fmt.Sprintf("PRAGMA page_size = %d", pageSize),
	"PRAGMA auto_vacuum = INCREMENTAL",
	"PRAGMA journal_mode = WAL",
	"BEGIN IMMEDIATE",
	fmt.Sprintf("PRAGMA application_id = %d", application),
	fmt.Sprintf("PRAGMA user_version = %d", version),
	// path, top new and top cur (stamps), common (words), paired (id), built
	"CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID",
	// Stamps of new/$feed, of cur/$feed, and of the list of a complete document.
	"CREATE TABLE feed (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, new BLOB, cur BLOB, complete BLOB)",
	// Names in a directory: id of the feed, doubled, and 1 more for cur/; see listed.
	"CREATE TABLE names (dir INTEGER PRIMARY KEY, list BLOB)",
	// The hash of feed and identity, or unique name, is the key. How it is listed,
	// see the constants. unread and marked (a flag
	// other than S) say what dir and info do. ctime is that of the directory when it was
	// read, in nanoseconds; young says that it was perhaps still being written. link is a hash
	// of the entry's link, 0 for none, and first is [entrystore.First].
	`CREATE TABLE entry (id INTEGER PRIMARY KEY, dir INTEGER NOT NULL, key INTEGER NOT NULL, name BLOB NOT NULL, info BLOB,
		ino INTEGER NOT NULL, listed INTEGER NOT NULL, unread INTEGER NOT NULL, marked INTEGER NOT NULL, date INTEGER,
		nsec INTEGER, dated INTEGER, title BLOB, author BLOB, type, more BLOB, ctime INTEGER NOT NULL, young INTEGER NOT NULL,
		link INTEGER NOT NULL, first INTEGER NOT NULL, repeat INTEGER NOT NULL)`,
	// By feed first, so that the entries of a feed are adjacent.
	"CREATE INDEX entry_key ON entry (dir >> 1, key)",
	"CREATE INDEX entry_date ON entry (date, dir, info) WHERE listed = 1",
	"CREATE INDEX entry_unread ON entry (date, dir, info) WHERE listed = 1 AND unread = 1",
	"CREATE INDEX entry_marked ON entry (date, dir, info) WHERE listed = 1 AND marked = 1",
	"CREATE INDEX entry_link ON entry (link) WHERE link != 0",
	"CREATE INDEX entry_repeat ON entry (date, dir, info) WHERE repeat = 1",
	"CREATE INDEX entry_odd ON entry (id) WHERE listed = 2",
	"CREATE INDEX entry_withdrawn ON entry (id) WHERE listed >= 3",
	"CREATE INDEX entry_young ON entry (id) WHERE young = 1",
	"CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii')",
	"INSERT INTO words (words, rank) VALUES ('hashsize', 8000000)",
	// The vocabulary, a newline before and after each word.
	"CREATE TABLE vocab (id INTEGER PRIMARY KEY, words BLOB NOT NULL)",
}

// The ways in which an entry is listed.
const (
	listedNot       = iota // another version of it is listed
	listedShown            // normally
	listedOdd              // odd: has to be read
	listedWithdrawn        // only if a query asks for withdrawn entries
	listedBoth             // withdrawn and odd
)

// filePath returns the path of the index of a lektor-dir. The file name depends on the machine's
// name and on the path of the lektor-dir without links.
func filePath(d *lektordir.Dir, o Options) string {
	if o.Cache == "" {
		base := cmdline.BaseDir("XDG_CACHE_HOME", ".cache")
		if base == "" {
			return ""
		}
		o.Cache = filepath.Join(base, "lektor")
	}
	if o.Host == "" {
		o.Host, _ = os.Hostname()
	}
	path := d.Path()
	if direct, err := filepath.EvalSymlinks(path); err == nil {
		path = direct
	}
	sum := sha256.Sum256([]byte(o.Host + "\x00" + path))
	return filepath.Join(o.Cache, "index-"+hex.EncodeToString(sum[:8])+".sqlite")
}

// A lock file is beside the file. Users of the file share the lock, and a process that removes the
// file takes it exclusively: if another process still had the removed file open, its journal would
// be applied to the next file of the name.

// hold locks the index, exclusively if alone is set.
func (x *Index) hold(alone bool) (unlock func(), err error) {
	take := atomicfile.Share
	if alone {
		take = atomicfile.Lock
	}
	return take(x.path+".lock", &BusyError{Path: x.path})
}

// BusyError is the error if another process works on the index.
type BusyError struct{ Path string }

func (e *BusyError) Error() string { return "another process works on the index " + e.Path }

// remove removes the file, and SQLite's files beside it.
func (x *Index) remove() error {
	if _, err := os.Stat(filepath.Dir(x.path)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := x.hold(true)
	if err != nil {
		return err
	}
	defer unlock()
	return x.unlink()
}

func (x *Index) unlink() error {
	var failed error
	// Remove the journals first: without them the file is only old, not damaged.
	for _, suffix := range []string{"-wal", "-shm", "-journal", ""} {
		if err := os.Remove(x.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// create creates an empty index.
func (x *Index) create() error {
	if err := os.MkdirAll(filepath.Dir(x.path), 0o700); err != nil {
		return err
	}
	unlock, err := x.hold(true)
	if err != nil {
		return err
	}
	defer unlock()
	if x.Exists() {
		return nil // another process has created it
	}
	// It is renamed to its final name when it is complete.
	made := &Index{path: x.path + ".new"}
	if err := errors.Join(made.unlink(), x.unlink()); err != nil {
		return err
	}
	c, err := connect(made.path)
	if err != nil {
		return err
	}
	for _, s := range schema {
		c.exec(s)
	}
	c.exec("INSERT INTO meta VALUES ('path', ?)", []byte(x.dir.Path()))
	c.exec("COMMIT")
	failed := c.close()
	if err = cmp.Or(c.err, failed); err == nil {
		err = os.Rename(made.path, x.path)
	}
	if err != nil {
		_ = made.unlink()
	}
	return err
}

// drain reads to the end.
func (r *rows) drain() {
	for r.next() {
	}
}

// session is the use of the file by one Look.
type session struct {
	x      *Index
	unlock func()
	c      *conn
	src    *os.File // the directory of feeds; nil if there is none

	feeds map[string]*feed // by hash
	byID  map[int64]*feed
	wrote bool // an update has written something
	// complaints are errors for names that are not names of entries.
	complaints []error
}

// errForeign means that the file is of another program or version, or cut off.
var errForeign = errors.New("it is not a whole index of this version")

// open opens the file.
func (x *Index) open() (*session, error) {
	fi, err := os.Stat(x.path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() || fi.Size()%pageSize != 0 {
		return nil, errForeign
	}
	unlock, err := x.hold(false)
	if err != nil {
		return nil, err
	}
	s := &session{x: x, unlock: unlock}
	if s.src, err = openDir(x.dir.Join("src")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.close()
		return nil, err
	}
	if s.c, err = connect(x.path); err != nil {
		s.close()
		return nil, err
	}
	// If the index is locked for longer, the directory is read instead. Other processes
	// read the journal that a brief process has left, or write when they have answered.
	s.c.exec("PRAGMA busy_timeout = 100")
	s.c.exec("PRAGMA synchronous = NORMAL")
	s.c.exec("PRAGMA cache_size = -16000")
	s.c.exec("PRAGMA cell_size_check = ON")
	app, _ := s.c.one("PRAGMA application_id")
	ver, _ := s.c.one("PRAGMA user_version")
	if app.int(0) != application || ver.int(0) != version {
		err = errForeign
	}
	if err = cmp.Or(s.c.err, err); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *session) close() {
	if s.c != nil {
		_ = s.c.close()
	}
	_ = s.src.Close() // of nil, too
	s.unlock()
}

// transient reports whether an error says only that the file cannot be used now, so that it stays.
func transient(err error) bool {
	var busy *BusyError
	var dir *dirError
	if err == nil || errors.As(err, &busy) || errors.As(err, &dir) || errors.Is(err, errBehind) ||
		errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return true
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY,
		sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}
