package feedconv

import (
	"cmp"
	"slices"

	"github.com/lektordir/lektor/feedconv/internal/markup"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// atomFeed maps Atom 0.3 and 1.0.
func atomFeed(doc *tidy.Document, opts Options) *Feed {
	n := doc.Feed
	f := &Feed{
		Format:      Atom10,
		ID:          n.Child("id").Value(),
		Title:       atomText(n.Child("title")).plain(),
		Description: atomText(n.Child("subtitle", "tagline")).plain(),
		Language:    n.AttrNS(vocab.XML, "lang"),
		Copyright:   atomText(n.Child("rights", "copyright")).plain(),
		Image:       cmp.Or(n.Child("logo").Value(), n.Child("icon").Value()),
		Authors:     atomPersons(n, "author"),
		Categories:  namesOf(atomCategories(n)),
		Links:       xmlLinks(n.All(vocab.None, "link")),
	}
	if doc.Atom03 {
		f.Format = Atom03
	}
	if g := n.Child("generator"); g != nil {
		f.Generator = Generator{
			Name: oneLine(g.Text), URL: markup.Link(cmp.Or(g.Attr("uri"), g.Attr("url"))), Version: oneLine(g.Attr("version")),
		}
	}
	f.Link = alternate(f.Links)
	feedModules(f, n)
	f.Updated, _ = firstDate([]string{n.Child("updated", "modified").Value(), value(n.All(vocab.DCTerms, "modified")), value(n.All(vocab.DC, "date"))})
	f.Published, _ = firstDate([]string{value(n.All(vocab.DCTerms, "issued"))})

	f.addAll(doc, opts, atomEntry)
	return f
}

// addAll adds the entries of a document.
func (f *Feed) addAll(doc *tidy.Document, opts Options, read func(*tidy.Document, *tidy.Node) *draft) {
	f.Entries = make([]Entry, 0, len(doc.Entries))
	for i, n := range doc.Entries {
		f.add(read(doc, n), opts.reading)
		doc.Entries[i] = nil // in big documents the tree takes as much as the feed
	}
}

func atomEntry(doc *tidy.Document, n *tidy.Node) *draft {
	d := newDraft(doc, n)
	d.titles = []text{atomText(n.Child("title"))}
	d.summaries = []text{atomText(n.Child("summary"))}
	d.published = []string{n.Child("published", "issued").Value()}
	d.updated = []string{n.Child("updated", "modified").Value()}
	e := &d.entry
	links := xmlLinks(n.All(vocab.None, "link"))
	e.GUID = n.Child("id").Value()
	e.Link = alternate(links)
	e.Authors = atomPersons(n, "author")
	e.Contributors = atomPersons(n, "contributor")
	if src := n.Child("source"); src != nil {
		e.Source = atomSource(src)
		if len(e.Authors) == 0 {
			e.Authors = slices.Clone(e.Source.Authors) // RFC 4287, section 4.2.1
		}
	}
	e.categorize(atomCategories(n)...)
	e.Enclosures = linkEnclosures(n.All(vocab.None, "link"))
	for _, l := range links {
		if t := markup.MediaType(l.Type); l.Rel == "replies" && e.Comments == "" && (t == "" || t == markup.TypeHTML || t == markup.TypeXHTML) {
			e.Comments = l.Href
		}
	}
	e.Links = otherLinks(links)
	rights := atomText(n.Child("rights", "copyright"))
	e.Rights = PlainText(rights.value, rights.mime)
	if c := n.Child("content"); c != nil {
		d.contents = append(d.contents, atomText(c))
		d.outOfLine(c)
	}
	d.modules(n)
	return d
}

// atomSource reads the feed that an entry comes from.
func atomSource(n *tidy.Node) *Source {
	links := xmlLinks(n.All(vocab.None, "link"))
	src := &Source{
		ID: n.Child("id").Value(), Title: n.Child("title").Value(), Link: alternate(links),
		Image: cmp.Or(n.Child("logo").Value(), n.Child("icon").Value()), Authors: atomPersons(n, "author"),
		Description: atomText(n.Child("subtitle", "tagline")).plain(), Copyright: atomText(n.Child("rights", "copyright")).plain(),
	}
	if i := slices.IndexFunc(links, func(l Link) bool { return l.Rel == "self" && l.Href != "" }); i >= 0 {
		src.URL = links[i].Href
	}
	src.Updated, _ = firstDate([]string{n.Child("updated", "modified").Value()})
	return src
}

// outOfLine reads content that is elsewhere (RFC 4287, section 4.1.3.2).
func (d *draft) outOfLine(n *tidy.Node) {
	src := n.Attr("src")
	if src == "" {
		return
	}
	e := &d.entry
	if t := markup.MediaType(n.Attr("type")); e.Link == "" && (t == "" || markup.IsMarkup(t)) {
		e.Link = src
		return
	}
	e.Enclosures = append(e.Enclosures, enclosure(src, n.Attr("type"), ""))
}

// otherLinks returns the links of an entry that are in no other field, and not for
// programs that edit it.
func otherLinks(links []Link) []Link {
	return slices.DeleteFunc(slices.Clone(links), func(l Link) bool {
		switch l.Rel {
		case "alternate", "enclosure", "replies", "self", "edit", "edit-media", "hub":
			return true
		}
		return false
	})
}

func atomPersons(n *tidy.Node, name string) []Person {
	var out []Person
	for _, c := range n.All(vocab.None, name) {
		p := Person{Name: c.Child("name").Value(), Email: c.Child("email").Value(), URL: c.Child("uri", "url", "homepage").Value()}
		if several := parsePersons(p.Name, false); len(several) > 1 && p.Email == "" && p.URL == "" {
			out = append(out, several...)
		} else {
			out = append(out, tidyPerson(p))
		}
	}
	return out
}

// atomCategories returns the categories by term; a term that is a URL is for programs,
// and its label is for people.
func atomCategories(n *tidy.Node) []Category {
	var out []Category
	for _, c := range n.All(vocab.None, "category") {
		term, label, scheme := c.Attr("term"), c.Attr("label"), c.Attr("scheme")
		if label != "" && (term == "" || markup.IsWebURL(term)) {
			out = append(out, Category{Name: label, Scheme: scheme, Term: term})
		} else {
			out = append(out, Category{Name: term, Scheme: scheme, Label: label})
		}
	}
	return out
}

func namesOf(list []Category) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Name)
	}
	return out
}

// categorize adds categories to those of an entry.
func (e *Entry) categorize(list ...Category) {
	e.Categories = append(e.Categories, namesOf(list)...)
	e.Terms = append(e.Terms, list...)
}
