package ess

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/htmltext"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// DefaultEntries is how many entries an ESS document has at most when nobody
// says: what fits into a kilobyte.
const DefaultEntries = 100

// BuildOptions are the options of [Build].
type BuildOptions struct {
	Common
	Feeds  []string // as the user names them; "-" for those on stdin; none for all
	Nul    bool     // names on stdin are separated by NUL
	N      int      // entries in a document; 0 for all
	Since  time.Time
	Output string // file to write to; "" for stdout
}

// Build writes an ESS document for each feed, made of the entries in the
// lektor-dir, read or not. The document of the one feed that is named is
// written as it is; of several, each is one line. A feed that has no http URL
// is left out with a warning; if it was named, that is a failure.
func Build(ctx context.Context, o BuildOptions, s *command.Streams) error {
	st, err := o.open(s)
	if err != nil {
		return err
	}
	one := len(o.Feeds) == 1 && o.Feeds[0] != "-"
	hashes, err := st.named(ctx, o.Feeds, o.Nul)
	if err != nil {
		return err
	}
	if len(o.Feeds) == 0 {
		if hashes, err = st.dir.FeedHashes(); err != nil {
			return err
		}
	}
	w, err := openOutput(s, o.Output)
	if err != nil {
		return err
	}
	defer w.Abort()
	written := 0
	for _, hash := range hashes {
		f, err := st.dir.ReadFeed(hash)
		if err != nil {
			st.report(err)
			continue
		}
		url := documentURL(f)
		if url == "" {
			text := "%s: it has no http URL, and no document is made of it"
			if len(o.Feeds) > 0 {
				s.Report.Error(text, f.ID)
			} else {
				st.warn(text, f.ID)
			}
			continue
		}
		entries, err := st.entries(ctx, hash, o.N, o.Since)
		if err != nil {
			return err
		}
		var doc []byte
		if one {
			doc = ess.AppendESS(nil, o.build(), url, entries)
		} else {
			doc = append(ess.AppendESSLine(nil, o.build(), url, entries), '\n')
		}
		if _, err := w.Write(doc); err != nil {
			return err
		}
		written++
	}
	if written == 0 && (one || s.Report.Errors() > 0) {
		return said
	}
	return w.Commit()
}

// entries gives the newest entries of a feed in the lektor-dir.
func (st *store) entries(ctx context.Context, hash string, n int, since time.Time) ([]ess.Entry, error) {
	refs, err := st.list(ctx, lektordir.ListOptions{Feeds: []string{hash}})
	if err != nil {
		return nil, err
	}
	items, err := st.items(ctx, refs, itemFields)
	if err != nil {
		return nil, err
	}
	entries := make([]ess.Entry, len(items))
	for i, it := range items {
		entries[i] = it.ess()
	}
	return newest(entries, n, since), nil
}

// newest gives the n newest entries, all for 0, that are not older than since.
func newest(entries []ess.Entry, n int, since time.Time) []ess.Entry {
	if !since.IsZero() {
		entries = slices.DeleteFunc(entries, func(e ess.Entry) bool { return e.Minute < ess.Minute(since) })
	}
	slices.SortFunc(entries, ess.Entry.Compare)
	if n > 0 && len(entries) > n {
		entries = entries[:n]
	}
	return entries
}

// output is where a document is written to.
type output interface {
	io.Writer
	Commit() error
	Abort() error
}

type stdout struct{ io.Writer }

func (stdout) Commit() error { return nil }
func (stdout) Abort() error  { return nil }

func openOutput(s *command.Streams, file string) (output, error) {
	if file == "" || file == "-" {
		return stdout{s.Out}, nil
	}
	return atomicfile.Create(file)
}

// FromDocumentOptions are the options of [FromDocument].
type FromDocumentOptions struct {
	Common
	URL         string // of the feed; "" for what the document says
	ContentType string
	N           int
	Since       time.Time
	Output      string
}

// FromDocument writes the ESS document of the feed document on stdin. It needs
// no lektor-dir. Entries without a date are left out, and counted in a message.
func FromDocument(_ context.Context, o FromDocumentOptions, s *command.Streams) error {
	f, err := feedconv.Parse(s.In, feedconv.Options{URL: o.URL, ContentType: o.ContentType})
	if err != nil {
		return err
	}
	for _, w := range f.Warnings {
		s.Report.Warn("%v", w)
	}
	url := o.URL
	for _, l := range f.Links {
		if url == "" && strings.EqualFold(l.Rel, "self") && fetch.IsHTTP(l.Href) {
			url = l.Href
		}
	}
	if url == "" {
		return &command.UsageError{Message: "the document does not say what its URL is", Hint: "give it with --url"}
	}
	if !fetch.IsHTTP(url) {
		return command.Usagef("--url %s: it is no http URL", url)
	}
	entries, undated := documentEntries(f)
	if undated > 0 {
		s.Report.Info("%s without a date left out", units.Count(undated, "entry"))
	}
	w, err := openOutput(s, o.Output)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(ess.AppendESS(nil, o.build(), lektordir.NormalizeID(fetch.Public(url)), newest(entries, o.N, o.Since))); err != nil {
		return err
	}
	return w.Commit()
}

// documentEntries gives the entries of a feed document, and how many have no
// date.
func documentEntries(f *feedconv.Feed) (entries []ess.Entry, undated int) {
	for i := range f.Entries {
		e := &f.Entries[i]
		t := cmp.Or(e.Published, e.Updated)
		if t.IsZero() {
			undated++
			continue
		}
		entries = append(entries, ess.Entry{Minute: ess.Minute(t), Sum: ess.Checksum(e.Title)})
	}
	return entries, undated
}

// NNOOptions are the options of [MakeNNO].
type NNOOptions struct {
	Common
	N      int      // entries; 0 for all
	Query  []string // which entries; none for all
	Paths  bool     // entries are named on stdin instead
	Nul    bool     // and separated by NUL
	Output string
	Print  command.PrinterOptions
}

// MakeNNO writes the NNO of the newest entries across all feeds, those of a
// query, or those named on stdin, read or not.
func MakeNNO(ctx context.Context, o NNOOptions, s *command.Streams) error {
	q, err := query.Parse(strings.Join(o.Query, " "))
	var bad *query.Error
	if errors.As(err, &bad) {
		return &command.UsageError{Message: err.Error(), Hint: cmp.Or(bad.Hint, "see lektor-query(7)")}
	}
	st, err := o.open(s)
	if err != nil {
		return err
	}
	var items []*item
	if o.Paths {
		items, err = st.namedItems(ctx, o.Nul)
	} else {
		items, err = st.selected(ctx, q)
	}
	if err != nil {
		return err
	}
	return st.writeTop(items, o.N, o.Output, o.Print)
}

// namedItems reads the entries named on stdin, each once.
func (st *store) namedItems(ctx context.Context, nul bool) ([]*item, error) {
	var refs []lektordir.Ref
	seen := map[lektordir.Ref]bool{}
	for name, err := range command.ReadArgs([]string{"-"}, st.s.In, nul) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var ref lektordir.Ref
		if err == nil {
			ref, err = st.dir.Resolve(name)
		}
		if err != nil {
			st.s.Report.Print(err)
			continue
		}
		if !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	return st.items(ctx, refs, itemFields)
}

// selected reads the entries of a query.
func (st *store) selected(ctx context.Context, q *query.Query) ([]*item, error) {
	refs, err := st.list(ctx, lektordir.ListOptions{})
	if err != nil || q.Empty() {
		if err != nil {
			return nil, err
		}
		return st.items(ctx, refs, itemFields)
	}
	m := q.Bind(st.at)
	all := make([]*item, len(refs))
	parallel(ctx, len(refs), func(i int) {
		subject := &query.Subject{Ref: refs[i], Feed: st.feed(refs[i])}
		verdict := m.Match(subject, 0)
		if verdict == query.No {
			return
		}
		have := itemFields
		if verdict == query.Maybe {
			have |= q.Fields()
			if have&lektordir.FieldContent != 0 {
				have |= lektordir.FieldType
			}
		}
		it := st.item(refs[i], have)
		if it == nil {
			return
		}
		if verdict == query.Maybe {
			subject.Ref, subject.Entry = it.ref, it.entry
			subject.Text = func() string { return htmltext.Text(it.entry.Content, it.entry.Type) }
			if m.Match(subject, have) != query.Yes {
				return
			}
			it.entry.Content = nil
		}
		all[i] = it
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return slices.DeleteFunc(all, func(i *item) bool { return i == nil }), nil
}

// writeTop writes the n newest of entries.
func (st *store) writeTop(items []*item, n int, output string, p command.PrinterOptions) error {
	return writeNNO(st.s, st.top(items, n), st.build(), output, p)
}

// top gives the n newest of entries as documents have them, all for 0.
func (st *store) top(items []*item, n int) []ess.FeedEntry {
	all := make([]ess.FeedEntry, 0, len(items))
	told := map[string]bool{}
	for _, it := range items {
		f := st.feed(it.ref)
		url := documentURL(f)
		if url == "" {
			if !told[it.ref.Feed] {
				told[it.ref.Feed] = true
				st.warn("%s: it has no http URL, and its entries are left out", cmp.Or(f.ID, it.ref.Feed))
			}
			continue
		}
		all = append(all, ess.FeedEntry{Feed: url, Entry: it.ess()})
	}
	slices.SortFunc(all, ess.FeedEntry.Compare)
	if n > 0 && len(all) > n {
		all = all[:n]
	}
	return all
}

// writeNNO writes entries as an NNO, or as records.
func writeNNO(s *command.Streams, entries []ess.FeedEntry, build time.Time, output string, p command.PrinterOptions) error {
	w, err := openOutput(s, output)
	if err != nil {
		return err
	}
	defer w.Abort()
	if p.Format == "" {
		if _, err := w.Write(ess.AppendNNO(nil, build, entries)); err != nil {
			return err
		}
		return w.Commit()
	}
	printer, err := command.NewPrinter(w, p, documentColumns)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := printer.Print(documentRecord{e, ess.Minute(build)}); err != nil {
			return err
		}
	}
	if err := printer.Flush(); err != nil {
		return err
	}
	return w.Commit()
}

// documentRecord is an entry of a document.
type documentRecord struct {
	ess.FeedEntry
	build int64
}

// documentColumns are what -o can print of an entry of a document.
var documentColumns = []command.Column[documentRecord]{
	{Name: "date", Get: func(r documentRecord) any { return ess.Time(r.Minute) }},
	{Name: "url", Get: func(r documentRecord) any { return r.Feed }},
	{Name: "checksum", Get: func(r documentRecord) any { return int(r.Sum) }},
	{Name: "minutes", Get: func(r documentRecord) any { return r.build - r.Minute }},
	{Name: "build", Extra: true, Get: func(r documentRecord) any { return ess.Time(r.build) }},
}
