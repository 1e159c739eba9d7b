package feedconv

import (
	"cmp"
	"strings"

	"github.com/mmcdole/gofeed/rss"

	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
)

// rssFeed maps RSS of any version.
func rssFeed(r *rss.Feed, doc *tidy.Document, opts Options) *Feed {
	n := doc.Feed
	at, terms := module{n, vocab.Atom10}, module{n, vocab.DCTerms}
	f := &Feed{
		Format:      rssFormat(r.Version, doc.Root),
		ID:          cmp.Or(n.AttrNS(vocab.RDF, "about"), at.value("id")),
		Title:       titleText(r.Title),
		Description: text{r.Description, markup.TypeHTML}.plain(),
		Language:    cmp.Or(r.Language, n.AttrNS(vocab.XML, "lang")),
		Copyright:   titleText(r.Copyright),
		Generator:   Generator{Name: titleText(r.Generator)},
		Links:       links(at.all("link")),
		TTL:         ttl(r.TTL),
		SkipHours:   skipHours(r.SkipHours),
		SkipDays:    skipDays(r.SkipDays),
	}
	f.Link = markup.FirstLink(append(r.Links, alternate(f.Links))...)
	if r.Image != nil {
		f.Image = r.Image.URL
	}
	if r.ManagingEditor != "" {
		f.Authors = parsePersons(r.ManagingEditor, true)
	}
	for _, c := range r.Categories {
		f.Categories = append(f.Categories, titleText(c.Value))
	}
	if c := r.Cloud; c != nil {
		f.Clouds = append(f.Clouds, Cloud{
			Domain: c.Domain, Port: number(c.Port), Path: c.Path, RegisterProcedure: c.RegisterProcedure,
			Protocol: c.Protocol,
		})
	}
	feedModules(f, n)
	if len(f.Authors) == 0 && r.WebMaster != "" {
		f.Authors = parsePersons(r.WebMaster, true)
	}
	f.Image = cmp.Or(f.Image, at.value("logo"))
	if authors := atomPersons(at.all("author")); coverAll(authors, f.Authors) {
		f.Authors = authors
	}
	f.Updated, _ = firstDate([]string{n.Child("lastbuilddate").Value(), terms.value("modified"),
		module{n, vocab.DC}.value("date"), at.value("updated")})
	f.PubDate, _ = firstDate([]string{n.Child("pubdate").Value(), terms.value("issued"), at.value("published")})

	addAll(f, r.Items, doc, opts, rssEntry)
	return f
}

func rssFormat(version, root string) Format {
	switch {
	case root == "rdf" && version != "0.9":
		return RSS10
	case root != "rdf" && strings.HasPrefix(version, "2"):
		return RSS20
	}
	return RSS09
}

func rssEntry(r *rss.Item, doc *tidy.Document, n *tidy.Node) *draft {
	own := module{n, vocab.None}
	d := newDraft(doc, n)
	d.titles = []text{{r.Title, markup.TypeHTML}}
	d.published = []string{own.value("pubdate"), own.value("published"), own.value("date")}
	d.updated = []string{own.value("updated")}
	e := &d.entry
	e.Link = markup.FirstLink(append(r.Links, r.Custom["url"])...)
	e.Comments = r.Comments
	if r.GUID != nil {
		e.GUID = r.GUID.Value
	}
	e.GUID = cmp.Or(e.GUID, n.AttrNS(vocab.RDF, "about"))
	for _, a := range n.All(vocab.None, "author") { // gofeed keeps only one
		e.Authors = append(e.Authors, parsePersons(a.Text, true)...)
	}
	if r.Source != nil {
		e.Source = &Source{Title: titleText(r.Source.Title), URL: r.Source.URL}
	}
	for _, c := range r.Categories {
		e.categorize(Category{Name: titleText(c.Value), Scheme: c.Domain})
	}
	for _, enc := range r.Enclosures {
		e.Enclosures = append(e.Enclosures, enclosure(enc.URL, enc.Type, enc.Length))
	}
	if image := r.Custom["image"]; markup.IsWebURL(image) {
		e.Image = image
	}
	for _, s := range []string{module{n, vocab.Content}.value("encoded"), own.value("fullitem"),
		own.value("body"), module{n, vocab.XHTML}.value("body")} {
		d.contents = append(d.contents, text{s, markup.TypeHTML}.lines())
	}
	for _, s := range []string{own.value("description"), own.value("summary")} {
		d.summaries = append(d.summaries, text{s, markup.TypeHTML}.lines())
	}
	d.modules(n)
	if e.Link == "" && r.GUID != nil && !strings.EqualFold(strings.TrimSpace(r.GUID.IsPermalink), "false") {
		if u := cmp.Or(n.Child("guid").Attr("resolved"), r.GUID.Value); markup.IsWebURL(u) {
			e.Link = u
		}
	}
	d.tail = cloudItems(n)
	return d
}
