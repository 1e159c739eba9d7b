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
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/spill"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/workers"
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
// site in which all links of what the front page leads to lead somewhere, and the next
// one finishes it; pages that were about to be removed, to which nothing leads any more,
// may link to what is gone. Nobody else writes to the directory meanwhile.
func HTML(ctx context.Context, o HTMLOptions, s *command.Streams) error {
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
	defer w.close()
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

// site is a site that is written. Of its entries and pages, few are in memory at a time.
type site struct {
	o      HTMLOptions
	r      *run
	ledger *ledger
	list   *spill.List[*item] // oldest first
	lines  *spill.Pile        // of the ledger that is to be, those of the entries
	begun  map[string]*begun  // by feed
	feeds  []*group
	groups []*group // feeds, folders and all
	in     map[string][]*group
	rest   []page // which are neither of entries nor lists
}

// page is a page that should be there.
type page struct {
	path   string // relative, with slashes
	digest string // of all that is on it
	render func(*strings.Builder) (whole bool)
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
		return nil, nil, command.Hint(fmt.Errorf("%s has files in it that are not of a site of ours", o.Output), "name a new directory, or an empty one: pages that are no longer needed are removed from it")
	}
	busy := command.Hint(fmt.Errorf("another process writes to %s", o.Output), "try again in a moment")
	unlock, err := atomicfile.Lock(filepath.Join(o.Output, lockName), busy)
	if err != nil {
		return nil, nil, err
	}
	atomicfile.Sweep(path)
	w := &site{o: o, r: r, begun: map[string]*begun{}, in: map[string][]*group{}}
	if w.ledger, err = openLedger(path); err != nil {
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

// begun is what is known of the entries of a feed.
type begun struct {
	first *item // the oldest
	n     int
}

func byDate(a, b *item) int { return cmp.Or(a.date.Compare(b.date), cmp.Compare(a.key, b.key)) }

// byKey orders records as their keys are.
func byKey(a, b *entries.Record) int {
	x, y := a.Ref.Feed, b.Ref.Feed
	if x == y {
		return cmp.Compare(a.Ref.Unique, b.Ref.Unique)
	}
	n := min(len(x), len(y))
	if c := cmp.Compare(x[:n], y[:n]); c != 0 {
		return c
	}
	return cmp.Compare(x+"/", y+"/")
}

// selected gives the entries of the query by their keys.
func (w *site) selected(ctx context.Context) (*entries.Collection, error) {
	r := w.r
	if w.o.Newest == 0 {
		return r.collect(ctx, 0, entries.Collecting{Order: byKey})
	}
	all, err := r.collect(ctx, lektordir.FieldPubDate, entries.Collecting{Order: entries.ByDate})
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return r.CollectThese(ctx, all.From(max(0, all.Len()-w.o.Newest)), entries.Collecting{Order: byKey})
}

// atOnce is how many entries are read or written at once, on all cores.
const atOnce = 512

// items fills the list: from the ledger what is there, and by reading what is new, as
// entries do not change.
func (w *site) items(ctx context.Context) error {
	r := w.r
	w.list = spill.New(spill.How[*item]{Order: byDate, Encode: encodeItem, Decode: w.decodeItem, Most: r.Most})
	w.lines = spill.NewPile(r.Most)
	before := r.S.Report.Errors()
	found, err := w.selected(ctx)
	if err != nil {
		return err
	}
	defer found.Close()
	lost := &missing{r: r, incomplete: r.S.Report.Errors() > before}
	known := pull(w.ledger.items())
	defer known.stop()
	p := r.S.Report.Progress(found.Len(), "reading entries")
	defer p.Done()
	for records, err := range entries.InParts(found.All(), atOnce) {
		if err != nil {
			return err
		}
		var list []*item
		var unknown []int
		for _, e := range records {
			e.Anew() // what is shown is what is in the files now
			// Titles of the feed stand on all its pages and lists.
			if err := r.FeedError(e.Ref.Feed); err != nil {
				return unchanged(err)
			}
			key := e.Key()
			for known.ok && known.v.key < key {
				list = lost.keep(ctx, list, known.v)
				known.next()
			}
			isKnown := known.ok && known.v.key == key
			if isKnown && !known.v.date.After(r.Now) { // earlier versions took dates in the future
				known.v.record = e
				list = append(list, known.v)
			} else {
				unknown = append(unknown, len(list))
				list = append(list, &item{key: key, record: e})
			}
			if isKnown {
				known.next()
			}
		}
		err := workers.ForEach(ctx, len(unknown), func(n int) { list[unknown[n]] = newItem(r, list[unknown[n]].record) })
		if err != nil {
			return err
		}
		w.add(list)
		p.Add(len(records))
	}
	var rest []*item
	for known.ok {
		rest = lost.keep(ctx, rest, known.v)
		known.next()
	}
	if lost.err != nil {
		return unchanged(lost.err)
	}
	if w.add(rest); lost.kept > 0 {
		r.S.Report.Info("%s: %s could not be listed; the pages are kept", w.o.Output, units.Count(lost.kept, "entry"))
	}
	return known.err
}

// unchanged adds to an error that the site is as it was.
func unchanged(err error) error {
	return command.Hint(err, "the site stays as it is until its feeds can be read")
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
		if !slices.ContainsFunc(joined.Errors(err), refused) {
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
	i.record = m.r.Record(ref)
	return append(list, i)
}

// refused reports whether an error is one of the system, and not that something is gone.
func refused(err error) bool {
	_, ok := errors.AsType[syscall.Errno](err)
	return ok && !errors.Is(err, fs.ErrNotExist)
}

// newItem reads an entry; nil is one that cannot be read, which was told.
func newItem(r *run, e *entries.Record) *item {
	if !r.Usable(e.Check()) || !r.Usable(e.Read(lektordir.AllFields)) {
		return nil
	}
	i := &item{
		key: e.Key(), name: digest(e.Key()), feed: e.Ref.Feed, date: e.Date().Truncate(time.Second), record: e,
		title: termsafe.Squeeze(entries.Public(e.Get(0)).Title), excerpt: excerpt(e), images: mayHaveImages(e),
	}
	e.Forget()
	return i
}

// add adds items, by their keys.
func (w *site) add(list []*item) {
	var lines []byte
	for _, i := range list {
		if i == nil {
			continue
		}
		lines = i.appendLine(lines)
		b := w.begun[i.feed]
		if b == nil {
			b = &begun{first: i}
			w.begun[i.feed] = b
		}
		if b.n++; byDate(i, b.first) < 0 {
			b.first = i
		}
		w.list.Add(i)
	}
	if len(lines) > 0 {
		w.lines.Add(lines)
	}
}

func encodeItem(b []byte, i *item) []byte {
	e := spill.Encoder(b)
	e.Text(i.record.Ref.Path())
	e.Text(i.name)
	e.Time(i.date)
	e.Text(i.title)
	e.Text(i.excerpt)
	e.Bool(i.images)
	return e
}

func (w *site) decodeItem(s string) *item {
	in := spill.NewDecoder(s)
	path := in.Text()
	ref, _ := lektordir.ParsePath(path) // it is that of one
	i := &item{key: entries.Key(path), feed: ref.Feed, name: in.Text(), date: in.Time(), record: w.r.Record(ref)}
	i.title, i.excerpt, i.images = in.Text(), in.Text(), in.Bool()
	return i
}

// close gives back what the site is made with.
func (w *site) close() {
	w.ledger.close()
	if w.list != nil {
		w.list.Close()
		w.lines.Close()
	}
}

// there lists the pages that there are, with their sizes. Only names that a page can
// have are ours. What kills have left of pages that were being written is removed.
func (w *site) there() (*spill.List[file], error) {
	found := w.fileList()
	if err := w.walk("", found); err != nil {
		found.Close()
		return nil, err
	}
	return found, nil
}

// walk finds the pages in a directory, which ends in a slash unless it is the first, and
// those below it.
func (w *site) walk(dir string, found *spill.List[file]) error {
	for e, err := range namesIn(filepath.Join(w.o.Output, filepath.FromSlash(dir))) {
		if err != nil {
			return err
		}
		name := dir + e.Name()
		if e.IsDir() {
			if err := w.walk(name+"/", found); err != nil {
				return err
			}
			continue
		}
		if ourDirs().MatchString(name) {
			return command.Hint(fmt.Errorf("%s is no directory, and nothing is written behind a link", filepath.Join(w.o.Output, filepath.FromSlash(name))), "remove it: the pages that belong there are written again")
		}
		if ours().MatchString(name) {
			fi, err := e.Info()
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				return err
			case !fi.Mode().IsRegular():
				found.Add(file{name, -1})
			default:
				found.Add(file{name, fi.Size()})
			}
		}
		if hidden, ok := strings.CutPrefix(e.Name(), "."); ok {
			page := strings.TrimRight(hidden, "0123456789")
			if ours().MatchString(dir+page) && atomicfile.Left(e, page) {
				_ = os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(name)))
			}
		}
	}
	return nil
}

// prune removes directories that have nothing in them any more.
func (w *site) prune(dirs map[string]bool) {
	for dir := range dirs {
		if dir != "." {
			_ = os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(dir))) // fails while there is something in it
		}
	}
}
