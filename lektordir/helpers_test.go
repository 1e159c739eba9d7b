package lektordir

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/dir/stage"
)

// clock is an injected clock; Sleep advances it.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{now: time.Unix(1700000000, 123456000)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Sleep(_ context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.slept = append(c.slept, d)
	return nil
}

const feedID = "http://example.com/rss.xml"

var feedHash = FeedHash(feedID)

// newDir creates a lektor-dir with an injected clock, host and pid.
func newDir(t *testing.T) (*Dir, *clock) {
	t.Helper()
	c := newClock()
	d, err := Create(filepath.Join(t.TempDir(), "feeds"), &Options{Now: c.Now, Sleep: c.Sleep, Host: "host", PID: 42})
	if err != nil {
		t.Fatal(err)
	}
	return d, c
}

// fetcher is a writer of a lektor-dir.
type fetcher struct {
	*commit.Writer
	d    *Dir
	mu   sync.Mutex
	open []*delivery
}

func newFetcher(d *Dir, o commit.Options) (*fetcher, error) {
	w, err := commit.NewWriter(d.fs, o)
	return &fetcher{Writer: w, d: d}, err
}

// Close closes the writer, which ends the transactions that were submitted, and closes these then.
// It first closes transactions that a failed test has left open, because the writer would wait for
// them.
func (w *fetcher) Close() error {
	w.mu.Lock()
	open := w.open
	w.mu.Unlock()
	for _, t := range open {
		if !t.submitted.Load() {
			t.Close()
		}
	}
	err := w.Writer.Close()
	for _, t := range open {
		t.Close()
	}
	return err
}

// writer opens a writer that ends with the test.
func writer(t *testing.T, d *Dir) *fetcher {
	t.Helper()
	return writerWith(t, d, commit.Options{})
}

func writerWith(t *testing.T, d *Dir, o commit.Options) *fetcher {
	t.Helper()
	w, err := newFetcher(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func (w *fetcher) Begin(feed string) (*delivery, error) {
	t, err := w.Writer.Begin(feed)
	if err != nil {
		return nil, err
	}
	return w.delivery(t), nil
}

func (w *fetcher) delivery(t *commit.Txn) *delivery {
	x := newDelivery(w.d, t)
	x.w = w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, x)
	return x
}

func newDelivery(d *Dir, t *commit.Txn) *delivery {
	return &delivery{Stager: stage.New(t, func(path string) (time.Time, error) {
		r, err := ParsePath(path)
		if err != nil {
			return time.Time{}, err
		}
		e, err := d.ReadEntry(r, FieldUpdated|FieldPubDate)
		if err != nil {
			return time.Time{}, err
		}
		if e.Updated.IsZero() {
			return e.PubDate, nil
		}
		return e.Updated, nil
	}), d: d}
}

// delivery is a transaction, with the records of the staged entries.
type delivery struct {
	*stage.Stager
	d         *Dir
	w         *fetcher
	staged    []journal.Record
	submitted atomic.Bool // the writer may use it until it calls the function passed to Commit
}

func (t *delivery) Commit(done func(error)) {
	t.submitted.Store(true)
	t.Txn.Commit(done)
}

// add stages a version.
func (t *delivery) add(ctx context.Context, v version) (Ref, error) {
	v.Entry.Replaces = cmp.Or(v.Replaces, v.Entry.Replaces)
	v.Files = v.Entry.Files()
	unique, err := t.Add(ctx, v.Version)
	if unique != "" {
		t.staged = append(t.staged, journal.Record{Identity: v.Identity, Key: v.Key, Content: v.Content, Unique: unique, Replaces: v.Replaces})
	}
	return Ref{Feed: t.Feed(), Unique: unique}, err
}

func (t *delivery) PutFeed(f *Feed) error { return t.Stager.PutFeed(f.Files()) }

func (t *delivery) Next() *delivery { return t.w.delivery(t.Stager.Txn.Next()) }

// refs returns the entries that are in new/ after a commit.
func (t *delivery) refs() []Ref { return delivered(t.Feed(), t.Delivered()) }

// Item is an entry of a document.
type Item struct {
	GUID  string
	Entry Entry
}

func (x Item) stage() stage.Item {
	it := item(x.Entry)
	it.GUID = x.GUID
	it.Files = func(replaces string) iter.Seq2[string, []byte] {
		e := x.Entry
		e.ID, e.Replaces = stage.ID(e.ID, x.GUID, e.Link, e.Title, e.PubDate, e.PubDateRaw, e.Content), replaces
		return e.Files()
	}
	return it
}

func document(policy Policy, items ...Item) stage.Document {
	doc := stage.Document{Policy: string(policy)}
	for _, it := range items {
		doc.Items = append(doc.Items, it.stage())
	}
	return doc
}

// stageAll stages a document.
func (t *delivery) stageAll(ctx context.Context, doc stage.Document) (Result, error) {
	res, err := t.Stage(ctx, doc)
	return result(t.Feed(), res), err
}

func result(feed string, r stage.Result) Result {
	return Result{New: delivered(feed, r.New), Updated: delivered(feed, r.Updated), Unchanged: r.Unchanged, Ignored: r.Ignored, Repeated: r.Repeated}
}

// version is a version of an entry, with its fields.
type version struct {
	commit.Version
	Entry Entry
}

// sample returns a version of an entry.
func sample(id, content string) version {
	rest := journal.DigestOf(id, content)
	return version{
		Entry: Entry{Title: "Title of " + id, ID: id, Content: []byte(content)},
		Version: commit.Version{
			Identity: journal.DigestOf("guid", id),
			Key:      journal.Key{Link: [4]byte{1}, Rest: [4]byte(rest[:4])},
			Content:  journal.DigestOf("content", content),
		},
	}
}

// end commits and waits.
func end(t *delivery) error {
	ch := make(chan error)
	t.Commit(func(err error) { ch <- err })
	err := <-ch
	t.Close()
	return err
}

// deliver delivers versions in one transaction.
func deliver(t *testing.T, d *Dir, vs ...version) []Ref {
	t.Helper()
	return deliverBy(t, writer(t, d), vs...)
}

func deliverBy(t *testing.T, w *fetcher, vs ...version) []Ref {
	t.Helper()
	tx, err := w.Begin(feedHash)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.PutFeed(&Feed{ID: feedID, Name: "Example"}); err != nil {
		t.Fatal(err)
	}
	for _, v := range vs {
		if _, err := tx.add(context.Background(), v); err != nil {
			t.Fatal(err)
		}
	}
	if err := end(tx); err != nil {
		t.Fatal(err)
	}
	return tx.refs()
}

// journalPath returns the path of the journal of a feed.
func (d *Dir) journalPath(feed string) string { return d.Join(commit.JournalPath(feed)) }

// list lists all entries and fails on errors.
func list(t *testing.T, d *Dir, o ListOptions) []Ref {
	t.Helper()
	refs, err := d.List(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return refs
}

// paths returns the paths of entries.
func paths(refs []Ref) []string {
	var ps []string
	for _, r := range refs {
		ps = append(ps, r.Path())
	}
	return ps
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// tree lists the files and directories below a directory of the lektor-dir.
func tree(t *testing.T, d *Dir, sub string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(d.Join(sub), func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(d.Join(sub), p)
		if rel != "." {
			out = append(out, rel)
		}
		return nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// shell runs a script in the lektor-dir.
func shell(t *testing.T, d *Dir, script string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-eu", "-c", script)
	cmd.Dir = d.Path()
	cmd.Env = append(os.Environ(), "LEKTORDIR="+d.Path(), "HASH="+feedHash)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errOut.String())
	}
	return string(out)
}

// seen returns the journal of the feed.
func seen(t *delivery) *journal.Journal {
	j, err := t.Journal()
	if err != nil {
		panic(err)
	}
	return j
}

// lines returns the number of valid lines of a journal.
func lines(j *journal.Journal) (n int) {
	for range j.All {
		n++
	}
	return n
}

// place returns the directory, relative to the lektor-dir, in which the transaction stages
// entries.
func (t *delivery) place() string {
	first := "tmp/" + t.Feed() + "/" + dirfs.FirstEntries
	if _, err := os.Lstat(t.d.Join(first)); err == nil {
		return first
	}
	return "tmp/" + t.Feed()
}

// die ends a transaction as SIGKILL would: it releases the lock and leaves the files.
func die(t *delivery) { t.Abandon() }
