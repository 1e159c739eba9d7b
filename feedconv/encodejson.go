package feedconv

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/text/markup"
)

// The JSON Feed 1.1 objects that are written.
type (
	jsonFeedOut struct {
		Version     string           `json:"version"`
		Title       string           `json:"title"`
		HomePageURL string           `json:"home_page_url,omitempty"`
		FeedURL     string           `json:"feed_url,omitempty"`
		Description string           `json:"description,omitempty"`
		NextURL     string           `json:"next_url,omitempty"`
		Icon        string           `json:"icon,omitempty"`
		Authors     []jsonAuthorOut  `json:"authors,omitempty"`
		Language    string           `json:"language,omitempty"`
		Expired     bool             `json:"expired,omitempty"`
		Hubs        []jsonHubOut     `json:"hubs,omitempty"`
		Extensions  []Extension      `json:"_extensions,omitempty"`
		Attributes  []Attribute      `json:"_attributes,omitempty"`
		Items       []*jsonFeedEntry `json:"items"`
	}
	jsonAuthorOut struct {
		Name  string `json:"name,omitempty"`
		URL   string `json:"url,omitempty"`
		Email string `json:"_email,omitempty"` // where URL is another
	}
	jsonHubOut struct {
		Type string `json:"type"`
		URL  string `json:"url"`
	}
	jsonFeedEntry struct {
		ID            string              `json:"id"`
		URL           string              `json:"url,omitempty"`
		Title         string              `json:"title,omitempty"`
		ContentHTML   *string             `json:"content_html,omitempty"`
		ContentText   *string             `json:"content_text,omitempty"`
		Summary       string              `json:"summary,omitempty"`
		Image         string              `json:"image,omitempty"`
		DatePublished time.Time           `json:"date_published,omitzero"`
		DateModified  time.Time           `json:"date_modified,omitzero"`
		Authors       []jsonAuthorOut     `json:"authors,omitempty"`
		Tags          []string            `json:"tags,omitempty"`
		Language      string              `json:"language,omitempty"`
		Attachments   []jsonAttachmentOut `json:"attachments,omitempty"`
		// The format has nothing for these (JSON Feed 1.1, "Extensions").
		Source       *jsonSourceOut  `json:"_source,omitempty"`
		Contributors []jsonAuthorOut `json:"_contributors,omitempty"`
		Categories   []Category      `json:"_categories,omitempty"`
		Links        []Link          `json:"_links,omitempty"`
		Rights       string          `json:"_rights,omitempty"`
		Comments     jsonCommentsOut `json:"_comments,omitzero"`
		InReplyTo    []ReplyTo       `json:"_in_reply_to,omitempty"`
		Podcast      jsonPodcastOut  `json:"_podcast,omitzero"`
		Extensions   []Extension     `json:"_extensions,omitempty"`
		Attributes   []Attribute     `json:"_attributes,omitempty"`
	}
	jsonCommentsOut struct {
		URL string `json:"url"`
	}
	jsonPodcastOut struct {
		Duration int `json:"duration,omitempty"` // in seconds
		Episode  int `json:"episode,omitempty"`
		Season   int `json:"season,omitempty"`
	}
	jsonSourceOut struct {
		ID          string          `json:"id,omitempty"`
		Title       string          `json:"title,omitempty"`
		HomePageURL string          `json:"home_page_url,omitempty"`
		FeedURL     string          `json:"feed_url,omitempty"`
		Description string          `json:"description,omitempty"`
		Icon        string          `json:"icon,omitempty"`
		Authors     []jsonAuthorOut `json:"authors,omitempty"`
		Rights      string          `json:"rights,omitempty"`
		Updated     time.Time       `json:"date_modified,omitzero"`
	}
	jsonAttachmentOut struct {
		URL  string `json:"url"`
		Type string `json:"mime_type"`
		Size int64  `json:"size_in_bytes,omitempty"`
	}
)

// jsonHead is a feed without its entries.
func jsonHead(f *Feed) *jsonFeedOut {
	out := &jsonFeedOut{
		Version: "https://jsonfeed.org/version/1.1", Title: f.Title, HomePageURL: f.Link,
		FeedURL: linkOf(f, "self"), NextURL: linkOf(f, "next"), Description: f.Description,
		Icon: f.Image, Authors: jsonAuthors(f.Authors), Language: f.Language, Expired: f.Expired,
		Extensions: f.Extensions, Attributes: f.Attributes,
		Items: []*jsonFeedEntry{},
	}
	for _, l := range f.Links {
		if l.Rel == "hub" {
			out.Hubs = append(out.Hubs, jsonHubOut{Type: "WebSub", URL: l.URL})
		}
	}
	for _, c := range f.Clouds {
		if c.Protocol == "http-post" || c.Protocol == "https-post" {
			scheme := strings.TrimSuffix(c.Protocol, "-post")
			out.Hubs = append(out.Hubs, jsonHubOut{Type: "rssCloud", URL: scheme + "://" + c.Domain + ":" +
				strconv.Itoa(c.Port) + c.Path})
		}
	}
	return out
}

// jsonAuthors returns authors with the fields that JSON Feed has. An address is the
// URL of an author who has no other.
func jsonAuthors(list []Person) []jsonAuthorOut {
	var out []jsonAuthorOut
	for _, p := range list {
		a := jsonAuthorOut{Name: p.Name, URL: p.URL, Email: p.Email}
		if a.URL == "" && p.Email != "" {
			a.URL, a.Email = "mailto:"+p.Email, ""
		}
		out = append(out, a)
	}
	return out
}

func jsonEntry(e *Entry) *jsonFeedEntry {
	out := &jsonFeedEntry{
		ID: e.ID, URL: e.Link, Title: e.Title, Summary: PlainText(e.Summary, e.SummaryType),
		Image: e.Image, Authors: jsonAuthors(e.Authors), Tags: e.Categories, Language: e.Language,
		DatePublished: e.PubDate.UTC(), Rights: e.Rights, Comments: jsonCommentsOut{e.Comments},
		Podcast:    jsonPodcastOut{int(e.Duration / time.Second), e.Episode, e.Season},
		Extensions: e.Extensions, Attributes: e.Attributes, Contributors: jsonAuthors(e.Contributors),
		Categories: e.Terms, Links: e.Links, InReplyTo: e.InReplyTo,
	}
	if markup.IsMarkup(e.Type) {
		out.ContentHTML = &e.Content
	} else {
		out.ContentText = &e.Content
	}
	if !e.Updated.Equal(e.PubDate) {
		out.DateModified = e.Updated.UTC()
	}
	if src := e.Source; src != nil {
		out.Source = &jsonSourceOut{
			ID: src.ID, Title: src.Title, HomePageURL: src.Link, FeedURL: src.URL, Updated: src.Updated.UTC(),
			Description: src.Description, Icon: src.Image, Authors: jsonAuthors(src.Authors), Rights: src.Copyright,
		}
	}
	for _, enc := range e.Enclosures {
		out.Attachments = append(out.Attachments, jsonAttachmentOut{
			URL: enc.URL, Type: cmp.Or(enc.Type, typeUnknown), Size: max(enc.Length, 0),
		})
	}
	return out
}
