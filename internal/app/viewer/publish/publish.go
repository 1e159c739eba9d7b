// Package publish writes entries as a feed: one document, or a directory of them.
package publish

import (
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
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/protocol/archive"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
	"github.com/lektordir/lektor/lektordir/fromfeed"
)

// Options are the options of [Publish].
type Options struct {
	session.Common
	Query  []string
	Newest int    // publish only this many of the newest entries; 0 means all
	Format string // atom, rss or json
	Output string // a file; empty means standard output
	Title  string
	// Self is the URL at which the feed will be found, Link that of its page.
	Self, Link string
	// Include are feeds to publish although they are private, see [settings.Withheld].
	Include  []string
	Clouds   []string // URLs of rssCloud; xmlrpc://… or a path /RPC2 for XML-RPC
	Hubs     []string // URLs of WebSub
	ESS, NNO string   // URLs of the ess and nno documents, see ess(5)

	// Complete marks the document as the complete feed (RFC 5005, section 2). Paged and
	// Archive name a directory for a feed of several documents (sections 3 and 4), PerPage
	// entries each. At most one of Complete, Paged and Archive may be set.
	Complete       bool
	Paged, Archive string
	PerPage        int

	disk *disk // for tests; nil for the real one
}

// formats maps the names of the formats of [Publish].
var formats = map[string]feedconv.Format{"atom": feedconv.Atom10, "rss": feedconv.RSS20, "json": feedconv.JSONFeed}

// Publish writes the entries selected, read or not, as a feed, newest first: one
// document, or a directory of them. The documents do not depend on the clock: while
// the entries stay the same, so do the documents, and their files are not touched.
func Publish(ctx context.Context, o Options, s *cmdline.Streams) error {
	p := &publisher{o: o}
	var ok bool
	if p.format, ok = formats[o.Format]; !ok {
		return cmdline.Usagef("--format %s: use atom, rss or json", o.Format)
	}
	err := p.checkKind()
	if err == nil {
		err = p.head()
	}
	if err != nil {
		return err
	}
	if p.Session, err = o.Open(o.Query, cmdline.PrinterOptions{}, s); err != nil {
		return err
	}
	// Readers treat an entry that is missing from a document, or lacks a field, as changed.
	p.Strict = true
	named, failed, err := entrystore.Named(ctx, o.Include, false, s, entrystore.Finding(p.Dir, true))
	if failed || err != nil {
		return cmp.Or[error](err, &cmdline.ExitError{Status: cmdline.StatusFailed})
	}
	p.named = named
	switch {
	case o.Archive != "":
		return p.inDir(o.Archive, func(d *documents) error { return p.archive(ctx, d) })
	case o.Paged != "":
		return p.inDir(o.Paged, func(d *documents) error { return p.paged(ctx, d) })
	}
	return p.untilStable(ctx, func() error { return p.single(ctx) })
}

// errMoved reports that an entry changed or went while its document was made.
var errMoved = errors.New("the entries change while they are published")

// untilSettled is how long publish waits before each attempt, six seconds in all: while
// another process expires or replaces thousands of entries, each attempt meets some of them.
var untilSettled = []time.Duration{0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond,
	800 * time.Millisecond, 1500 * time.Millisecond, 3 * time.Second}

// untilStable calls publish until the entries stay as they were while it ran.
func (p *publisher) untilStable(ctx context.Context, publish func() error) error {
	for _, pause := range untilSettled {
		if err := workers.Sleep(ctx, pause); err != nil {
			return err
		}
		if err := publish(); !errors.Is(err, errMoved) {
			return err
		}
	}
	return cmdline.Hint(errMoved, "try again when other programs are done with the entries")
}

// whole fails if an entry could not be listed or read: readers would treat an entry that is missing
// from the document as deleted.
func (p *publisher) whole(path string) error {
	if p.S.Report.Errors() == 0 {
		return nil
	}
	return cmdline.Hint(fmt.Errorf("%s was not changed, as some entries could not be read", path),
		"see the errors above")
}

// publisher is a run of [Publish].
type publisher struct {
	*session.Session
	o      Options
	format feedconv.Format
	feed   feedconv.Feed // metadata from the options, without dates and entries
	self   *url.URL      // nil without one
	named  []string      // hashes of the feeds of --include
	warned bool          // an earlier attempt warned of omitted feeds, if there are any

	sources workers.Cache[string] // results of fetchedFrom by hash of the feed
}

// selected returns the entries that are published, oldest first.
func (p *publisher) selected(ctx context.Context) ([]*entrystore.Record, error) {
	list, err := p.Select(ctx, entrystore.Selection{Query: p.Query, All: true, Strict: true,
		Want: lektordir.FieldPubDate})
	if err != nil {
		return nil, err
	}
	sharing := p.Sharing(p.named)
	list = slices.DeleteFunc(list, func(r *entrystore.Record) bool { return !sharing.May(r.Ref.Feed) })
	if !p.warned {
		p.warned = true
		sharing.Tell("--include FEED publishes it all the same")
	}
	slices.SortFunc(list, func(a, b *entrystore.Record) int {
		return cmp.Or(a.Published().Compare(b.Published()), cmp.Compare(a.Ref.Unique, b.Ref.Unique),
			cmp.Compare(a.Ref.Feed, b.Ref.Feed))
	})
	if p.o.Newest > 0 {
		list = list[max(0, len(list)-p.o.Newest):]
	}
	return list, nil
}

// candidate is an entry that is published.
type candidate struct {
	ref lektordir.Ref
	archive.Entry
	link string
}

// candidates reads the entries to publish, in parallel, and returns their ids, digests and dates,
// oldest first. Entries that cannot be read are reported and left out. With anew, for a ledger that was rebuilt, they
// have the digests of their elements, too.
func (p *publisher) candidates(ctx context.Context, anew bool) ([]candidate, error) {
	found, err := p.selected(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]candidate, len(found))
	err = workers.ForEach(ctx, len(found), func(i int) {
		// Documents have the files as they are now, not what an index remembers.
		r := p.Record(found[i].Ref)
		e, err := p.entry(r)
		if !p.Usable(err) {
			return
		}
		list[i] = candidate{ref: r.Ref, link: e.Link, Entry: archive.Entry{ID: e.ID, Digest: digest(r, e),
			Updated: e.Updated, Origin: origin(r)}}
		if anew {
			list[i].Printed = p.printed(*e)
		}
	})
	return slices.DeleteFunc(list, func(c candidate) bool { return c.Digest == "" }), err
}

// uniqueIDs replaces the ids that an older candidate has already.
func (p *publisher) uniqueIDs(list []candidate) {
	taken := make(map[string]bool, len(list))
	for i := range list {
		c := &list[i]
		for taken[c.ID] {
			c.ID = p.otherID(c, c.ID)
		}
		taken[c.ID] = true
	}
}

// gather reads the entries of candidates again, and returns them newest first, for a document. The error is errMoved
// if this fails or an entry has changed.
func (p *publisher) gather(ctx context.Context, candidates []candidate) ([]feedconv.Entry, error) {
	list := make([]feedconv.Entry, len(candidates))
	var moved atomic.Bool
	err := workers.ForEach(ctx, len(candidates), func(i int) {
		c := candidates[len(candidates)-1-i]
		r := p.Record(c.ref)
		e, err := p.entry(r)
		if err != nil || digest(r, e) != c.Digest {
			moved.Store(true)
			return
		}
		list[i] = *e
		list[i].ID, list[i].GUID, list[i].Updated = c.ID, c.ID, c.Updated
	})
	if err == nil && moved.Load() {
		err = errMoved
	}
	return list, err
}

// otherID returns an id for an entry whose own id is taken. It depends on the link, in which
// entries of one feed with the same guid differ.
func (p *publisher) otherID(c *candidate, id string) string {
	return digestID(p.Record(c.ref).Feed().ID, id+"\x00"+c.link)
}

// newestOf returns the latest date of update in list, zero if it is empty.
func newestOf(list []feedconv.Entry) (t time.Time) {
	for _, e := range list {
		if e.Updated.After(t) {
			t = e.Updated
		}
	}
	return t
}

// entriesInMemory is the maximum number of entries in memory while a document is made.
const entriesInMemory = 64

// single publishes one document.
func (p *publisher) single(ctx context.Context) error {
	list, err := p.candidates(ctx, false)
	if err != nil {
		return err
	}
	p.uniqueIDs(list)
	feed := p.feed
	p.elements(&feed, list)
	for _, c := range list {
		if c.Updated.After(feed.Updated) {
			feed.Updated = c.Updated
		}
	}
	file := p.o.Output
	if file != "" && file != "-" {
		if err := p.whole(file); err != nil {
			return err
		}
	}
	// Only a complete document is written: what is on standard output cannot be undone.
	data, err := p.encode(&feed, func(yield func(*feedconv.Entry, error) bool) {
		for to := len(list); to > 0; to -= entriesInMemory {
			part, err := p.gather(ctx, list[max(0, to-entriesInMemory):to])
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range part {
				if !yield(&part[i], nil) {
					return
				}
			}
		}
	})
	if err != nil || inPlace(file, data) {
		return err
	}
	return p.S.Output(file, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// inPlace reports whether a file has these bytes already.
func inPlace(file string, data []byte) bool {
	fi, err := os.Stat(file)
	if err != nil || !fi.Mode().IsRegular() {
		return false
	}
	old, err := atomicfile.Read(file, int64(len(data)))
	return err == nil && bytes.Equal(old, data)
}

// elements sets the extensions of a document whose feed has entries of one podcast alone, and what podcast
// programs require of it. That it has moved is left out: subscribers would follow.
func (p *publisher) elements(feed *feedconv.Feed, list []candidate) {
	if len(list) == 0 || slices.ContainsFunc(list, func(c candidate) bool { return c.ref.Feed != list[0].ref.Feed }) {
		return
	}
	f := p.Dir.FeedOf(list[0].ref)
	if len(f.Elements) == 0 {
		return
	}
	own := entrystore.Public(&lektordir.Entry{
		Elements: f.Elements, Image: f.Image, Author: f.Author, Summary: f.Description,
	})
	_, feed.Extensions = fromfeed.Extensions(slices.DeleteFunc(own.Elements,
		func(e lektordir.Element) bool { return e.Name == "itunes:new-feed-url" }))
	feed.Image, feed.Authors, feed.Language = own.Image, authors(own.Author), f.Language
	feed.Description = own.Summary
}

// encode returns a document, cleaned with termsafe. If list is nil, it has the entries of feed.
func (p *publisher) encode(feed *feedconv.Feed, list iter.Seq2[*feedconv.Entry, error]) ([]byte, error) {
	var b bytes.Buffer
	err := feedconv.Encode(&b, p.format, feed, list)
	if p.format == feedconv.JSONFeed {
		return termsafe.JSON(b.Bytes()), err
	}
	return termsafe.XML(b.Bytes()), err
}

// checkKind fails if options exclude each other, or lack another that they need.
func (p *publisher) checkKind() error {
	o := p.o
	inDir := o.Paged != "" || o.Archive != ""
	isJSON := p.format == feedconv.JSONFeed
	switch {
	case len(o.Clouds) > 1:
		return &cmdline.UsageError{Message: "only one --cloud is possible: an RSS feed has one cloud",
			Hint: "a cloud notifies all subscribers; --hub can be repeated"}
	case o.Complete && inDir, o.Paged != "" && o.Archive != "":
		return cmdline.Usagef("--complete, --paged and --archive exclude each other")
	case inDir && o.Output != "":
		return &cmdline.UsageError{Message: "--output and a directory of documents exclude each other",
			Hint: "the subscription document gets the name that --self ends in"}
	case inDir && o.PerPage < 1:
		return &cmdline.UsageError{Message: "--paged and --archive need --per-page",
			Hint: "--per-page 50 puts fifty entries into each document"}
	case !inDir && o.PerPage != 0:
		return &cmdline.UsageError{Message: "--per-page needs --paged or --archive",
			Hint: "--newest limits the entries of a single document"}
	case inDir && o.Self == "":
		return &cmdline.UsageError{Message: "--paged and --archive need --self",
			Hint: "the documents link to each other below the URL of the subscription document, such as https://me.example/feed/index.atom"}
	case o.Archive != "" && o.Newest > 0:
		return &cmdline.UsageError{Message: "--newest and --archive exclude each other",
			Hint: "an archived feed keeps all that was published; --per-page limits what a subscriber fetches each time"}
	case isJSON && o.Archive != "":
		return &cmdline.UsageError{Message: "--archive: JSON Feed has no place for archives",
			Hint: "use --format atom or rss, or --paged, for which it has next_url"}
	case isJSON && o.Complete:
		return &cmdline.UsageError{Message: "--complete: JSON Feed has no place for the mark",
			Hint: "use --format atom or rss"}
	case isJSON && (o.ESS != "" || o.NNO != ""):
		return &cmdline.UsageError{Message: "--ess, --nno: JSON Feed has no place for such links",
			Hint: "use --format atom or rss"}
	}
	return nil
}

// head sets the metadata of the feed from the options.
func (p *publisher) head() (err error) {
	o, f := p.o, &p.feed
	f.Link, f.Complete = feedurl.Public(o.Link), o.Complete
	f.Title = cmp.Or(strings.Join(strings.Fields(o.Title), " "), strings.Join(o.Query, " "), "lektor")
	if o.Self != "" {
		if p.self, err = publicURL("--self", o.Self); err != nil {
			return err
		}
		f.ID = p.self.String()
		f.Links = append(f.Links, feedconv.Link{Rel: "self", URL: f.ID})
	}
	if o.Link != "" {
		if _, err := feedurl.Parse(o.Link); err != nil {
			return cmdline.Usagef("--link: %w", err)
		}
	}
	for _, h := range o.Hubs {
		u, err := publicURL("--hub", h)
		if err != nil {
			return err
		}
		if o.Self == "" {
			return &cmdline.UsageError{Message: "--hub needs --self", Hint: "a hub identifies a feed by its self link"}
		}
		f.Links = append(f.Links, feedconv.Link{Rel: "hub", URL: u.String()})
	}
	for _, c := range o.Clouds {
		cloud, err := cloudOf(c)
		if err != nil {
			return cmdline.Usagef("--cloud: %w", err)
		}
		if p.format == feedconv.Atom10 {
			return &cmdline.UsageError{Message: "--cloud: Atom has no place for a cloud",
				Hint: "use --format rss, or a hub of WebSub with --hub"}
		}
		f.Clouds = append(f.Clouds, cloud)
	}
	return p.notices()
}

// notices adds links to the documents of --ess and --nno: ess(5), "Discovery".
func (p *publisher) notices() error {
	f := &p.feed
	for _, d := range []struct{ flag, url, mime string }{{"--ess", p.o.ESS, "application/ess"},
		{"--nno", p.o.NNO, "application/nno"}} {
		if d.url == "" {
			continue
		}
		u, err := publicURL(d.flag, d.url)
		if err != nil {
			return err
		}
		if f.Link != "" && p.format == feedconv.Atom10 &&
			!slices.ContainsFunc(f.Links, func(l feedconv.Link) bool { return l.Rel == "alternate" }) {
			// The encoder does not write f.Link if f.Links has an alternate link.
			f.Links = append(f.Links, feedconv.Link{Rel: "alternate", URL: f.Link})
		}
		f.Links = append(f.Links, feedconv.Link{Rel: "alternate", URL: u.String(), Type: d.mime})
	}
	return nil
}

// publicURL parses the URL of a flag, and removes its user name and password.
func publicURL(flag, raw string) (*url.URL, error) {
	u, err := feedurl.Parse(raw)
	if err != nil {
		return nil, cmdline.Usagef("%s: %w", flag, err)
	}
	u.User = nil
	return u, nil
}

// cloudOf returns the cloud element for the URL to which subscribers send registrations.
func cloudOf(s string) (feedconv.Cloud, error) {
	protocol := "http-post"
	if rest, ok := strings.CutPrefix(s, "xmlrpc://"); ok {
		s, protocol = "http://"+rest, "xml-rpc"
	}
	u, err := feedurl.Parse(s)
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
			return feedconv.Cloud{}, errors.New(u.String() + ": the port is invalid")
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

// entry reads an entry as it is published.
func (p *publisher) entry(r *entrystore.Record) (*feedconv.Entry, error) {
	if err := p.FeedError(r.Ref.Feed); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Ref.Path(), err)
	}
	if err := r.Read(lektordir.AllFields); err != nil {
		return nil, err
	}
	e := p.entryOf(r, p.format)
	if p.o.Archive == "" {
		return &e, nil
	}
	if e.Updated.IsZero() {
		// Without a date it would take that of its document, and differ between documents.
		e.Updated = time.Unix(0, 0)
	}
	if !utf8.ValidString(e.ID) || strings.TrimSpace(e.ID) != e.ID ||
		strings.ContainsFunc(e.ID, func(r rune) bool { return !unicode.IsPrint(r) }) {
		// A document would not keep such an id unchanged.
		e.ID = digestID(r.Feed().ID, e.ID)
	}
	return &e, nil
}

// entryOf converts an entry of the lektor-dir to an entry of a feed.
func (p *publisher) entryOf(r *entrystore.Record, format feedconv.Format) feedconv.Entry {
	e := entrystore.Public(r.Get(0))
	out := feedconv.Entry{
		ID: e.ID, GUID: e.ID, Link: e.URL(), Title: e.Title,
		Content: string(e.Content), Type: cmp.Or(e.Type, "text/plain"),
		Summary: e.Summary, SummaryType: "text/plain",
		Authors: personsOf(e, lektordir.RoleAuthor, feedurl.RedactText(r.Author())), PubDate: r.Published(),
		Updated:    e.Updated,
		Categories: e.Categories, Comments: e.Comments, Image: e.Image, Language: cmp.Or(e.Language, r.Feed().Language),
		Duration: e.Duration, Episode: e.Episode, Season: e.Season, Rights: e.Rights,
	}
	out.Attributes, out.Extensions = fromfeed.Extensions(e.Elements)
	for _, c := range e.Terms {
		out.Terms = append(out.Terms, feedconv.Category(c))
	}
	for _, l := range e.Relations {
		out.Links = append(out.Links, feedconv.Link{Rel: l.Rel, URL: l.URL, Type: l.Type, Title: l.Title})
	}
	out.Contributors = personsOf(e, lektordir.RoleContributor, e.Contributors...)
	if out.Updated.IsZero() {
		out.Updated = out.PubDate
	}
	if format == feedconv.Atom10 {
		out.ID = iri(r.Feed().ID, e.ID)
	}
	for _, to := range e.InReplyTo {
		reply := feedconv.ReplyTo{Ref: to.Ref, URL: to.URL, Type: to.Type, Source: to.Source}
		if format == feedconv.Atom10 {
			reply.Ref = iri(r.Feed().ID, to.Ref) // as the id of an entry of the feed
		}
		out.InReplyTo = append(out.InReplyTo, reply)
	}
	for _, enc := range e.Enclosures {
		out.Enclosures = append(out.Enclosures, feedconv.Enclosure(enc))
	}
	if e.Source != (lektordir.Source{}) {
		// A source that the entry has is kept (RFC 4287, section 4.2.11).
		s := e.Source
		out.Source = &feedconv.Source{
			ID: s.ID, Title: s.Title, Link: s.Link, URL: s.URL, Updated: s.Updated,
			Authors: inRole(e, lektordir.RoleSource), Copyright: s.Copyright, Image: s.Image,
			Description: s.Description,
		}
		return out
	}
	f := r.Feed()
	out.Source = &feedconv.Source{ID: feedurl.Public(f.ID), Title: feedurl.RedactText(f.Name),
		Link: entrystore.Followable(feedurl.Public(f.Link))}
	out.Source.URL = p.fetchedFrom(r.Ref.Feed, f.ID)
	return out
}

// fetchedFrom returns the URL of a feed without user name and password, "" for a file. The result
// is cached.
func (p *publisher) fetchedFrom(hash, id string) string {
	return p.sources.Of(hash, func() string {
		if line, err := feedfiles.URL(p.Dir, hash); err == nil {
			id = line
		}
		u, err := feedurl.Parse(id)
		if err != nil {
			return ""
		}
		u.User = nil
		return u.String()
	})
}

// iri returns the id of an entry for Atom. It must be an IRI (RFC 4287, section 4.2.6), which a guid
// need not be.
func iri(feedID, id string) string {
	if u, err := url.Parse(id); err != nil || u.Scheme == "" {
		return digestID(feedID, id)
	}
	return id
}

// digestID returns an id for an entry whose own id is unusable, the same on every machine.
func digestID(feedID, id string) string {
	return fmt.Sprintf("urn:sha256:%x", sha256.Sum256([]byte(feedID+"\x00"+id)))
}

// personsOf returns the structured persons of a role if they agree with lines, their names as
// text. Otherwise it parses lines.
func personsOf(e *lektordir.Entry, role string, lines ...string) []feedconv.Person {
	list := inRole(e, role)
	if len(list) > 0 && strings.Join(people(list), ", ") == strings.Join(lines, ", ") {
		return list
	}
	list = nil
	for _, l := range lines {
		list = append(list, authors(l)...)
	}
	return list
}

// inRole returns the structured persons of an entry that have a role.
func inRole(e *lektordir.Entry, role string) (list []feedconv.Person) {
	for _, p := range e.People {
		if p.Role == role {
			list = append(list, feedconv.Person{Name: p.Name, Email: p.Email, URL: p.URL})
		}
	}
	return list
}

// authors parses names and addresses in the form of the file author.
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
