package feedconv

import (
	"bytes"
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
)

// parseXML maps a tidied document. It uses gofeed's format parsers and not
// its universal feed, which has no place for half of what is needed here and
// costs as much again.
func parseXML(doc *tidied, opts Options) (*Feed, error) {
	var f *Feed
	if doc.root == "feed" {
		parsed, err := (&atom.Parser{}).Parse(bytes.NewReader(doc.xml))
		if err != nil {
			return nil, err
		}
		f = atomFeed(parsed, doc, opts)
	} else {
		parsed, err := (&rss.Parser{}).Parse(bytes.NewReader(doc.xml))
		if err != nil {
			return nil, err
		}
		f = rssFeed(parsed, doc, opts)
	}
	f.Attributes, f.Extensions = doc.kept.feed.attributes, doc.kept.feed.list
	finishFeed(f, opts)
	return f, nil
}

// entry returns an entry with what gofeed has no place for.
func (x *extras) entry() Entry {
	return Entry{Attributes: x.attributes, Extensions: x.list, Language: x.notes["lang"]}
}

// elements of one namespace by name.
type module = map[string][]ext.Extension

// values gives the text of all elements of a name.
func values(m module, name string) []string {
	var out []string
	for _, e := range m[name] {
		if e.Value != "" {
			out = append(out, e.Value)
		}
	}
	return out
}

// value gives the first text of elements of a name.
func value(m module, name string) string {
	for _, e := range m[name] {
		if e.Value != "" {
			return e.Value
		}
	}
	return ""
}

// attrs gives an attribute of all elements of a name.
func attrs(m module, name string, attributes ...string) []string {
	var out []string
	for _, e := range m[name] {
		for _, a := range attributes {
			if v := e.Attrs[a]; v != "" {
				out = append(out, v)
				break
			}
		}
	}
	return out
}

// atomModule gives the Atom elements of a document in another format.
func atomModule(x ext.Extensions) module {
	if m := x["atom"]; m != nil {
		return m
	}
	return x["atom03"]
}

// atomLinks gives the Atom links of a document in another format.
func atomLinks(x ext.Extensions) []Link {
	var out []Link
	for _, e := range atomModule(x)["link"] {
		href := cmp.Or(e.Attrs["href"], e.Value)
		out = append(out, Link{
			Rel:   linkRel(e.Attrs["rel"]),
			Href:  cleanLine(href),
			Type:  cleanLine(e.Attrs["type"]),
			Title: titleText(e.Attrs["title"], false),
		})
	}
	return out
}

// linkRel gives a relation its short name.
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

// alternate gives the link to the page that a feed or an entry is about.
func alternate(links []Link) string {
	var first string
	for _, l := range links {
		t := mimeType(l.Type)
		if l.Rel != "alternate" || link(l.Href) == "" || t == "application/ess" || t == "application/nno" {
			continue // those two tell when entries were published, and are no page
		}
		if t == "" || isMarkup(t) && !strings.Contains(t, "atom") && !strings.Contains(t, "rss") {
			return l.Href
		}
		first = cmp.Or(first, l.Href)
	}
	return first
}

// modules reads what Dublin Core, iTunes, Media RSS and Atom say of an entry,
// in whatever format they stand.
func (d *draft) modules(x ext.Extensions) {
	e := &d.entry
	dc, terms, itunes := x["dc"], x["dcterms"], x["itunes"]
	for _, list := range [][]string{values(dc, "title"), values(itunes, "title")} {
		for _, s := range list {
			d.titles = append(d.titles, text{s, typeHTML})
		}
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
	e.Rights = cmp.Or(e.Rights, PlainText(value(dc, "rights"), typeHTML))
	e.Image = cmp.Or(moduleImage(itunes), e.Image)
	d.media(x["media"], 0)
	for _, s := range []string{value(itunes, "summary"), value(itunes, "subtitle"), value(dc, "description")} {
		d.summaries = append(d.summaries, text{s, typeHTML}.lines())
	}
	d.atom(x)
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

// moduleImage gives the image that the iTunes module names.
func moduleImage(itunes module) string {
	images := append(attrs(itunes, "image", "href", "url"), value(itunes, "image"))
	for _, l := range itunes["link"] {
		if strings.EqualFold(l.Attrs["rel"], "image") {
			images = append(images, l.Attrs["href"])
			break
		}
	}
	return firstLink(images...)
}

// moduleCategories gives the categories of the iTunes and Media modules.
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
	for _, list := range append(values(x["itunes"], "keywords"), values(x["media"], "keywords")...) {
		out = append(out, strings.Split(list, ",")...)
	}
	for _, c := range x["media"]["category"] {
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
		href := c.Attrs["url"]
		if href != "" {
			kind := c.Attrs["type"]
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
	}
	e.Image = cmp.Or(append([]string{e.Image}, attrs(m, "thumbnail", "url")...)...)
	for _, t := range m["description"] {
		d.summaries = append(d.summaries, text{t.Value, mediaType(t.Attrs["type"])})
	}
	if depth > 0 {
		e.Categories = append(e.Categories, moduleCategories(ext.Extensions{"media": m})...)
	}
	for _, g := range m["group"] {
		d.media(g.Children, depth+1)
	}
	for _, c := range m["content"] {
		d.media(c.Children, depth+1)
	}
}

// mediaType gives the MIME type of a Media RSS text, which says "plain" or
// "html".
func mediaType(s string) string {
	if strings.EqualFold(strings.TrimSpace(s), "html") {
		return typeHTML
	}
	return typePlain
}

// atom reads Atom elements that stand in an entry of another format.
func (d *draft) atom(x ext.Extensions) {
	e := &d.entry
	m := atomModule(x)
	if len(m) == 0 {
		return
	}
	links := atomLinks(x)
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
		e.categorize(Category{Name: cmp.Or(c.Attrs["term"], c.Attrs["label"]), Scheme: c.Attrs["scheme"], Label: c.Attrs["label"]})
	}
	e.GUID = cmp.Or(e.GUID, value(m, "id"))
}

func extensionText(e ext.Extension) text {
	return text{e.Value, atomType(e.Attrs["type"])}
}

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

// atomType gives the MIME type of an Atom text construct or content.
func atomType(s string) string {
	switch t := mimeType(s); t {
	case "", "text", "plain":
		return typePlain
	case "html", "escaped":
		return typeHTML
	case "xhtml":
		return typeXHTML
	default:
		return t
	}
}

// feedModules reads what the modules say of a feed.
func feedModules(f *Feed, x ext.Extensions) {
	dc, itunes, sy := x["dc"], x["itunes"], x["sy"]
	f.Title = cmp.Or(f.Title, titleText(value(dc, "title"), true), titleText(value(itunes, "title"), true),
		titleText(value(x["media"], "title"), true))
	f.Description = cmp.Or(f.Description, PlainText(value(dc, "description"), typeHTML),
		PlainText(value(itunes, "summary"), typeHTML), PlainText(value(itunes, "subtitle"), typeHTML))
	f.Copyright = cmp.Or(f.Copyright, PlainText(value(dc, "rights"), typeHTML),
		PlainText(value(x["media"], "copyright"), typeHTML))
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
	history := x["fh"]
	f.Complete = f.Complete || len(history["complete"]) > 0
	f.Archive = f.Archive || len(history["archive"]) > 0
	for _, c := range x["source"]["cloud"] {
		f.Clouds = append(f.Clouds, cloudOf(func(name string) string { return c.Attrs[name] }, c.Value))
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
const maxListDepth = maxDepth

// cloudItems gives rssCloud:item children, which are items in items, as a
// nested list.
func cloudItems(x ext.Extensions) string {
	var items []ext.Extension
	for prefix, m := range x {
		if strings.EqualFold(prefix, "rsscloud") {
			items = append(items, m["item"]...)
		}
	}
	var b strings.Builder
	writeCloudItems(&b, items, 0)
	return b.String()
}

func writeCloudItems(b *strings.Builder, items []ext.Extension, depth int) {
	if len(items) == 0 || depth > maxListDepth {
		return
	}
	b.WriteString("<ul>")
	for _, it := range items {
		b.WriteString("<li>")
		c := it.Children
		writeCloudItem(b, value(c, "title"), value(c, "link"), cmp.Or(value(c, "description"), it.Value))
		writeCloudItems(b, c["item"], depth+1)
		b.WriteString("</li>")
	}
	b.WriteString("</ul>")
}

// writeCloudItem writes one item of the list: the title links where the item
// does, or all of a description without a title.
func writeCloudItem(b *strings.Builder, title, target, description string) {
	label := html.EscapeString(titleText(title, true))
	if label == "" {
		label, description = description, ""
	}
	if href := link(target); href != "" && !strings.Contains(label, "<a ") {
		b.WriteString(`<a href="` + html.EscapeString(href) + `">` + label + `</a>`)
	} else {
		b.WriteString(label)
	}
	if description != "" {
		b.WriteString(" " + description)
	}
}

// textType returns the MIME type of a text construct, which gofeed drops.
func (x *extras) textType(names ...string) string {
	for _, name := range names {
		if t := x.notes["type-"+name]; t != "" {
			return atomType(t)
		}
	}
	return typePlain
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
