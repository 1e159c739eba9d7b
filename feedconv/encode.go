package feedconv

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/xml"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// EncodeAtom writes a feed as an Atom document (RFC 4287). Reading the document
// back with [Parse] returns the same entries.
//
// The caller must set Links: a published feed should have one with Rel "self". Elements that Atom
// requires and the feed lacks are filled in: the time of the newest entry, or 1970, for dates; the
// title for the author; the link or a digest for the id. The clock is not used, so equal feeds
// produce equal documents.
//
// A source has no link to its page: readers take each alternate link in an entry for the entry's.
//
// Extensions are written unchanged. Extensions that Parse would read as elements of the format, or
// into a field, are omitted. EncodeAtom fails if w fails, if the name of an extension or attribute
// is not an XML name, or if an extension or attribute of the feed or an entry has no namespace.
func EncodeAtom(w io.Writer, f *Feed) error {
	return Encode(w, Atom10, f, nil)
}

// EncodeRSS writes a feed as an RSS 2.0 document. It works as [EncodeAtom], but RSS holds less:
// content and summary are HTML, dates are in whole seconds, and authors have names, the first one
// also an address. Entries have no [Link]: many readers ignore namespaces, and would take it for
// the link of the item. Content, summary and the description of the feed are escaped as HTML; a title
// is so only if [Parse] would read it as
// markup. Names and categories are text: readers that expect HTML there drop text that looks
// like a tag.
func EncodeRSS(w io.Writer, f *Feed) error {
	return Encode(w, RSS20, f, nil)
}

// EncodeJSON writes a feed as a JSON Feed 1.1. It works as [EncodeAtom], but content is HTML or
// text, and a summary is text. Fields without a member in JSON Feed go into extension members, such
// as "_source" and "_extensions", which Parse reads. EncodeJSON fails if w fails.
func EncodeJSON(w io.Writer, f *Feed) error {
	return Encode(w, JSONFeed, f, nil)
}

// xmlWriter writes elements.
type xmlWriter struct {
	w       *bytes.Buffer
	depth   int
	atom    bool      // the format
	updated time.Time // time of the feed
	err     error     // the first

	// prefixes are by namespace. declared are the declarations of the root, names and values in
	// turn.
	prefixes map[string]string
	taken    map[string]bool
	declared []string
}

func newXMLWriter(w *bytes.Buffer, atom bool) *xmlWriter {
	x := &xmlWriter{w: w, atom: atom, prefixes: map[string]string{}, taken: map[string]bool{}}
	if !atom {
		x.use("atom", vocab.Atom10.URI())
		x.use("content", vocab.Content.URI())
		x.use("dc", vocab.DC.URI())
		x.use("dcterms", vocab.DCTerms.URI())
	}
	x.use("media", vocab.Media.URI())
	x.use("fh", vocab.FH.URI())
	return x
}

func (x *xmlWriter) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

// open writes a start tag; attributes are names and values in turn, and those
// with an empty value are left out.
func (x *xmlWriter) open(name string, attributes ...string) {
	x.openWith(name, nil, attributes...)
}

func (x *xmlWriter) close(name string) {
	x.depth--
	x.indent()
	x.w.WriteString("</" + name + ">\n")
}

// text writes an element with text, or nothing if the text is empty.
func (x *xmlWriter) text(name, value string, attributes ...string) {
	if value != "" {
		x.must(name, value, attributes...)
	}
}

// must writes an element that the format requires, even if it is empty.
func (x *xmlWriter) must(name, value string, attributes ...string) {
	x.raw(name, escaped(value), attributes...)
}

// raw is like must, for a value that is already XML.
func (x *xmlWriter) raw(name, value string, attributes ...string) {
	x.start(name, attributes)
	x.w.WriteByte('>')
	x.w.WriteString(value)
	x.w.WriteString("</" + name + ">\n")
}

// empty writes an element that has attributes only.
func (x *xmlWriter) empty(name string, attributes ...string) {
	x.start(name, attributes)
	x.w.WriteString("/>\n")
}

func (x *xmlWriter) start(name string, attributes []string) {
	x.indent()
	x.w.WriteString("<" + name)
	for i := 0; i+1 < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			x.attribute(attributes[i], attributes[i+1])
		}
	}
}

func (x *xmlWriter) attribute(name, value string) {
	x.w.WriteString(" " + name + `="`)
	attributeEscapes.WriteString(x.w, strings.Map(xmltext.Writable, value))
	x.w.WriteByte('"')
}

func (x *xmlWriter) indent() {
	for range x.depth {
		x.w.WriteString("  ")
	}
}

// escaped returns text for an element. It omits characters that XML does not allow, and carriage returns, which a
// parser would not return.
func escaped(s string) string { return textEscapes.Replace(strings.Map(xmltext.Writable, s)) }

// textEscapes has ]]> by XML 1.0, section 2.4, and attributeEscapes tabs and newlines, which a parser
// would turn into spaces in an attribute.
var (
	textEscapes      = strings.NewReplacer("&", "&amp;", "<", "&lt;", "]]>", "]]&gt;", "\r", "")
	attributeEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "\n", "&#10;", "\t", "&#9;",
		"\r", "")
)

// newest returns the time of the feed: its own, or that of its newest entry.
func newest(f *Feed, s *survey) time.Time {
	for _, t := range []time.Time{f.Updated, f.PubDate, s.newest} {
		if !t.IsZero() {
			return t.UTC()
		}
	}
	return time.Unix(0, 0).UTC()
}

// linkOf returns the feed's first link of a relation.
func linkOf(f *Feed, rel string) string {
	for _, l := range f.Links {
		if l.Rel == rel {
			return l.URL
		}
	}
	return ""
}

// feed writes the head of a feed, some of whose entries may have no author.
func (x *xmlWriter) feed(f *Feed, nameless bool) {
	x.w.WriteString(xml.Header)
	x.openWith("feed", f.Attributes, append([]string{"xmlns", "http://www.w3.org/2005/Atom", "xml:lang", f.Language},
		x.declared...)...)
	id := cmp.Or(f.ID, linkOf(f, "self"), f.Link)
	if id == "" {
		id = (&draft{entry: Entry{Title: f.Title}}).digest()
	}
	x.must("id", id)
	x.must("title", f.Title, "type", "text")
	x.text("subtitle", f.Description, "type", "text")
	x.must("updated", x.updated.Format(time.RFC3339Nano))
	x.persons("author", f.Authors...)
	if len(f.Authors) == 0 && nameless {
		x.persons("author", Person{Name: cmp.Or(f.Title, "unknown")})
	}
	if linkOf(f, "alternate") == "" {
		x.link("alternate", f.Link)
	}
	x.links("link", f.Links)
	x.terms(f.Categories, nil)
	if g := f.Generator; g != (Generator{}) {
		x.must("generator", g.Name, "uri", g.URL, "version", g.Version)
	}
	x.text("logo", f.Image)
	x.text("rights", f.Copyright, "type", "text")
	x.history(f)
	x.extensions(f.Extensions, vocab.OfFeed)
}

// history writes the elements of RFC 5005.
func (x *xmlWriter) history(f *Feed) {
	if f.Complete {
		x.empty("fh:complete")
	}
	if f.Archive {
		x.empty("fh:archive")
	}
}

// persons writes elements of Atom.
func (x *xmlWriter) persons(name string, list ...Person) {
	for _, p := range list {
		x.open(name)
		x.must("name", cmp.Or(p.Name, p.Email, p.URL))
		x.text("email", p.Email)
		x.text("uri", p.URL)
		x.close(name)
	}
}

// terms writes Atom categories, with scheme and label if they are known.
func (x *xmlWriter) terms(categories []string, known []Category) {
	for _, name := range categories {
		c := termOf(name, known)
		if c.Term != "" {
			c.Label = cmp.Or(c.Label, name)
		}
		x.empty("category", "term", cmp.Or(c.Term, name), "scheme", c.Scheme, "label", c.Label)
	}
}

// termOf returns the category of a name from known.
func termOf(name string, known []Category) Category {
	if i := slices.IndexFunc(known, func(c Category) bool { return c.Name == name }); i >= 0 {
		return known[i]
	}
	return Category{Name: name}
}

// link writes a link of Atom, if there is one.
func (x *xmlWriter) link(rel, href string, attributes ...string) {
	if href != "" {
		x.empty("link", append([]string{"rel", rel, "href", href}, attributes...)...)
	}
}

// links writes links of Atom.
func (x *xmlWriter) links(name string, list []Link) {
	for _, l := range list {
		x.empty(name, "rel", l.Rel, "href", l.URL, "type", l.Type, "title", l.Title)
	}
}

// creators writes authors in the form of RSS: the name of each, and the address of the first one in
// an element that RSS allows once. Readers without namespaces would take elements of Atom for it.
func (x *xmlWriter) creators(address string, list []Person) {
	for i, p := range list {
		if i == 0 && p.Email != "" {
			x.must(address, strings.TrimSuffix(p.Email+" ("+p.Name+")", " ()"))
		}
		x.text("dc:creator", cmp.Or(p.Name, p.Email, p.URL))
	}
}

// rssTitle returns a title for RSS, where most readers take it for text. A title that we would take
// for markup is escaped as HTML.
func rssTitle(s string) string {
	if titleText(s) == oneLine(s) {
		return s
	}
	return markup.EscapeText(s)
}

// title writes the title of an entry or a source, which Atom requires.
func (x *xmlWriter) title(s string) {
	if s == "" {
		x.empty("title")
	} else {
		x.must("title", s, "type", "text")
	}
}

func (x *xmlWriter) atomEntry(e *Entry) {
	x.openWith("entry", e.Attributes, "xml:lang", e.Language)
	x.must("id", e.ID)
	x.title(e.Title)
	updated := e.Updated
	if updated.IsZero() {
		updated = e.PubDate
	}
	if updated.IsZero() {
		updated = x.updated
	}
	x.must("updated", updated.UTC().Format(time.RFC3339Nano))
	if !e.PubDate.IsZero() {
		x.must("published", e.PubDate.UTC().Format(time.RFC3339Nano))
	}
	x.link("alternate", e.Link)
	for _, enc := range e.Enclosures {
		x.empty("link", "rel", "enclosure", "href", enc.URL, "type", enc.Type, "length", size(enc, ""))
	}
	x.link("replies", e.Comments, "type", markup.TypeHTML)
	x.links("link", e.Links)
	x.repliesTo(e)
	x.persons("author", e.Authors...)
	x.persons("contributor", e.Contributors...)
	x.terms(e.Categories, e.Terms)
	x.text("rights", e.Rights, "type", "text")
	if e.Image != "" {
		x.empty("media:thumbnail", "url", e.Image)
	}
	if e.Summary != "" {
		x.atomText("summary", e.Summary, e.SummaryType)
	}
	if e.Content != "" || e.Link == "" { // RFC 4287, section 4.1.2: one of the two must be there
		x.atomText("content", e.Content, e.Type)
	}
	if src := e.Source; src != nil {
		x.open("source")
		x.text("id", src.ID)
		x.title(src.Title)
		x.text("subtitle", src.Description, "type", "text")
		if !src.Updated.IsZero() {
			updated = src.Updated
		}
		x.must("updated", updated.UTC().Format(time.RFC3339Nano))
		x.persons("author", src.Authors...)
		x.link("self", src.URL)
		x.text("logo", src.Image)
		x.text("rights", src.Copyright, "type", "text")
		x.close("source")
	}
	x.podcast(e)
	x.extensions(e.Extensions, vocab.OfEntry)
	x.close("entry")
}

// isPodcast reports whether the iTunes module is used for an entry.
func (e *Entry) isPodcast() bool {
	return e.Duration > 0 || e.Episode > 0 || e.Season > 0 || slices.ContainsFunc(e.Extensions,
		func(x Extension) bool { return x.Namespace == vocab.ITunes.URI() })
}

// itunes writes the authors and the image in the iTunes module, from which podcast programs read them.
func (x *xmlWriter) itunes(authors []Person, image string) {
	prefix := x.prefixes[vocab.ITunes.URI()]
	var list []string
	for _, p := range authors {
		list = append(list, cmp.Or(p.Name, p.Email, p.URL))
	}
	x.text(prefix+":author", strings.Join(list, ", "))
	if image != "" {
		x.empty(prefix+":image", "href", image)
	}
}

// repliesTo writes the elements of RFC 4685.
func (x *xmlWriter) repliesTo(e *Entry) {
	for _, r := range e.InReplyTo {
		x.empty(x.prefixes[vocab.Thr.URI()]+":in-reply-to", "ref", r.Ref, "href", r.URL, "type", r.Type, "source",
			r.Source)
	}
}

// podcast writes the iTunes elements of an entry.
func (x *xmlWriter) podcast(e *Entry) {
	for _, v := range []struct {
		name string
		n    int
	}{{"duration", int(e.Duration / time.Second)}, {"episode", e.Episode}, {"season", e.Season}} {
		if v.n > 0 {
			x.must(x.prefixes[vocab.ITunes.URI()]+":"+v.name, strconv.Itoa(v.n))
		}
	}
	if e.isPodcast() {
		x.itunes(e.Authors, e.Image)
	}
}

// size returns the length of an enclosure, or unknown if the length is not known.
func size(e Enclosure, unknown string) string {
	if e.Length < 0 {
		return unknown
	}
	return strconv.FormatInt(e.Length, 10)
}

// atomText writes a text construct or content.
func (x *xmlWriter) atomText(name, value, contentType string) {
	t := textfile.BaseType(contentType)
	switch {
	case t == "" || t == markup.TypePlain:
		x.must(name, value, "type", "text")
	case t == markup.TypeHTML:
		x.must(name, value, "type", "html")
	case t == markup.TypeXHTML:
		const math, svg = `<math xmlns="http://www.w3.org/1998/Math/MathML"`, `<svg xmlns="http://www.w3.org/2000/svg"`
		inside := strings.NewReplacer("<math>", math+">", "<math ", math+" ", "<svg>", svg+">", "<svg ",
			svg+" ").Replace(value)
		if isWellFormed(inside) && !strings.Contains(inside, "<foreignObject") { // HTML in SVG
			x.raw(name, `<div xmlns="http://www.w3.org/1999/xhtml">`+inside+`</div>`, "type", "xhtml")
		} else {
			x.must(name, value, "type", "html")
		}
	case name != "content":
		x.must(name, PlainText(value, t), "type", "text")
	case strings.HasPrefix(t, "text/"):
		x.must(name, value, "type", t)
	case strings.HasSuffix(t, "xml") && isWellFormed(value):
		x.raw(name, value, "type", t)
	case strings.HasSuffix(t, "xml"):
		x.must(name, value, "type", "text")
	default:
		x.must(name, base64.StdEncoding.EncodeToString([]byte(value)), "type", t)
	}
}

// isWellFormed reports whether s can be written inside an XML element unchanged: every tag is
// closed, no attribute is repeated, and all prefixes and entities are declared in s.
func isWellFormed(s string) bool {
	d := xml.NewDecoder(strings.NewReader("<div>" + s + "</div>"))
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			return depth == 0
		}
		if err != nil {
			return false
		}
		switch t := token.(type) {
		case xml.StartElement:
			depth++
			// The decoder leaves prefixes that are not declared as they are.
			prefixed := func(n xml.Name) bool {
				return n.Space != "" && n.Space != "xmlns" &&
					!strings.Contains(n.Space, ":")
			}
			for i, a := range t.Attr {
				if prefixed(a.Name) || slices.ContainsFunc(t.Attr[:i],
					func(b xml.Attr) bool { return b.Name == a.Name }) {
					return false
				}
			}
			if prefixed(t.Name) {
				return false
			}
		case xml.EndElement:
			if depth--; depth == 0 && d.InputOffset() < int64(len(s))+11 {
				return false
			}
		case xml.ProcInst, xml.Directive:
			return false
		}
	}
}

// rss writes the head of a feed.
func (x *xmlWriter) rss(f *Feed) {
	x.w.WriteString(xml.Header)
	x.open("rss", append([]string{"version", "2.0"}, x.declared...)...)
	x.openWith("channel", f.Attributes)
	x.must("title", rssTitle(f.Title))
	x.must("link", cmp.Or(f.Link, linkOf(f, "self")))
	x.must("description", markup.EscapeText(f.Description))
	x.links("atom:link", f.Links)
	x.text("language", f.Language)
	x.text("copyright", f.Copyright)
	x.text("generator", f.Generator.String())
	x.rssDate("pubDate", f.PubDate)
	x.rssDate("lastBuildDate", f.Updated)
	x.creators("managingEditor", f.Authors)
	for _, name := range f.Categories {
		x.text("category", name)
	}
	x.channelExtras(f)
	if x.prefixes[vocab.ITunes.URI()] != "" { // it is a podcast
		x.itunes(f.Authors, f.Image)
	}
	x.history(f)
	x.extensions(f.Extensions, vocab.OfFeed)
}

// channelExtras writes ttl, image, cloud, skipHours and skipDays.
func (x *xmlWriter) channelExtras(f *Feed) {
	if f.TTL > 0 {
		x.must("ttl", strconv.Itoa(int(f.TTL/time.Minute)))
	}
	if f.Image != "" {
		x.open("image")
		x.must("url", f.Image)
		x.must("title", rssTitle(f.Title))
		x.must("link", cmp.Or(f.Link, linkOf(f, "self")))
		x.close("image")
	}
	for _, c := range f.Clouds {
		x.start("cloud", []string{"domain", c.Domain, "port", strconv.Itoa(c.Port), "path", c.Path})
		// An empty procedure is written: REST clouds have one by the walkthrough.
		x.attribute("registerProcedure", c.RegisterProcedure)
		x.attribute("protocol", c.Protocol)
		x.w.WriteString("/>\n")
	}
	if len(f.SkipHours) > 0 {
		x.open("skipHours")
		for _, h := range f.SkipHours {
			x.must("hour", strconv.Itoa(h))
		}
		x.close("skipHours")
	}
	if len(f.SkipDays) > 0 {
		x.open("skipDays")
		for _, d := range f.SkipDays {
			x.must("day", d.String())
		}
		x.close("skipDays")
	}
}

// rssDate writes a date with the zone GMT, a name that RFC 822 defines.
func (x *xmlWriter) rssDate(name string, t time.Time) {
	if !t.IsZero() {
		x.must(name, t.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	}
}

func (x *xmlWriter) rssItem(e *Entry) {
	name, own, others := e.item(x.prefixes[vocab.Podcast.URI()])
	x.openWith(name, others, own...)
	x.text("title", rssTitle(e.Title))
	x.text("link", e.Link)
	permalink := "false"
	if e.ID == e.Link {
		permalink = "true"
	}
	x.must("guid", e.ID, "isPermaLink", permalink)
	x.rssDate("pubDate", e.PubDate)
	if !e.Updated.IsZero() && !e.Updated.Equal(e.PubDate) {
		x.must("dcterms:modified", e.Updated.UTC().Format(time.RFC3339Nano))
	}
	x.creators("author", e.Authors)
	for _, name := range e.Categories {
		x.text("category", name, "domain", termOf(name, e.Terms).Scheme)
	}
	content := markup.AsHTML(e.Content, e.Type)
	if e.Summary == "" {
		x.must("description", content)
	} else {
		x.must("description", markup.AsHTML(e.Summary, e.SummaryType))
		x.must("content:encoded", content)
	}
	for _, enc := range e.Enclosures {
		x.empty("enclosure", "url", enc.URL, "length", size(enc, "0"), "type", cmp.Or(enc.Type, typeUnknown))
	}
	x.text("comments", e.Comments)
	x.repliesTo(e)
	x.text("dc:rights", e.Rights)
	if e.Image != "" {
		x.empty("media:thumbnail", "url", e.Image)
	}
	x.text("dc:language", e.Language)
	if e.Source != nil && e.Source.URL != "" {
		x.must("source", rssTitle(e.Source.Title), "url", e.Source.URL)
	}
	for _, p := range e.Contributors {
		x.text("dc:contributor", p.String())
	}
	x.podcast(e)
	x.extensions(e.Extensions, vocab.OfEntry)
	x.close(name)
}

// item returns the name of the element of an entry, and its attributes: its own as names and values in turn, and
// those of other vocabularies. An entry with a status in the podcast namespace, which has the prefix, is a
// podcast:liveItem.
func (e *Entry) item(prefix string) (name string, own []string, others []Attribute) {
	name = "item"
	for _, a := range e.Attributes {
		if a.Namespace != vocab.Podcast.URI() {
			others = append(others, a)
			continue
		}
		if own = append(own, a.Name, a.Value); a.Name == "status" && prefix != "" {
			name = prefix + ":liveItem"
		}
	}
	if name == "item" {
		return name, nil, e.Attributes
	}
	return name, own, others
}

// typeUnknown is the type of an enclosure of unknown type, as RSS requires one.
const typeUnknown = "application/octet-stream"
