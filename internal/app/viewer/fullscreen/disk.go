package fullscreen

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/tui"
	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// disk is an access to the lektor-dir for the parts of the screen. It is safe for concurrent use.
type disk struct {
	o         Options
	dir       *lektordir.Dir
	clock     func() time.Time
	names     *catalog.Catalog
	index     *index.Index
	broken    chan *workers.Panic // receives panics of its goroutines
	downloads *fetch.Client

	total atomic.Int64 // number of entries in the last snapshot
	dated sync.Once    // the dates that the index had at the start are known
	mu    sync.Mutex
	dates map[catalog.ID]list.Date // cache
}

var _ tui.Disk = (*disk)(nil)

// poll is the interval for checking changes that the kernel cannot report. Where other machines write to the
// file system, it is farPoll, since all is then listed each time.
const poll, farPoll = 5 * time.Second, time.Minute

// newDisk returns an access to the lektor-dir of a session. The caller must close its names.
func newDisk(o Options, v *session.Session) *disk {
	every := poll
	if v.Dir.Shared() {
		every = farPoll
	}
	config := o.Fetch
	config.Now = v.Clock
	l := &disk{o: o, dir: v.Dir, clock: v.Clock, dates: map[catalog.ID]list.Date{},
		index:  index.For(v.Dir, new(outputBuffer).streams(), o.Index),
		broken: make(chan *workers.Panic, 1), downloads: fetch.NewClient(config)}
	l.names = catalog.Open(v.Dir, catalog.Options{Poll: every, Also: []string{savedDir},
		Broken: func(p *workers.Panic) {
			select {
			case l.broken <- p:
			default: // the first one ends the reader
			}
		}})
	return l
}

// store returns a store for the current time. It does not report malformed entries, as that would
// repeat each time they are read.
func (l *disk) store() *entrystore.Store { return l.storeFor(new(outputBuffer)) }

// storeFor returns a store for the current time, which reports to t.
func (l *disk) storeFor(t *outputBuffer) *entrystore.Store {
	s := entrystore.New(l.dir, l.clock(), t.streams())
	s.Index = l.index
	return s
}

func (l *disk) Counts(ctx context.Context) (map[string]entrystore.Tally, error) {
	return l.store().Counted(ctx)
}

// Now returns the entries of the catalogue. With all of them it takes the dates of the index as that is, so that the
// entries of the first list keep their places. Learn reads those that are missing then.
func (l *disk) Now(ctx context.Context, part catalog.Part) (*catalog.Snapshot, error) {
	var work workers.Group
	take := func() error {
		l.dated.Do(func() { _ = l.learnIndexed(ctx) })
		return nil
	}
	if part.Enough == nil {
		work.Go(take)
	}
	s, err := l.names.Part(ctx, part)
	if s.Missing == 0 {
		work.Go(take)
	}
	_ = work.Wait()
	total := 0
	for _, f := range s.Feeds {
		total += f.Shown
	}
	l.total.Store(int64(total))
	return s, err
}

// Await waits for changes of the catalogue. It panics with a panic of its goroutines, as they have no caller.
func (l *disk) Await(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-l.names.Changed():
	case p := <-l.broken:
		panic(p)
	}
}

func (l *disk) Titles(ctx context.Context, refs []lektordir.Ref) []string {
	s := l.store()
	rows := make([]string, len(refs))
	_ = workers.ForEach(ctx, len(refs), func(i int) {
		rows[i] = cells.Plain(termsafe.Brief(s.Record(refs[i]).Title()))
	})
	return rows
}

func (l *disk) Search(ctx context.Context, text string, of func(flags bool) []catalog.Entry) ([]catalog.Entry, error) {
	q, err := l.parse(text)
	if err != nil {
		return nil, err
	}
	entries := of(q.MentionsState())
	records, indexed, _ := l.store().Indexed(ctx, entrystore.Selection{Query: q, All: true})
	found := make(map[catalog.ID]bool, len(records))
	for _, r := range records {
		found[catalog.IDOf(r.Ref)] = true
	}
	s, m, yes := l.store(), q.Bind(l.clock()), make([]bool, len(entries))
	err = workers.ForEach(ctx, len(entries), func(i int) {
		if yes[i] = found[entries[i].ID()]; !indexed {
			is, err := s.Record(entries[i].Ref()).Decide(m, q.Fields())
			yes[i] = is && err == nil
		}
	})
	var selected []catalog.Entry
	for i, e := range entries {
		if yes[i] {
			selected = append(selected, e)
		}
	}
	return selected, err
}

// fewEntries is the number of entries whose links can be read while a person waits.
const fewEntries = 2000

// also writes a header line with the other feeds that have the link of an entry. Without an index, it reads
// the links of all entries, if they are few.
func (l *disk) also(ctx context.Context, b *strings.Builder, r *entrystore.Record) {
	if l.total.Load() > fewEntries && !l.index.Exists() {
		return
	}
	found, _ := l.store().Also(ctx, &query.Query{}, r)
	slices.SortFunc(found, entrystore.ByDate)
	for i, other := range found {
		b.WriteString([]string{"Also in: ", ", "}[min(i, 1)] + termsafe.Brief(other.Feed().Title()))
	}
	if len(found) > 0 {
		b.WriteByte('\n')
	}
}

// parse parses a query.
func (l *disk) parse(text string) (*query.Query, error) {
	return entrystore.ParseQuery(l.dir.Path(), []string{text})
}

func (l *disk) Page(ctx context.Context, ref lektordir.Ref, width int, feedText bool) (*page.Entry, error) {
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
	l.also(ctx, &b, r)
	d := r.Document(width)
	e := r.Get(0)
	p := &page.Entry{HasArticle: hasArticle, Text: d.Text, URL: r.URL(), Links: d.Links, Pictures: d.Pictures}
	if p.Text == "" {
		p.Text = termsafe.Clean(e.Summary)
	}
	p.Text += viewer.Spoken(r, width)
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
