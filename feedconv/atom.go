package feedconv

import (
	"cmp"
	"slices"

	"github.com/mmcdole/gofeed/atom"

	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
)

// atomFeed maps Atom 0.3 and 1.0.
func atomFeed(a *atom.Feed, doc *tidy.Document, opts Options) *Feed {
	n := doc.Feed
	own := module{n, vocab.None}
	f := &Feed{
		Format:      Atom10,
		ID:          own.value("id"),
		Title:       atomText(a.Title, n.Child("title")).title(),
		Description: atomText(a.Subtitle, n.Child("subtitle", "tagline")).plain(),
		Language:    a.Language,
		Copyright:   atomText(a.Rights, n.Child("rights", "copyright")).title(),
		Image:       cmp.Or(own.value("logo"), own.value("icon")),
		Authors:     atomPersons(own.all("author")),
		Categories:  namesOf(atomCategories(own.all("category"))),
		Links:       links(own.all("link")),
	}
	if doc.Atom03 {
		f.Format = Atom03
	}
	if g := a.Generator; g != nil {
		f.Generator = Generator{Name: oneLine(g.Value), URL: markup.Link(n.Child("generator").Attr("uri")),
			Version: oneLine(g.Version)}
	}
	f.Link = alternate(f.Links)
	feedModules(f, n)
	terms := module{n, vocab.DCTerms}
	f.Updated, _ = firstDate([]string{own.value("updated"), own.value("modified"), terms.value("modified"),
		module{n, vocab.DC}.value("date")})
	f.PubDate, _ = firstDate([]string{terms.value("issued")})

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
	e := &d.entry
	d.atom(module{n, vocab.None})
	if a.Source != nil {
		e.Source = atomSource(a.Source, n.Child("source"))
		if len(e.Authors) == 0 {
			e.Authors = slices.Clone(e.Source.Authors) // RFC 4287, section 4.2.1
		}
	}
	e.Rights = atomText(a.Rights, n.Child("rights", "copyright")).plain()
	for _, s := range []string{module{n, vocab.Content}.value("encoded"), module{n, vocab.XHTML}.value("body")} {
		d.contents = append(d.contents, text{s, markup.TypeHTML}.lines())
	}
	d.modules(n)
	return d
}

// atomSource returns the feed from which an entry was copied.
func atomSource(a *atom.Source, n *tidy.Node) *Source {
	own := module{n, vocab.None}
	list := links(own.all("link"))
	src := &Source{
		ID: own.value("id"), Title: atomText(a.Title, n.Child("title")).title(), Link: alternate(list),
		Image: cmp.Or(own.value("logo"), own.value("icon")), Authors: atomPersons(own.all("author")),
		Description: atomText(a.Subtitle, n.Child("subtitle", "tagline")).plain(),
		Copyright:   atomText(a.Rights, n.Child("rights", "copyright")).title(),
	}
	if i := slices.IndexFunc(list, func(l Link) bool { return l.Rel == "self" && l.URL != "" }); i >= 0 {
		src.URL = list[i].URL
	}
	src.Updated, _ = firstDate([]string{own.value("updated"), own.value("modified")})
	return src
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
