package feedconv

import (
	"cmp"
	"strings"
)

// isCollection reports the types of the collections of ActivityStreams 2.0.
func isCollection(types jsonValue) bool {
	n := 0
	for t := range types.each {
		s := t.scalar()
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

// isActivity reports the items of ActivityStreams 1.0, which have verbs.
func isActivity(items jsonValue) bool {
	n := 0
	for v := range items.each {
		item := v.object()
		if item.get("verb", "objectType") != nil || item.get("object").isObject() {
			return items.isArray()
		}
		if n++; n == 8 {
			break
		}
	}
	return false
}

// activityStreams maps a collection: 2.0, or 1.0, whose names differ.
func (d *jsonDoc) activityStreams(top jsonObject) {
	f := d.feed
	f.Format = ActivityStreams
	f.ID = top.text("id", "@id")
	f.Title = titleText(natural(top, "name", "displayName", "title"), true)
	f.Description = PlainText(natural(top, "summary"), typeHTML)
	f.Authors = d.actors(top.get("attributedTo", "actor", "author"))
	f.Updated, _ = firstDate([]string{top.text("updated")})
	f.Published, _ = firstDate([]string{top.text("published")})
	f.Link = d.pageURL(top.get("url"))
	f.link(Link{Rel: "next", Href: d.pageURL(top.get("next"))})
	items := top.get("first").object().get("orderedItems", "items")
	if items == nil {
		items = top.get("orderedItems", "items")
	}
	for item := range items.each {
		if item.isObject() && !d.activity(item.object()) {
			break
		}
	}
}

// natural returns a text that may come in several languages: "name", or a
// "nameMap" of them, the first of which is taken.
func natural(o jsonObject, names ...string) string {
	if s := o.text(names...); s != "" {
		return s
	}
	for _, name := range names {
		for _, s := range o.get(name + "Map").fields {
			if s.scalar() != "" {
				return s.scalar()
			}
		}
	}
	return ""
}

// activity maps an activity, or an object that stands in a collection without
// one. What is created or announced gives the entry; the activity adds what
// the object does not say.
func (d *jsonDoc) activity(a jsonObject) bool {
	var x draft
	e := &x.entry
	object := firstElement(a.get("object"))
	wraps := object.isObject() || object.isString()
	if object.isString() { // a reference: what it leads to is not here
		e.Link = d.url(object.str())
	}
	if object.isObject() {
		d.object(&x, object.object(), false)
	}
	d.object(&x, a, wraps)
	e.GUID = cmp.Or(a.text("id", "@id"), e.GUID)
	if e.Link == "" && isWebURL(e.GUID) && !wraps {
		e.Link = e.GUID
	}
	return d.add(&x)
}

// object adds what one layer says. An activity's own name ("Ann posted a
// note") and link are of use only where its object has none.
func (d *jsonDoc) object(x *draft, o jsonObject, isActivity bool) {
	e := &x.entry
	e.GUID = cmp.Or(e.GUID, o.text("id", "@id"))
	e.Link = cmp.Or(e.Link, d.pageURL(o.get("url")))
	if s := natural(o, "name", "displayName", "title"); s != "" {
		x.titles = append(x.titles, text{s, typeHTML})
	}
	if s := natural(o, "content"); s != "" {
		content := d.html(s)
		if t := o.text("mediaType"); t != "" {
			content.mime = mimeType(t)
		}
		x.contents = append(x.contents, content)
	}
	if s := natural(o, "summary"); s != "" && !(isActivity && len(x.contents) > 0) {
		x.summaries = append(x.summaries, d.html(s))
	}
	x.published = append(x.published, o.text("published", "postedTime"))
	x.updated = append(x.updated, o.text("updated"))
	if len(e.Authors) == 0 {
		e.Authors = d.actors(o.get("attributedTo", "author", "actor"))
	}
	o.get("tag", "tags").list(func(tag jsonValue) {
		if name := natural(tag.object(), "name", "displayName") + tag.scalar(); !strings.HasPrefix(name, "@") {
			e.Categories = append(e.Categories, strings.TrimPrefix(name, "#"))
		}
	})
	o.get("attachment", "attachments").list(func(at jsonValue) { d.attachment(e, at) })
	e.Image = cmp.Or(e.Image, d.linkURL(o.get("image", "icon")))
	e.Comments = cmp.Or(e.Comments, d.pageURL(o.get("replies")))
}

func (d *jsonDoc) attachment(e *Entry, v jsonValue) {
	at := v.object()
	link := firstElement(at.get("url", "href")).object()
	kind := cmp.Or(at.text("mediaType"), link.text("mediaType", "type"))
	href := d.linkURL(v)
	if href == "" {
		return
	}
	e.Enclosures = append(e.Enclosures, enclosure(href, kind, at.text("size", "length")))
	if e.Image == "" && strings.HasPrefix(kind, "image/") {
		e.Image = href
	}
}

// linkURL returns the URL of something that is a string, a Link with "href", or
// an object with "url".
func (d *jsonDoc) linkURL(v jsonValue) string {
	for range 4 {
		v = firstElement(v)
		if !v.isObject() {
			return d.url(v.scalar())
		}
		v = v.object().get("href", "url")
	}
	return ""
}

// pageURL is linkURL that prefers, among several links, one to a page.
func (d *jsonDoc) pageURL(v jsonValue) string {
	for l := range v.each {
		if isMarkup(l.text("mediaType")) {
			if s := d.linkURL(l); s != "" {
				return s
			}
		}
	}
	if first := firstElement(v).object(); first.get("href", "url") == nil && first.get("id", "@id") != nil {
		return d.url(first.text("id", "@id"))
	}
	return d.linkURL(v)
}

// actors reads who did it: an object, a URL, or several.
func (d *jsonDoc) actors(v jsonValue) []Person {
	return people(v, func(a jsonObject) Person {
		return Person{
			Name: cmp.Or(natural(a, "name", "displayName"), a.text("preferredUsername")),
			URL:  cmp.Or(d.pageURL(a.get("url")), d.url(a.text("id", "@id"))),
		}
	})
}
