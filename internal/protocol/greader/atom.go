package greader

import (
	"encoding/xml"
	"io"
	"strconv"
	"time"
)

// categoryScheme marks the categories that say in which states an item is. newsboat reads no
// others.
const categoryScheme = "http://www.google.com/reader/"

// Atom writes a list of items as an Atom feed. A continuation of 0 means that there are no more
// items.
func Atom(w io.Writer, h Head, items []Item, c ID) error {
	feed := atomFeed{
		GR: "http://www.google.com/schemas/reader/atom/", ID: "tag:google.com,2005:reader/" + h.ID, Title: h.Title,
		Updated: atomTime(h.Updated), Links: atomLinks("alternate", h.Alternate),
	}
	if c != 0 {
		feed.Continuation = c.Short()
	}
	for _, i := range items {
		feed.Entries = append(feed.Entries, atomOf(i))
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	return xml.NewEncoder(w).Encode(feed)
}

type atomFeed struct {
	XMLName      xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	GR           string      `xml:"xmlns:gr,attr"`
	ID           string      `xml:"id"`
	Title        string      `xml:"title"`
	Updated      string      `xml:"updated"`
	Links        []atomLink  `xml:"link"`
	Continuation string      `xml:"gr:continuation,omitempty"`
	Entries      []atomEntry `xml:"entry"`
}

type atomEntry struct {
	Crawled    string         `xml:"gr:crawl-timestamp-msec,attr"`
	ID         string         `xml:"id"`
	Title      atomText       `xml:"title"`
	Published  string         `xml:"published"`
	Updated    string         `xml:"updated"`
	Links      []atomLink     `xml:"link"`
	Author     *atomAuthor    `xml:"author"`
	Categories []atomCategory `xml:"category"`
	Content    atomText       `xml:"content"`
	Source     atomSource     `xml:"source"`
}

type atomLink struct {
	Rel    string `xml:"rel,attr"`
	Href   string `xml:"href,attr"`
	Type   string `xml:"type,attr,omitempty"`
	Length int64  `xml:"length,attr,omitempty"`
}

type atomText struct {
	Type string `xml:"type,attr,omitempty"`
	Text string `xml:",chardata"`
}

type atomAuthor struct {
	Name string `xml:"name"`
}

type atomCategory struct {
	Term   string `xml:"term,attr"`
	Scheme string `xml:"scheme,attr,omitempty"`
	Label  string `xml:"label,attr,omitempty"`
}

type atomSource struct {
	Stream string     `xml:"gr:stream-id,attr"`
	ID     string     `xml:"id"`
	Title  string     `xml:"title"`
	Links  []atomLink `xml:"link"`
}

// atomOf returns an item as an entry of Atom.
func atomOf(i Item) atomEntry {
	e := atomEntry{
		Crawled: i.CrawlTimeMsec, ID: i.ID, Title: atomText{Text: i.Title}, Published: atomTime(i.Published),
		Updated: atomTime(i.Updated),
		Links:   append(atomLinks("alternate", i.Alternate), atomLinks("enclosure", i.Enclosure)...),
		Content: atomText{"html", i.Summary.Content},
		Source: atomSource{Stream: i.Origin.StreamID, ID: "tag:google.com,2005:reader/" + i.Origin.StreamID,
			Title: i.Origin.Title},
	}
	if i.Author != "" {
		e.Author = &atomAuthor{i.Author}
	}
	if i.Origin.HTMLURL != "" {
		e.Source.Links = []atomLink{{Rel: "alternate", Href: i.Origin.HTMLURL, Type: "text/html"}}
	}
	for _, c := range i.Categories {
		s, _ := ParseStream(c)
		category := atomCategory{Term: c, Label: s.Name}
		if s.Kind == State {
			category.Scheme = categoryScheme // not for a folder, which may have the name "read"
		}
		e.Categories = append(e.Categories, category)
	}
	return e
}

// atomLinks returns links of a relation. Links without a URL are left out.
func atomLinks(rel string, links []Link) (list []atomLink) {
	for _, l := range links {
		if l.Href != "" {
			list = append(list, atomLink{rel, l.Href, l.Type, l.Length})
		}
	}
	return list
}

func atomTime(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// Millis and Micros return a time as the strings of answers.
func Millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// Micros returns a time in microseconds.
func Micros(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }
