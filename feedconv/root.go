package feedconv

import (
	"bytes"
	"fmt"
	"html"
	"slices"
	"strings"
)

var errCDF = &NotFeedError{What: "a CDF channel, a format that is not supported"}

// findRoot reads up to and including the start tag of the root. In an HTML
// page, only what carries a version or a namespace counts.
func (t *tidier) findRoot() (name []byte, self bool, err error) {
	src := t.src
	page, first, junk := false, "", false
	doctype := false // of HTML; feeds are found behind one
	endless := map[string]bool{}
	if blank(src) {
		return nil, false, &NotFeedError{What: "an empty document"}
	}
	for t.pos < len(src) {
		n := bytes.IndexByte(src[t.pos:], '<')
		if n < 0 {
			break
		}
		if n > 0 && !blank(src[t.pos:t.pos+n]) {
			junk = true
		}
		i := t.pos + n
		rest := src[i:]
		switch {
		case len(rest) < 2:
			t.pos = len(src)
			continue
		case rest[1] == '!' && len(rest) > 9 && bytes.EqualFold(rest[:9], []byte("<!DOCTYPE")):
			if kind, ok := bytes.CutPrefix(bytes.ToLower(rest[9:min(len(rest), 64)]), []byte(" html")); ok && len(kind) > 0 && !isNameByte(kind[0]) {
				doctype = true
			}
			t.pos = i + t.ents.doctype(rest)
			continue
		case rest[1] == '!' || rest[1] == '?':
			t.markupDecl(i, nil)
			continue
		case rest[1] == '/':
			t.pos = i + 2
			continue
		}
		tag, next, isSelf, st := t.parseTag(i)
		if st == tagCut {
			t.pos = len(src)
			continue
		}
		t.pos = max(next, i+1)
		if st == tagText {
			junk = true
			continue
		}
		local := tag
		if i := bytes.IndexByte(tag, ':'); i >= 0 {
			local = tag[i+1:]
		}
		lower := string(bytes.ToLower(local[:min(len(local), 20)]))
		root := lower == "rss" || lower == "rdf" || lower == "feed" || lower == "channel"
		page = page || lower == "html" || doctype && !root
		switch lower {
		case "script", "style", "textarea", "title", "template":
			// What is in these is no markup. One that is not closed is looked
			// for once.
			if !isSelf && !endless[lower] {
				if end := indexFold(src[t.pos:], "</"+lower); end >= 0 {
					t.pos += end
				} else {
					endless[lower] = true
				}
			}
		case "rss", "rdf", "feed", "channel":
			if lower == "channel" && (string(local) == "CHANNEL" || t.hasAttr("href") || t.hasAttr("base")) {
				return nil, false, errCDF
			}
			if !page || lower != "channel" && (t.hasAttr("version") || t.hasAttr("xmlns") || lower == "rdf") {
				if junk || first != "" {
					t.warn(warnJunk, i, nil)
				}
				t.root, t.rootAt = lower, i
				return tag, isSelf, nil
			}
		}
		if first == "" {
			first = string(tag[:min(len(tag), 40)])
		}
	}
	return nil, false, t.notFeed(page || doctype, first)
}

func (s *scanner) hasAttr(name string) bool {
	return slices.ContainsFunc(s.attrs, func(a attr) bool { return len(a.key) == len(name) && strings.EqualFold(string(a.key), name) })
}

// magics are the beginnings of files that turn up where a feed should be, after
// decoding.
var magics = [][2]string{
	{"%PDF-", "a PDF document"},
	{"‰PNG", "a PNG image"}, // as windows-1252
	{"ÿØÿ", "a JPEG image"},
	{"GIF8", "a GIF image"},
	{"ID3", "an MP3 file"},
	{"OggS", "an Ogg file"},
}

// notFeed names what a document without a root of ours is.
func (t *tidier) notFeed(page bool, first string) error {
	_, lower, colon := strings.Cut(strings.ToLower(first), ":")
	if !colon {
		lower = strings.ToLower(first)
	}
	trimmed := bytes.TrimSpace(t.src[:min(len(t.src), 1<<16)])
	if !page && first != "" {
		switch lower {
		case "head", "body", "title", "meta", "link", "div", "p", "h1", "h2", "script", "style", "table", "center", "br", "a", "img", "b", "font", "span":
			page = !bytes.HasPrefix(trimmed, []byte("<?xml"))
		}
	}
	what := ""
	switch {
	case page:
		what = "an HTML page"
		if title := t.pageTitle(); title != "" {
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
	return &NotFeedError{What: what, HTML: page}
}

// pageTitle finds the title of an HTML page near its start.
func (t *tidier) pageTitle() string {
	s := string(t.src[:min(len(t.src), 1<<18)])
	i := indexFold(s, "<title")
	if i < 0 {
		return ""
	}
	s = s[i:]
	if i = strings.IndexByte(s, '>'); i < 0 {
		return ""
	}
	s = s[i+1:]
	if i = strings.IndexByte(s, '<'); i >= 0 {
		s = s[:i]
	}
	s = strings.Join(strings.Fields(html.UnescapeString(s[:min(len(s), 1000)])), " ")
	s = strings.ToValidUTF8(s, "")
	if r := []rune(s); len(r) > 100 {
		s = string(r[:99]) + "…"
	}
	return s
}

// openRoot finds the root and takes its namespaces and attributes.
func (t *tidier) openRoot() (tag []byte, self bool, err error) {
	tag, self, err = t.findRoot()
	if err != nil {
		return nil, false, err
	}
	t.isAtom = t.root == "feed"
	id := t.intern(tag)
	t.declare(t.attrs, &t.ents, t.pos)
	info := &t.infos[id]
	t.rootNS, t.rootPfx = t.resolve(info.prefix), info.prefix
	if t.rootNS >= nsID(len(knownNamespaces)) {
		t.ns[t.rootNS].native = true
	}
	for _, a := range t.attrs {
		switch strings.ToLower(string(a.key)) {
		case "version":
			t.version = strings.TrimSpace(string(t.ents.decode(nil, a.val[:min(len(a.val), 64)])))
		case "xml:lang":
			t.kept.feed.note("lang", t.attrValue(a.val))
		case "xml:base":
			t.rootBase = childBase(t.rootBase, t.attrValue(a.val))
		case "rdf:about":
			if t.root == "channel" {
				t.kept.feed.note("about", t.attrValue(a.val))
			}
		}
	}
	if t.isAtom || t.root == "channel" {
		t.rootAttributes()
	}
	if t.isAtom {
		t.atom03 = t.rootNS == nsAtom03 || strings.HasPrefix(t.version, "0.") && t.rootNS != nsAtom10
	}
	info.open++
	lvl := inRoot
	if t.isAtom || t.root == "channel" {
		lvl = inFeed
	}
	t.stack = append(t.stack, frame{
		name: id, raw: tag, class: class{kind: kRoot}, level: lvl, base: t.rootBase, srcAt: t.pos,
	})
	return tag, self, nil
}

// rootAttributes keeps the root's attributes of other vocabularies.
func (t *tidier) rootAttributes() {
	for _, a := range t.attrs {
		prefix, local, ok := splitAttr(a.key)
		if ok && len(prefix) > 0 && !strings.EqualFold(string(prefix), "xmlns") {
			if ns := t.resolve(t.prefixID(string(prefix))); ns >= nsXHTML && !t.native(ns, -1) {
				t.keepAttribute(&t.kept.feed, ns, local, a.val)
			}
		}
	}
}

// rootElement is the name of the root in the output.
func (t *tidier) rootElement() string {
	switch {
	case t.isAtom:
		return "feed"
	case t.root == "rdf", t.root == "channel" && t.rootNS == nsRSS11:
		return "rdf:RDF"
	}
	return "rss"
}

// header writes the root's start tag, with the namespaces that are in use.
func (t *tidier) header() []byte {
	var w writer
	w.open(t.rootElement())
	switch {
	case t.rootElement() == "rdf:RDF":
		uri := t.ns[nsRSS10].uri
		if t.usesRSS09() {
			uri = t.ns[nsRSS09].uri
		}
		w.attr("xmlns", []byte(uri))
		t.ns[nsRDF].used = true
	case t.atom03:
		w.attr("xmlns", []byte(t.ns[nsAtom03].uri))
	case t.isAtom:
		w.attr("xmlns", []byte(t.ns[nsAtom10].uri))
	case t.version != "":
		w.attr("version", []byte(t.version))
	}
	for i := range t.ns {
		n := &t.ns[i]
		if n.used && n.prefix != "" && nsID(i) != nsXML && (nsID(i) != nsAtom03 || !t.ns[nsAtom10].used) {
			w.attr("xmlns:"+n.prefix, []byte(n.uri))
		}
	}
	w.endOpen()
	if t.root == "channel" {
		w.open("channel")
		w.endOpen()
	}
	return w.out
}

func (t *tidier) usesRSS09() bool { return t.ns[nsRSS09].native && !t.ns[nsRSS10].native }
