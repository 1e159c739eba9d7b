// Package ess is the room of lektor-ess: ESS and NNO documents made of
// a lektor-dir, aggregated, polled, resolved and published. Each command is a
// function of options and streams that knows nothing of a command line.
//
// Nothing here takes a lock or fetches a feed. A feed that should be fetched
// gets a due marker, the empty file etc/fetch/due/$feed, and whoever fetches
// sees to it.
package ess

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/fetch"
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
	common Common
	*entries.Store

	warnings command.Warnings
	byURL    func() map[string]string // see [store.feedAt]
}

// open opens the lektor-dir.
func (c Common) open(s *command.Streams) (*store, error) {
	es, err := entries.Open(c.Dir, c.now, s)
	if err != nil {
		return nil, err
	}
	st := &store{common: c, Store: es, warnings: command.Warnings{Report: s.Report}}
	st.byURL = sync.OnceValue(st.index)
	return st, nil
}

// item is an entry of the lektor-dir as ESS sees it.
type item struct {
	*entries.Record
	// minute is that of the pubdate, of the delivery where there is none.
	minute int64
}

func (i *item) ess() ess.Entry {
	return ess.Entry{Minute: i.minute, Sum: ess.Checksum(i.Get(lektordir.FieldTitle).Title)}
}

// itemFields are what an item needs.
const itemFields = lektordir.FieldTitle | lektordir.FieldPubDate

// items makes items of records.
func items(records []*entries.Record) []*item {
	out := make([]*item, len(records))
	for i, r := range records {
		out[i] = &item{r, ess.Minute(r.Published())}
	}
	return out
}

// list lists entries, and reads fields of them.
func (st *store) list(ctx context.Context, o lektordir.ListOptions, want lektordir.Fields) ([]*item, error) {
	refs, err := st.List(ctx, o)
	if err != nil {
		return nil, err
	}
	records, err := st.Records(ctx, refs, want)
	return items(records), err
}

// find returns the hash of the feed that the user names, subscribed to or not.
func (st *store) find(name string) (string, error) {
	hash, err := entries.Finding(st.Dir, true)(name)
	if err != nil && ess.HasScheme(name) {
		if hash := st.feedAt(name); hash != "" {
			return hash, nil
		}
	}
	return hash, err
}

// feedAt returns the hash of the feed with an id, or that is fetched from, a URL
// as it stands in a document; "" when there is none.
func (st *store) feedAt(url string) string {
	if hash := lektordir.FeedHash(lektordir.NormalizeID(url)); atomicfile.Exists(st.Dir.Join("src", hash, "id")) {
		return hash
	}
	return st.byURL()[key(url)]
}

// index returns the hashes of all feeds by id, and by the URL that they are
// fetched from.
func (st *store) index() map[string]string {
	index := map[string]string{}
	for url, hash := range feeddir.ByURL(st.Dir) {
		index[key(url)] = hash
	}
	hashes, _ := st.Dir.FeedHashes()
	for _, hash := range hashes {
		if id, err := atomicfile.Line(st.Dir.Join("src", hash, "id")); err == nil {
			index[key(id)] = hash
		}
	}
	return index
}

// key makes URLs comparable that were written into a document and read back.
func key(url string) string { return ess.EscapeURL(lektordir.NormalizeID(feedurl.Public(url))) }

// documentURL is the URL under which a feed stands in documents: its id. It is
// "" for a feed that others cannot fetch.
func documentURL(f *lektordir.Feed) string {
	if feedurl.IsHTTP(f.ID) {
		return feedurl.Public(f.ID)
	}
	return ""
}

// ParseSince reads a moment, or a time before now such as 2d or 12h.
func ParseSince(v string, now time.Time) (time.Time, error) {
	if t, err := units.ParseTime(v, now.Location()); err == nil {
		return t, nil
	}
	if d, err := units.ParseInterval(v); err == nil {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time; write it as 2d, 12h, 2026-01-31 or 2026-01-31T12:00:00Z", v)
}

// said is the error of a command that has reported what failed.
var said = &command.ExitError{Status: command.StatusFailed}
