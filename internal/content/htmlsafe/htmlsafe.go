// Package htmlsafe converts untrusted content to harmless and valid HTML, for pages and mail. The
// result has no scripts, styles or trackers, loads nothing, and cannot break out of the page.
//
// There are two barriers. bluemonday removes everything that is not allowed. The rest is parsed
// as a browser would, and written again: only elements and attributes that are named here, only
// where HTML allows them, with all text escaped. So every parser reads the result in the same
// way, and it is valid HTML. Only the spans of table cells are written as found, even if they overlap.
package htmlsafe

import (
	"bytes"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Options are the options of [Clean].
type Options struct {
	// Base is the base URL of relative links. If it is "", relative links become text.
	Base string
	// Heading is the level of the content's highest headings, 2 to 6; 0 means 2.
	Heading int
	// NoImages replaces each image by a link.
	NoImages bool
}

// Clean returns content of a MIME type as HTML, for an element with flow content such as article.
// Plain text keeps its lines. If the type is not text, the result is empty. The empty type means
// text/plain.
//
// Images have their true source ([htmltext.Shown]), are lazy and send no referrer. Tracking pixels
// are removed. Embedded players become links. MathML stays, without its attributes. Clean is safe for
// concurrent use. Its time is proportional to the length of the content
// times the depth of its elements. If elements are nested deeper than the parser's limit of 512,
// the content becomes text.
func Clean(content []byte, mimeType string, o Options) string {
	switch htmltext.KindOf(mimeType, content) {
	case htmltext.Binary:
		return ""
	case htmltext.Plain:
		return plain(string(content))
	}
	clean := policy().SanitizeBytes(htmltext.Shown(content))
	nodes, err := nethtml.ParseFragment(bytes.NewReader(clean),
		&nethtml.Node{Type: nethtml.ElementNode, DataAtom: atom.Body, Data: "body"})
	if err != nil {
		// The parser failed because the content is nested too deep. Show its text.
		return plain(htmltext.Text(content, mimeType))
	}
	w := &writer{o: o}
	if w.o.Heading == 0 {
		w.o.Heading = 2
	}
	if u, err := url.Parse(o.Base); err == nil && u.IsAbs() {
		w.base = u
	}
	w.top = w.highest(nodes)
	w.flow(nodes)
	return w.b.String()
}

// Text returns text as HTML: cleaned and escaped.
func Text(s string) string { return html.EscapeString(termsafe.Clean(s)) }

// plain returns plain text as HTML paragraphs.
func plain(text string) string {
	var b strings.Builder
	for para := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		if para = strings.Trim(para, "\n"); strings.TrimSpace(para) != "" {
			b.WriteString("<p>" + strings.ReplaceAll(Text(para), "\n", "<br>\n") + "</p>\n")
		}
	}
	return b.String()
}

// policy is the policy of bluemonday. It allows more elements than are written, since some are
// converted to others.
var policy = sync.OnceValue(func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("abbr", "acronym", "address", "article", "aside", "audio", "b", "bdi", "bdo", "big", "blockquote",
		"br", "caption", "center",
		"cite", "code", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "footer", "h1",
		"h2", "h3", "h4", "h5", "h6",
		"header", "hr", "i", "ins", "kbd", "li", "main", "mark", "nav", "ol", "p", "picture", "pre", "q", "rp", "rt",
		"ruby", "s", "samp", "section", "small",
		"span", "strike", "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "time",
		"tr", "tt", "u", "ul", "var", "video", "wbr")
	p.AllowNoAttrs().OnElements(strings.Fields(mathElements)...)
	p.AllowURLSchemes("http", "https", "mailto")
	p.AllowRelativeURLs(true)
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("src", "alt", "width", "height").OnElements("img")
	p.AllowAttrs("src").OnElements("iframe", "audio", "video", "source")
	p.AllowAttrs("colspan", "rowspan").OnElements("td", "th")
	p.AllowAttrs("start", "reversed").OnElements("ol")
	p.AllowAttrs("value").OnElements("li")
	p.AllowAttrs("title").OnElements("abbr", "acronym", "dfn", "img")
	p.AllowAttrs("dir").Globally()
	return p
})

// mathElements are the elements of MathML that are written.
const mathElements = "math merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none semantics"

// writer writes a tree as clean HTML.
type writer struct {
	b    strings.Builder
	o    Options
	base *url.URL
	top  int // level of the highest heading
	link int // number of enclosing links
}

// inline maps phrasing elements to the written ones. "" means that only the children are written.
var inline = map[atom.Atom]string{
	atom.Abbr: "abbr", atom.Acronym: "abbr", atom.B: "b", atom.Bdi: "bdi", atom.Bdo: "bdo", atom.Big: "",
	atom.Cite: "cite", atom.Code: "code",
	atom.Del: "del", atom.Dfn: "dfn", atom.Em: "em", atom.I: "i", atom.Ins: "ins", atom.Kbd: "kbd", atom.Mark: "mark",
	atom.Q: "q", atom.S: "s",
	atom.Samp: "samp", atom.Small: "small", atom.Span: "", atom.Strike: "s", atom.Strong: "strong", atom.Sub: "sub",
	atom.Sup:  "sup",
	atom.Time: "", atom.Tt: "code", atom.U: "u", atom.Var: "var", atom.Picture: "", atom.Ruby: "",
}

// isInline reports whether an element may be in a paragraph. A link that contains blocks may not,
// nor may other elements that contain blocks by mistake.
func isInline(n *nethtml.Node) bool {
	switch n.DataAtom {
	case atom.A, atom.Br, atom.Img, atom.Wbr, atom.Rp, atom.Rt, atom.Iframe, atom.Audio, atom.Video, atom.Source:
		return true
	}
	_, ok := inline[n.DataAtom]
	return ok || n.Namespace == "math"
}

// hasBlocks reports whether an element contains a block.
func hasBlocks(n *nethtml.Node) bool {
	for d := range n.Descendants() {
		if d.Type == nethtml.ElementNode && !isInline(d) {
			return true
		}
	}
	return false
}

// empty reports whether an element has nothing visible.
func (w *writer) empty(n *nethtml.Node) bool {
	for d := range n.Descendants() {
		switch {
		case d.Type == nethtml.TextNode && strings.TrimSpace(d.Data) != "":
			return false
		case d.Type == nethtml.ElementNode:
			switch d.DataAtom {
			case atom.Img:
				if src, ok := w.visible(d); ok && (src != "" || strings.TrimSpace(attr(d, "alt")) != "") {
					return false
				}
			case atom.Hr, atom.Iframe, atom.Audio, atom.Video:
				return false
			}
		}
	}
	return true
}

func children(n *nethtml.Node) []*nethtml.Node { return slices.Collect(n.ChildNodes()) }

// highest returns the level of the highest heading. Headings are moved by it, so that no level is
// skipped.
func (w *writer) highest(nodes []*nethtml.Node) int {
	top := 6
	for _, n := range nodes {
		top = min(top, level(n))
		for d := range n.Descendants() {
			top = min(top, level(d))
		}
	}
	return top
}

func level(n *nethtml.Node) int {
	if n.Type == nethtml.ElementNode && len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
		return int(n.Data[1] - '0')
	}
	return 7
}

// flow writes nodes where blocks are allowed.
func (w *writer) flow(nodes []*nethtml.Node) {
	for _, n := range nodes {
		switch {
		case n.Type == nethtml.TextNode:
			w.text(n.Data)
		case n.Type != nethtml.ElementNode:
		case !isInline(n):
			w.block(n)
		case n.DataAtom == atom.A && w.link == 0 && hasBlocks(n):
			w.anchor(n, w.flow)
		case hasBlocks(n):
			w.flow(children(n)) // an inline element around blocks, by mistake
		default:
			w.inline(n)
		}
	}
}

// phrasing writes nodes where no blocks are allowed.
func (w *writer) phrasing(nodes []*nethtml.Node) {
	for _, n := range nodes {
		switch {
		case n.Type == nethtml.TextNode:
			w.text(n.Data)
		case n.Type != nethtml.ElementNode:
		case isInline(n):
			w.inline(n)
		case n.DataAtom == atom.Hr:
			w.b.WriteString("<br>")
		default:
			w.phrasing(children(n))
			w.b.WriteString("<br>")
		}
	}
}

func (w *writer) text(s string) { w.b.WriteString(Text(s)) }

// element writes an element. inside writes its children.
func (w *writer) element(name, attributes string, n *nethtml.Node, inside func([]*nethtml.Node)) {
	w.b.WriteString("<" + name + direction(n) + attributes + ">")
	inside(children(n))
	w.b.WriteString("</" + name + ">")
}

// inline writes a phrasing element.
func (w *writer) inline(n *nethtml.Node) {
	switch n.DataAtom {
	case atom.A:
		w.anchor(n, w.phrasing)
	case atom.Br, atom.Wbr:
		w.b.WriteString("<" + n.Data + ">")
	case atom.Img:
		w.image(n)
	case atom.Rt:
		if !w.empty(n) {
			w.b.WriteString("(")
			w.phrasing(children(n))
			w.b.WriteString(")")
		}
	case atom.Iframe, atom.Audio, atom.Video:
		w.player(n)
	case atom.Source, atom.Rp: // parentheses are written anyway
	case atom.Math:
		if !w.empty(n) {
			w.math(n)
		}
	default:
		name := inline[n.DataAtom]
		title := ""
		if t := attr(n, "title"); t != "" && (name == "abbr" || name == "dfn") {
			title = ` title="` + Text(t) + `"`
		}
		switch {
		case name == "" || name == "bdo" && direction(n) == "":
			w.phrasing(children(n))
		case w.empty(n):
			w.phrasing(children(n)) // the blanks in it
		default:
			w.element(name, title, n, w.phrasing)
		}
	}
}

// math writes an element of MathML. It contains no HTML, so that all parsers read it in one way.
func (w *writer) math(n *nethtml.Node) {
	known := n.Namespace == "math" && slices.Contains(strings.Fields(mathElements), n.Data)
	if known {
		w.b.WriteString("<" + n.Data + ">")
	}
	for c := range n.ChildNodes() {
		if c.Type == nethtml.TextNode {
			w.text(c.Data)
		} else {
			w.math(c)
		}
	}
	if known {
		w.b.WriteString("</" + n.Data + ">")
	}
}

// anchor writes a link, or only its content if the URL is invalid.
func (w *writer) anchor(n *nethtml.Node, inside func([]*nethtml.Node)) {
	href := w.url(attr(n, "href"), true)
	if href == "" || w.link > 0 || w.empty(n) {
		inside(children(n))
		return
	}
	w.link++
	w.element("a", ` href="`+html.EscapeString(href)+`" `+rel, n, inside)
	w.link--
}

// rel is the attribute of all links.
const rel = `rel="noopener noreferrer"`

// URL returns an http or https URL as a browser parses it, without a password; "" if it is invalid.
func URL(s string) string { return (&writer{}).url(s, false) }

// Link returns an HTML link with escaped text, or only the text if href is not an http or https URL.
func Link(href, text string) string {
	if href = URL(href); href == "" {
		return Text(text)
	}
	return `<a href="` + html.EscapeString(href) + `" ` + rel + `>` + Text(text) + `</a>`
}

// player writes a link instead of an embedded player.
func (w *writer) player(n *nethtml.Node) {
	src := w.url(attr(n, "src"), false)
	for d := range n.Descendants() {
		if src == "" && d.DataAtom == atom.Source {
			src = w.url(attr(d, "src"), false)
		}
	}
	if src == "" {
		return
	}
	name := map[atom.Atom]string{atom.Audio: "audio", atom.Video: "video"}[n.DataAtom]
	if name == "" {
		name = "embedded"
	}
	if u, err := url.Parse(src); err == nil {
		name += ": " + u.Hostname()
	}
	if w.link > 0 {
		w.text("[" + name + "]")
	} else {
		w.b.WriteString(Link(src, "["+name+"]"))
	}
}

// trackers are hosts of tracking pixels.
var trackers = []string{"pixel.wp.com", "stats.wordpress.com", "feeds.feedburner.com", "feedads.g.doubleclick.net",
	"www.google-analytics.com", "b.scorecardresearch.com"}

// visible returns the URL of an image, "" if it has none; then its alternative text is shown. It
// reports false for a tracking pixel.
func (w *writer) visible(n *nethtml.Node) (src string, ok bool) {
	src = w.url(attr(n, "src"), false)
	u, err := url.Parse(src)
	if src == "" || err != nil {
		return "", true
	}
	width, height := pixels(attr(n, "width")), pixels(attr(n, "height"))
	if width >= 0 && width <= 2 || height >= 0 && height <= 2 {
		return src, false
	}
	return src, !slices.ContainsFunc(trackers, func(t string) bool { return strings.EqualFold(u.Hostname(), t) })
}

// image writes an image, if it is visible.
func (w *writer) image(n *nethtml.Node) {
	src, ok := w.visible(n)
	switch {
	case !ok:
		return
	case src == "":
		w.text(attr(n, "alt"))
		return
	}
	width, height := pixels(attr(n, "width")), pixels(attr(n, "height"))
	alt := strings.TrimSpace(attr(n, "alt"))
	stand := "[image]"
	if alt != "" {
		stand = "[image: " + alt + "]"
	}
	switch {
	case w.o.NoImages && w.link > 0:
		w.text(stand)
		return
	case w.o.NoImages:
		w.b.WriteString(Link(src, stand))
		return
	}
	w.b.WriteString(`<img src="` + html.EscapeString(src) + `" alt="` + Text(alt) + `"`)
	if t := attr(n, "title"); strings.TrimSpace(t) != "" {
		w.b.WriteString(` title="` + Text(t) + `"`)
	}
	if width > 0 && height > 0 {
		w.b.WriteString(` width="` + strconv.Itoa(width) + `" height="` + strconv.Itoa(height) + `"`)
	}
	w.b.WriteString(` loading="lazy" decoding="async" referrerpolicy="no-referrer">`)
}

// pixels parses a length in pixels, -1 if it is invalid or missing.
func pixels(s string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(s), "px"))
	if err != nil || n < 0 || n > 1<<15 {
		return -1
	}
	return n
}

// block writes an element that is not phrasing content.
func (w *writer) block(n *nethtml.Node) {
	if l := level(n); l <= 6 {
		if !w.empty(n) {
			w.element("h"+strconv.Itoa(min(6, w.o.Heading+l-w.top)), "", n, w.phrasing)
		}
		return
	}
	switch n.DataAtom {
	case atom.P:
		if !w.empty(n) {
			w.element("p", "", n, w.phrasing)
		}
	case atom.Pre:
		if !w.empty(n) {
			w.element("pre", w.focus(), n, w.phrasing)
		}
	case atom.Hr:
		w.b.WriteString("<hr>")
	case atom.Blockquote:
		w.element("blockquote", "", n, w.flow)
	case atom.Ul, atom.Ol:
		w.list(n)
	case atom.Dl:
		w.definitions(n)
	case atom.Table:
		w.table(n)
	case atom.Figure:
		w.figure(n)
	case atom.Details:
		w.details(n)
	default:
		// These elements have a meaning only for a whole page, or are in a wrong place.
		if !w.empty(n) {
			w.element("div", "", n, w.flow)
		}
	}
}

// focus returns the attribute that makes a scrolling element focusable, so that keys can scroll
// it. It returns "" in a link, where nothing else may be focusable.
func (w *writer) focus() string {
	if w.link > 0 {
		return ""
	}
	return ` tabindex="0"`
}

// list writes a list. All children become items.
func (w *writer) list(n *nethtml.Node) {
	attributes := ""
	if start, err := strconv.Atoi(attr(n, "start")); err == nil && n.DataAtom == atom.Ol {
		attributes = ` start="` + strconv.Itoa(start) + `"`
	}
	w.element(n.Data, attributes, n, func(items []*nethtml.Node) {
		for _, c := range items {
			switch {
			case c.DataAtom == atom.Li && c.Type == nethtml.ElementNode:
				value := ""
				if v, err := strconv.Atoi(attr(c, "value")); err == nil && n.DataAtom == atom.Ol {
					value = ` value="` + strconv.Itoa(v) + `"`
				}
				w.element("li", value, c, w.flow)
			case c.Type == nethtml.ElementNode || strings.TrimSpace(c.Data) != "" && c.Type == nethtml.TextNode:
				w.b.WriteString("<li>")
				w.flow([]*nethtml.Node{c})
				w.b.WriteString("</li>")
			}
		}
	})
}

// definitions writes a list of terms and definitions, or a div if it has other children or begins
// or ends wrongly.
func (w *writer) definitions(n *nethtml.Node) {
	var parts []*nethtml.Node
	valid := true
	for c := range n.ChildNodes() {
		switch {
		case c.Type == nethtml.ElementNode && (c.DataAtom == atom.Dt || c.DataAtom == atom.Dd):
			parts = append(parts, c)
		case c.Type == nethtml.ElementNode || c.Type == nethtml.TextNode && strings.TrimSpace(c.Data) != "":
			valid = false
		}
	}
	if !valid || len(parts) == 0 || parts[0].DataAtom != atom.Dt || parts[len(parts)-1].DataAtom != atom.Dd {
		w.element("div", "", n, w.flow)
		return
	}
	w.b.WriteString("<dl>")
	for _, c := range parts {
		inside := w.flow
		if c.DataAtom == atom.Dt {
			inside = w.phrasing
		}
		w.element(c.Data, "", c, inside)
	}
	w.b.WriteString("</dl>")
}

// figure writes a figure, whose caption is its first or last child.
func (w *writer) figure(n *nethtml.Node) {
	if w.empty(n) {
		return
	}
	var inside []*nethtml.Node
	for c := range n.ChildNodes() {
		if c.Type == nethtml.ElementNode || c.Type == nethtml.TextNode && strings.TrimSpace(c.Data) != "" {
			inside = append(inside, c)
		}
	}
	captions := false
	w.b.WriteString("<figure" + direction(n) + ">")
	for i, c := range inside {
		if c.DataAtom == atom.Figcaption && c.Type == nethtml.ElementNode && !captions &&
			(i == 0 || i == len(inside)-1) {
			captions = true
			w.element("figcaption", "", c, w.flow)
			continue
		}
		w.flow([]*nethtml.Node{c})
	}
	w.b.WriteString("</figure>")
}

// details writes an element that can be opened if it has a summary, else a div.
func (w *writer) details(n *nethtml.Node) {
	list := children(n)
	for i, c := range list {
		if c.DataAtom == atom.Summary && c.Type == nethtml.ElementNode && !w.empty(c) && w.link == 0 {
			w.b.WriteString("<details" + direction(n) + "><summary>")
			w.link++ // a click on a link would not open the element
			w.phrasing(children(c))
			w.link--
			w.b.WriteString("</summary>")
			w.flow(append(list[:i:i], list[i+1:]...))
			w.b.WriteString("</details>")
			return
		}
	}
	w.element("div", "", n, w.flow)
}

// row is the cells of a table row.
type row []*nethtml.Node

// rowGroup is a thead, tbody or tfoot.
type rowGroup struct {
	name string
	rows []row
}

// table writes a table of the rows that have cells.
func (w *writer) table(n *nethtml.Node) {
	var caption *nethtml.Node
	var groups []rowGroup
	for c := range n.ChildNodes() {
		switch name := c.Data; c.DataAtom {
		case atom.Caption:
			if caption == nil && !w.empty(c) {
				caption = c
			}
		case atom.Tr:
			groups = addRow(groups, "tbody", c)
		case atom.Thead, atom.Tbody, atom.Tfoot:
			if name == "thead" && len(groups) > 0 {
				name = "tbody"
			}
			for tr := range c.ChildNodes() {
				if tr.DataAtom == atom.Tr {
					groups = addRow(groups, name, tr)
				}
			}
		}
	}
	if len(groups) == 0 {
		return
	}
	for i := range groups {
		if groups[i].name == "tfoot" && i != len(groups)-1 {
			groups[i].name = "tbody"
		}
	}
	w.b.WriteString("<table" + w.focus() + ">")
	if caption != nil {
		w.element("caption", "", caption, w.phrasing)
	}
	for _, g := range groups {
		w.rows(g)
	}
	w.b.WriteString("</table>")
}

// addRow adds a row to the last group if the group has this name, else to a new group. A row
// without cells is omitted.
func addRow(groups []rowGroup, name string, tr *nethtml.Node) []rowGroup {
	var cells row
	for c := range tr.ChildNodes() {
		if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
			cells = append(cells, c)
		}
	}
	if len(cells) == 0 {
		return groups
	}
	if len(groups) == 0 || groups[len(groups)-1].name != name {
		groups = append(groups, rowGroup{name: name})
	}
	g := &groups[len(groups)-1]
	g.rows = append(g.rows, cells)
	return groups
}

// rows writes a group of rows.
func (w *writer) rows(g rowGroup) {
	w.b.WriteString("<" + g.name + ">")
	for _, cells := range g.rows {
		w.b.WriteString("<tr>")
		for _, c := range cells {
			attributes := ""
			for _, a := range []string{"colspan", "rowspan"} {
				if s := span(c, a); s > 1 {
					attributes += " " + a + `="` + strconv.Itoa(s) + `"`
				}
			}
			w.element(c.Data, attributes, c, w.flow)
		}
		w.b.WriteString("</tr>")
	}
	w.b.WriteString("</" + g.name + ">")
}

// span returns the number of columns or rows that a cell takes.
func span(cell *nethtml.Node, name string) int {
	n, err := strconv.Atoi(attr(cell, name))
	if err != nil || n < 1 || n > 100 {
		return 1
	}
	return n
}

// attr returns the value of an attribute, or "".
func attr(n *nethtml.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// direction returns the attribute dir, with a space before it, or "".
func direction(n *nethtml.Node) string {
	switch d := strings.ToLower(attr(n, "dir")); d {
	case "ltr", "rtl":
		return ` dir="` + d + `"`
	}
	return ""
}

// url resolves a link. It returns "" if the link must not be followed.
func (w *writer) url(s string, mail bool) string {
	u, err := url.Parse(percents(strings.TrimSpace(s)))
	if err != nil || s == "" {
		return ""
	}
	if w.base != nil {
		u = w.base.ResolveReference(u)
	}
	if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil && u.Port() != "" {
		return "" // the port is invalid
	}
	switch {
	case mail && u.Scheme == "mailto" && u.Opaque != "":
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		u.User = nil
	default:
		return ""
	}
	full := termsafe.Line(u.String())
	// Brackets in the host surround an IPv6 address, so only the rest is escaped.
	host := 0
	if at := strings.Index(full, "://"); at >= 0 && u.Host != "" {
		if host = at + len("://"); strings.ContainsAny(full[host:], "/?#") {
			host += strings.IndexAny(full[host:], "/?#")
		} else {
			host = len(full)
		}
	}
	return full[:host] + escapes.Replace(full[host:])
}

// percents escapes percent signs that do not begin an escape. Browsers accept them, so the link
// leads to the same page.
func percents(s string) string {
	return percent().ReplaceAllStringFunc(s, func(escape string) string {
		if escape == "%" {
			return "%25"
		}
		return escape
	})
}

// percent matches a percent sign, with the two digits of an escape if they follow.
var percent = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%(?:[0-9A-Fa-f]{2})?`) })

// escapes escapes characters that a URL cannot have after its host.
var escapes = strings.NewReplacer(" ", "%20", `"`, "%22", "<", "%3C", ">", "%3E", "[", "%5B", `\`, "%5C", "]", "%5D",
	"^", "%5E", "`", "%60", "{", "%7B", "|", "%7C", "}", "%7D")
