package viewer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/mail"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/redact"
	"github.com/lektordir/lektor/internal/spill"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// PublishOptions are the options of [Publish].
type PublishOptions struct {
	Common
	Query  []string
	Newest int    // so many entries; 0 means all
	Format string // atom, rss or json
	Output string // a file; empty means standard output
	Title  string
	// Self is the URL at which the feed will be found, Link that of its page.
	Self, Link string
	// Include are feeds that are published although they are not for others, see
	// [feeddir.Shareable].
	Include  []string
	Clouds   []string // URLs of rssCloud; xmlrpc://… or a path /RPC2 for XML-RPC
	Hubs     []string // URLs of WebSub
	ESS, NNO string   // URLs of documents that tell cheaply what is new

	// Complete says that the document holds all there is of the feed (RFC 5005,
	// section 2). Paged and Archive name a directory for a feed of several documents
	// (sections 3 and 4), PerPage entries each. There may be one of the three.
	Complete       bool
	Paged, Archive string
	PerPage        int

	disk *disk // for tests; nil for the real one
}

// formats are those of [Publish].
var formats = map[string]feedconv.Format{"atom": feedconv.Atom10, "rss": feedconv.RSS20, "json": feedconv.JSONFeed}

// Publish writes the entries selected, read or not, as a feed, newest first: one
// document, or a directory of them. It takes nothing from the clock: as long as the
// entries are the same, so are the documents, and their files are not touched.
func Publish(ctx context.Context, o PublishOptions, s *command.Streams) error {
	p := &publisher{o: o}
	var ok bool
	if p.format, ok = formats[o.Format]; !ok {
		return command.Usagef("--format %s: it is atom, rss or json", o.Format)
	}
	err := p.checkKind()
	if err == nil {
		err = p.head()
	}
	if err != nil {
		return err
	}
	if p.viewer, err = o.open(o.Query, command.PrinterOptions{}, s); err != nil {
		return err
	}
	// Readers take an entry that is not in a document, or lacks a file, for changed.
	p.Strict = true
	named, failed, err := entries.Feeds(ctx, o.Include, false, s, entries.Finding(p.Dir, true))
	if failed || err != nil {
		return cmp.Or[error](err, &command.ExitError{Status: command.StatusFailed})
	}
	p.named = named
	switch {
	case o.Archive != "":
		return p.inDir(o.Archive, func(d *documents) error { return p.archive(ctx, d) })
	case o.Paged != "":
		return p.inDir(o.Paged, func(d *documents) error { return p.paged(ctx, d) })
	}
	list, err := p.fill(ctx)
	if err != nil {
		return err
	}
	defer list.Close()
	if o.Output != "" && o.Output != "-" {
		if err := p.whole(o.Output); err != nil {
			return err
		}
	}
	return o.output(s, func(w io.Writer) error { return p.document(w, p.feed, list, 0, list.Len()) })
}

// whole fails if an entry of the feed could not be listed or read, which was reported: a
// document without it would tell readers that it is gone.
func (p *publisher) whole(path string) error {
	if p.S.Report.Errors() == 0 {
		return nil
	}
	return command.Hint(fmt.Errorf("%s is left as it is, as not all entries could be read", path), "see the errors above")
}

// publisher is a run of [Publish].
type publisher struct {
	*viewer
	o      PublishOptions
	format feedconv.Format
	feed   feedconv.Feed // what the feed says of itself
	self   *url.URL      // nil without one
	named  []string      // hashes of the feeds that are published all the same
	told   bool          // of the feeds that are left out
}

// selected gives the entries that are published, oldest first.
func (p *publisher) selected(ctx context.Context) (*entries.Collection, error) {
	sharing := p.Sharing(p.named)
	found, err := p.Collect(ctx, entries.Selection{Query: p.query, All: true, Strict: true, Want: lektordir.FieldPubDate}, entries.Collecting{
		First: func(r *entries.Record) bool { return sharing.May(r.Ref.Feed) },
		Order: func(a, b *entries.Record) int {
			return cmp.Or(a.Published().Compare(b.Published()), cmp.Compare(a.Ref.Unique, b.Ref.Unique), cmp.Compare(a.Ref.Feed, b.Ref.Feed))
		},
	})
	if err == nil && !p.told {
		p.told = true
		sharing.Tell("--include FEED publishes it all the same")
	}
	return found, err
}

// newest gives those of a list that are published.
func (p *publisher) newest(found *entries.Collection) iter.Seq2[*entries.Record, error] {
	from := 0
	if p.o.Newest > 0 {
		from = max(0, found.Len()-p.o.Newest)
	}
	return func(yield func(*entries.Record, error) bool) {
		for r, err := range found.From(from) {
			if err == nil {
				// What is published is what is in the files now, not what an index
				// remembers.
				r.Anew()
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// fill reads the entries of a feed, oldest first.
func (p *publisher) fill(ctx context.Context) (list *pile, err error) {
	found, err := p.selected(ctx)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	list = &pile{Pile: spill.NewPile(p.Most)}
	defer func() {
		if err != nil {
			list.Close()
		}
	}()
	ids := spill.NewSet()
	// Oldest first: of several that share an id the oldest keeps it.
	for r, err := range entries.While(ctx, p.newest(found)) {
		if err != nil {
			return nil, err
		}
		if !p.Usable(r.Check()) || !p.Usable(r.Read(lektordir.AllFields)) {
			continue
		}
		e := p.entryOf(r, p.format)
		for ids.Has(e.ID) {
			e.ID = another(r, &e, e.ID)
			e.GUID = e.ID
		}
		ids.Add(e.ID)
		list.add(&e)
	}
	return list, nil
}

// another is the id of an entry that another entry has already. The link tells
// entries of one feed apart that share a guid.
func another(r *entries.Record, e *feedconv.Entry, id string) string {
	return digestID(r.Feed().ID, id+"\x00"+e.Link)
}

// newestOf is when the newest of some entries was updated, zero without any.
func newestOf(list []feedconv.Entry) (t time.Time) {
	for _, e := range list {
		if e.Updated.After(t) {
			t = e.Updated
		}
	}
	return t
}

// document writes a document of some entries of a list, which are newest first there.
func (p *publisher) document(w io.Writer, feed feedconv.Feed, list *pile, from, to int) error {
	return p.stream(w, &feed, func(yield func(*feedconv.Entry, error) bool) {
		for i := to - 1; i >= from; i-- {
			e, err := list.entry(i)
			if err == nil && e.Updated.After(feed.Updated) {
				feed.Updated = e.Updated
			}
			if !yield(e, err) {
				return
			}
		}
	})
}

// stream writes a document, whose entries are told twice: the first time for what the
// feed says of itself.
func (p *publisher) stream(w io.Writer, feed *feedconv.Feed, list iter.Seq2[*feedconv.Entry, error]) error {
	var b bytes.Buffer
	doc, err := feedconv.NewStream(&b, p.format)
	if err != nil {
		return err
	}
	// What is in it is harmless piece by piece.
	harmless := termsafe.XML
	if p.format == feedconv.JSONFeed {
		harmless = termsafe.JSON
	}
	flush := func(err error) error {
		if err == nil {
			_, err = w.Write(harmless(b.Bytes()))
		}
		b.Reset()
		return err
	}
	for e, err := range list {
		if err != nil {
			return err
		}
		doc.Survey(e)
	}
	if err := flush(doc.Begin(feed)); err != nil {
		return err
	}
	for e, err := range list {
		if err == nil {
			err = flush(doc.Entry(e))
		}
		if err != nil {
			return err
		}
	}
	return flush(doc.End())
}

// encode gives a document whose entries are in memory.
func (p *publisher) encode(feed *feedconv.Feed) ([]byte, error) {
	var doc bytes.Buffer
	err := p.stream(&doc, feed, func(yield func(*feedconv.Entry, error) bool) {
		for i := range feed.Entries {
			if !yield(&feed.Entries[i], nil) {
				return
			}
		}
	})
	return doc.Bytes(), err
}

// output writes the document to the file that the user names, or to standard
// output.
func (o *PublishOptions) output(s *command.Streams, write func(io.Writer) error) error {
	// A pipe in its place would be waited for.
	if fi, err := os.Stat(o.Output); err == nil && fi.Mode().IsRegular() && has(o.Output, write) {
		return nil
	}
	return s.Output(o.Output, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 64<<10)
		return cmp.Or(write(b), b.Flush())
	})
}

// has tells whether a file has what is written, no more and no less.
func has(path string, write func(io.Writer) error) bool {
	f, err := atomicfile.OpenRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	is := &comparing{r: bufio.NewReaderSize(f, 64<<10)}
	if write(is) != nil {
		return false
	}
	_, err = is.r.ReadByte()
	return errors.Is(err, io.EOF)
}

// comparing fails at the first byte that is another than in a file.
type comparing struct {
	r    *bufio.Reader
	read []byte
}

func (c *comparing) Write(b []byte) (int, error) {
	c.read = slices.Grow(c.read[:0], len(b))[:len(b)]
	if _, err := io.ReadFull(c.r, c.read); err != nil || !bytes.Equal(c.read, b) {
		return 0, errors.New("it is another document")
	}
	return len(b), nil
}

// checkKind makes sure that the options say one kind of feed, and all that it needs.
func (p *publisher) checkKind() error {
	o := p.o
	inDir := o.Paged != "" || o.Archive != ""
	isJSON := p.format == feedconv.JSONFeed
	switch {
	case len(o.Clouds) > 1:
		return &command.UsageError{Message: "--cloud can be given once: RSS has one cloud to a feed", Hint: "a cloud tells all who read the feed; --hub can be repeated"}
	case o.Complete && inDir, o.Paged != "" && o.Archive != "":
		return command.Usagef("a feed is of one kind: there may be one of --complete, --paged and --archive")
	case inDir && o.Output != "":
		return &command.UsageError{Message: "--output and a directory of documents exclude each other", Hint: "the subscription document gets the name that --self ends in"}
	case inDir && o.PerPage < 1:
		return &command.UsageError{Message: "--paged and --archive need --per-page", Hint: "--per-page 50 puts fifty entries into each document"}
	case !inDir && o.PerPage != 0:
		return &command.UsageError{Message: "--per-page needs --paged or --archive", Hint: "--newest limits the entries of a single document"}
	case inDir && o.Self == "":
		return &command.UsageError{Message: "--paged and --archive need --self", Hint: "the documents link to each other below the URL of the subscription document, such as https://me.example/feed/index.atom"}
	case o.Archive != "" && o.Newest > 0:
		return &command.UsageError{Message: "--newest and --archive exclude each other", Hint: "an archived feed keeps all that was published; --per-page limits what a subscriber fetches each time"}
	case isJSON && o.Archive != "":
		return &command.UsageError{Message: "--archive: JSON Feed has no place for archives", Hint: "use --format atom or rss, or --paged, for which it has next_url"}
	case isJSON && o.Complete:
		return &command.UsageError{Message: "--complete: JSON Feed has no place for the mark", Hint: "use --format atom or rss"}
	case isJSON && (o.ESS != "" || o.NNO != ""):
		return &command.UsageError{Message: "--ess, --nno: JSON Feed has no place for such links", Hint: "use --format atom or rss"}
	}
	return nil
}

// head makes what the feed says of itself.
func (p *publisher) head() (err error) {
	o, f := p.o, &p.feed
	f.Link, f.Complete = fetch.Public(o.Link), o.Complete
	f.Title = cmp.Or(strings.Join(strings.Fields(o.Title), " "), strings.Join(o.Query, " "), "lektor")
	if o.Self != "" {
		if p.self, err = publicURL("--self", o.Self); err != nil {
			return err
		}
		f.ID = p.self.String()
		f.Links = append(f.Links, feedconv.Link{Rel: "self", Href: f.ID})
	}
	if o.Link != "" {
		if _, err := fetch.ParseURL(o.Link); err != nil {
			return command.Usagef("--link: %w", err)
		}
	}
	for _, h := range o.Hubs {
		u, err := publicURL("--hub", h)
		if err != nil {
			return err
		}
		if o.Self == "" {
			return &command.UsageError{Message: "--hub needs --self", Hint: "a hub knows a feed by the URL that the feed gives itself"}
		}
		f.Links = append(f.Links, feedconv.Link{Rel: "hub", Href: u.String()})
	}
	for _, c := range o.Clouds {
		cloud, err := cloudOf(c)
		if err != nil {
			return command.Usagef("--cloud: %w", err)
		}
		if p.format == feedconv.Atom10 {
			return &command.UsageError{Message: "--cloud: Atom has no place for a cloud", Hint: "use --format rss, or a hub of WebSub with --hub"}
		}
		f.Clouds = append(f.Clouds, cloud)
	}
	return p.notices()
}

// notices adds the links to documents that tell cheaply what is new: ess(5),
// "Discovery".
func (p *publisher) notices() error {
	f := &p.feed
	for _, d := range []struct{ flag, url, mime string }{{"--ess", p.o.ESS, "application/ess"}, {"--nno", p.o.NNO, "application/nno"}} {
		if d.url == "" {
			continue
		}
		u, err := publicURL(d.flag, d.url)
		if err != nil {
			return err
		}
		if f.Link != "" && p.format == feedconv.Atom10 && !slices.ContainsFunc(f.Links, func(l feedconv.Link) bool { return l.Rel == "alternate" }) {
			// Which is not written where there is an alternate link already.
			f.Links = append(f.Links, feedconv.Link{Rel: "alternate", Href: f.Link})
		}
		f.Links = append(f.Links, feedconv.Link{Rel: "alternate", Href: u.String(), Type: d.mime})
	}
	return nil
}

// publicURL reads a URL that everybody will: without a password.
func publicURL(flag, raw string) (*url.URL, error) {
	u, err := fetch.ParseURL(raw)
	if err != nil {
		return nil, command.Usagef("%s: %w", flag, err)
	}
	u.User = nil
	return u, nil
}

// cloudOf makes a cloud element of the URL where registrations go.
func cloudOf(s string) (feedconv.Cloud, error) {
	protocol := "http-post"
	if rest, ok := strings.CutPrefix(s, "xmlrpc://"); ok {
		s, protocol = "http://"+rest, "xml-rpc"
	}
	u, err := fetch.ParseURL(s)
	if err != nil {
		return feedconv.Cloud{}, err
	}
	port := 80
	if u.Scheme == "https" {
		port = 443
		if protocol == "http-post" {
			protocol = "https-post"
		}
	}
	if p := u.Port(); p != "" {
		if port, err = strconv.Atoi(p); err != nil || port < 1 || port > 65535 {
			return feedconv.Cloud{}, errors.New(u.String() + ": there is no such port")
		}
	}
	c := feedconv.Cloud{Domain: u.Hostname(), Port: port, Path: u.EscapedPath(), Protocol: protocol}
	if c.Path == "" || c.Path == "/" {
		c.Path = "/rsscloud/pleaseNotify"
		if protocol == "xml-rpc" {
			c.Path = "/RPC2"
		}
	}
	if u.RawQuery != "" {
		c.Path += "?" + u.RawQuery
	}
	if strings.HasSuffix(strings.ToLower(strings.TrimSuffix(u.Path, "/")), "/rpc2") {
		c.Protocol = "xml-rpc"
	}
	if c.Protocol == "xml-rpc" {
		c.RegisterProcedure = "rssCloud.pleaseNotify"
	}
	return c, nil
}

// entryOf makes a feed's entry of an entry of the lektor-dir.
func (v *viewer) entryOf(r *entries.Record, format feedconv.Format) feedconv.Entry {
	e := entries.Public(r.Get(0))
	out := feedconv.Entry{
		ID: e.ID, GUID: e.ID, Link: e.URL(), Title: e.Title,
		Content: string(e.Content), ContentType: cmp.Or(e.Type, "text/plain"),
		Summary: e.Summary, SummaryType: "text/plain",
		Authors: personsOf(e, lektordir.RoleAuthor, redact.Text(r.Author())), Published: r.Published(), Updated: e.Updated,
		Categories: e.Categories, Comments: e.Comments, Image: e.Image, Language: e.Language,
		Duration: e.Duration, Episode: e.Episode, Season: e.Season, Rights: e.Rights,
	}
	for _, c := range e.Terms {
		out.Terms = append(out.Terms, feedconv.Category(c))
	}
	for _, l := range e.Relations {
		out.Links = append(out.Links, feedconv.Link{Rel: l.Rel, Href: l.URL, Type: l.Type, Title: l.Title})
	}
	out.Contributors = personsOf(e, lektordir.RoleContributor, e.Contributors...)
	if out.Updated.IsZero() {
		out.Updated = out.Published
	}
	if u, err := url.Parse(e.ID); format == feedconv.Atom10 && (err != nil || u.Scheme == "") {
		// RFC 4287, section 4.2.6: it must be an IRI, which a guid need not be.
		out.ID = digestID(r.Feed().ID, e.ID)
	}
	for _, enc := range e.Enclosures {
		out.Enclosures = append(out.Enclosures, feedconv.Enclosure(enc))
	}
	if e.Source != (lektordir.Source{}) {
		// One that is there already stays (RFC 4287, section 4.2.11).
		s := e.Source
		out.Source = &feedconv.Source{
			ID: s.ID, Title: s.Title, Link: s.Link, URL: s.URL, Updated: s.Updated,
			Authors: inRole(e, lektordir.RoleSource), Copyright: s.Copyright, Image: s.Image, Description: s.Description,
		}
		return out
	}
	f := r.Feed()
	out.Source = &feedconv.Source{ID: fetch.Public(f.ID), Title: redact.Text(f.Name), Link: entries.Followable(fetch.Public(f.Link))}
	// Where it is fetched from, but not with a password, nor a file's name.
	src := f.ID
	if line, err := feeddir.URL(v.Dir, r.Ref.Feed); err == nil {
		src = line
	}
	if u, err := fetch.ParseURL(src); err == nil {
		u.User = nil
		out.Source.URL = u.String()
	}
	return out
}

// digestID is the id of an entry whose own one will not do, the same on every
// machine.
func digestID(feedID, id string) string {
	return fmt.Sprintf("urn:sha256:%x", sha256.Sum256([]byte(feedID+"\x00"+id)))
}

// personsOf returns the persons of a role: those that the entry has in parts, if they
// are those that stand in its lines of text.
func personsOf(e *lektordir.Entry, role string, lines ...string) []feedconv.Person {
	list := inRole(e, role)
	var text []string
	for _, p := range list {
		text = append(text, p.String())
	}
	if len(list) > 0 && strings.Join(text, ", ") == strings.Join(lines, ", ") {
		return list
	}
	list = nil
	for _, l := range lines {
		list = append(list, authors(l)...)
	}
	return list
}

// inRole returns the persons that an entry has in parts.
func inRole(e *lektordir.Entry, role string) (list []feedconv.Person) {
	for _, p := range e.People {
		if p.Role == role {
			list = append(list, feedconv.Person{Name: p.Name, Email: p.Email, URL: p.URL})
		}
	}
	return list
}

// authors reads names and addresses as the file author has them.
func authors(s string) []feedconv.Person {
	if s == "" {
		return nil
	}
	if strings.Contains(s, "<") {
		if list, err := mail.ParseAddressList(s); err == nil {
			var out []feedconv.Person
			for _, a := range list {
				out = append(out, feedconv.Person{Name: a.Name, Email: a.Address})
			}
			return out
		}
	}
	return []feedconv.Person{{Name: s}}
}
