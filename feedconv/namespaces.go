package feedconv

import (
	"strings"
	"sync"
)

// nsID is an index into names.ns; those of known namespaces are the same in
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
	nsSY
	nsFH
	nsSource
	nsRSSCloud
	nsSSE
	nsUserland
)

// knownNamespaces lists prefix, URI and aliases. The URI is gofeed's spelling
// where it has one, so that it finds the prefix without a search.
var knownNamespaces = []struct {
	prefix, uri string
	family      family
	aliases     []string
}{

	nsNone:       {},
	nsXML:        {"xml", "http://www.w3.org/XML/1998/namespace", famExt, nil},
	nsMeta:       {metaPrefix, "urn:lektor:tidy", famExt, nil},
	nsAtom10:     {"atom", "http://www.w3.org/2005/Atom", famAtom, []string{"http://www.w3.org/2005/10/Atom"}},
	nsAtom03:     {"atom", "http://purl.org/atom/ns#", famAtom, []string{"http://purl.org/net/atom/ns#", "http://example.com/newformat#", "http://necho.org/", "http://purl.org/pie/"}},
	nsRSS10:      {"rss", "http://purl.org/rss/1.0/", famRSS, nil},
	nsRSS09:      {"rss", "http://my.netscape.com/rdf/simple/0.9/", famRSS, []string{"http://channel.netscape.com/rdf/simple/0.9/", "http://my.netscape.com/publish/formats/rss-0.9"}},
	nsRSS11:      {"rss", "http://purl.org/net/rss1.1#", famRSS, nil},
	nsRDF:        {"rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#", famExt, nil},
	nsXHTML:      {"xhtml", "http://www.w3.org/1999/xhtml", famExt, []string{"http://www.w3.org/TR/REC-html40"}},
	nsContent:    {"content", "http://purl.org/rss/1.0/modules/content/", famExt, nil},
	nsDC:         {"dc", "http://purl.org/dc/elements/1.1/", famExt, []string{"http://purl.org/dc/elements/1.0/", "http://purl.org/metadata/dublin_core", "http://dublincore.org/documents/dcmi-namespace/"}},
	nsDCTerms:    {"dcterms", "http://purl.org/dc/terms/", famExt, nil},
	nsITunes:     {"itunes", "http://www.itunes.com/DTDs/PodCast-1.0.dtd", famExt, []string{"http://example.com/DTDs/PodCast-1.0.dtd", "http://www.itunes.com/dtds/podcast-1.0.dtd/"}},
	nsMedia:      {"media", "http://search.yahoo.com/mrss/", famExt, []string{"http://search.yahoo.com/rss", "http://www.rssboard.org/media-rss", "http://tools.search.yahoo.com/mrss/", "http://video.search.yahoo.com/mrss"}},
	nsWFW:        {"wfw", "http://wellformedweb.org/CommentAPI/", famExt, nil},
	nsFeedburner: {"feedburner", "http://rssnamespace.org/feedburner/ext/1.0", famExt, nil},
	nsSY:         {"sy", "http://purl.org/rss/1.0/modules/syndication/", famExt, []string{"http://www.w3.org/2000/08/w3c-synd/#"}},
	nsFH:         {"fh", "http://purl.org/syndication/history/1.0", famExt, nil},
	nsSource:     {"source", "http://source.scripting.com/", famExt, nil},
	nsRSSCloud:   {"rssCloud", "http://rsscloud.co/", famExt, []string{"http://rsscloud.org/", "http://rsscloud.io/", "http://rsscloud.co/rsscloud/", "http://rsscloud.org/rsscloud", "http://home.rsscloud.co/"}},
	nsSSE:        {"sx", "http://www.microsoft.com/schemas/rss/sse", famExt, []string{"http://www.microsoft.com/schemas/sse", "http://www.microsoft.com/schemas/simplesharing"}},
	nsUserland: {"rss", "http://backend.userland.com/rss2", famRSS, []string{
		"http://backend.userland.com/rss", "http://backend.userland.com/rss091",
		"http://backend.userland.com/rss092", "http://backend.userland.com/rss093", "http://backend.userland.com/rss20",
		"http://blogs.law.harvard.edu/tech/rss", "http://cyber.law.harvard.edu/rss/rss.html", "http://www.rssboard.org/rss-specification",
		"http://my.netscape.com/publish/formats/rss-0.91.dtd", "http://purl.org/rss/2.0/"}},
	{"feedsync", "http://feedsync.org/2007/feedsync", famExt, nil},
	{"slash", "http://purl.org/rss/1.0/modules/slash/", famExt, nil},
	{"thr", "http://purl.org/syndication/thread/1.0", famExt, nil},
	{"georss", "http://www.georss.org/georss", famExt, []string{"http://www.georss.org/georss/10"}},
	{"geo", "http://www.w3.org/2003/01/geo/wgs84_pos#", famExt, nil},
	{"gml", "http://www.opengis.net/gml", famExt, nil},
	{"cc", "http://web.resource.org/cc/", famExt, nil},
	{"creativeCommons", "http://backend.userland.com/creativeCommonsRssModule", famExt, []string{"http://cyber.law.harvard.edu/rss/creativeCommonsRssModule.html"}},
	{"podcast", "https://podcastindex.org/namespace/1.0", famExt, []string{"https://github.com/Podcastindex-org/podcast-namespace/blob/main/docs/1.0.md"}},
	{"psc", "http://podlove.org/simple-chapters", famExt, []string{"http://podlove.de/simple-chapters"}},
	{"googleplay", "http://www.google.com/schemas/play-podcasts/1.0", famExt, nil},
	{"spotify", "http://www.spotify.com/ns/rss", famExt, nil},
	{"yt", "http://www.youtube.com/xml/schemas/2015", famExt, nil},
	{"gd", "http://schemas.google.com/g/2005", famExt, nil},
	{"app", "http://www.w3.org/2007/app", famExt, nil},
	{"opensearch", "http://a9.com/-/spec/opensearch/1.1/", famExt, nil},
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
	{"prism", "http://prismstandard.org/namespaces/1.2/basic/", famExt, nil},
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

// knownURIs finds the known namespaces by their URIs, as normalURI has them.
var knownURIs = sync.OnceValue(func() map[string]nsID {
	uris := map[string]nsID{}
	for id, k := range knownNamespaces {
		if k.prefix != "" {
			for _, uri := range append(k.aliases, k.uri) {
				uris[normalURI(uri)] = nsID(id)
			}
		}
	}
	return uris
})

// knownPrefixes are what a prefix stands for that was never declared.
var knownPrefixes = sync.OnceValue(func() map[string]nsID {
	prefixes := map[string]nsID{
		"a10": nsAtom10, "atom10": nsAtom10, "atom03": nsAtom03, "html": nsXHTML, "h": nsXHTML,
		"syn": nsSY, "dct": nsDCTerms, "dcterm": nsDCTerms, "rss1": nsRSS10,
	}
	for id, k := range knownNamespaces {
		p := strings.ToLower(k.prefix)
		if _, taken := prefixes[p]; !taken && p != "" && p != "xml" && k.prefix != metaPrefix {
			prefixes[p] = nsID(id)
		}
	}
	return prefixes
})

// uriOf gives the name of a namespace as its specification spells it.
func (n *names) uriOf(ns nsID) string {
	if ns == nsITunes {
		return itunesNamespace // gofeed's spelling is another
	}
	return n.ns[ns].uri
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

const itunesNamespace = "http://www.itunes.com/dtds/podcast-1.0.dtd"
