package fullscreen

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/external"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/tui"
	"github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/htmltext"
	"github.com/lektordir/lektor/internal/index"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/watch"
	"github.com/lektordir/lektor/internal/workers"
	"github.com/lektordir/lektor/lektordir"
)

// diskAdapter is the lektor-dir for the full-screen reader. It is safe for concurrent use.
type diskAdapter struct {
	o     Options
	dir   *lektordir.Dir
	clock func() time.Time

	mu    sync.Mutex
	dates dates // of entries that were asked about
	total int   // how many entries there were when all were listed last
}

// dates are those of entries, by the hashes of their feeds and unique names, which do not
// change. A hundred thousand take as much as their names alone would, and nothing in them
// is a pointer that the collector of garbage would follow.
type dates struct {
	seed maphash.Seed
	of   map[uint64]date
}

// date is a moment.
type date struct {
	secs  int64
	nanos int32
}

func newDates() dates { return dates{maphash.MakeSeed(), map[uint64]date{}} }

func (d *dates) key(feed, unique string) uint64 {
	return maphash.Comparable(d.seed, [2]string{feed, unique})
}

func (d *dates) put(feed, unique string, t time.Time) {
	d.of[d.key(feed, unique)] = date{t.Unix(), int32(t.Nanosecond())}
}

func (d *dates) get(r lektordir.Ref) (time.Time, bool) {
	known, ok := d.of[d.key(r.Feed, r.Unique)]
	return time.Unix(known.secs, int64(known.nanos)).UTC(), ok
}

var _ tui.Disk = (*diskAdapter)(nil)

func newDiskAdapter(o Options, v *session.Session) *diskAdapter {
	return &diskAdapter{o: o, dir: v.Dir, clock: v.Clock, dates: newDates()}
}

// outputBuffer collects what a command says, for the last line of the screen.
type outputBuffer struct{ out, messages bytes.Buffer }

// streams are those of a command that has no terminal.
func (t *outputBuffer) streams() *command.Streams {
	return command.NewStreams("lektor-view", strings.NewReader(""), &t.out, &t.messages)
}

// said returns the messages in a line.
func (t *outputBuffer) said() string {
	var lines []string
	for l := range strings.Lines(t.messages.String()) {
		lines = append(lines, strings.TrimPrefix(strings.TrimSpace(l), "lektor-view: "))
	}
	return strings.Join(lines, "; ")
}

// err is an error with what was said before it.
func (t *outputBuffer) err(err error) error {
	said := t.said()
	switch {
	case err == nil && said == "":
		return nil
	case err == nil:
		return errors.New(said)
	case said == "":
		return err
	}
	return fmt.Errorf("%s; %w", said, err)
}

// store returns the entries as of now. Malformed ones are not reported, as they would be at
// each look.
func (l *diskAdapter) store() *entries.Store {
	return entries.New(l.dir, l.clock(), new(outputBuffer).streams())
}

// indexed returns the entries as of now, answered by the index.
func (l *diskAdapter) indexed() *entries.Store {
	s := l.store()
	s.Index = l.index()
	return s
}

func (l *diskAdapter) index() *index.Index {
	return index.For(l.dir, new(outputBuffer).streams(), l.o.Index)
}

// Overview asks the index, or, if that does not know, looks into the feeds that got
// something last.
func (l *diskAdapter) Overview(ctx context.Context, newest int) (*tui.Overview, error) {
	o := &tui.Overview{}
	var work workers.Group
	work.Go(func() (err error) {
		if l.index().Exists() {
			known, err := l.indexed().Overview(ctx, newest)
			if err != nil {
				return err
			}
			if known != nil {
				o.Counts = known.Feeds
				o.Newest = listed(known.Newest)
				total := 0
				for _, n := range known.Feeds {
					total += n.All
				}
				l.mu.Lock()
				l.total = total
				l.mu.Unlock()
				return nil
			}
		}
		o.Newest, err = l.glance(ctx, newest)
		return err
	})
	work.Go(func() (err error) {
		o.Saved, _ = l.Saved(ctx) // it is not worth the rest
		o.Feeds, err = l.Feeds(ctx)
		return err
	})
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return o, nil
}

// listed returns entries as a list shows them.
func listed(records []*entries.Record) []tui.Listed {
	list := make([]tui.Listed, len(records))
	for i, r := range records {
		list[i] = tui.Listed{Ref: r.Ref, Date: r.Date(), Row: rowOf(r)}
	}
	return list
}

// A glance looks into glanceFeeds feeds, or fewer when it has seen glanceEntries entries, and
// takes from each the glanceEach entries that were delivered last.
const glanceFeeds, glanceEntries, glanceEach = 8, 2000, 100

// glance returns unread entries of the feeds that got some last, the newest first. It reads
// no directory of the others, so it is done long before a list is.
func (l *diskAdapter) glance(ctx context.Context, newest int) ([]tui.Listed, error) {
	names, err := os.ReadDir(l.dir.Join("new"))
	if err != nil {
		return nil, err
	}
	type got struct {
		feed string
		when time.Time
	}
	feeds := make([]got, len(names))
	if err := workers.ForEach(ctx, len(names), func(i int) {
		if fi, err := names[i].Info(); err == nil && fi.IsDir() && !strings.HasPrefix(fi.Name(), ".") {
			feeds[i] = got{fi.Name(), fi.ModTime()}
		}
	}); err != nil {
		return nil, err
	}
	feeds = slices.DeleteFunc(feeds, func(f got) bool { return f.feed == "" })
	slices.SortFunc(feeds, func(a, b got) int { return cmp.Or(b.when.Compare(a.when), cmp.Compare(a.feed, b.feed)) })
	var records []*entries.Record
	s, seen := l.store(), 0
	for i, f := range feeds {
		if len(records) >= newest && (i >= glanceFeeds || seen >= glanceEntries) {
			break
		}
		// ls and check report malformed entries.
		refs, _ := l.dir.List(ctx, lektordir.ListOptions{Feeds: []string{f.feed}, SkipTrashed: true})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		seen += len(refs)
		refs = slices.DeleteFunc(refs, func(r lektordir.Ref) bool { return !r.Unread() })
		for _, r := range refs[max(0, len(refs)-glanceEach):] {
			records = append(records, s.Record(r))
		}
	}
	if err := workers.ForEach(ctx, len(records), func(i int) { records[i].Date() }); err != nil {
		return nil, err
	}
	slices.SortFunc(records, func(a, b *entries.Record) int {
		return cmp.Or(b.Date().Compare(a.Date()), cmp.Compare(b.Ref.Unique, a.Ref.Unique), cmp.Compare(b.Ref.Feed, a.Ref.Feed))
	})
	l.mu.Lock()
	for _, r := range records {
		l.dates.put(r.Ref.Feed, r.Ref.Unique, r.Date())
	}
	l.mu.Unlock()
	return listed(records[:min(len(records), newest)]), nil
}

// rowOf returns the row of an entry in a list.
func rowOf(r *entries.Record) tui.Row { return tui.Row{Title: tui.Plain(termsafe.Brief(r.Title()))} }

func (l *diskAdapter) Feeds(ctx context.Context) ([]tui.Feed, error) {
	hashes, err := l.dir.FeedHashes()
	if hashes == nil && err != nil {
		return nil, err
	}
	s := l.store()
	list, ids := make([]tui.Feed, len(hashes)), make([]string, len(hashes))
	err = workers.ForEach(ctx, len(hashes), func(i int) {
		// ls and check report malformed feeds.
		if f, err := l.dir.ReadFeed(hashes[i]); err == nil {
			list[i], ids[i] = tui.Feed{Hash: f.Hash, Title: f.Title(), Folders: s.Folders(f.Hash)}, f.ID
		}
	})
	tellApart(list, ids)
	return slices.DeleteFunc(list, func(f tui.Feed) bool { return f.Hash == "" }), err
}

// tellApart sets Apart of feeds that have a title in common: the host of the id, or the
// whole id if the hosts are the same.
func tellApart(list []tui.Feed, ids []string) {
	titles, hosts := map[string]int{}, map[[2]string]int{}
	title := func(i int) string { return query.Fold(tui.Plain(list[i].Title)) }
	host := func(i int) string {
		u, err := url.Parse(ids[i])
		if err != nil {
			return ""
		}
		return u.Host
	}
	for i := range list {
		titles[title(i)]++
		hosts[[2]string{title(i), host(i)}]++
	}
	for i := range list {
		switch name := host(i); {
		case titles[title(i)] == 1:
		case name != "" && hosts[[2]string{title(i), name}] == 1:
			list[i].Apart = name
		default:
			id := fetch.Public(ids[i])
			_, rest, ok := strings.Cut(id, "://")
			list[i].Apart = cmp.Or(rest, id)
			if !ok {
				list[i].Apart = id
			}
		}
	}
}

func (l *diskAdapter) List(ctx context.Context, feeds ...string) (map[string][]lektordir.Ref, error) {
	all := len(feeds) == 0
	feeds, err := l.places(feeds)
	if err != nil {
		return nil, err
	}
	lists := make([][]lektordir.Ref, len(feeds))
	if err := workers.ForEach(ctx, len(feeds), func(i int) {
		// ls and check report what is malformed.
		lists[i], _ = l.dir.List(ctx, lektordir.ListOptions{Feeds: feeds[i : i+1], SkipTrashed: true})
	}); err != nil {
		return nil, err
	}
	byFeed := make(map[string][]lektordir.Ref, len(feeds))
	total := 0
	for i, refs := range lists {
		byFeed[feeds[i]] = refs
		total += len(refs)
	}
	if all {
		l.mu.Lock()
		l.total = total
		l.mu.Unlock()
	}
	return byFeed, nil
}

// places returns the feeds that have entries if no feeds are given.
func (l *diskAdapter) places(feeds []string) ([]string, error) {
	given := len(feeds) > 0
	for _, place := range []string{"new", "cur"} {
		if given {
			// A feed that is nowhere has no entries; a lektor-dir that is nowhere is another
			// matter.
			if _, err := os.Stat(l.dir.Join(place)); err != nil {
				return nil, err
			}
			continue
		}
		ents, err := os.ReadDir(l.dir.Join(place))
		if err != nil {
			return nil, err
		}
		for _, e := range ents {
			if !strings.HasPrefix(e.Name(), ".") {
				feeds = append(feeds, e.Name())
			}
		}
	}
	if !given {
		slices.Sort(feeds)
		feeds = slices.Compact(feeds)
	}
	return feeds, nil
}

// Learn asks the index, which it begins first where there are many entries and none is
// there. Dates that it does not have are read.
func (l *diskAdapter) Learn(ctx context.Context, refs []lektordir.Ref, progress func(what string, done, total int)) error {
	x := l.index()
	l.mu.Lock()
	total := l.total
	l.mu.Unlock()
	x.Missed(total)
	if x.Exists() && len(refs) > 0 {
		// If there can be none now, the entries are read after all.
		_ = x.Build(ctx, func(done, total int) { progress("indexing", done, total) })
	}
	s := l.indexed()
	if _, err := s.Dates(ctx, func(feed, unique string, when time.Time) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.dates.put(feed, unique, when)
	}); err != nil {
		return err
	}
	var missing []lektordir.Ref
	l.mu.Lock()
	for _, r := range refs {
		if _, ok := l.dates.get(r); !ok {
			missing = append(missing, r)
		}
	}
	l.mu.Unlock()
	done := 0
	for part := range slices.Chunk(missing, datesAtOnce) {
		if _, err := l.readDates(ctx, s, part); err != nil {
			return err
		}
		done += len(part)
		progress("reading dates", done, len(missing))
	}
	return nil
}

// datesSoon is how many entries can be read while a person waits.
const datesSoon = 10_000

// datesAtOnce is how many entries are read between two looks at the context.
const datesAtOnce = 256

// readDates reads the dates of entries, and remembers them. The error is the context's.
func (l *diskAdapter) readDates(ctx context.Context, s *entries.Store, refs []lektordir.Ref) ([]time.Time, error) {
	dates := make([]time.Time, len(refs))
	if err := workers.ForEach(ctx, len(refs), func(i int) { dates[i] = s.Record(refs[i]).Date() }); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range refs {
		l.dates.put(r.Feed, r.Unique, dates[i])
	}
	return dates, nil
}

func (l *diskAdapter) Dates(ctx context.Context, refs []lektordir.Ref) (dates []time.Time, whole bool) {
	dates = make([]time.Time, len(refs))
	var missing []int
	l.mu.Lock()
	for i, r := range refs {
		known := false
		if dates[i], known = l.dates.get(r); !known {
			missing = append(missing, i)
		}
	}
	l.mu.Unlock()
	s := l.store()
	whole = true
	for part := range slices.Chunk(missing, datesAtOnce) {
		// The dates of more entries are learned later.
		if len(missing) <= datesSoon && ctx.Err() == nil {
			some := make([]lektordir.Ref, len(part))
			for i, at := range part {
				some[i] = refs[at]
			}
			if read, err := l.readDates(ctx, s, some); err == nil {
				for i, at := range part {
					dates[at] = read[i]
				}
				continue
			}
		}
		whole = false
		for _, at := range part {
			dates[at] = refs[at].Delivered()
		}
	}
	return dates, whole
}

func (l *diskAdapter) Rows(ctx context.Context, refs []lektordir.Ref) []tui.Row {
	s := l.store()
	rows := make([]tui.Row, len(refs))
	_ = workers.ForEach(ctx, len(refs), func(i int) {
		rows[i] = rowOf(s.Record(refs[i]))
	})
	return rows
}

func (l *diskAdapter) Query(_ context.Context, text string) (tui.Query, error) {
	q, err := l.parse(text)
	if err != nil {
		return tui.Query{}, err
	}
	m := q.Bind(l.clock())
	find := func(ctx context.Context) ([]lektordir.Ref, bool) {
		var refs []lektordir.Ref
		found, ok, err := l.indexed().Indexed(ctx, entries.Selection{Query: q, All: true})
		for _, r := range found {
			if !r.Ref.Trashed() {
				refs = append(refs, r.Ref)
			}
		}
		return refs, ok && err == nil
	}
	match := func(ctx context.Context, refs []lektordir.Ref) []bool {
		s := l.store()
		yes := make([]bool, len(refs))
		_ = workers.ForEach(ctx, len(refs), func(i int) {
			r := s.Record(refs[i])
			ok, err := r.Decide(m, q.Fields())
			yes[i] = ok && err == nil
		})
		return yes
	}
	return tui.Query{State: q.MentionsState(), Find: find, Match: match}, nil
}

// parse reads a query.
func (l *diskAdapter) parse(text string) (*query.Query, error) {
	return entries.ParseQuery(l.dir.Path(), []string{text})
}

func (l *diskAdapter) Page(_ context.Context, ref lektordir.Ref, width int, feedText bool) (*tui.Page, error) {
	s := l.store()
	r := s.Record(ref)
	if err := r.Read(lektordir.AllFields); err != nil {
		return nil, err
	}
	hasArticle := r.Get(0).FullText.URL != ""
	if feedText {
		if err := r.TakeFeedText(); err != nil {
			return nil, err
		}
	}
	var b strings.Builder
	viewer.Header(&b, s, r)
	d := r.Document(width)
	e := r.Get(0)
	p := &tui.Page{HasArticle: hasArticle, Text: d.Text, URL: r.URL(), Links: d.Links, Pictures: d.Pictures}
	if p.Text == "" {
		p.Text = termsafe.Clean(e.Summary)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "Flags: ") {
			continue // they may change while one reads, and stand above
		}
		// Three lines of each say enough; of what may be copied nothing is cut off.
		if line = termsafe.Brief(line); !strings.Contains(line, "://") {
			line = termsafe.Truncate(line, 3*width-10)
		}
		text := htmltext.Render([]byte(line), "", htmltext.Options{Width: width})
		p.Header = append(p.Header, strings.TrimSuffix(text, "\n"))
	}
	for _, enc := range e.Enclosures {
		p.Enclosures = append(p.Enclosures, enc.URL)
		if strings.HasPrefix(enc.Type, "image/") && !slices.Contains(p.Pictures, enc.URL) {
			p.Pictures = append(p.Pictures, enc.URL)
		}
	}
	if e.Image != "" && !slices.Contains(p.Pictures, e.Image) {
		p.Pictures = append(p.Pictures, e.Image)
	}
	return p, nil
}

// mover returns what moves entries for the reader, and where its messages go.
func (l *diskAdapter) mover() (*undo.Mover, *outputBuffer) {
	t := &outputBuffer{}
	return undo.Moving(entries.New(l.dir, l.clock(), t.streams()), "tui"), t
}

func (l *diskAdapter) Mark(ctx context.Context, refs []lektordir.Ref, set, unset string) ([]lektordir.Ref, error) {
	m, t := l.mover()
	var moved []lektordir.Ref
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		to, err := m.SetFlags(ref, set, unset)
		switch {
		case err == nil:
			moved = append(moved, to)
		case !undo.Removed(err) || len(refs) == 1:
			m.Failed(err)
		}
	}
	m.Close()
	return moved, t.err(nil)
}

func (l *diskAdapter) Trash(ctx context.Context, refs []lektordir.Ref) error {
	m, t := l.mover()
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		doomed, err := m.WithOlder(ctx, ref)
		if err != nil {
			m.Failed(err)
			continue
		}
		m.RemoveAll(doomed, (*undo.Mover).Trash)
	}
	m.Close()
	return t.err(nil)
}

func (l *diskAdapter) Undo(ctx context.Context) (string, []lektordir.Ref, error) {
	t := &outputBuffer{}
	err := undo.Undo(ctx, undo.Options{Common: l.o.Common}, t.streams())
	var moved []lektordir.Ref
	for path := range strings.Lines(t.out.String()) {
		if rel, err := filepath.Rel(l.dir.Path(), strings.TrimSuffix(path, "\n")); err == nil {
			if ref, err := lektordir.ParsePath(rel); err == nil {
				moved = append(moved, ref)
			}
		}
	}
	if err != nil {
		return "", moved, t.err(err)
	}
	return t.said(), moved, nil
}

// savedDir holds the saved queries, a file each.
const savedDir = "etc/view/query"

func (l *diskAdapter) Saved(context.Context) ([]tui.Saved, error) {
	list, err := entries.SavedQueries(l.dir.Path())
	var all []tui.Saved
	for _, q := range list {
		all = append(all, tui.Saved{Name: q.Name, Err: q.Err})
	}
	return all, err
}

func (l *diskAdapter) Save(_ context.Context, name, text string) error {
	if _, err := l.parse(text); err != nil {
		return err
	}
	if err := atomicfile.NoLinks(l.dir.Path(), "etc/view", savedDir); err != nil {
		return err
	}
	if err := query.CheckName(name); err != nil {
		return err
	}
	path := l.dir.Join(savedDir, name)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("there is a saved query %s already", name)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(text+"\n"))
}

// poll is how often the reader looks for changes that the kernel cannot report.
const poll = 5 * time.Second

func (l *diskAdapter) Watch(ctx context.Context, since time.Time, changed func(feed string)) error {
	broken := make(chan *workers.Panic, 2) // one of each goroutine of the watcher
	w := watch.Guarded(ctx, poll, nil, func(p *workers.Panic) { broken <- p })
	// Queries and folders may be made while one reads; places of entries must be there.
	for _, place := range []string{"new", "cur"} {
		if err := w.Add(l.dir.Join(place)); err != nil {
			return err
		}
	}
	_ = w.Add(l.dir.Join(savedDir)) // if it is there
	known := map[string]bool{}
	since = since.Add(-2 * time.Second) // file systems know no less than that
	feeds := func() error {
		for _, place := range []string{"new", "cur"} {
			ents, err := os.ReadDir(l.dir.Join(place))
			if err != nil {
				return err
			}
			for _, e := range ents {
				dir := l.dir.Join(place, e.Name())
				if known[dir] || strings.HasPrefix(e.Name(), ".") {
					continue
				}
				if err := w.Add(dir); err == nil {
					known[dir] = true
					// A change before it was watched may not have been seen.
					if fi, err := os.Stat(dir); err != nil || fi.ModTime().After(since) {
						changed(e.Name())
					}
				}
			}
		}
		return nil
	}
	if err := feeds(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-broken:
			panic(p)
		case dir := <-w.Changed:
			base := filepath.Base(dir)
			switch {
			case dir == "", dir == l.dir.Join(savedDir):
				if err := feeds(); err != nil {
					return err
				}
				changed("")
			case base == "new" || base == "cur":
				if err := feeds(); err != nil {
					return err
				}
			default:
				changed(base)
			}
		}
	}
}

func (l *diskAdapter) Open(ctx context.Context, ref lektordir.Ref, url string) (string, error) {
	t := &outputBuffer{}
	s := entries.New(l.dir, l.clock(), t.streams())
	r := s.Record(ref)
	var err error
	if url == "" {
		url, err = viewer.PageOf(r)
	}
	if err == nil {
		// The terminal is the reader's: a browser that needs one is for the keys run and
		// run-wait.
		err = external.Browser.HandOver(ctx, s, r, url, func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} })
	}
	if err != nil {
		return "", t.err(err)
	}
	return url, nil
}

func (l *diskAdapter) Player(_ context.Context, _ lektordir.Ref, url string) ([]string, error) {
	return external.Player.Command(l.dir, url)
}

func (l *diskAdapter) Command(_ context.Context, ref lektordir.Ref, words []string) ([]string, error) {
	a, err := external.New(words)
	if err != nil {
		return nil, err
	}
	return a.For(l.store().Record(ref))
}

func (l *diskAdapter) Environ(_ context.Context, ref lektordir.Ref) []string {
	s := l.store()
	return external.Environ(s, s.Record(ref))
}

// Limits of a picture, for which the user waits.
const (
	pictureBytes = 20 << 20
	pictureTime  = 30 * time.Second
)

func (l *diskAdapter) Picture(ctx context.Context, ref lektordir.Ref, url string) ([]byte, error) {
	config := l.o.Fetch
	config.Gap = 0
	config.Deadline = pictureTime
	config.MaxBytes, config.MaxDecoded = pictureBytes, pictureBytes
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, errors.New("pictures are fetched by http and https")
	}
	client := fetch.NewClient(config)
	defer client.Close()
	feed := l.dir.FeedOf(ref)
	res, err := client.Get(ctx, &fetch.Request{URL: url, Origin: cmp.Or(feed.ID, feed.Link), Last: true})
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}
