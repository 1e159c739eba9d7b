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
		if x.Namespace == uri {
			switch name := prefix + ":" + x.Name; name {
			case "podcast:value", "itunes:owner":
				return ""
			default:
				return name
			}
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
	for i := range list {
		e := &list[i]
		into, rest := &extensions, e.Name
		for {
			above, below, ok := strings.Cut(rest, "/")
			if !ok {
				break
			}
			last := len(*into) - 1
			if last < 0 || name(&(*into)[last]) != above {
				into = nil
				break
			}
			into, rest = &(*into)[last].Children, below
		}
		prefix, local, _ := strings.Cut(rest, ":")
		if into == nil || vocabularies[prefix] == "" {
			continue
		}
		x := feedconv.Extension{Namespace: vocabularies[prefix], Name: local, Text: e.Text}
		for _, a := range e.Attributes {
			x.Attributes = append(x.Attributes, feedconv.Attribute{Name: a.Name, Value: a.Value})
		}
		if e.Name == lektordir.LiveItem {
			for i := range x.Attributes {
				x.Attributes[i].Namespace = x.Namespace
			}
			attributes = append(attributes, x.Attributes...)
			continue
		}
		*into = append(*into, x)
	}
	return attributes, extensions
}
