package fromfeed

import (
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
)

// vocabularies are the vocabularies for podcasts, by the prefixes that elements have in a lektor-dir.
var vocabularies = map[string]string{
	"podcast": "https://podcastindex.org/namespace/1.0",
	"itunes":  "http://www.itunes.com/dtds/podcast-1.0.dtd",
	"psc":     "http://podlove.org/simple-chapters",
}

// name returns the name of an element of a lektor-dir, or "" if it has none. The elements for payments are
// left out, and so are those for the owner, which have a mail address that is not for readers.
func name(x *feedconv.Extension) string {
	for prefix, uri := range vocabularies {
		if name := prefix + ":" + x.Name; x.Namespace == uri && name != "podcast:value" && name != "itunes:owner" {
			return name
		}
	}
	return ""
}

// Live returns the element with the status of an entry that is broadcast live, an empty one for other
// entries.
func Live(e *feedconv.Entry) *lektordir.Element { return status(e.Attributes).Live() }

// status returns the element of an entry that is broadcast live, nil for others. Its attributes are those
// of the entry in the podcast namespace.
func status(list []feedconv.Attribute) lektordir.Elements {
	e := lektordir.Element{Name: lektordir.LiveItem}
	for _, a := range list {
		if a.Namespace == vocabularies["podcast"] {
			e.Attributes = append(e.Attributes, lektordir.Attribute{Name: a.Name, Value: a.Value})
		}
	}
	if e.Get("status") == "" {
		return nil
	}
	return lektordir.Elements{e}
}

// elements appends extensions to list. above is the name of the element around them and a slash.
func elements(list lektordir.Elements, above string, extensions []feedconv.Extension) lektordir.Elements {
	for i := range extensions {
		x := &extensions[i]
		own := name(x)
		if own == "" {
			continue
		}
		e := lektordir.Element{Name: above + own, Text: x.Text}
		for _, a := range x.Attributes {
			if a.Namespace == "" {
				e.Attributes = append(e.Attributes, lektordir.Attribute{Name: a.Name, Value: a.Value})
			}
		}
		list = elements(append(list, e), e.Name+"/", x.Children)
	}
	return list
}

// Extensions returns the elements of a feed or an entry in the form of a document: attributes of the
// entry, for one that is broadcast live, and extensions. Elements of unknown vocabularies are left out.
func Extensions(list lektordir.Elements) (attributes []feedconv.Attribute, extensions []feedconv.Extension) {
	return attributesOf(list.Live(), vocabularies["podcast"]), nested(list, "")
}

// nested returns the elements with the name above, which ends in a slash, before a name of their own. Elements inside
// of another follow it.
func nested(list lektordir.Elements, above string) (extensions []feedconv.Extension) {
	for i := range list {
		e := &list[i]
		own, ok := strings.CutPrefix(e.Name, above)
		prefix, local, _ := strings.Cut(own, ":")
		switch {
		case strings.Count(e.Name, "/") < strings.Count(above, "/"):
			return extensions // the element above has ended
		case !ok, strings.Contains(own, "/"), vocabularies[prefix] == "", e.Name == lektordir.LiveItem:
			continue
		}
		extensions = append(extensions, feedconv.Extension{Namespace: vocabularies[prefix], Name: local, Text: e.Text,
			Attributes: attributesOf(e, ""), Children: nested(list[i+1:], e.Name+"/")})
	}
	return extensions
}

// attributesOf returns the attributes of an element in a namespace.
func attributesOf(e *lektordir.Element, namespace string) (list []feedconv.Attribute) {
	for _, a := range e.Attributes {
		list = append(list, feedconv.Attribute{Namespace: namespace, Name: a.Name, Value: a.Value})
	}
	return list
}
