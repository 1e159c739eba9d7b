package feedconv

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/rawjson"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/internal/text/markup"
)

// jsonDoc is a JSON document while it is mapped to a feed.
type jsonDoc struct {
	feed  *Feed
	base  *url.URL
	limit int // entries that may still come
	max   int
	// empty counts empty items.
	empty  int
	growth int // see Feed.add
}

// parseJSON reads the JSON formats. Fields are decoded one by one, so that a field of a wrong type
// loses only itself.
func parseJSON(b []byte, opts Options) (*Feed, error) {
	value, _, complete := rawjson.At(b, 0)
	top := value.Object()
	d := &jsonDoc{feed: &Feed{}, base: markup.DocumentBase(opts.URL, opts.ContentLocation), limit: opts.maxEntries(),
		max: opts.maxEntries(), growth: maxGrowth}
	rss, items := top.Get("rss"), top.Get("items")
	switch {
	case rss.IsObject():
		d.rssInJSON(rss)
	case strings.Contains(top.Get("version").Str(), "jsonfeed.org"):
		d.jsonFeed(top)
	case isCollection(top.Get("type", "@type")), isActivity(items):
		d.activityStreams(top)
	case items.IsArray():
		d.jsonFeed(top)
	default:
		return nil, notJSONFeed(b)
	}
	if !complete && len(d.feed.Entries) == 0 {
		return nil, errCutOff("")
	}
	if d.feed.Truncated = !complete; !complete {
		d.feed.Warnings = append(d.feed.Warnings, Warning{
			Line: lineAt(b, len(b)),
			Text: "the document is cut off; what is before the cut was read",
		})
	} else if at, bad := jsonFault(b); bad {
		d.feed.Warnings = append(d.feed.Warnings, Warning{
			Line: lineAt(b, at),
			Text: "malformed JSON; the parts that could be read were used",
		})
	}
	if d.limit < 0 {
		leftOut(d.feed, d.max)
	}
	finishFeed(d.feed, opts)
	return d.feed, nil
}

// notJSONFeed returns the error for a document that begins with a brace or a bracket and is not a
// feed.
func notJSONFeed(b []byte) error {
	if json.Valid(b) {
		return &NotFeedError{What: "JSON, but no feed"}
	}
	return &NotFeedError{What: "malformed JSON, and not a feed"}
}

// jsonFault finds the first syntax error.
func jsonFault(b []byte) (offset int, bad bool) {
	if json.Valid(b) {
		return 0, false
	}
	var none struct{}
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(b, &none)); ok {
		return int(syntax.Offset), true
	}
	return 0, true
}

// lineAt returns the number of the line, from 1, that an offset is on.
func lineAt(b []byte, offset int) int {
	return 1 + bytes.Count(b[:min(offset, len(b))], []byte{'\n'})
}

// add finishes an entry. It returns false if no further entries are accepted.
func (d *jsonDoc) add(e *draft) bool {
	if d.feed.add(e, d.base, &d.growth) {
		d.limit--
	} else if d.empty++; d.empty > 4*d.max { // hostile
		d.limit = -1
	}
	d.feed.Entries = d.feed.Entries[:min(len(d.feed.Entries), d.max)]
	return d.limit >= 0
}

func (d *jsonDoc) url(s string) string {
	if s = markup.CleanLine(s); s == "" {
		return ""
	}
	return markup.Resolve(d.base, s)
}

// jsonFeed maps JSON Feed 1.0 and 1.1.
func (d *jsonDoc) jsonFeed(top rawjson.Object) {
	f := d.feed
	f.Format = JSONFeed
	f.Title = oneLine(top.Text("title"))
	f.Description = PlainText(top.Text("description"), markup.TypePlain)
	f.Link = d.url(top.Text("home_page_url"))
	f.Image = cmp.Or(d.url(top.Text("icon")), d.url(top.Text("favicon")))
	f.Language = top.Text("language")
	f.Expired = top.Get("expired").IsTrue()
	f.Extensions, f.Attributes = d.extensions(top.Get("_extensions")), jsonAttributes(top.Get("_attributes"))
	for _, v := range top.All("author", "authors") {
		f.Authors = append(f.Authors, d.persons(v)...)
	}
	for _, m := range top {
		switch m.Name {
		case "feed_url":
			f.link(Link{Rel: "self", URL: d.url(m.Value.Scalar()), Type: "application/feed+json"})
		case "next_url":
			f.link(Link{Rel: "next", URL: d.url(m.Value.Scalar())})
		case "hubs":
			m.Value.List(maxList, d.hub)
		}
	}
	for item := range top.Get("items").Each {
		if item.IsObject() && !d.jsonFeedItem(item.Object()) {
			break
		}
	}
}

// link adds a link, if a reader may follow its URL.
func (f *Feed) link(l Link) {
	if l.URL != "" {
		f.Links = append(f.Links, l)
	}
}

// hub reads one of a JSON Feed's hubs.
func (d *jsonDoc) hub(v rawjson.Value) {
	hub := v.Object()
	href := d.url(hub.Text("url"))
	if href != "" && strings.Contains(strings.ToLower(hub.Text("type")), "rsscloud") {
		d.feed.Clouds = append(d.feed.Clouds, cloudOfURL(href))
	} else {
		d.feed.link(Link{Rel: "hub", URL: href})
	}
}

// persons reads one author or several: objects, or names.
func (d *jsonDoc) persons(v rawjson.Value) []Person {
	return people(v, func(a rawjson.Object) Person {
		return Person{Name: a.Text("name", "displayName", "preferredUsername"), Email: a.Text("email", "_email"),
			URL: d.url(a.Text("url", "uri"))}
	})
}

// people reads one person or several. Strings are names; objects are read by read.
func people(v rawjson.Value, read func(rawjson.Object) Person) []Person {
	var out []Person
	v.List(maxList, func(a rawjson.Value) {
		if a.IsObject() {
			out = append(out, tidyPerson(read(a.Object())))
		} else {
			out = append(out, parsePersons(a.Scalar(), false)...)
		}
	})
	return out
}

// jsonStrings reads a list of strings, or one.
func jsonStrings(v rawjson.Value) []string {
	var out []string
	v.List(maxList, func(s rawjson.Value) { out = append(out, s.Scalar()) })
	return out
}

func (d *jsonDoc) jsonFeedItem(item rawjson.Object) bool {
	var x draft
	e := &x.entry
	e.GUID = item.Text("id")
	e.Link = markup.FirstLink(d.url(item.Text("url")), d.url(item.Text("external_url")))
	x.titles = []text{{item.Text("title"), markup.TypePlain}}
	x.contents = []text{{item.Text("content_html"), markup.TypeHTML}, {item.Text("content_text"), markup.TypePlain}}
	x.summaries = []text{{item.Text("summary"), markup.TypePlain}}
	e.Image = cmp.Or(d.url(item.Text("image")), d.url(item.Text("banner_image")))
	x.published, x.updated = []string{item.Text("date_published")}, []string{item.Text("date_modified")}
	for _, v := range item.All("author", "authors") {
		e.Authors = append(e.Authors, d.persons(v)...)
	}
	e.Contributors = d.persons(item.Get("_contributors"))
	e.Categories = jsonStrings(item.Get("tags"))
	e.Language = item.Text("language")
	e.Rights = PlainText(item.Text("_rights"), markup.TypePlain)
	comments := item.Get("_comments")
	e.Comments = d.url(cmp.Or(comments.Text("url"), comments.Scalar()))
	item.Get("_in_reply_to").List(maxList, func(v rawjson.Value) {
		r := v.Object()
		e.InReplyTo = append(e.InReplyTo, ReplyTo{Ref: r.Text("id"), URL: d.url(r.Text("url")),
			Type: r.Text("mime_type"), Source: d.url(r.Text("source"))})
	})
	e.Extensions, e.Attributes = d.extensions(item.Get("_extensions")), jsonAttributes(item.Get("_attributes"))
	podcast := item.Get("_podcast").Object()
	e.Episode, e.Season = number(podcast.Text("episode")), number(podcast.Text("season"))
	e.Duration = duration(podcast.Text("duration"))
	item.Get("attachments").List(maxList, func(v rawjson.Value) {
		a := v.Object()
		e.Enclosures = append(e.Enclosures, enclosure(d.url(a.Text("url")), a.Text("mime_type"),
			a.Text("size_in_bytes")))
		if e.Duration == 0 {
			e.Duration = duration(a.Text("duration_in_seconds"))
		}
	})
	item.Get("_links").List(maxList, func(v rawjson.Value) {
		l := v.Object()
		e.Links = append(e.Links, Link{
			Rel: linkRel(l.Text("rel")), URL: d.url(l.Text("url")),
			Type: markup.CleanLine(l.Text("mime_type")), Title: oneLine(l.Text("title")),
		})
	})
	e.Links = otherLinks(e.Links)
	item.Get("_categories").List(maxList, func(v rawjson.Value) {
		c := v.Object()
		e.Terms = append(e.Terms, Category{Name: c.Text("name"), Scheme: c.Text("scheme"), Label: c.Text("label"),
			Term: c.Text("term")})
	})
	if v := item.Get("_source"); v != nil {
		e.Source = d.source(v.Object())
	}
	if e.Link == "" && markup.IsWebURL(e.GUID) {
		e.Link = e.GUID // the specification wants the id to be the permalink
	}
	return d.add(&x)
}

func (d *jsonDoc) source(o rawjson.Object) *Source {
	s := &Source{
		ID: o.Text("id"), Title: o.Text("title"), Link: d.url(o.Text("home_page_url")), URL: d.url(o.Text("feed_url")),
		Description: oneLine(o.Text("description")), Image: d.url(o.Text("icon")),
		Authors: d.persons(o.Get("authors")), Copyright: oneLine(o.Text("rights")),
	}
	s.Updated, _ = firstDate([]string{o.Text("date_modified")})
	return s
}

// extensions reads the extensions that [EncodeJSON] writes. Elements without a namespace or with an
// invalid name are left out.
func (d *jsonDoc) extensions(v rawjson.Value) []Extension {
	left := tidy.MaxExtensions
	list := extensionList(v, 0, &left)
	if left < 0 {
		d.feed.warn("the extensions of an entry or feed are more than %d elements, or %d in each other; what passes that was left out", tidy.MaxExtensions, tidy.MaxExtensionDepth)
	}
	return slices.DeleteFunc(list, func(e Extension) bool { return e.Namespace == "" || e.Name == "" })
}

func extensionList(v rawjson.Value, depth int, left *int) []Extension {
	if depth == tidy.MaxExtensionDepth && len(v) > 0 {
		*left = -1
		return nil
	}
	var out []Extension
	for element := range v.Each {
		if *left--; *left < 0 {
			break
		}
		o := element.Object()
		e := Extension{
			Namespace: o.Text("namespace"), Name: o.Text("name"), Text: o.Text("text"),
			Attributes: jsonAttributes(o.Get("attributes")), Children: extensionList(o.Get("children"), depth+1, left),
		}
		if e.Name == "" && e.Text != "" || validName(e.Name) {
			out = append(out, e)
		}
	}
	return out
}

// jsonAttributes reads attributes. If a name is repeated, the first one counts.
func jsonAttributes(v rawjson.Value) []Attribute {
	var out []Attribute
	v.List(maxList, func(v rawjson.Value) {
		a := v.Object()
		at := Attribute{Namespace: a.Text("namespace"), Name: a.Text("name"), Value: a.Text("value")}
		if validName(at.Name) && !slices.ContainsFunc(out, func(b Attribute) bool {
			return b.Name == at.Name &&
				b.Namespace == at.Namespace
		}) {
			out = append(out, at)
		}
	})
	return out
}
