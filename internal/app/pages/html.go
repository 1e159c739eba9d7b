package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// HTMLOptions are the options of [HTML].
type HTMLOptions struct {
	Common
	Output  string // the directory of the site
	Title   string // title of the site; empty means "lektor"
	Newest  int    // number of the newest entries; 0 means all
	PerPage int    // entries on a page of a list; 0 means 50
	Images  bool   // show images on the first page of an entry, not on a second one
}

// HTML writes a site to read entries in a browser. It has a page for each entry, and lists of all
// entries, of each feed, of each folder, and of the words in titles. The pages run no scripts.
// They load nothing from elsewhere, except images, which are on a second page of the entry. Links
// between pages are relative URLs, so the site works from a disk or a server.
//
// Only pages that change are written, each atomically, and lists after the pages to which they
// link. Pages are not synced, since they can be made again. If a run is killed, every page that
// can be reached from index.html has links that work, and the next run finishes the site. Obsolete
// pages, to which no page links any more, may link to removed pages. A lock excludes other runs.
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

// The files of a site that are not pages.
const (
	lockName   = ".lock"
	ledgerName = ".lektor-html"
	styleName  = "style.css"
)

// site is a run of [HTML].
type site struct {
	o      HTMLOptions
	r      *run
	ledger *ledger
	pages  *template.Template // see pages.html
	list   []*item            // oldest first
	feeds  []*group
	groups []*group // feeds, folders and all
}

// openSite locks the directory of a site, and creates it if it is missing. It fails if the
// directory has files but is not a site.
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
		return nil, nil, cmdline.Hint(fmt.Errorf("%s has other files in it, and is not a site of lektor-pages",
			o.Output), "name a new directory, or an empty one: pages that are no longer needed are removed from it")
	}
	busy := cmdline.Hint(fmt.Errorf("another process writes to %s", o.Output), "try again in a moment")
	unlock, err := atomicfile.Lock(filepath.Join(o.Output, lockName), busy)
	if err != nil {
		return nil, nil, err
	}
	atomicfile.Sweep(path)
	w := &site{o: o, r: r}
	w.pages = template.Must(template.New("").Funcs(w.functions()).Parse(templates))
	if w.ledger, err = openLedger(path); err != nil {
		unlock()
		return nil, nil, err
	}
	return w, unlock, nil
}

// item is an entry as lists show it.
type item struct {
	key     string // feed and unique name
	name    string // name of its page, without the extension
	feed    string // hash
	Date    time.Time
	Title   string
	Excerpt string
	images  bool   // the content may have images
	lang    string // language tag; empty for that of the feed
	Marks   string // U if it is unread, F if it is flagged

	// Its neighbours in the list of all entries; nil for none.
	Older, Newer *item

	ref lektordir.Ref // its last known path
}

// excerptWidth is the width of an excerpt in lists, in columns.
const excerptWidth = 160

// marks returns the marks of an entry that lists show.
func marks(r lektordir.Ref) (s string) {
	if r.Unread() {
		s = "U"
	}
	if r.HasFlag('F') {
		s += "F"
	}
	return s
}

func byDate(a, b *item) int { return cmp.Or(a.Date.Compare(b.Date), cmp.Compare(a.key, b.key)) }

// feedOf returns the feed of an entry.
func (w *site) feedOf(i *item) *lektordir.Feed { return w.r.Record(i.ref).Feed() }

// items fills the list: with the items of the ledger, and with entries that it reads. An entry
// that is in the ledger is not read again, since entries do not change.
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
	incomplete := r.S.Report.Errors() > before // an entry or a feed could not be listed or read
	bar := r.S.Report.Progress(len(found), "reading entries")
	defer bar.Done()
	list := make([]*item, len(found))
	seen := make(map[string]bool, len(found))
	var unknown []int
	for n, e := range found {
		// All pages and lists of a feed show its title.
		if err := r.FeedError(e.Ref.Feed); err != nil {
			return unchanged(err)
		}
		key := e.Key()
		seen[key] = true
		if i := w.ledger.items[key]; i != nil {
			i.ref, i.Marks = e.Ref, marks(e.Ref)
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
	if incomplete {
		kept, err := w.unlisted(ctx, seen)
		if err != nil {
			return err
		}
		list = append(list, kept...)
	}
	w.list = slices.DeleteFunc(list, func(i *item) bool { return i == nil })
	slices.SortFunc(w.list, byDate)
	for n, i := range w.list[min(1, len(w.list)):] {
		i.Older, w.list[n].Newer = w.list[n], i
	}
	return nil
}

// unlisted returns the items of the ledger that were not seen, but may still exist.
func (w *site) unlisted(ctx context.Context, seen map[string]bool) (kept []*item, err error) {
	r := w.r
	feeds := map[string]map[string]bool{}
	for key, i := range w.ledger.items {
		ref, err := lektordir.ParsePath("new/" + key)
		if seen[key] || err != nil || !r.may(i.feed) && !r.sharing.Unknown(i.feed) {
			continue
		}
		if err := r.FeedError(i.feed); err != nil {
			return nil, unchanged(err)
		}
		if _, ok := feeds[i.feed]; !ok {
			feeds[i.feed] = r.listed(ctx, i.feed)
		}
		if names := feeds[i.feed]; names == nil || names[ref.Unique] {
			i.ref = ref
			kept = append(kept, i)
		}
	}
	if len(kept) > 0 {
		r.S.Report.Info("%s: %s could not be listed; the pages are kept", w.o.Output,
			humanize.Count(len(kept), "entry"))
	}
	return kept, nil
}

// unchanged adds the hint to an error that the site has not changed.
func unchanged(err error) error {
	return cmdline.Hint(err, "the site stays as it is until its feeds can be read")
}

// notADirectory returns the error for a path that should be a directory of pages.
func notADirectory(path string) error {
	return cmdline.Hint(fmt.Errorf("%s is not a directory, and links are not followed", path),
		"remove it: the pages that belong there are written again")
}

// listed returns the unique names of a feed's entries, nil if the feed cannot be listed.
func (r *run) listed(ctx context.Context, feed string) map[string]bool {
	refs, err := r.Dir.List(ctx, lektordir.ListOptions{Feeds: []string{feed}, SkipTrashed: true})
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	for _, ref := range refs {
		names[ref.Unique] = true
	}
	return names
}

// newItem reads an entry. If that fails, it reports the error and returns nil.
func newItem(r *run, e *entrystore.Record) *item {
	if !r.Usable(e.Check()) || !r.Usable(e.Read(lektordir.AllFields)) {
		return nil
	}
	return &item{
		key: e.Key(), name: digest(e.Key()), feed: e.Ref.Feed, Date: e.Date().Truncate(time.Second), ref: e.Ref,
		Title: termsafe.Squeeze(entrystore.Public(e.Get(0)).Title), Excerpt: excerpt(e), images: mayHaveImages(e),
		lang: termsafe.Squeeze(e.Get(0).Language), Marks: marks(e.Ref),
	}
}
