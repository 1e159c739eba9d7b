package fetcher

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/fulltext"
)

// ownText is the text of an entry in its feed.
type ownText struct {
	title, content, mime, summary string
}

// text returns the text of the entry, with one space between words.
func (o ownText) text() string { return feedconv.PlainText(o.content, o.mime) }

// whyUnusable returns the reason why an article must not replace the text of the feed, or "". A page
// filled by a script has no article, or only a notice; a page that asks for consent or payment has
// an article that is not the entry's.
func whyUnusable(a *fulltext.Article, own ownText) string {
	text, feedText := feedconv.PlainText(a.Content, "text/html"), own.text()
	switch {
	case text == "":
		return "the page has no article"
	case utf8.RuneCountInString(text) <= utf8.RuneCountInString(feedText):
		return "the article of the page is no longer than the text of the feed"
	case !related(text, own.title+" "+feedText+" "+own.summary):
		return "the article of the page is about something else"
	}
	return ""
}

const (
	stemRunes   = 5    // words with the same first stemRunes runes are the same; shorter words are in every text
	minStems    = 8    // minimum number of stems to compare
	maxOwnBytes = 4000 // bytes of the feed's text that are compared
	minShared   = 0.3
)

// related reports whether text has enough words of own to be about the same thing: most feeds have
// the beginning of an article, or a summary in its words. It also reports true for scripts without
// spaces and for too few words to compare.
func related(text, own string) bool {
	if len(own) > maxOwnBytes {
		own = own[:maxOwnBytes]
	}
	want, ok := stems(own)
	if !ok || len(want) < minStems {
		return true
	}
	have, _ := stems(text)
	n := 0
	for s := range want {
		if have[s] {
			n++
		}
	}
	return float64(n) >= minShared*float64(len(want))
}

// unspaced lists scripts without spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
	unicode.Khmer, unicode.Myanmar, unicode.Tibetan}

// stems returns the first stemRunes runes of the longer words of a text. ok is false for an
// unspaced script.
func stems(text string) (found map[string]bool, ok bool) {
	found = map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.Is(unicode.Mn, r)
	}) {
		runes := []rune(w)
		if unicode.In(runes[0], unspaced...) {
			return found, false
		}
		if len(runes) >= stemRunes {
			found[string(runes[:stemRunes])] = true
		}
	}
	return found, true
}
