// Package pages is the room of lektor-pages: entries as a site to read in a browser,
// and as mail. It is a program of its own because a sanitiser that can be trusted fills
// its tables before main, which every start of lektor-view would pay for.
//
// A site may be read by others, so feeds that are not for others are left out of it
// unless the user says so. Mail is the user's own. URLs have no passwords in either.
package pages

import (
	"context"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/entrystore"
	"github.com/lektordir/lektor/internal/index"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of every command.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock; its location is the time zone of dates. The default is
	// time.Now.
	Now   func() time.Time
	Query []string
	// Private has in a site also what is in feeds that are not for others, see
	// [feedstate.Withheld].
	Private bool
}

// run is one run of a command.
type run struct {
	*entrystore.Store
	query   *query.Query
	private bool
	sharing *entrystore.Sharing // result of the last collect
}

func (c Common) open(s *cmdline.Streams) (*run, error) {
	clock := c.Now
	if clock == nil {
		clock = time.Now
	}
	q, err := entrystore.ParseQuery(c.Dir, c.Query)
	if err != nil {
		return nil, err
	}
	r := &run{query: q, private: c.Private}
	r.Store, _, err = index.Open(c.Dir, clock, s, index.Options{})
	if err == nil {
		// A page or a message that lacks a file would lack it for ever.
		r.Strict = true
	}
	return r, err
}

// selected returns the entries of the query, read or not, with their dates.
func (r *run) selected(ctx context.Context) ([]*entrystore.Record, error) {
	list, err := r.Select(ctx, entrystore.Selection{Query: r.query, All: true, Strict: true, Want: lektordir.FieldPubDate})
	if err != nil {
		return nil, err
	}
	r.sharing = r.Sharing(nil)
	list = slices.DeleteFunc(list, func(e *entrystore.Record) bool { return !r.may(e.Ref.Feed) })
	r.sharing.Tell("--private shows it all the same")
	return list, nil
}

// may reports whether the entries of a feed are shown.
func (r *run) may(feed string) bool { return r.private || r.sharing.May(feed) }
