package htmltext

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Limits against hostile markup. Beyond them text is still shown, with a simpler layout.
const (
	maxFrames    = 64    // quotes, lists and items within each other
	maxFootnotes = 10000 // links that are listed
	maxPictures  = 1000
)

// renderer lays out one document. Text is collected in para, and written at the end of a block.
type renderer struct {
	out   lines
	notes footnotes

	para    []byte // the paragraph so far; \n breaks the line
	heading int    // level if the paragraph is a heading, else 0
	cells   int    // number of table cells begun in this row
	table   *table // the open table whose columns may be aligned, or nil

	link    link
	media   string // open video or audio element without a source so far
	sup     bool   // a superscript has just begun
	deleted int    // number of open elements for deleted text
	struck  bool   // the opening mark of deleted text is in para
	ruby    string // rt or rp if such an element is open
}

// link is the open a element.
type link struct {
	target string // "" for none
	from   int    // where its text begins in the paragraph
	text   strings.Builder
}

// blocks are the elements on lines of their own, with the number of newlines around them: 2 leave
// a blank line.
var blocks = map[string]int{
	"address": 1, "article": 1, "aside": 1, "body": 1, "caption": 1, "center": 1,
	"details": 2, "dir": 2, "div": 1, "fieldset": 1, "figcaption": 1, "figure": 2, "footer": 1,
	"form": 1, "h1": 2, "h2": 2, "h3": 2, "h4": 2, "h5": 2, "h6": 2, "header": 1,
	"html": 1, "legend": 1, "main": 1, "menu": 2, "nav": 1, "optgroup": 1, "option": 1, "p": 2,
	"search": 1, "section": 1, "select": 1, "summary": 1, "table": 2, "tbody": 1,
	"textarea": 1, "tfoot": 1, "thead": 1, "title": 2, "tr": 1,
}

// html renders markup that is a result of [Shown].
func (r *renderer) html(content []byte) {
	z := html.NewTokenizer(bytes.NewReader(content))
	z.AllowCDATA(true) // text that a publisher escaped twice
	formula := false   // a formula is open whose TeX was written
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			if !formula {
				r.text(termsafe.Clean(string(z.Text())))
			}
		case html.StartTagToken:
			name, hasAttr := z.TagName()
			t := startTag{string(name), attributes(z, hasAttr)}
			if tex := t.attrs["alttext"]; tex != "" && t.name == "math" {
				r.text(termsafe.Clean(tex))
				formula = true
			}
			r.start(t)
		case html.SelfClosingTagToken:
			name, hasAttr := z.TagName()
			tag := string(name)
			attrs := attributes(z, hasAttr)
			z.NextIsNotRawText()
			r.start(startTag{tag, attrs})
			switch tag {
			case "p", "div", "li", "br", "td", "th", "tr":
				// In HTML the slash has no meaning; <p/> often begins a paragraph.
			default:
				r.end(tag)
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			tag := string(name)
			formula = formula && tag != "math"
			r.end(tag)
		}
	}
}

// attributes returns the attributes of a tag that the renderer uses.
func attributes(z *html.Tokenizer, more bool) map[string]string {
	var attrs map[string]string
	for more {
		var k, v []byte
		k, v, more = z.TagAttr()
		switch string(k) {
		case "href", "src", "alt", "title", "width", "height", "start", "value", "type", "reversed", "data", "alttext":
			if attrs == nil {
				attrs = map[string]string{}
			}
			if _, ok := attrs[string(k)]; !ok {
				attrs[string(k)] = string(v)
			}
		}
	}
	return attrs
}

// startTag is the beginning of an element.
type startTag struct {
	name  string
	attrs map[string]string
}

// start handles a start tag.
func (r *renderer) start(t startTag) {
	if r.table != nil && r.tableTag(t.name, false) {
		return
	}
	gap, isBlock := blocks[t.name]
	if !isBlock {
		if !r.startFrame(t) && !r.startInline(t) {
			r.startMedia(t)
		}
		return
	}
	if t.name == "tr" {
		r.cells = 0
	}
	r.block(gap)
	if n := t.name; len(n) == 2 && n[0] == 'h' && n[1] >= '1' && n[1] <= '6' {
		r.heading = int(n[1] - '0')
	}
	if t.name == "table" && !r.out.o.Bare && r.out.pre == 0 {
		r.table = &table{}
	}
}

// startFrame begins an element with a prefix or a blank line, and reports whether the tag is such
// an element.
func (r *renderer) startFrame(t startTag) bool {
	switch t.name {
	case "hr":
		r.block(2)
		if !r.out.o.Bare {
			r.para = append(r.para, strings.Repeat("-", min(r.out.room(), 40))...)
			r.block(2)
		}
	case "ul", "ol":
		gap := 2
		if r.out.within("li") {
			gap = 1
		}
		r.block(gap)
		_, reversed := t.attrs["reversed"]
		r.out.push(frame{tag: t.name, bullets: t.name == "ul" || reversed, count: listNumber(t.attrs["start"], 1),
			style: t.attrs["type"]})
	case "li":
		r.block(1)
		r.out.pop("li", "ul", "ol")
		r.item(t.attrs)
	case "dl":
		r.block(2)
		r.out.push(frame{tag: "dl"})
	case "dt":
		r.block(1)
		r.out.pop("dd", "dl")
	case "dd":
		r.block(1)
		r.out.pop("dd", "dl")
		r.out.push(frame{tag: "dd", prefix: "    "})
	case "blockquote":
		r.block(2)
		r.out.push(frame{tag: t.name, prefix: "> "})
	case "pre", "xmp", "listing", "plaintext":
		r.block(2)
		r.out.push(frame{tag: "pre", prefix: "    "})
		r.out.pre++
		r.out.preHead = true
	default:
		return false
	}
	return true
}

// startInline begins an element within a line, and reports whether the tag is such an element.
func (r *renderer) startInline(t startTag) bool {
	switch t.name {
	case "br":
		r.newline()
	case "a":
		r.endLink()
		if r.link.target = r.notes.target(t.attrs["href"]); r.link.target != "" {
			r.link.from = len(r.para)
			r.link.text.Reset()
		}
	case "td", "th":
		if r.cells > 0 && len(bytes.TrimSpace(r.para)) > 0 {
			r.inline(" | ")
		}
		r.cells++
	case "q":
		r.inline("“")
	case "rt", "rp":
		r.endRuby()
		if r.ruby = t.name; t.name == "rt" {
			r.inline("(")
		}
	case "sup":
		r.sup = true
	case "del", "s", "strike":
		r.deleted++
	default:
		return false
	}
	return true
}

// startMedia writes a placeholder for an embedded element.
func (r *renderer) startMedia(t startTag) {
	switch src := t.attrs["src"]; t.name {
	case "img":
		r.image(t.attrs)
	case "video", "audio":
		r.endMedia()
		r.media = t.name
		if src != "" {
			r.embed(t.name, src)
			r.media = ""
		}
	case "source":
		if r.media != "" && src != "" {
			r.embed(r.media, src)
			r.media = ""
		}
	case "iframe":
		r.embed("embedded page", src)
	case "embed":
		r.embed("embedded object", src)
	case "object":
		r.embed("embedded object", t.attrs["data"])
	}
}

// end handles an end tag.
func (r *renderer) end(tag string) {
	if r.table != nil && r.tableTag(tag, true) {
		return
	}
	if gap, ok := blocks[tag]; ok {
		r.block(gap)
		return
	}
	switch tag {
	case "ul", "ol":
		r.block(1)
		r.out.pop(tag)
		if !r.out.within("li") {
			r.out.gap = 2
		}
	case "li":
		r.block(1)
		r.out.pop("li", "ul", "ol")
	case "dl":
		r.block(2)
		r.out.pop("dl")
	case "dd":
		r.block(1)
		r.out.pop("dd", "dl")
	case "dt":
		r.block(1)
	case "blockquote":
		r.block(2)
		r.out.pop(tag)
	case "pre", "xmp", "listing", "plaintext":
		if r.out.pre > 0 {
			r.block(2)
			r.out.pre--
			r.out.pop("pre")
		}
	case "br": // </br> is a <br>
		r.newline()
	case "a":
		r.endLink()
	case "video", "audio":
		r.endMedia()
	case "q":
		r.inline("”")
	case "rt", "rp", "ruby":
		r.endRuby()
	case "sup":
		r.sup = false
	case "del", "s", "strike":
		if r.deleted = max(r.deleted-1, 0); r.deleted == 0 {
			r.endStruck()
		}
	}
}

// endRuby closes an annotation. If it has no text, nothing is written.
func (r *renderer) endRuby() {
	if r.ruby == "rt" {
		if text, empty := bytes.CutSuffix(r.para, []byte("(")); empty {
			r.para = text
		} else {
			r.inline(")")
		}
	}
	r.ruby = ""
}

// endStruck writes the closing mark of deleted text.
func (r *renderer) endStruck() {
	if r.struck {
		text := bytes.TrimRight(r.para, " \n")
		tail := string(r.para[len(text):])
		r.para = append(append(text, "~~"...), tail...)
	}
	r.struck = false
}

// item opens an item of the innermost list.
func (r *renderer) item(attrs map[string]string) {
	marker := "• "
	for i := len(r.out.frames) - 1; i >= 0; i-- {
		f := &r.out.frames[i]
		if f.bullets {
			break
		}
		if f.tag == "ol" {
			f.count = listNumber(attrs["value"], f.count)
			marker = ordinal(f.count, cmp.Or(attrs["type"], f.style)) + ". "
			f.count++
			break
		}
	}
	if r.out.o.Bare {
		marker = ""
	}
	r.out.push(frame{tag: "li", first: marker, prefix: strings.Repeat(" ", utf8.RuneCountInString(marker))})
}

// text adds text of the document.
func (r *renderer) text(s string) {
	if s == "" || r.ruby == "rp" { // rp has parentheses for browsers without ruby
		return
	}
	if body := strings.TrimLeft(s, " \t\r\n\f"); r.deleted > 0 && !r.struck && !r.out.o.Bare && body != "" {
		if len(body) < len(s) {
			r.inline(" ")
		}
		r.para = append(r.para, "~~"...)
		r.struck = true
		s = body
	}
	if r.out.pre > 0 {
		if r.out.preHead {
			// HTML ignores the newline right after <pre>.
			s = strings.TrimPrefix(s, "\n")
			r.out.preHead = false
		}
		r.para = append(r.para, s...)
		if r.link.target != "" {
			r.link.text.WriteString(s)
		}
		return
	}
	if r.sup {
		// 10² must not look like 102. 10th and ™ need no mark.
		if c, _ := utf8.DecodeRuneInString(strings.TrimSpace(s)); unicode.IsDigit(c) || c == '-' || c == '−' {
			r.para = append(r.para, '^')
		}
		r.sup = false
	}
	r.collapse(s)
	if r.link.target != "" {
		r.link.text.WriteString(s)
	}
}

// inline adds generated text to the paragraph.
func (r *renderer) inline(s string) {
	if r.out.pre > 0 {
		r.para = append(r.para, s...)
		return
	}
	r.collapse(s)
}

// collapse appends s with white space collapsed to one space, and none at the beginning of a
// line. No-break spaces stay.
func (r *renderer) collapse(s string) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' {
			if n := len(r.para); n > 0 && r.para[n-1] != ' ' && r.para[n-1] != '\n' {
				r.para = append(r.para, ' ')
			}
			continue
		}
		r.para = append(r.para, c)
	}
}

// newline handles <br>.
func (r *renderer) newline() {
	if r.out.pre == 0 {
		r.para = bytes.TrimRight(r.para, " ")
		// Many <br> in a row count as two.
		if n := len(r.para); n >= 2 && r.para[n-1] == '\n' && r.para[n-2] == '\n' {
			return
		}
	}
	r.para = append(r.para, '\n')
}

// block ends the paragraph, and sets the number of newlines before the next one.
func (r *renderer) block(gap int) {
	r.spill()
	r.flush()
	r.heading = 0
	if n := len(r.out.frames); n > 0 && r.out.frames[n-1].tag == "li" && r.out.frames[n-1].first != "" {
		return // the first paragraph of an item is beside its mark
	}
	r.out.gap = max(r.out.gap, gap)
}

// flush writes the paragraph.
func (r *renderer) flush() {
	r.endStruck()
	r.endRuby()
	if r.link.target != "" {
		// A link that contains blocks gets its number at the end of its text.
		r.endNote()
	}
	text := string(r.para)
	r.para = r.para[:0]
	r.link.from = 0
	if r.out.pre > 0 {
		text = strings.Trim(strings.TrimRight(text, " \t\n"), "\n")
		if strings.TrimSpace(text) == "" {
			return
		}
		for line := range strings.SplitSeq(text, "\n") {
			r.out.line(expandTabs(strings.TrimRight(line, " \t\r")))
		}
		return
	}
	text = strings.Trim(text, " \n")
	if text == "" {
		return
	}
	widest := 0
	for part := range strings.SplitSeq(text, "\n") {
		room := 0
		if r.out.o.Width > 0 {
			room = r.out.room()
		}
		for l := range wrap(part, room) {
			r.out.line(l)
			if r.heading == 1 || r.heading == 2 {
				widest = max(widest, termsafe.Width(l))
			}
		}
	}
	if widest > 0 && !r.out.o.Bare {
		r.out.line(strings.Repeat([]string{"=", "-"}[r.heading-1], min(widest, r.out.room())))
	}
}

// endLink closes the a element.
func (r *renderer) endLink() {
	if r.link.target == "" {
		return
	}
	r.endNote()
	r.link.target = ""
}

// endNote writes the number of the footnote of the open link after its text. It writes none if
// the link has no text since the last number, or if the text is the URL itself.
func (r *renderer) endNote() {
	shown := strings.TrimSpace(r.link.text.String())
	r.link.text.Reset()
	from := min(r.link.from, len(r.para))
	if len(bytes.TrimSpace(r.para[from:])) == 0 || samePlace(shown, r.link.target) {
		return
	}
	mark := r.notes.note(r.link.target)
	if mark == "" {
		return
	}
	text := bytes.TrimRight(r.para, " \n")
	tail := string(r.para[len(text):])
	if !bytes.HasSuffix(text, []byte(mark)) {
		text = append(text, mark...)
	}
	r.para = append(text, tail...)
	r.link.from = len(r.para)
}

// samePlace reports whether the text of a link is its URL.
func samePlace(text, target string) bool {
	plain := func(s string) string {
		for _, p := range []string{"https://", "http://", "mailto:", "www."} {
			s = strings.TrimPrefix(s, p)
		}
		return strings.TrimSuffix(s, "/")
	}
	return text != "" && plain(text) == plain(target)
}

// image writes the alternative text of an image, else its file name.
func (r *renderer) image(attrs map[string]string) {
	if tiny(attrs["width"]) || tiny(attrs["height"]) {
		return // a tracking pixel
	}
	target := r.notes.target(attrs["src"])
	if len(r.notes.pictures) < maxPictures && markup.IsWebURL(target) && !slices.Contains(r.notes.pictures, target) {
		r.notes.pictures = append(r.notes.pictures, target)
	}
	alt, title := termsafe.Squeeze(attrs["alt"]), termsafe.Squeeze(attrs["title"])
	if _, hasAlt := attrs["alt"]; hasAlt && alt == "" && attrs["title"] == "" &&
		(r.link.target == "" || strings.TrimSpace(r.link.text.String()) != "") {
		return // an empty alternative text means decoration, but a link needs text
	}
	switch {
	case title == "" || title == alt:
	case alt == "":
		alt = title
	default:
		alt += " — " + title
	}
	if alt == "" && !r.out.o.Bare {
		alt = fileOf(target)
	}
	switch {
	case alt != "":
		r.inline("[image: " + alt + "]" + r.notes.note(target))
	case !r.out.o.Bare:
		r.inline("[image]" + r.notes.note(target))
	}
}

// fileOf returns the name of the file at a URL, "" for none.
func fileOf(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	if name := path.Base(u.Path); name != "." && name != "/" {
		return termsafe.Squeeze(name)
	}
	return ""
}

func tiny(size string) bool { return size == "0" || size == "1" || size == "0px" || size == "1px" }

// embed writes a placeholder for embedded content.
func (r *renderer) embed(what, src string) {
	if r.out.o.Bare {
		return
	}
	if target := r.notes.target(src); target != "" {
		r.inline(" [" + what + "]" + r.notes.note(target) + " ")
	}
}

// endMedia closes a video or audio element. If it had no source, endMedia writes a placeholder.
func (r *renderer) endMedia() {
	if r.media != "" && !r.out.o.Bare {
		r.inline(" [" + r.media + "] ")
	}
	r.media = ""
}

// finish ends the document and lists the links.
func (r *renderer) finish() string {
	r.endLink()
	r.block(1)
	r.out.frames = nil
	for i, target := range r.notes.urls {
		if i == 0 && r.out.out.Len() > 0 {
			r.out.out.WriteByte('\n')
		}
		r.out.out.WriteString("[" + strconv.Itoa(i+1) + "] " + target + "\n")
	}
	if r.notes.unlisted > 0 {
		fmt.Fprintf(&r.out.out, "(%d more links)\n", r.notes.unlisted)
	}
	return r.out.out.String()
}
