// Package importer copies the data of another feed reader into a lektor-dir: subscriptions with
// names and folders, saved queries, and which entries were read. It makes no requests, and never
// writes to the other reader's files. It needs SQLite to read newsboat's database, so lektor-fetch,
// which must start fast, does not import it.
package importer

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/feeds/marks"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/importfmt"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Options are those of [Import].
type Options struct {
	Dir string // path of the lektor-dir
	// Reader is one of [Readers].
	Reader string
	// Paths are the reader's files, or their directory; none means the reader's default.
	Paths  []string
	Yes    bool // import commands without asking
	DryRun bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// source is the data of another reader.
type source struct {
	*importfmt.Library
	items []importfmt.Item
	// own is true if the user wrote the list of feeds, so that it may name files and commands.
	own bool
	// read, if not nil, reads the texts of items. It may be called concurrently.
	read func(context.Context, []importfmt.Kept) error
	// close ends the work with the reader's files; nil where there is nothing to end.
	close func()
}

// Import subscribes to the feeds of another reader, saves its queries, and marks the entries that
// were read there; a mark whose entry has not been delivered yet is stored until then. It prints
// the paths in src/ of the feeds that are new or were never fetched; in a dry run, the URLs of new
// feeds.
func Import(ctx context.Context, o Options, s *cmdline.Streams) error {
	read := readers[o.Reader]
	if read == nil {
		return cmdline.Usagef("%s: there is no such reader; there are %s", o.Reader, strings.Join(Readers, ", "))
	}
	src, err := read(ctx, o.Paths, s)
	if err != nil {
		return err
	}
	if src.close != nil {
		defer src.close()
	}
	for _, note := range src.Notes {
		s.Report.Warn("%s: %s", o.Reader, note)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	m, end, err := open(o, s)
	if err != nil {
		return err
	}
	defer end()
	var bad error
	if !o.DryRun {
		bad = m.w.Recover(ctx) // a killed run leaves entries in tmp/
	}
	bad = errors.Join(bad, m.subscribe(src))
	if !o.DryRun && ctx.Err() == nil {
		bad = errors.Join(bad, m.mark(ctx, src))
	}
	bad = errors.Join(bad, m.saveQueries(src.Queries), m.saveRules(src))
	m.summarize()
	return bad
}

// mover is the state of one import.
type mover struct {
	o    Options
	s    *cmdline.Streams
	d    *lektordir.Dir
	w    *commit.Writer
	in   *bufio.Reader
	list subscriptions.AddAllResult
	// byKey maps the other reader's key of a feed to the id of the feed, and after subscribe to its
	// hash.
	byKey     map[string]string
	unfetched int // of the feeds that were subscribed to already

	mu                                sync.Mutex
	delivered, marked, waiting, saved int
}

// open opens the lektor-dir, see [cmdline.CreateDirUnless].
func open(o Options, s *cmdline.Streams) (m *mover, end func(), err error) {
	m = &mover{o: o, s: s, in: bufio.NewReader(s.In), byKey: map[string]string{}}
	var remove func()
	if m.d, remove, err = cmdline.CreateDirUnless(o.DryRun, o.Dir, &lektordir.Options{Now: o.Now}); err != nil {
		return nil, nil, err
	}
	if m.w, err = feedfiles.NewWriter(m.d, commit.Options{}); err != nil {
		remove()
		return nil, nil, err
	}
	return m, func() { m.w.Close(); remove() }, nil
}

// subscribe subscribes to the feeds, after asking for commands.
func (m *mover) subscribe(src *source) error {
	list, filters := m.chosen(src)
	var err error
	m.list, err = subscriptions.AddAll(m.w, m.d, list,
		subscriptions.AddAllOptions{DryRun: m.o.DryRun, Before: func(s *subscriptions.Subscription) error {
			if filters[s.ID] == "" {
				return nil
			}
			return subscriptions.Set(m.w, m.d, s.Hash, "filter", filters[s.ID], nil)
		}})
	hashes := map[string]string{}
	for _, s := range append(m.list.Added, m.list.Already...) {
		hashes[s.ID] = s.Hash
	}
	for key, id := range m.byKey {
		m.byKey[key] = hashes[id]
	}
	for _, s := range m.list.Added {
		if m.o.DryRun {
			fmt.Fprintln(m.s.Out, termsafe.Line(feedurl.Public(s.ID)))
			continue
		}
		fmt.Fprintln(m.s.Out, m.d.Join("src", s.Hash))
	}
	for _, s := range m.list.Already {
		if f := filters[s.ID]; f != "" {
			m.s.Report.Warn("%s: subscribed to already; its filter stays as it is, and that of %s was: %s",
				feedurl.Public(s.ID), m.o.Reader, termsafe.Brief(f))
		}
		// An interrupted import subscribed to the feed, but nothing has fetched it yet.
		if schedule.Checked(m.d, s.Hash).IsZero() {
			m.unfetched++
			if !m.o.DryRun {
				fmt.Fprintln(m.s.Out, m.d.Join("src", s.Hash))
			}
		}
	}
	return err
}

// chosen returns the feeds to subscribe to, and their filters by id. It sets m.byKey to
// the ids of the feeds.
func (m *mover) chosen(src *source) (list []*subscriptions.Subscription, filters map[string]string) {
	filters = map[string]string{}
	for i := range src.Feeds {
		f := &src.Feeds[i]
		id := subscriptions.FeedURL(f.URL)
		before, twice := filters[id]
		switch {
		case !m.may(src, id):
			m.s.Report.Warn("%s: left out; it is not fetched by http or https, or has more than %d bytes",
				feedurl.Brief(feedurl.Public(f.URL)), atomicfile.MaxLine)
			continue
		case twice:
			if before != f.Filter {
				m.s.Report.Warn("%s: it is in the list again with another filter, which is ignored; a feed has one filter", feedurl.Public(id))
			}
		case !m.consents(f, id):
			continue
		default:
			filters[id] = f.Filter
			list = append(list, &subscriptions.Subscription{ID: id, Name: f.Name, Alias: f.Title,
				Link:       feedurl.Web(f.Link),
				Categories: f.Categories, Paused: f.Off})
		}
		m.byKey[f.Key] = id
	}
	return list, filters
}

// may reports whether a feed may have this URL.
func (m *mover) may(src *source, id string) bool {
	if len(id) >= atomicfile.MaxLine {
		return false
	}
	scheme, _, _ := strings.Cut(strings.ToLower(id), ":")
	return feedurl.IsHTTP(id) || src.own && (scheme == "file" || scheme == "exec")
}

// consents asks whether the command of a feed may be run from now on.
func (m *mover) consents(f *importfmt.Feed, id string) bool {
	what, cmd := "", ""
	switch {
	case f.Filter != "":
		what, cmd = feedurl.Public(id)+" goes through a filter", f.Filter
	case strings.HasPrefix(strings.ToLower(id), "exec:"):
		what, cmd = "a feed is made by a command", id[len("exec:"):]
	default:
		return true
	}
	what += ": " + termsafe.Line(cmd)
	switch {
	case m.o.Yes:
		return true
	case m.o.DryRun:
		m.s.Report.Info("%s; you would be asked to confirm it", what)
		return true
	case !m.s.InIsTerminal():
		m.s.Report.Warn("%s; the feed is left out, because standard input is not a terminal; to import such feeds, use --yes", what)
		return false
	}
	m.s.Report.Info("%s", what)
	m.s.Report.Info("import it, to be run at each fetch? [y/N]")
	line, err := m.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes"
}

// feedWork is the work to do in one feed.
type feedWork struct {
	hash  string
	feed  *lektordir.Feed // feed that is not subscribed to, nil for others
	base  string          // URL against which relative references in its entries are resolved
	marks []marks.Mark
	kept  []importfmt.Kept
}

// movingAtOnce is the number of feeds worked on concurrently, so that they share fsync calls.
const movingAtOnce = 16

// mark stores the marks of each feed, delivers the entries that importfmt.Keep selects, and applies
// the marks whose entries are delivered.
func (m *mover) mark(ctx context.Context, src *source) error {
	all := workers.Limited(movingAtOnce)
	var bad error
	for _, s := range m.workByFeed(src) {
		if ctx.Err() != nil {
			break
		}
		all.Go(func() error {
			err := m.markFeed(ctx, src, s)
			m.mu.Lock()
			defer m.mu.Unlock()
			bad = errors.Join(bad, err)
			return nil
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return bad
}

// workByFeed returns the marks and entries of each feed, by its hash.
func (m *mover) workByFeed(src *source) map[string]*feedWork {
	find := newFinder(m.d, m.byKey)
	work := map[string]*feedWork{}
	// workOf returns the work of an item's feed, and the id of the feed if you are not subscribed
	// to it.
	workOf := func(i *importfmt.Item) (s *feedWork, id string) {
		hash := find.feed(i)
		if hash == "" {
			if id = unsubscribedID(src, i); id == "" {
				return nil, ""
			}
			hash = lektordir.FeedHash(id)
		}
		if work[hash] == nil {
			work[hash] = &feedWork{hash: hash}
		}
		return work[hash], id
	}
	unsubscribed := 0
	for _, i := range importfmt.Distinct(src.items) {
		flags := i.Marks()
		if flags == "" {
			continue
		}
		if s, _ := workOf(&i); s != nil {
			s.marks = append(s.marks, marks.Mark{Flags: flags, ID: i.ID, URL: i.URL, Title: i.Title, Date: i.Date})
		} else {
			unsubscribed++
		}
	}
	kept, unsure := importfmt.Keep(src.items)
	for _, k := range kept {
		if s, id := workOf(k.Item); s != nil {
			s.kept = append(s.kept, k)
			s.base = cmp.Or(s.base, base(k.Item))
			if id != "" && s.feed == nil {
				s.feed = &lektordir.Feed{ID: id, Name: cmp.Or(k.FeedTitle, subscriptions.DefaultName(id)),
					Link: feedurl.Web(k.Page)}
			}
		}
	}
	if unsubscribed > 0 && !src.own {
		m.s.Report.Warn("%s: %s left out, of feeds to which you are not subscribed", m.o.Reader,
			humanize.Count(unsubscribed, "entry"))
	}
	if unsure > 0 {
		m.s.Report.Warn("%s: %s left out, without an identifier or a URL of their own; only the feed can deliver them",
			m.o.Reader, humanize.Count(unsure, "entry"))
	}
	return work
}

// base returns the URL against which relative references in an entry are resolved.
func base(i *importfmt.Item) string { return cmp.Or(feedurl.Web(i.Page), feedurl.Web(i.Feed)) }

// unsubscribedID returns the id for the feed of a flagged entry to which you are not subscribed.
// The user wanted to keep the entry, and no feed will deliver it. For other entries it returns "".
func unsubscribedID(src *source, i *importfmt.Item) string {
	if src.own || !i.Flagged {
		return ""
	}
	for _, url := range []string{i.Feed, i.Page} {
		if feedurl.IsHTTP(url) && len(url) < atomicfile.MaxLine {
			return subscriptions.FeedURL(url)
		}
	}
	return ""
}

// markFeed stores the marks of a feed, delivers its entries, and applies the marks. If another
// process has locked the feed, markFeed waits. Marks are stored before entries are delivered: if
// the process is killed between, the marks are applied later, and no entry that was read stays
// unread.
func (m *mover) markFeed(ctx context.Context, src *source, s *feedWork) error {
	var locked *commit.Txn
	err := workers.WhileBusy(ctx, workers.Sleep, 0, func() {
		m.s.Report.Info("%s: another process has locked the feed; waiting for it", s.hash)
	}, commit.IsBusy, func() (err error) {
		locked, err = m.w.Begin(s.hash)
		return err
	})
	if err != nil {
		return err
	}
	t := feedstage.On(m.d, locked)
	// Release the lock even after a panic: closing the writer would wait for it.
	defer func() { t.Close() }()
	if s.feed != nil {
		if _, err := m.d.ReadFeed(s.hash); err != nil {
			if err := t.PutFeed(s.feed.Files()); err != nil {
				return err
			}
		}
	}
	if len(s.marks) > 0 {
		if err := marks.Add(m.d, s.hash, s.marks); err != nil {
			return err
		}
	}
	n := 0
	if len(s.kept) > 0 {
		n, err = m.deliver(ctx, t, src, s.base, s.kept)
	}
	moved, bad := marks.SetArrived(m.d, s.hash, m.o.Now())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delivered += n
	m.marked += len(moved)
	m.waiting += marks.Waiting(m.d, s.hash)
	return errors.Join(err, bad)
}

// saveQueries saves the queries whose names are not taken.
func (m *mover) saveQueries(queries []importfmt.Query) error {
	var bad error
	for _, q := range queries {
		name := termsafe.Line(q.Name)
		if q.Err != nil {
			m.s.Report.Warn("the query %s cannot be translated: %v", name, q.Err)
			continue
		}
		path := entrystore.SavedPath(m.d.Path(), q.Name)
		text := q.Text + "\n"
		old, err := atomicfile.Read(path, 1<<20)
		switch {
		case err == nil && string(old) == text:
			continue
		case err == nil:
			m.s.Report.Warn("the query %s exists already and is not changed; %s has: %s", name, m.o.Reader,
				termsafe.Line(q.Text))
			continue
		case m.o.DryRun:
			m.s.Report.Info("query %s: %s", name, termsafe.Line(q.Text))
		default:
			err = atomicfile.InDir(path, func() error { return atomicfile.Write(path, []byte(text)) })
			if err != nil {
				bad = errors.Join(bad, err)
				continue
			}
		}
		m.saved++
	}
	return bad
}

// summarize prints a line with the numbers of feeds, queries, entries and marks.
func (m *mover) summarize() {
	did := "subscribed"
	if m.o.DryRun {
		did = "would be subscribed to"
	}
	line := fmt.Sprintf("%s: %s %s, %d already", m.o.Reader, humanize.Count(len(m.list.Added), "feed"), did,
		len(m.list.Already))
	if m.unfetched > 0 {
		line += fmt.Sprintf(", of which %d never fetched", m.unfetched)
	}
	for _, c := range []struct {
		n           int
		what, state string
	}{{m.saved, "query", ""}, {m.delivered, "entry", " delivered"}, {m.marked, "entry", " marked"},
		{m.waiting, "mark", " waiting for entries"}} {
		if c.n > 0 {
			line += "; " + humanize.Count(c.n, c.what) + c.state
		}
	}
	m.s.Report.Info("%s", line)
}

// finder finds the feeds that items are of.
type finder struct {
	byKey, byURL, byPage map[string]string
}

func newFinder(d *lektordir.Dir, byKey map[string]string) *finder {
	f := &finder{byKey: byKey, byURL: subscriptions.ByURL(d), byPage: map[string]string{}}
	subs, _ := subscriptions.List(d) // update reports the subscriptions that cannot be read
	for _, s := range subs {
		f.byURL[s.ID] = s.Hash
		if page := lektordir.NormalizeID(s.Link); page != "" {
			if _, several := f.byPage[page]; several {
				f.byPage[page] = ""
				continue
			}
			f.byPage[page] = s.Hash
		}
	}
	return f
}

// feed returns the hash of an item's feed, "" if it is not found.
func (f *finder) feed(i *importfmt.Item) string {
	if hash := f.byKey[i.Feed]; hash != "" && i.Feed != "" {
		return hash
	}
	if hash := f.byURL[subscriptions.FeedURL(i.Feed)]; hash != "" && i.Feed != "" {
		return hash
	}
	return f.byPage[lektordir.NormalizeID(i.Page)]
}
