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
	top, _, complete := jsonAt(b, 0)
	if !top.isObject() {
		return nil, notJSONFeed(b)
	}
	d := &jsonDoc{feed: &Feed{}, base: documentBase(opts), limit: opts.maxEntries(), max: opts.maxEntries(), growth: len(b) + 64<<10, reading: opts.reading}
	var rss, items, version, kind jsonValue
	top.fields(func(name string, v jsonValue) bool { // in one pass, since each takes a whole document
		switch name {
		case "rss":
			rss = v
		case "items":
			items = v
		case "version":
			version = v
		case "type", "@type":
			kind = v
		}
		return true
	})
	switch {
	case rss.isObject():
		d.rssInJSON(rss)
	case strings.Contains(version.str(), "jsonfeed.org"):
		d.jsonFeed(top)
	case isCollection(kind), isActivity(items):
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
func (d *jsonDoc) jsonFeed(top jsonValue) {
	f := d.feed
	f.Format = JSONFeed
	var items jsonValue
	var logo, icon string
	top.fields(func(name string, v jsonValue) bool {
		switch name {
		case "title":
			f.Title = titleText(v.scalar(), false)
		case "description":
			f.Description = PlainText(v.scalar(), typePlain)
		case "home_page_url":
			f.Link = d.url(v.scalar())
		case "feed_url":
			f.Links = append(f.Links, Link{Rel: "self", Href: d.url(v.scalar()), Type: "application/feed+json"})
		case "next_url":
			f.Links = append(f.Links, Link{Rel: "next", Href: d.url(v.scalar())})
		case "icon":
			icon = d.url(v.scalar())
		case "favicon":
			logo = d.url(v.scalar())
		case "language":
			f.Language = v.scalar()
		case "expired":
			f.Expired = v.isTrue()
		case "author", "authors":
			f.Authors = append(f.Authors, d.persons(v)...)
		case "hubs":
			v.list(d.hub)
		case "_extensions":
			f.Extensions = d.extensions(v)
		case "_attributes":
			f.Attributes = jsonAttributes(v)
		case "items":
			items = v
		}
		return true
	})
	f.Image = cmp.Or(icon, logo)
	f.Links = slices.DeleteFunc(f.Links, func(l Link) bool { return l.Href == "" }) // whose URL was no string
	items.each(func(item jsonValue) bool {
		return !item.isObject() || d.jsonFeedItem(item)
	})
}

// hub reads one of a JSON Feed's hubs.
func (d *jsonDoc) hub(v jsonValue) {
	href := d.url(v.get("url").scalar())
	switch kind := strings.ToLower(v.get("type").scalar()); {
	case href == "":
	case strings.Contains(kind, "rsscloud"):
		d.feed.Clouds = append(d.feed.Clouds, cloudOfURL(href))
	default:
		d.feed.Links = append(d.feed.Links, Link{Rel: "hub", Href: href})
	}
}

// persons reads one author or several: objects, or names.
func (d *jsonDoc) persons(v jsonValue) []Person {
	return people(v, func(a jsonValue) Person {
		return Person{Name: a.get("name", "displayName", "preferredUsername").scalar(), Email: a.get("email", "_email").scalar(), URL: d.url(a.get("url", "uri").scalar())}
	})
}

// people reads one person or several: names, or objects by read.
func people(v jsonValue, read func(object jsonValue) Person) []Person {
	var out []Person
	v.list(func(a jsonValue) {
		if a.isObject() {
			out = append(out, tidyPerson(read(a)))
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

func (d *jsonDoc) jsonFeedItem(item jsonValue) bool {
	var x draft
	e := &x.entry
	var external, image, banner string
	var plain, markup text
	item.fields(func(name string, v jsonValue) bool {
		switch name {
		case "id":
			e.GUID = v.scalar()
		case "url":
			e.Link = d.url(v.scalar())
		case "external_url":
			external = d.url(v.scalar())
		case "title":
			x.titles = append(x.titles, text{v.scalar(), typePlain})
		case "content_html":
			markup = d.html(v.scalar())
		case "content_text":
			plain = text{v.scalar(), typePlain}
		case "summary":
			x.summaries = append(x.summaries, text{v.scalar(), typePlain})
		case "image":
			image = d.url(v.scalar())
		case "banner_image":
			banner = d.url(v.scalar())
		case "date_published":
			x.published = append(x.published, v.scalar())
		case "date_modified":
			x.updated = append(x.updated, v.scalar())
		case "author", "authors":
			e.Authors = append(e.Authors, d.persons(v)...)
		case "tags":
			e.Categories = append(e.Categories, jsonStrings(v)...)
		case "language":
			e.Language = v.scalar()
		case "_links":
			v.list(func(l jsonValue) {
				e.Links = append(e.Links, Link{
					Rel: linkRel(l.get("rel").scalar()), Href: d.url(l.get("url").scalar()),
					Type: cleanLine(l.get("mime_type").scalar()), Title: titleText(l.get("title").scalar(), false),
				})
			})
			e.Links = otherLinks(e.Links)
		case "_categories":
			v.list(func(c jsonValue) {
				e.Terms = append(e.Terms, Category{
					Name: c.get("name").scalar(), Scheme: c.get("scheme").scalar(), Label: c.get("label").scalar(), Term: c.get("term").scalar(),
				})
			})
		case "_rights":
			e.Rights = PlainText(v.scalar(), typePlain)
		case "_comments":
			e.Comments = d.url(cmp.Or(v.get("url").scalar(), v.scalar()))
		case "_contributors":
			e.Contributors = d.persons(v)
		case "_podcast":
			e.Episode, e.Season = number(v.get("episode").scalar()), number(v.get("season").scalar())
			e.Duration = duration(v.get("duration").scalar())
		case "_source":
			e.Source = &Source{
				ID: v.get("id").scalar(), Title: v.get("title").scalar(), Link: d.url(v.get("home_page_url").scalar()), URL: d.url(v.get("feed_url").scalar()),
				Description: titleText(v.get("description").scalar(), false), Image: d.url(v.get("icon").scalar()),
				Authors: d.persons(v.get("authors")), Copyright: titleText(v.get("rights").scalar(), false),
			}
			e.Source.Updated, _ = firstDate([]string{v.get("date_modified").scalar()})
		case "_extensions":
			e.Extensions = d.extensions(v)
		case "_attributes":
			e.Attributes = jsonAttributes(v)
		case "attachments":
			v.list(func(a jsonValue) {
				e.Enclosures = append(e.Enclosures, enclosure(d.url(a.get("url").scalar()),
					a.get("mime_type").scalar(), a.get("size_in_bytes").scalar()))
				if e.Duration == 0 {
					e.Duration = duration(a.get("duration_in_seconds").scalar())
				}
			})
		}
		return true
	})
	x.contents = []text{markup, plain}
	e.Link = firstLink(e.Link, external)
	e.Image = cmp.Or(image, banner)
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
	v.each(func(element jsonValue) bool {
		if *left--; *left < 0 {
			return false
		}
		var e Extension
		element.fields(func(name string, v jsonValue) bool {
			switch name {
			case "namespace":
				e.Namespace = v.scalar()
			case "name":
				e.Name = v.scalar()
			case "text":
				e.Text = v.scalar()
			case "attributes":
				e.Attributes = jsonAttributes(v)
			case "children":
				e.Children = extensionList(v, depth+1, left)
			}
			return true
		})
		if e.Name == "" && e.Text != "" || validName(e.Name) {
			out = append(out, e)
		}
		return true
	})
	return out
}

func jsonAttributes(v jsonValue) []Attribute {
	var out []Attribute
	v.list(func(a jsonValue) {
		if name := a.get("name").scalar(); validName(name) {
			out = addAttribute(out, Attribute{Namespace: a.get("namespace").scalar(), Name: name, Value: a.get("value").scalar()})
		}
	})
	return out
}
