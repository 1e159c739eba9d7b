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

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
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
	// [feeddir.Shareable].
	Private bool
}

// run is one run of a command.
type run struct {
	*entries.Store
	index   *index.Index
	query   *query.Query
	private bool
}

func (c Common) open(s *command.Streams) (*run, error) {
	clock := c.Now
	if clock == nil {
		clock = time.Now
	}
	q, err := entries.ParseQuery(c.Dir, c.Query)
	if err != nil {
		return nil, err
	}
	r := &run{query: q, private: c.Private}
	r.Store, r.index, err = index.Open(c.Dir, clock, s, index.Options{})
	return r, err
}

// selected gives the entries of the query, read or not, in no order; of the newest so
// many, or with 0 all.
func (r *run) selected(ctx context.Context, newest int) ([]*entries.Record, error) {
	sel := entries.Selection{Query: r.query, All: true}
	if newest > 0 {
		sel.Want = lektordir.FieldPubDate
	}
	found, err := r.Select(ctx, sel)
	if err != nil {
		return nil, err
	}
	if !r.private {
		sharing := r.Sharing(nil)
		found = slices.DeleteFunc(found, func(e *entries.Record) bool { return !sharing.May(e.Ref.Feed) })
		sharing.Tell("--private shows it all the same")
	}
	if newest > 0 && len(found) > newest {
		slices.SortFunc(found, entries.ByDate)
		found = found[len(found)-newest:]
	}
	// What is shown is what is in the files now: a title that was put right by hand, say.
	for i, e := range found {
		found[i] = r.Record(e.Ref)
	}
	return found, nil
}
