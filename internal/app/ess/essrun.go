// Package ess is the room of lektor-ess: ESS and NNO documents made of
// a lektor-dir, aggregated, polled, resolved and published. Each command is a
// function of options and streams that knows nothing of a command line.
//
// Nothing here takes a lock or fetches a feed. A feed that should be fetched
// gets a due marker, the empty file etc/fetch/due/$feed, and whoever fetches
// sees to it.
package ess

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of every command.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock; the default is time.Now. Its location is the time zone
	// of dates that are given without one.
	Now func() time.Time
	// At is the build time of documents; the default is Now.
	At time.Time
	// Fetch is for documents that are named by URL.
	Fetch fetch.Config
}

func (c Common) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// build is the build time of documents.
func (c Common) build() time.Time {
	if !c.At.IsZero() {
		return c.At
	}
	return c.now()
}

// store is a lektor-dir in the course of a command.
type store struct {
	Common
	dir *lektordir.Dir
	s   *command.Streams
	at  time.Time // when the command began

	feeds    sync.Map // hash -> *lektordir.Feed
	warnings atomic.Int64
	index    map[string]string // see [store.feedAt]
	indexing sync.Once
}

// open opens the lektor-dir.
func (c Common) open(s *command.Streams) (*store, error) {
	dir, err := command.OpenDir(c.Dir, &lektordir.Options{Now: c.Now})
	if err != nil {
		return nil, err
	}
	return &store{Common: c, dir: dir, s: s, at: c.now()}, nil
}

// maxWarnings is how many defects are named one by one.
const maxWarnings = 20

// warn warns of something of which there may be many.
func (st *store) warn(format string, args ...any) { warnSome(st.s, &st.warnings, format, args...) }

func warnSome(s *command.Streams, n *atomic.Int64, format string, args ...any) {
	switch k := n.Add(1); {
	case k < maxWarnings:
		s.Report.Warn(format, args...)
	case k == maxWarnings:
		s.Report.Warn(format+" (there are more like this)", args...)
	}
}

// report sorts what a walk of the lektor-dir complained of: what is malformed
// is a warning, the rest failures.
func (st *store) report(err error) {
	for _, e := range joined.Errors(err) {
		var name *lektordir.NameError
		var bad *lektordir.MalformedError
		switch {
		case errors.As(e, &name), errors.As(e, &bad):
			st.warn("%v; skipped", e)
		case errors.Is(e, fs.ErrNotExist):
			// Went while we looked.
		default:
			st.s.Report.Print(e)
		}
	}
}

// feed gives a feed, reading each once.
func (st *store) feed(r lektordir.Ref) *lektordir.Feed {
	if f, ok := st.feeds.Load(r.Feed); ok {
		return f.(*lektordir.Feed)
	}
	f, _ := st.feeds.LoadOrStore(r.Feed, st.dir.FeedOf(r))
	return f.(*lektordir.Feed)
}

// item is an entry of the lektor-dir as ESS sees it.
type item struct {
	ref   lektordir.Ref
	entry *lektordir.Entry
	// minute is that of the pubdate, of the delivery where there is none.
	minute int64
}

func (i *item) ess() ess.Entry { return ess.Entry{Minute: i.minute, Sum: ess.Checksum(i.entry.Title)} }

// itemFields are what an item needs.
const itemFields = lektordir.FieldTitle | lektordir.FieldPubDate

// item reads an entry; nil when it is gone or malformed.
func (st *store) item(ref lektordir.Ref, want lektordir.Fields) *item {
	e, err := st.dir.ReadEntry(ref, want)
	if errors.Is(err, fs.ErrNotExist) {
		// A viewer may have moved it meanwhile.
		if now, rerr := st.dir.Resolve(ref.Path()); rerr == nil && now != ref {
			ref = now
			e, err = st.dir.ReadEntry(ref, want)
		}
	}
	if err != nil {
		st.report(err)
		return nil
	}
	return newItem(ref, e)
}

func newItem(ref lektordir.Ref, e *lektordir.Entry) *item {
	return &item{ref: ref, entry: e, minute: ess.Minute(cmp.Or(e.PubDate, ref.Delivered()))}
}

// items reads entries, on all cores.
func (st *store) items(ctx context.Context, refs []lektordir.Ref, want lektordir.Fields) ([]*item, error) {
	all := make([]*item, len(refs))
	parallel(ctx, len(refs), func(i int) { all[i] = st.item(refs[i], want) })
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return slices.DeleteFunc(all, func(i *item) bool { return i == nil }), nil
}

// list lists entries.
func (st *store) list(ctx context.Context, o lektordir.ListOptions) ([]lektordir.Ref, error) {
	refs, err := st.dir.List(ctx, o)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	st.report(err)
	return refs, nil
}

// date is the time by which entries are ordered.
func (st *store) date(i *item) int64 { return ess.Minute(query.Date(i.ref, i.entry, st.at)) }

// parallel calls f for 0 to n-1 on all cores. It stops early when ctx ends.
func parallel(ctx context.Context, n int, f func(int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+15)/16) {
		wg.Go(func() {
			for ctx.Err() == nil {
				end := int(next.Add(16))
				for i := end - 16; i < min(end, n); i++ {
					f(i)
				}
				if end >= n {
					return
				}
			}
		})
	}
	wg.Wait()
}

// find gives the hash of the feed that the user names, subscribed to or not.
func (st *store) find(name string) (string, error) {
	hash, err := st.dir.FindFeed(name)
	var none *lektordir.NoFeedError
	switch {
	case err == nil:
		return hash, nil
	case errors.As(err, &none) && len(none.Matches) > 1:
		return "", command.Hint(err, "give more of the hash, or the feed's URL")
	case !errors.As(err, &none):
		return "", err
	}
	if ess.HasScheme(name) {
		if hash := st.feedAt(name); hash != "" {
			return hash, nil
		}
	}
	return "", command.Hint(err, "lektor-fetch ls lists the subscriptions")
}

// named gives the feeds that the user names, each once; failures are reported.
func (st *store) named(ctx context.Context, args []string, nul bool) ([]string, error) {
	var hashes []string
	for name, err := range command.ReadArgs(args, st.s.In, nul) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		hash := ""
		if err == nil {
			hash, err = st.find(name)
		}
		if err != nil {
			st.s.Report.Print(err)
			continue
		}
		if !slices.Contains(hashes, hash) {
			hashes = append(hashes, hash)
		}
	}
	return hashes, nil
}

// feedAt gives the hash of the feed with an id, or that is fetched from, a URL
// as it stands in a document; "" when there is none.
func (st *store) feedAt(url string) string {
	if hash := lektordir.FeedHash(lektordir.NormalizeID(url)); exists(st.dir.Join("src", hash, "id")) {
		return hash
	}
	st.indexing.Do(func() {
		st.index = map[string]string{}
		for url, hash := range feeddir.ByURL(st.dir) {
			st.index[key(url)] = hash
		}
		hashes, _ := st.dir.FeedHashes()
		for _, hash := range hashes {
			if id := firstLine(st.dir.Join("src", hash, "id")); id != "" {
				st.index[key(id)] = hash
			}
		}
	})
	return st.index[key(url)]
}

// key makes URLs comparable that were written into a document and read back.
func key(url string) string { return ess.EscapeURL(lektordir.NormalizeID(fetch.Public(url))) }

// documentURL is the URL under which a feed stands in documents: its id. It is
// "" for a feed that others cannot fetch.
func documentURL(f *lektordir.Feed) string {
	if fetch.IsHTTP(f.ID) {
		return fetch.Public(f.ID)
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// firstLine is the first line of a file, "" when there is none.
func firstLine(path string) string {
	line, _ := atomicfile.Line(path)
	return strings.TrimSpace(line)
}

// writeLine makes a file hold one line, "" for none. The directory is made if
// need be.
func writeLine(path, line string) error {
	if line == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return writeFile(path, []byte(line+"\n"))
}

// writeFile replaces a file by what can be learned or made again, and leaves
// one alone that holds it already.
func writeFile(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	err := atomicfile.WriteUnsynced(path, data)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = atomicfile.WriteUnsynced(path, data)
		}
	}
	return err
}

// ParseTime reads a moment: RFC 3339 with or without seconds, the date of a
// mail, or seconds since 1970 with or without @ in front. loc is the time zone
// where none is given.
func ParseTime(v string, loc *time.Location) (time.Time, error) {
	if n, err := strconv.ParseInt(strings.TrimPrefix(v, "@"), 10, 64); err == nil && len(v) > 4 {
		return time.Unix(n, 0), nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04Z07:00", time.RFC1123Z, time.RFC1123,
		"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.ParseInLocation(layout, v, loc); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time; write it as 2026-01-31T12:00:00Z, or as @ and seconds since 1970", v)
}

// ParseSince reads a moment, or a time before now such as 2d or 12h.
func ParseSince(v string, now time.Time) (time.Time, error) {
	if t, err := ParseTime(v, now.Location()); err == nil {
		return t, nil
	}
	if d, err := units.ParseInterval(v); err == nil {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; write it as 2d, 12h, 2026-01-31 or 2026-01-31T12:00:00Z", v)
}

// said is the error of a command that has reported what failed.
var said = &command.ExitError{Status: command.StatusFailed}
