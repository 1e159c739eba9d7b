package tidy

import (
	"bytes"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv/internal/vocab"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/scan"
)

var errCDF = &NotFeed{What: "a CDF channel, a format that is not supported"}

// prolog is the part of a document before the root.
type prolog struct {
	*scan.Scanner
	first   string // the name of the first element
	page    bool   // in an HTML page
	doctype bool   // a doctype of HTML; feeds are found behind one
	junk    bool
}

// find reads up to and including the start tag of the root. root is the root's name without a
// prefix, in lower case.
func (p *prolog) find() (tag scan.Token, root string, err error) {
	if markup.Blank(p.Src) {
		return tag, "", &NotFeed{What: "an empty document"}
	}
	for {
		switch tag = p.Next(nil); tag.Kind {
		case scan.End:
			return tag, "", p.notFeed()
		case scan.Text, scan.Close:
			p.junk = p.junk || !markup.Blank(tag.Data)
		case scan.Doctype:
			kind, ok := bytes.CutPrefix(bytes.ToLower(tag.Data[9:min(len(tag.Data), 64)]), []byte(" html"))
			p.doctype = p.doctype || ok && len(kind) > 0 && !scan.IsNameByte(kind[0])
		case scan.Open:
			if root, err = p.element(tag); root != "" || err != nil {
				return tag, root, err
			}
		}
	}
}

// element reads a start tag, and returns its name if it is the root. In an HTML page, an element is
// the root only if it is <rdf> or has a version or a namespace, and never <channel> without them.
func (p *prolog) element(tag scan.Token) (root string, err error) {
	local := tag.Data[bytes.IndexByte(tag.Data, ':')+1:]
	lower := string(bytes.ToLower(local[:min(len(local), 20)]))
	isRoot, isText := false, false
	switch lower {
	case "rss", "rdf", "feed", "channel":
		isRoot = true
	case "script", "style", "textarea", "title", "template":
		isText = !tag.Self
	}
	p.page = p.page || lower == "html" || p.doctype && !isRoot
	switch {
	case lower == "channel" && (string(local) == "CHANNEL" || p.hasAttr("href") || p.hasAttr("base")):
		return "", errCDF
	case isRoot && (!p.page || lower != "channel" && (p.hasAttr("version") || p.hasAttr("xmlns") || lower == "rdf")):
		return lower, nil
	case isText:
		p.SkipContent(lower) // which is not markup
	}
	if p.first == "" {
		p.first = string(tag.Data[:min(len(tag.Data), 40)])
	}
	return "", nil
}

func (p *prolog) hasAttr(name string) bool {
	return slices.ContainsFunc(p.Attrs, func(a scan.Attr) bool {
		return len(a.Key) == len(name) &&
			strings.EqualFold(string(a.Key), name)
	})
}

// magics are the beginnings, after decoding, of files that are served in place of feeds.
var magics = [][2]string{
	{"%PDF-", "a PDF document"},
	{"‰PNG", "a PNG image"}, // as windows-1252
	{"ÿØÿ", "a JPEG image"},
	{"GIF8", "a GIF image"},
	{"ID3", "an MP3 file"},
	{"OggS", "an Ogg file"},
}

// notFeed returns the error for a document without the root of a feed. The error describes the
// document.
func (p *prolog) notFeed() error {
	page, first := p.page || p.doctype, p.first
	_, lower, colon := strings.Cut(strings.ToLower(first), ":")
	if !colon {
		lower = strings.ToLower(first)
	}
	trimmed := bytes.TrimSpace(p.Src[:min(len(p.Src), 1<<16)])
	if !page && first != "" {
		switch lower {
		case "head", "body", "title", "meta", "link", "div", "p", "h1", "h2", "script", "style", "table", "center",
			"br", "a", "img", "b", "font", "span":
			page = !bytes.HasPrefix(trimmed, []byte("<?xml"))
		}
	}
	what := ""
	switch {
	case page:
		what = "an HTML page"
		if title := p.pageTitle(); title != "" {
			what = fmt.Sprintf("an HTML page titled %q", title)
		}
	case lower == "opml":
		what = "an OPML document"
	case lower == "entry":
		what = "an Atom entry without a feed"
	case lower == "urlset", lower == "sitemapindex":
		what = "a sitemap"
	case bytes.HasPrefix(trimmed, []byte("<")) && first != "":
		what = fmt.Sprintf("an XML document with the root element <%s>", strings.ToValidUTF8(first, ""))
	default:
		what = "text without a feed"
		for _, m := range magics {
			if strings.HasPrefix(string(trimmed[:min(len(trimmed), 16)]), m[0]) {
				what = m[1]
			}
		}
	}
	return &NotFeed{What: what, HTML: page}
}

// pageTitle finds the title of an HTML page near its start.
func (p *prolog) pageTitle() string {
	title := regexp.MustCompile(`(?i)<title[^>]*>([^<]*)`).FindSubmatch(p.Src[:min(len(p.Src), 1<<18)])
	if title == nil {
		return ""
	}
	s := strings.Join(strings.Fields(html.UnescapeString(string(title[1][:min(len(title[1]), 1000)]))), " ")
	s = strings.ToValidUTF8(s, "")
	if r := []rune(s); len(r) > 100 {
		s = string(r[:99]) + "…"
	}
	return s
}

// openRoot finds the root and reads its namespaces and attributes.
func (t *tidier) openRoot() (scan.Token, error) {
	p := prolog{Scanner: t.Scanner}
	tag, root, err := p.find()
	if err != nil {
		return tag, err
	}
	if p.junk || p.first != "" {
		t.warnings.warn(warnJunk, tag.At, nil)
	}
	t.doc.Root, t.doc.Feed = root, &Node{}
	t.names.isAtom = root == "feed"
	id := t.names.intern(tag.Data)
	t.names.declare(t.Attrs, &t.Entities, t.Pos)
	info := &t.names.infos[id]
	t.names.rootNS, t.names.rootPfx = t.names.resolve(info.prefix), info.prefix
	if t.names.rootNS >= vocab.Known {
		t.names.ns[t.names.rootNS].native = true
	}
	f := frame{name: id, raw: tag.Data, class: class{kind: kRoot}, base: t.baseOf(t.opts.Base), srcAt: t.Pos,
		node: &Node{}}
	if t.names.channelNext = !t.names.isAtom && root != "channel"; !t.names.channelNext {
		f.class.kind, f.level, f.node = kFeed, inFeed, t.doc.Feed
	}
	for _, a := range t.Attrs {
		switch strings.ToLower(string(a.Key)) {
		case "version":
			t.doc.Version = strings.TrimSpace(string(t.Entities.Decode(nil, a.Val[:min(len(a.Val), 64)])))
		case "xml:lang":
			t.doc.Feed.replace(vocab.XML, "lang", t.attrValue(a.Val))
		}
	}
	t.doc.Atom03 = t.names.isAtom && (t.names.rootNS == vocab.Atom03 || strings.HasPrefix(t.doc.Version, "0.") &&
		t.names.rootNS != vocab.Atom10)
	info.open++
	t.stack = append(t.stack, f)
	if f.class.kind == kFeed {
		t.openTag(t.stack.top())
	}
	return tag, nil
}

// version returns the version of RSS. In RDF, it depends on the namespaces of the elements.
func (d *Document) version(n *names) string {
	switch {
	case d.Root != "rdf" && n.rootNS != vocab.RSS11:
		return d.Version
	case n.ns[vocab.RSS09].native && !n.ns[vocab.RSS10].native:
		return "0.9"
	}
	return "1.0"
}
