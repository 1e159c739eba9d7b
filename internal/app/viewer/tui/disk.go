package tui

import (
	"context"
	"errors"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
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

// Page is an entry as text.
type Page struct {
	Header     []string // a line for each field
	Text       string   // wrapped, with links as footnotes
	URL        string   // address of the entry's web page, or ""
	Links      []string // URLs in the order of their numbers, which begin at 1
	Pictures   []string // URLs
	Enclosures []string // URLs
	// HasArticle is true if Text is the article of the web page, and the feed has a text of its own.
	HasArticle bool
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

// ErrNoCommand reports that there is no command to take back.
var ErrNoCommand = errors.New("there is nothing to take back")

// Disk is the lektor-dir and everything else that may take long. Its methods may be called
// concurrently; the UI goroutine never calls them. Errors are shown to the user as they are.
type Disk interface {
	Exporter
	work.Disk
	// Now returns the feeds and their entries, see [catalog.Catalog.Part].
	Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error)
	// Await returns after something has changed, or may have, or when ctx ends.
	Await(ctx context.Context)
	// Overview returns the newest entries and the counts, without listing the lektor-dir, or nil
	// if that would take long.
	Overview(ctx context.Context, newest int) (*Overview, error)
	// Dates returns the dates of entries. If that would take long, or ctx ends first, the
	// missing dates are the times of delivery, and whole is false.
	Dates(ctx context.Context, entries []catalog.Entry) (dates []time.Time, whole bool)
	// Learn reads the dates of entries, however long this takes, so that later calls of Dates
	// return them at once. It may also update the index, and calls progress repeatedly.
	Learn(ctx context.Context, entries []catalog.Entry, progress func(what string, done, total int)) error
	// Rows returns the rows of entries, in the same order.
	Rows(ctx context.Context, refs []lektordir.Ref) []Row
	// SortTexts returns for each entry its title, or its author, in a form to sort by. It may take
	// long, and calls progress repeatedly.
	SortTexts(ctx context.Context, entries []catalog.Entry, by string, progress func(done, total int)) []string
	// Query parses a query.
	Query(ctx context.Context, text string) (Query, error)
	// Page returns an entry as text wrapped to width columns: the article of its web page if
	// there is one and feedText is false, else the text of the feed.
	Page(ctx context.Context, ref lektordir.Ref, width int, feedText bool) (*Page, error)
	// Saved returns the saved queries.
	Saved(ctx context.Context) ([]Saved, error)
	// Look returns the look of the screen as the user's file has it now, with the lines that the user
	// typed after it.
	Look(ctx context.Context, typed string) (*cells.Look, error)
	// Open opens a URL in the user's browser, and returns that URL. "" means the URL of the
	// entry.
	Open(ctx context.Context, ref lektordir.Ref, url string) (string, error)
	// Player returns the command that plays an enclosure.
	Player(ctx context.Context, ref lektordir.Ref, url string) (argv []string, err error)
	// Command returns the arguments of a command for an entry, with the templates in words
	// filled in.
	Command(ctx context.Context, ref lektordir.Ref, words []string) ([]string, error)
	// Environ returns environment variables that describe an entry, for commands.
	Environ(ctx context.Context, ref lektordir.Ref) []string
	// Picture fetches a picture of an entry.
	Picture(ctx context.Context, ref lektordir.Ref, url string) ([]byte, error)
}
