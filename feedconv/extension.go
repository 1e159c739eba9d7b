package feedconv

import (
	"unicode"
)

// Extension is an element of another vocabulary: it stands in a feed or an
// entry, and this package has no field for it. All elements are extensions but
// those of the format itself, elements without a namespace among them, and
// those below, which are read into fields:
//
//   - Atom in RSS: author, id, link, published, updated; of an entry category,
//     content, contributor, issued, modified, summary, title, too; of a feed logo
//   - Dublin Core: author, creator, date, description, language, rights, subject,
//     title; dcterms issued and modified; of an entry contributor and
//     dcterms created
//   - iTunes: author, image, keywords, link, subtitle, summary, title; of an
//     entry duration, episode, season
//   - Media RSS: category, keywords, title; of an entry content, description,
//     group, thumbnail; of a feed copyright
//   - content:encoded, xhtml:body and thr:in-reply-to (RFC 4685) of an entry, and
//     rssCloud:item in RSS
//   - of a feed sy:updateFrequency and updatePeriod (syndication module),
//     fh:archive and complete (RFC 5005), source:cloud
//
// The insides of these are read with them or not at all.
//
// The categories of iTunes are extensions, and their names are categories, too. Elements of the podcast
// namespace are extensions, but podcast:liveItem in RSS is an entry. Its attributes, such as status,
// start and end, are attributes of the entry in that namespace. If an entry has no number of the iTunes
// module, podcast:episode and season are read into the fields, too.
//
// An extension is kept whole or, beyond the limits below, left out with a
// warning. Relative references in attributes that are named like references
// (href, src, url, uri, resource) are resolved; everything else is as found,
// but white space at the ends of Text.
type Extension struct {
	// Namespace is the name of the namespace. One that feedconv knows has the
	// spelling of its specification, whatever the document writes; one whose
	// prefix is never declared is "undeclared:" and the prefix. It is empty for
	// elements of no namespace inside of others.
	Namespace string `json:"namespace,omitempty"`
	// Name is the name without a prefix. It is empty for a piece of text
	// between the children of another element.
	Name       string      `json:"name,omitempty"`
	Attributes []Attribute `json:"attributes,omitempty"`
	// Text is the text of an element without children.
	Text string `json:"text,omitempty"`
	// Children are the elements inside, in their order. If text stands
	// beside them, each piece of text is an element of the list, without a name.
	Children []Extension `json:"children,omitempty"`
}

// Attribute is an attribute of an [Extension], or one of another vocabulary on
// the element of a feed or an entry. Namespace is empty for one without a
// prefix.
type Attribute struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Value     string `json:"value"`
}

// validName reports whether s is a name without a prefix.
func validName(s string) bool {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || r != '-' && r != '.' && !unicode.IsDigit(r)) {
			return false
		}
	}
	return s != ""
}
