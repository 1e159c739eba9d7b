// Package pages implements lektor-pages, which writes entries as a site for a browser, and as
// mail. It is a program of its own because its HTML sanitiser fills tables before main, which
// would slow down every start of lektor-view.
//
// Others may read a site, so it leaves out feeds that are not for others, unless the user
// includes them. Mail is for the user alone. Neither contains passwords in URLs.
package pages

import (
	"context"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of every command.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock; its location is the time zone of dates. nil means [time.Now].
	Now   func() time.Time
	Query []string
	// Private includes feeds that are not for others in a site, see [settings.Withheld], and the
	// articles of pages.
	Private bool
}

// run is one run of a command.
type run struct {
	*entrystore.Store
	query   *query.Query
	private bool
	sharing *entrystore.Sharing // from the last call of selected
}

func (c Common) open(s *cmdline.Streams) (*run, error) {
	q, err := entrystore.ParseQuery(c.Dir, c.Query)
	if err != nil {
		return nil, err
	}
	r := &run{query: q, private: c.Private}
	r.Store, _, err = index.Open(c.Dir, c.Now, s, index.Options{})
	if err == nil {
		// A page or message without one of the entry's files would never be made again.
		r.Strict = true
	}
	return r, err
}

// selected returns the entries of the query, read or not, with their dates.
func (r *run) selected(ctx context.Context) ([]*entrystore.Record, error) {
	list, err := r.Select(ctx, entrystore.Selection{Query: r.query, All: true, Strict: true,
		Want: lektordir.FieldPubDate})
	if err != nil {
		return nil, err
	}
	r.sharing = r.Sharing(nil)
	list = slices.DeleteFunc(list, func(e *entrystore.Record) bool { return !r.may(e.Ref.Feed) })
	r.sharing.Tell("--private shows it all the same")
	return list, nil
}

// may reports whether entries of a feed may be written.
func (r *run) may(feed string) bool { return r.private || r.sharing.May(feed) }
