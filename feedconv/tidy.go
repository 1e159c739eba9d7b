package feedconv

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	ext "github.com/mmcdole/gofeed/extensions"
)

// What tidy does not let through, whatever a document holds.
const (
	maxDepth        = 256    // elements in each other
	maxAttrs        = 256    // attributes of an element
	maxDeclarations = 512    // namespace declarations of a document
	maxNamespaces   = 32     // unknown namespaces in use
	maxNames        = 4096   // different element names
	maxNameLen      = 128    // bytes of an element or attribute name
	maxTextRuns     = 16     // pieces of text between the children of an element
	maxNodes        = 600000 // elements and attributes, weighted by what gofeed spends on them; more where more entries may be
	maxSameWarning  = 20     // warnings of a kind
)

// tidied is one clean, bounded XML document in UTF-8: no XML declaration,
// DOCTYPE, comments or processing instructions; namespaces as fixed prefixes
// declared once at the root; each text construct one escaped string; URLs
// absolute.
//
// The document is made for gofeed, around three of its habits. Text is in
// CDATA sections where gofeed would otherwise decode it twice. A URL, or an
// Atom id, that gofeed would re-encode has a newline before it, which makes
// gofeed leave it alone and is trimmed when the entry is finished. And what gofeed
// has no field for is kept in one extension element at the end of each entry
// and of the feed, with the attributes about (rdf:about), lang (xml:lang) and
// type-title, type-summary, … (the types of text constructs); see tidyMeta. Long
// texts are beside it, in aside; see asideMark.
type tidied struct {
	xml      []byte
	root     string // "rss", "rdf", "feed", "channel"
	atom03   bool
	entries  int    // entries in xml
	cut      bool   // the document ends too early
	lost     string // the first warning of what a limit left out, or empty
	warnings []Warning
	aside    []string // long texts, which xml has a mark for
}

// asideMark begins what stands in the document for a text that was set aside; the
// rest is its number. It is the whole text of its element, and a text of the
// document that begins like it is set aside as well.
const asideMark = "\uE000lektor:"

// asideFrom is the length in bytes from which on the contents and summaries of
// entries are set aside. gofeed gives them back unchanged, so that nothing is
// lost if it does not see them, and the greater part of its time is saved.
const asideFrom = 128

// asideElements are those whose text is set aside in an entry, where it is read
// by [tidied.text].
var asideElements = map[bool]map[string]bool{
	true:  {"content": true, "summary": true},             // of Atom
	false: {"description": true, "content:encoded": true}, // of RSS
}

// text gives the text that gofeed found for one of asideElements.
func (doc *tidied) text(s string) string {
	if number, ok := strings.CutPrefix(s, asideMark); ok {
		if n, err := strconv.Atoi(number); err == nil && n >= 0 && n < len(doc.aside) {
			return doc.aside[n]
		}
	}
	return s
}

// tidyMeta gives an attribute of the element that tidy leaves in an entry or a
// feed for what gofeed has no field for: "about", "lang", "type-title" ….
func tidyMeta(x ext.Extensions, name string) string {
	for _, e := range x[metaPrefix]["meta"] {
		if v := e.Attrs[name]; v != "" {
			return v
		}
	}
	return ""
}

const metaPrefix = "lektor"

// nsID is an index into tidier.ns; those of known namespaces are the same in
// every document.
type nsID int32

// family groups the namespaces that the formats themselves are written in.
type family uint8

const (
	famExt family = iota
	famAtom
	famRSS
)

type namespace struct {
	prefix string // what the document gets; "" until one is generated
	uri    string
	family family
	native bool // an unknown namespace that stands for the format's own
	used   bool
}

// Known namespaces that the code names.
const (
	nsNone nsID = iota
	nsXML
	nsMeta
	nsAtom10
	nsAtom03
	nsRSS10
	nsRSS09
	nsRSS11
	nsRDF
	nsXHTML
	nsContent
	nsDC
	nsDCTerms
	nsITunes
	nsMedia
	nsWFW
	nsFeedburner
	nsSX
	nsKnown // the first of the others
)

// knownNamespaces lists prefix, URI and aliases. The URI is gofeed's spelling
// where it has one, so that it finds the prefix without a search.
var knownNamespaces = []struct {
	prefix, uri string
	family      family
	aliases     []string
}{
	nsNone:   {},
	nsXML:    {"xml", "http://www.w3.org/XML/1998/namespace", famExt, nil},
	nsMeta:   {metaPrefix, "urn:lektor:tidy", famExt, nil},
	nsAtom10: {"atom", "http://www.w3.org/2005/Atom", famAtom, []string{"http://www.w3.org/2005/10/Atom"}},
	nsAtom03: {"atom", "http://purl.org/atom/ns#", famAtom, []string{"http://purl.org/net/atom/ns#", "http://example.com/newformat#", "http://necho.org/", "http://purl.org/pie/"}},
	nsRSS10:  {"rss", "http://purl.org/rss/1.0/", famRSS, nil},
	nsRSS09:  {"rss", "http://my.netscape.com/rdf/simple/0.9/", famRSS, []string{"http://channel.netscape.com/rdf/simple/0.9/", "http://my.netscape.com/publish/formats/rss-0.9"}},
	nsRSS11: {"rss", "http://purl.org/net/rss1.1#", famRSS, []string{
		"http://backend.userland.com/rss2", "http://backend.userland.com/rss", "http://backend.userland.com/rss091",
		"http://backend.userland.com/rss092", "http://backend.userland.com/rss093", "http://backend.userland.com/rss20",
		"http://blogs.law.harvard.edu/tech/rss", "http://cyber.law.harvard.edu/rss/rss.html", "http://www.rssboard.org/rss-specification",
		"http://my.netscape.com/publish/formats/rss-0.91.dtd", "http://purl.org/rss/2.0/"}},
	nsRDF:        {"rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#", famExt, nil},
	nsXHTML:      {"xhtml", "http://www.w3.org/1999/xhtml", famExt, []string{"http://www.w3.org/TR/REC-html40"}},
	nsContent:    {"content", "http://purl.org/rss/1.0/modules/content/", famExt, nil},
	nsDC:         {"dc", "http://purl.org/dc/elements/1.1/", famExt, []string{"http://purl.org/dc/elements/1.0/", "http://purl.org/metadata/dublin_core", "http://dublincore.org/documents/dcmi-namespace/"}},
	nsDCTerms:    {"dcterms", "http://purl.org/dc/terms/", famExt, nil},
	nsITunes:     {"itunes", "http://www.itunes.com/DTDs/PodCast-1.0.dtd", famExt, []string{"http://example.com/DTDs/PodCast-1.0.dtd", "http://www.itunes.com/dtds/podcast-1.0.dtd/"}},
	nsMedia:      {"media", "http://search.yahoo.com/mrss/", famExt, []string{"http://search.yahoo.com/rss", "http://www.rssboard.org/media-rss", "http://tools.search.yahoo.com/mrss/", "http://video.search.yahoo.com/mrss"}},
	nsWFW:        {"wfw", "http://wellformedweb.org/CommentAPI/", famExt, nil},
	nsFeedburner: {"feedburner", "http://rssnamespace.org/feedburner/ext/1.0", famExt, nil},
	nsSX:         {"sx", "http://feedsync.org/2007/feedsync", famExt, []string{"http://www.microsoft.com/schemas/rss/sse", "http://www.microsoft.com/schemas/sse", "http://www.microsoft.com/schemas/simplesharing"}},
	nsKnown:      {"sy", "http://purl.org/rss/1.0/modules/syndication/", famExt, []string{"http://www.w3.org/2000/08/w3c-synd/#"}},
	{"slash", "http://purl.org/rss/1.0/modules/slash/", famExt, nil},
	{"thr", "http://purl.org/syndication/thread/1.0", famExt, []string{"http://purl.org/rss/1.0/modules/threading/"}},
	{"fh", "http://purl.org/syndication/history/1.0", famExt, nil},
	{"source", "http://source.scripting.com/", famExt, nil},
	{"rssCloud", "http://rsscloud.co/", famExt, []string{"http://rsscloud.org/", "http://rsscloud.io/", "http://rsscloud.co/rsscloud/", "http://rsscloud.org/rsscloud", "http://home.rsscloud.co/"}},
	{"georss", "http://www.georss.org/georss", famExt, []string{"http://www.georss.org/georss/10"}},
	{"geo", "http://www.w3.org/2003/01/geo/wgs84_pos#", famExt, nil},
	{"gml", "http://www.opengis.net/gml", famExt, nil},
	{"cc", "http://web.resource.org/cc/", famExt, []string{"http://creativecommons.org/ns#", "http://creativecommons.org/ns#license"}},
	{"creativeCommons", "http://backend.userland.com/creativeCommonsRssModule", famExt, []string{"http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html"}},
	{"podcast", "https://podcastindex.org/namespace/1.0", famExt, []string{"https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md"}},
	{"psc", "http://podlove.org/simple-chapters", famExt, []string{"http://podlove.de/simple-chapters"}},
	{"googleplay", "http://www.google.com/schemas/play-podcasts/1.0", famExt, nil},
	{"spotify", "http://www.spotify.com/ns/rss", famExt, nil},
	{"yt", "http://www.youtube.com/xml/schemas/2015", famExt, []string{"http://gdata.youtube.com/schemas/2007"}},
	{"gd", "http://schemas.google.com/g/2005", famExt, nil},
	{"app", "http://www.w3.org/2007/app", famExt, []string{"http://purl.org/atom/app#"}},
	{"opensearch", "http://a9.com/-/spec/opensearch/1.1/", famExt, []string{"http://a9.com/-/spec/opensearchrss/1.0/"}},
	{"activity", "http://activitystrea.ms/spec/1.0/", famExt, nil},
	{"poco", "http://portablecontacts.net/spec/1.0", famExt, nil},
	{"admin", "http://webns.net/mvcb/", famExt, nil},
	{"ag", "http://purl.org/rss/1.0/modules/aggregation/", famExt, nil},
	{"annotate", "http://purl.org/rss/1.0/modules/annotate/", famExt, nil},
	{"audio", "http://media.tangent.org/rss/1.0/", famExt, nil},
	{"blogChannel", "http://backend.userland.com/blogChannelModule", famExt, nil},
	{"co", "http://purl.org/rss/1.0/modules/company", famExt, nil},
	{"email", "http://purl.org/rss/1.0/modules/email/", famExt, nil},
	{"ev", "http://purl.org/rss/1.0/modules/event/", famExt, nil},
	{"foaf", "http://xmlns.com/foaf/0.1/", famExt, nil},
	{"icbm", "http://postneo.com/icbm/", famExt, nil},
	{"image", "http://purl.org/rss/1.0/modules/image/", famExt, nil},
	{"l", "http://purl.org/rss/1.0/modules/link/", famExt, nil},
	{"pingback", "http://madskills.com/public/xml/rss/module/pingback/", famExt, nil},
	{"prism", "http://prismstandard.org/namespaces/1.2/basic/", famExt, []string{"http://purl.org/rss/1.0/modules/prism/", "http://prismstandard.org/namespaces/basic/2.0/"}},
	{"rdfs", "http://www.w3.org/2000/01/rdf-schema#", famExt, nil},
	{"ref", "http://purl.org/rss/1.0/modules/reference/", famExt, nil},
	{"search", "http://purl.org/rss/1.0/modules/search/", famExt, nil},
	{"ss", "http://purl.org/rss/1.0/modules/servicestatus/", famExt, nil},
	{"sub", "http://purl.org/rss/1.0/modules/subscription/", famExt, nil},
	{"taxo", "http://purl.org/rss/1.0/modules/taxonomy/", famExt, nil},
	{"ti", "http://purl.org/rss/1.0/modules/textinput/", famExt, nil},
	{"trackback", "http://madskills.com/public/xml/rss/module/trackback/", famExt, nil},
	{"wiki", "http://purl.org/rss/1.0/modules/wiki/", famExt, nil},
	{"xlink", "http://www.w3.org/1999/xlink", famExt, nil},
	{"svg", "http://www.w3.org/2000/svg", famExt, nil},
	{"mathml", "http://www.w3.org/1998/Math/MathML", famExt, nil},
}

var (
	knownURIs     = map[string]nsID{}
	knownPrefixes = map[string]nsID{
		"a10": nsAtom10, "atom10": nsAtom10, "atom03": nsAtom03, "html": nsXHTML, "h": nsXHTML,
		"syn": nsKnown, "dct": nsDCTerms, "dcterm": nsDCTerms, "rss1": nsRSS10,
	}
)

func init() {
	for id, k := range knownNamespaces {
		if k.prefix == "" {
			continue
		}
		knownURIs[normalURI(k.uri)] = nsID(id)
		for _, a := range k.aliases {
			knownURIs[normalURI(a)] = nsID(id)
		}
		if p := strings.ToLower(k.prefix); k.prefix != metaPrefix && p != "xml" {
			if _, ok := knownPrefixes[p]; !ok {
				knownPrefixes[p] = nsID(id)
			}
		}
	}
}

// normalURI brings a namespace name to the form in which they are compared:
// feeds get case, scheme and the end wrong.
func normalURI(uri string) string {
	uri = strings.ToLower(strings.TrimSpace(uri))
	if rest, ok := strings.CutPrefix(uri, "https://"); ok {
		uri = "http://" + rest
	}
	return strings.TrimRight(uri, "/#")
}

// kind says how an element is treated.
type kind uint8

const (
	kText        kind = iota // a text construct: one string, child tags are markup in it
	kStruct                  // an element with children
	kTransparent             // its tags go, its children stay
	kEntry
	kFeed // <channel>
	kRoot
)

// role says what the string of a text construct is.
type role uint8

const (
	rolePlain role = iota
	roleURL
	roleID         // an identifier, kept byte for byte
	roleHTML       // HTML, in which URLs are resolved
	roleAtomText   // by its type attribute
	roleAtomLink   // <link href>
	roleTerm       // <category term>
	roleRSSLink    // <link>, or an Atom link without its namespace
	roleEnclosure  // <enclosure url>
	roleItemImage  // an <image> in an item: its URL
	rolePerson     // an author, as text or with children
	roleAttributes // attributes only
	roleDrop       // nothing
)

// level is where an element stands, as far as that makes a difference.
type level uint8

const (
	inRoot level = iota
	inFeed
	inEntry
	inStruct // in a native element with children
	inExt    // in an element of another vocabulary
)

type class struct {
	kind kind
	role role
	out  string // name in the output
	ext  bool   // another vocabulary, read by gofeed as an extension
	ns   nsID   // to be declared; nsNone for native elements
}

// nameInfo is an element name, interned: elements are compared by its index.
type nameInfo struct {
	prefix int32 // index into tidier.bound
	local  string
	lower  string
	open   int // how many are open now
	// The class is remembered for the place where the name was seen last.
	cached   bool
	cacheNS  nsID
	cacheLvl level
	class    class
}

// otherName stands for all names that are too long or too many.
const otherName = 0

// otherPrefix stands for all prefixes beyond maxNames.
const otherPrefix = 1

type frame struct {
	name    int32
	raw     []byte // the name as written
	class   class
	level   level // of its children
	runs    int   // pieces of text so far
	drop    bool  // taken out of the output when it closes
	outAt   int   // where it starts in the output
	srcAt   int
	undo    int // len(tidier.undo) before its declarations
	base    *url.URL
	person  bool // an Atom person, whose bare text is a name
	holds   bool // items in it are none of the feed's (FeedSync conflicts)
	hasKids bool
}

type binding struct {
	prefix int32
	old    nsID
}

type attr struct{ key, val []byte }

type tidier struct {
	src  []byte
	pos  int
	out  []byte
	ents entitySet

	root     string
	rootNS   nsID
	rootPfx  int32
	atom03   bool
	isAtom   bool
	max      int
	entries  int
	nodes    int
	grow     int // how much resolving may still add
	rootBase *url.URL
	rootOver bool // the root has been closed
	holding  int  // open elements that hold items
	channels int

	names    map[string]int32
	infos    []nameInfo
	prefixes map[string]int32
	bound    []nsID   // by prefix; -1 where none is
	pfxNames []string // by prefix
	undo     []binding
	ns       []namespace
	byURI    map[string]nsID
	decls    int
	unknown  int

	stack []frame
	over  []int32 // names of open elements beyond maxDepth
	attrs []attr
	seen  map[string]struct{}

	txt       construct
	scratch   []byte
	entryMeta []metaAttr
	feedMeta  []metaAttr

	noComment, noPI, noDQ, noSQ bool // no such end is left
	cdEnd                       int  // the next "]]>" at or after the last place asked for

	aside     []string
	asideFrom int

	warned  [numWarnings]int
	warns   []Warning
	linePos int
	line    int
	cut     bool
	lost    string
}

type metaAttr struct{ name, value string }

// construct is the text construct that is being read.
type construct struct {
	active   bool
	ext      bool
	one      []byte // the text, while it is one piece of the source
	buf      []byte // else here
	multi    bool
	any      bool // something was added
	firstCD  bool // it begins with a CDATA section
	keepEnd  int  // what of it came from CDATA and is not trimmed
	markup   bool // a child tag was seen: buf is HTML
	same     int  // open child elements of the same name
	typ      string
	mode     string
	src      bool // has a src or href attribute
	rel      bool
	href     string // the href of a native RSS link
	base     *url.URL
	divs     int // open <div>
	div      uint8
	innerAt  int
	innerEnd int
	bases    []innerBase
}

// innerBase is an xml:base on an element inside of a text construct: it holds
// until the element ends.
type innerBase struct {
	name int32
	open int // elements of that name in it, itself included
	base *url.URL
}

const (
	divNone  uint8 = iota // nothing yet
	divOpen               // inside of the first <div>
	divDone               // behind it
	divOther              // something else is at the top
)

// tidyXML makes a clean document of whatever text is. The error is a
// *NotFeedError.
func tidyXML(text []byte, opts Options) (*tidied, error) {
	if !utf8.Valid(text) {
		text, _ = mixed(text)
	}
	clean, mended, first := cleanChars(text)
	t := &tidier{
		src:      clean,
		max:      opts.MaxEntries,
		rootBase: documentBase(opts),
		grow:     len(text)/2 + 1<<20,
		names:    make(map[string]int32, 64),
		prefixes: map[string]int32{"": 0},
		bound:    []nsID{nsNone, -1},
		pfxNames: []string{"", "?"},
		infos:    make([]nameInfo, 1, 64),
		byURI:    map[string]nsID{},
		stack:    make([]frame, 0, 16),
		cdEnd:    -1,
		line:     1,

		asideFrom: cmp.Or(opts.asideFrom, asideFrom),
	}
	if t.max <= 0 {
		t.max = DefaultMaxEntries
	}
	t.infos[otherName] = nameInfo{local: "_", lower: "_"}
	t.ns = make([]namespace, len(knownNamespaces), len(knownNamespaces)+8)
	for i, k := range knownNamespaces {
		t.ns[i] = namespace{prefix: k.prefix, uri: k.uri, family: k.family}
	}
	if mended > 0 {
		t.warns = append(t.warns, Warning{
			Line: 1 + bytes.Count(text[:first], []byte("\n")),
			Text: fmt.Sprintf("control characters were dropped or read as windows-1252, %d in all", mended),
		})
	}
	name, self, err := t.findRoot()
	if err != nil {
		return nil, err
	}
	t.out = make([]byte, 0, len(clean)+len(clean)/8+512)
	t.openRoot(name)
	if t.rootOver = self; !self {
		t.run()
	}
	t.finish()
	if t.root == "channel" && t.entries == 0 && t.looksCDF() {
		return nil, errCDF
	}
	head := t.header()
	xml := make([]byte, 0, len(head)+len(t.out)+32)
	xml = append(append(xml, head...), t.out...)
	if t.root == "channel" {
		xml = append(xml, "</channel>"...)
	}
	xml = append(append(append(xml, "</"...), t.rootElement()...), '>')
	return &tidied{
		xml: xml, root: t.root, atom03: t.atom03, entries: t.entries, cut: t.cut, lost: t.lost,
		warnings: t.allWarnings(), aside: t.aside,
	}, nil
}

// ---- warnings

type warnKind uint8

const (
	warnJunk warnKind = iota
	warnUnclosed
	warnStray
	warnCDATA
	warnComment
	warnDepth
	warnAttrs
	warnDecls
	warnNamespaces
	warnNames
	warnNodes
	warnRuns
	warnGrow
	warnAfter
	warnText
	warnCut
	warnBase64
	warnEntries
	numWarnings
)

var warnTexts = [numWarnings]string{
	warnJunk:       "what stands before the feed was skipped",
	warnUnclosed:   "<%s> is not closed",
	warnStray:      "an end tag </%s> of nothing open was dropped",
	warnCDATA:      "a CDATA section in <%s> is not closed",
	warnComment:    "a comment is not closed",
	warnDepth:      "elements nested too deep were dropped, <%s> the first",
	warnAttrs:      "<%s> has too many attributes; the rest was dropped",
	warnDecls:      "too many namespace declarations; the rest was ignored",
	warnNamespaces: "too many unknown namespaces; <%s> was dropped",
	warnNames:      "too many different element names, or one too long; the rest was dropped",
	warnNodes:      "too many elements; the rest was dropped",
	warnRuns:       "text between the children of <%s> was dropped",
	warnGrow:       "too many relative references under a long base; the rest was left relative",
	warnAfter:      "the document goes on after its end",
	warnText:       "a < that starts no tag was read as text",
	warnCut:        "the document ends inside <%s>",
	warnBase64:     "the base64 text of <%s> could not be decoded as text",
	warnEntries:    "there are more than %s entries; the rest was left out",
}

// once tells kinds that are not repeated.
func (k warnKind) once() bool {
	switch k {
	case warnDepth, warnDecls, warnNames, warnNodes, warnGrow, warnAfter, warnEntries, warnJunk:
		return true
	}
	return false
}

// limit tells whether a limit left something out, and names the option that
// raises it if there is one.
func (k warnKind) limit() (option string, ok bool) {
	switch k {
	case warnEntries, warnNodes:
		return "MaxEntries", true
	case warnDepth, warnAttrs, warnDecls, warnNamespaces, warnNames:
		return "", true
	}
	return "", false
}

// warn notes what was mended at pos. Lines are counted only here.
func (t *tidier) warn(k warnKind, pos int, name []byte) {
	t.warned[k]++
	n := t.warned[k]
	if n > maxSameWarning || n > 1 && k.once() {
		return
	}
	text := warnTexts[k]
	if strings.Contains(text, "%s") {
		if len(name) > 60 {
			name = name[:60]
		}
		text = fmt.Sprintf(text, bytes.ToValidUTF8(name, nil))
	}
	option, limit := k.limit()
	if limit && t.lost == "" {
		t.lost = text
	}
	t.warns = append(t.warns, Warning{Line: t.lineAt(pos), Text: text, Limit: option})
}

// lineAt counts on from the last place it was asked for.
func (t *tidier) lineAt(pos int) int {
	if pos < t.linePos {
		return t.line - bytes.Count(t.src[pos:t.linePos], []byte("\n"))
	}
	t.line += bytes.Count(t.src[t.linePos:pos], []byte("\n"))
	t.linePos = pos
	return t.line
}

func (t *tidier) allWarnings() []Warning {
	for k, n := range t.warned {
		if more := n - maxSameWarning; more > 0 && !warnKind(k).once() {
			t.warns = append(t.warns, Warning{Text: fmt.Sprintf(
				"and %d more like: %s", more, strings.ReplaceAll(warnTexts[k], "%s", "…"))})
		}
	}
	return t.warns
}

// ---- the root

var errCDF = &NotFeedError{What: "a CDF channel, a format that is not supported"}

// findRoot reads up to and including the start tag of the root. In an HTML
// page, only what carries a version or a namespace counts.
func (t *tidier) findRoot() (name []byte, self bool, err error) {
	src := t.src
	page, first, junk := false, "", false
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
				page = true
			}
			t.pos = i + t.ents.doctype(rest)
			continue
		case rest[1] == '!' || rest[1] == '?':
			t.markupDecl(i)
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
		if j := bytes.IndexByte(tag, ':'); j >= 0 {
			local = tag[j+1:]
		}
		lower := string(bytes.ToLower(local[:min(len(local), 20)]))
		switch lower {
		case "html":
			page = true
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
				t.root = lower
				return tag, isSelf, nil
			}
		}
		if first == "" {
			first = string(tag[:min(len(tag), 40)])
		}
	}
	return nil, false, t.notFeed(page, first)
}

func (t *tidier) hasAttr(name string) bool {
	for _, a := range t.attrs {
		if len(a.key) == len(name) && strings.EqualFold(string(a.key), name) {
			return true
		}
	}
	return false
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

// openRoot takes the root's namespaces and attributes.
func (t *tidier) openRoot(tag []byte) {
	t.isAtom = t.root == "feed"
	id := t.intern(tag)
	t.declare()
	info := &t.infos[id]
	t.rootNS, t.rootPfx = t.resolve(info.prefix), info.prefix
	if t.rootNS >= nsID(len(knownNamespaces)) {
		t.ns[t.rootNS].native = true
	}
	version := ""
	for _, a := range t.attrs {
		switch strings.ToLower(string(a.key)) {
		case "version":
			version = strings.TrimSpace(string(t.ents.decode(nil, a.val[:min(len(a.val), 64)])))
		case "xml:lang":
			t.addMeta(&t.feedMeta, "lang", t.attrValue(a.val))
		case "xml:base":
			t.rootBase = childBase(t.rootBase, t.attrValue(a.val))
		case "rdf:about":
			if t.root == "channel" {
				t.addMeta(&t.feedMeta, "about", t.attrValue(a.val))
			}
		}
	}
	if t.isAtom {
		t.atom03 = t.rootNS == nsAtom03 || strings.HasPrefix(version, "0.") && t.rootNS != nsAtom10
	}
	if version != "" {
		t.feedMeta = append(t.feedMeta, metaAttr{"version", version}) // for the header
	}
	info.open++
	lvl := inRoot
	if t.isAtom || t.root == "channel" {
		lvl = inFeed
	}
	t.stack = append(t.stack, frame{
		name: id, raw: tag, class: class{kind: kRoot}, level: lvl, base: t.rootBase, srcAt: t.pos,
	})
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
	var b []byte
	b = append(b, '<')
	b = append(b, t.rootElement()...)
	version := metaValue(t.feedMeta, "version")
	if version != "" && t.rootElement() != "rdf:RDF" {
		b = append(b, ` version="`...)
		b = appendEscaped(b, []byte(version), true)
		b = append(b, '"')
	}
	switch {
	case t.atom03:
		b = append(b, ` xmlns="http://purl.org/atom/ns#"`...)
	case t.isAtom:
		b = append(b, ` xmlns="http://www.w3.org/2005/Atom"`...)
	case t.rootElement() == "rdf:RDF":
		if t.usesRSS09() {
			b = append(b, ` xmlns="http://my.netscape.com/rdf/simple/0.9/"`...)
		} else {
			b = append(b, ` xmlns="http://purl.org/rss/1.0/"`...)
		}
		t.ns[nsRDF].used = true
	}
	for i := range t.ns {
		n := &t.ns[i]
		if !n.used || n.prefix == "" || nsID(i) == nsXML {
			continue
		}
		if nsID(i) == nsAtom03 && t.ns[nsAtom10].used {
			continue
		}
		b = append(b, " xmlns:"...)
		b = append(b, n.prefix...)
		b = append(b, `="`...)
		b = appendEscaped(b, []byte(n.uri), true)
		b = append(b, '"')
	}
	if lang := metaValue(t.feedMeta, "lang"); lang != "" {
		b = append(b, ` xml:lang="`...)
		b = appendEscaped(b, []byte(lang), true)
		b = append(b, '"')
	}
	b = append(b, '>')
	if t.root == "channel" {
		b = append(b, "<channel>"...)
	}
	return b
}

func (t *tidier) usesRSS09() bool { return t.ns[nsRSS09].native && !t.ns[nsRSS10].native }

// ---- scanning

type tagStatus uint8

const (
	tagOK   tagStatus = iota
	tagText           // no plausible tag: text up to next
	tagCut            // the document ends inside
)

func isNameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80
}

func isNameByte(c byte) bool {
	return isNameStart(c) || c >= '0' && c <= '9' || c == '-' || c == '.' || c == ':'
}

// parseTag reads the start tag at i into t.attrs. It never looks at a byte
// more often than a few times, whatever is missing: a tag that meets another
// one is text up to there, and quotes that are not closed are remembered.
func (t *tidier) parseTag(i int) (name []byte, next int, self bool, st tagStatus) {
	src := t.src
	t.attrs = t.attrs[:0]
	j := i + 1
	if j >= len(src) {
		return nil, j, false, tagCut
	}
	if !isNameStart(src[j]) {
		return nil, j, false, tagText
	}
	for j < len(src) && isNameByte(src[j]) {
		j++
	}
	name = src[i+1 : j]
	if j >= len(src) {
		return nil, j, false, tagCut
	}
	if c := src[j]; c != '>' && !isSpace(c) {
		if c != '/' {
			return nil, j, false, tagText
		}
		if j+1 < len(src) && src[j+1] != '>' && !isSpace(src[j+1]) {
			return nil, j, false, tagText
		}
	}
	if name[len(name)-1] == ':' {
		return nil, j, false, tagText
	}
	extra := false
	for {
		for j < len(src) && isSpace(src[j]) {
			j++
		}
		if j >= len(src) {
			return nil, j, false, tagCut
		}
		switch src[j] {
		case '>':
			if extra {
				t.warn(warnAttrs, i, name)
			}
			return name, j + 1, self, tagOK
		case '/':
			self = j+1 < len(src) && src[j+1] == '>'
			j++
			continue
		case '<', '&', '(', ')', '{', '}', '[', ']', '+', '*', ';', '|', '!', ',':
			return nil, j, false, tagText // as in "a<b && c>d"
		}
		k := j
		j++
		for j < len(src) && !isSpace(src[j]) && src[j] != '=' && src[j] != '>' && src[j] != '<' &&
			!(src[j] == '/' && j+1 < len(src) && src[j+1] == '>') {
			j++
		}
		key := src[k:j]
		var val []byte
		k = j
		for k < len(src) && isSpace(src[k]) {
			k++
		}
		if k < len(src) && src[k] == '=' {
			k++
			for k < len(src) && isSpace(src[k]) {
				k++
			}
			var ok bool
			if val, j, ok = t.attrText(k); !ok {
				return nil, len(src), false, tagCut
			}
		}
		if len(t.attrs) >= maxAttrs {
			extra = true
			continue
		}
		if !t.duplicate(key) {
			t.attrs = append(t.attrs, attr{key, val})
		}
	}
}

// attrText reads an attribute's value at k: quoted, not quoted, or with a
// closing quote missing, which shows when the next one stands where none can.
func (t *tidier) attrText(k int) (val []byte, next int, ok bool) {
	src := t.src
	if k >= len(src) {
		return nil, k, false
	}
	q := src[k]
	if q != '"' && q != '\'' {
		j := k
		for j < len(src) && !isSpace(src[j]) && src[j] != '>' && src[j] != '<' &&
			!(src[j] == '/' && j+1 < len(src) && src[j+1] == '>') {
			j++
		}
		return src[k:j], j, true
	}
	gone := &t.noDQ
	if q == '\'' {
		gone = &t.noSQ
	}
	if !*gone {
		n := bytes.IndexByte(src[k+1:], q)
		if n >= 0 {
			end := k + 1 + n
			if end+1 >= len(src) || isSpace(src[end+1]) || src[end+1] == '>' || src[end+1] == '/' || src[end+1] == '?' ||
				bytes.IndexByte(src[k+1:end], '<') < 0 {
				return src[k+1 : end], end + 1, true
			}
		} else {
			*gone = true
		}
	}
	n := bytes.IndexByte(src[k+1:], '>')
	if n < 0 {
		return nil, len(src), false
	}
	return src[k+1 : k+1+n], k + 1 + n, true
}

// duplicate reports whether an attribute of this name is there already.
func (t *tidier) duplicate(key []byte) bool {
	if len(t.attrs) < 16 {
		for _, a := range t.attrs {
			if bytes.Equal(a.key, key) {
				return true
			}
		}
		return false
	}
	if len(t.attrs) == 16 || t.seen == nil {
		if t.seen == nil {
			t.seen = make(map[string]struct{}, maxAttrs)
		}
		clear(t.seen)
		for _, a := range t.attrs {
			t.seen[string(a.key)] = struct{}{}
		}
	}
	if len(key) > maxNameLen {
		return true // is not written anyway
	}
	if _, ok := t.seen[string(key)]; ok {
		return true
	}
	t.seen[string(key)] = struct{}{}
	return false
}

// run reads everything behind the root's start tag.
func (t *tidier) run() {
	src := t.src
	for t.pos < len(src) {
		n := bytes.IndexByte(src[t.pos:], '<')
		if n < 0 {
			t.charData(src[t.pos:])
			t.pos = len(src)
			return
		}
		if n > 0 {
			t.charData(src[t.pos : t.pos+n])
		}
		i := t.pos + n
		if i+1 >= len(src) {
			t.pos = len(src)
			return
		}
		switch src[i+1] {
		case '/':
			t.endTagAt(i)
		case '!', '?':
			t.markupDecl(i)
		default:
			name, next, self, st := t.parseTag(i)
			t.pos = next
			switch st {
			case tagOK:
				t.startTag(name, i, self)
			case tagText:
				t.warn(warnText, i, nil)
				t.charData(src[i:next])
			case tagCut:
				t.pos = len(src)
			}
		}
	}
}

// endTagAt reads the end tag at i.
func (t *tidier) endTagAt(i int) {
	src := t.src
	j := i + 2
	if j < len(src) && !isNameStart(src[j]) {
		t.warn(warnText, i, nil)
		t.charData(src[i:j])
		t.pos = j
		return
	}
	for j < len(src) && isNameByte(src[j]) {
		j++
	}
	name := src[i+2 : j]
	for j < len(src) && src[j] != '>' && src[j] != '<' {
		j++
	}
	if j >= len(src) {
		t.pos = len(src)
		// "</channel" at the very end is as good as closed.
		if len(name) > 0 {
			if id, ok := t.lookup(name); ok && t.infos[id].open > 0 {
				t.endTag(id, name, i)
			}
		}
		return
	}
	t.pos = j
	if src[j] == '>' {
		t.pos++
	}
	id := t.intern(name)
	t.endTag(id, name, i)
}

// markupDecl reads what starts with <! or <? at i.
func (t *tidier) markupDecl(i int) {
	src := t.src
	rest := src[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("<!--")):
		if !t.noComment {
			if n := bytes.Index(rest[4:], []byte("-->")); n >= 0 {
				t.pos = i + 4 + n + 3
				return
			}
			t.noComment = true
		}
		t.warn(warnComment, i, nil)
		t.pos = skipPast(src, i, ">")
	case bytes.HasPrefix(rest, []byte("<![CDATA[")):
		t.cdata(i)
	case rest[1] == '?':
		if !t.noPI {
			if n := bytes.Index(rest[2:], []byte("?>")); n >= 0 {
				t.pos = i + 2 + n + 2
				return
			}
			t.noPI = true
		}
		t.pos = skipPast(src, i, ">")
	case len(rest) > 9 && bytes.EqualFold(rest[:9], []byte("<!DOCTYPE")):
		var ignored entitySet
		t.pos = i + ignored.doctype(rest)
	case len(rest) > 2 && (isNameStart(rest[2]) || rest[2] == '['):
		j := i + 2
		for j < len(src) && src[j] != '>' && src[j] != '<' {
			j++
		}
		if j < len(src) && src[j] == '>' {
			j++
		}
		t.pos = j
	default:
		t.warn(warnText, i, nil)
		t.charData(src[i : i+2])
		t.pos = i + 2
	}
}

// cdata reads the CDATA section at i. One that is not closed ends at the end
// tag of its element: there is no "]]>" left, or another section begins before
// it and the end tag stands between.
func (t *tidier) cdata(i int) {
	src := t.src
	start := i + len("<![CDATA[")
	if t.cdEnd < start && t.cdEnd != len(src) {
		t.cdEnd = len(src)
		if n := bytes.Index(src[start:], []byte("]]>")); n >= 0 {
			t.cdEnd = start + n
		}
	}
	end, closed := t.cdEnd, t.cdEnd < len(src)
	limit := end
	if closed {
		limit = start
		if n := bytes.Index(src[start:end], []byte("<![CDATA[")); n >= 0 {
			limit = start + n
		}
	}
	if limit > start && len(t.stack) > 0 {
		raw := t.stack[len(t.stack)-1].raw
		if n := indexEndTag(src[start:limit], raw); n >= 0 {
			t.warn(warnCDATA, i, raw)
			t.addCDATA(src[start : start+n])
			t.pos = start + n
			return
		}
	}
	t.addCDATA(src[start:end])
	if !closed {
		t.pos = len(src)
		return
	}
	t.pos = end + 3
}

func indexEndTag(s, name []byte) int {
	for i := 0; ; {
		n := bytes.Index(s[i:], []byte("</"))
		if n < 0 {
			return -1
		}
		i += n
		rest := s[i+2:]
		if bytes.HasPrefix(rest, name) && (len(rest) == len(name) || !isNameByte(rest[len(name)])) {
			return i
		}
		i += 2
	}
}

// ---- names and namespaces

// lookup finds a name that was seen before.
func (t *tidier) lookup(name []byte) (int32, bool) {
	id, ok := t.names[string(name)]
	return id, ok
}

// intern gives a name its number. Names that differ only in case are one, so
// that <Title> … </title> is an element.
func (t *tidier) intern(name []byte) int32 {
	if id, ok := t.names[string(name)]; ok {
		return id
	}
	if len(name) > maxNameLen || len(t.names) >= maxNames || len(name) == 0 {
		return otherName
	}
	raw := string(name)
	lower := asciiLower(raw)
	if id, ok := t.names[lower]; ok {
		t.names[raw] = id
		return id
	}
	info := nameInfo{local: raw}
	prefix := ""
	if i := strings.IndexByte(raw, ':'); i >= 0 {
		prefix, info.local = raw[:i], raw[i+1:]
	}
	info.prefix = t.prefixID(prefix)
	info.local = cleanName(info.local)
	info.lower = asciiLower(info.local)
	t.infos = append(t.infos, info)
	id := int32(len(t.infos) - 1)
	t.names[raw] = id
	t.names[lower] = id
	return id
}

// cleanName makes a local name of ASCII that is one.
func cleanName(s string) string {
	ok := s != "" && (s[0] == '_' || s[0]|0x20 >= 'a' && s[0]|0x20 <= 'z')
	for i := 0; ok && i < len(s); i++ {
		ok = isNameByte(s[i]) && s[i] < 0x80 && s[i] != ':'
	}
	if ok {
		return s
	}
	b := []byte("_" + s)
	for i, c := range b {
		if !isNameByte(c) || c >= 0x80 || c == ':' {
			b[i] = '_'
		}
	}
	return string(b)
}

// prefixID gives a prefix its number. A prefix that was never declared and is
// well known means what it usually does.
func (t *tidier) prefixID(prefix string) int32 {
	prefix = asciiLower(prefix)
	if id, ok := t.prefixes[prefix]; ok {
		return id
	}
	if len(t.bound) >= maxNames {
		return otherPrefix
	}
	id := int32(len(t.bound))
	t.prefixes[prefix] = id
	t.pfxNames = append(t.pfxNames, prefix)
	ns, ok := knownPrefixes[prefix]
	switch {
	case ok:
	case prefix == "xml":
		ns = nsXML
	default:
		ns = -1 // not bound
	}
	t.bound = append(t.bound, ns)
	return id
}

// resolve gives the namespace that a prefix is bound to here.
func (t *tidier) resolve(prefix int32) nsID {
	if ns := t.bound[prefix]; ns >= 0 {
		return ns
	}
	ns := t.namespace("undeclared:" + t.pfxNames[prefix])
	t.bound[prefix] = ns
	return ns
}

// namespace finds a namespace by its name.
func (t *tidier) namespace(uri string) nsID {
	norm := normalURI(uri)
	if norm == "" {
		return nsNone
	}
	if id, ok := knownURIs[norm]; ok {
		return id
	}
	if id, ok := t.byURI[norm]; ok {
		return id
	}
	uri = strings.TrimSpace(uri)
	if len(uri) > 200 {
		uri = ""
	}
	id := nsID(len(t.ns))
	t.byURI[norm] = id
	t.ns = append(t.ns, namespace{uri: uri})
	return id
}

// declare takes the namespace declarations among t.attrs.
func (t *tidier) declare() {
	for _, a := range t.attrs {
		if len(a.key) < 5 || a.key[0]|0x20 != 'x' || !bytes.EqualFold(a.key[:5], []byte("xmlns")) {
			continue
		}
		prefix := ""
		if len(a.key) > 5 {
			if a.key[5] != ':' || len(a.key) == 6 {
				continue
			}
			prefix = string(a.key[6:])
		}
		if t.decls++; t.decls > maxDeclarations || len(prefix) > maxNameLen || len(a.val) > 4096 {
			t.warn(warnDecls, t.pos, nil)
			continue
		}
		p := t.prefixID(prefix)
		if prefix == "xml" {
			continue
		}
		t.undo = append(t.undo, binding{p, t.bound[p]})
		t.bound[p] = t.namespace(string(t.ents.decode(nil, a.val)))
	}
}

// native reports whether an element belongs to the format itself.
func (t *tidier) native(ns nsID, prefix int32) bool {
	if ns == nsNone || t.ns[ns].native {
		return true
	}
	if ns == t.rootNS && prefix == t.rootPfx && ns != nsRDF {
		return true
	}
	if t.isAtom {
		return t.ns[ns].family == famAtom
	}
	return t.ns[ns].family == famRSS
}

// prefixFor gives the prefix of a namespace in the output, false when too many
// unknown ones are in use.
func (t *tidier) prefixFor(ns nsID) (string, bool) {
	n := &t.ns[ns]
	if n.prefix == "" {
		if t.unknown >= maxNamespaces {
			return "", false
		}
		t.unknown++
		n.prefix = fmt.Sprintf("n%d", t.unknown)
		if n.uri == "" {
			n.uri = "urn:lektor:" + n.prefix
		}
	}
	n.used = true
	return n.prefix, true
}

// ---- what elements are

// properNames are names with capitals, by their form in lower case.
var properNames = func() map[string]string {
	m := map[string]string{}
	for _, n := range strings.Fields(`pubDate lastBuildDate managingEditor webMaster skipHours skipDays textInput
		updatePeriod updateFrequency updateBase commentRss origLink localTime newFeedUrl feedUrl
		isPermaLink registerProcedure fileSize samplingrate xmlUrl htmlUrl`) {
		m[strings.ToLower(n)] = n
	}
	return m
}()

// nativeText are the roles of the native elements that are not plain text.
var (
	rssFeedRoles = map[string]role{
		"link": roleRSSLink, "docs": roleURL, "cloud": roleAttributes,
		"managingeditor": rolePerson, "webmaster": rolePerson, "author": rolePerson,
	}
	rssEntryRoles = map[string]role{
		"link": roleRSSLink, "comments": roleURL, "guid": roleID, "enclosure": roleEnclosure,
		"image": roleItemImage, "author": rolePerson, "description": roleHTML, "fullitem": roleHTML,
		"body": roleHTML, "content": roleHTML, "summary": roleHTML, "encoded": roleHTML,
	}
	atomRoles = map[string]role{
		"link": roleAtomLink, "category": roleTerm, "id": roleID, "icon": roleURL, "logo": roleURL,
		"uri": roleURL, "url": roleURL, "homepage": roleURL,
		"title": roleAtomText, "subtitle": roleAtomText, "tagline": roleAtomText, "summary": roleAtomText,
		"content": roleAtomText, "rights": roleAtomText, "copyright": roleAtomText, "info": roleAtomText,
	}
	atomStructs = map[string]bool{"author": true, "contributor": true, "source": true}
	rssStructs  = map[string]bool{"image": true, "textinput": true, "skiphours": true, "skipdays": true}
	// siblings are elements that cannot be inside of a title, a link or a
	// date: one of these that is not closed ends where they begin.
	rssSiblings = map[string]bool{
		"title": true, "link": true, "description": true, "guid": true, "pubdate": true, "author": true,
		"category": true, "comments": true, "enclosure": true, "item": true, "language": true,
		"generator": true, "lastbuilddate": true, "managingeditor": true, "webmaster": true, "image": true,
		"encoded": true, "creator": true, "docs": true, "copyright": true, "ttl": true,
	}
	atomSiblings = map[string]bool{
		"title": true, "link": true, "id": true, "updated": true, "published": true, "modified": true,
		"issued": true, "summary": true, "content": true, "author": true, "category": true, "entry": true,
		"subtitle": true, "generator": true, "rights": true,
	}
)

func (t *tidier) entryName() string {
	if t.isAtom {
		return "entry"
	}
	return "item"
}

// classify says what an element is in the place where it stands.
func (t *tidier) classify(info *nameInfo, lvl level) (class, bool) {
	ns := t.resolve(info.prefix)
	if info.cached && info.cacheNS == ns && info.cacheLvl == lvl {
		return info.class, true
	}
	c, ok := t.classifyIn(info, ns, lvl)
	if ok && c.kind != kFeed { // the second channel is none
		info.cached, info.cacheNS, info.cacheLvl, info.class = true, ns, lvl, c
	}
	return c, ok
}

func (t *tidier) classifyIn(info *nameInfo, ns nsID, lvl level) (class, bool) {
	name := info.lower
	out := info.local
	if p, ok := properNames[name]; ok {
		out = p
	}
	// An entry in a namespace that nobody knows is still one, and so is what
	// is in it.
	if lvl <= inFeed && info.prefix == t.rootPfx && ns >= nsID(len(knownNamespaces)) && !t.ns[ns].native &&
		(name == t.entryName() || name == "channel" && !t.isAtom) {
		t.ns[ns].native = true
	}
	if t.native(ns, info.prefix) {
		if ns == nsRSS09 || ns == nsRSS10 {
			t.ns[ns].native = true
		}
		if lvl == inExt {
			c := class{kind: kText, out: out, ext: true}
			switch name {
			case "description", "body", "fullitem":
				c.role = roleHTML
			case "link", "url":
				c.role = roleURL
			}
			return c, true
		}
		if t.isAtom {
			return t.classifyAtom(name, out, lvl), true
		}
		return t.classifyRSS(name, out, lvl), true
	}
	if ns == nsMeta {
		return class{kind: kText, role: roleDrop}, true // ours to write
	}
	if ns == nsRDF && lvl != inExt || ns == nsXML {
		return class{kind: kTransparent}, true // xml: has attributes only
	}
	c := class{kind: kStruct, ext: true, ns: ns}
	switch ns {
	case nsAtom10, nsAtom03:
		out = name
		if !atomStructs[name] && name != "entry" && name != "feed" {
			c.kind, c.role = kText, atomRoles[name]
		}
	case nsDC, nsDCTerms:
		out = name
		c.kind = kText
		if name == "creator" || name == "author" || name == "contributor" || name == "publisher" {
			c.role = rolePerson
		}
	case nsContent:
		if name == "encoded" {
			out = name
			c.kind, c.role = kText, roleHTML
			c.ext = t.isAtom || lvl != inEntry // gofeed reads it as content in RSS entries
		}
	case nsXHTML:
		c.kind, c.role = kText, roleHTML
		out = name
	case nsITunes:
		switch name {
		case "owner", "category", "image":
			out = name
		default:
			c.kind = kText
		}
	case nsMedia:
		switch name {
		case "title", "description", "text", "copyright", "credit", "keywords", "rating":
			out = name
			c.kind, c.role = kText, roleAtomText
		}
	case nsWFW, nsFeedburner:
		switch name {
		case "comment", "commentrss", "origlink", "origenclosurelink":
			c.kind, c.role = kText, roleURL
		}
	}
	prefix, ok := t.prefixFor(ns)
	if !ok {
		return class{kind: kText, role: roleDrop}, false
	}
	c.out = prefix + ":" + out
	return c, true
}

func (t *tidier) classifyAtom(name, out string, lvl level) class {
	switch {
	case name == "entry" && lvl <= inFeed:
		return class{kind: kEntry, out: "entry"}
	case atomStructs[name] && (name != "source" || lvl == inEntry):
		return class{kind: kStruct, out: name}
	case name == "feed":
		return class{kind: kTransparent}
	}
	r, known := atomRoles[name]
	if known {
		out = name
	}
	return class{kind: kText, role: r, out: out}
}

func (t *tidier) classifyRSS(name, out string, lvl level) class {
	switch {
	case name == "item" && lvl <= inFeed:
		return class{kind: kEntry, out: "item"}
	case name == "channel":
		if lvl == inRoot && t.channels == 0 && t.root != "channel" {
			return class{kind: kFeed, out: "channel"}
		}
		return class{kind: kTransparent}
	case name == "rss", name == "rdf", name == "items", name == "categories" && lvl <= inEntry:
		return class{kind: kTransparent}
	case rssStructs[name] && lvl <= inFeed:
		return class{kind: kStruct, out: out}
	}
	roles := rssEntryRoles
	switch lvl {
	case inFeed:
		roles = rssFeedRoles
		if name == "author" {
			// gofeed has no place for it, and looks here next.
			return class{kind: kText, role: rolePerson, out: "dc:author", ns: nsDC, ext: true}
		}
	case inStruct:
		if name == "url" || name == "link" {
			return class{kind: kText, role: roleURL, out: name}
		}
		return class{kind: kText, out: out}
	}
	r, known := roles[name]
	if known && properNames[name] == "" {
		out = name
	}
	return class{kind: kText, role: r, out: out}
}

// ---- tags

func (t *tidier) top() *frame { return &t.stack[len(t.stack)-1] }

// startTag takes the tag that parseTag has read, which stands at i.
func (t *tidier) startTag(name []byte, i int, self bool) {
	id := t.intern(name)
	info := &t.infos[id]
	if t.txt.active {
		if !t.leavesText(id, info) {
			t.innerTag(name, id, self)
			return
		}
		t.warn(warnUnclosed, i, t.top().raw)
		t.pop()
	}
	if info.lower == t.entryName() && t.holding == 0 && len(t.over) == 0 && t.native(t.resolve(info.prefix), info.prefix) {
		t.popToFeed(i)
	}
	// Two are kept for what tidy itself puts around and into elements.
	if len(t.stack) >= maxDepth-2 {
		t.warn(warnDepth, i, name)
		if !self {
			t.over = append(t.over, id)
			info.open++
		}
		return
	}
	if t.rootOver {
		t.warn(warnAfter, i, nil)
	}
	undo := len(t.undo)
	base := t.top().base
	for _, a := range t.attrs {
		if len(a.key) == 8 && string(a.key) == "xml:base" {
			base = childBase(base, t.attrValue(a.val))
		}
	}
	if len(t.attrs) > 0 {
		t.declare()
	}
	lvl := t.top().level
	var c class
	switch {
	case id == otherName:
		t.warn(warnNames, i, nil)
		c = class{kind: kTransparent}
	case t.rootOver && !t.entryAfterEnd(info):
		c = class{kind: kTransparent}
	default:
		var ok bool
		if c, ok = t.classify(info, lvl); !ok {
			t.warn(warnNamespaces, i, name)
		}
	}
	f := frame{
		name: id, raw: name, class: c, outAt: len(t.out), srcAt: i, undo: undo, base: base,
	}
	switch c.kind {
	case kTransparent:
		f.level = lvl
	case kFeed:
		f.level = inFeed
		t.channels++
	case kEntry:
		f.level = inEntry
		t.entryMeta = t.entryMeta[:0]
		if t.entries >= t.max {
			f.drop = true
			t.warn(warnEntries, i, fmt.Appendf(nil, "%d", t.max))
		}
	case kStruct:
		f.level = inStruct
		if c.ext {
			f.level = inExt
		}
		f.person = t.isAtomPerson(info, c)
		if c.ns == nsSX && info.lower == "conflicts" {
			f.holds = true
			t.holding++
		}
	}
	t.spend(&f, c)
	if c.ns != nsNone {
		t.ns[c.ns].used = true
	}
	t.top().hasKids = true
	info.open++
	t.stack = append(t.stack, f)
	t.openTag(t.top())
	if self {
		t.pop()
	}
}

// isAtomPerson tells elements whose bare text is taken for a name.
func (t *tidier) isAtomPerson(info *nameInfo, c class) bool {
	return (info.lower == "author" || info.lower == "contributor") && (t.isAtom && !c.ext || c.ns == nsAtom10 || c.ns == nsAtom03)
}

// spend counts what an element will cost. What is beyond the limit is taken
// out again when it closes.
func (t *tidier) spend(f *frame, c class) {
	cost := 1
	if c.ext {
		cost = 2
	}
	cost += (len(t.attrs) + 3) / 4
	if t.nodes+cost > max(maxNodes, t.max*(maxNodes/DefaultMaxEntries)) {
		if c.kind != kTransparent && c.kind != kFeed && c.kind != kRoot {
			t.warn(warnNodes, f.srcAt, nil)
			f.drop = true
		}
		return
	}
	t.nodes += cost
}

// entryAfterEnd reports whether an element behind the end of the document is
// worth having: an entry, or in one.
func (t *tidier) entryAfterEnd(info *nameInfo) bool {
	for i := range t.stack {
		if t.stack[i].class.kind == kEntry {
			return true
		}
	}
	return info.lower == t.entryName()
}

// leavesText reports whether a start tag inside a text construct is none of
// it: an entry always, and the elements that follow a title or a date that
// was not closed.
func (t *tidier) leavesText(id int32, info *nameInfo) bool {
	if t.holding > 0 {
		return false
	}
	if info.lower == t.entryName() {
		return t.native(t.resolve(info.prefix), info.prefix)
	}
	top := t.top()
	if t.txt.markup || top.class.ext && top.class.role != rolePlain || id == top.name {
		return false
	}
	switch top.class.role {
	case roleHTML, rolePerson, roleItemImage, roleEnclosure, roleAttributes, roleDrop:
		return false
	case roleAtomText:
		if strings.Contains(strings.ToLower(t.txt.typ), "xhtml") || strings.Contains(strings.ToLower(t.txt.typ), "xml") ||
			top.raw[0]|0x20 == 'c' || top.raw[0]|0x20 == 's' && top.raw[1]|0x20 == 'u' && len(top.raw) == 7 {
			return false // content, summary
		}
	}
	if len(t.stack) < 2 {
		return false
	}
	if lvl := t.stack[len(t.stack)-2].level; lvl != inEntry && lvl != inFeed {
		return false
	}
	ns := t.resolve(info.prefix)
	if t.isAtom {
		return atomSiblings[info.lower] && t.native(ns, info.prefix)
	}
	return rssSiblings[info.lower] && (t.native(ns, info.prefix) || ns == nsContent || ns == nsDC)
}

// popToFeed closes what is open down to where an entry may stand.
func (t *tidier) popToFeed(i int) {
	keep := 1
	for j := len(t.stack) - 1; j > 0; j-- {
		if k := t.stack[j].class.kind; k == kFeed || k == kTransparent && t.stack[j].level <= inFeed {
			keep = j + 1
			break
		}
	}
	for len(t.stack) > keep {
		t.warn(warnUnclosed, i, t.top().raw)
		t.pop()
	}
}

// endTag closes down to the element of that name.
func (t *tidier) endTag(id int32, name []byte, i int) {
	if t.txt.active && id == t.top().name {
		if t.txt.same > 0 {
			t.txt.same--
			t.innerEnd(id)
			return
		}
		t.pop()
		return
	}
	if t.infos[id].open == 0 {
		if t.txt.active && t.txt.markup {
			t.innerEnd(id)
			return
		}
		if !t.rootOver {
			t.warn(warnStray, i, name)
		}
		return
	}
	for len(t.over) > 0 {
		last := t.over[len(t.over)-1]
		t.over = t.over[:len(t.over)-1]
		t.infos[last].open--
		if last == id {
			return
		}
	}
	for len(t.stack) > 1 {
		top := t.top()
		match := top.name == id
		if !match {
			t.warn(warnUnclosed, i, top.raw)
		}
		t.pop()
		if match {
			return
		}
	}
	if t.stack[0].name == id {
		// Entries may still follow; the root is closed at the end.
		t.rootOver = true
	}
}

// pop closes the innermost element.
func (t *tidier) pop() {
	f := t.top()
	if t.txt.active {
		t.closeText(f)
	} else {
		switch f.class.kind {
		case kEntry:
			t.writeMeta(t.entryMeta)
			t.closeTag(f)
			if !f.drop {
				t.entries++
			}
		case kFeed:
			t.writeMeta(t.feedMeta)
			t.feedMeta = metaOnly(t.feedMeta, "version", "lang")
			t.closeTag(f)
		case kStruct:
			t.closeTag(f)
		}
	}
	if f.drop {
		t.out = t.out[:f.outAt]
	}
	if f.holds {
		t.holding--
	}
	for len(t.undo) > f.undo {
		b := t.undo[len(t.undo)-1]
		t.undo = t.undo[:len(t.undo)-1]
		t.bound[b.prefix] = b.old
	}
	t.infos[f.name].open--
	t.stack = t.stack[:len(t.stack)-1]
}

func (t *tidier) closeTag(f *frame) {
	t.out = append(t.out, '<', '/')
	t.out = append(t.out, f.class.out...)
	t.out = append(t.out, '>')
}

// finish closes what the end of the document leaves open. An entry that was
// cut off is not delivered by half.
func (t *tidier) finish() {
	if !t.rootOver && len(t.stack) > 0 {
		entry := -1
		for i := range t.stack {
			if t.stack[i].class.kind == kEntry {
				entry = i
				break
			}
		}
		t.cut = true
		t.warn(warnCut, len(t.src), t.top().raw)
		if entry >= 0 {
			t.stack[entry].drop = true
		}
	} else if len(t.stack) > 1 {
		for i := range t.stack {
			if t.stack[i].class.kind == kEntry {
				t.stack[i].drop = true
				t.cut = true
				t.warn(warnCut, len(t.src), t.stack[i].raw)
				break
			}
		}
	}
	t.over = nil
	for len(t.stack) > 1 {
		t.pop()
	}
	if t.isAtom || t.root == "channel" {
		t.writeMeta(t.feedMeta)
	}
}

func (t *tidier) looksCDF() bool {
	return bytes.Contains(t.src, []byte("<SCHEDULE")) || bytes.Contains(t.src, []byte("<ABSTRACT"))
}

// ---- meta

func (t *tidier) addMeta(list *[]metaAttr, name, value string) {
	if value == "" || len(*list) > 16 {
		return
	}
	for i := range *list {
		if (*list)[i].name == name {
			(*list)[i].value = value
			return
		}
	}
	*list = append(*list, metaAttr{name, value})
}

func metaValue(list []metaAttr, name string) string {
	for _, m := range list {
		if m.name == name {
			return m.value
		}
	}
	return ""
}

func metaOnly(list []metaAttr, names ...string) []metaAttr {
	var kept []metaAttr
	for _, n := range names {
		if v := metaValue(list, n); v != "" {
			kept = append(kept, metaAttr{n, v})
		}
	}
	return kept
}

func (t *tidier) writeMeta(list []metaAttr) {
	start := len(t.out)
	any := false
	t.out = append(t.out, "<"+metaPrefix+":meta"...)
	for _, m := range list {
		if m.name == "version" {
			continue
		}
		any = true
		t.out = append(t.out, ' ')
		t.out = append(t.out, m.name...)
		t.out = append(t.out, '=', '"')
		t.out = appendEscaped(t.out, []byte(m.value), true)
		t.out = append(t.out, '"')
	}
	if !any {
		t.out = t.out[:start]
		return
	}
	t.out = append(t.out, "/>"...)
	t.ns[nsMeta].used = true
}

// metaFor gives the list that belongs to the element at the top, nil when it
// is neither in an entry nor in a feed directly.
func (t *tidier) metaFor(lvl level) *[]metaAttr {
	switch lvl {
	case inEntry:
		return &t.entryMeta
	case inFeed:
		return &t.feedMeta
	}
	return nil
}

// ---- attributes

// openTag writes the start tag of an element. A text construct's is left open
// until its text is known.
func (t *tidier) openTag(f *frame) {
	c := f.class
	if c.kind == kTransparent {
		return
	}
	parent := inRoot
	if len(t.stack) > 1 {
		parent = t.stack[len(t.stack)-2].level
	}
	if c.kind == kText {
		t.txt = construct{active: true, ext: c.ext, base: f.base, buf: t.txt.buf[:0]}
		if c.role == roleDrop {
			return
		}
	}
	t.out = append(t.out, '<')
	t.out = append(t.out, c.out...)
	for _, a := range t.attrs {
		t.attribute(f, parent, a)
	}
	if c.kind != kText {
		t.out = append(t.out, '>')
	}
}

// attribute writes an attribute, or keeps it for where it is needed.
func (t *tidier) attribute(f *frame, parent level, a attr) {
	if len(a.key) == 0 || len(a.key) > maxNameLen {
		return
	}
	var nameBuf [maxNameLen + 16]byte
	key := nameBuf[:0]
	colon := -1
	for i, c := range a.key {
		if !isNameByte(c) || c >= 0x80 {
			return
		}
		if c == ':' {
			if colon >= 0 {
				return
			}
			colon = i
		}
		key = append(key, c)
	}
	ns := nsNone
	local := key
	if colon >= 0 {
		local = key[colon+1:]
		if colon == 0 || len(local) == 0 {
			return
		}
		switch strings.ToLower(string(key[:colon])) {
		case "xmlns":
			return
		case "xml":
			if string(local) == "lang" {
				t.language(f, parent, t.attrValue(a.val))
			}
			return
		}
		ns = t.resolve(t.prefixID(string(key[:colon])))
	}
	if !isNameStart(local[0]) || len(local) == 5 && strings.EqualFold(string(local), "xmlns") {
		return
	}
	local = properAttr(local)
	if ns == nsRDF && string(local) == "about" && (f.class.kind == kEntry || f.class.kind == kFeed) {
		list := &t.entryMeta
		if f.class.kind == kFeed {
			list = &t.feedMeta
		}
		t.addMeta(list, "about", t.attrValue(a.val))
		return
	}
	name := string(local)
	val := t.ents.decodeAttr(a.val)
	if f.class.kind == kText && ns == nsNone {
		switch name {
		case "type":
			t.txt.typ = strings.TrimSpace(string(val))
			if f.class.role == roleAtomText {
				return // written when the text is known
			}
		case "mode":
			t.txt.mode = strings.ToLower(strings.TrimSpace(string(val)))
			if f.class.role == roleAtomText {
				return
			}
		case "rel":
			t.txt.rel = true
		case "term":
			if f.class.role == roleTerm {
				t.txt.src = true
			}
		case "url":
			if f.class.role == roleEnclosure {
				t.txt.src = true
			}
			if f.class.role == roleItemImage {
				t.txt.href = string(val)
				return
			}
		case "href", "src":
			if f.class.role == roleRSSLink || f.class.role == roleItemImage {
				t.txt.href = string(val)
				return
			}
			t.txt.src = len(bytes.TrimSpace(val)) > 0
			if f.class.role == roleAtomLink && !t.txt.src {
				return
			}
		}
	}
	if isURLAttr(name) && ns != nsXML {
		abs := t.resolved(f.base, string(val))
		if name == "href" || name == "src" || name == "uri" || name == "scheme" {
			if parent != inExt {
				abs = guardURL(abs)
			}
		}
		val = []byte(abs)
	} else if name == "scheme" && parent != inExt {
		val = []byte(guardURL(string(val)))
	}
	t.out = append(t.out, ' ')
	if ns != nsNone && !t.native(ns, -1) {
		prefix, ok := t.prefixFor(ns)
		if !ok {
			t.out = t.out[:len(t.out)-1]
			return
		}
		t.out = append(t.out, prefix...)
		t.out = append(t.out, ':')
	}
	t.out = append(t.out, name...)
	t.out = append(t.out, '=', '"')
	t.out = appendEscaped(t.out, val, true)
	t.out = append(t.out, '"')
}

// language keeps xml:lang where the finished entry or feed finds it. What a
// text construct says stands for an entry that says nothing.
func (t *tidier) language(f *frame, parent level, lang string) {
	lang = strings.TrimSpace(lang)
	switch f.class.kind {
	case kEntry:
		t.addMeta(&t.entryMeta, "lang", lang)
	case kFeed:
		t.addMeta(&t.feedMeta, "lang", lang)
	case kText:
		if parent == inEntry && metaValue(t.entryMeta, "lang") == "" {
			t.addMeta(&t.entryMeta, "lang", lang)
		}
	}
}

// properAttr gives an attribute name the spelling that gofeed looks for.
func properAttr(name []byte) []byte {
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			lower := asciiLower(string(name))
			if p, ok := properNames[lower]; ok {
				return []byte(p)
			}
			switch lower {
			case "href", "rel", "type", "url", "length", "src", "title", "term", "label", "scheme", "domain",
				"port", "path", "protocol", "version", "text", "about", "resource", "medium", "mode":
				return []byte(lower)
			}
			return name
		}
	}
	if string(name) == "ispermalink" || string(name) == "registerprocedure" || string(name) == "filesize" {
		return []byte(properNames[string(name)])
	}
	return name
}

func isURLAttr(name string) bool {
	switch name {
	case "href", "src", "url", "uri", "resource", "xmlUrl", "htmlUrl":
		return true
	}
	return false
}

// attrValue decodes an attribute.
func (t *tidier) attrValue(val []byte) string { return string(t.ents.decodeAttr(val)) }

// decodeAttr decodes an attribute's value; white space that is written as such
// becomes spaces, as XML says.
func (e *entitySet) decodeAttr(val []byte) []byte {
	if bytes.IndexByte(val, '\n') >= 0 || bytes.IndexByte(val, '\t') >= 0 {
		val = bytes.Map(func(r rune) rune {
			if r == '\n' || r == '\t' {
				return ' '
			}
			return r
		}, val)
	}
	if bytes.IndexByte(val, '&') < 0 {
		return val
	}
	return e.decode(make([]byte, 0, len(val)), val)
}

// resolved is resolveURL within what a document may grow by.
func (t *tidier) resolved(base *url.URL, ref string) string {
	if t.grow <= 0 {
		return trimURL(ref)
	}
	abs := resolveURL(base, ref)
	if n := len(abs) - len(ref); n > 0 {
		if t.grow -= n; t.grow <= 0 {
			t.warn(warnGrow, t.pos, nil)
			return trimURL(ref)
		}
	}
	return abs
}

// guardURL keeps gofeed from re-encoding a URL: one with a newline before it
// (after it is not enough, that may be a fragment) it cannot parse, and leaves
// alone. Where re-encoding changes nothing, none is needed.
func guardURL(s string) string {
	rest, ok := strings.CutPrefix(s, "http://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "https://")
	}
	ok = ok && rest != "" && (rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z' || rest[0] >= '0' && rest[0] <= '9')
	for i := 0; i < len(rest) && ok; i++ {
		ok = plainURLByte[rest[i]]
	}
	if ok {
		return s
	}
	u, err := url.Parse(strings.TrimLeft(s, " "))
	if err != nil || u.String() == s {
		return s
	}
	return "\n" + s
}

var plainURLByte = func() (t [256]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/=&;," {
		t[c] = true
	}
	t[':'], t['?'] = true, true
	return
}()

// appendEscaped escapes text, or an attribute's value.
func appendEscaped(dst, s []byte, attribute bool) []byte {
	start := 0
	for i, c := range s {
		var rep string
		switch c {
		case '&':
			rep = "&amp;"
		case '<':
			rep = "&lt;"
		case '>':
			rep = "&gt;"
		case '"':
			if !attribute {
				continue
			}
			rep = "&#34;"
		case '\n':
			if !attribute {
				continue
			}
			rep = "&#10;"
		case '\t':
			if !attribute {
				continue
			}
			rep = "&#9;"
		default:
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = append(dst, rep...)
		start = i + 1
	}
	return append(dst, s[start:]...)
}

// ---- text

// charData takes text with references in it.
func (t *tidier) charData(raw []byte) {
	if t.txt.active {
		x := &t.txt
		if bytes.IndexByte(raw, '&') < 0 {
			t.addText(raw)
			return
		}
		if x.markup {
			t.scratch = t.ents.decode(t.scratch[:0], raw)
			t.addText(t.scratch)
			return
		}
		x.own()
		x.any = true
		x.buf = t.ents.decode(x.buf, raw)
		return
	}
	if len(t.stack) == 0 || blank(raw) && t.top().class.kind != kStruct {
		return
	}
	f := t.top()
	if blank(raw) {
		if f.runs > 0 && f.class.ext && t.out[len(t.out)-1] != '>' {
			t.out = append(t.out, ' ')
		}
		return
	}
	if bytes.IndexByte(raw, '&') >= 0 {
		t.scratch = t.ents.decode(t.scratch[:0], raw)
		raw = t.scratch
	}
	t.structText(raw)
}

// structText takes text that stands between the children of an element. Only
// extensions have a use for it; gofeed joins it piece by piece, so the pieces
// are limited.
func (t *tidier) structText(text []byte) {
	f := t.top()
	if f.class.kind != kStruct {
		return
	}
	if f.person {
		if !f.hasKids && f.runs == 0 {
			f.runs++
			open, end := "<name>", "</name>"
			if f.class.ext {
				open, end = "<atom:name>", "</atom:name>"
			}
			t.out = append(t.out, open...)
			t.out = appendEscaped(t.out, bytes.TrimSpace(text), false)
			t.out = append(t.out, end...)
		}
		return
	}
	if !f.class.ext {
		return
	}
	if f.runs == 0 || t.out[len(t.out)-1] == '>' {
		if f.runs++; f.runs > maxTextRuns {
			t.warn(warnRuns, t.pos, f.raw)
			return
		}
	}
	t.out = appendEscaped(t.out, text, false)
}

// addCDATA takes text as it is.
func (t *tidier) addCDATA(text []byte) {
	if !t.txt.active {
		if len(t.stack) > 0 && !blank(text) {
			t.structText(text)
		}
		return
	}
	x := &t.txt
	if !x.any {
		x.firstCD = true
	}
	t.addText(text)
	x.keepEnd = x.size()
}

func (x *construct) size() int {
	if x.multi {
		return len(x.buf)
	}
	return len(x.one)
}

// own moves the text into a buffer.
func (x *construct) own() {
	if !x.multi {
		x.multi = true
		x.buf = append(x.buf[:0], x.one...)
		x.one = nil
	}
}

func (t *tidier) addText(text []byte) {
	x := &t.txt
	if len(text) == 0 {
		return
	}
	if !x.any && !x.markup && !x.multi {
		x.one, x.any = text, true
		return
	}
	x.any = true
	x.own()
	if x.markup {
		if x.div == divDone && !blank(text) {
			x.div = divOther
		}
		x.buf = appendEscaped(x.buf, text, false)
		return
	}
	x.buf = append(x.buf, text...)
}

// innerTag takes a start tag inside a text construct: the construct is markup
// from now on, and what was text before must be escaped in it.
func (t *tidier) innerTag(name []byte, id int32, self bool) {
	x := &t.txt
	if t.top().class.role == roleDrop || t.top().class.role == roleAttributes {
		if !self && id == t.top().name {
			x.same++
		}
		return
	}
	if !x.markup {
		x.own()
		before := x.buf
		if blank(before) {
			x.div = divNone
		} else {
			x.div = divOther
		}
		if bytes.ContainsAny(before, "&<>") {
			x.buf = appendEscaped(make([]byte, 0, len(before)+len(before)/8), before, false)
		}
		x.markup, x.any = true, true
	}
	if id == t.top().name && !self {
		x.same++
	}
	local := name
	if j := bytes.IndexByte(name, ':'); j >= 0 {
		local = name[j+1:]
	}
	isDiv := len(local) == 3 && strings.EqualFold(string(local), "div")
	switch {
	case x.div == divNone && isDiv && !self:
		x.div = divOpen
	case x.div == divNone, x.div == divDone:
		x.div = divOther
	}
	x.buf = append(x.buf, '<')
	x.buf = append(x.buf, local...)
	if n := len(x.bases); n > 0 && !self && x.bases[n-1].name == id {
		x.bases[n-1].open++
	}
	bases := len(x.bases)
	for _, a := range t.attrs {
		if string(a.key) == "xml:base" && bases < maxDepth {
			x.bases = append(x.bases, innerBase{id, 1, childBase(x.innermost(), t.attrValue(a.val))})
		}
	}
	if len(t.attrs) > 0 {
		t.innerAttrs()
	}
	if self {
		x.bases = x.bases[:bases]
	}
	switch {
	case !self:
		x.buf = append(x.buf, '>')
	case isVoid(local):
		x.buf = append(x.buf, " />"...)
	default: // HTML knows no <a/>
		x.buf = append(x.buf, "></"...)
		x.buf = append(x.buf, local...)
		x.buf = append(x.buf, '>')
	}
	if isDiv && !self {
		if x.divs++; x.divs == 1 && x.div == divOpen {
			x.innerAt = len(x.buf)
		}
	}
}

// innermost is the base inside of a text construct.
func (x *construct) innermost() *url.URL {
	if n := len(x.bases); n > 0 {
		return x.bases[n-1].base
	}
	return x.base
}

// innerAttrs writes the attributes of a tag in a text construct.
func (t *tidier) innerAttrs() {
	x := &t.txt
	for _, a := range t.attrs {
		key := a.key
		if len(key) > maxNameLen || bytes.ContainsAny(key, "\"'<>&=/") {
			continue
		}
		if j := bytes.IndexByte(key, ':'); j >= 0 {
			prefix := asciiLower(string(key[:j]))
			if prefix == "xmlns" || prefix == "xml" && string(key[j+1:]) != "lang" {
				continue
			}
			key = key[j+1:]
		} else if string(key) == "xmlns" {
			continue
		}
		if len(key) == 0 {
			continue
		}
		val := t.ents.decodeAttr(a.val)
		if len(x.bases) > 0 && urlAttrs[asciiLower(string(key))] {
			if abs, changed := resolveAttr(x.innermost(), asciiLower(string(key)), html.EscapeString(string(val))); changed && t.grow > 0 {
				t.grow -= max(len(abs)-len(val), 0)
				val = []byte(abs)
			}
		}
		x.buf = append(x.buf, ' ')
		x.buf = append(x.buf, key...)
		x.buf = append(x.buf, '=', '"')
		x.buf = appendAttr(x.buf, val)
		x.buf = append(x.buf, '"')
	}
}

// appendAttr escapes the value of an HTML attribute.
func appendAttr(dst, s []byte) []byte {
	for _, c := range s {
		switch c {
		case '&':
			dst = append(dst, "&amp;"...)
		case '"':
			dst = append(dst, "&quot;"...)
		case '<':
			dst = append(dst, "&lt;"...)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// innerEnd takes an end tag inside a text construct.
func (t *tidier) innerEnd(id int32) {
	x := &t.txt
	if !x.markup {
		return
	}
	local := t.infos[id].local
	if id == otherName || isVoid([]byte(local)) {
		return
	}
	if n := len(x.bases); n > 0 && x.bases[n-1].name == id {
		if x.bases[n-1].open--; x.bases[n-1].open == 0 {
			x.bases = x.bases[:n-1]
		}
	}
	if local == "div" || strings.EqualFold(local, "div") {
		if x.divs--; x.divs == 0 && x.div == divOpen {
			x.div = divDone
			x.innerEnd = len(x.buf)
		}
	}
	x.buf = append(x.buf, '<', '/')
	x.buf = append(x.buf, local...)
	x.buf = append(x.buf, '>')
}

func isVoid(name []byte) bool {
	switch strings.ToLower(string(name)) {
	case "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr":
		return true
	}
	return false
}

// closeText writes the text construct that ends.
func (t *tidier) closeText(f *frame) {
	x := &t.txt
	x.active = false
	c := f.class
	if c.role == roleDrop {
		return
	}
	s := x.one
	if x.multi {
		s = x.buf
	}
	if !x.markup {
		s = x.trim(s)
	}
	lvl := inRoot
	if len(t.stack) > 1 {
		lvl = t.stack[len(t.stack)-2].level
	}
	switch c.role {
	case roleURL:
		s = []byte(t.resolved(x.base, plainOf(s, x.markup)))
		if t.isAtom && !c.ext {
			s = []byte(guardURL(string(s)))
		}
	case roleID:
		if t.isAtom && !c.ext {
			s = []byte(guardURL(string(s)))
		}
	case roleHTML:
		s = t.resolveMarkup(s, x.base)
	case roleAtomText:
		t.closeAtomText(f, s, lvl)
		return
	case roleAtomLink:
		if !x.src {
			if href := t.resolved(x.base, plainOf(s, x.markup)); href != "" {
				t.writeAttr("href", guardURL(href))
			}
		}
		t.out = append(t.out, "/>"...)
		return
	case roleTerm:
		if !x.src {
			if term := strings.TrimSpace(plainOf(s, x.markup)); term != "" {
				t.writeAttr("term", term)
			}
		}
		t.out = append(t.out, "/>"...)
		return
	case roleEnclosure:
		if !x.src {
			if u := t.resolved(x.base, plainOf(s, x.markup)); u != "" {
				t.writeAttr("url", u)
			}
		}
		t.out = append(t.out, "/>"...)
		return
	case roleAttributes:
		t.out = append(t.out, "/>"...)
		return
	case roleRSSLink:
		s = []byte(t.resolved(x.base, plainOf(s, x.markup)))
		if len(s) == 0 && x.href != "" {
			href := t.resolved(x.base, x.href)
			if x.rel {
				// An Atom link that lost its namespace.
				if prefix, ok := t.prefixFor(nsAtom10); ok {
					rest := append([]byte(nil), t.out[f.outAt+len("<"+c.out):]...)
					t.out = append(t.out[:f.outAt], "<"+prefix+":link"...)
					t.out = append(t.out, rest...)
					t.writeAttr("href", guardURL(href))
					t.out = append(t.out, "/>"...)
					return
				}
			}
			s = []byte(href)
		}
	case roleItemImage:
		u := x.href
		if u == "" {
			u = imageURL(string(s), x.markup)
		}
		s = []byte(t.resolved(x.base, u))
	case rolePerson:
		if x.markup {
			s = []byte(personText(string(s)))
		}
	}
	if x.typ != "" && !c.ext {
		t.noteType(c.out, x.typ, lvl)
	}
	t.out = append(t.out, '>')
	t.writeText(f, lvl, s, false)
	t.closeTag(f)
}

func (t *tidier) noteType(name, typ string, lvl level) {
	if list := t.metaFor(lvl); list != nil && len(typ) <= 100 {
		t.addMeta(list, "type-"+name, typ)
	}
}

func (t *tidier) writeAttr(name, value string) {
	t.out = append(t.out, ' ')
	t.out = append(t.out, name...)
	t.out = append(t.out, '=', '"')
	t.out = appendEscaped(t.out, []byte(value), true)
	t.out = append(t.out, '"')
}

// trim drops white space at the ends, except what was in a CDATA section.
func (x *construct) trim(s []byte) []byte {
	end := len(s)
	for end > x.keepEnd && end > 0 && isSpace(s[end-1]) {
		end--
	}
	s = s[:end]
	if !x.firstCD {
		for len(s) > 0 && isSpace(s[0]) {
			s = s[1:]
		}
	}
	return s
}

// writeText writes a string as what gofeed will read unchanged. Extensions are
// read by encoding/xml, piece by piece, so theirs is one escaped piece;
// everything else by gofeed, which takes CDATA verbatim and decodes other text
// by rules that depend on the element.
func (t *tidier) writeText(f *frame, lvl level, s []byte, verbatim bool) {
	plain := !f.class.ext && !verbatim && len(s) > 0 && !bytes.ContainsAny(s, "<>&") && !isSpace(s[0]) && !isSpace(s[len(s)-1])
	if plain {
		// gofeed trims what is not CDATA, and more than isSpace knows.
		s = bytes.TrimSpace(s)
	}
	if lvl == inEntry && !f.class.ext && asideElements[t.isAtom][f.class.out] && (len(s) >= t.asideFrom || bytes.HasPrefix(s, []byte(asideMark))) {
		t.aside = append(t.aside, string(s))
		s = strconv.AppendInt([]byte(asideMark), int64(len(t.aside)-1), 10)
	}
	switch {
	case f.class.ext:
		t.out = appendEscaped(t.out, s, false)
	case len(s) == 0:
	case !verbatim && !bytes.ContainsAny(s, "<>&") && !isSpace(s[0]) && !isSpace(s[len(s)-1]):
		t.out = append(t.out, s...)
	default:
		t.out = append(t.out, "<![CDATA["...)
		for {
			n := bytes.Index(s, []byte("]]>"))
			if n < 0 {
				break
			}
			t.out = append(t.out, s[:n+2]...)
			t.out = append(t.out, "]]><![CDATA["...)
			s = s[n+2:]
		}
		t.out = append(t.out, s...)
		t.out = append(t.out, "]]>"...)
	}
}

// resolveMarkup resolves the URLs in HTML.
func (t *tidier) resolveMarkup(s []byte, base *url.URL) []byte {
	if base == nil || bytes.IndexByte(s, '<') < 0 {
		return s
	}
	before := t.grow
	str := string(s)
	res := resolveHTMLBudget(str, base, &t.grow)
	if before > 0 && t.grow <= 0 {
		t.warn(warnGrow, t.pos, nil)
	}
	if res == str {
		return s
	}
	return []byte(res)
}

// closeAtomText writes a text construct with a type.
func (t *tidier) closeAtomText(f *frame, s []byte, lvl level) {
	x := &t.txt
	typ, mode := x.typ, x.mode
	lower := strings.ToLower(typ)
	if x.markup {
		mode = ""
		inline := strings.Contains(lower, "xml") && !strings.Contains(lower, "xhtml") || strings.HasPrefix(lower, "image/")
		if !inline {
			typ = "xhtml"
			if t.atom03 || strings.Contains(lower, "/") {
				typ = "application/xhtml+xml"
			}
		}
		if !t.atom03 && (x.div == divDone || x.div == divOpen) {
			if x.div == divOpen {
				x.innerEnd = len(s)
			}
			s = s[x.innerAt:x.innerEnd]
		}
	} else if len(s) > 0 && (mode == "base64" || !t.atom03 && isBinaryType(lower) && !x.src) {
		if dec, ok := decodeBase64(s); ok {
			s = dec
			mode = ""
		} else if mode == "base64" {
			t.warn(warnBase64, f.srcAt, f.raw)
		}
	} else if mode == "escaped" && lower == "" {
		typ = "text/html" // nobody escapes plain text and says so
	}
	lower = strings.ToLower(typ)
	if x.markup || strings.Contains(lower, "html") {
		s = t.resolveMarkup(s, x.base)
	}
	if typ != "" {
		t.writeAttr("type", typ)
		if !f.class.ext {
			t.noteType(f.class.out, typ, lvl)
		}
	}
	if mode != "" {
		t.writeAttr("mode", mode)
	}
	t.out = append(t.out, '>')
	t.writeText(f, lvl, s, typ != "" && lower != "text" || mode != "")
	t.closeTag(f)
}

// isBinaryType tells the types whose content is base64 (RFC 4287, section
// 4.1.3.3).
func isBinaryType(typ string) bool {
	typ, _, _ = strings.Cut(typ, ";")
	typ = strings.TrimSpace(typ)
	return strings.Contains(typ, "/") && !strings.HasPrefix(typ, "text/") && !strings.HasSuffix(typ, "xml") &&
		!strings.HasPrefix(typ, "multipart/") && !strings.HasPrefix(typ, "message/")
}

// decodeBase64 decodes what is text.
func decodeBase64(s []byte) ([]byte, bool) {
	compact := make([]byte, 0, len(s))
	for _, c := range s {
		if !isSpace(c) {
			compact = append(compact, c)
		}
	}
	compact = bytes.TrimRight(compact, "=")
	dec := make([]byte, base64.RawStdEncoding.DecodedLen(len(compact)))
	n, err := base64.RawStdEncoding.Decode(dec, compact)
	if err != nil || !utf8.Valid(dec[:n]) {
		return nil, false
	}
	clean, mended, _ := cleanChars(dec[:n])
	if mended > len(clean)/16 {
		return nil, false // not text
	}
	return clean, true
}

// plainOf gives the text of a construct that has no business with markup.
func plainOf(s []byte, markup bool) string {
	if !markup {
		return string(s)
	}
	return html.UnescapeString(withoutTags(string(s)))
}

// withoutTags puts a space in the place of every tag.
func withoutTags(s string) string {
	var b strings.Builder
	for {
		start := strings.IndexByte(s, '<')
		if start < 0 {
			break
		}
		end := strings.IndexByte(s[start:], '>')
		if end < 0 {
			break
		}
		b.WriteString(s[:start])
		b.WriteByte(' ')
		s = s[start+end+1:]
	}
	b.WriteString(s)
	return b.String()
}

var (
	namePattern  = regexp.MustCompile(`(?is)<name\b[^>]*>([^<]*)<`)
	emailPattern = regexp.MustCompile(`(?is)<(?:email|mbox)\b[^>]*>([^<]*)<`)
	urlPattern   = regexp.MustCompile(`(?is)<url\b[^>]*>([^<]*)<`)
)

// personText makes one line of an author with children, as Atom has them.
func personText(s string) string {
	find := func(re *regexp.Regexp) string {
		if m := re.FindStringSubmatch(s); m != nil {
			return strings.TrimSpace(html.UnescapeString(m[1]))
		}
		return ""
	}
	name, email := find(namePattern), find(emailPattern)
	switch {
	case name != "" && email != "":
		return name + " <" + email + ">"
	case name != "" || email != "":
		return name + email
	}
	return strings.Join(strings.Fields(plainOf([]byte(s), true)), " ")
}

// imageURL finds the URL of an item's image.
func imageURL(s string, markup bool) string {
	if markup {
		if m := urlPattern.FindStringSubmatch(s); m != nil {
			return html.UnescapeString(m[1])
		}
	}
	return strings.TrimSpace(plainOf([]byte(s), markup))
}
