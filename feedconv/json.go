package feedconv

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
)

// jsonDoc is a JSON document while it is mapped to a feed.
type jsonDoc struct {
	feed  *Feed
	base  *url.URL
	limit int // entries that may still come
	max   int
	// nothing counts items that say nothing.
	nothing int
	// growth bounds what resolving URLs may add to the document.
	growth  int
	reading *reading
}

// parseJSON reads the formats that are JSON. Its fields are decoded one by
// one, so that one of a wrong type costs nothing but itself.
func parseJSON(b []byte, opts Options) (*Feed, error) {
	value, _, complete := jsonAt(b, 0)
	top := value.object()
	d := &jsonDoc{feed: &Feed{}, base: documentBase(opts), limit: opts.maxEntries(), max: opts.maxEntries(), growth: len(b) + 64<<10, reading: opts.reading}
	rss, items := top.get("rss"), top.get("items")
	switch {
	case rss.isObject():
		d.rssInJSON(rss)
	case strings.Contains(top.get("version").str(), "jsonfeed.org"):
		d.jsonFeed(top)
	case isCollection(top.get("type", "@type")), isActivity(items):
		d.activityStreams(top)
	case items.isArray():
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
			Text: "malformed JSON; it was read as far as it makes sense",
		})
	}
	if d.limit < 0 {
		leftOut(d.feed, d.max)
	}
	finishFeed(d.feed, opts)
	return d.feed, nil
}

// notJSONFeed says what a document is that begins with a brace or a bracket.
func notJSONFeed(b []byte) error {
	if json.Valid(b) {
		return &NotFeedError{What: "JSON, but no feed"}
	}
	return &NotFeedError{What: "malformed JSON, and no feed"}
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

// lineAt gives the number of the line, from 1, that an offset is on.
func lineAt(b []byte, offset int) int {
	return 1 + bytes.Count(b[:min(offset, len(b))], []byte{'\n'})
}

// add finishes an entry; false means that no more are taken.
func (d *jsonDoc) add(e *draft) bool {
	if d.feed.add(e, d.reading) {
		d.limit--
	} else if d.nothing++; d.nothing > 4*d.max { // hostile
		d.limit = -1
	}
	d.feed.Entries = d.feed.Entries[:min(len(d.feed.Entries), d.max)]
	return d.limit >= 0
}

func (d *jsonDoc) url(s string) string {
	if s = cleanLine(s); s == "" {
		return ""
	}
	return resolveURL(d.base, s)
}

// html gives HTML with its URLs resolved.
func (d *jsonDoc) html(s string) text { return text{resolveHTML(s, d.base, &d.growth), typeHTML} }

// jsonFeed maps JSON Feed 1.0 and 1.1.
func (d *jsonDoc) jsonFeed(top jsonObject) {
	f := d.feed
	f.Format = JSONFeed
	f.Title = titleText(top.text("title"), false)
	f.Description = PlainText(top.text("description"), typePlain)
	f.Link = d.url(top.text("home_page_url"))
	f.Image = cmp.Or(d.url(top.text("icon")), d.url(top.text("favicon")))
	f.Language = top.text("language")
	f.Expired = top.get("expired").isTrue()
	f.Extensions, f.Attributes = d.extensions(top.get("_extensions")), jsonAttributes(top.get("_attributes"))
	for _, v := range top.all("author", "authors") {
		f.Authors = append(f.Authors, d.persons(v)...)
	}
	for _, m := range top {
		switch m.name {
		case "feed_url":
			f.link(Link{Rel: "self", Href: d.url(m.value.scalar()), Type: "application/feed+json"})
		case "next_url":
			f.link(Link{Rel: "next", Href: d.url(m.value.scalar())})
		case "hubs":
			m.value.list(d.hub)
		}
	}
	for item := range top.get("items").each {
		if item.isObject() && !d.jsonFeedItem(item.object()) {
			break
		}
	}
}

// link adds a link, if its URL is one.
func (f *Feed) link(l Link) {
	if l.Href != "" {
		f.Links = append(f.Links, l)
	}
}

// hub reads one of a JSON Feed's hubs.
func (d *jsonDoc) hub(v jsonValue) {
	hub := v.object()
	href := d.url(hub.text("url"))
	if href != "" && strings.Contains(strings.ToLower(hub.text("type")), "rsscloud") {
		d.feed.Clouds = append(d.feed.Clouds, cloudOfURL(href))
	} else {
		d.feed.link(Link{Rel: "hub", Href: href})
	}
}

// persons reads one author or several: objects, or names.
func (d *jsonDoc) persons(v jsonValue) []Person {
	return people(v, func(a jsonObject) Person {
		return Person{Name: a.text("name", "displayName", "preferredUsername"), Email: a.text("email", "_email"), URL: d.url(a.text("url", "uri"))}
	})
}

// people reads one person or several: names, or objects by read.
func people(v jsonValue, read func(jsonObject) Person) []Person {
	var out []Person
	v.list(func(a jsonValue) {
		if a.isObject() {
			out = append(out, tidyPerson(read(a.object())))
		} else {
			out = append(out, parsePersons(a.scalar(), false)...)
		}
	})
	return out
}

// jsonStrings reads a list of strings, or one.
func jsonStrings(v jsonValue) []string {
	var out []string
	v.list(func(s jsonValue) { out = append(out, s.scalar()) })
	return out
}

func (d *jsonDoc) jsonFeedItem(item jsonObject) bool {
	var x draft
	e := &x.entry
	e.GUID = item.text("id")
	e.Link = firstLink(d.url(item.text("url")), d.url(item.text("external_url")))
	x.titles = []text{{item.text("title"), typePlain}}
	x.contents = []text{d.html(item.text("content_html")), {item.text("content_text"), typePlain}}
	x.summaries = []text{{item.text("summary"), typePlain}}
	e.Image = cmp.Or(d.url(item.text("image")), d.url(item.text("banner_image")))
	x.published, x.updated = []string{item.text("date_published")}, []string{item.text("date_modified")}
	for _, v := range item.all("author", "authors") {
		e.Authors = append(e.Authors, d.persons(v)...)
	}
	e.Contributors = d.persons(item.get("_contributors"))
	e.Categories = jsonStrings(item.get("tags"))
	e.Language = item.text("language")
	e.Rights = PlainText(item.text("_rights"), typePlain)
	comments := item.get("_comments")
	e.Comments = d.url(cmp.Or(comments.text("url"), comments.scalar()))
	e.Extensions, e.Attributes = d.extensions(item.get("_extensions")), jsonAttributes(item.get("_attributes"))
	podcast := item.get("_podcast").object()
	e.Episode, e.Season = number(podcast.text("episode")), number(podcast.text("season"))
	e.Duration = duration(podcast.text("duration"))
	item.get("attachments").list(func(v jsonValue) {
		a := v.object()
		e.Enclosures = append(e.Enclosures, enclosure(d.url(a.text("url")), a.text("mime_type"), a.text("size_in_bytes")))
		if e.Duration == 0 {
			e.Duration = duration(a.text("duration_in_seconds"))
		}
	})
	item.get("_links").list(func(v jsonValue) {
		l := v.object()
		e.Links = append(e.Links, Link{
			Rel: linkRel(l.text("rel")), Href: d.url(l.text("url")),
			Type: cleanLine(l.text("mime_type")), Title: titleText(l.text("title"), false),
		})
	})
	e.Links = otherLinks(e.Links)
	item.get("_categories").list(func(v jsonValue) {
		c := v.object()
		e.Terms = append(e.Terms, Category{Name: c.text("name"), Scheme: c.text("scheme"), Label: c.text("label"), Term: c.text("term")})
	})
	if v := item.get("_source"); v != nil {
		src := v.object()
		e.Source = &Source{
			ID: src.text("id"), Title: src.text("title"), Link: d.url(src.text("home_page_url")), URL: d.url(src.text("feed_url")),
			Description: titleText(src.text("description"), false), Image: d.url(src.text("icon")),
			Authors: d.persons(src.get("authors")), Copyright: titleText(src.text("rights"), false),
		}
		e.Source.Updated, _ = firstDate([]string{src.text("date_modified")})
	}
	if e.Link == "" && isWebURL(e.GUID) {
		e.Link = e.GUID // the specification wants the id to be the permalink
	}
	return d.add(&x)
}

// extensions reads what [EncodeJSON] writes of them. What an element of a
// document cannot be is left out.
func (d *jsonDoc) extensions(v jsonValue) []Extension {
	left := maxExtensions
	list := extensionList(v, 0, &left)
	if left < 0 {
		d.feed.warn("the extensions of an entry or feed are more than %d elements, or %d in each other; what passes that was left out", maxExtensions, maxExtensionDepth)
	}
	return slices.DeleteFunc(list, func(e Extension) bool { return e.Namespace == "" || e.Name == "" })
}

func extensionList(v jsonValue, depth int, left *int) []Extension {
	if depth == maxExtensionDepth && len(v) > 0 {
		*left = -1
		return nil
	}
	var out []Extension
	for element := range v.each {
		if *left--; *left < 0 {
			break
		}
		o := element.object()
		e := Extension{
			Namespace: o.text("namespace"), Name: o.text("name"), Text: o.text("text"),
			Attributes: jsonAttributes(o.get("attributes")), Children: extensionList(o.get("children"), depth+1, left),
		}
		if e.Name == "" && e.Text != "" || validName(e.Name) {
			out = append(out, e)
		}
	}
	return out
}

func jsonAttributes(v jsonValue) []Attribute {
	var out []Attribute
	v.list(func(v jsonValue) {
		if a := v.object(); validName(a.text("name")) {
			out = addAttribute(out, Attribute{Namespace: a.text("namespace"), Name: a.text("name"), Value: a.text("value")})
		}
	})
	return out
}
