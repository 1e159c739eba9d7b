package feedconv

import (
	"cmp"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mmcdole/gofeed/atom"
	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/mmcdole/gofeed/rss"

	"github.com/lektordir/lektor/feedconv/internal/markup"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// parseXML maps a tidied document. It uses gofeed's parsers of single formats. gofeed's universal
// feed lacks half of the fields needed here, and building it would double the cost. The package
// comment lists the parts that are read from the tree.
func parseXML(doc *tidy.Document, opts Options) (*Feed, error) {
	var f *Feed
	if doc.Root == "feed" {
		a, err := (&atom.Parser{}).Parse(doc.XML())
		if err != nil {
			return nil, err
		}
		f = atomFeed(a, doc, opts)
	} else {
		r, err := (&rss.Parser{}).Parse(doc.XML())
		if err != nil {
			return nil, err
		}
		f = rssFeed(r, doc, opts)
	}
	f.Attributes, f.Extensions = foreignAttributes(doc, doc.Feed), extensions(doc, doc.Feed.Children)
	finishFeed(f, opts)
	return f, nil
}

// newDraft returns an entry with the fields that gofeed does not have.
func newDraft(doc *tidy.Document, n *tidy.Node) *draft {
	return &draft{entry: Entry{
		Attributes: foreignAttributes(doc, n), Extensions: extensions(doc, n.Children),
		Language:  n.AttrNS(vocab.XML, "lang"),
		InReplyTo: repliesTo(n),
	}}
}

// repliesTo returns what an entry replies to.
func repliesTo(n *tidy.Node) []ReplyTo {
	var out []ReplyTo
	for _, r := range n.All(vocab.Thr, "in-reply-to") {
		out = append(out, ReplyTo{Ref: r.Attr("ref"), Href: r.Attr("href"), Type: r.Attr("type"),
			Source: r.Attr("source")})
	}
	return out
}

// extensions returns the elements of list that are not read into a field.
func extensions(doc *tidy.Document, list []*tidy.Node) []Extension {
	var out []Extension
	for _, n := range list {
		if n.Foreign {
			out = append(out, Extension{
				Namespace: doc.URI(n.NS), Name: n.Name, Attributes: foreignAttributes(doc, n), Text: n.Text,
				Children: extensions(doc, n.Children),
			})
		}
	}
	return out
}

// foreignAttributes returns the attributes of a foreign element, a feed or an entry.
func foreignAttributes(doc *tidy.Document, n *tidy.Node) []Attribute {
	var out []Attribute
	for _, a := range n.Attrs {
		if n.Foreign || a.NS != vocab.XML && a.NS != vocab.RDF {
			out = append(out, Attribute{Namespace: doc.URI(a.NS), Name: a.Name, Value: a.Value})
		}
	}
	return out
}

// module holds the elements of one namespace by name.
type module = map[string][]ext.Extension

// values returns the texts, if not empty, of the elements with a name.
func values(m module, name string) []string {
	var out []string
	for _, e := range m[name] {
		if e.Value != "" {
			out = append(out, e.Value)
		}
	}
	return out
}

// value returns the first text of the elements of a name.
func value(m module, name string) string {
	for _, e := range m[name] {
		if e.Value != "" {
			return e.Value
		}
	}
	return ""
}

// attrs returns the first of some attributes of each element.
func attrs(list []ext.Extension, attributes ...string) []string {
	var out []string
	for _, e := range list {
		for _, a := range attributes {
			if v := e.Attrs[a]; v != "" {
				out = append(out, v)
				break
			}
		}
	}
	return out
}

// extensionLinks returns the links of Atom in a document of another format.
func extensionLinks(list []ext.Extension) []Link {
	var out []Link
	for _, e := range list {
		out = append(out, newLink(e.Attrs["rel"], cmp.Or(e.Attrs["href"], e.Value), e.Attrs["type"], e.Attrs["title"]))
	}
	return out
}

func newLink(rel, href, mediaType, title string) Link {
	return Link{Rel: linkRel(rel), Href: markup.CleanLine(href), Type: markup.CleanLine(mediaType),
		Title: oneLine(title)}
}

// linkRel returns the short name of a relation.
func linkRel(rel string) string {
	rel = strings.TrimSpace(rel)
	for _, prefix := range []string{"http://www.iana.org/assignments/relation/",
		"https://www.iana.org/assignments/relation/"} {
		rel = strings.TrimPrefix(rel, prefix)
	}
	if rel == "" {
		return "alternate"
	}
	return strings.ToLower(rel)
}

// alternate returns the link to the page that a feed or an entry is about.
func alternate(links []Link) string {
	var first string
	for _, l := range links {
		t := markup.MediaType(l.Type)
		if l.Rel != "alternate" || markup.Link(l.Href) == "" || t == "application/ess" || t == "application/nno" {
			continue // ess and nno documents are not pages
		}
		if t == "" || markup.IsMarkup(t) && !strings.Contains(t, "atom") && !strings.Contains(t, "rss") {
			return l.Href
		}
		first = cmp.Or(first, l.Href)
	}
	return first
}

// modules reads the elements of Dublin Core, iTunes, Media RSS and Atom in an entry of any format.
func (d *draft) modules(x ext.Extensions) {
	e := &d.entry
	dc, terms, itunes := x["dc"], x["dcterms"], x["itunes"]
	for _, s := range append(values(dc, "title"), values(itunes, "title")...) {
		d.titles = append(d.titles, text{s, markup.TypeHTML})
	}
	d.published = append(d.published, value(terms, "issued"), value(terms, "created"))
	d.updated = append(d.updated, value(terms, "modified"), value(dc, "date"))
	d.creators(persons(parseAll(append(values(dc, "author"), values(dc, "creator")...))))
	if len(e.Authors) == 0 {
		e.Authors = parseAll(values(itunes, "author"))
	}
	e.Contributors = append(e.Contributors, parseAll(values(dc, "contributor"))...)
	e.Duration = duration(value(itunes, "duration"))
	e.Episode, e.Season = number(value(itunes, "episode")), number(value(itunes, "season"))
	e.Categories = append(e.Categories, moduleCategories(x)...)
	e.Categories = append(e.Categories, values(dc, "subject")...)
	e.Language = cmp.Or(e.Language, value(dc, "language"))
	e.Rights = cmp.Or(e.Rights, PlainText(value(dc, "rights"), markup.TypeHTML))
	e.Image = cmp.Or(moduleImage(itunes), e.Image)
	d.media(x["media"], 0)
	for _, s := range []string{value(itunes, "summary"), value(itunes, "subtitle"), value(dc, "description")} {
		d.summaries = append(d.summaries, text{s, markup.TypeHTML}.lines())
	}
	d.atom(x["atom"])
}

func parseAll(list []string) []Person {
	var out []Person
	for _, s := range list {
		out = append(out, parsePersons(s, true)...)
	}
	return out
}

// creators adds the persons of Dublin Core if there are more of these than authors of the format:
// RSS has only one author element, so feeds put co-authors there.
func (d *draft) creators(list []Person) {
	e := &d.entry
	if len(list) <= len(e.Authors) {
		return
	}
	native := e.Authors
	for _, p := range list {
		if !slices.ContainsFunc(native, func(a Person) bool {
			return p.Name != "" && p.Name == a.Name || p.Email != "" && p.Email == a.Email
		}) {
			e.Authors = append(e.Authors, p)
		}
	}
}

// duration reads an iTunes duration: seconds, M:S or H:M:S.
func duration(s string) time.Duration {
	var d time.Duration
	parts := strings.Split(strings.TrimSpace(s), ":")
	if len(parts) > 3 {
		return 0
	}
	for i, part := range parts {
		if i == len(parts)-1 {
			part, _, _ = strings.Cut(part, ".")
		}
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 0 || n > 1<<24 {
			return 0
		}
		d = d*60 + time.Duration(n)*time.Second
	}
	return d
}

// moduleImage returns the image that the iTunes module names.
func moduleImage(itunes module) string {
	images := append(attrs(itunes["image"], "href", "url"), value(itunes, "image"))
	for _, l := range itunes["link"] {
		if strings.EqualFold(l.Attrs["rel"], "image") {
			images = append(images, l.Attrs["href"])
			break
		}
	}
	return markup.FirstLink(images...)
}

// moduleCategories returns the categories of the iTunes and Media modules.
func moduleCategories(x ext.Extensions) []string {
	var out []string
	var nested func(list []ext.Extension, depth int)
	nested = func(list []ext.Extension, depth int) {
		for _, c := range list {
			out = append(out, cmp.Or(c.Attrs["text"], c.Value))
			if depth < 8 {
				nested(c.Children["category"], depth+1)
			}
		}
	}
	nested(x["itunes"]["category"], 0)
	for _, list := range values(x["itunes"], "keywords") {
		out = append(out, strings.Split(list, ",")...)
	}
	return append(out, mediaCategories(x["media"])...)
}

// mediaCategories returns the categories of Media RSS.
func mediaCategories(m module) []string {
	var out []string
	for _, list := range values(m, "keywords") {
		out = append(out, strings.Split(list, ",")...)
	}
	for _, c := range m["category"] {
		out = append(out, cmp.Or(c.Attrs["label"], c.Value))
	}
	return out
}

// media reads Media RSS, whose elements may stand in the entry, in a group,
// and in a content element.
func (d *draft) media(m module, depth int) {
	if len(m) == 0 || depth > 4 {
		return
	}
	e := &d.entry
	for _, t := range m["title"] {
		d.titles = append(d.titles, text{t.Value, mediaType(t.Attrs["type"])})
	}
	for _, c := range m["content"] {
		href, kind := c.Attrs["url"], c.Attrs["type"]
		if href == "" {
			continue
		}
		if kind == "" && c.Attrs["medium"] == "image" {
			kind = "image/*"
		}
		enc := enclosure(href, kind, c.Attrs["filesize"])
		if strings.HasSuffix(enc.Type, "/*") {
			enc.Type = ""
		}
		e.Enclosures = append(e.Enclosures, enc)
		if e.Image == "" && strings.HasPrefix(kind, "image/") {
			e.Image = href
		}
	}
	e.Image = cmp.Or(append([]string{e.Image}, attrs(m["thumbnail"], "url")...)...)
	for _, t := range m["description"] {
		d.summaries = append(d.summaries, text{t.Value, mediaType(t.Attrs["type"])})
	}
	if depth > 0 {
		e.Categories = append(e.Categories, mediaCategories(m)...)
	}
	for _, c := range slices.Concat(m["group"], m["content"]) {
		d.media(c.Children, depth+1)
	}
}

// mediaType returns the MIME type of a Media RSS text, which says "plain" or
// "html".
func mediaType(s string) string {
	if strings.EqualFold(strings.TrimSpace(s), "html") {
		return markup.TypeHTML
	}
	return markup.TypePlain
}

// atom reads Atom elements that stand in an entry of another format.
func (d *draft) atom(m module) {
	if len(m) == 0 {
		return
	}
	e := &d.entry
	links := extensionLinks(m["link"])
	e.Link = cmp.Or(e.Link, alternate(links))
	e.Links = append(e.Links, otherLinks(links)...)
	for _, l := range m["link"] {
		if linkRel(l.Attrs["rel"]) == "enclosure" {
			e.Enclosures = append(e.Enclosures, enclosure(l.Attrs["href"], l.Attrs["type"], l.Attrs["length"]))
		}
	}
	for _, t := range m["title"] {
		d.titles = append(d.titles, extensionText(t))
	}
	for _, c := range m["content"] {
		d.contents = append(d.contents, extensionText(c))
	}
	for _, c := range m["summary"] {
		d.summaries = append(d.summaries, extensionText(c))
	}
	d.published = append(d.published, value(m, "published"), value(m, "issued"))
	d.updated = append(d.updated, value(m, "updated"), value(m, "modified"))
	if authors := extensionPersons(m["author"]); coverAll(authors, e.Authors) {
		e.Authors = authors
	}
	contributors := extensionPersons(m["contributor"])
	if coverAll(contributors, e.Contributors) {
		e.Contributors = nil
	}
	e.Contributors = append(e.Contributors, contributors...)
	for _, c := range m["category"] {
		e.categorize(Category{Name: cmp.Or(c.Attrs["term"], c.Attrs["label"]), Scheme: c.Attrs["scheme"],
			Label: c.Attrs["label"]})
	}
	e.GUID = cmp.Or(e.GUID, value(m, "id"))
}

func extensionText(e ext.Extension) text { return text{e.Value, atomType(e.Attrs["type"])} }

func extensionPersons(list []ext.Extension) []Person {
	var out []Person
	for _, a := range list {
		p := Person{
			Name:  cmp.Or(value(a.Children, "name"), a.Value),
			Email: value(a.Children, "email"),
			URL:   cmp.Or(value(a.Children, "uri"), value(a.Children, "url")),
		}
		out = append(out, tidyPerson(p))
	}
	return out
}

// atomType returns the MIME type of an Atom text construct or content.
func atomType(s string) string {
	switch t := markup.MediaType(s); t {
	case "", "text", "plain":
		return markup.TypePlain
	case "html", "escaped":
		return markup.TypeHTML
	case "xhtml":
		return markup.TypeXHTML
	default:
		return t
	}
}

// feedModules reads the elements of modules in a feed.
func feedModules(f *Feed, x ext.Extensions) {
	dc, itunes, media, sy := x["dc"], x["itunes"], x["media"], x["sy"]
	f.Title = cmp.Or(f.Title, titleText(value(dc, "title")), titleText(value(itunes, "title")),
		titleText(value(media, "title")))
	f.Description = cmp.Or(f.Description, PlainText(value(dc, "description"), markup.TypeHTML),
		PlainText(value(itunes, "summary"), markup.TypeHTML), PlainText(value(itunes, "subtitle"), markup.TypeHTML))
	f.Copyright = cmp.Or(f.Copyright, PlainText(value(dc, "rights"), markup.TypeHTML),
		PlainText(value(media, "copyright"), markup.TypeHTML))
	f.Language = cmp.Or(f.Language, value(dc, "language"))
	f.Image = cmp.Or(moduleImage(itunes), f.Image)
	if len(f.Authors) == 0 {
		f.Authors = parseAll(append(values(dc, "author"), values(dc, "creator")...))
	}
	if len(f.Authors) == 0 {
		f.Authors = parseAll(values(itunes, "author"))
	}
	f.Categories = append(f.Categories, moduleCategories(x)...)
	f.Categories = append(f.Categories, values(dc, "subject")...)
	f.UpdateInterval = updateInterval(value(sy, "updateperiod"), value(sy, "updatefrequency"))
	f.Complete = len(x["fh"]["complete"]) > 0
	f.Archive = len(x["fh"]["archive"]) > 0
	for _, c := range x["source"]["cloud"] {
		f.Clouds = append(f.Clouds, cloudOf(func(name string) string { return c.Attrs[name] }, c.Value))
	}
}

// cloudOf returns a cloud made of attributes, or of its URL, which <source:cloud> has as its text.
func cloudOf(attribute func(name string) string, text string) Cloud {
	if attribute("domain") == "" {
		return cloudOfURL(cmp.Or(text, attribute("url"), attribute("href")))
	}
	return Cloud{
		Domain: attribute("domain"), Port: number(attribute("port")), Path: attribute("path"),
		RegisterProcedure: attribute("registerProcedure"), Protocol: attribute("protocol"),
	}
}

// updateInterval reads the syndication module.
func updateInterval(period, frequency string) time.Duration {
	const day = 24 * time.Hour
	d, ok := map[string]time.Duration{
		"hourly": time.Hour, "daily": day, "weekly": 7 * day, "monthly": 30 * day, "yearly": 365 * day,
	}[strings.ToLower(strings.TrimSpace(period))]
	if !ok {
		if strings.TrimSpace(frequency) == "" {
			return 0
		}
		d = day // the module's default
	}
	return d / time.Duration(max(number(frequency), 1))
}

// ttl reads RSS ttl: minutes. More than a year is a mistake.
func ttl(s string) time.Duration {
	minutes := number(s)
	if minutes < 0 || minutes > 366*24*60 {
		return 0
	}
	return time.Duration(minutes) * time.Minute
}

// number parses a number from 0 to 1<<30; it returns 0 for anything else.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}

func skipHours(list []string) []int {
	var out []int
	for _, s := range list {
		h, err := strconv.Atoi(strings.TrimSpace(s))
		// RSS 0.91 counts from 1 to 24.
		if err == nil && h >= 0 && h <= 24 && !slices.Contains(out, h%24) {
			out = append(out, h%24)
		}
	}
	return out
}

// skipDays parses the names of days, which may be abbreviated to three letters or more.
func skipDays(list []string) []time.Weekday {
	var out []time.Weekday
	for _, s := range list {
		s = strings.ToLower(strings.TrimSpace(s))
		for day := time.Sunday; day <= time.Saturday; day++ {
			if len(s) >= 3 && strings.HasPrefix(strings.ToLower(day.String()), s) && !slices.Contains(out, day) {
				out = append(out, day)
			}
		}
	}
	return out
}

// maxListDepth bounds the nesting of rssCloud items, as tidy does.
const maxListDepth = tidy.MaxDepth

// cloudItems returns rssCloud:item children, which are items in items, as a
// nested list.
func cloudItems(x ext.Extensions) string {
	var b strings.Builder
	writeCloudItems(&b, x["rssCloud"]["item"], 0)
	return b.String()
}

func writeCloudItems(b *strings.Builder, items []ext.Extension, depth int) {
	if len(items) == 0 || depth > maxListDepth {
		return
	}
	b.WriteString("<ul>")
	for _, it := range items {
		c := it.Children
		b.WriteString("<li>")
		writeCloudItem(b, value(c, "title"), value(c, "link"), cmp.Or(value(c, "description"), it.Value))
		writeCloudItems(b, c["item"], depth+1)
		b.WriteString("</li>")
	}
	b.WriteString("</ul>")
}

// writeCloudItem writes one item of the list. The title is a link to target; without a title, the
// description is the link.
func writeCloudItem(b *strings.Builder, title, target, description string) {
	label := html.EscapeString(titleText(title))
	if label == "" {
		label, description = description, ""
	}
	if href := markup.Link(target); href != "" && !strings.Contains(label, "<a ") {
		b.WriteString(`<a href="` + html.EscapeString(href) + `">` + label + `</a>`)
	} else {
		b.WriteString(label)
	}
	if description != "" {
		b.WriteString(" " + description)
	}
}

// cloudOfURL reads the URL of an rssCloud hub.
func cloudOfURL(s string) Cloud {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" {
		return Cloud{}
	}
	c := Cloud{Domain: u.Hostname(), Port: number(u.Port()), Path: u.EscapedPath(), Protocol: "http-post"}
	if u.Scheme == "https" {
		c.Protocol = "https-post"
	}
	if u.RawQuery != "" {
		c.Path += "?" + u.RawQuery
	}
	if c.Port == 0 {
		c.Port = 80
		if u.Scheme == "https" {
			c.Port = 443
		}
	}
	return c
}
