package feedconv

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/markup"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// rssFeed maps RSS of any version.
func rssFeed(doc *tidy.Document, opts Options) *Feed {
	n := doc.Feed
	child := func(name string) string { return n.Child(name).Value() }
	atom := func(name string) []*tidy.Node { return n.All(vocab.Atom10, name) }
	f := &Feed{
		Format:      rssFormat(doc),
		ID:          cmp.Or(n.AttrNS(vocab.RDF, "about"), value(atom("id"))),
		Title:       titleText(child("title")),
		Description: PlainText(child("description"), markup.TypeHTML),
		Language:    cmp.Or(child("language"), n.AttrNS(vocab.XML, "lang")),
		Copyright:   titleText(child("copyright")),
		Generator:   Generator{Name: titleText(child("generator"))},
		Links:       xmlLinks(atom("link")),
		TTL:         ttl(child("ttl")),
	}
	if hours := n.Child("skiphours"); hours != nil {
		f.SkipHours = skipHours(values(hours.Named("hour")))
	}
	if days := n.Child("skipdays"); days != nil {
		f.SkipDays = skipDays(values(days.Named("day")))
	}
	f.Link = markup.FirstLink(append(allTexts(n.All(vocab.None, "link")), alternate(f.Links))...)
	image := doc.Image
	if image == nil {
		image = n.Child("image")
	}
	f.Image = image.Child("url").Value()
	if s := cmp.Or(child("managingeditor"), child("webmaster")); s != "" {
		f.Authors = parsePersons(s, true)
	}
	for _, c := range n.All(vocab.None, "category") {
		f.Categories = append(f.Categories, titleText(c.Text))
	}
	if c := n.Child("cloud"); c != nil {
		f.Clouds = append(f.Clouds, Cloud{
			Domain: c.Attr("domain"), Port: number(c.Attr("port")), Path: c.Attr("path"),
			RegisterProcedure: c.Attr("registerprocedure"), Protocol: c.Attr("protocol"),
		})
	}
	feedModules(f, n)
	f.Image = cmp.Or(f.Image, value(atom("logo")))
	if authors := elementPersons(atom("author")); coverAll(authors, f.Authors) {
		f.Authors = authors
	}
	f.Updated, _ = firstDate([]string{child("lastbuilddate"), value(n.All(vocab.DCTerms, "modified")), value(n.All(vocab.DC, "date")), value(atom("updated"))})
	f.Published, _ = firstDate([]string{child("pubdate"), value(n.All(vocab.DCTerms, "issued")), value(atom("published"))})

	f.addAll(doc, opts, rssEntry)
	return f
}

func rssFormat(doc *tidy.Document) Format {
	switch {
	case doc.Root == "rdf" && doc.Version != "0.9":
		return RSS10
	case doc.Root != "rdf" && strings.HasPrefix(doc.Version, "2"):
		return RSS20
	}
	return RSS09
}

// allTexts returns the texts of all elements.
func allTexts(list []*tidy.Node) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.Text)
	}
	return out
}

func rssEntry(doc *tidy.Document, n *tidy.Node) *draft {
	child := func(name string) string { return n.Child(name).Value() }
	guid := n.Child("guid")
	d := newDraft(doc, n)
	d.titles = []text{{child("title"), markup.TypeHTML}}
	d.published = []string{child("pubdate"), child("published"), child("date")}
	d.updated = []string{child("updated")}
	e := &d.entry
	e.Link = markup.FirstLink(append(allTexts(n.All(vocab.None, "link")), child("url"))...)
	e.Comments = child("comments")
	e.GUID = cmp.Or(guid.Value(), n.AttrNS(vocab.RDF, "about"))
	e.Authors = parseAll(values(n.All(vocab.None, "author")))
	if src := n.Child("source"); src != nil {
		e.Source = &Source{Title: titleText(src.Text), URL: src.Attr("url")}
	}
	for _, c := range n.All(vocab.None, "category") {
		e.categorize(Category{Name: titleText(c.Text), Scheme: c.Attr("domain")})
	}
	for _, enc := range n.All(vocab.None, "enclosure") {
		e.Enclosures = append(e.Enclosures, enclosure(enc.Attr("url"), enc.Attr("type"), enc.Attr("length")))
	}
	if image := child("image"); markup.IsWebURL(image) {
		e.Image = image
	}
	contents := []string{child("fullitem"), child("body"), value(n.All(vocab.XHTML, "body"))}
	if encoded := allTexts(n.All(vocab.Content, "encoded")); len(encoded) > 0 {
		contents = slices.Insert(contents, 0, encoded[len(encoded)-1])
	}
	for _, s := range contents {
		d.contents = append(d.contents, text{s, markup.TypeHTML}.lines())
	}
	for _, s := range []string{child("description"), child("summary")} {
		d.summaries = append(d.summaries, text{s, markup.TypeHTML}.lines())
	}
	d.modules(n)
	if e.Link == "" && !strings.EqualFold(strings.TrimSpace(guid.Attr("ispermalink")), "false") {
		if u := cmp.Or(guid.Attr("resolved"), guid.Value()); markup.IsWebURL(u) {
			e.Link = u
		}
	}
	d.tail = cloudItems(n)
	return d
}
