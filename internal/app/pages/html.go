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
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// HTMLOptions are the options of [HTML].
type HTMLOptions struct {
	Common
	Output  string // the directory of the site
	Title   string // of the site; empty means "lektor"
	Newest  int    // so many entries; 0 means all
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
// site whose links all lead somewhere, and the next one finishes it. Nobody else writes
// to the directory meanwhile.
func HTML(ctx context.Context, o HTMLOptions, s *command.Streams) error {
	o.Title = cmp.Or(strings.Join(strings.Fields(o.Title), " "), "lektor")
	if o.PerPage == 0 {
		o.PerPage = 50
	}
	r, err := o.open(s)
	if err != nil {
		return err
	}
	defer r.index.Work(ctx)
	w, unlock, err := openSite(o)
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.items(ctx, r); err != nil {
		return err
	}
	w.plan(r)
	return w.build(ctx, r)
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
	ledger *ledger
	list   []*item          // oldest first
	found  map[string]*item // by key
	feeds  []*group
	groups []*group // feeds, folders and all
	pages  []page   // in the order in which they are written
}

// page is a page that should be there.
type page struct {
	path   string // relative, with slashes
	digest string // of all that is on it
	render func(*strings.Builder) (whole bool)
	wide   bool // it takes long: an entry has to be read
	size   int64
	// again tells that not all could be read that belongs on it: the next run tries.
	again bool
}

// openSite locks the directory of a site, which is made if need be. One that has
// something else in it is left alone.
func openSite(o HTMLOptions) (*site, func(), error) {
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
		return nil, nil, command.Hint(fmt.Errorf("%s has files in it that are not of a site of ours", o.Output), "name a new directory, or an empty one: pages that are no longer needed are removed from it")
	}
	busy := command.Hint(fmt.Errorf("another process writes to %s", o.Output), "try again in a moment")
	unlock, err := atomicfile.Lock(filepath.Join(o.Output, lockName), busy)
	if err != nil {
		return nil, nil, err
	}
	w := &site{o: o, found: map[string]*item{}}
	if w.ledger, err = readLedger(path); err != nil {
		unlock()
		return nil, nil, err
	}
	return w, unlock, nil
}

// item is what lists say of an entry.
type item struct {
	key     string // feed and unique name
	name    string // of its page, without the extension
	feed    string // hash
	date    time.Time
	title   string
	excerpt string
	images  bool // there may be some

	record *entries.Record
}

// excerptWidth is how much of an entry a list shows, in columns.
const excerptWidth = 160

// items fills the list: from the ledger what is there, and by reading what is new, as
// entries do not change.
func (w *site) items(ctx context.Context, r *run) error {
	found, err := r.collect(ctx, 0, entries.Collecting{Order: entries.ByDate})
	if err != nil {
		return err
	}
	defer found.Close()
	var records []*entries.Record
	for e, err := range found.From(max(0, found.Len()-cmp.Or(w.o.Newest, found.Len()))) {
		if err != nil {
			return err
		}
		e.Anew()
		records = append(records, e)
	}
	list := make([]*item, len(records))
	var unknown []int
	for i, e := range records {
		if known := w.ledger.items[e.Key()]; known != nil {
			known.record = e
			list[i] = known
		} else {
			unknown = append(unknown, i)
		}
	}
	p := r.S.Report.Progress(len(unknown), "reading entries")
	defer p.Done()
	err = entries.Parallel(ctx, len(unknown), func(n int) {
		defer p.Add(1)
		e := records[unknown[n]]
		if !r.Usable(e.Check()) || !r.Usable(e.Read(lektordir.Obligatory|lektordir.FieldPubDate)) {
			return
		}
		list[unknown[n]] = &item{
			key: e.Key(), name: digest(e.Key()), feed: e.Ref.Feed, date: e.Published().Truncate(time.Second), record: e,
			title: termsafe.Squeeze(entries.Public(e.Get(0)).Title), excerpt: excerpt(e), images: mayHaveImages(e),
		}
		e.Forget()
	})
	if err != nil {
		return err
	}
	w.list = slices.DeleteFunc(list, func(i *item) bool { return i == nil })
	slices.SortFunc(w.list, func(a, b *item) int { return cmp.Or(a.date.Compare(b.date), cmp.Compare(a.key, b.key)) })
	for _, i := range w.list {
		w.found[i.key] = i
	}
	return nil
}

// plan says which pages there should be: entries first, then the lists that lead to
// them.
func (w *site) plan(r *run) {
	w.group(r)
	for _, i := range w.list {
		w.pages = append(w.pages, w.entryPage(r, i, w.o.Images))
		if i.images && !w.o.Images {
			w.pages = append(w.pages, w.entryPage(r, i, true))
		}
	}
	for _, g := range w.groups {
		w.pages = append(w.pages, w.listPages(g)...)
	}
	w.pages = append(w.pages, w.searchPages()...)
	w.pages = append(w.pages, w.feedsPage())
	w.pages = append(w.pages, page{path: styleName, digest: digest(sheet), render: func(b *strings.Builder) bool {
		b.WriteString(sheet)
		return true
	}})
}

// build writes the pages that are not there as they should be, and then removes those
// that should not be there.
func (w *site) build(ctx context.Context, r *run) error {
	// A power cut leaves pages empty, which costs less to look for than to prevent.
	there, err := w.there()
	if err != nil {
		return err
	}
	should := make(map[string]bool, len(w.pages))
	var todo []*page
	for _, p := range w.pages {
		should[p.path] = true
		size, ok := there[p.path]
		if ok && w.ledger.pages[p.path] == (known{digest: p.digest, size: size}) {
			continue
		}
		todo = append(todo, &p)
	}
	// Before a page leads to another, that one is there.
	slices.SortStableFunc(todo, func(a, b *page) int {
		_, athere := there[a.path]
		_, bthere := there[b.path]
		return cmp.Or(first(a.wide, b.wide), first(!athere, !bthere))
	})
	gone := []string{}
	for path := range there {
		if !should[path] {
			gone = append(gone, path)
		}
	}
	slices.Sort(gone)
	if len(todo)+len(gone) == 0 && len(w.ledger.items) == len(w.list) {
		return nil
	}
	// What is about to change is not known until it has: a kill leaves no page that is
	// taken for another.
	for _, p := range todo {
		delete(w.ledger.pages, p.path)
	}
	path := filepath.Join(w.o.Output, ledgerName)
	if err := atomicfile.WriteUnsynced(path, w.ledger.bytes()); err != nil {
		return err
	}
	if err := w.write(ctx, r, todo); err != nil {
		return err
	}
	for _, name := range gone {
		if err := os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	w.prune(gone)
	for path := range w.ledger.pages {
		if !should[path] {
			delete(w.ledger.pages, path)
		}
	}
	for _, p := range todo {
		if !p.again {
			w.ledger.pages[p.path] = known{digest: p.digest, size: p.size}
		}
	}
	w.ledger.items = w.found
	if err := atomicfile.WriteUnsynced(path, w.ledger.bytes()); err != nil {
		return err
	}
	if r.S.ErrIsTerminal() {
		r.S.Report.Info("%s: %s, %s written, %s removed", w.o.Output, units.Count(len(w.list), "entry"), units.Count(len(todo), "page"), units.Count(len(gone), "page"))
	}
	return nil
}

// first orders what is so before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// write renders and writes pages: those of entries in parallel, then the lists.
func (w *site) write(ctx context.Context, r *run, todo []*page) error {
	p := r.S.Report.Progress(len(todo), "writing pages")
	defer p.Done()
	one := func(pg *page) error {
		defer p.Add(1)
		var b strings.Builder
		pg.again = !pg.render(&b)
		pg.size = int64(b.Len())
		path := filepath.Join(w.o.Output, filepath.FromSlash(pg.path))
		err := atomicfile.WriteUnsynced(path, []byte(b.String()))
		if errors.Is(err, fs.ErrNotExist) {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
			err = atomicfile.WriteUnsynced(path, []byte(b.String()))
		}
		return err
	}
	n := 0
	for n < len(todo) && todo[n].wide {
		n++
	}
	failed := make([]error, n)
	if err := entries.Parallel(ctx, n, func(i int) { failed[i] = one(todo[i]) }); err != nil {
		return err
	}
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	for _, pg := range todo[n:] {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := one(pg); err != nil {
			return err
		}
	}
	return nil
}

// there lists the pages that there are, with their sizes. Only names that a page can
// have are ours. What kills have left of pages that were being written is removed.
func (w *site) there() (map[string]int64, error) {
	found := map[string]int64{}
	err := filepath.WalkDir(w.o.Output, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(w.o.Output, path)
		if err != nil || e.IsDir() {
			return err
		}
		if name = filepath.ToSlash(name); ours().MatchString(name) {
			fi, err := e.Info()
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case !fi.Mode().IsRegular():
				found[name] = -1
			default:
				found[name] = fi.Size()
			}
		}
		if hidden, ok := strings.CutPrefix(e.Name(), "."); ok {
			page := strings.TrimRight(hidden, "0123456789")
			if ours().MatchString(strings.TrimSuffix(name, e.Name())+page) && atomicfile.Left(e, page) {
				_ = os.Remove(path)
			}
		}
		return nil
	})
	return found, err
}

// prune removes directories that have nothing in them any more.
func (w *site) prune(gone []string) {
	for _, name := range gone {
		if dir := filepath.Dir(filepath.FromSlash(name)); dir != "." {
			_ = os.Remove(filepath.Join(w.o.Output, dir)) // fails while there is something in it
		}
	}
}
