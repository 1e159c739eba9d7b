package viewer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/htmltext"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/watch"
	"github.com/lektordir/lektor/lektordir"
)

// library is the lektor-dir for the full-screen reader. It is safe for concurrent use.
type library struct {
	o     TUIOptions
	dir   *lektordir.Dir
	clock func() time.Time

	mu    sync.Mutex
	dates map[string]time.Time // by unique name, of entries that were asked about
}

var _ tui.Disk = (*library)(nil)

func newLibrary(o TUIOptions, v *viewer) *library {
	return &library{o: o, dir: v.Dir, clock: v.clock, dates: map[string]time.Time{}}
}

// told collects what a command says, for the last line of the screen.
type told struct{ out, messages bytes.Buffer }

// streams are those of a command that has no terminal.
func (t *told) streams() *command.Streams {
	return command.NewStreams("lektor-view", strings.NewReader(""), &t.out, &t.messages)
}

// said gives the messages in a line.
func (t *told) said() string {
	var lines []string
	for l := range strings.Lines(t.messages.String()) {
		lines = append(lines, strings.TrimPrefix(strings.TrimSpace(l), "lektor-view: "))
	}
	return strings.Join(lines, "; ")
}

// err is an error with what was said before it.
func (t *told) err(err error) error {
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

// store gives the entries as of now; what is malformed is not told of, as it would be
// at every look.
func (l *library) store() *entries.Store {
	return entries.New(l.dir, l.clock(), new(told).streams())
}

func (l *library) Feeds(context.Context) ([]tui.Feed, error) {
	feeds, err := l.dir.Feeds()
	if feeds == nil && err != nil {
		return nil, err
	}
	s := l.store()
	list := make([]tui.Feed, 0, len(feeds))
	for _, f := range feeds {
		list = append(list, tui.Feed{Hash: f.Hash, Title: f.Title(), Folders: s.Folders(f.Hash)})
	}
	return list, nil
}

func (l *library) List(ctx context.Context, feeds ...string) ([]lektordir.Ref, error) {
	refs, err := l.dir.List(ctx, lektordir.ListOptions{Feeds: feeds, SkipTrashed: true})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if refs == nil && err != nil {
		if _, gone := os.Stat(l.dir.Join("new")); gone != nil {
			return nil, gone
		}
	}
	return refs, nil
}

// datesAtOnce is how many entries are read between two looks at the context.
const datesAtOnce = 256

func (l *library) Dates(ctx context.Context, refs []lektordir.Ref) (dates []time.Time, whole bool) {
	dates = make([]time.Time, len(refs))
	var missing []int
	l.mu.Lock()
	for i, r := range refs {
		if dates[i] = l.dates[r.Unique]; dates[i].IsZero() {
			missing = append(missing, i)
		}
	}
	l.mu.Unlock()
	s := l.store()
	whole = true
	for part := range slices.Chunk(missing, datesAtOnce) {
		if ctx.Err() == nil {
			err := entries.Parallel(ctx, len(part), func(i int) { dates[part[i]] = s.Record(refs[part[i]]).Date() })
			if err == nil {
				l.mu.Lock()
				for _, i := range part {
					l.dates[refs[i].Unique] = dates[i]
				}
				l.mu.Unlock()
				continue
			}
		}
		whole = false
		for _, i := range part {
			dates[i] = refs[i].Delivered()
		}
	}
	return dates, whole
}

func (l *library) Rows(ctx context.Context, refs []lektordir.Ref) []tui.Row {
	s := l.store()
	rows := make([]tui.Row, len(refs))
	_ = entries.Parallel(ctx, len(refs), func(i int) {
		r := s.Record(refs[i])
		rows[i] = tui.Row{Title: tui.Plain(termsafe.Brief(r.Title()))}
	})
	return rows
}

func (l *library) Query(_ context.Context, text string) (tui.Query, error) {
	q, err := l.parse(text)
	if err != nil {
		return tui.Query{}, err
	}
	m, first := q.Bind(l.clock()), q.Fields()&^lektordir.FieldContent
	match := func(ctx context.Context, refs []lektordir.Ref) []bool {
		s := l.store()
		yes := make([]bool, len(refs))
		_ = entries.Parallel(ctx, len(refs), func(i int) {
			r := s.Record(refs[i])
			verdict := r.Match(m)
			if verdict == query.Maybe && r.Read(first) == nil {
				verdict = r.Match(m)
			}
			if verdict == query.Maybe && r.Read(q.Fields()) == nil {
				verdict = r.Match(m)
			}
			yes[i] = verdict == query.Yes
		})
		return yes
	}
	return tui.Query{State: q.MentionsState(), Match: match}, nil
}

// parse reads a query.
func (l *library) parse(text string) (*query.Query, error) {
	return entries.ParseQuery(l.dir.Path(), []string{text})
}

func (l *library) Page(_ context.Context, ref lektordir.Ref, width int) (*tui.Page, error) {
	s := l.store()
	v := &viewer{Store: s, clock: l.clock}
	r := s.Record(ref)
	if err := r.Read(lektordir.AllFields); err != nil {
		return nil, err
	}
	var b strings.Builder
	v.header(&b, r)
	d := r.Document(width)
	e := r.Get(0)
	p := &tui.Page{Text: d.Text, URL: r.URL(), Links: d.Links, Pictures: d.Pictures}
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

// mover is a viewer that moves entries for the reader, and what it says.
func (l *library) mover(command string) (*viewer, *told) {
	t := &told{}
	v := &viewer{Store: entries.New(l.dir, l.clock(), t.streams()), clock: l.clock, terminal: l.o.Terminal}
	v.moves(command)
	return v, t
}

func (l *library) Mark(ctx context.Context, refs []lektordir.Ref, set, unset string) ([]lektordir.Ref, error) {
	v, t := l.mover("tui")
	var moved []lektordir.Ref
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		to, err := v.setFlags(ref, set, unset)
		switch {
		case err == nil:
			moved = append(moved, to)
		case !removed(err) || len(refs) == 1:
			v.failed(err)
		}
	}
	v.journal.close()
	return moved, t.err(nil)
}

func (l *library) Trash(ctx context.Context, refs []lektordir.Ref) error {
	v, t := l.mover("tui")
	old := versionsOf{viewer: v}
	for _, ref := range refs {
		if ctx.Err() != nil {
			break
		}
		doomed, err := old.with(ctx, ref)
		if err != nil {
			v.failed(err)
			continue
		}
		v.removeAll(doomed, v.trash)
	}
	v.journal.close()
	return t.err(nil)
}

func (l *library) Undo(ctx context.Context) (string, []lektordir.Ref, error) {
	t := &told{}
	o := UndoOptions{Common: l.o.Common}
	err := Undo(ctx, o, t.streams())
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

func (l *library) Saved(context.Context) ([]tui.Saved, error) {
	list, err := entries.SavedQueries(l.dir.Path())
	var all []tui.Saved
	for _, q := range list {
		all = append(all, tui.Saved{Name: q.Name, Err: q.Err})
	}
	return all, err
}

func (l *library) Save(_ context.Context, name, text string) error {
	if _, err := l.parse(text); err != nil {
		return err
	}
	if err := l.dir.Inside("etc/view", savedDir); err != nil {
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

// poll is how often the reader looks where the kernel cannot tell.
const poll = 5 * time.Second

func (l *library) Watch(ctx context.Context, changed func(feed string)) error {
	w := watch.New(ctx, poll, nil)
	// Queries and folders may be made while one reads; places of entries must be there.
	for _, place := range []string{"new", "cur"} {
		if err := w.Add(l.dir.Join(place)); err != nil {
			return err
		}
	}
	_ = w.Add(l.dir.Join(savedDir)) // if it is there
	known := map[string]bool{}
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
					changed(e.Name())
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

func (l *library) Open(ctx context.Context, ref lektordir.Ref, url string) (string, error) {
	return "", errors.New("not yet")
}

func (l *library) Player(ctx context.Context, ref lektordir.Ref, url string) ([]string, error) {
	return nil, errors.New("not yet")
}

func (l *library) Environ(_ context.Context, ref lektordir.Ref) []string {
	s := l.store()
	return environ(s, s.Record(ref))
}

// Limits of a picture: whoever asks for one looks at it now.
const (
	pictureBytes = 20 << 20
	pictureTime  = 30 * time.Second
)

func (l *library) Picture(ctx context.Context, ref lektordir.Ref, url string) ([]byte, error) {
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
