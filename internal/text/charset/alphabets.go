package charset

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// The charsets of central Europe, Turkey and the Baltic differ from windows-1252 in few letters,
// so statistics of bytes cannot distinguish them. Alphabets can: a text is in one of these
// charsets if all its letters beyond ASCII belong to one language of the charset, and if no
// western language explains its letters in windows-1252.

// eastern are the letters beyond ASCII of languages with other charsets, in lower case. If
// several fit equally well, the first counts.
var eastern = []struct {
	charset *charmap.Charmap
	letters string
}{
	{charmap.Windows1250, "ąćęłńóśźż"}, {charmap.Windows1250, "áčďéěíňóřšťúůýž"},
	{charmap.Windows1250, "áäčďéíĺľňóôŕšťúýž"}, {charmap.Windows1250, "áéíóöőúüű"},
	{charmap.Windows1250, "ăâîşţ"}, {charmap.Windows1250, "čćđšž"},
	{charmap.ISO8859_2, "ąćęłńóśźż"}, {charmap.ISO8859_2, "áčďéěíňóřšťúůýž"},
	{charmap.ISO8859_2, "áäčďéíĺľňóôŕšťúýž"}, {charmap.ISO8859_2, "áéíóöőúüű"},
	{charmap.ISO8859_2, "ăâîşţ"}, {charmap.ISO8859_2, "čćđšž"},
	{charmap.Windows1254, "âçğıîöşüûi̇"}, {charmap.Windows1257, "ąčęėįšųūž"},
	{charmap.Windows1257, "āčēģīķļņšūž"}, {charmap.Windows1257, "äõöüšž"},
}

// western are the letters beyond ASCII of the languages of windows-1252: French, German, Spanish,
// Portuguese, Italian, Catalan, Dutch, Swedish and Finnish, Danish and Norwegian, Icelandic,
// Estonian, Irish, Albanian.
var western = []string{
	"àâæçéèêëîïôœùûüÿ", "äöüßé", "áéíñóúüªº", "ãáâàçéêíõóôúüªº", "àéèìíîòóùúªº",
	"àçèéíïòóúüñ", "éèëïóöüáíúêàç", "åäöéüšžà", "åæøéèêóòôäöü", "áæðéíóöúýþ",
	"äõöüšž", "áéíóúàèìòù", "çë",
}

// signs are characters of all languages. Most do not stand inside of words.
const signs = "\u00a0\u00ad¡¢£¤¥¦§¨©«¬®¯°±²³´µ¶·¸¹»¼½¾¿×÷‚ƒ„…†‡ˆ‰‹‘’“”•–—˜™›€"

// inWords are the signs that stand inside of words, too.
const inWords = "\u00ad·‘’´-"

// byteCount is the number of times that each byte beyond ASCII occurs in a text: inside of words
// and elsewhere.
type byteCount struct {
	inside, outside [256]int
	all             int
	c1              bool // the text has bytes from 0x80 to 0x9F
}

func countBytes(b []byte) *byteCount {
	var n byteCount
	wordly := func(i int) bool { return i >= 0 && i < len(b) && (isLetter(b[i]) || b[i] >= 0xC0) }
	for i, c := range b {
		if c < utf8.RuneSelf {
			continue
		}
		n.all++
		n.c1 = n.c1 || c < 0xA0
		if wordly(i-1) && wordly(i+1) {
			n.inside[c]++
		} else {
			n.outside[c]++
		}
	}
	return &n
}

// fit compares the text with a language in a charset. strange is the number of bytes that the
// language does not use. telling is the number of its letters that are other characters in
// windows-1252, and kinds the number of different ones.
func (n *byteCount) fit(letters string, in *charmap.Charmap) (strange, telling, kinds int) {
	for c := utf8.RuneSelf; c < 256; c++ {
		all := n.inside[c] + n.outside[c]
		if all == 0 {
			continue
		}
		char := in.DecodeByte(byte(c))
		switch r := unicode.ToLower(char); {
		case strings.ContainsRune(letters, r):
			if char != charmap.Windows1252.DecodeByte(byte(c)) {
				telling += all
				kinds++
			}
		case strings.ContainsRune(inWords, r):
		case strings.ContainsRune(signs, r):
			strange += n.inside[c]
		default:
			strange += all
		}
	}
	return strange, telling, kinds
}

// These are the minimum evidence for one of the charsets. Western languages explain a Western
// text, except for foreign names. A text in several languages has letters that no other alphabet
// has.
const (
	minTelling = 3 // letters that windows-1252 lacks, of at least two kinds
	minStrange = 8 // one in minStrange letters is strange in all western languages
)

// detectLatin returns the charset of a text that no western language explains, or nil.
func detectLatin(b []byte) *charmap.Charmap {
	n := countBytes(b)
	least := n.strangeInWest(charmap.Windows1252)
	if least >= max(minTelling, n.all/minStrange) {
		best, found := 0, (*charmap.Charmap)(nil)
		for _, a := range eastern {
			strange, telling, kinds := n.fit(a.letters, a.charset)
			if strange <= n.all/100 && telling >= minTelling && kinds > 1 && telling > best {
				best, found = telling, a.charset
			}
		}
		if found != nil {
			return found
		}
		if n.isArabic(b) {
			return charmap.Windows1256
		}
	}
	if n.isLatin9() {
		return charmap.ISO8859_15
	}
	return nil
}

// strangeInWest returns the number of bytes that the best fitting western language does not use.
func (n *byteCount) strangeInWest(in *charmap.Charmap) int {
	least := n.all
	for _, letters := range western {
		strange, _, _ := n.fit(letters, in)
		least = min(least, strange)
	}
	return least
}

// isLatin9 reports whether a text is in ISO-8859-15. This charset has the euro sign in the place
// of a sign that nobody uses, and letters in the place of signs that do not stand inside of
// words.
func (n *byteCount) isLatin9() bool {
	const euro, oe, sCaron, zCaron = 0xA4, 0xBD, 0xA8, 0xB8
	euros, letters := n.outside[euro], n.inside[oe]+n.inside[sCaron]+n.inside[zCaron]
	return !n.c1 && euros+letters > 0 && n.inside[euro] == 0 &&
		n.strangeInWest(charmap.ISO8859_15) <= n.all/minStrange
}

// isArabic reports whether a text is Arabic in windows-1256: most letters are Arabic, and many
// words begin with the article.
func (n *byteCount) isArabic(b []byte) bool {
	text, _ := charmap.Windows1256.NewDecoder().String(string(b))
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.Is(unicode.Arabic, r) })
	letters, articles := 0, 0
	for _, word := range words {
		letters += utf8.RuneCountInString(word)
		if strings.HasPrefix(word, "ال") {
			articles++
		}
	}
	return letters > 20 && letters*20 > n.all*19 && letters > 3*len(words) && articles*20 > len(words)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
