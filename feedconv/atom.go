package feedconv

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mmcdole/gofeed/atom"

	"github.com/lektordir/lektor/feedconv/internal/markup"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
)

// atomFeed maps Atom 0.3 and 1.0.
func atomFeed(a *atom.Feed, doc *tidy.Document, opts Options) *Feed {
	x, n := a.Extensions, doc.Feed
	f := &Feed{
		Format:      Atom10,
		ID:          a.ID,
		Title:       atomText(a.Title, n.Child("title")).title(),
		Description: atomText(a.Subtitle, n.Child("subtitle", "tagline")).plain(),
		Language:    a.Language,
		Copyright:   atomText(a.Rights, n.Child("rights", "copyright")).title(),
		Image:       cmp.Or(a.Logo, a.Icon),
		Authors:     atomPersons(a.Authors),
		Categories:  namesOf(atomCategories(a.Categories)),
		Links:       atomLinks(a.Links),
	}
	if doc.Atom03 {
		f.Format = Atom03
	}
	if g := a.Generator; g != nil {
		f.Generator = Generator{Name: oneLine(g.Value), URL: markup.Link(g.URI), Version: oneLine(g.Version)}
	}
	f.Link = alternate(f.Links)
	feedModules(f, x)
	f.Updated, _ = firstDate([]string{a.Updated, value(x["dcterms"], "modified"), value(x["dc"], "date")})
	f.Published, _ = firstDate([]string{value(x["dcterms"], "issued")})

	addAll(f, a.Entries, doc, opts, atomEntry)
	return f
}

// addAll adds the entries of a document.
func addAll[E any](f *Feed, entries []*E, doc *tidy.Document, opts Options,
	read func(*E, *tidy.Document, *tidy.Node) *draft) {
	f.Entries = make([]Entry, 0, len(entries))
	base, growth := markup.DocumentBase(opts.URL, opts.ContentLocation), maxGrowth
	for i, e := range entries {
		f.add(read(e, doc, doc.Entries[i]), base, &growth)
		entries[i], doc.Entries[i] = nil, nil // in big documents each takes as much as the feed
	}
}

func atomEntry(a *atom.Entry, doc *tidy.Document, n *tidy.Node) *draft {
	d := newDraft(doc, n)
	d.titles = []text{atomText(a.Title, n.Child("title"))}
	d.summaries = []text{atomText(doc.Text(a.Summary), n.Child("summary"))}
	d.published = []string{strings.TrimSpace(n.Child("published", "issued").Value())}
	d.updated = []string{strings.TrimSpace(n.Child("updated", "modified").Value())}
	e := &d.entry
	links := atomLinks(a.Links)
	e.GUID = a.ID
	e.Link = alternate(links)
	e.Authors = atomPersons(a.Authors)
	e.Contributors = atomPersons(a.Contributors)
	if a.Source != nil {
		e.Source = atomSource(a.Source, n.Child("source"))
		if len(e.Authors) == 0 {
			e.Authors = slices.Clone(e.Source.Authors) // RFC 4287, section 4.2.1
		}
	}
	e.categorize(atomCategories(a.Categories)...)
	for i, l := range links {
		switch t := markup.MediaType(l.Type); {
		case l.Rel == "enclosure":
			e.Enclosures = append(e.Enclosures, enclosure(l.Href, l.Type, a.Links[i].Length))
		case l.Rel == "replies" && e.Comments == "" && (t == "" || t == markup.TypeHTML || t == markup.TypeXHTML):
			e.Comments = l.Href
		}
	}
	e.Links = otherLinks(links)
	e.Rights = atomText(a.Rights, n.Child("rights", "copyright")).plain()
	if c := a.Content; c != nil {
		d.contents = append(d.contents, text{doc.Text(c.Value), atomType(c.Type)})
		d.outOfLine(c)
	}
	for _, s := range []string{value(a.Extensions["content"], "encoded"), value(a.Extensions["xhtml"], "body")} {
		d.contents = append(d.contents, text{s, markup.TypeHTML}.lines())
	}
	d.modules(a.Extensions)
	return d
}

// atomSource returns the feed from which an entry was copied.
func atomSource(a *atom.Source, n *tidy.Node) *Source {
	links := atomLinks(a.Links)
	src := &Source{
		ID: a.ID, Title: atomText(a.Title, n.Child("title")).title(), Link: alternate(links),
		Image: cmp.Or(a.Logo, a.Icon), Authors: atomPersons(a.Authors),
		Description: atomText(a.Subtitle, n.Child("subtitle", "tagline")).plain(),
		Copyright:   atomText(a.Rights, n.Child("rights", "copyright")).title(),
	}
	if i := slices.IndexFunc(links, func(l Link) bool { return l.Rel == "self" && l.Href != "" }); i >= 0 {
		src.URL = links[i].Href
	}
	src.Updated, _ = firstDate([]string{a.Updated})
	return src
}

// atomText returns a text construct of Atom. n has its type, which gofeed drops.
func atomText(value string, n *tidy.Node) text { return text{value, atomType(n.Attr("type"))} }

// outOfLine reads content that is elsewhere (RFC 4287, section 4.1.3.2).
func (d *draft) outOfLine(c *atom.Content) {
	if c.Src == "" {
		return
	}
	e := &d.entry
	if t := markup.MediaType(c.Type); e.Link == "" && (t == "" || markup.IsMarkup(t)) {
		e.Link = c.Src
		return
	}
	e.Enclosures = append(e.Enclosures, enclosure(c.Src, c.Type, ""))
}

func atomLinks(list []*atom.Link) []Link {
	out := make([]Link, 0, len(list))
	for _, l := range list {
		out = append(out, newLink(l.Rel, l.Href, l.Type, l.Title))
	}
	return out
}

// otherLinks returns the links of an entry that are not in another field, except links for editing
// it.
func otherLinks(links []Link) []Link {
	return slices.DeleteFunc(slices.Clone(links), func(l Link) bool {
		switch l.Rel {
		case "alternate", "enclosure", "replies", "self", "edit", "edit-media", "hub":
			return true
		}
		return false
	})
}

func atomPersons(list []*atom.Person) []Person {
	var out []Person
	for _, p := range list {
		if several := parsePersons(p.Name, false); len(several) > 1 && p.Email == "" && p.URI == "" {
			out = append(out, several...)
		} else {
			out = append(out, tidyPerson(Person{Name: p.Name, Email: p.Email, URL: p.URI}))
		}
	}
	return out
}

// atomCategories returns the categories, named by their terms. If a term is empty or a URL, the
// label is the name.
func atomCategories(list []*atom.Category) []Category {
	var out []Category
	for _, c := range list {
		if c.Label != "" && (c.Term == "" || markup.IsWebURL(c.Term)) {
			out = append(out, Category{Name: c.Label, Scheme: c.Scheme, Term: c.Term})
		} else {
			out = append(out, Category{Name: c.Term, Scheme: c.Scheme, Label: c.Label})
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
