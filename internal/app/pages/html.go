package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/entrystore"
	"github.com/lektordir/lektor/internal/errlist"
	"github.com/lektordir/lektor/internal/humanize"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// HTMLOptions are the options of [HTML].
type HTMLOptions struct {
	Common
	Output  string // the directory of the site
	Title   string // title of the site; empty means "lektor"
	Newest  int    // number of the newest entries; 0 means all
	PerPage int    // entries of a list; 50 if 0
	Images  bool   // show images at once, not when the reader asks for them
}

// HTML writes a site to read entries in a browser: a page an entry, and lists of all,
// of each feed and each folder, and of the words in titles. The pages run nothing, load
// nothing from elsewhere until the reader asks for images, which are on a second page of
// the entry, and link to each other by relative URLs, so that they are read from a disk
// or a server.
//
// Only pages that change are written, each atomically, and the lists after what they
// lead to. Nothing is synced: it can all be made again. A run that is killed leaves a
// site in which all links of what the front page leads to lead somewhere, and the next
// one finishes it; pages that were about to be removed, to which nothing leads any more,
// may link to what is gone. Nobody else writes to the directory meanwhile.
func HTML(ctx context.Context, o HTMLOptions, s *cmdline.Streams) error {
	o.Title = cmp.Or(strings.Join(strings.Fields(o.Title), " "), "lektor")
	if o.PerPage == 0 {
		o.PerPage = 50
	}
	r, err := o.open(s)
	if err != nil {
		return err
	}
	w, unlock, err := openSite(o, r)
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.items(ctx); err != nil {
		return err
	}
	w.group()
	return w.build(ctx)
}

// The files of a site that are no pages.
const (
	lockName   = ".lock"
	ledgerName = ".lektor-html"
	styleName  = "style.css"
)

// site is a site that is written.
type site struct {
	o      HTMLOptions
	r      *run
	ledger *ledger
	list   []*item // oldest first
	feeds  []*group
	groups []*group // feeds, folders and all
}

// openSite locks the directory of a site, which is made if need be. One that has
// something else in it is left alone.
func openSite(o HTMLOptions, r *run) (*site, func(), error) {
	if err := os.MkdirAll(o.Output, 0o777); err != nil {
		return nil, nil, err
	}
	names, err := os.ReadDir(o.Output)
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(o.Output, ledgerName)
	_, err = os.Lstat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, nil, err
	case err != nil && slices.ContainsFunc(names, func(e fs.DirEntry) bool {
		return e.Name() != lockName && !atomicfile.IsTemp(e.Name(), ledgerName)
	}):
		return nil, nil, cmdline.Hint(fmt.Errorf("%s has files in it that are not of a site of ours", o.Output), "name a new directory, or an empty one: pages that are no longer needed are removed from it")
	}
	busy := cmdline.Hint(fmt.Errorf("another process writes to %s", o.Output), "try again in a moment")
	unlock, err := atomicfile.Lock(filepath.Join(o.Output, lockName), busy)
	if err != nil {
		return nil, nil, err
	}
	atomicfile.Sweep(path)
	w := &site{o: o, r: r}
	if w.ledger, err = openLedger(path); err != nil {
		unlock()
		return nil, nil, err
	}
	return w, unlock, nil
}

// item is what lists say of an entry.
type item struct {
	key     string // feed and unique name
	name    string // name of its page, without the extension
	feed    string // hash
	date    time.Time
	title   string
	excerpt string
	images  bool // there may be some

	ref lektordir.Ref // where it was seen last
}

// excerptWidth is how much of an entry a list shows, in columns.
const excerptWidth = 160

func byDate(a, b *item) int { return cmp.Or(a.date.Compare(b.date), cmp.Compare(a.key, b.key)) }

// feedOf returns the feed of an entry.
func (w *site) feedOf(i *item) *lektordir.Feed { return w.r.Record(i.ref).Feed() }

// items fills the list: from the ledger what is there, and by reading what is new, as
// entries do not change.
func (w *site) items(ctx context.Context) error {
	r := w.r
	before := r.S.Report.Errors()
	found, err := r.selected(ctx)
	if err != nil {
		return err
	}
	if w.o.Newest > 0 {
		slices.SortFunc(found, entrystore.ByDate)
		found = found[max(0, len(found)-w.o.Newest):]
	}
	lost := &missing{r: r, incomplete: r.S.Report.Errors() > before}
	bar := r.S.Report.Progress(len(found), "reading entries")
	defer bar.Done()
	list := make([]*item, len(found))
	seen := make(map[string]bool, len(found))
	var unknown []int
	for n, e := range found {
		// Titles of the feed stand on all its pages and lists.
		if err := r.FeedError(e.Ref.Feed); err != nil {
			return unchanged(err)
		}
		key := e.Key()
		seen[key] = true
		if i := w.ledger.items[key]; i != nil && !i.date.After(r.Now) { // earlier versions took dates in the future
			i.ref = e.Ref
			list[n] = i
			bar.Add(1)
		} else {
			unknown = append(unknown, n)
		}
	}
	err = workers.ForEach(ctx, len(unknown), func(k int) {
		defer bar.Add(1)
		// Pages show the files as they are now, not what an index remembers.
		list[unknown[k]] = newItem(r, r.Record(found[unknown[k]].Ref))
	})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(w.ledger.items)) {
		if !seen[key] {
			list = lost.keep(ctx, list, w.ledger.items[key])
		}
	}
	if lost.err != nil {
		return unchanged(lost.err)
	}
	if lost.kept > 0 {
		r.S.Report.Info("%s: %s could not be listed; the pages are kept", w.o.Output, humanize.Count(lost.kept, "entry"))
	}
	w.list = slices.DeleteFunc(list, func(i *item) bool { return i == nil })
	slices.SortFunc(w.list, byDate)
	return nil
}

// unchanged adds to an error that the site is as it was.
func unchanged(err error) error {
	return cmdline.Hint(err, "the site stays as it is until its feeds can be read")
}

// notOurs is the error of something in the place of a directory of pages.
func notOurs(path string) error {
	return cmdline.Hint(fmt.Errorf("%s is no directory, and nothing is written behind a link", path), "remove it: the pages that belong there are written again")
}

// missing decides about the entries of a site that a run did not find.
type missing struct {
	r          *run
	incomplete bool                       // something could not be listed or read
	feeds      map[string]map[string]bool // by feed the unique names that are there; nil for what cannot be listed
	kept       int
	err        error // that a feed cannot be read
}

// keep appends an entry to a list if it may be there: if something could not be read,
// and its feed has it still, or cannot be listed.
func (m *missing) keep(ctx context.Context, list []*item, i *item) []*item {
	ref, err := lektordir.ParsePath("new/" + i.key)
	if !m.incomplete || err != nil || !m.r.may(i.feed) && !m.r.sharing.Unknown(i.feed) {
		return list
	}
	if err := m.r.FeedError(i.feed); err != nil {
		m.err = err
		return list
	}
	names, listed := m.feeds[i.feed]
	if !listed {
		refs, err := m.r.Dir.List(ctx, lektordir.ListOptions{Feeds: []string{i.feed}, SkipTrashed: true})
		if !slices.ContainsFunc(errlist.Errors(err), refused) {
			names = map[string]bool{}
			for _, r := range refs {
				names[r.Unique] = true
			}
		}
		if m.feeds == nil {
			m.feeds = map[string]map[string]bool{}
		}
		m.feeds[i.feed] = names
	}
	if names != nil && !names[ref.Unique] {
		return list
	}
	m.kept++
	i.ref = ref
	return append(list, i)
}

// refused reports whether an error is one of the system, and not that something is gone.
func refused(err error) bool {
	_, ok := errors.AsType[syscall.Errno](err)
	return ok && !errors.Is(err, fs.ErrNotExist)
}

// newItem reads an entry. If that fails it returns nil, and the error has been printed.
func newItem(r *run, e *entrystore.Record) *item {
	if !r.Usable(e.Check()) || !r.Usable(e.Read(lektordir.AllFields)) {
		return nil
	}
	return &item{
		key: e.Key(), name: digest(e.Key()), feed: e.Ref.Feed, date: e.Date().Truncate(time.Second), ref: e.Ref,
		title: termsafe.Squeeze(entrystore.Public(e.Get(0)).Title), excerpt: excerpt(e), images: mayHaveImages(e),
	}
}
