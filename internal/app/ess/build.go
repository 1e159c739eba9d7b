package ess

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// DefaultEntries is the default number of entries in an ESS document. They fit into a
// kilobyte.
const DefaultEntries = 100

// BuildOptions are the options of [Build].
type BuildOptions struct {
	Common
	Selection
	Lines  bool // write each document as one line
	N      int  // maximum of entries in a document; 0 for all
	Since  time.Time
	Output string // file to write to; "" for stdout
	// FromDocument makes one document of the feed document on stdin. It needs no
	// lektor-dir.
	FromDocument bool
	URL          string // URL of that feed; "" for the one in the document
	ContentType  string
}

// Selection selects feeds: those that the user names, or all that are shared (see
// [settings.Withheld]), or those of them in a category.
type Selection struct {
	Feeds    []string // ids, URLs or hashes; "-" reads them from stdin
	Nul      bool     // names on stdin are separated by NUL
	Category string   // path of a folder, with the folders below it
}

// feeds returns the hashes of the selected feeds, and whether a named one does not exist.
func (st *store) feeds(ctx context.Context, sel Selection) (hashes []string, failed bool, err error) {
	named := len(sel.Feeds) > 0
	if named {
		hashes, failed, err = entrystore.Named(ctx, sel.Feeds, sel.Nul, st.S, st.find)
	} else {
		hashes, err = st.Dir.FeedHashes()
	}
	if sel.Category != "" {
		hashes = slices.DeleteFunc(hashes, func(hash string) bool {
			return !settings.InCategory(settings.Categories(st.Dir, hash), sel.Category)
		})
	}
	if !named {
		sharing := st.Sharing(nil)
		hashes = slices.DeleteFunc(hashes, func(hash string) bool { return !sharing.May(hash) })
		sharing.Tell("name a feed to include it all the same")
	}
	return hashes, failed, err
}

// Build writes an ESS document for each feed, from its entries in the lektor-dir, read or
// not. The document of a single named feed has line breaks; of several, each is one line. A
// feed without an http URL is skipped with a warning; if it was named, that is an error.
func Build(ctx context.Context, o BuildOptions, s *cmdline.Streams) error {
	switch {
	case o.FromDocument && len(o.Feeds) > 0 && !slices.Equal(o.Feeds, []string{"-"}):
		return cmdline.Usagef("--from-document reads standard input; FEED cannot be used with it")
	case o.FromDocument:
		return fromDocument(ctx, o, s)
	case o.URL != "" || o.ContentType != "":
		return cmdline.Usagef("--url and --content-type need --from-document")
	}
	st, err := o.open(s)
	if err != nil {
		return err
	}
	one := len(o.Feeds) == 1 && o.Feeds[0] != "-" && !o.Lines
	hashes, _, err := st.feeds(ctx, o.Selection)
	if err != nil {
		return err
	}
	return s.Output(o.Output, func(w io.Writer) error { return st.build(ctx, w, o, hashes, one) })
}

// build writes the documents of feeds. one means a single document with line breaks.
func (st *store) build(ctx context.Context, w io.Writer, o BuildOptions, hashes []string, one bool) error {
	written := 0
	for _, hash := range hashes {
		f, err := st.Dir.ReadFeed(hash)
		if err != nil {
			st.Report(err)
			continue
		}
		url := documentURL(f)
		if url == "" {
			text := "%s: the feed has no http URL, so no document is written"
			if len(o.Feeds) > 0 {
				st.S.Report.Error(text, feedurl.Public(f.ID))
			} else {
				st.warnings.Warn(text, feedurl.Public(f.ID))
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
	if written == 0 && (one || st.S.Report.Errors() > 0) {
		return errReported
	}
	return nil
}

// entries returns the newest entries of a feed in the lektor-dir.
func (st *store) entries(ctx context.Context, hash string, n int, since time.Time) ([]ess.Entry, error) {
	items, err := st.list(ctx, lektordir.ListOptions{Feeds: []string{hash}, SkipTrashed: true}, itemFields)
	if err != nil {
		return nil, err
	}
	entries := make([]ess.Entry, len(items))
	for i, it := range items {
		entries[i] = entryOf(it)
	}
	return newest(entries, n, since), nil
}

// newest returns the n newest entries since a time; n = 0 means all.
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

// fromDocument writes the ESS document of the feed document on stdin. It skips entries
// without a date, and reports their number.
func fromDocument(ctx context.Context, o BuildOptions, s *cmdline.Streams) error {
	doc, err := s.ReadFile(ctx, "-", maxDocument)
	if err != nil {
		return err
	}
	f, err := feedconv.ParseBytes(doc, feedconv.Options{URL: o.URL, ContentType: o.ContentType})
	if err != nil {
		return err
	}
	for _, w := range f.Warnings {
		s.Report.Warn("%v", w)
	}
	url := o.URL
	for _, l := range f.Links {
		if url == "" && strings.EqualFold(l.Rel, "self") && feedurl.IsHTTP(l.URL) {
			url = l.URL
		}
	}
	if url == "" {
		return &cmdline.UsageError{Message: "the document does not name its URL", Hint: "set it with --url"}
	}
	if !feedurl.IsHTTP(url) {
		return cmdline.Usagef("--url %s: not an http URL", url)
	}
	entries, undated := documentEntries(f)
	if undated > 0 {
		s.Report.Info("left out %s without a date", humanize.Count(undated, "entry"))
	}
	return s.Output(o.Output, func(w io.Writer) error {
		_, err := w.Write(ess.AppendESS(nil, o.build(), lektordir.NormalizeID(feedurl.Public(url)),
			newest(entries, o.N, o.Since)))
		return err
	})
}

// documentEntries returns the entries of a feed document, and the number of those without a
// date.
func documentEntries(f *feedconv.Feed) (entries []ess.Entry, undated int) {
	for i := range f.Entries {
		e := &f.Entries[i]
		t := cmp.Or(e.PubDate, e.Updated)
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
	N     int      // maximum of entries; 0 for all
	Query []string // query; none selects all, "-" reads names of entries from stdin
	Nul   bool     // names are separated by NUL
	// Include are feeds that are included although they are not shared.
	Include []string
	Output  string
	Print   cmdline.PrinterOptions
}

// MakeNNO writes the NNO of the newest entries of all feeds, of a query, or of those named
// on stdin, read or not.
func MakeNNO(ctx context.Context, o NNOOptions, s *cmdline.Streams) error {
	paths := slices.Equal(o.Query, []string{"-"})
	if paths {
		o.Query = nil
	}
	q, err := entrystore.ParseQuery(o.Dir, o.Query)
	if err != nil {
		return err
	}
	st, err := o.open(s)
	if err != nil {
		return err
	}
	named, failed, err := entrystore.Named(ctx, o.Include, false, s, st.find)
	if failed || err != nil {
		return cmp.Or[error](err, errReported)
	}
	sharing := st.Sharing(named)
	var found []*entrystore.Record
	if paths {
		found, err = st.named(ctx, o.Nul)
	} else {
		found, err = st.Select(ctx, entrystore.Selection{Query: q, All: true, Want: itemFields})
	}
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(r *entrystore.Record) bool { return !sharing.May(r.Ref.Feed) })
	sharing.Tell("--include FEED includes it all the same")
	return writeNNO(s, st.newestEntries(found, o.N), o.build(), o.Output, false, o.Print)
}

// named reads the entries named on stdin, without duplicates.
func (st *store) named(ctx context.Context, nul bool) ([]*entrystore.Record, error) {
	refs, _, err := entrystore.Named(ctx, []string{"-"}, nul, st.S, st.Find)
	if err != nil {
		return nil, err
	}
	return st.Records(ctx, refs, itemFields)
}

// newestEntries returns the n newest entries for documents; n = 0 means all.
func (st *store) newestEntries(items []*entrystore.Record, n int) []ess.FeedEntry {
	all := make([]ess.FeedEntry, 0, len(items))
	warned := map[string]bool{}
	for _, it := range items {
		f := it.Feed()
		url := documentURL(f)
		if url == "" {
			if !warned[it.Ref.Feed] {
				warned[it.Ref.Feed] = true
				st.warnings.Warn("%s: the feed has no http URL, so its entries are left out",
					cmp.Or(feedurl.Public(f.ID), it.Ref.Feed))
			}
			continue
		}
		all = append(all, ess.FeedEntry{Feed: url, Entry: entryOf(it)})
	}
	slices.SortFunc(all, ess.FeedEntry.Compare)
	if n > 0 && len(all) > n {
		all = all[:n]
	}
	return all
}

// writeNNO writes entries to a file, "" for stdout, as an NNO, on one line if oneLine is set, or as records.
func writeNNO(s *cmdline.Streams, entries []ess.FeedEntry, build time.Time, output string, oneLine bool,
	form cmdline.PrinterOptions) error {
	return s.Output(output, func(w io.Writer) error {
		if form.Format == "" {
			doc := ess.AppendNNO(nil, build, entries)
			if oneLine {
				doc = append(ess.AppendNNOLine(nil, build, entries), '\n')
			}
			_, err := w.Write(doc)
			return err
		}
		return cmdline.Records(w, form, "", documentColumns, func(p *cmdline.Printer[documentRecord]) error {
			return p.PrintAll(recordsOf(entries, build))
		})
	})
}

// documentRecord is an entry of a document.
type documentRecord struct {
	ess.FeedEntry
	build int64
}

func recordsOf(entries []ess.FeedEntry, build time.Time) (records []documentRecord) {
	for _, e := range entries {
		records = append(records, documentRecord{e, ess.Minute(build)})
	}
	return records
}

// documentColumns are the columns of -o for entries of a document.
var documentColumns = []cmdline.Column[documentRecord]{
	{Name: "date", Get: func(r documentRecord) any { return ess.Time(r.Minute) }},
	{Name: "url", Get: func(r documentRecord) any { return r.Feed }},
	{Name: "checksum", Get: func(r documentRecord) any { return int(r.Sum) }},
	{Name: "minutes", Get: func(r documentRecord) any { return r.build - r.Minute }},
	{Name: "build", Extra: true, Get: func(r documentRecord) any { return ess.Time(r.build) }},
}
