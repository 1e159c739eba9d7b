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

	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// page is a page of the site.
type page struct {
	path     string // relative, with slashes
	digest   string // digest of the inputs from which the page is rendered
	template string
	// data returns the values for the template. It returns false if an input could not be read.
	data func() (data map[string]any, whole bool)
}

// atOnce is the number of pages that are written before their errors are checked.
const atOnce = 512

// plan is the work of a run.
type plan struct {
	// The stages are written one after the other, so that no link leads to a missing page: new
	// pages of entries, changed pages of entries, new lists, changed lists.
	stages   [4][]page
	todo     int             // number of pages in the stages
	wanted   map[string]bool // paths of all pages
	obsolete []string        // paths of pages to remove
}

// build writes the pages that are missing or have changed, and then removes obsolete pages.
func (w *site) build(ctx context.Context) error {
	existing, err := w.existing()
	if err != nil {
		return err
	}
	p := w.plan(existing)
	if p.todo+len(p.obsolete) == 0 && len(w.ledger.items) == len(w.list) {
		return nil
	}
	// Pages that are about to change leave the ledger until they are written. So after a kill, the
	// ledger has no digest of an older version.
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
	if err := w.remove(p.obsolete); err != nil {
		return err
	}
	maps.DeleteFunc(w.ledger.pages, func(path string, _ written) bool { return !p.wanted[path] })
	w.ledger.items = make(map[string]*item, len(w.list))
	for _, i := range w.list {
		w.ledger.items[i.key] = i
	}
	if err := w.ledger.write(); err != nil {
		return err
	}
	if s := w.r.S; s.ErrIsTerminal() {
		s.Report.Info("%s: %s, %s written, %s removed", w.o.Output, humanize.Count(len(w.list), "entry"),
			humanize.Count(p.todo, "page"), humanize.Count(len(p.obsolete), "page"))
	}
	return nil
}

// plan compares the pages of the site with the existing files and their sizes.
func (w *site) plan(existing map[string]int64) plan {
	p := plan{wanted: map[string]bool{}}
	for kind, pages := range [][]page{w.entryPages(), w.otherPages()} {
		for _, page := range pages {
			p.wanted[page.path] = true
			size, exists := existing[page.path]
			// A power cut can leave pages empty. To compare sizes costs less than to sync pages.
			if exists && w.ledger.pages[page.path] == (written{page.digest, size}) {
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
	for path := range existing {
		if !p.wanted[path] {
			p.obsolete = append(p.obsolete, path)
		}
	}
	return p
}

// writeAll writes the pages of a plan, and records them in the ledger.
func (w *site) writeAll(ctx context.Context, p plan) error {
	bar := w.r.S.Report.Progress(p.todo, "writing pages")
	defer bar.Done()
	for _, pages := range p.stages {
		for part := range slices.Chunk(pages, atOnce) {
			records := make([]written, len(part))
			failed := make([]error, len(part))
			err := workers.ForEach(ctx, len(part), func(i int) {
				defer bar.Add(1)
				records[i], failed[i] = w.write(part[i])
			})
			for i, page := range part {
				if err = cmp.Or(err, failed[i]); err != nil {
					return err
				}
				if records[i].digest != "" {
					w.ledger.pages[page.path] = records[i]
				}
			}
		}
	}
	return nil
}

// remove removes pages, and directories that become empty.
func (w *site) remove(paths []string) error {
	dirs := map[string]bool{}
	for _, name := range paths {
		dirs[path.Dir(name)] = true
		if err := os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(name))); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	delete(dirs, ".")
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		_ = os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(dir))) // fails unless it is empty
	}
	return nil
}

// write writes a page, and returns its record for the ledger. If an input of the page could not
// be read, the record is empty, so that the next run writes the page again. Then an existing page
// is not replaced.
func (w *site) write(p page) (written, error) {
	var text strings.Builder
	data, whole := p.data()
	data["Site"], data["Up"] = w.o.Title, strings.Repeat("../", strings.Count(p.path, "/"))
	if err := w.pages.ExecuteTemplate(&text, p.template, data); err != nil {
		return written{}, err
	}
	to := filepath.Join(w.o.Output, filepath.FromSlash(p.path))
	if fi, err := os.Lstat(to); !whole && err == nil && fi.Mode().IsRegular() && fi.Size() > 0 {
		return written{}, nil
	}
	err := atomicfile.InDir(to, func() error { return atomicfile.WriteUnsynced(to, []byte(text.String())) })
	if !whole || err != nil {
		return written{}, err
	}
	return written{p.digest, int64(text.Len())}, nil
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

// otherPages returns the pages of lists, the search index, the list of feeds, and the style sheet.
func (w *site) otherPages() []page {
	var pages []page
	for _, g := range w.groups {
		for _, p := range g.pages(w.o.PerPage) {
			pages = append(pages, w.listPage(p))
		}
	}
	pages = append(pages, w.searchPages(w.list[max(0, len(w.list)-maxSearched):])...)
	return append(pages, w.feedsPage(), page{styleName, digest(content.StyleSheet), "style",
		func() (map[string]any, bool) { return map[string]any{"Style": content.StyleSheet}, true }})
}

// existing returns the paths of existing pages with their sizes, or -1 for a directory entry that
// is not a regular file. Files whose names no page can have are ignored. Temporary files of killed
// runs are removed.
func (w *site) existing() (map[string]int64, error) {
	found := map[string]int64{}
	return found, filepath.WalkDir(w.o.Output+"/.", func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(w.o.Output, at) // both have the same beginning
		name := filepath.ToSlash(rel)
		if pageDirs().MatchString(name) {
			return notADirectory(at)
		}
		if pagePaths().MatchString(name) {
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
			if pagePaths().MatchString(path.Join(path.Dir(name), page)) && atomicfile.Left(e, page) {
				_ = os.Remove(at)
			}
		}
		return nil
	})
}
