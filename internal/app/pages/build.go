package pages

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/humanize"
	"github.com/lektordir/lektor/internal/stylesheet"
	"github.com/lektordir/lektor/internal/workers"
)

// page is a page that should be there.
type page struct {
	path   string // relative, with slashes
	digest string // of all that is on it
	render func(*strings.Builder) (whole bool)
}

// atOnce is how many pages are written before it is found out whether that failed.
const atOnce = 512

// plan is what a run has to do.
type plan struct {
	// Before a page leads to another, that one is there: pages of entries come before the
	// lists, and of each kind those first that are not there yet.
	stages [4][]page
	todo   int             // pages in the stages
	wanted map[string]bool // paths of all pages
	gone   []string        // paths of pages that are not wanted
}

// build writes the pages that are not there as they should be, and then removes those
// that should not be there.
func (w *site) build(ctx context.Context) error {
	there, err := w.there()
	if err != nil {
		return err
	}
	p := w.plan(there)
	if p.todo+len(p.gone) == 0 && len(w.ledger.items) == len(w.list) {
		return nil
	}
	// Pages about to change leave the ledger until they are written, so that after a kill none
	// is taken for its older version.
	for _, pages := range p.stages {
		for _, page := range pages {
			delete(w.ledger.pages, page.path)
		}
	}
	if err := w.ledger.write(); err != nil {
		return err
	}
	if err := w.writeAll(ctx, p); err != nil {
		return err
	}
	if err := w.remove(p.gone); err != nil {
		return err
	}
	maps.DeleteFunc(w.ledger.pages, func(path string, _ known) bool { return !p.wanted[path] })
	w.ledger.items = make(map[string]*item, len(w.list))
	for _, i := range w.list {
		w.ledger.items[i.key] = i
	}
	if err := w.ledger.write(); err != nil {
		return err
	}
	if s := w.r.S; s.ErrIsTerminal() {
		s.Report.Info("%s: %s, %s written, %s removed", w.o.Output, humanize.Count(len(w.list), "entry"), humanize.Count(p.todo, "page"), humanize.Count(len(p.gone), "page"))
	}
	return nil
}

// plan compares the pages that there should be with those that there are.
func (w *site) plan(there map[string]int64) plan {
	p := plan{wanted: map[string]bool{}}
	for kind, pages := range [][]page{w.entryPages(), w.otherPages()} {
		for _, page := range pages {
			p.wanted[page.path] = true
			size, exists := there[page.path]
			// A power cut leaves pages empty, which costs less to look for than to prevent.
			if exists && w.ledger.pages[page.path] == (known{page.digest, size}) {
				continue
			}
			stage := 2 * kind
			if exists {
				stage++
			}
			p.stages[stage] = append(p.stages[stage], page)
			p.todo++
		}
	}
	for path := range there {
		if !p.wanted[path] {
			p.gone = append(p.gone, path)
		}
	}
	return p
}

// writeAll writes the pages of a plan, and notes them in the ledger.
func (w *site) writeAll(ctx context.Context, p plan) error {
	bar := w.r.S.Report.Progress(p.todo, "writing pages")
	defer bar.Done()
	for _, pages := range p.stages {
		for part := range slices.Chunk(pages, atOnce) {
			written := make([]known, len(part))
			failed := make([]error, len(part))
			err := workers.ForEach(ctx, len(part), func(i int) {
				defer bar.Add(1)
				written[i], failed[i] = w.write(part[i])
			})
			for i, page := range part {
				if err = cmp.Or(err, failed[i]); err != nil {
					return err
				}
				if written[i].digest != "" {
					w.ledger.pages[page.path] = written[i]
				}
			}
		}
	}
	return nil
}

// remove removes pages, and the directories that have nothing in them then.
func (w *site) remove(gone []string) error {
	dirs := map[string]bool{}
	for _, name := range gone {
		dirs[path.Dir(name)] = true
		if err := os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	delete(dirs, ".")
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		_ = os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(dir))) // fails while there is something in it
	}
	return nil
}

// write writes a page. It returns what the ledger is to know of it, nothing if something
// could not be read that belongs on the page: then the next run tries. A page that is
// there is not replaced by one that lacks something.
func (w *site) write(p page) (known, error) {
	var text strings.Builder
	whole := p.render(&text)
	to := filepath.Join(w.o.Output, filepath.FromSlash(p.path))
	if fi, err := os.Lstat(to); !whole && err == nil && fi.Mode().IsRegular() && fi.Size() > 0 {
		return known{}, nil
	}
	err := atomicfile.WriteUnsynced(to, []byte(text.String()))
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return known{}, err
		}
		err = atomicfile.WriteUnsynced(to, []byte(text.String()))
	}
	if !whole || err != nil {
		return known{}, err
	}
	return known{p.digest, int64(text.Len())}, nil
}

// entryPages returns the pages of the entries.
func (w *site) entryPages() []page {
	pages := make([]page, 0, len(w.list))
	for _, i := range w.list {
		pages = append(pages, w.entryPage(i, w.o.Images))
		if i.images && !w.o.Images {
			pages = append(pages, w.entryPage(i, true))
		}
	}
	return pages
}

// otherPages returns the pages of lists, and those that are neither.
func (w *site) otherPages() []page {
	var pages []page
	for _, g := range w.groups {
		for _, p := range g.pages(w.o.PerPage) {
			pages = append(pages, w.listPage(p))
		}
	}
	pages = append(pages, w.searchPages(w.list[max(0, len(w.list)-maxSearched):])...)
	return append(pages, w.feedsPage(), page{path: styleName, digest: digest(stylesheet.CSS), render: func(b *strings.Builder) bool {
		b.WriteString(stylesheet.CSS)
		return true
	}})
}

// there lists the pages that there are, with their sizes; -1 for what is no file. Only
// names that a page can have are ours. Pages that kills have left half-written are
// removed.
func (w *site) there() (map[string]int64, error) {
	found := map[string]int64{}
	return found, w.walk("", found)
}

// walk finds the pages in a directory, which ends in a slash unless it is the first, and
// those below it.
func (w *site) walk(dir string, found map[string]int64) error {
	names, err := os.ReadDir(filepath.Join(w.o.Output, filepath.FromSlash(dir)))
	if err != nil {
		return err
	}
	for _, e := range names {
		name := dir + e.Name()
		if e.IsDir() {
			if err := w.walk(name+"/", found); err != nil {
				return err
			}
			continue
		}
		if ourDirs().MatchString(name) {
			return notOurs(filepath.Join(w.o.Output, filepath.FromSlash(name)))
		}
		if ours().MatchString(name) {
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
			if ours().MatchString(dir+page) && atomicfile.Left(e, page) {
				_ = os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(name)))
			}
		}
	}
	return nil
}
