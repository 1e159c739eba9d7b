package viewer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/mail"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
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
	Include []string
	Clouds  []string // URLs of rssCloud; xmlrpc://… or a path /RPC2 for XML-RPC
	Hubs    []string // URLs of WebSub
}

// formats are those of [Publish].
var formats = map[string]feedconv.Format{"atom": feedconv.Atom10, "rss": feedconv.RSS20, "json": feedconv.JSONFeed}

var encoders = map[feedconv.Format]func(io.Writer, *feedconv.Feed) error{
	feedconv.Atom10: feedconv.EncodeAtom, feedconv.RSS20: feedconv.EncodeRSS, feedconv.JSONFeed: feedconv.EncodeJSON,
}

// Publish writes the entries selected, read or not, as a feed, newest first. It
// takes nothing from the clock: as long as the entries are the same, so is the
// document, and its file is not touched.
func Publish(ctx context.Context, o PublishOptions, s *command.Streams) error {
	format, ok := formats[o.Format]
	if !ok {
		return command.Usagef("--format %s: it is atom, rss or json", o.Format)
	}
	if len(o.Clouds) > 1 {
		return &command.UsageError{Message: "--cloud can be given once: RSS has one cloud to a feed", Hint: "a cloud tells all who read the feed; --hub can be repeated"}
	}
	feed := &feedconv.Feed{Link: o.Link}
	if err := o.head(feed, format); err != nil {
		return err
	}
	v, err := o.open(o.Query, command.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	named, failed, err := entries.Feeds(ctx, o.Include, false, s, v.findFeed)
	if failed || err != nil {
		return cmp.Or[error](err, &command.ExitError{Status: command.StatusFailed})
	}
	sharing := v.Sharing(named)
	found, err := v.Select(ctx, entries.Selection{Query: v.query, All: true, Want: lektordir.FieldPubDate})
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(r *entries.Record) bool { return !sharing.May(r.Ref.Feed) })
	sharing.Tell("--include FEED publishes it all the same")
	ids := map[string]bool{}
	// Oldest first: of several that share an id the oldest keeps it.
	slices.SortFunc(found, func(a, b *entries.Record) int {
		return cmp.Or(a.Published().Compare(b.Published()), cmp.Compare(a.Ref.Unique, b.Ref.Unique), cmp.Compare(a.Ref.Feed, b.Ref.Feed))
	})
	if o.Newest > 0 && len(found) > o.Newest {
		found = found[len(found)-o.Newest:]
	}
	for _, r := range found {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !v.Usable(r.Check()) || !v.Usable(r.Read(lektordir.AllFields)) {
			continue
		}
		e := v.entryOf(r, format)
		for ids[e.ID] {
			// The link tells entries of one feed apart that share a guid.
			e.ID = digestID(r.Feed().ID, e.ID+"\x00"+e.Link)
			e.GUID = e.ID
		}
		ids[e.ID] = true
		if e.Updated.After(feed.Updated) {
			feed.Updated = e.Updated
		}
		feed.Entries = append(feed.Entries, e)
		r.Forget()
	}
	slices.Reverse(feed.Entries)
	feed.Title = cmp.Or(strings.Join(strings.Fields(o.Title), " "), strings.Join(o.Query, " "), "lektor")
	var doc bytes.Buffer
	if err := encoders[format](&doc, feed); err != nil {
		return err
	}
	data := termsafe.XML(doc.Bytes())
	if format == feedconv.JSONFeed {
		data = termsafe.JSON(doc.Bytes())
	}
	if o.Output == "" {
		_, err := s.Out.Write(data)
		return err
	}
	atomicfile.Sweep(o.Output)
	// A pipe in its place would be waited for.
	if fi, err := os.Stat(o.Output); err == nil && fi.Mode().IsRegular() {
		if old, err := os.ReadFile(o.Output); err == nil && bytes.Equal(old, data) {
			return nil
		}
	}
	out, err := atomicfile.Create(o.Output)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := out.Write(data); err != nil {
		return err
	}
	return out.Commit()
}

// head makes what the feed says of itself.
func (o *PublishOptions) head(f *feedconv.Feed, format feedconv.Format) error {
	if o.Self != "" {
		u, err := fetch.ParseURL(o.Self)
		if err != nil {
			return command.Usagef("--self: %w", err)
		}
		u.User = nil // everybody reads it
		f.ID = u.String()
		f.Links = append(f.Links, feedconv.Link{Rel: "self", Href: f.ID})
	}
	if o.Link != "" {
		if _, err := fetch.ParseURL(o.Link); err != nil {
			return command.Usagef("--link: %w", err)
		}
	}
	for _, h := range o.Hubs {
		u, err := fetch.ParseURL(h)
		if err != nil {
			return command.Usagef("--hub: %w", err)
		}
		u.User = nil
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
		if format == feedconv.Atom10 {
			return &command.UsageError{Message: "--cloud: Atom has no place for a cloud", Hint: "use --format rss, or a hub of WebSub with --hub"}
		}
		f.Clouds = append(f.Clouds, cloud)
	}
	return nil
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
	e := public(r.Get(0))
	out := feedconv.Entry{
		ID: e.ID, GUID: e.ID, Link: e.URL(), Title: e.Title,
		Content: string(e.Content), ContentType: cmp.Or(e.Type, "text/plain"),
		Summary: e.Summary, SummaryType: "text/plain",
		Authors: authors(fetch.PublicText(r.Author())), Published: r.Published(), Updated: e.Updated,
		Categories: e.Categories, Comments: e.Comments, Image: e.Image, Language: e.Language,
		Duration: e.Duration, Episode: e.Episode, Season: e.Season,
	}
	for _, c := range e.Contributors {
		out.Contributors = append(out.Contributors, authors(c)...)
	}
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
		out.Source = &feedconv.Source{ID: e.Source.ID, Title: e.Source.Title, Link: e.Source.Link, URL: e.Source.URL}
		return out
	}
	f := r.Feed()
	out.Source = &feedconv.Source{ID: fetch.Public(f.ID), Title: fetch.PublicText(f.Name), Link: followable(fetch.Public(f.Link))}
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

// public gives an entry as anybody may see it: without what stands before the
// host of a URL, and without links that are none, see [feedconv.IsLink]. Other
// programs may have stored those, and earlier versions of ours.
func public(e *lektordir.Entry) *lektordir.Entry {
	p := *e
	for _, s := range []*string{&p.Title, &p.ID, &p.Author, &p.Link, &p.Summary, &p.Comments, &p.Image, &p.Source.ID, &p.Source.Title, &p.Source.Link, &p.Source.URL} {
		*s = fetch.PublicText(*s)
	}
	for _, s := range []*string{&p.Link, &p.Comments, &p.Image, &p.Source.Link, &p.Source.URL} {
		*s = followable(*s)
	}
	if lektordir.IsText(p.Type) {
		p.Content = []byte(fetch.PublicText(string(p.Content)))
	}
	p.Categories = slices.Clone(p.Categories)
	for i, c := range p.Categories {
		p.Categories[i] = fetch.PublicText(c)
	}
	p.Contributors = slices.Clone(p.Contributors)
	for i, c := range p.Contributors {
		p.Contributors[i] = fetch.PublicText(c)
	}
	p.Enclosures = slices.DeleteFunc(slices.Clone(p.Enclosures), func(e lektordir.Enclosure) bool { return !feedconv.IsLink(e.URL) })
	for i := range p.Enclosures {
		p.Enclosures[i].URL = fetch.PublicText(p.Enclosures[i].URL)
	}
	return &p
}

// followable is url if that is a link, else empty.
func followable(url string) string {
	if !feedconv.IsLink(url) {
		return ""
	}
	return url
}

// findFeed finds the feed that the user names.
func (v *viewer) findFeed(name string) (string, error) {
	hash, err := (&feeddir.Finder{Dir: v.Dir, All: true}).Find(name)
	return hash, entries.FeedHint(err)
}

// digestID is the id of an entry whose own one will not do, the same on every
// machine.
func digestID(feedID, id string) string {
	sum := sha256.Sum256([]byte(feedID + "\x00" + id))
	return "urn:sha256:" + hex.EncodeToString(sum[:])
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
