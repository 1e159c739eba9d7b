package fetcher

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/fulltext"
)

// ownText is what a feed has of an entry.
type ownText struct {
	title, content, mime, summary string
}

// text returns the text of the entry, with one space between words.
func (o ownText) text() string {
	return fold(feedconv.PlainText(o.content, o.mime))
}

// judge returns why an article must not replace what the feed has, "" if it may. A page
// that a program in the browser fills has no article, or an excuse; a page that asks for
// consent or payment has one, which is not the entry's.
func judge(a *fulltext.Article, own ownText) string {
	text, had := fold(feedconv.PlainText(a.Content, "text/html")), own.text()
	switch {
	case text == "":
		return "the page has no article"
	case utf8.RuneCountInString(text) <= utf8.RuneCountInString(had):
		return "the article of the page is no longer than what the feed has"
	case !related(text, own.title+" "+had+" "+own.summary):
		return "the article of the page is about something else"
	}
	return ""
}

func fold(s string) string { return strings.Join(strings.Fields(s), " ") }

const (
	stemRunes   = 5    // words are the same that begin so; shorter ones are in every text
	fewStems    = 8    // fewer prove nothing
	mostOfOwn   = 4000 // bytes of what the feed has that are looked at
	leastShared = 0.3
)

// related reports whether a text has enough words of another to be about the same thing:
// mostly a feed has the beginning of an article, or a summary in the article's words. It
// is also true if a script without spaces, or too few words, leave nothing to compare.
func related(text, own string) bool {
	if len(own) > mostOfOwn {
		own = own[:mostOfOwn]
	}
	want, ok := stems(own)
	if !ok || len(want) < fewStems {
		return true
	}
	have, _ := stems(text)
	n := 0
	for s := range want {
		if have[s] {
			n++
		}
	}
	return float64(n) >= leastShared*float64(len(want))
}

// unspaced are scripts that have no spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan}

// stems returns the beginnings of the longer words of a text; ok is false for one in an
// unspaced script.
func stems(text string) (found map[string]bool, ok bool) {
	found = map[string]bool{}
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.Is(unicode.Mn, r) }) {
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
