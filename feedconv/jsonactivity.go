package feedconv

import (
	"cmp"
	"strings"
)

// isCollection tells the types of the collections of ActivityStreams 2.0.
func isCollection(types jsonValue) bool {
	found := false
	n := 0
	types.each(func(t jsonValue) bool {
		s := t.scalar()
		switch s[strings.LastIndexAny(s, "#/:")+1:] { // without its namespace
		case "Collection", "OrderedCollection", "CollectionPage", "OrderedCollectionPage":
			found = true
		}
		n++
		return !found && n < 8
	})
	return found
}

// isActivity tells the items of ActivityStreams 1.0, which have verbs.
func isActivity(items jsonValue) bool {
	found := false
	n := 0
	items.each(func(item jsonValue) bool {
		found = len(item.get("verb")) > 0 || len(item.get("objectType")) > 0 || item.get("object").isObject()
		n++
		return !found && n < 8
	})
	return found && items.isArray()
}

// activityStreams maps a collection: 2.0, or 1.0, whose names differ.
func (d *jsonDoc) activityStreams(top jsonValue) {
	f := d.feed
	f.Format = ActivityStreams
	f.ID = top.get("id", "@id").scalar()
	f.Title = titleText(natural(top, "name", "displayName", "title"), true)
	f.Description = PlainText(natural(top, "summary"), typeHTML)
	f.Authors = d.actors(top.get("attributedTo", "actor", "author"))
	f.Updated, _ = firstDate([]string{top.get("updated").scalar()})
	f.Published, _ = firstDate([]string{top.get("published").scalar()})
	f.Link = d.pageURL(top.get("url"))
	if next := d.pageURL(top.get("next")); next != "" {
		f.Links = append(f.Links, Link{Rel: "next", Href: next})
	}
	page := top
	if first := top.get("first"); first.isObject() {
		page = first
	}
	items := page.get("orderedItems", "items")
	if items == nil {
		items = top.get("orderedItems", "items")
	}
	items.each(func(item jsonValue) bool {
		return !item.isObject() || d.activity(item)
	})
}

// natural gives a text that may come in several languages: "name", or a
// "nameMap" of them, the first of which is taken.
func natural(v jsonValue, names ...string) string {
	if s := v.get(names...).scalar(); s != "" {
		return s
	}
	first := ""
	for _, name := range names {
		v.get(name + "Map").fields(func(_ string, s jsonValue) bool {
			first = s.scalar()
			return first == ""
		})
		if first != "" {
			break
		}
	}
	return first
}

// activity maps an activity, or an object that stands in a collection without
// one. What is created or announced gives the entry; the activity adds what
// the object does not say.
func (d *jsonDoc) activity(a jsonValue) bool {
	var x draft
	e := &x.entry
	object := firstElement(a.get("object"))
	wraps := object.isObject() || object.isString()
	if object.isString() { // a reference: what it leads to is not here
		e.Link = d.url(object.str())
	}
	layers := []jsonValue{a}
	if object.isObject() {
		layers = []jsonValue{object, a}
	}
	for i, v := range layers {
		d.object(&x, v, i == len(layers)-1 && wraps)
	}
	if id := a.get("id", "@id").scalar(); id != "" {
		e.GUID = id
	}
	if e.Link == "" && isWebURL(e.GUID) && !wraps {
		e.Link = e.GUID
	}
	return d.add(&x)
}

// object adds what one layer says. An activity's own name ("Ann posted a
// note") and link are of use only where its object has none.
func (d *jsonDoc) object(x *draft, v jsonValue, isActivity bool) {
	e := &x.entry
	e.GUID = cmp.Or(e.GUID, v.get("id", "@id").scalar())
	e.Link = cmp.Or(e.Link, d.pageURL(v.get("url")))
	if s := natural(v, "name", "displayName", "title"); s != "" {
		x.titles = append(x.titles, text{s, typeHTML})
	}
	if s := natural(v, "content"); s != "" {
		content := d.html(s)
		if t := v.get("mediaType").scalar(); t != "" {
			content.mime = mimeType(t)
		}
		x.contents = append(x.contents, content)
	}
	if s := natural(v, "summary"); s != "" && !(isActivity && len(x.contents) > 0) {
		x.summaries = append(x.summaries, d.html(s))
	}
	x.published = append(x.published, v.get("published", "postedTime").scalar())
	x.updated = append(x.updated, v.get("updated").scalar())
	if len(e.Authors) == 0 {
		e.Authors = d.actors(v.get("attributedTo", "author", "actor"))
	}
	v.get("tag", "tags").list(func(tag jsonValue) {
		if name := natural(tag, "name", "displayName") + tag.scalar(); !strings.HasPrefix(name, "@") {
			e.Categories = append(e.Categories, strings.TrimPrefix(name, "#"))
		}
	})
	v.get("attachment", "attachments").list(func(at jsonValue) { d.attachment(e, at) })
	e.Image = cmp.Or(e.Image, d.linkURL(v.get("image", "icon")))
	e.Comments = cmp.Or(e.Comments, d.pageURL(v.get("replies")))
}

func (d *jsonDoc) attachment(e *Entry, at jsonValue) {
	link := firstElement(at.get("url", "href"))
	kind := cmp.Or(at.get("mediaType").scalar(), link.get("mediaType", "type").scalar())
	href := d.linkURL(at)
	if href == "" {
		return
	}
	e.Enclosures = append(e.Enclosures, enclosure(href, kind, at.get("size", "length").scalar()))
	if e.Image == "" && strings.HasPrefix(kind, "image/") {
		e.Image = href
	}
}

// linkURL gives the URL of something that is a string, a Link with "href", or
// an object with "url".
func (d *jsonDoc) linkURL(v jsonValue) string {
	for range 4 {
		v = firstElement(v)
		if !v.isObject() {
			return d.url(v.scalar())
		}
		v = v.get("href", "url")
	}
	return ""
}

// pageURL is linkURL that prefers, among several links, one to a page.
func (d *jsonDoc) pageURL(v jsonValue) string {
	best := ""
	v.each(func(l jsonValue) bool {
		if isMarkup(l.get("mediaType").scalar()) {
			best = d.linkURL(l)
		}
		return best == ""
	})
	if best == "" && firstElement(v).isObject() && len(firstElement(v).get("href", "url")) == 0 {
		return d.url(firstElement(v).get("id", "@id").scalar())
	}
	return cmp.Or(best, d.linkURL(v))
}

// actors reads who did it: an object, a URL, or several.
func (d *jsonDoc) actors(v jsonValue) []Person {
	return people(v, func(a jsonValue) Person {
		return Person{
			Name: cmp.Or(natural(a, "name", "displayName"), a.get("preferredUsername").scalar()),
			URL:  cmp.Or(d.pageURL(a.get("url")), d.url(a.get("id", "@id").scalar())),
		}
	})
}
