// Package ess implements lektor-ess: it makes ESS and NNO documents from a lektor-dir, and
// aggregates, polls, resolves and publishes them. Each command is a function of options and
// streams.
//
// The package never takes a lock and never fetches a feed. To have a feed fetched, it
// leaves a due marker, the empty file etc/fetch/due/$feed.
package ess

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of all commands.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock; the default is time.Now. Its location is the time zone of dates
	// without one.
	Now func() time.Time
	// At is the build time of documents; the default is Now.
	At time.Time
	// Fetch configures requests for documents.
	Fetch fetch.Config
}

func (c Common) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// build returns the build time of documents.
func (c Common) build() time.Time {
	if !c.At.IsZero() {
		return c.At
	}
	return c.now()
}

// store is the lektor-dir of a command.
type store struct {
	common Common
	*entrystore.Store

	warnings cmdline.Warnings
	byURL    func() map[string]string // see [store.feedAt]
}

// open opens the lektor-dir.
func (c Common) open(s *cmdline.Streams) (*store, error) {
	es, err := entrystore.Open(c.Dir, c.now, s)
	if err != nil {
		return nil, err
	}
	st := &store{common: c, Store: es, warnings: cmdline.Warnings{Report: s.Report}}
	st.byURL = sync.OnceValue(st.index)
	return st, nil
}

// minuteOf returns the minute of the pubdate, or of the delivery if there is none.
func minuteOf(r *entrystore.Record) int64 { return ess.Minute(r.Published()) }

// entryOf returns an entry in the form of documents.
func entryOf(r *entrystore.Record) ess.Entry {
	return ess.Entry{Minute: minuteOf(r), Sum: ess.Checksum(r.Get(lektordir.FieldTitle).Title)}
}

// itemFields are the fields that [entryOf] needs.
const itemFields = lektordir.FieldTitle | lektordir.FieldPubDate

// list lists entries, with some fields.
func (st *store) list(ctx context.Context, o lektordir.ListOptions, want lektordir.Fields) ([]*entrystore.Record,
	error) {
	refs, err := st.List(ctx, o)
	if err != nil {
		return nil, err
	}
	return st.Records(ctx, refs, want)
}

// find returns the hash of a feed that the user names, subscribed to or not.
func (st *store) find(name string) (string, error) {
	hash, err := entrystore.Finding(st.Dir, true)(name)
	if err != nil && markup.HasScheme(name) {
		if hash := st.feedAt(name); hash != "" {
			return hash, nil
		}
	}
	return hash, err
}

// feedAt returns the hash of the feed whose id or fetch URL is a URL in a document; "" if
// there is none.
func (st *store) feedAt(url string) string {
	if hash := lektordir.FeedHash(lektordir.NormalizeID(url)); atomicfile.Exists(st.Dir.Join("src", hash, "id")) {
		return hash
	}
	return st.byURL()[key(url)]
}

// index maps the ids and the fetch URLs of all feeds to their hashes.
func (st *store) index() map[string]string {
	index := map[string]string{}
	for url, hash := range subscriptions.ByURL(st.Dir) {
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

// key returns the form in which URLs from documents are compared.
func key(url string) string { return ess.EscapeURL(lektordir.NormalizeID(feedurl.Public(url))) }

// documentURL returns the URL of a feed for documents, its id. It is "" for a feed that
// others cannot fetch.
func documentURL(f *lektordir.Feed) string { return feedurl.Public(feedurl.Web(f.ID)) }

// ParseSince parses a time, or a duration before now such as 2d or 12h.
func ParseSince(v string, now time.Time) (time.Time, error) {
	if t, err := humanize.ParseTime(v, now.Location()); err == nil {
		return t, nil
	}
	if d, err := humanize.ParseInterval(v); err == nil {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time; use 2d, 12h, 2026-01-31 or 2026-01-31T12:00:00Z", v)
}

// errReported is the error of a command that has already reported the failure.
var errReported = &cmdline.ExitError{Status: cmdline.StatusFailed}
