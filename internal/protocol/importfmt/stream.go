package importfmt

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// entry is an entry as the interfaces of Google Reader (Inoreader, FreshRSS, The Old
// Reader), Feedly and Miniflux return it; names that two of them have mean the same.
//
//rules:allow a record of JSON
type entry struct {
	ID           value `json:"id"`
	OriginID     string
	Title        string
	URL          string // Miniflux, and lists that scripts make of Feedly's pages
	CanonicalURL string
	Canonical    []href
	Alternate    []href
	Published    value  // seconds, or Feedly's milliseconds
	PublishedAt  string `json:"published_at"`
	Categories   []value
	Tags         []value
	Starred      value  // Miniflux a boolean, Inoreader a time
	Status       string // Miniflux
	Unread       *bool  // Feedly
	Origin       struct{ StreamID, HTMLURL, Title string }
	SourceURL    string
	SourceTitle  string
	Feed         struct {
		FeedURL string `json:"feed_url"`
		SiteURL string `json:"site_url"`
		Title   string
	}
	Author           string
	Content, Summary text
	Keywords         []value // Feedly; Miniflux has them as tags
	Enclosure        []file
	Enclosures       []file // Miniflux
}

// file is an enclosure.
type file struct {
	Href, URL, Type string
	MimeType        string `json:"mime_type"`
	Length          value
	Size            value
}

// text is HTML by itself, or in an object that has it as its content.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var object struct{ Content string }
	var plain string
	if json.Unmarshal(b, &plain) == nil {
		*t = text(plain)
	} else if json.Unmarshal(b, &object) == nil {
		*t = text(object.Content)
	}
	return nil
}

// text returns the text of an entry.
func (e *entry) text() *Text {
	t := &Text{Author: oneLine(e.Author), Content: string(cmp.Or(e.Content, e.Summary))}
	for _, k := range append(e.Keywords, e.Tags...) {
		if k != "" && !strings.HasPrefix(string(k), "user/") { // which are those of Feedly's user
			t.Categories = append(t.Categories, oneLine(string(k)))
		}
	}
	for _, f := range append(e.Enclosure, e.Enclosures...) {
		url := cmp.Or(f.Href, f.URL)
		if !isWeb(url) {
			continue
		}
		length, err := strconv.ParseInt(string(cmp.Or(f.Length, f.Size)), 10, 64)
		if err != nil || length <= 0 {
			length = -1
		}
		t.Enclosures = append(t.Enclosures, Enclosure{URL: url, Type: cmp.Or(f.Type, f.MimeType), Length: length})
	}
	return t
}

type href struct{ Href string }

// value is a string, a number, a boolean, or an object with an id, as a string.
type value string

func (v *value) UnmarshalJSON(b []byte) error {
	var object struct{ ID string }
	var text string
	switch {
	case json.Unmarshal(b, &text) == nil:
		*v = value(text)
	case b[0] == '{' && json.Unmarshal(b, &object) == nil:
		*v = value(object.ID)
	case b[0] != '[' && b[0] != '{' && string(b) != "null":
		*v = value(b)
	}
	return nil
}

// Stream reads entries that a service exported as JSON: those that were starred or saved, or any.
// It detects the service.
func Stream(data []byte) ([]Item, error) {
	data = bytes.TrimPrefix(bytes.TrimSpace(data), []byte("\xef\xbb\xbf"))
	var file struct {
		ID             string
		Items, Entries []entry
	}
	var err error
	if bytes.HasPrefix(data, []byte("[")) {
		file.ID = "saved" // nobody exports others as a bare list
		err = json.Unmarshal(data, &file.Items)
	} else {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		return nil, fmt.Errorf("not an export of entries as JSON: %w", err)
	}
	if file.Items = append(file.Items, file.Entries...); file.Items == nil {
		return nil, errors.New("not an export of entries: it has neither items nor entries")
	}
	saved := isSaved(value(file.ID)) || file.ID == "saved"
	var items []Item
	for i := range file.Items {
		items = append(items, file.Items[i].item(saved))
	}
	return items, nil
}

func isSaved(id value) bool {
	return strings.HasSuffix(string(id), "/state/com.google/starred") ||
		strings.HasSuffix(string(id), "/tag/global.saved")
}

// item returns an entry as an Item. saved is true if all entries of its list are saved.
func (e *entry) item(saved bool) Item {
	i := Item{Title: oneLine(e.Title), ID: e.OriginID, Date: unix(string(e.Published)), Flagged: saved}
	if t, err := time.Parse(time.RFC3339Nano, e.PublishedAt); err == nil {
		i.Date = t
	}
	for _, u := range []string{hrefOf(e.Canonical), e.CanonicalURL, e.URL, hrefOf(e.Alternate)} {
		if isWeb(u) {
			i.URL = u
			break
		}
	}
	for _, c := range append(e.Categories, e.Tags...) {
		i.Flagged = i.Flagged || isSaved(c)
		i.Read = i.Read || strings.HasSuffix(string(c), "/state/com.google/read")
	}
	i.Flagged = i.Flagged || e.Starred == "true"
	i.Read = i.Read || e.Status == "read" || e.Unread != nil && !*e.Unread
	i.Trashed = e.Status == "removed"
	if stream, ok := strings.CutPrefix(e.Origin.StreamID, "feed/"); ok && isWeb(stream) {
		i.Feed = stream
	}
	if i.Feed == "" {
		i.Feed = e.Feed.FeedURL
	}
	for _, page := range []string{e.Origin.HTMLURL, e.Feed.SiteURL, e.SourceURL} {
		if i.Page == "" && isWeb(page) {
			i.Page = page
		}
	}
	i.FeedTitle = oneLine(cmp.Or(e.Origin.Title, e.Feed.Title, e.SourceTitle))
	if !i.Trashed && (!i.Read || i.Flagged) {
		i.Text = e.text()
	}
	return i
}

func hrefOf(list []href) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Href
}

// unix reads seconds or milliseconds since 1970; zero if it is neither.
func unix(s string) time.Time {
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil || n <= 0 || n > 1e15 || math.IsNaN(n):
		return time.Time{}
	case n > 1e11:
		return time.UnixMilli(int64(n)).UTC()
	}
	return time.Unix(int64(n), 0).UTC()
}
