package fetcher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// ImportOptions are the options of [Import].
type ImportOptions struct {
	Common
	File            string // "-" for standard input
	NoFetch, DryRun bool
	// From is the name of another reader, whose files are at Paths; "" to read an OPML list from
	// File.
	From  string
	Paths []string
	Yes   bool // import commands of the other reader without asking
}

// Import subscribes to the feeds of a list, and fetches them.
func Import(ctx context.Context, o ImportOptions, s *cmdline.Streams) error {
	if o.From != "" {
		return o.move(ctx, s)
	}
	data, err := s.ReadFile(ctx, o.File, opml.MaxBytes)
	if err != nil {
		return err
	}
	name := o.File
	if name == "-" {
		name = "standard input"
	}
	doc, err := opml.Parse(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r, end, err := o.begin(ctx, s, o.DryRun, nil)
	if err != nil {
		return err
	}
	defer end()
	list, refused, bad := subscribe(r.Writer, r.Dir, doc, o.DryRun)
	for _, url := range refused {
		s.Report.Warn("%s: skipped; a list may only name http and https URLs of at most %d bytes", feedurl.Brief(url),
			atomicfile.MaxLine)
	}
	for _, page := range doc.Pages() {
		page = termsafe.Line(feedurl.Public(page))
		s.Report.Warn("%s: skipped; the list has only the page of this feed; lektor-fetch add %s looks for the feed there", page, page)
	}
	did := "subscribed"
	sel := Selection{Reason: Forced}
	for _, sub := range list.Added {
		sel.Feeds = append(sel.Feeds, sub.Hash)
		if o.DryRun {
			did = "would be subscribed to"
			printLine(s, sub.ID)
		}
	}
	// Also fetch the feeds of an import that was stopped before.
	before := 0
	for _, sub := range list.Already {
		if schedule.Checked(r.Dir, sub.Hash).IsZero() {
			before++
			sel.Feeds = append(sel.Feeds, sub.Hash)
		}
	}
	line := fmt.Sprintf("%s: %s %s, %d already", name, humanize.Count(len(list.Added), "feed"), did, len(list.Already))
	if before > 0 {
		line += fmt.Sprintf(", of which %d never fetched", before)
	}
	s.Report.Info("%s", line)
	if bad != nil || o.DryRun || o.NoFetch || len(sel.Feeds) == 0 {
		return bad
	}
	return r.imported(ctx, sel, s)
}

// imported fetches the feeds of a list.
func (r *Runner) imported(ctx context.Context, sel Selection, s *cmdline.Streams) error {
	err := r.fetch(ctx, sel, false, s)
	if ctx.Err() != nil {
		missing := 0
		for _, hash := range sel.Feeds {
			if schedule.Checked(r.Dir, hash).IsZero() {
				missing++
			}
		}
		if missing > 0 {
			s.Report.Info("stopped; %s of the list not fetched yet; to fetch them, run lektor-fetch or the same import",
				humanize.Count(missing, "feed"))
		}
	} else {
		// An alias stays, unless it equals the feed's own name: then the alias is removed, so that
		// the feed can change its name.
		for _, hash := range sel.Feeds {
			err = errors.Join(err, subscriptions.SameAlias(r.Writer, r.Dir, hash))
		}
	}
	return errors.Join(err, r.Close())
}

// subscribe subscribes to the feeds of a list. Folders become categories; existing subscriptions
// get the categories that they lack. The joined error holds the feeds that could not be subscribed
// to; the others are subscribed to nevertheless. refused are URLs that are not http or https, as a list from a
// stranger must not name local files or commands, and URLs that are too long for the file that stores them.
func subscribe(w *commit.Writer, d *lektordir.Dir, doc *opml.Document,
	dryRun bool) (list subscriptions.AddAllResult, refused []string, bad error) {
	var feeds []*subscriptions.Subscription
	for _, f := range doc.Feeds() {
		id := subscriptions.FeedURL(f.URL)
		if !feedurl.IsHTTP(id) || len(id) >= atomicfile.MaxLine {
			refused = append(refused, f.URL)
			continue
		}
		s := &subscriptions.Subscription{ID: id, Alias: f.Title, Link: f.HTMLURL, About: f.Description,
			Categories: f.Categories, Paused: f.Paused}
		if s.Alias == f.URL {
			s.Alias = "" // export writes the URL as the title of a feed without a name
		}
		feeds = append(feeds, s)
	}
	list, bad = subscriptions.AddAll(w, d, feeds, subscriptions.AddAllOptions{DryRun: dryRun})
	if dryRun {
		return list, refused, bad
	}
	all := doc
	old, err := importedBefore(d)
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return list, refused, errors.Join(bad, err) // do not overwrite a file that cannot be read
	}
	if err == nil && old != nil {
		old.Merge(doc)
		all = old
	}
	path := subscriptions.ListFile(d)
	data := all.Bytes()
	if _, err := opml.Parse(data); err != nil {
		// An invalid file could not be read, and the next import would replace it.
		return list, refused, errors.Join(bad, fmt.Errorf("%s was not changed, so export will lack parts of this list: %w", path,
			err))
	}
	return list, refused, errors.Join(bad, subscriptions.WriteList(d, data))
}

// importedBefore reads the merged lists of earlier imports; nil if there are none.
func importedBefore(d *lektordir.Dir) (*opml.Document, error) {
	data, err := atomicfile.Optional(atomicfile.Read(subscriptions.ListFile(d), opml.MaxBytes))
	if data == nil {
		return nil, err
	}
	return opml.Parse(data)
}

// ExportOptions are the options of [Export].
type ExportOptions struct {
	Common
	Output    string // file name; "" or "-": standard output
	Public    bool   // omit everything private
	Passwords bool   // include passwords in URLs
}

// Export writes a list of all subscriptions.
func Export(_ context.Context, o ExportOptions, s *cmdline.Streams) error {
	d, err := o.open()
	if err != nil {
		return err
	}
	doc, bad := o.list(d)
	for _, err := range humanize.Errors(bad) {
		s.Report.Warn("%v", err)
	}
	// In comments and CDATA of an imported list, escaped references are not decoded; no feed name
	// is there.
	data := termsafe.XML(doc.Bytes())
	return s.Output(o.Output, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// list returns a list of all subscriptions.
func (o ExportOptions) list(d *lektordir.Dir) (*opml.Document, error) {
	subs, bad := subscriptions.List(d)
	var doc *opml.Document
	if !o.Public {
		// Keep everything else of the imported lists, which are the user's own.
		var err error
		doc, err = importedBefore(d)
		bad = errors.Join(bad, err)
	}
	if doc == nil {
		doc = opml.New("Subscriptions")
	}
	feeds := make([]opml.Feed, 0, len(subs))
	for _, s := range subs {
		f := opml.Feed{URL: s.URL, ID: s.ID, Title: s.Alias, Name: s.Name, HTMLURL: s.Link, Description: s.About,
			Categories: s.Categories, Paused: s.Paused && !o.Public}
		withheld, err := settings.Withheld(d, s.Hash)
		if o.Public {
			bad = errors.Join(bad, err) // then withheld is not "", so only the name is listed
		}
		switch local := strings.ToLower(s.URL); {
		case strings.HasPrefix(local, "exec:") || strings.HasPrefix(local, "file:"):
			// Useful on this machine only, and perhaps private.
			continue
		case o.Public && withheld != "":
			f = opml.Feed{Title: s.Title(), Categories: s.Categories}
		}
		feeds = append(feeds, f)
	}
	doc = doc.Update(feeds, subscriptions.FeedURL)
	if o.Public || !o.Passwords {
		doc.Rewrite(feedurl.Public)
	}
	return doc, bad
}
