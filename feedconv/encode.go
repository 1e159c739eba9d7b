package feedconv

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Encode writes a feed as a document of a format: [Atom10], [RSS20] or
// [JSONFeed]; any other is an error. Reading the document back with [Parse]
// gives the same entries, as far as the format has a place for what they hold:
// RSS and JSON Feed know HTML and text only, RSS dates are in whole seconds.
//
// The caller sees to Links: a published feed should have one of Rel "self".
// Where Atom demands what the feed does not have, it is filled in: the time
// of the newest entry, or 1970, for dates; the title for the author; the
// link or a digest for the id. Nothing is taken from the clock, so equal feeds
// give equal documents.
func Encode(w io.Writer, f *Feed, format Format) error {
	b := bufio.NewWriter(w)
	var err error
	switch format {
	case Atom10:
		err = encodeAtom(&xmlWriter{w: b}, f)
	case RSS20:
		err = encodeRSS(&xmlWriter{w: b}, f)
	case JSONFeed:
		err = encodeJSON(b, f)
	default:
		return fmt.Errorf("feeds cannot be written as %q: only as %s, %s and %s", format, Atom10, RSS20, JSONFeed)
	}
	return errors.Join(err, b.Flush())
}

// xmlWriter writes elements. Its errors are those of the bufio.Writer, which
// keeps the first until Flush.
type xmlWriter struct {
	w     *bufio.Writer
	depth int
}

// open writes a start tag; attributes are names and values in turn, and those
// with an empty value are left out.
func (x *xmlWriter) open(name string, attributes ...string) {
	x.start(name, attributes)
	x.w.WriteString(">\n")
	x.depth++
}

func (x *xmlWriter) close(name string) {
	x.depth--
	x.indent()
	x.w.WriteString("</" + name + ">\n")
}

// text writes an element with text, or nothing when there is none.
func (x *xmlWriter) text(name, value string, attributes ...string) {
	if value != "" {
		x.must(name, value, attributes...)
	}
}

// must writes an element that a format demands, empty or not.
func (x *xmlWriter) must(name, value string, attributes ...string) {
	x.start(name, attributes)
	x.w.WriteByte('>')
	x.escape(value)
	x.w.WriteString("</" + name + ">\n")
}

// raw is must for a value that is XML already.
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
			x.w.WriteString(" " + attributes[i] + `="`)
			x.escape(attributes[i+1])
			x.w.WriteByte('"')
		}
	}
}

func (x *xmlWriter) indent() {
	for range x.depth {
		x.w.WriteString("  ")
	}
}

// escape writes text. Characters that XML does not have are left out, and
// carriage returns with them, since a parser would not give them back.
func (x *xmlWriter) escape(s string) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '&':
			x.w.WriteString("&amp;")
		case r == '<':
			x.w.WriteString("&lt;")
		case r == '>':
			x.w.WriteString("&gt;")
		case r == '"':
			x.w.WriteString("&quot;")
		case r == utf8.RuneError && n == 1, r == 0xFFFE, r == 0xFFFF:
			x.w.WriteRune(utf8.RuneError)
		case r >= 0x20 || r == '\n' || r == '\t':
			x.w.WriteString(s[i : i+n])
		}
		i += n
	}
}

// newest gives the time of the feed: its own, or that of its newest entry.
func newest(f *Feed) time.Time {
	t := f.Updated
	if t.IsZero() {
		t = f.Published
	}
	if t.IsZero() {
		for i := range f.Entries {
			if u := f.Entries[i].Updated; u.After(t) {
				t = u
			}
		}
	}
	if t.IsZero() {
		t = time.Unix(0, 0)
	}
	return t.UTC()
}

// linkOf gives the feed's first link of a relation.
func linkOf(f *Feed, rel string) string {
	for _, l := range f.Links {
		if l.Rel == rel {
			return l.Href
		}
	}
	return ""
}

func encodeAtom(x *xmlWriter, f *Feed) error {
	x.w.WriteString(xml.Header)
	x.open("feed", "xmlns", "http://www.w3.org/2005/Atom", "xmlns:media", "http://search.yahoo.com/mrss/",
		"xmlns:fh", historyNamespace, "xml:lang", f.Language)
	id := firstNonEmpty(f.ID, linkOf(f, "self"), f.Link)
	if id == "" {
		id = (&draft{entry: Entry{Title: f.Title}}).digest()
	}
	x.must("id", id)
	x.must("title", f.Title, "type", "text")
	x.text("subtitle", f.Description, "type", "text")
	updated := newest(f)
	x.must("updated", updated.Format(time.RFC3339Nano))
	for _, p := range f.Authors {
		x.person(p)
	}
	if len(f.Authors) == 0 && lacksAuthor(f) {
		x.person(Person{Name: firstNonEmpty(f.Title, "unknown")})
	}
	if f.Link != "" && linkOf(f, "alternate") == "" {
		x.empty("link", "rel", "alternate", "href", f.Link)
	}
	for _, l := range f.Links {
		x.empty("link", "rel", l.Rel, "href", l.Href, "type", l.Type, "title", l.Title)
	}
	for _, c := range f.Categories {
		x.empty("category", "term", c)
	}
	x.text("generator", f.Generator)
	x.text("logo", f.Image)
	x.text("rights", f.Copyright, "type", "text")
	x.history(f)
	for i := range f.Entries {
		x.atomEntry(&f.Entries[i], updated)
	}
	x.close("feed")
	return nil
}

const historyNamespace = "http://purl.org/syndication/history/1.0"

// history writes the marks of RFC 5005.
func (x *xmlWriter) history(f *Feed) {
	if f.Complete {
		x.empty("fh:complete")
	}
	if f.Archive {
		x.empty("fh:archive")
	}
}

// lacksAuthor tells whether Atom demands an author of the feed.
func lacksAuthor(f *Feed) bool {
	for i := range f.Entries {
		if len(f.Entries[i].Authors) == 0 {
			return true
		}
	}
	return len(f.Entries) == 0
}

func (x *xmlWriter) person(p Person) {
	x.open("author")
	x.must("name", firstNonEmpty(p.Name, p.Email, p.URL))
	x.text("email", p.Email)
	x.text("uri", p.URL)
	x.close("author")
}

func (x *xmlWriter) atomEntry(e *Entry, feedUpdated time.Time) {
	x.open("entry", "xml:lang", e.Language)
	x.must("id", e.ID)
	x.must("title", e.Title, "type", "text")
	updated := e.Updated
	if updated.IsZero() {
		updated = e.Published
	}
	if updated.IsZero() {
		updated = feedUpdated
	}
	x.must("updated", updated.UTC().Format(time.RFC3339Nano))
	if !e.Published.IsZero() {
		x.must("published", e.Published.UTC().Format(time.RFC3339Nano))
	}
	if e.Link != "" {
		x.empty("link", "rel", "alternate", "href", e.Link)
	}
	for _, enc := range e.Enclosures {
		x.empty("link", "rel", "enclosure", "href", enc.URL, "type", enc.Type, "length", size(enc, ""))
	}
	if e.Comments != "" {
		x.empty("link", "rel", "replies", "href", e.Comments, "type", typeHTML)
	}
	for _, p := range e.Authors {
		x.person(p)
	}
	for _, c := range e.Categories {
		x.empty("category", "term", c)
	}
	if e.Image != "" {
		x.empty("media:thumbnail", "url", e.Image)
	}
	if e.Summary != "" {
		x.atomText("summary", e.Summary, e.SummaryType)
	}
	if e.Content != "" || e.Link == "" { // RFC 4287, section 4.1.2: one of the two must be there
		x.atomText("content", e.Content, e.ContentType)
	}
	if src := e.Source; src != nil {
		x.open("source")
		x.text("id", src.ID)
		x.must("title", src.Title, "type", "text")
		if src.Updated.IsZero() {
			src = &Source{ID: src.ID, Title: src.Title, URL: src.URL, Link: src.Link, Updated: updated}
		}
		x.must("updated", src.Updated.UTC().Format(time.RFC3339Nano))
		if src.Link != "" {
			x.empty("link", "rel", "alternate", "href", src.Link)
		}
		if src.URL != "" {
			x.empty("link", "rel", "self", "href", src.URL)
		}
		x.close("source")
	}
	x.close("entry")
}

// size writes a length, or what stands for one that is not known.
func size(e Enclosure, unknown string) string {
	if e.Length < 0 {
		return unknown
	}
	return strconv.FormatInt(e.Length, 10)
}

// atomText writes a text construct or content.
func (x *xmlWriter) atomText(name, value, contentType string) {
	t := mimeType(contentType)
	switch {
	case t == "" || t == typePlain:
		x.must(name, value, "type", "text")
	case t == typeHTML:
		x.must(name, value, "type", "html")
	case t == typeXHTML:
		if isWellFormed(value) {
			x.raw(name, `<div xmlns="http://www.w3.org/1999/xhtml">`+value+`</div>`, "type", "xhtml")
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

// isWellFormed tells XML that can stand inside an element as it is: every tag
// is closed, and no prefix or entity is used that only its own document knew.
func isWellFormed(s string) bool {
	d := xml.NewDecoder(strings.NewReader("<div>" + s + "</div>"))
	depth := 0
	for {
		token, err := d.RawToken()
		if err == io.EOF {
			return depth == 0
		}
		if err != nil {
			return false
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; t.Name.Space != "" {
				return false
			}
			for _, a := range t.Attr {
				if a.Name.Space != "" && a.Name.Space != "xml" {
					return false
				}
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

func encodeRSS(x *xmlWriter, f *Feed) error {
	x.w.WriteString(xml.Header)
	x.open("rss", "version", "2.0", "xmlns:atom", "http://www.w3.org/2005/Atom",
		"xmlns:content", "http://purl.org/rss/1.0/modules/content/", "xmlns:dc", "http://purl.org/dc/elements/1.1/",
		"xmlns:dcterms", "http://purl.org/dc/terms/", "xmlns:media", "http://search.yahoo.com/mrss/",
		"xmlns:fh", historyNamespace)
	x.open("channel")
	x.must("title", html.EscapeString(f.Title))
	x.must("link", firstNonEmpty(f.Link, linkOf(f, "self")))
	x.must("description", html.EscapeString(f.Description))
	for _, l := range f.Links {
		x.empty("atom:link", "rel", l.Rel, "href", l.Href, "type", l.Type, "title", l.Title)
	}
	x.text("language", f.Language)
	x.text("copyright", html.EscapeString(f.Copyright))
	x.text("generator", html.EscapeString(f.Generator))
	x.rssDate("pubDate", f.Published)
	x.rssDate("lastBuildDate", f.Updated)
	for _, p := range f.Authors {
		x.text("dc:creator", html.EscapeString(p.String()))
	}
	for _, c := range f.Categories {
		x.text("category", html.EscapeString(c))
	}
	x.channelExtras(f)
	x.history(f)
	for i := range f.Entries {
		x.rssItem(&f.Entries[i])
	}
	x.close("channel")
	x.close("rss")
	return nil
}

// channelExtras writes what tells a reader when to come back, and the image.
func (x *xmlWriter) channelExtras(f *Feed) {
	if f.TTL > 0 {
		x.must("ttl", strconv.Itoa(int(f.TTL/time.Minute)))
	}
	if f.Image != "" {
		x.open("image")
		x.must("url", f.Image)
		x.must("title", html.EscapeString(f.Title))
		x.must("link", firstNonEmpty(f.Link, linkOf(f, "self")))
		x.close("image")
	}
	for _, c := range f.Clouds {
		x.start("cloud", []string{"domain", c.Domain, "port", strconv.Itoa(c.Port), "path", c.Path})
		// An empty procedure is written: REST clouds have one by the walkthrough.
		x.w.WriteString(` registerProcedure="`)
		x.escape(c.RegisterProcedure)
		x.w.WriteString(`" protocol="`)
		x.escape(c.Protocol)
		x.w.WriteString("\"/>\n")
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

// rssDate writes a date with GMT for its zone, which RFC 822 has a name for.
func (x *xmlWriter) rssDate(name string, t time.Time) {
	if !t.IsZero() {
		x.must(name, t.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"))
	}
}

func (x *xmlWriter) rssItem(e *Entry) {
	x.open("item")
	// Readers take a title for HTML, so text is escaped for HTML first.
	x.text("title", html.EscapeString(e.Title))
	x.text("link", e.Link)
	permalink := "false"
	if e.ID == e.Link {
		permalink = "true"
	}
	x.must("guid", e.ID, "isPermaLink", permalink)
	x.rssDate("pubDate", e.Published)
	if !e.Updated.IsZero() && !e.Updated.Equal(e.Published) {
		x.must("dcterms:modified", e.Updated.UTC().Format(time.RFC3339Nano))
	}
	for _, p := range e.Authors {
		x.text("dc:creator", html.EscapeString(p.String()))
	}
	for _, c := range e.Categories {
		x.text("category", html.EscapeString(c))
	}
	content := asHTML(e.Content, e.ContentType)
	if e.Summary == "" {
		x.must("description", content)
	} else {
		x.must("description", asHTML(e.Summary, e.SummaryType))
		x.must("content:encoded", content)
	}
	for _, enc := range e.Enclosures {
		x.empty("enclosure", "url", enc.URL, "length", size(enc, "0"), "type", firstNonEmpty(enc.Type, typeUnknown))
	}
	x.text("comments", e.Comments)
	if e.Image != "" {
		x.empty("media:thumbnail", "url", e.Image)
	}
	x.text("dc:language", e.Language)
	if e.Source != nil && e.Source.URL != "" {
		x.must("source", html.EscapeString(e.Source.Title), "url", e.Source.URL)
	}
	x.close("item")
}

// typeUnknown is written where a format demands a type and none is known.
const typeUnknown = "application/octet-stream"

// asHTML gives text of any type as HTML.
func asHTML(s, contentType string) string {
	if isMarkup(contentType) {
		return s
	}
	return strings.ReplaceAll(html.EscapeString(s), "\n", "<br>\n")
}

// The JSON Feed 1.1 objects that are written.
type (
	jsonFeedOut struct {
		Version     string           `json:"version"`
		Title       string           `json:"title"`
		HomePageURL string           `json:"home_page_url,omitempty"`
		FeedURL     string           `json:"feed_url,omitempty"`
		Description string           `json:"description,omitempty"`
		NextURL     string           `json:"next_url,omitempty"`
		Icon        string           `json:"icon,omitempty"`
		Authors     []jsonAuthorOut  `json:"authors,omitempty"`
		Language    string           `json:"language,omitempty"`
		Expired     bool             `json:"expired,omitempty"`
		Hubs        []jsonHubOut     `json:"hubs,omitempty"`
		Items       []*jsonFeedEntry `json:"items"`
	}
	jsonAuthorOut struct {
		Name string `json:"name,omitempty"`
		URL  string `json:"url,omitempty"`
	}
	jsonHubOut struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	jsonFeedEntry struct {
		ID            string              `json:"id"`
		URL           string              `json:"url,omitempty"`
		Title         string              `json:"title,omitempty"`
		ContentHTML   *string             `json:"content_html,omitempty"`
		ContentText   *string             `json:"content_text,omitempty"`
		Summary       string              `json:"summary,omitempty"`
		Image         string              `json:"image,omitempty"`
		DatePublished string              `json:"date_published,omitempty"`
		DateModified  string              `json:"date_modified,omitempty"`
		Authors       []jsonAuthorOut     `json:"authors,omitempty"`
		Tags          []string            `json:"tags,omitempty"`
		Language      string              `json:"language,omitempty"`
		Attachments   []jsonAttachmentOut `json:"attachments,omitempty"`
		// An extension: the format has nothing for it (JSON Feed 1.1,
		// "Extensions").
		Source *jsonSourceOut `json:"_source,omitempty"`
	}
	jsonSourceOut struct {
		Title       string `json:"title,omitempty"`
		HomePageURL string `json:"home_page_url,omitempty"`
		FeedURL     string `json:"feed_url,omitempty"`
	}
	jsonAttachmentOut struct {
		URL  string `json:"url"`
		Type string `json:"mime_type"`
		Size int64  `json:"size_in_bytes,omitempty"`
	}
)

func encodeJSON(w io.Writer, f *Feed) error {
	out := jsonFeedOut{
		Version: "https://jsonfeed.org/version/1.1", Title: f.Title, HomePageURL: f.Link,
		FeedURL: linkOf(f, "self"), NextURL: linkOf(f, "next"), Description: f.Description,
		Icon: f.Image, Authors: jsonAuthors(f.Authors), Language: f.Language, Expired: f.Expired,
		Items: []*jsonFeedEntry{},
	}
	for _, l := range f.Links {
		if l.Rel == "hub" {
			out.Hubs = append(out.Hubs, jsonHubOut{Type: "WebSub", URL: l.Href})
		}
	}
	for _, c := range f.Clouds {
		if c.Protocol == "http-post" || c.Protocol == "https-post" {
			scheme := strings.TrimSuffix(c.Protocol, "-post")
			out.Hubs = append(out.Hubs, jsonHubOut{Type: "rssCloud", URL: scheme + "://" + c.Domain + ":" + strconv.Itoa(c.Port) + c.Path})
		}
	}
	for i := range f.Entries {
		out.Items = append(out.Items, jsonEntry(&f.Entries[i]))
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

// jsonAuthors gives authors the fields that JSON Feed has: an address goes
// into the URL.
func jsonAuthors(list []Person) []jsonAuthorOut {
	var out []jsonAuthorOut
	for _, p := range list {
		a := jsonAuthorOut{Name: p.Name, URL: p.URL}
		if a.URL == "" && p.Email != "" {
			a.URL = "mailto:" + p.Email
		}
		out = append(out, a)
	}
	return out
}

func jsonEntry(e *Entry) *jsonFeedEntry {
	out := &jsonFeedEntry{
		ID: e.ID, URL: e.Link, Title: e.Title, Summary: PlainText(e.Summary, e.SummaryType),
		Image: e.Image, Authors: jsonAuthors(e.Authors), Tags: e.Categories, Language: e.Language,
	}
	if isMarkup(e.ContentType) {
		out.ContentHTML = &e.Content
	} else {
		out.ContentText = &e.Content
	}
	if !e.Published.IsZero() {
		out.DatePublished = e.Published.UTC().Format(time.RFC3339Nano)
	}
	if !e.Updated.IsZero() && !e.Updated.Equal(e.Published) {
		out.DateModified = e.Updated.UTC().Format(time.RFC3339Nano)
	}
	if src := e.Source; src != nil {
		out.Source = &jsonSourceOut{Title: src.Title, HomePageURL: src.Link, FeedURL: src.URL}
	}
	for _, enc := range e.Enclosures {
		out.Attachments = append(out.Attachments, jsonAttachmentOut{
			URL: enc.URL, Type: firstNonEmpty(enc.Type, typeUnknown), Size: max(enc.Length, 0),
		})
	}
	return out
}
