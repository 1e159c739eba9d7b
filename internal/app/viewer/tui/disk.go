package tui

import (
	"context"
	"time"

	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/lektordir"
)

// Feed is a feed as the reader lists it.
type Feed struct {
	Hash    string
	Title   string
	Apart   string   // distinguishes it from other feeds of the same title; "" if no other has it
	Folders []string // paths of names with '/' between them
}

// Saved is a query that the user saved, or the error of one that is invalid.
type Saved struct {
	Name string
	Err  error
}

// Row is what the list shows of an entry.
type Row struct{ Title, Author string }

// Overview is what can be shown before everything was listed.
type Overview struct {
	Feeds  []Feed
	Saved  []Saved
	Counts map[string]entries.Tally // by hashes of feeds; nil when they are not known
	Newest []Listed                 // unread entries, the newest of those known first
}

// Listed is an entry as a list shows it.
type Listed struct {
	Ref  lektordir.Ref
	Date time.Time
	Row  Row
}

// Page is an entry as text.
type Page struct {
	Header     []string // lines, a field each
	Text       string   // wrapped, with links as footnotes
	URL        string   // where the entry can be read, or ""
	Links      []string // by their numbers, from 1
	Pictures   []string // URLs
	Enclosures []string // URLs
	// HasArticle means that the text is the article of the page, and the feed has another one.
	HasArticle bool
}

// Query is a query that was read.
type Query struct {
	State bool // it says itself what is read, or flagged
	// Find returns the entries that it selects, read or not, but none that is trashed, in any
	// order; ok is false if only Match can tell.
	Find func(ctx context.Context) (found []lektordir.Ref, ok bool)
	// Match reports which of the entries it selects.
	Match func(ctx context.Context, refs []lektordir.Ref) []bool
}

// Disk is the lektor-dir, and all else that may take long, as the reader uses it. It
// is called by any goroutine but that of the screen, and by several at once. An error
// is a message for the user.
type Disk interface {
	// Overview returns what is known at once, with at most this many entries; nil if
	// everything has to be listed first.
	Overview(ctx context.Context, newest int) (*Overview, error)
	// Feeds lists all feeds.
	Feeds(ctx context.Context) ([]Feed, error)
	// List lists the entries of feeds, without arguments of all, by the hashes of the feeds:
	// one version of each, by time of delivery, without trashed and withdrawn ones.
	List(ctx context.Context, feeds ...string) (map[string][]lektordir.Ref, error)
	// Dates returns the dates of entries. If it would take long, or the context ends
	// before all are known, the others are those of delivery, and whole is false.
	Dates(ctx context.Context, refs []*lektordir.Ref) (dates []time.Time, whole bool)
	// Learn makes the dates of entries known to Dates, however long it takes, and may do
	// other things of use later. It reports its progress.
	Learn(ctx context.Context, refs []*lektordir.Ref, progress func(what string, done, total int)) error
	// Rows returns the rows of entries in a list.
	Rows(ctx context.Context, refs []lektordir.Ref) []Row
	// Query reads a query.
	Query(ctx context.Context, text string) (Query, error)
	// Page returns an entry as text of this width: the article of its page if it has
	// one, or what the feed has.
	Page(ctx context.Context, ref lektordir.Ref, width int, feedText bool) (*Page, error)
	// Mark sets and clears flags, as one command that can be undone, and returns the
	// entries where they are now, also with an error.
	Mark(ctx context.Context, refs []lektordir.Ref, set, unset string) ([]lektordir.Ref, error)
	// Trash marks as trashed, with the older versions that an entry hides.
	Trash(ctx context.Context, refs []lektordir.Ref) error
	// Undo takes back the last command. It returns a message about that, and the
	// entries.
	Undo(ctx context.Context) (said string, moved []lektordir.Ref, err error)
	// Saved lists the saved queries, and Save saves one.
	Saved(ctx context.Context) ([]Saved, error)
	Save(ctx context.Context, name, query string) error
	// Watch reports changes since a moment: by the hash of the feed whose entries
	// changed, by "" for anything. It ends with the context.
	Watch(ctx context.Context, since time.Time, changed func(feed string)) error
	// Open opens a URL in the user's browser, "" for that of the entry, and returns
	// it was.
	Open(ctx context.Context, ref lektordir.Ref, url string) (string, error)
	// Player returns the command that plays an enclosure.
	Player(ctx context.Context, ref lektordir.Ref, url string) (argv []string, err error)
	// Command makes the arguments of a command, which may have templates in them, for an
	// entry.
	Command(ctx context.Context, ref lektordir.Ref, words []string) ([]string, error)
	// Environ is what a command that works on an entry finds in its environment.
	Environ(ctx context.Context, ref lektordir.Ref) []string
	// Picture fetches a picture of an entry.
	Picture(ctx context.Context, ref lektordir.Ref, url string) ([]byte, error)
}
