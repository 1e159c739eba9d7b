package feedconv

import (
	"maps"
	"slices"
	"strings"

	"github.com/mmcdole/gofeed/atom"
	ext "github.com/mmcdole/gofeed/extensions"
	"github.com/mmcdole/gofeed/rss"
)

// singleName returns the name under which an element can stand once in a feed, an
// entry, or an element with children, or "" for elements of which there are several.
// The first that says something counts: what a damaged document leaves behind in a
// feed or an entry is not its title. Elements of other vocabularies are lists, of
// which the fields take the first.
func singleName(c class, lvl level, atom bool) string {
	if c.ext || c.kind != kText && c.kind != kStruct || c.role == roleDrop || lvl != inFeed && lvl != inEntry && lvl != inStruct {
		return ""
	}
	name := c.out[strings.IndexByte(c.out, ':')+1:]
	switch name {
	case "link", "category", "enclosure", "hour", "day":
		return ""
	case "author", "contributor":
		if atom {
			return ""
		}
	}
	if atom {
		// Atom 0.3 has other names for the same.
		switch name {
		case "modified":
			return "updated"
		case "issued":
			return "published"
		case "tagline":
			return "subtitle"
		case "copyright":
			return "rights"
		case "url", "homepage":
			return "uri"
		}
	}
	return name
}

// reading is the text of an element that stands in an entry behind another one of its
// name. This package once took the last of several; programs that remember entries
// by what they were know them by it, see [Entry.Earlier].
type reading struct {
	name, text string
	typ        string // of an Atom text construct
}

// maxLater is how many readings are kept of an entry.
const maxLater = 16

// noteLater keeps the text of an element that repeats another one.
func (t *tidier) noteLater(f *frame, text []byte, typ string) {
	if len(t.stack) < 2 || t.stack[len(t.stack)-2].level != inEntry {
		return
	}
	r := reading{f.single, string(text), typ}
	for i := range t.later {
		if t.later[i].name == r.name {
			if r.typ == "" && r.name != "content" {
				r.typ = t.later[i].typ // as a type was that of all
			}
			t.later[i] = r
			return
		}
	}
	if len(t.later) < maxLater {
		t.later = append(t.later, r)
	}
}

// endLater keeps the readings of the entry that ends.
func (t *tidier) endLater() {
	if len(t.later) == 0 {
		return
	}
	if t.laterOf == nil {
		t.laterOf = map[int][]reading{}
	}
	t.laterOf[t.entries] = t.later
}

// earlierRSS returns an item as it was once read, with the last of its elements.
func earlierRSS(r *rss.Item, later []reading) *rss.Item {
	last := *r
	last.Custom = maps.Clone(r.Custom)
	for _, l := range later {
		switch l.name {
		case "title":
			last.Title = l.text
		case "description":
			last.Description = l.text
		case "encoded":
			last.Content = l.text
		case "pubDate":
			last.PubDate = l.text
		case "guid":
			guid := rss.GUID{Value: l.text}
			if r.GUID != nil {
				guid.IsPermalink = r.GUID.IsPermalink
			}
			last.GUID = &guid
		default:
			if _, ok := r.Custom[l.name]; ok {
				last.Custom[l.name] = l.text
			}
		}
	}
	return &last
}

// earlierAtom is earlierRSS for an entry of Atom.
func earlierAtom(a *atom.Entry, later []reading) *atom.Entry {
	last := *a
	for _, l := range later {
		switch l.name {
		case "title":
			last.Title, last.Extensions = l.text, withType(last.Extensions, l)
		case "summary":
			last.Summary, last.Extensions = l.text, withType(last.Extensions, l)
		case "id":
			last.ID = l.text
		case "updated":
			last.Updated = l.text
		case "published":
			last.Published = l.text
		case "content":
			last.Content = &atom.Content{Type: l.typ, Value: l.text}
		}
	}
	return &last
}

// withType returns the extensions of an entry with the type of a text construct.
func withType(x ext.Extensions, l reading) ext.Extensions {
	if l.typ == "" {
		return x
	}
	meta := ext.Extension{Attrs: map[string]string{"type-" + l.name: l.typ}}
	x = maps.Clone(x)
	if x == nil {
		x = ext.Extensions{}
	}
	own := maps.Clone(x[metaPrefix])
	if own == nil {
		own = map[string][]ext.Extension{}
	}
	own["meta"] = slices.Concat([]ext.Extension{meta}, own["meta"])
	x[metaPrefix] = own
	return x
}
