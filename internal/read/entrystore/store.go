// Package entrystore provides the entries of a lektor-dir to commands: it opens the lektor-dir, lists and
// selects entries, reads their fields when they are needed, and prints them by columns. Malformed
// entries are warnings, I/O errors are failures, and vanished entries are ignored.
//
// A command opens a [Store]. [Store.Select] returns the records of a query, and [Store.Records] those
// of known entries, for example after a delivery:
//
//	columns := entrystore.Columns("path", "date", "title")
//	p, err := cmdline.NewPrinter(s.Out, print, columns)
//	…
//	for _, ref := range delivered {
//		err = p.Print(store.Record(ref))
//	}
//
// The package never locks, moves or writes files.
package entrystore

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

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/history"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Store is a lektor-dir during one command. It is safe for concurrent use, except that Now must not be
// changed concurrently.
type Store struct {
	Dir *lektordir.Dir
	S   *cmdline.Streams
	// Now is the time at which the command began. Ages and dates in the future refer to it. Its
	// location is the time zone of days.
	Now time.Time
	// Index answers selections; nil means that the directory is read.
	Index Index
	// Strict refuses an entry if an I/O error affects one of its files, even an optional one, or its
	// feed. It is for commands that write an entry only once.
	Strict bool
	// Numbers is set if the user can name entries by the numbers of the last list.
	Numbers bool

	malformed cmdline.Warnings
	damaged   sync.Map // keys of entries whose damaged optional files were reported

	// Results by the hash of a feed.
	inFolders workers.Cache[[]string]
	gaps      workers.Cache[string]
	complete  workers.Cache[map[string]int]
	refused   workers.Cache[error]

	repeated struct { // cached result of repeats
		sync.Mutex
		keys map[string]bool
		asOf time.Time // Now at that time
	}
}

// Open opens the lektor-dir at path. It fails if there is none. now is the clock; nil means time.Now.
func Open(path string, now func() time.Time, s *cmdline.Streams) (*Store, error) {
	if now == nil {
		now = time.Now
	}
	dir, err := cmdline.OpenDir(path, &lektordir.Options{Now: now})
	if err != nil {
		return nil, err
	}
	return New(dir, now(), s), nil
}

// New returns the store of an open lektor-dir. now is [Store].Now.
func New(dir *lektordir.Dir, now time.Time, s *cmdline.Streams) *Store {
	return &Store{Dir: dir, S: s, Now: now, malformed: cmdline.Warnings{
		Report: s.Report, More: ", and so are others like it (see lektor-fetch check)",
	}}
}

// Folders returns the folders of a feed, each a path of names separated by '/'. The result is cached.
func (s *Store) Folders(hash string) []string {
	return s.inFolders.Of(hash, func() []string { return settings.Categories(s.Dir, hash) })
}

// Incomplete returns one line about missing entries of a feed and the reason, "" if none are known to
// be missing. The result is cached.
func (s *Store) Incomplete(hash string) string {
	return s.gaps.Of(hash, func() string {
		if g := history.Of(s.Dir, hash).Gap(); g != nil {
			return g.String()
		}
		return ""
	})
}

// ranks returns the positions, from 1, of the entries in the document of a complete feed, by
// identity; nil for other feeds. The result is cached.
func (s *Store) ranks(hash string) map[string]int {
	return s.complete.Of(hash, func() map[string]int {
		list, ok, err := s.Dir.Complete(hash)
		if !ok || err != nil {
			return nil // List has reported errors already
		}
		ranks := make(map[string]int, len(list))
		for i, id := range slices.Backward(list) {
			ranks[id] = i + 1
		}
		return ranks
	})
}

// Report prints the errors of a walk of the lektor-dir: malformed entries as warnings, others as
// errors.
func (s *Store) Report(err error) {
	for _, e := range humanize.Errors(err) {
		switch {
		case malformed(e):
			s.malformed.Warn("%v; skipped", e)
		case errors.Is(e, fs.ErrNotExist):
			// The entry vanished during the walk.
		default:
			s.S.Report.Print(e)
		}
	}
}

// malformed reports whether err means that a name, an entry or a feed is malformed.
func malformed(err error) bool {
	bad, ok := errors.AsType[*lektordir.MalformedError](err)
	return ok && !bad.Optional
}

// Usable reports whether an entry could be read, given the error of reading it, and prints the error.
// I/O errors are failures; others, for example a directory in the place of a file, are warnings.
func (s *Store) Usable(err error) bool {
	s.unreadable(humanize.Errors(err), "skipped")
	return err == nil
}

// unreadable prints errors of reading an entry, with what follows from warnings.
func (s *Store) unreadable(errs []error, so string) {
	for _, e := range errs {
		if _, ok := errors.AsType[syscall.Errno](e); ok {
			s.Report(e)
		} else {
			s.malformed.Warn("%v; %s", e, so)
		}
	}
}

// dropOptional reports err and returns nil if err is only about optional files. It reports only one
// error for each entry, given by its key. It returns any other err, and an error because this process
// is out of memory or descriptors, which is not about the files.
func (s *Store) dropOptional(err error, key string) error {
	all := humanize.Errors(err)
	for _, e := range all {
		_, system := errors.AsType[syscall.Errno](e)
		if bad, ok := errors.AsType[*lektordir.MalformedError](e); !ok || !bad.Optional || system && s.Strict ||
			errors.Is(e, syscall.EMFILE) || errors.Is(e, syscall.ENFILE) || errors.Is(e, syscall.ENOMEM) {
			return err
		}
	}
	if len(all) > 0 {
		if _, reported := s.damaged.LoadOrStore(key, true); !reported {
			s.unreadable(all, "it is ignored")
		}
	}
	return nil
}

// FeedError returns the I/O error of reading a feed, or nil if there is none. A malformed or missing
// feed is not an I/O error. The result is cached.
func (s *Store) FeedError(hash string) error {
	return s.refused.Of(hash, func() error { return subscriptions.Readable(s.Dir, hash) })
}

// List lists entries, see [lektordir.Dir.List], and reports errors. The error is that of ctx.
func (s *Store) List(ctx context.Context, o lektordir.ListOptions) ([]lektordir.Ref, error) {
	refs, err := s.Dir.List(ctx, o)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s.Report(err)
	return refs, nil
}

// ParseQuery parses the query on a command line. The term query:NAME refers to a saved query of the
// lektor-dir dir, see [SavedQueries]. The error is a [*cmdline.UsageError].
func ParseQuery(dir string, words []string) (*query.Query, error) {
	q, err := query.ParseWith(strings.Join(words, " "), SavedIn(dir))
	if e, ok := errors.AsType[*query.Error](err); ok {
		return nil, &cmdline.UsageError{Message: err.Error(), Hint: cmp.Or(e.Hint, "see lektor-query(7)")}
	}
	return q, err
}

// Records reads fields of entries in parallel, and omits entries that cannot be read. The error is
// that of ctx.
func (s *Store) Records(ctx context.Context, refs []lektordir.Ref, want lektordir.Fields) ([]*Record, error) {
	list := make([]*Record, len(refs))
	for i, ref := range refs {
		list[i] = s.Record(ref)
	}
	return Filter(ctx, list, func(r *Record) bool { return s.Usable(r.Read(want)) })
}

// Filter returns the records for which keep returns true. It calls keep concurrently and may modify
// the list. The error is that of ctx.
func Filter(ctx context.Context, list []*Record, keep func(*Record) bool) ([]*Record, error) {
	err := workers.ForEach(ctx, len(list), func(i int) {
		if !keep(list[i]) {
			list[i] = nil
		}
	})
	return slices.DeleteFunc(list, func(r *Record) bool { return r == nil }), err
}

// Resolve finds the entry with a path or a unique name, see [lektordir.Dir.Resolve], and adds hints to
// errors. If the user named the entry by a number of the last list, number is that, and name is the
// path in the list; else number is 0.
func (s *Store) Resolve(name string, number int) (lektordir.Ref, error) {
	r, err := s.Dir.Resolve(name)
	none, ok := errors.AsType[*lektordir.NotFoundError](err)
	if !ok {
		return r, err
	}
	if number > 0 {
		err = fmt.Errorf("number %d: %w", number, err)
	}
	hint := "name an entry by its path or its unique name; lektor-view ls -o path prints paths"
	switch {
	case none.Newer != nil:
		hint = "use that one, or run lektor-view ls for a new list"
	case number > 0:
		hint = "it was removed since; run lektor-view ls for a new list"
	case none.NoPath:
		hint = "a path ends in new/FEED/NAME or cur/FEED/NAME below " + s.Dir.Path()
	case strings.ContainsRune(name, filepath.Separator):
		hint = "it was removed, or never existed"
	case s.Numbers:
		hint = "name an entry by its path, its unique name, or a number of the last lektor-view ls; those of a query: lektor-view ls -o path QUERY | lektor-view COMMAND -"
	}
	return r, cmdline.Hint(err, "%s", hint)
}

// Named returns the feeds or entries that the user named, each once. find finds one by its name.
// The name "-" reads names from standard input. Named reports failures and then sets failed. The error
// is that of ctx.
func Named[T comparable](ctx context.Context, args []string, nul bool, s *cmdline.Streams,
	find func(string) (T, error)) (list []T, failed bool, err error) {
	seen := map[T]bool{}
	for name, err := range cmdline.ReadArgs(args, s.In, nul) {
		if ctx.Err() != nil {
			return nil, failed, context.Cause(ctx)
		}
		var one T
		if err == nil {
			one, err = find(name)
		}
		if err != nil {
			failed = true
			s.Report.Print(err)
		} else if !seen[one] {
			seen[one] = true
			list = append(list, one)
		}
	}
	return list, failed, nil
}

// Find returns the entry with a name, for [Named].
func (s *Store) Find(name string) (lektordir.Ref, error) { return s.Resolve(name, 0) }

// Finding returns a function that finds feeds for [Named]: all feeds, or the subscribed ones. Its
// errors have hints.
func Finding(d *lektordir.Dir, all bool) func(name string) (string, error) {
	f := &subscriptions.Finder{Dir: d, All: all}
	return func(name string) (string, error) {
		hash, err := f.Find(name)
		return hash, FeedHint(err)
	}
}

// FeedHint adds a hint to an error about a feed that the user named. It returns nil for nil.
func FeedHint(err error) error {
	var none *lektordir.NotFoundError
	var guess *subscriptions.GuessError
	switch {
	case errors.As(err, &guess):
		return cmdline.Hint(err, "did you mean %s?", strings.Join(guess.Likely, ", "))
	case errors.As(err, new(*subscriptions.SeveralError)):
		return cmdline.Hint(err, "give the feed's hash or URL")
	case errors.As(err, &none) && none.Feed && len(none.Matches) > 1:
		return cmdline.Hint(err, "give more of the hash, or the feed's URL")
	case errors.As(err, &none) && none.Feed, errors.As(err, new(*subscriptions.NotSubscribedError)):
		return cmdline.Hint(err, "lektor-fetch ls --all lists all feeds")
	case commit.IsBusy(err):
		return cmdline.Hint(err, "try again in a moment")
	}
	return err
}

// Folder is a folder of feeds.
type Folder struct {
	Name string // a path of names separated by '/'
	Key  string // folded name, equal for all spellings
}

// Last returns the last name of the path.
func (f Folder) Last() string { return f.Name[strings.LastIndexByte(f.Name, '/')+1:] }

// FolderPath returns a folder and its parents, outermost first. It returns none for an empty name.
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

// FoldersAbove returns the names of folders and their parents by key.
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
