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
	"github.com/mmcdole/gofeed/rss"

	"github.com/lektordir/lektor/feedconv/internal/tidy"
	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/textfile"
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
		out = append(out, ReplyTo{Ref: r.Attr("ref"), URL: r.Attr("href"), Type: r.Attr("type"),
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

// module is the children of an element that belong to one vocabulary.
type module struct {
	n  *tidy.Node
	ns vocab.NS // any for all
}

const anyNS vocab.NS = -1

// inside returns all children of an element of a module.
func inside(n *tidy.Node) module { return module{n, anyNS} }

// all returns the elements with a name that have a field.
func (m module) all(name string) []*tidy.Node {
	if m.ns != anyNS {
		return m.n.All(m.ns, name)
	}
	return slices.DeleteFunc(slices.Clone(m.n.Children),
		func(c *tidy.Node) bool { return c.Name != name || c.Foreign })
}

// values returns the texts, if not empty, of the elements with a name.
func (m module) values(name string) []string {
	var out []string
	for _, e := range m.all(name) {
		if e.Text != "" {
			out = append(out, e.Text)
		}
	}
	return out
}

// value returns the first text of the elements of a name.
func (m module) value(name string) string { return cmp.Or(m.values(name)...) }

// attrs returns the first of some attributes of each element.
func attrs(list []*tidy.Node, attributes ...string) []string {
	var out []string
	for _, e := range list {
		for _, a := range attributes {
			if v := e.Attr(a); v != "" {
				out = append(out, v)
				break
			}
		}
	}
	return out
}

// links returns links of Atom.
func links(list []*tidy.Node) []Link {
	out := make([]Link, 0, len(list))
	for _, l := range list {
		out = append(out, Link{Rel: linkRel(l.Attr("rel")), URL: markup.CleanLine(cmp.Or(l.Attr("href"), l.Text)),
			Type: markup.CleanLine(l.Attr("type")), Title: oneLine(l.Attr("title"))})
	}
	return out
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
		t := textfile.BaseType(l.Type)
		if l.Rel != "alternate" || markup.Link(l.URL) == "" || t == "application/ess" || t == "application/nno" {
			continue // ess and nno documents are not pages
		}
		if t == "" || markup.IsMarkup(t) && !strings.Contains(t, "atom") && !strings.Contains(t, "rss") {
			return l.URL
		}
		first = cmp.Or(first, l.URL)
	}
	return first
}

// modules reads the elements of Dublin Core, iTunes, Media RSS and Atom in an entry of any format.
func (d *draft) modules(n *tidy.Node) {
	e := &d.entry
	dc, terms, itunes := module{n, vocab.DC}, module{n, vocab.DCTerms}, module{n, vocab.ITunes}
	for _, s := range append(dc.values("title"), itunes.values("title")...) {
		d.titles = append(d.titles, text{s, markup.TypeHTML})
	}
	d.published = append(d.published, terms.value("issued"), terms.value("created"))
	d.updated = append(d.updated, terms.value("modified"), dc.value("date"))
	d.creators(persons(parseAll(append(dc.values("author"), dc.values("creator")...))))
	if len(e.Authors) == 0 {
		e.Authors = parseAll(itunes.values("author"))
	}
	e.Contributors = append(e.Contributors, parseAll(dc.values("contributor"))...)
	e.Duration = duration(itunes.value("duration"))
	podcast := module{n, vocab.Podcast}
	e.Episode = cmp.Or(number(itunes.value("episode")), number(podcast.value("episode")))
	e.Season = cmp.Or(number(itunes.value("season")), number(podcast.value("season")))
	e.Categories = append(e.Categories, moduleCategories(n)...)
	e.Categories = append(e.Categories, dc.values("subject")...)
	e.Language = cmp.Or(e.Language, dc.value("language"))
	e.Rights = cmp.Or(e.Rights, PlainText(dc.value("rights"), markup.TypeHTML))
	e.Image = cmp.Or(moduleImage(itunes), e.Image)
	d.media(module{n, vocab.Media}, 0)
	for _, s := range []string{itunes.value("summary"), itunes.value("subtitle"), dc.value("description")} {
		d.summaries = append(d.summaries, text{s, markup.TypeHTML}.lines())
	}
	d.atom(module{n, vocab.Atom10})
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
	images := append(attrs(itunes.all("image"), "href", "url"), itunes.value("image"))
	for _, l := range itunes.all("link") {
		if strings.EqualFold(l.Attr("rel"), "image") {
			images = append(images, l.Attr("href"))
			break
		}
	}
	return markup.FirstLink(images...)
}

// moduleCategories returns the categories of the iTunes and Media modules.
func moduleCategories(n *tidy.Node) []string {
	itunes := module{n, vocab.ITunes}
	out := itunes.categories()
	for _, list := range itunes.values("keywords") {
		out = append(out, strings.Split(list, ",")...)
	}
	return append(out, mediaCategories(module{n, vocab.Media})...)
}

// categories returns the categories of the iTunes module, which have others inside.
func (m module) categories() (out []string) {
	for _, c := range m.all("category") {
		out = append(append(out, cmp.Or(c.Attr("text"), c.Text)), module{c, m.ns}.categories()...)
	}
	return out
}

// mediaCategories returns the categories of Media RSS.
func mediaCategories(m module) []string {
	var out []string
	for _, list := range m.values("keywords") {
		out = append(out, strings.Split(list, ",")...)
	}
	for _, c := range m.all("category") {
		out = append(out, cmp.Or(c.Attr("label"), c.Text))
	}
	return out
}

// media reads Media RSS, whose elements may stand in the entry, in a group,
// and in a content element.
func (d *draft) media(m module, depth int) {
	if depth > 4 {
		return
	}
	e := &d.entry
	for _, t := range m.all("title") {
		d.titles = append(d.titles, text{t.Text, mediaType(t.Attr("type"))})
	}
	for _, c := range m.all("content") {
		href, kind := c.Attr("url"), c.Attr("type")
		if href == "" || kind == "application/x-shockwave-flash" { // the dead player of a video on YouTube
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
	e.Image = cmp.Or(append([]string{e.Image}, attrs(m.all("thumbnail"), "url")...)...)
	for _, t := range m.all("description") {
		d.summaries = append(d.summaries, text{t.Text, mediaType(t.Attr("type"))})
	}
	if depth > 0 {
		e.Categories = append(e.Categories, mediaCategories(m)...)
	}
	for _, c := range slices.Concat(m.all("group"), m.all("content")) {
		if !isPicture(c) { // the title and the description in a picture are those of the picture
			d.media(inside(c), depth+1)
		}
	}
}

// isPicture reports whether an element of Media RSS is a content that is an image.
func isPicture(n *tidy.Node) bool {
	return n.Name == "content" && (n.Attr("medium") == "image" || strings.HasPrefix(n.Attr("type"), "image/"))
}

// mediaType returns the MIME type of a Media RSS text, which says "plain" or
// "html".
func mediaType(s string) string {
	if strings.EqualFold(strings.TrimSpace(s), "html") {
		return markup.TypeHTML
	}
	return markup.TypePlain
}

// atom reads the elements of Atom in an entry of any format.
func (d *draft) atom(m module) {
	e := &d.entry
	list := links(m.all("link"))
	e.Link = cmp.Or(e.Link, alternate(list))
	e.Links = append(e.Links, otherLinks(list)...)
	for i, n := range m.all("link") {
		switch t := textfile.BaseType(list[i].Type); {
		case list[i].Rel == "enclosure":
			e.Enclosures = append(e.Enclosures, enclosure(list[i].URL, list[i].Type, n.Attr("length")))
		case list[i].Rel == "replies" && e.Comments == "" && (t == "" || t == markup.TypeHTML || t == markup.TypeXHTML):
			e.Comments = list[i].URL
		}
	}
	for _, t := range m.all("title") {
		d.titles = append(d.titles, atomText(t.Text, t))
	}
	for _, c := range m.all("content") {
		d.contents = append(d.contents, atomText(c.Text, c))
		d.outOfLine(c)
	}
	for _, c := range m.all("summary") {
		d.summaries = append(d.summaries, atomText(c.Text, c))
	}
	d.published = append(d.published, m.value("published"), m.value("issued"))
	d.updated = append(d.updated, m.value("updated"), m.value("modified"))
	if authors := atomPersons(m.all("author")); coverAll(authors, e.Authors) {
		e.Authors = authors
	}
	contributors := atomPersons(m.all("contributor"))
	if coverAll(contributors, e.Contributors) {
		e.Contributors = nil
	}
	e.Contributors = append(e.Contributors, contributors...)
	e.categorize(atomCategories(m.all("category"))...)
	e.GUID = cmp.Or(e.GUID, m.value("id"))
}

// outOfLine reads content that is elsewhere (RFC 4287, section 4.1.3.2).
func (d *draft) outOfLine(c *tidy.Node) {
	e, src, kind := &d.entry, c.Attr("src"), c.Attr("type")
	if src == "" {
		return
	}
	if t := textfile.BaseType(kind); e.Link == "" && (t == "" || markup.IsMarkup(t)) {
		e.Link = src
		return
	}
	e.Enclosures = append(e.Enclosures, enclosure(src, kind, ""))
}

// atomText returns a text construct of Atom. n has its type.
func atomText(value string, n *tidy.Node) text { return text{value, atomType(n.Attr("type"))} }

func atomPersons(list []*tidy.Node) []Person {
	var out []Person
	for _, a := range list {
		m := inside(a)
		p := Person{
			Name: cmp.Or(m.value("name"), a.Text), Email: m.value("email"),
			URL: cmp.Or(m.value("uri"), m.value("url"), m.value("homepage")),
		}
		if several := parsePersons(p.Name, false); len(several) > 1 && p.Email == "" && p.URL == "" {
			out = append(out, several...)
		} else {
			out = append(out, tidyPerson(p))
		}
	}
	return out
}

// atomCategories returns the categories, named by their terms. If a term is empty or a URL, the
// label is the name.
func atomCategories(list []*tidy.Node) []Category {
	var out []Category
	for _, c := range list {
		term, label, scheme := c.Attr("term"), c.Attr("label"), c.Attr("scheme")
		if label != "" && (term == "" || markup.IsWebURL(term)) {
			out = append(out, Category{Name: label, Scheme: scheme, Term: term})
		} else {
			out = append(out, Category{Name: term, Scheme: scheme, Label: label})
		}
	}
	return out
}

// atomType returns the MIME type of an Atom text construct or content.
func atomType(s string) string {
	switch t := textfile.BaseType(s); t {
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
func feedModules(f *Feed, n *tidy.Node) {
	dc, itunes := module{n, vocab.DC}, module{n, vocab.ITunes}
	media, sy := module{n, vocab.Media}, module{n, vocab.SY}
	f.Title = cmp.Or(f.Title, titleText(dc.value("title")), titleText(itunes.value("title")),
		titleText(media.value("title")))
	f.Description = cmp.Or(f.Description, PlainText(dc.value("description"), markup.TypeHTML),
		PlainText(itunes.value("summary"), markup.TypeHTML), PlainText(itunes.value("subtitle"), markup.TypeHTML))
	f.Copyright = cmp.Or(f.Copyright, PlainText(dc.value("rights"), markup.TypeHTML),
		PlainText(media.value("copyright"), markup.TypeHTML))
	f.Language = cmp.Or(f.Language, dc.value("language"))
	f.Image = cmp.Or(moduleImage(itunes), f.Image)
	if len(f.Authors) == 0 {
		f.Authors = parseAll(append(dc.values("author"), dc.values("creator")...))
	}
	// Hosts of podcasts write a bare address as the editor of RSS, or themselves as the webmaster.
	if list := parseAll(itunes.values("author")); len(list) > 0 && (len(f.Authors) == 0 || f.Authors[0].Name == "") {
		f.Authors = list
	}
	f.Categories = append(f.Categories, moduleCategories(n)...)
	f.Categories = append(f.Categories, dc.values("subject")...)
	f.UpdateInterval = updateInterval(sy.value("updateperiod"), sy.value("updatefrequency"))
	f.Complete = len(n.All(vocab.FH, "complete")) > 0
	f.Archive = len(n.All(vocab.FH, "archive")) > 0
	for _, c := range n.All(vocab.Source, "cloud") {
		f.Clouds = append(f.Clouds, cloudOf(func(name string) string { return c.Attr(strings.ToLower(name)) }, c.Text))
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
		c := inside(it)
		b.WriteString("<li>")
		writeCloudItem(b, c.value("title"), c.value("link"), cmp.Or(c.value("description"), it.Text))
		writeCloudItems(b, c.all("item"), depth+1)
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
