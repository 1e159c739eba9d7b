package greader

import (
	"net/url"
	"strings"
)

// Kind is the kind of a [Stream].
type Kind uint8

// The kinds of streams.
const (
	State Kind = iota // a state of items, for example "read"
	Label             // a folder of feeds, or a flag of items
	Feed              // a feed: a hash or a URL
)

// Stream is a set of items that a client names.
type Stream struct {
	Kind Kind
	Name string
}

// The names of states that the server knows.
const (
	ReadingList = "reading-list"
	Read        = "read"
	Starred     = "starred"
	KeptUnread  = "kept-unread"
)

const (
	statePart = "/state/com.google/"
	labelPart = "/label/"
	feedPart  = "feed/"
)

// States that other servers use for all unread items.
const (
	unread = "unread"
	fresh  = "fresh"
)

// MaxStream is the maximum length of the name of a stream, in bytes.
const MaxStream = 8 << 10

// ParseStream parses the id of a stream. The part after "user/" may be any name. An empty id is
// that of all items. It reports false for a text that is not an id of a stream.
func ParseStream(id string) (Stream, bool) {
	if id == "" {
		return Stream{State, ReadingList}, true
	}
	if len(id) > MaxStream {
		return Stream{}, false
	}
	if name, ok := strings.CutPrefix(id, feedPart); ok && name != "" {
		return Stream{Feed, feedName(name)}, true
	}
	rest, ok := strings.CutPrefix(id, "user/")
	if !ok {
		return Stream{}, false
	}
	slash := strings.IndexByte(rest, '/')
	if slash <= 0 {
		return Stream{}, false
	}
	rest = rest[slash:]
	if name, ok := strings.CutPrefix(rest, statePart); ok && name != "" {
		if name == unread || name == fresh {
			name = KeptUnread
		}
		return Stream{State, name}, true
	}
	name, ok := strings.CutPrefix(rest, labelPart)
	if !ok {
		return Stream{}, false
	}
	for ok { // Read You makes an id of an id
		name, ok = strings.CutPrefix(name, LabelID(""))
	}
	return Stream{Label, name}, name != ""
}

// feedName repairs the URL of a feed that a client escaped twice, or in which a proxy has merged
// two slashes.
func feedName(name string) string {
	if !strings.Contains(name, "/") && strings.Contains(name, "%") {
		if plain, err := url.PathUnescape(name); err == nil {
			name = plain
		}
	}
	for _, scheme := range []string{"http:/", "https:/"} {
		if rest, ok := strings.CutPrefix(name, scheme); ok && !strings.HasPrefix(rest, "/") {
			return scheme + "/" + rest
		}
	}
	return name
}

// StateID, LabelID and FeedID return the ids of streams.
func StateID(name string) string { return "user/-" + statePart + name }

// LabelID returns the id of a folder or flag.
func LabelID(name string) string { return "user/-" + labelPart + name }

// FeedID returns the id of a feed.
func FeedID(hash string) string { return feedPart + hash }

// flagLabel begins the label of a flag.
const flagLabel = "flag-"

// FlagLabel returns the name of the label of a flag of the user, a to z.
func FlagLabel(flag byte) string { return flagLabel + string(rune(flag)) }

// FlagOf returns the flag of the user, a to z, with a label; 0 if the label is not that of a flag.
func FlagOf(label string) byte {
	if c, ok := strings.CutPrefix(label, flagLabel); ok && len(c) == 1 && c[0] >= 'a' && c[0] <= 'z' {
		return c[0]
	}
	return 0
}
