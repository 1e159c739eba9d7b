package tui

import (
	"context"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/lektordir"
)

// Saved is a saved query. Err is not nil if the query is invalid.
type Saved struct {
	Name, Text string
	Err        error
}

// Row is the text of an entry in the list.
type Row struct {
	Title string
}

// Overview holds the data that can be shown before all entries are listed.
type Overview struct {
	Counts map[string]entrystore.Tally // by hash of the feed
	Newest []Listed                    // unread entries, newest first
}

// Listed is an entry in an overview.
type Listed struct {
	Ref  lektordir.Ref
	Date time.Time
	Row  Row
}

// items returns the entries as those of a list.
func (o *Overview) items() []*item {
	refs := map[string][]lektordir.Ref{}
	for _, e := range o.Newest {
		refs[e.Ref.Feed] = append(refs[e.Ref.Feed], e.Ref)
	}
	feeds := make(map[string]*catalog.Feed, len(refs))
	for hash, of := range refs {
		feeds[hash] = catalog.NewFeed(hash, nil, of)
	}
	var items []*item
	for _, e := range o.Newest {
		if found, ok := feeds[e.Ref.Feed].Find(e.Ref.Unique); ok {
			items = append(items, &item{Entry: found, date: e.Date})
		}
	}
	return items
}

// Query is a parsed query.
type Query struct {
	State bool // the query has a term about flags, for example is:unread
	// Find returns the entries that the query selects, in any order, without trashed ones. If ok
	// is false, the index cannot answer the query and only Match can.
	Find func(ctx context.Context) (found []lektordir.Ref, ok bool)
	// Match reports for each entry whether the query selects it.
	Match func(ctx context.Context, refs []lektordir.Ref) []bool
}

// Disk is the lektor-dir and everything else that may take long. Its methods may be called
// concurrently; the UI goroutine never calls them. Errors are shown to the user as they are.
type Disk interface {
	treeDisk
	listDisk
	page.Disk
	page.Commands
	work.Disk
	// Look returns the look of the screen as the user's file has it now, with the lines that the user
	// typed after it.
	Look(ctx context.Context, typed string) (*cells.Look, error)
}
