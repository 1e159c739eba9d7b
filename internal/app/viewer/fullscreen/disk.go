package fullscreen

import (
	"cmp"
	"context"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/tui"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/feeds/feedstate"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/feedurl"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/read/query"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// diskAdapter is the lektor-dir for the full-screen reader. It is safe for concurrent use.
type diskAdapter struct {
	o     Options
	dir   *lektordir.Dir
	clock func() time.Time

	mu    sync.Mutex
	dates dates // cache
	total int   // number of entries when all were listed last

	downloader func() *fetch.Client // makes the client of all downloads, once
}

var _ tui.Disk = (*diskAdapter)(nil)

func newDiskAdapter(o Options, v *session.Session) *diskAdapter {
	return &diskAdapter{
		o: o, dir: v.Dir, clock: v.Clock, dates: newDates(),
		downloader: sync.OnceValue(func() *fetch.Client {
			config := o.Fetch
			config.Now = v.Clock
			return fetch.NewClient(config)
		}),
	}
}

// store returns a store for the current time. It does not report malformed entries, as that would
// repeat each time they are read.
func (l *diskAdapter) store() *entrystore.Store {
	return entrystore.New(l.dir, l.clock(), new(outputBuffer).streams())
}

// indexed returns a store like that of store, with the index.
func (l *diskAdapter) indexed() *entrystore.Store {
	s := l.store()
	s.Index = l.index()
	return s
}

func (l *diskAdapter) index() *index.Index {
	return index.For(l.dir, new(outputBuffer).streams(), l.o.Index)
}

// Overview returns the overview of the index, nil if there is no index.
func (l *diskAdapter) Overview(ctx context.Context, newest int) (*tui.Overview, error) {
	if !l.index().Exists() {
		return nil, nil
	}
	overview, err := l.indexed().Overview(ctx, newest)
	if overview == nil {
		return nil, err
	}
	total := 0
	for _, n := range overview.Feeds {
		total += n.All
	}
	l.mu.Lock()
	l.total = total
	l.mu.Unlock()
	return &tui.Overview{Counts: overview.Feeds, Newest: listed(overview.Newest)}, nil
}

// Glance returns the feeds, and the entries of glance.
func (l *diskAdapter) Glance(ctx context.Context, newest int) (*tui.Overview, error) {
	o := &tui.Overview{}
	var work workers.Group
	work.Go(func() (err error) {
		o.Newest, err = l.glance(ctx, newest)
		return err
	})
	work.Go(func() (err error) {
		o.Saved, _ = l.Saved(ctx) // an error must not hide the entries
		o.Feeds, err = l.Feeds(ctx)
		return err
	})
	if err := work.Wait(); err != nil {
		return nil, err
	}
	return o, nil
}

// listed converts records for an overview.
func listed(records []*entrystore.Record) []tui.Listed {
	list := make([]tui.Listed, len(records))
	for i, r := range records {
		list[i] = tui.Listed{Ref: r.Ref, Date: r.Date(), Row: rowOf(r)}
	}
	return list
}

// glance lists feeds until it has enough unread entries, and has listed glanceFeeds feeds or
// glanceEntries entries. It uses at most glanceEach unread entries of a feed, those delivered last.
const glanceFeeds, glanceEntries, glanceEach = 8, 2000, 100

// glance returns unread entries of the feeds that changed last in new/, newest first. It does not
// list the other feeds, so it is much faster than a full list.
func (l *diskAdapter) glance(ctx context.Context, newest int) ([]tui.Listed, error) {
	names, err := os.ReadDir(l.dir.Join("new"))
	if err != nil {
		return nil, err
	}
	type changed struct {
		feed string
		when time.Time
	}
	feeds := make([]changed, len(names))
	if err := workers.ForEach(ctx, len(names), func(i int) {
		if fi, err := names[i].Info(); err == nil && fi.IsDir() && !strings.HasPrefix(fi.Name(), ".") {
			feeds[i] = changed{fi.Name(), fi.ModTime()}
		}
	}); err != nil {
		return nil, err
	}
	feeds = slices.DeleteFunc(feeds, func(f changed) bool { return f.feed == "" })
	slices.SortFunc(feeds, func(a, b changed) int {
		return cmp.Or(b.when.Compare(a.when),
			cmp.Compare(a.feed, b.feed))
	})
	var records []*entrystore.Record
	s, entries := l.store(), 0
	for i, f := range feeds {
		if len(records) >= newest && (i >= glanceFeeds || entries >= glanceEntries) {
			break
		}
		// ls and check report malformed entries.
		refs, _ := l.dir.List(ctx, lektordir.ListOptions{Feeds: []string{f.feed}, SkipTrashed: true})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		entries += len(refs)
		refs = slices.DeleteFunc(refs, func(r lektordir.Ref) bool { return !r.Unread() })
		for _, r := range refs[max(0, len(refs)-glanceEach):] {
			records = append(records, s.Record(r))
		}
	}
	if err := workers.ForEach(ctx, len(records), func(i int) { records[i].Date() }); err != nil {
		return nil, err
	}
	slices.SortFunc(records, func(a, b *entrystore.Record) int {
		return cmp.Or(b.Date().Compare(a.Date()), cmp.Compare(b.Ref.Unique, a.Ref.Unique),
			cmp.Compare(b.Ref.Feed, a.Ref.Feed))
	})
	l.mu.Lock()
	for _, r := range records {
		l.dates.put(r.Ref.Feed, r.Ref.Unique, r.Date())
	}
	l.mu.Unlock()
	return listed(records[:min(len(records), newest)]), nil
}

// rowOf returns the row of an entry.
func rowOf(r *entrystore.Record) tui.Row {
	return tui.Row{Title: tui.Plain(termsafe.Brief(r.Title()))}
}

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
			list[i], ids[i] = tui.Feed{Hash: f.Hash, Title: f.Title(), Folders: s.Folders(f.Hash),
				Paused: feedstate.Paused(l.dir, f.Hash)}, f.ID
		}
	})
	tellApart(list, ids)
	return slices.DeleteFunc(list, func(f tui.Feed) bool { return f.Hash == "" }), err
}

// tellApart sets Apart of feeds with equal titles: the host of the id, or the id without its scheme
// if the hosts are equal too.
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
			id := feedurl.Public(ids[i])
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
	feeds, err := places(l.dir, feeds)
	if err != nil {
		return nil, err
	}
	lists := make([][]lektordir.Ref, len(feeds))
	if err := workers.ForEach(ctx, len(feeds), func(i int) {
		// ls and check report malformed entries.
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

// places returns feeds, or if feeds is empty, the feeds that have a directory in new/ or cur/. It
// fails if new/ or cur/ cannot be read.
func places(d *lektordir.Dir, feeds []string) ([]string, error) {
	all := len(feeds) == 0
	for _, place := range []string{"new", "cur"} {
		if !all {
			// A missing feed has no entries, but a missing lektor-dir is an error.
			if _, err := os.Stat(d.Join(place)); err != nil {
				return nil, err
			}
			continue
		}
		ents, err := os.ReadDir(d.Join(place))
		if err != nil {
			return nil, err
		}
		for _, e := range ents {
			if !strings.HasPrefix(e.Name(), ".") {
				feeds = append(feeds, e.Name())
			}
		}
	}
	if all {
		slices.Sort(feeds)
		feeds = slices.Compact(feeds)
	}
	return feeds, nil
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
		found, ok, err := l.indexed().Indexed(ctx, entrystore.Selection{Query: q, All: true})
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

// also writes a header line with the other feeds that have the link of an entry. Without an index, it reads
// the links of all entries, if they are few.
func also(ctx context.Context, l *diskAdapter, b *strings.Builder, r *entrystore.Record) {
	l.mu.Lock()
	total := l.total
	l.mu.Unlock()
	if total > glanceEntries && !l.index().Exists() {
		return
	}
	found, _ := l.indexed().Also(ctx, &query.Query{}, r)
	slices.SortFunc(found, entrystore.ByDate)
	for i, other := range found {
		b.WriteString([]string{"Also in: ", ", "}[min(i, 1)] + termsafe.Brief(other.Feed().Title()))
	}
	if len(found) > 0 {
		b.WriteByte('\n')
	}
}

// parse parses a query.
func (l *diskAdapter) parse(text string) (*query.Query, error) {
	return entrystore.ParseQuery(l.dir.Path(), []string{text})
}

func (l *diskAdapter) Page(ctx context.Context, ref lektordir.Ref, width int, feedText bool) (*tui.Page, error) {
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
	also(ctx, l, &b, r)
	d := r.Document(width)
	e := r.Get(0)
	p := &tui.Page{HasArticle: hasArticle, Text: d.Text, URL: r.URL(), Links: d.Links, Pictures: d.Pictures}
	if p.Text == "" {
		p.Text = termsafe.Clean(e.Summary)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "Flags: ") {
			continue // they may change meanwhile, and are in the title of the pane
		}
		// A field takes at most three lines. URLs are never cut off, so that they can be copied.
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
