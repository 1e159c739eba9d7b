package feedconv

import (
	"cmp"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/rawjson"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// isCollection reports whether a type is a collection of ActivityStreams 2.0.
func isCollection(types rawjson.Value) bool {
	n := 0
	for t := range types.Each {
		s := t.Scalar()
		switch s[strings.LastIndexAny(s, "#/:")+1:] { // without its namespace
		case "Collection", "OrderedCollection", "CollectionPage", "OrderedCollectionPage":
			return true
		}
		if n++; n == 8 {
			break
		}
	}
	return false
}

// isActivity reports whether items are those of ActivityStreams 1.0, which have verbs.
func isActivity(items rawjson.Value) bool {
	n := 0
	for v := range items.Each {
		item := v.Object()
		if item.Get("verb", "objectType") != nil || item.Get("object").IsObject() {
			return items.IsArray()
		}
		if n++; n == 8 {
			break
		}
	}
	return false
}

// activityStreams maps a collection: 2.0, or 1.0, whose names differ.
func (d *jsonDoc) activityStreams(top rawjson.Object) {
	f := d.feed
	f.Format = ActivityStreams
	f.ID = top.Text("id", "@id")
	f.Title = titleText(natural(top, "name", "displayName", "title"))
	f.Description = PlainText(natural(top, "summary"), markup.TypeHTML)
	f.Authors = d.actors(top.Get("attributedTo", "actor", "author"))
	f.Updated, _ = firstDate([]string{top.Text("updated")})
	f.PubDate, _ = firstDate([]string{top.Text("published")})
	f.Link = d.pageURL(top.Get("url"))
	f.link(Link{Rel: "next", URL: d.pageURL(top.Get("next"))})
	items := top.Get("first").Object().Get("orderedItems", "items")
	if items == nil {
		items = top.Get("orderedItems", "items")
	}
	for item := range items.Each {
		if item.IsObject() && !d.activity(item.Object()) {
			break
		}
	}
}

// natural returns a text that may be in several languages: the member "name", or the first of a
// "nameMap".
func natural(o rawjson.Object, names ...string) string {
	if s := o.Text(names...); s != "" {
		return s
	}
	for _, name := range names {
		for _, s := range o.Get(name + "Map").Fields {
			if s.Scalar() != "" {
				return s.Scalar()
			}
		}
	}
	return ""
}

// activity maps an activity, or an object that stands in a collection without
// one. The entry is the object that is created or announced; the activity adds what
// the object does not say.
func (d *jsonDoc) activity(a rawjson.Object) bool {
	var x draft
	e := &x.entry
	object := firstElement(a.Get("object"))
	wraps := object.IsObject() || object.IsString()
	if object.IsString() { // a reference: what it leads to is not here
		e.Link = d.url(object.Str())
	}
	if object.IsObject() {
		d.object(&x, object.Object(), false)
	}
	d.object(&x, a, wraps)
	e.GUID = cmp.Or(a.Text("id", "@id"), e.GUID)
	if e.Link == "" && markup.IsWebURL(e.GUID) && !wraps {
		e.Link = e.GUID
	}
	return d.add(&x)
}

// object adds the fields of an activity or its object. The name ("Ann posted a note") and the link
// of the activity are used only if its object has none.
func (d *jsonDoc) object(x *draft, o rawjson.Object, isActivity bool) {
	e := &x.entry
	e.GUID = cmp.Or(e.GUID, o.Text("id", "@id"))
	e.Link = cmp.Or(e.Link, d.pageURL(o.Get("url")))
	if s := natural(o, "name", "displayName", "title"); s != "" {
		x.titles = append(x.titles, text{s, markup.TypeHTML})
	}
	if s := natural(o, "content"); s != "" {
		content := text{s, markup.TypeHTML}
		if t := o.Text("mediaType"); t != "" {
			content.mime = textfile.BaseType(t)
		}
		x.contents = append(x.contents, content)
	}
	if s := natural(o, "summary"); s != "" && !(isActivity && len(x.contents) > 0) {
		x.summaries = append(x.summaries, text{s, markup.TypeHTML})
	}
	x.published = append(x.published, o.Text("published", "postedTime"))
	x.updated = append(x.updated, o.Text("updated"))
	if len(e.Authors) == 0 {
		e.Authors = d.actors(o.Get("attributedTo", "author", "actor"))
	}
	o.Get("tag", "tags").List(maxList, func(tag rawjson.Value) {
		if name := natural(tag.Object(), "name", "displayName") + tag.Scalar(); !strings.HasPrefix(name, "@") {
			e.Categories = append(e.Categories, strings.TrimPrefix(name, "#"))
		}
	})
	o.Get("attachment", "attachments").List(maxList, func(at rawjson.Value) { d.attachment(e, at) })
	e.Image = cmp.Or(e.Image, d.linkURL(o.Get("image", "icon")))
	e.Comments = cmp.Or(e.Comments, d.pageURL(o.Get("replies")))
}

func (d *jsonDoc) attachment(e *Entry, v rawjson.Value) {
	at := v.Object()
	link := firstElement(at.Get("url", "href")).Object()
	kind := cmp.Or(at.Text("mediaType"), link.Text("mediaType", "type"))
	href := d.linkURL(v)
	if href == "" {
		return
	}
	e.Enclosures = append(e.Enclosures, enclosure(href, kind, at.Text("size", "length")))
	if e.Image == "" && strings.HasPrefix(kind, "image/") {
		e.Image = href
	}
}

// linkURL returns the URL of something that is a string, a Link with "href", or
// an object with "url".
func (d *jsonDoc) linkURL(v rawjson.Value) string {
	for range 4 {
		v = firstElement(v)
		if !v.IsObject() {
			return d.url(v.Scalar())
		}
		v = v.Object().Get("href", "url")
	}
	return ""
}

// pageURL is linkURL that prefers, among several links, one to a page.
func (d *jsonDoc) pageURL(v rawjson.Value) string {
	for l := range v.Each {
		if markup.IsMarkup(l.Text("mediaType")) {
			if s := d.linkURL(l); s != "" {
				return s
			}
		}
	}
	if first := firstElement(v).Object(); first.Get("href", "url") == nil && first.Get("id", "@id") != nil {
		return d.url(first.Text("id", "@id"))
	}
	return d.linkURL(v)
}

// actors reads the actors: an object, a URL, or several.
func (d *jsonDoc) actors(v rawjson.Value) []Person {
	return people(v, func(a rawjson.Object) Person {
		return Person{
			Name: cmp.Or(natural(a, "name", "displayName"), a.Text("preferredUsername")),
			URL:  cmp.Or(d.pageURL(a.Get("url")), d.url(a.Text("id", "@id"))),
		}
	})
}
