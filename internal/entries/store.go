// Package entries is the entries of a lektor-dir as commands use them: to open
// the lektor-dir, list and select entries, read of each what is asked for when
// it is asked for, and print them by columns. What is malformed is a warning,
// what the system refuses a failure, what goes while one looks is neither.
//
// A command opens a [Store]. [Store.Select] gives the records of a query,
// [Store.Records] those of entries that are known already, as after a delivery:
//
//	columns := entries.Columns("path", "date", "title")
//	p, err := command.NewPrinter(s.Out, print, columns)
//	…
//	for _, ref := range delivered {
//		err = p.Print(store.Record(ref))
//	}
//
// Nothing here takes a lock, moves an entry or writes.
package entries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/feedcmd"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// Store is a lektor-dir in the course of one command. It is safe for concurrent
// use but for Now, which belongs to whoever runs the command.
type Store struct {
	Dir *lektordir.Dir
	S   *command.Streams
	// Now is when the command began, and what ages and dates in the future are
	// reckoned from. Its location is the time zone of days.
	Now time.Time
	// Index is asked before the directory is read; nil for none.
	Index Index
	// Strict refuses an entry of which the system cannot read a file, even one that an
	// entry need not have, and one of a feed that cannot be read: for outlets, which write
	// once and for all what they have read.
	Strict bool

	malformed command.Warnings
	inFolders sync.Map // of hashes of feeds, what Folders returned
	gaps      sync.Map // of hashes of feeds, what Incomplete returned
	complete  sync.Map // of hashes of feeds, what ranks returned
	refused   sync.Map // of hashes of feeds, what FeedError returned
	damaged   sync.Map // keys of entries of which an optional file could not be read

	moved  sync.Mutex
	places map[string]places // by feed, see where
}

// Open opens the lektor-dir at path for a command that makes none. now is the
// clock; nil stands for time.Now.
func Open(path string, now func() time.Time, s *command.Streams) (*Store, error) {
	if now == nil {
		now = time.Now
	}
	dir, err := feedcmd.OpenDir(path, &lektordir.Options{Now: now})
	if err != nil {
		return nil, err
	}
	return New(dir, now(), s), nil
}

// New gives the store of a lektor-dir that is open, as of a moment.
func New(dir *lektordir.Dir, now time.Time, s *command.Streams) *Store {
	return &Store{Dir: dir, S: s, Now: now, malformed: command.Warnings{
		Report: s.Report, More: ", and so are others like it (see lektor-fetch check)",
	}}
}

// Folders returns the folders that a feed is in, each a path of names with '/' between
// them, as they were when it was first asked about.
func (s *Store) Folders(hash string) []string {
	list, ok := s.inFolders.Load(hash)
	if !ok {
		list, _ = s.inFolders.LoadOrStore(hash, feeddir.Categories(s.Dir, hash))
	}
	return list.([]string)
}

// Incomplete tells of a feed what of its history is known to be missing, and why, in a
// line; "" for nothing.
func (s *Store) Incomplete(hash string) string {
	text, ok := s.gaps.Load(hash)
	if !ok {
		gap := ""
		if g := feeddir.HistoryOf(s.Dir, hash).Gap(); g != nil {
			gap = g.String()
		}
		text, _ = s.gaps.LoadOrStore(hash, gap)
	}
	return text.(string)
}

// ranks gives the places, from 1, of the entries in the document of a feed that is
// complete, by identity; nil for other feeds. They are as they were when they were
// first asked for.
func (s *Store) ranks(hash string) map[string]int {
	if m, ok := s.complete.Load(hash); ok {
		return m.(map[string]int)
	}
	var m map[string]int
	// What is wrong with it was told by List.
	if list, ok, err := s.Dir.Complete(hash); ok && err == nil {
		m = make(map[string]int, len(list))
		for i, id := range list {
			if m[id] == 0 {
				m[id] = i + 1
			}
		}
	}
	first, _ := s.complete.LoadOrStore(hash, m)
	return first.(map[string]int)
}

// Report sorts what a walk of the lektor-dir complained of: what is malformed
// is a warning, and skipped; the rest are failures.
func (s *Store) Report(err error) {
	for _, e := range joined.Errors(err) {
		switch {
		case malformed(e):
			s.malformed.Warn("%v; skipped", e)
		case errors.Is(e, fs.ErrNotExist):
			// Went while we looked.
		default:
			s.S.Report.Print(e)
		}
	}
}

// malformed reports whether a name, an entry or a feed is to be skipped.
func malformed(err error) bool {
	bad, ok := errors.AsType[*lektordir.MalformedError](err)
	return ok && !bad.Optional
}

// Usable reports whether an entry could be read, and says why not. Something
// else in the place of its files is the entry's fault, and no failure of ours;
// what the system refuses is.
func (s *Store) Usable(err error) bool {
	for _, e := range joined.Errors(err) {
		if _, ok := errors.AsType[syscall.Errno](e); ok {
			s.Report(e)
		} else {
			s.malformed.Warn("%v; skipped", e)
		}
	}
	return err == nil
}

// dropOptional returns nil for an error which is only about files that an entry need not
// have, after reporting it once for the entry of this key; else the error. If this
// process has no more memory or descriptors, the error says nothing of a file.
func (s *Store) dropOptional(err error, key string) error {
	all := joined.Errors(err)
	for _, e := range all {
		_, system := errors.AsType[syscall.Errno](e)
		if bad, ok := errors.AsType[*lektordir.MalformedError](e); !ok || !bad.Optional || system && s.Strict ||
			errors.Is(e, syscall.EMFILE) || errors.Is(e, syscall.ENFILE) || errors.Is(e, syscall.ENOMEM) {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	if _, reported := s.damaged.LoadOrStore(key, true); reported {
		return nil
	}
	for _, e := range all {
		if _, ok := errors.AsType[syscall.Errno](e); ok {
			s.S.Report.Print(e)
		} else {
			s.malformed.Warn("%v; it is passed over", e)
		}
	}
	return nil
}

// FeedError returns the error of the system that keeps a feed from being read; nil for
// one that can be read, is malformed or is not there. A feed is read once.
func (s *Store) FeedError(hash string) error {
	if err, ok := s.refused.Load(hash); ok {
		return err.(feedError).error
	}
	refused := feedError{feeddir.Readable(s.Dir, hash)}
	s.refused.Store(hash, refused)
	return refused.error
}

// feedError is an error or nil, for a map.
type feedError struct{ error }

// List lists entries, see [lektordir.Dir.List]; the error is the context's.
func (s *Store) List(ctx context.Context, o lektordir.ListOptions) ([]lektordir.Ref, error) {
	refs, err := s.Dir.List(ctx, o)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.Report(err)
	return refs, nil
}

// ParseQuery reads the query on a command line, and for query:NAME the one that is
// saved in the lektor-dir at a path, see [SavedQueries]. The error is a
// [*command.UsageError].
func ParseQuery(dir string, words []string) (*query.Query, error) {
	q, err := query.ParseWith(strings.Join(words, " "), SavedIn(dir))
	if e, ok := errors.AsType[*query.Error](err); ok {
		return nil, &command.UsageError{Message: err.Error(), Hint: cmp.Or(e.Hint, "see lektor-query(7)")}
	}
	return q, err
}

// Records reads fields of entries, in parallel; those that cannot be read are
// left out. The error is the context's.
func (s *Store) Records(ctx context.Context, refs []lektordir.Ref, want lektordir.Fields) ([]*Record, error) {
	list := make([]*Record, len(refs))
	for i, ref := range refs {
		list[i] = s.Record(ref)
	}
	return Filter(ctx, list, func(r *Record) bool { return s.Usable(r.Read(want)) })
}

// Filter keeps the records for which keep, which is called on all cores, says
// so; it may change the list. The error is the context's.
func Filter(ctx context.Context, list []*Record, keep func(*Record) bool) ([]*Record, error) {
	err := workers.ForEach(ctx, len(list), func(i int) {
		if !keep(list[i]) {
			list[i] = nil
		}
	})
	return slices.DeleteFunc(list, func(r *Record) bool { return r == nil }), err
}

// Resolve finds the entry that the user names by a path or a unique name, see
// [lektordir.Dir.Resolve], and adds to an error what can be done. number is what
// the user called it, if he did: then name is that of the list; else 0.
func (s *Store) Resolve(name string, number int) (lektordir.Ref, error) {
	r, err := s.Dir.Resolve(name)
	none, ok := errors.AsType[*lektordir.NotFoundError](err)
	if !ok {
		return r, err
	}
	if number > 0 {
		err = fmt.Errorf("number %d: %w", number, err)
	}
	hint := "name an entry by its path, its unique name, or a number of the last lektor-view ls"
	switch {
	case none.Newer != nil:
		hint = "work on that one, or list anew with lektor-view ls"
	case number > 0:
		hint = "it was removed since; list anew with lektor-view ls"
	case strings.ContainsRune(name, filepath.Separator):
		hint = "it was removed, or never was there"
	}
	return r, command.Hint(err, "%s", hint)
}

// Feeds gives the hashes of the feeds that the user names, each once, as find
// finds them; "-" stands for names on standard input. Failures are reported, and
// told by failed; the error is the context's.
func Feeds(ctx context.Context, args []string, nul bool, s *command.Streams, find func(string) (string, error)) (hashes []string, failed bool, err error) {
	seen := map[string]bool{}
	for name, err := range command.ReadArgs(args, s.In, nul) {
		if ctx.Err() != nil {
			return nil, failed, context.Cause(ctx)
		}
		hash := ""
		if err == nil {
			hash, err = find(name)
		}
		if err != nil {
			failed = true
			s.Report.Print(err)
		} else if !seen[hash] {
			seen[hash] = true
			hashes = append(hashes, hash)
		}
	}
	return hashes, failed, nil
}

// Finding gives what finds feeds for [Feeds]: all that there are, or those that are
// subscribed to. Errors get their hints.
func Finding(d *lektordir.Dir, all bool) func(name string) (string, error) {
	f := &feeddir.Finder{Dir: d, All: all}
	return func(name string) (string, error) {
		hash, err := f.Find(name)
		return hash, FeedHint(err)
	}
}

// FeedHint adds to an error about a feed that was named what can be done; nil stays
// nil.
func FeedHint(err error) error {
	var none *lektordir.NotFoundError
	var guess *feeddir.GuessError
	switch {
	case errors.As(err, &guess):
		return command.Hint(err, "did you mean %s?", strings.Join(guess.Likely, ", "))
	case errors.As(err, new(*feeddir.SeveralError)):
		return command.Hint(err, "give the feed's hash or URL")
	case errors.As(err, &none) && none.Feed && len(none.Matches) > 1:
		return command.Hint(err, "give more of the hash, or the feed's URL")
	case errors.As(err, &none) && none.Feed, errors.As(err, new(*feeddir.NotSubscribedError)):
		return command.Hint(err, "lektor-fetch ls lists the feeds there are")
	case errors.As(err, new(*commit.BusyError)):
		return command.Hint(err, "try again in a moment")
	}
	return err
}

// Folder is a folder of feeds.
type Folder struct {
	Name string // a path of names with '/' between them
	Key  string // what spellings of the name have in common
}

// Last gives the last name of the path.
func (f Folder) Last() string { return f.Name[strings.LastIndexByte(f.Name, '/')+1:] }

// FolderPath gives a folder with those that it is in, the outermost first; none for a
// name that is empty.
func FolderPath(folder string) []Folder {
	var path []Folder
	name := ""
	for part := range strings.SplitSeq(folder, "/") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if name != "" {
			name += "/"
		}
		name += part
		path = append(path, Folder{name, query.Fold(name)})
	}
	return path
}

// FoldersAbove gives folders with those that they are in, by what makes spellings of
// one equal. A folder in which a feed is twice is there once.
func FoldersAbove(folders []string) map[string]string {
	all := map[string]string{}
	for _, folder := range folders {
		for _, f := range FolderPath(folder) {
			if old, ok := all[f.Key]; !ok || f.Name < old {
				all[f.Key] = f.Name
			}
		}
	}
	return all
}
