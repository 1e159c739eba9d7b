package feedconv

import (
	"cmp"
	"strings"

	"github.com/mmcdole/gofeed/rss"
)

// rssFeed maps RSS of any version.
func rssFeed(r *rss.Feed, doc *tidied, opts Options) *Feed {
	f := &Feed{
		Format:      rssFormat(r.Version, doc.root),
		Title:       titleText(r.Title, true),
		Description: PlainText(r.Description, typeHTML),
		Language:    cmp.Or(r.Language, doc.kept.feed.notes["lang"]),
		Copyright:   titleText(r.Copyright, true),
		Generator:   Generator{Name: titleText(r.Generator, true)},
		Links:       atomLinks(r.Extensions),
		TTL:         ttl(r.TTL),
		SkipHours:   skipHours(r.SkipHours),
		SkipDays:    skipDays(r.SkipDays),
	}
	f.ID = cmp.Or(doc.kept.feed.notes["about"], value(atomModule(r.Extensions), "id"))
	f.Link = firstLink(append(r.Links, alternate(f.Links))...)
	if r.Image != nil {
		f.Image = r.Image.URL
	}
	if s := cmp.Or(r.ManagingEditor, r.WebMaster); s != "" {
		f.Authors = parsePersons(s, true)
	}
	for _, c := range r.Categories {
		f.Categories = append(f.Categories, titleText(c.Value, true))
	}
	if c := r.Cloud; c != nil {
		f.Clouds = append(f.Clouds, Cloud{
			Domain: c.Domain, Port: number(c.Port), Path: c.Path,
			RegisterProcedure: c.RegisterProcedure, Protocol: c.Protocol,
		})
	}
	feedModules(f, r.Extensions)
	f.Image = cmp.Or(f.Image, value(atomModule(r.Extensions), "logo"))
	if authors := extensionPersons(atomModule(r.Extensions)["author"]); coverAll(authors, f.Authors) {
		f.Authors = authors
	}
	terms, dc, at := r.Extensions["dcterms"], r.Extensions["dc"], atomModule(r.Extensions)
	f.Updated, _ = firstDate([]string{r.LastBuildDate, value(terms, "modified"), value(dc, "date"), value(at, "updated")})
	f.Published, _ = firstDate([]string{r.PubDate, value(terms, "issued"), value(at, "published")})

	addAll(f, r.Items, opts, func(item *rss.Item, number int) *draft { return rssEntry(item, doc, number) })
	return f
}

func rssFormat(version, root string) Format {
	version = strings.TrimSpace(version)
	switch {
	case root == "rdf" && version != "0.9":
		return RSS10
	case root != "rdf" && strings.HasPrefix(version, "2"):
		return RSS20
	}
	return RSS09
}

func rssEntry(r *rss.Item, doc *tidied, number int) *draft {
	x, kept := r.Extensions, doc.kept.of(number)
	d := &draft{
		entry:     kept.entry(),
		titles:    []text{{r.Title, typeHTML}},
		published: []string{r.PubDate, r.Custom["published"], r.Custom["date"]},
		updated:   []string{r.Custom["updated"]},
	}
	e := &d.entry
	e.Link = firstLink(append(r.Links, r.Custom["url"])...)
	e.Comments = r.Comments
	if r.GUID != nil {
		e.GUID = r.GUID.Value
	}
	e.GUID = cmp.Or(e.GUID, kept.notes["about"])
	for _, s := range values(x[metaPrefix], "author") {
		e.Authors = append(e.Authors, parsePersons(s, true)...)
	}
	if r.Source != nil {
		e.Source = &Source{Title: titleText(r.Source.Title, true), URL: r.Source.URL}
	}
	for _, c := range r.Categories {
		e.categorize(Category{Name: titleText(c.Value, true), Scheme: c.Domain})
	}
	for _, enc := range r.Enclosures {
		e.Enclosures = append(e.Enclosures, enclosure(enc.URL, enc.Type, enc.Length))
	}
	e.Image = r.Custom["image"]
	if !isWebURL(e.Image) {
		e.Image = ""
	}
	for _, s := range []string{doc.text(r.Content), r.Custom["fullitem"], r.Custom["body"], value(x["xhtml"], "body"), value(x["content"], "encoded")} {
		d.contents = append(d.contents, text{s, typeHTML}.lines())
	}
	for _, s := range []string{doc.text(r.Description), r.Custom["summary"]} {
		d.summaries = append(d.summaries, text{s, typeHTML}.lines())
	}
	d.modules(x)
	if e.Link == "" && r.GUID != nil && !strings.EqualFold(strings.TrimSpace(r.GUID.IsPermalink), "false") {
		if u := cmp.Or(kept.notes["permalink"], r.GUID.Value); isWebURL(u) {
			e.Link = u
		}
	}
	d.tail = cloudItems(x)
	return d
}
