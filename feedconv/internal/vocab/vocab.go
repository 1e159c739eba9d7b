// Package vocab lists the namespaces of feeds, and the elements of other vocabularies that have a
// field.
package vocab

import (
	"strings"
	"sync"
)

// NS is a namespace. Known namespaces have the same number in every document.
type NS int32

// Family groups the namespaces that the formats themselves are written in.
type Family uint8

// The families.
const (
	Other Family = iota
	Atom
	RSS
)

// Namespaces that the code names.
const (
	None NS = iota
	XML
	Atom10
	Atom03
	RSS10
	RSS09
	RSS11
	RDF
	XHTML
	Content
	DC
	DCTerms
	ITunes
	Media
	WFW
	Feedburner
	SY
	FH
	Source
	RSSCloud
	SSE
	Thr
	Userland
	Podcast
	PSC
)

// known lists prefix, URI and aliases.
var known = [...]struct {
	prefix, uri string
	family      Family
	aliases     []string
}{
	None:   {},
	XML:    {"xml", "http://www.w3.org/XML/1998/namespace", Other, nil},
	Atom10: {"atom", "http://www.w3.org/2005/Atom", Atom, []string{"http://www.w3.org/2005/10/Atom"}},
	Atom03: {"atom", "http://purl.org/atom/ns#", Atom, []string{"http://purl.org/net/atom/ns#",
		"http://example.com/newformat#", "http://necho.org/", "http://purl.org/pie/"}},
	RSS10: {"rss", "http://purl.org/rss/1.0/", RSS, nil},
	RSS09: {"rss", "http://my.netscape.com/rdf/simple/0.9/", RSS,
		[]string{"http://channel.netscape.com/rdf/simple/0.9/", "http://my.netscape.com/publish/formats/rss-0.9"}},
	RSS11:   {"rss", "http://purl.org/net/rss1.1#", RSS, nil},
	RDF:     {"rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#", Other, nil},
	XHTML:   {"xhtml", "http://www.w3.org/1999/xhtml", Other, []string{"http://www.w3.org/TR/REC-html40"}},
	Content: {"content", "http://purl.org/rss/1.0/modules/content/", Other, nil},
	DC: {"dc", "http://purl.org/dc/elements/1.1/", Other, []string{"http://purl.org/dc/elements/1.0/",
		"http://purl.org/metadata/dublin_core", "http://dublincore.org/documents/dcmi-namespace/"}},
	DCTerms: {"dcterms", "http://purl.org/dc/terms/", Other, nil},
	ITunes: {"itunes", "http://www.itunes.com/dtds/podcast-1.0.dtd", Other,
		[]string{"http://example.com/DTDs/PodCast-1.0.dtd", "http://www.itunes.com/dtds/podcast-1.0.dtd/"}},
	Media: {"media", "http://search.yahoo.com/mrss/", Other, []string{"http://search.yahoo.com/rss",
		"http://www.rssboard.org/media-rss", "http://tools.search.yahoo.com/mrss/",
		"http://video.search.yahoo.com/mrss"}},
	WFW:        {"wfw", "http://wellformedweb.org/CommentAPI/", Other, nil},
	Feedburner: {"feedburner", "http://rssnamespace.org/feedburner/ext/1.0", Other, nil},
	SY: {"sy", "http://purl.org/rss/1.0/modules/syndication/", Other,
		[]string{"http://www.w3.org/2000/08/w3c-synd/#"}},
	FH:     {"fh", "http://purl.org/syndication/history/1.0", Other, nil},
	Source: {"source", "http://source.scripting.com/", Other, nil},
	RSSCloud: {"rssCloud", "http://rsscloud.co/", Other, []string{"http://rsscloud.org/", "http://rsscloud.io/",
		"http://rsscloud.co/rsscloud/", "http://rsscloud.org/rsscloud", "http://home.rsscloud.co/"}},
	SSE: {"sx", "http://www.microsoft.com/schemas/rss/sse", Other,
		[]string{"http://www.microsoft.com/schemas/sse", "http://www.microsoft.com/schemas/simplesharing"}},
	Thr: {"thr", "http://purl.org/syndication/thread/1.0", Other, nil},
	Userland: {"rss", "http://backend.userland.com/rss2", RSS, []string{
		"http://backend.userland.com/rss", "http://backend.userland.com/rss091",
		"http://backend.userland.com/rss092", "http://backend.userland.com/rss093", "http://backend.userland.com/rss20",
		"http://blogs.law.harvard.edu/tech/rss", "http://cyber.law.harvard.edu/rss/rss.html",
		"http://www.rssboard.org/rss-specification",
		"http://my.netscape.com/publish/formats/rss-0.91.dtd", "http://purl.org/rss/2.0/"}},
	Podcast: {"podcast", "https://podcastindex.org/namespace/1.0", Other,
		[]string{"https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md"}},
	PSC: {"psc", "http://podlove.org/simple-chapters", Other, []string{"http://podlove.de/simple-chapters"}},
	{"feedsync", "http://feedsync.org/2007/feedsync", Other, nil},
	{"slash", "http://purl.org/rss/1.0/modules/slash/", Other, nil},
	{"georss", "http://www.georss.org/georss", Other, []string{"http://www.georss.org/georss/10"}},
	{"geo", "http://www.w3.org/2003/01/geo/wgs84_pos#", Other, nil},
	{"gml", "http://www.opengis.net/gml", Other, nil},
	{"cc", "http://web.resource.org/cc/", Other, nil},
	{"creativeCommons", "http://backend.userland.com/creativeCommonsRssModule", Other,
		[]string{"http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html"}},
	{"googleplay", "http://www.google.com/schemas/play-podcasts/1.0", Other, nil},
	{"spotify", "http://www.spotify.com/ns/rss", Other, nil},
	{"yt", "http://www.youtube.com/xml/schemas/2015", Other, nil},
	{"gd", "http://schemas.google.com/g/2005", Other, nil},
	{"app", "http://www.w3.org/2007/app", Other, nil},
	{"opensearch", "http://a9.com/-/spec/opensearch/1.1/", Other, nil},
	{"admin", "http://webns.net/mvcb/", Other, nil},
	{"prism", "http://prismstandard.org/namespaces/1.2/basic/", Other, nil},
	{"taxo", "http://purl.org/rss/1.0/modules/taxonomy/", Other, nil},
	{"xlink", "http://www.w3.org/1999/xlink", Other, nil},
	{"svg", "http://www.w3.org/2000/svg", Other, nil},
	{"mathml", "http://www.w3.org/1998/Math/MathML", Other, nil},
}

// Known is the number of known namespaces. Namespaces that only a document uses have higher
// numbers.
const Known = NS(len(known))

// Prefix returns the usual prefix of a known namespace.
func (ns NS) Prefix() string { return known[ns].prefix }

// URI returns the name of a known namespace as its specification spells it.
func (ns NS) URI() string { return known[ns].uri }

// Family returns the family of a known namespace.
func (ns NS) Family() Family { return known[ns].family }

// byURI maps names of known namespaces, in the form of Normal.
var byURI = sync.OnceValue(func() map[string]NS {
	uris := map[string]NS{}
	for ns, k := range known {
		if k.prefix != "" {
			for _, uri := range append(k.aliases, k.uri) {
				uris[Normal(uri)] = NS(ns)
			}
		}
	}
	return uris
})

// Find returns the known namespace of a name in the form of [Normal].
func Find(normal string) (ns NS, ok bool) {
	ns, ok = byURI()[normal]
	return ns, ok
}

// byPrefix maps prefixes that a document uses without a declaration to their usual namespaces.
var byPrefix = sync.OnceValue(func() map[string]NS {
	prefixes := map[string]NS{
		"a10": Atom10, "atom10": Atom10, "atom03": Atom03, "html": XHTML, "h": XHTML,
		"syn": SY, "dct": DCTerms, "dcterm": DCTerms, "rss1": RSS10,
	}
	for id, k := range known {
		p := strings.ToLower(k.prefix)
		if _, taken := prefixes[p]; !taken && p != "" && p != "xml" {
			prefixes[p] = NS(id)
		}
	}
	return prefixes
})

// ByPrefix returns the usual namespace of a prefix that is never declared. prefix is in lower case.
func ByPrefix(prefix string) (ns NS, ok bool) {
	if prefix == "xml" {
		return XML, true
	}
	ns, ok = byPrefix()[prefix]
	return ns, ok
}

// Normal returns the name of a namespace in the form for comparison: feeds often get case, scheme
// and the end wrong.
func Normal(uri string) string {
	uri = strings.ToLower(strings.TrimSpace(uri))
	if rest, ok := strings.CutPrefix(uri, "https://"); ok {
		uri = "http://" + rest
	}
	return strings.TrimRight(uri, "/#")
}

// Place is a part of a feed document in which an element has a field.
type Place uint8

// Places.
const (
	OfFeed Place = 1 << iota
	OfEntry
	anywhere = OfFeed | OfEntry
)

// mapped are the elements of other vocabularies that have a field. If you change this, change the
// documentation of Extension, too.
var mapped = sync.OnceValue(func() map[NS]map[string]Place {
	return map[NS]map[string]Place{
		Atom10: {
			"author": anywhere, "id": anywhere, "link": anywhere, "published": anywhere, "updated": anywhere,
			"category": OfEntry, "content": OfEntry, "contributor": OfEntry, "issued": OfEntry, "modified": OfEntry,
			"summary": OfEntry, "title": OfEntry,
			"logo": OfFeed,
		},
		DC: {
			"author": anywhere, "creator": anywhere, "date": anywhere, "description": anywhere, "language": anywhere,
			"subject": anywhere, "title": anywhere, "rights": anywhere, "contributor": OfEntry,
		},
		DCTerms: {"issued": anywhere, "modified": anywhere, "created": OfEntry},
		ITunes: {
			"author": anywhere, "image": anywhere, "keywords": anywhere, "link": anywhere, "subtitle": anywhere,
			"summary": anywhere, "title": anywhere, "duration": OfEntry, "episode": OfEntry, "season": OfEntry,
		},
		Media: {
			"category": anywhere, "keywords": anywhere, "title": anywhere,
			"content": OfEntry, "description": OfEntry, "group": OfEntry, "thumbnail": OfEntry, "copyright": OfFeed,
		},
		Content:  {"encoded": OfEntry},
		XHTML:    {"body": OfEntry},
		RSSCloud: {"item": OfEntry},
		SY:       {"updateperiod": OfFeed, "updatefrequency": OfFeed},
		FH:       {"archive": OfFeed, "complete": OfFeed},
		Source:   {"cloud": OfFeed},
		Thr:      {"in-reply-to": OfEntry},
	}
})

// HasField reports whether an element, its name in lower case, is read into a
// field where it stands.
func HasField(ns NS, name string, place Place, atom bool) bool {
	switch {
	case ns == Atom03:
		ns = Atom10
	case ns == RSSCloud && atom:
		return false
	}
	return mapped()[ns][name]&place != 0
}
