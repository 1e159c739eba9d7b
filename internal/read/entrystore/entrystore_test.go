package entrystore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

const feedID = "http://a.example/"

func open(t *testing.T) (*testdir.Dir, *Store, *bytes.Buffer) {
	t.Helper()
	d := testdir.New(t)
	if _, err := d.Feed(feedID, "Alpha"); err != nil {
		t.Fatal(err)
	}
	var msg bytes.Buffer
	now := func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) }
	s, err := Open(d.Path, now, cmdline.NewStreams("test", nil, &bytes.Buffer{}, &msg))
	if err != nil {
		t.Fatal(err)
	}
	return d, s, &msg
}

// Select returns the entries that match a query, and omits malformed ones with a warning.
func TestSelect(t *testing.T) {
	d, s, msg := open(t)
	for i := range 100 {
		files := []string{fmt.Sprintf("title=Title %d", i), fmt.Sprintf("content=text %d.", i)}
		if i%10 == 3 {
			files = append(files, "title")
		}
		if _, err := d.Entry(feedID, "new", testdir.Unique(1700000000+int64(i), i+1), files...); err != nil {
			t.Fatal(err)
		}
	}
	for words, want := range map[string]int{"": 100, "title:7": 18, "text:17.": 1, "feed:alpha": 100, "feed:beta": 0} {
		q, err := ParseQuery(s.Dir.Path(), []string{words})
		if err != nil {
			t.Fatal(err)
		}
		found, err := s.Select(t.Context(), Selection{Query: q})
		if err != nil || len(found) != want {
			t.Errorf("%q: %d, %v", words, len(found), err)
		}
	}
	q, _ := ParseQuery(s.Dir.Path(), nil)
	found, err := s.Select(t.Context(), Selection{Query: q, Newest: 3, Want: lektordir.FieldTitle})
	if err != nil || len(found) != 3 || found[2].Title() != "Title 99" {
		t.Errorf("%d, %v", len(found), err)
	}
	if !strings.Contains(msg.String(), "has no file title; skipped") || s.S.Report.Errors() > 0 {
		t.Errorf("%s", msg)
	}
	if _, err := ParseQuery(s.Dir.Path(), []string{"(("}); !errors.As(err, new(*cmdline.UsageError)) {
		t.Errorf("%v", err)
	}
}

// Records are read under their new names while all entries of the feed are renamed again and again.
func TestRecordsFollow(t *testing.T) {
	d, s, _ := open(t)
	const n = 50
	for i := range n {
		if _, err := d.Entry(feedID, "new", testdir.Unique(1700000000, i+1), "title=T", "content=text"); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Select(context.Background(), Selection{Query: &query.Query{}, All: true})
	if err != nil || len(list) != n {
		t.Fatal(len(list), err)
	}
	flags := []string{"S", "SF", "F", ""}
	for i, r := range list {
		if i%7 == 0 {
			refs, err := s.Dir.List(context.Background(), lektordir.ListOptions{})
			if err != nil || len(refs) != n {
				t.Fatal(len(refs), err)
			}
			for _, ref := range refs {
				to := flags[i/7%len(flags)]
				if _, err := s.Dir.SetFlags(ref, to, strings.Trim("SF", to)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := r.Read(lektordir.Obligatory); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
	refs, err := s.Dir.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(s.Dir.Join(refs[0].Path())), os.Remove(s.Dir.Join(refs[1].Path())+"/content")); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(refs[0]).Read(lektordir.FieldTitle); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an entry that was removed: %v", err)
	}
	if err := s.Record(refs[1]).Read(lektordir.FieldContent); err == nil {
		t.Error("an entry without its content was read")
	}
}

// If a viewer sets flags of an entry, the record finds it.
func TestRecordsFollowMarks(t *testing.T) {
	d, s, _ := open(t)
	const n = 200
	for i := range n {
		if _, err := d.Entry(feedID, "new", testdir.Unique(1700000000, i+1), "title=T"); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Select(context.Background(), Selection{Query: &query.Query{}, All: true})
	if err != nil || len(list) != n {
		t.Fatal(len(list), err)
	}
	for i, r := range list {
		flags := []string{"", "S", "F", "FT", "ST"}[i%5]
		if _, err := s.Dir.SetFlags(r.Ref, flags, ""); err != nil {
			t.Fatal(err)
		}
		if err := r.Read(lektordir.FieldTitle | lektordir.FieldID); err != nil || r.Ref.Flags() != flags {
			t.Errorf("%s with %q: %v", r.Ref.Path(), flags, err)
		}
	}
	// A user's own flag makes a name that is not tried, so the feed is listed.
	r := list[0]
	if _, err := s.Dir.SetFlags(r.Ref, "q", ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Read(lektordir.FieldContent); err != nil || r.Ref.Flags() != "q" {
		t.Errorf("%s: %v", r.Ref.Path(), err)
	}
}

// If a viewer moves an entry, the record reads further fields from its new place, and keeps those that
// it has read.
func TestRecordFollows(t *testing.T) {
	d, s, _ := open(t)
	if _, err := d.Entry(feedID, "new", "1700000000.1.h", "title=One", "author=Ann", "content=text"); err != nil {
		t.Fatal(err)
	}
	ref, err := s.Resolve("1700000000.1.h", 0)
	if err != nil {
		t.Fatal(err)
	}
	r := s.Record(ref)
	if err := r.Read(lektordir.FieldTitle); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Dir.SetFlags(ref, "S", ""); err != nil {
		t.Fatal(err)
	}
	if r.Author() != "Ann" || r.Title() != "One" || strings.TrimSpace(r.Text()) != "text" || !r.Ref.HasFlag('S') {
		t.Errorf("%q by %q: %q, %+v", r.Title(), r.Author(), r.Text(), r.Ref)
	}
	if err := os.RemoveAll(r.Path()); err != nil {
		t.Fatal(err)
	}
	var hint *cmdline.HintError
	if _, err := s.Resolve(ref.Path(), 3); !errors.As(err, &hint) || !strings.HasPrefix(err.Error(), "number 3: ") {
		t.Errorf("%v", err)
	}
}

// Columns returns the named columns in the given order, and makes them default columns.
func TestColumns(t *testing.T) {
	d, s, _ := open(t)
	if _, err := d.Entry(feedID, "new", "1700000000.1.h", "title=One", "+summary=Sum", "+updated=2026-01-01T00:00:00Z"); err != nil {
		t.Fatal(err)
	}
	ref, _ := s.Resolve("1700000000.1.h", 0)
	for _, c := range Columns() {
		var b bytes.Buffer
		p, err := cmdline.NewPrinter(&b, cmdline.PrinterOptions{Format: c.Name}, Columns())
		if err != nil {
			t.Fatal(err)
		}
		r, ahead := s.Record(ref), s.Record(ref)
		if err := errors.Join(p.Print(r), ahead.Read(FormatFields(c.Name))); err != nil {
			t.Fatal(err)
		}
		// FormatFields returns every field that the column reads.
		if missing := r.have &^ ahead.have; missing != 0 {
			t.Errorf("%s: not read ahead: %b", c.Name, missing)
		}
	}
	var names []string
	for _, c := range Columns("title", "summary", "path") {
		if c.Extra {
			t.Errorf("%s is extra", c.Name)
		}
		names = append(names, c.Name)
	}
	if !slices.Equal(names, []string{"title", "summary", "path"}) {
		t.Errorf("%q", names)
	}
}

// Sharing omits a feed with a password, warns once, and allows the feed if it is named.
func TestSharing(t *testing.T) {
	d, s, msg := open(t)
	hash, err := d.Feed("http://b.example/", "Beta", "etc/fetch/url=http://ann:s3cret@b.example/")
	if err != nil {
		t.Fatal(err)
	}
	sharing := s.Sharing(nil)
	for range 2 {
		if sharing.May(hash) || !sharing.May(testdir.Hash(feedID)) {
			t.Error("Sharing omits the wrong feed")
		}
	}
	sharing.Tell("name it")
	if got := msg.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "Beta has a password") || strings.Contains(got, "s3cret") {
		t.Errorf("%s", got)
	}
	named := s.Sharing([]string{hash})
	if named.Tell("x"); !named.May(hash) {
		t.Error("a named feed is omitted")
	}
	if strings.Count(msg.String(), "\n") != 1 {
		t.Errorf("%s", msg)
	}
}

// Ahead reads the content only if the format prints it, and then few records at once.
func TestAhead(t *testing.T) {
	d, s, _ := open(t)
	if _, err := d.Entry(feedID, "new", "1700000000.1.h", "title=One", "content=text"); err != nil {
		t.Fatal(err)
	}
	ref, _ := s.Resolve("1700000000.1.h", 0)
	for format, content := range map[string]bool{
		"json": true, "content": true, "title,content": true, "{{.content}}": true,
		"tsv": false, "title,url": false, "path": false, "summary": false, "{{.title}}": false,
	} {
		r := s.Record(ref)
		n, prepare := Ahead(format)
		prepare(r)
		if read := r.have&lektordir.FieldContent != 0; read != content || (n == fewAhead) != content {
			t.Errorf("%s: content read: %v, %d records at once", format, read, n)
		}
		if content && (r.details == nil || r.shown == nil || *r.shown != "text") {
			t.Errorf("%s: the content is not rendered", format)
		}
		if r.Forget(); r.details != nil || r.have&lektordir.FieldContent != 0 {
			t.Errorf("%s: the content is kept", format)
		}
	}
}

// Reading the feed's own text also reads whether there is an article, without which the article would
// be taken for the feed's text.
func TestFeedContentHasFullText(t *testing.T) {
	d, s, _ := open(t)
	name := testdir.Unique(1700000000, 1)
	if _, err := d.Entry(feedID, "new", name, "content=Article.", "feed-content=Excerpt.", "+fulltext=http://a.example/page\ttext/plain"); err != nil {
		t.Fatal(err)
	}
	r := s.Record(lektordir.Ref{Place: lektordir.New, Feed: testdir.Hash(feedID), Unique: name})
	e := r.Get(lektordir.FieldContent | lektordir.FieldType | lektordir.FieldFeedContent)
	if p := Public(e); string(p.Content) != "Excerpt.\n" {
		t.Errorf("%q is published, of %+v", p.Content, e)
	}
}

// indexOfOne is an index with one entry. It counts the questions after its view is closed.
type indexOfOne struct {
	View
	hit    Hit
	closed bool
	late   int
}

func (x *indexOfOne) Look(context.Context) (View, error) { return x, nil }
func (x *indexOfOne) Failed(error)                       {}
func (x *indexOfOne) Missed(int)                         {}
func (x *indexOfOne) Complaints() []error                { return nil }
func (x *indexOfOne) Close()                             { x.closed = true }

func (x *indexOfOne) Find(_ context.Context, _ Wanted, yield func(Hit) bool) error {
	hit := x.hit
	hit.Words = func(string) query.Verdict {
		if x.closed {
			x.late++
		}
		return query.Maybe
	}
	yield(hit)
	return nil
}

// A record that was found by an index does not ask it after the view is closed, as rules would, which
// match the record with more queries.
func TestRecordLeavesIndex(t *testing.T) {
	d, s, _ := open(t)
	name := testdir.Unique(1700000000, 1)
	if _, err := d.Entry(feedID, "new", name, "title=Tea", "content=At noon.", "+category=x"); err != nil {
		t.Fatal(err)
	}
	x := &indexOfOne{hit: Hit{Ref: lektordir.Ref{Place: lektordir.New, Feed: testdir.Hash(feedID), Unique: name}}}
	s.Index = x
	for _, want := range []lektordir.Fields{0, lektordir.FieldCategories} {
		q, err := ParseQuery(s.Dir.Path(), []string{"tea"})
		if err != nil {
			t.Fatal(err)
		}
		x.closed = false
		found, err := s.Select(t.Context(), Selection{Query: q, Want: want})
		if err != nil || len(found) != 1 || !x.closed {
			t.Fatalf("%v, %v, closed %v", found, err, x.closed)
		}
		if yes, err := found[0].Decide(q.Bind(s.Now), q.Fields()); !yes || err != nil || x.late != 0 {
			t.Errorf("with fields %b: %v, %v, asked %d times after the view was closed", want, yes, err, x.late)
		}
	}
}
