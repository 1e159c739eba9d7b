package pages

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/spill"
	"github.com/lektordir/lektor/internal/stylesheet"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/workers"
)

// file is a page that there is, with its size.
type file struct {
	path string
	size int64
}

func encodeFile(b []byte, f file) []byte {
	e := spill.Encoder(b)
	e.Text(f.path)
	e.Int(f.size)
	return e
}

func decodeFile(s string) file {
	in := spill.NewDecoder(s)
	return file{in.Text(), in.Int()}
}

// fileList gives a list of pages by their paths.
func (w *site) fileList() *spill.List[file] {
	return spill.New(spill.How[file]{Order: func(a, b file) int { return cmp.Compare(a.path, b.path) }, Encode: encodeFile, Decode: decodeFile, Most: w.r.Most})
}

// planned is a page that there should be, and what it is: of an entry, whose pages have
// two numbers each; of the list of a number, less than none; or another.
type planned struct {
	path, digest string
	entry        int // -1 for none
	list         int // the number of the group; -1 for none
}

func encodePlanned(b []byte, p planned) []byte {
	e := spill.Encoder(b)
	e.Text(p.path)
	e.Text(p.digest)
	e.Int(int64(p.entry))
	e.Int(int64(p.list))
	return e
}

func decodePlanned(s string) planned {
	in := spill.NewDecoder(s)
	return planned{in.Text(), in.Text(), int(in.Int()), int(in.Int())}
}

// pulled is a sequence that is looked at one by one.
type pulled[T any] struct {
	v    T
	ok   bool // there is one
	err  error
	more func() (T, error, bool)
	stop func()
}

// pull begins with the first.
func pull[T any](list iter.Seq2[T, error]) *pulled[T] {
	p := &pulled[T]{}
	p.more, p.stop = iter.Pull2(list)
	p.next()
	return p
}

func (p *pulled[T]) next() {
	if p.v, p.err, p.ok = p.more(); p.err != nil {
		p.ok = false
	}
}

// compared is a page that should be there, or is.
type compared struct {
	path    string
	planned *planned // nil for one that should not be there
	file    *file    // nil for one that is not
	noted   *noted   // nil for one that the ledger does not know
}

// todo tells whether it is to be written.
func (c *compared) todo() bool {
	// A power cut leaves pages empty, which costs less to look for than to prevent.
	return c.planned != nil && (c.file == nil || c.noted == nil || c.noted.known != known{c.planned.digest, c.file.size})
}

// building is the work on the pages of a site.
type building struct {
	*site
	planned *spill.List[planned] // by path, as the others
	files   *spill.List[file]
	gone    *spill.List[file]
	written *spill.List[file]

	// What is to be written: pages of entries by their numbers, and lists and others by
	// their paths; which of them are there; and what lists have such pages.
	entries, entriesThere bits
	paths                 map[string]bool
	lists                 map[int]bool
	wide, narrow          [2]int // how many of them, those that are not there first
}

// bits are truths by number.
type bits []uint64

func newBits(n int) bits       { return make(bits, n/64+1) }
func (b bits) set(i int)       { b[i/64] |= 1 << (i % 64) }
func (b bits) has(i int) bool  { return b[i/64]&(1<<(i%64)) != 0 }
func (b *building) todo() int  { return b.wide[0] + b.wide[1] + b.narrow[0] + b.narrow[1] }
func (b *building) same() bool { return b.todo()+b.gone.Len() == 0 && b.ledger.entries == b.list.Len() }

// build writes the pages that are not there as they should be, and then removes those
// that should not be there.
func (w *site) build(ctx context.Context) error {
	b := &building{site: w, paths: map[string]bool{}, lists: map[int]bool{}}
	b.gone, b.written = w.fileList(), w.fileList()
	b.planned = spill.New(spill.How[planned]{
		Order: func(a, b planned) int { return cmp.Compare(a.path, b.path) }, Encode: encodePlanned, Decode: decodePlanned, Most: w.r.Most,
	})
	defer b.gone.Close()
	defer b.written.Close()
	defer b.planned.Close()
	var err error
	if b.files, err = w.there(); err != nil {
		return err
	}
	defer b.files.Close()
	if err := b.plan(ctx); err != nil {
		return err
	}
	if err := b.look(); err != nil || b.same() {
		return err
	}
	// What is about to change is not known until it has: a kill leaves no page that is
	// taken for another.
	if err := b.forget(); err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for f, err := range b.gone.All() {
		if err == nil {
			dirs[path.Dir(f.path)] = true
			err = os.Remove(filepath.Join(w.o.Output, filepath.FromSlash(f.path)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	w.prune(dirs)
	if err := b.remember(); err != nil {
		return err
	}
	if s := w.r.S; s.ErrIsTerminal() {
		s.Report.Info("%s: %s, %s written, %s removed", w.o.Output, units.Count(w.list.Len(), "entry"), units.Count(b.todo(), "page"), units.Count(b.gone.Len(), "page"))
	}
	return nil
}

// plan says which pages there should be.
func (b *building) plan(ctx context.Context) error {
	w := b.site
	var newest []*item
	digests := make([]digester, len(w.groups))
	for _, g := range w.groups {
		g.at = 0
	}
	n := 0
	for i, err := range w.list.All() {
		if err == nil && n%atOnce == 0 && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		for k, p := range w.entryPages(i) {
			b.planned.Add(planned{path: p.path, digest: p.digest, entry: 2*n + k, list: -1})
		}
		for _, g := range w.in[i.feed] {
			p := g.pageOf(g.at, w.o.PerPage)
			if g.at == p.from {
				digests[g.number] = p.digest(w)
			}
			digests[g.number].onList(i)
			if g.at++; g.at == p.to {
				b.planned.Add(planned{path: p.name, digest: digests[g.number].sum(), entry: -1, list: g.number})
			}
		}
		if n++; w.list.Len()-n < maxSearched {
			// Without what it shares its memory with.
			newest = append(newest, &item{key: strings.Clone(i.key), name: strings.Clone(i.name), title: strings.Clone(i.title)})
		}
	}
	if all := w.groups[len(w.groups)-1]; all.n == 0 {
		p := all.pageOf(0, w.o.PerPage)
		b.planned.Add(planned{path: p.name, digest: p.digest(w).sum(), entry: -1, list: all.number})
	}
	w.rest = append(w.searchPages(newest), w.feedsPage(), page{path: styleName, digest: digest(stylesheet.CSS), render: func(b *strings.Builder) bool {
		b.WriteString(stylesheet.CSS)
		return true
	}})
	for _, p := range w.rest {
		b.planned.Add(planned{path: p.path, digest: p.digest, entry: -1, list: -1})
	}
	return nil
}

// compare calls f for all pages that should be there, or are, or that the ledger knows,
// by their paths.
func (b *building) compare(f func(*compared) error) error {
	should, are, old := pull(b.planned.All()), pull(b.files.All()), pull(b.ledger.pages())
	defer should.stop()
	defer are.stop()
	defer old.stop()
	for should.ok || are.ok || old.ok {
		c := &compared{}
		first := true
		for _, p := range []struct {
			ok   bool
			path string
		}{{should.ok, should.v.path}, {are.ok, are.v.path}, {old.ok, old.v.path}} {
			if p.ok && (first || p.path < c.path) {
				c.path, first = p.path, false
			}
		}
		if should.ok && should.v.path == c.path {
			v := should.v
			c.planned = &v
			should.next()
		}
		if are.ok && are.v.path == c.path {
			v := are.v
			c.file = &v
			are.next()
		}
		if old.ok && old.v.path == c.path {
			v := old.v
			c.noted = &v
			old.next()
		}
		if err := f(c); err != nil {
			return err
		}
	}
	return cmp.Or(should.err, are.err, old.err)
}

// look finds out what is to be written, and what should not be there.
func (b *building) look() error {
	b.entries, b.entriesThere = newBits(2*b.list.Len()), newBits(2*b.list.Len())
	return b.compare(func(c *compared) error {
		there := 0
		if c.file != nil {
			there = 1
		}
		switch {
		case c.planned == nil:
			if c.file != nil {
				b.gone.Add(*c.file)
			}
		case !c.todo():
		case c.planned.entry >= 0:
			b.wide[there]++
			b.entries.set(c.planned.entry)
			if there == 1 {
				b.entriesThere.set(c.planned.entry)
			}
		default:
			b.narrow[there]++
			b.paths[strings.Clone(c.path)] = there == 1
			if c.planned.list >= 0 {
				b.lists[c.planned.list] = true
			}
		}
		return nil
	})
}

// save writes the ledger.
func (b *building) save(from func(*bufio.Writer) error) error {
	return atomicfile.WriteUnsyncedFrom(filepath.Join(b.o.Output, ledgerName), func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 64<<10)
		_, _ = out.WriteString(ledgerHead + "\n")
		return cmp.Or(from(out), out.Flush())
	})
}

// forget writes the ledger without what is to be written.
func (b *building) forget() error {
	return b.save(func(out *bufio.Writer) error {
		err := b.ledger.lines("entry", func(line string, fields []string) bool {
			if parseItem(fields) != nil {
				_, _ = out.WriteString(line)
			}
			return true
		})
		if err != nil {
			return err
		}
		return b.compare(func(c *compared) error {
			if c.noted != nil && !c.todo() {
				_, _ = out.WriteString(c.noted.line())
			}
			return nil
		})
	})
}

// remember writes the ledger as it is when all was written.
func (b *building) remember() error {
	return b.save(func(out *bufio.Writer) error {
		for lines, err := range b.lines.Texts() {
			if err != nil {
				return err
			}
			_, _ = out.WriteString(lines)
		}
		written := pull(b.written.All())
		defer written.stop()
		err := b.compare(func(c *compared) error {
			switch {
			case c.planned == nil:
			case !c.todo():
				_, _ = out.WriteString(c.noted.line())
			case written.ok && written.v.path == c.path:
				_, _ = out.WriteString(noted{c.path, known{c.planned.digest, written.v.size}}.line())
				written.next()
			}
			return nil
		})
		return cmp.Or(err, written.err)
	})
}

// write renders and writes pages: those of entries in parallel, then the lists that lead
// to them. Before a page leads to another, that one is there: so those come first that
// are not.
func (b *building) write(ctx context.Context) error {
	p := b.r.S.Report.Progress(b.todo(), "writing pages")
	defer p.Done()
	some := func(pages []page) error {
		results := make([]struct {
			file
			whole bool
			err   error
		}, len(pages))
		err := workers.ForEach(ctx, len(pages), func(i int) {
			defer p.Add(1)
			x := &results[i]
			x.path = pages[i].path
			x.size, x.whole, x.err = b.one(pages[i])
		})
		for _, x := range results {
			if err == nil {
				err = x.err
			}
			if x.whole && x.err == nil {
				b.written.Add(x.file) // else the next run tries
			}
		}
		return err
	}
	for there, n := range b.wide {
		if n == 0 {
			continue
		}
		if err := b.writeEntries(there == 1, some); err != nil {
			return err
		}
	}
	for there, n := range b.narrow {
		if n == 0 {
			continue
		}
		if err := b.writeLists(ctx, there == 1, some); err != nil {
			return err
		}
		for _, pg := range b.rest {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if is, todo := b.paths[pg.path]; todo && is == (there == 1) {
				if err := some([]page{pg}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// one writes a page. It returns the size, and whether all could be read that belongs on
// the page. A page that is there is not replaced by one that lacks something.
func (b *building) one(pg page) (size int64, whole bool, err error) {
	var text strings.Builder
	whole = pg.render(&text)
	to := filepath.Join(b.o.Output, filepath.FromSlash(pg.path))
	if fi, err := os.Lstat(to); !whole && err == nil && fi.Mode().IsRegular() && fi.Size() > 0 {
		return fi.Size(), false, nil
	}
	err = atomicfile.WriteUnsynced(to, []byte(text.String()))
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return 0, false, err
		}
		err = atomicfile.WriteUnsynced(to, []byte(text.String()))
	}
	return int64(text.Len()), whole, err
}

// entryPages gives the pages of an entry.
func (w *site) entryPages(i *item) []page {
	pages := []page{w.entryPage(i, w.o.Images)}
	if i.images && !w.o.Images {
		pages = append(pages, w.entryPage(i, true))
	}
	return pages
}

// writeEntries writes the pages of entries that are there, or those that are not.
func (b *building) writeEntries(there bool, some func([]page) error) error {
	var pages []page
	n := 0
	for i, err := range b.list.All() {
		if err != nil {
			return err
		}
		todo := func(k int) bool { return b.entries.has(2*n+k) && b.entriesThere.has(2*n+k) == there }
		if todo(0) || todo(1) {
			for k, pg := range b.entryPages(i) {
				if todo(k) {
					pages = append(pages, pg)
				}
			}
		}
		if n++; len(pages) >= atOnce {
			if err := some(pages); err != nil {
				return err
			}
			pages = nil
		}
	}
	return some(pages)
}

// mostListed is how many entries of lists are in memory at once.
const mostListed = 20_000

// writeLists writes the pages of lists that are there, or those that are not.
func (b *building) writeLists(ctx context.Context, there bool, some func([]page) error) error {
	var part []*group
	size := 0
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		err := b.writeGroups(ctx, part, there, some)
		part, size = nil, 0
		return err
	}
	for _, g := range b.groups {
		if !b.lists[g.number] {
			continue
		}
		part = append(part, g)
		if size += min(g.n, 2*b.o.PerPage); size >= mostListed {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// writeGroups is writeLists for some of the lists.
func (b *building) writeGroups(ctx context.Context, groups []*group, there bool, some func([]page) error) error {
	todo := func(p listPage) bool {
		is, ok := b.paths[p.name]
		return ok && is == there
	}
	wanted := make([]bool, len(b.groups))
	items := make([][]*item, len(b.groups))
	pages := make([]listPage, len(b.groups))
	for _, g := range groups {
		wanted[g.number], g.at = true, 0
		if g.n == 0 && todo(g.pageOf(0, b.o.PerPage)) {
			if err := some([]page{b.listPage(g.pageOf(0, b.o.PerPage), nil)}); err != nil {
				return err
			}
		}
	}
	for i, err := range b.list.All() {
		if err != nil {
			return err
		}
		for _, g := range b.in[i.feed] {
			if !wanted[g.number] {
				continue
			}
			if g.at == 0 || g.at == pages[g.number].to {
				pages[g.number] = g.pageOf(g.at, b.o.PerPage)
			}
			g.at++
			p := pages[g.number]
			if !todo(p) {
				continue
			}
			items[g.number] = append(items[g.number], i)
			if g.at < p.to {
				continue
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := some([]page{b.listPage(p, items[g.number])}); err != nil {
				return err
			}
			items[g.number] = nil
		}
	}
	return nil
}
