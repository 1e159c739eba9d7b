package feedconv

import (
	"cmp"
	"slices"

	"github.com/mmcdole/gofeed/atom"
)

// atomFeed maps Atom 0.3 and 1.0.
func atomFeed(a *atom.Feed, doc *tidied, opts Options) *Feed {
	x, kept := a.Extensions, doc.kept.feed
	f := &Feed{
		Format:      Atom10,
		ID:          a.ID,
		Title:       text{a.Title, kept.textType("title")}.plain(),
		Description: text{a.Subtitle, kept.textType("subtitle", "tagline")}.plain(),
		Language:    kept.notes["lang"],
		Copyright:   text{a.Rights, kept.textType("rights", "copyright")}.plain(),
		Image:       cmp.Or(a.Logo, a.Icon),
		Authors:     atomPersons(a.Authors),
		Categories:  namesOf(atomCategories(a.Categories)),
		Links:       plainLinks(a.Links),
	}
	if doc.atom03 {
		f.Format = Atom03
	}
	if a.Generator != nil {
		f.Generator = Generator{
			Name: titleText(a.Generator.Value, false), URL: link(a.Generator.URI), Version: titleText(a.Generator.Version, false),
		}
	}
	f.Link = alternate(f.Links)
	feedModules(f, x)
	terms, dc := x["dcterms"], x["dc"]
	f.Updated, _ = firstDate([]string{a.Updated, value(terms, "modified"), value(dc, "date")})
	f.Published, _ = firstDate([]string{value(terms, "issued")})

	addAll(f, a.Entries, opts, func(e *atom.Entry, number int) *draft { return atomEntry(e, doc, number) })
	return f
}

// addAll adds the entries of a document, as many as there may be.
func addAll[E any](f *Feed, entries []*E, opts Options, read func(e *E, number int) *draft) {
	if limit := opts.maxEntries(); len(entries) > limit {
		entries = entries[:limit]
		leftOut(f, limit)
	}
	f.Entries = make([]Entry, 0, len(entries))
	for i, e := range entries {
		f.add(read(e, i), opts.reading)
		entries[i] = nil // big documents: gofeed's copy may go
	}
}

func atomEntry(a *atom.Entry, doc *tidied, number int) *draft {
	x := a.Extensions
	kept := doc.kept.of(number)
	d := &draft{
		entry:     kept.entry(),
		titles:    []text{{a.Title, kept.textType("title")}},
		summaries: []text{{doc.text(a.Summary), kept.textType("summary")}},
		published: []string{a.Published},
		updated:   []string{a.Updated},
	}
	e := &d.entry
	links := plainLinks(a.Links)
	e.GUID = a.ID
	e.Link = alternate(links)
	e.Authors = atomPersons(a.Authors)
	if len(e.Authors) == 0 && a.Source != nil {
		e.Authors = atomPersons(a.Source.Authors) // RFC 4287, section 4.2.1
	}
	e.Contributors = atomPersons(a.Contributors)
	if src := a.Source; src != nil {
		links := plainLinks(src.Links)
		e.Source = &Source{
			ID: src.ID, Title: src.Title, Link: alternate(links), Image: cmp.Or(src.Logo, src.Icon), Authors: atomPersons(src.Authors),
			Description: text{src.Subtitle, kept.textType("source-subtitle", "source-tagline")}.plain(),
			Copyright:   text{src.Rights, kept.textType("source-rights", "source-copyright")}.plain(),
		}
		for _, l := range links {
			if l.Rel == "self" && e.Source.URL == "" {
				e.Source.URL = l.Href
			}
		}
		e.Source.Updated, _ = firstDate([]string{src.Updated})
	}
	e.categorize(atomCategories(a.Categories)...)
	for i, l := range links {
		switch l.Rel {
		case "enclosure":
			e.Enclosures = append(e.Enclosures, enclosure(l.Href, l.Type, a.Links[i].Length))
		case "replies":
			if t := mimeType(l.Type); e.Comments == "" && (t == "" || t == typeHTML || t == typeXHTML) {
				e.Comments = l.Href
			}
		}
	}
	e.Links = otherLinks(links)
	e.Rights = PlainText(a.Rights, kept.textType("rights", "copyright"))
	if c := a.Content; c != nil {
		d.contents = append(d.contents, text{doc.text(c.Value), atomType(c.Type)})
		d.outOfLine(c)
	}
	d.modules(x)
	return d
}

// outOfLine reads content that is elsewhere (RFC 4287, section 4.1.3.2).
func (d *draft) outOfLine(c *atom.Content) {
	if c.Src == "" {
		return
	}
	e := &d.entry
	if t := mimeType(c.Type); e.Link == "" && (t == "" || isMarkup(t)) {
		e.Link = c.Src
		return
	}
	e.Enclosures = append(e.Enclosures, enclosure(c.Src, c.Type, ""))
}

func plainLinks(list []*atom.Link) []Link {
	out := make([]Link, 0, len(list))
	for _, l := range list {
		out = append(out, Link{
			Rel: linkRel(l.Rel), Href: cleanLine(l.Href), Type: cleanLine(l.Type),
			Title: titleText(l.Title, false),
		})
	}
	return out
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

// atomCategories returns the categories by term; a term that is a URL is for programs,
// and its label is for people.
func atomCategories(list []*atom.Category) []Category {
	var out []Category
	for _, c := range list {
		if c.Label != "" && (c.Term == "" || isWebURL(c.Term)) {
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
