package greader

// The answers of the API. Clients fail on a field of another type than that of the first servers:
// ids, continuations and times in milli- and microseconds are strings, other times are numbers of
// seconds. Lists are never null, and a continuation is missing on the last page.

// Item is an entry.
type Item struct {
	ID            string   `json:"id"`            // long form
	CrawlTimeMsec string   `json:"crawlTimeMsec"` // time of delivery
	TimestampUsec string   `json:"timestampUsec"` // the same
	Published     int64    `json:"published"`
	Updated       int64    `json:"updated"`
	Title         string   `json:"title"`
	Author        string   `json:"author,omitempty"`
	Canonical     []Link   `json:"canonical"`
	Alternate     []Link   `json:"alternate"`
	Enclosure     []Link   `json:"enclosure,omitempty"`
	Categories    []string `json:"categories"`
	Origin        Origin   `json:"origin"`
	Summary       Text     `json:"summary"` // the whole content as HTML
}

// Link is a link of an item.
type Link struct {
	Href   string `json:"href"`
	Type   string `json:"type,omitempty"`
	Length int64  `json:"length,omitempty"` // in bytes
}

// Origin is the feed of an item.
type Origin struct {
	StreamID string `json:"streamId"`
	Title    string `json:"title"`
	HTMLURL  string `json:"htmlUrl"`
}

// Text is a text in HTML.
type Text struct {
	Content string `json:"content"`
}

// Head is the beginning of a list of items.
type Head struct {
	Direction   string `json:"direction"`
	ID          string `json:"id"` // of the stream
	Title       string `json:"title"`
	Description string `json:"description"`
	Self        []Link `json:"self"`
	Updated     int64  `json:"updated"`
	Author      string `json:"author"`
	Alternate   []Link `json:"alternate"`
}

// Category is a folder of a subscription.
type Category struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// Subscription is a feed.
type Subscription struct {
	ID         string     `json:"id"`
	Title      string     `json:"title"`
	Categories []Category `json:"categories"`
	URL        string     `json:"url"`
	HTMLURL    string     `json:"htmlUrl"`
	IconURL    string     `json:"iconUrl,omitempty"` // Read You looks for an icon itself only if there is none
}

// Subscriptions is the answer of subscription/list.
type Subscriptions struct {
	Subscriptions []Subscription `json:"subscriptions"`
}

// Tag is a state, a folder or a flag. Type is "folder" or "tag", and missing for a state.
type Tag struct {
	ID   string `json:"id"`
	Type string `json:"type,omitempty"`
}

// Tags is the answer of tag/list.
type Tags struct {
	Tags []Tag `json:"tags"`
}

// Unread is the number of unread items of a stream, with the time of delivery of the newest.
type Unread struct {
	ID     string `json:"id"`
	Count  int    `json:"count"`
	Newest string `json:"newestItemTimestampUsec"`
}

// UnreadCounts is the answer of unread-count.
type UnreadCounts struct {
	Max    int      `json:"max"`
	Counts []Unread `json:"unreadcounts"`
}

// QuickAdd is the answer of subscription/quickadd.
type QuickAdd struct {
	Results  int    `json:"numResults"`
	Query    string `json:"query"`
	StreamID string `json:"streamId,omitempty"`
	Name     string `json:"streamName,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Login is the answer of ClientLogin as JSON.
type Login struct{ SID, LSID, Auth string }
