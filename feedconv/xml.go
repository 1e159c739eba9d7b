package feedconv

import (
	"cmp"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv/internal/markup"
	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
)

// parseXML maps a tidied document.
func parseXML(doc *tidy.Document, opts Options) *Feed {
	var f *Feed
	if doc.Root == "feed" {
		f = atomFeed(doc, opts)
	} else {
		f = rssFeed(doc, opts)
	}
	f.Attributes, f.Extensions = foreignAttributes(doc, doc.Feed), extensions(doc, doc.Feed.Children)
	finishFeed(f, opts)
	return f
}

// newDraft returns an entry with what all formats have alike.
func newDraft(doc *tidy.Document, n *tidy.Node) *draft {
	return &draft{entry: Entry{
		Attributes: foreignAttributes(doc, n), Extensions: extensions(doc, n.Children), Language: n.AttrNS(vocab.XML, "lang"),
	}}
}

// extensions returns the elements among some that have no field.
func extensions(doc *tidy.Document, list []*tidy.Node) []Extension {
	var out []Extension
	for _, n := range list {
		if n.Foreign {
			out = append(out, Extension{
				Namespace: doc.URI(n.NS), Name: n.Name, Attributes: foreignAttributes(doc, n), Text: n.Text, Children: extensions(doc, n.Children),
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

// values returns the texts of the elements that have any.
func values(list []*tidy.Node) []string {
	var out []string
	for _, n := range list {
		if n.Text != "" {
			out = append(out, n.Text)
		}
	}
	return out
}

// value returns the first text of some elements.
func value(list []*tidy.Node) string {
	for _, n := range list {
		if n.Text != "" {
			return n.Text
		}
	}
	return ""
}

// attrs returns the first of some attributes of each element.
func attrs(list []*tidy.Node, attributes ...string) []string {
	var out []string
	for _, n := range list {
		for _, a := range attributes {
			if v := n.Attr(a); v != "" {
				out = append(out, v)
				break
			}
		}
	}
	return out
}

// xmlLinks returns the links of Atom that elements stand for.
func xmlLinks(list []*tidy.Node) []Link {
	var out []Link
	for _, n := range list {
		out = append(out, Link{
			Rel:   linkRel(n.Attr("rel")),
			Href:  markup.CleanLine(cmp.Or(n.Attr("href"), n.Text)),
			Type:  markup.CleanLine(n.Attr("type")),
			Title: oneLine(n.Attr("title")),
		})
	}
	return out
}

// linkRel returns a relation its short name.
func linkRel(rel string) string {
	rel = strings.TrimSpace(rel)
	for _, prefix := range []string{"http://www.iana.org/assignments/relation/", "https://www.iana.org/assignments/relation/"} {
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
			continue // they list publication times and are no page
		}
		if t == "" || markup.IsMarkup(t) && !strings.Contains(t, "atom") && !strings.Contains(t, "rss") {
			return l.Href
		}
		first = cmp.Or(first, l.Href)
	}
	return first
}

// modules reads what Dublin Core, iTunes, Media RSS and Atom say of an entry,
// in whatever format they stand.
func (d *draft) modules(n *tidy.Node) {
	e := &d.entry
	dc := func(name string) []*tidy.Node { return n.All(vocab.DC, name) }
	itunes := func(name string) []*tidy.Node { return n.All(vocab.ITunes, name) }
	for _, s := range append(values(dc("title")), values(itunes("title"))...) {
		d.titles = append(d.titles, text{s, markup.TypeHTML})
	}
	d.published = append(d.published, value(n.All(vocab.DCTerms, "issued")), value(n.All(vocab.DCTerms, "created")))
	d.updated = append(d.updated, value(n.All(vocab.DCTerms, "modified")), value(dc("date")))
	d.creators(persons(parseAll(append(values(dc("author")), values(dc("creator"))...))))
	if len(e.Authors) == 0 {
		e.Authors = parseAll(values(itunes("author")))
	}
	e.Contributors = append(e.Contributors, parseAll(values(dc("contributor")))...)
	e.Duration = duration(value(itunes("duration")))
	e.Episode, e.Season = number(value(itunes("episode"))), number(value(itunes("season")))
	e.Categories = append(e.Categories, moduleCategories(n)...)
	e.Categories = append(e.Categories, values(dc("subject"))...)
	e.Language = cmp.Or(e.Language, value(dc("language")))
	e.Rights = cmp.Or(e.Rights, PlainText(value(dc("rights")), markup.TypeHTML))
	e.Image = cmp.Or(moduleImage(n), e.Image)
	d.media(n, 0)
	for _, s := range []string{value(itunes("summary")), value(itunes("subtitle")), value(dc("description"))} {
		d.summaries = append(d.summaries, text{s, markup.TypeHTML}.lines())
	}
	d.atom(n)
}

func parseAll(list []string) []Person {
	var out []Person
	for _, s := range list {
		out = append(out, parsePersons(s, true)...)
	}
	return out
}

// creators adds those whom Dublin Core names, when it names more than the
// format does: co-authors, of whom RSS has room for one.
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
func moduleImage(n *tidy.Node) string {
	list := n.All(vocab.ITunes, "image")
	images := append(attrs(list, "href", "url"), value(list))
	for _, l := range n.All(vocab.ITunes, "link") {
		if strings.EqualFold(l.Attr("rel"), "image") {
			images = append(images, l.Attr("href"))
			break
		}
	}
	return markup.FirstLink(images...)
}

// moduleCategories returns the categories of the iTunes and Media modules.
func moduleCategories(n *tidy.Node) []string {
	var out []string
	var nested func(list []*tidy.Node, depth int)
	nested = func(list []*tidy.Node, depth int) {
		for _, c := range list {
			out = append(out, cmp.Or(c.Attr("text"), c.Text))
			if depth < 8 {
				nested(c.Named("category"), depth+1)
			}
		}
	}
	nested(n.All(vocab.ITunes, "category"), 0)
	for _, list := range values(n.All(vocab.ITunes, "keywords")) {
		out = append(out, strings.Split(list, ",")...)
	}
	return append(out, mediaCategories(n)...)
}

// mediaCategories returns the categories of Media RSS.
func mediaCategories(n *tidy.Node) []string {
	var out []string
	for _, list := range values(n.All(vocab.Media, "keywords")) {
		out = append(out, strings.Split(list, ",")...)
	}
	for _, c := range n.All(vocab.Media, "category") {
		out = append(out, cmp.Or(c.Attr("label"), c.Text))
	}
	return out
}

// media reads Media RSS, whose elements may stand in the entry, in a group,
// and in a content element.
func (d *draft) media(n *tidy.Node, depth int) {
	if depth > 4 {
		return
	}
	e := &d.entry
	for _, t := range n.All(vocab.Media, "title") {
		d.titles = append(d.titles, text{t.Text, mediaType(t.Attr("type"))})
	}
	contents := n.All(vocab.Media, "content")
	for _, c := range contents {
		href, kind := c.Attr("url"), c.Attr("type")
		if href == "" {
			continue
		}
		if kind == "" && c.Attr("medium") == "image" {
			kind = "image/*"
		}
		enc := enclosure(href, kind, c.Attr("filesize"))
		if strings.HasSuffix(enc.Type, "/*") {
			enc.Type = ""
		}
		e.Enclosures = append(e.Enclosures, enc)
		if e.Image == "" && strings.HasPrefix(kind, "image/") {
			e.Image = href
		}
	}
	e.Image = cmp.Or(append([]string{e.Image}, attrs(n.All(vocab.Media, "thumbnail"), "url")...)...)
	for _, t := range n.All(vocab.Media, "description") {
		d.summaries = append(d.summaries, text{t.Text, mediaType(t.Attr("type"))})
	}
	if depth > 0 {
		e.Categories = append(e.Categories, mediaCategories(n)...)
	}
	for _, c := range append(n.All(vocab.Media, "group"), contents...) {
		d.media(c, depth+1)
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
func (d *draft) atom(n *tidy.Node) {
	e := &d.entry
	atom := func(name string) []*tidy.Node { return n.All(vocab.Atom10, name) }
	links := xmlLinks(atom("link"))
	e.Link = cmp.Or(e.Link, alternate(links))
	e.Links = append(e.Links, otherLinks(links)...)
	e.Enclosures = append(e.Enclosures, linkEnclosures(atom("link"))...)
	for _, t := range atom("title") {
		d.titles = append(d.titles, atomText(t))
	}
	for _, c := range atom("content") {
		d.contents = append(d.contents, atomText(c))
	}
	for _, c := range atom("summary") {
		d.summaries = append(d.summaries, atomText(c))
	}
	d.published = append(d.published, value(atom("published")), value(atom("issued")))
	d.updated = append(d.updated, value(atom("updated")), value(atom("modified")))
	if authors := elementPersons(atom("author")); coverAll(authors, e.Authors) {
		e.Authors = authors
	}
	contributors := elementPersons(atom("contributor"))
	if coverAll(contributors, e.Contributors) {
		e.Contributors = nil
	}
	e.Contributors = append(e.Contributors, contributors...)
	for _, c := range atom("category") {
		e.categorize(Category{Name: cmp.Or(c.Attr("term"), c.Attr("label")), Scheme: c.Attr("scheme"), Label: c.Attr("label")})
	}
	e.GUID = cmp.Or(e.GUID, value(atom("id")))
}

// linkEnclosures returns the enclosures among links of Atom.
func linkEnclosures(links []*tidy.Node) []Enclosure {
	var out []Enclosure
	for _, l := range links {
		if linkRel(l.Attr("rel")) == "enclosure" {
			out = append(out, enclosure(l.Attr("href"), l.Attr("type"), l.Attr("length")))
		}
	}
	return out
}

// atomText returns a text construct of Atom, which may be absent.
func atomText(n *tidy.Node) text { return text{n.Value(), atomType(n.Attr("type"))} }

func elementPersons(list []*tidy.Node) []Person {
	var out []Person
	for _, a := range list {
		p := Person{
			Name:  cmp.Or(value(a.Named("name")), a.Text),
			Email: value(a.Named("email")),
			URL:   cmp.Or(value(a.Named("uri")), value(a.Named("url"))),
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

// feedModules reads what the modules say of a feed.
func feedModules(f *Feed, n *tidy.Node) {
	dc := func(name string) string { return value(n.All(vocab.DC, name)) }
	itunes := func(name string) string { return value(n.All(vocab.ITunes, name)) }
	media := func(name string) string { return value(n.All(vocab.Media, name)) }
	f.Title = cmp.Or(f.Title, titleText(dc("title")), titleText(itunes("title")), titleText(media("title")))
	f.Description = cmp.Or(f.Description, PlainText(dc("description"), markup.TypeHTML),
		PlainText(itunes("summary"), markup.TypeHTML), PlainText(itunes("subtitle"), markup.TypeHTML))
	f.Copyright = cmp.Or(f.Copyright, PlainText(dc("rights"), markup.TypeHTML), PlainText(media("copyright"), markup.TypeHTML))
	f.Language = cmp.Or(f.Language, dc("language"))
	f.Image = cmp.Or(moduleImage(n), f.Image)
	if len(f.Authors) == 0 {
		f.Authors = parseAll(append(values(n.All(vocab.DC, "author")), values(n.All(vocab.DC, "creator"))...))
	}
	if len(f.Authors) == 0 {
		f.Authors = parseAll(values(n.All(vocab.ITunes, "author")))
	}
	f.Categories = append(f.Categories, moduleCategories(n)...)
	f.Categories = append(f.Categories, values(n.All(vocab.DC, "subject"))...)
	f.UpdateInterval = updateInterval(value(n.All(vocab.SY, "updateperiod")), value(n.All(vocab.SY, "updatefrequency")))
	f.Complete = len(n.All(vocab.FH, "complete")) > 0
	f.Archive = len(n.All(vocab.FH, "archive")) > 0
	for _, c := range n.All(vocab.Source, "cloud") {
		f.Clouds = append(f.Clouds, cloudOf(func(name string) string { return c.Attr(strings.ToLower(name)) }, c.Text))
	}
}

// cloudOf makes a cloud of attributes, or of its URL, which may be the text, as in
// <source:cloud>.
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

// number reads a small number; 0 when it is none.
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

// skipDays reads the names of days, or three or more letters of them.
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
func cloudItems(n *tidy.Node) string {
	var b strings.Builder
	writeCloudItems(&b, n.All(vocab.RSSCloud, "item"), 0)
	return b.String()
}

func writeCloudItems(b *strings.Builder, items []*tidy.Node, depth int) {
	if len(items) == 0 || depth > maxListDepth {
		return
	}
	b.WriteString("<ul>")
	for _, it := range items {
		b.WriteString("<li>")
		writeCloudItem(b, value(it.Named("title")), value(it.Named("link")), cmp.Or(value(it.Named("description")), it.Text))
		writeCloudItems(b, it.Named("item"), depth+1)
		b.WriteString("</li>")
	}
	b.WriteString("</ul>")
}

// writeCloudItem writes one item of the list: the title links where the item
// does, or all of a description without a title.
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
