package charset

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
)

// The charsets of central Europe, Turkey and the Baltic differ from windows-1252 in few letters,
// so statistics of bytes cannot distinguish them. Alphabets can: a text is in one of these
// charsets if all its letters beyond ASCII belong to one language of the charset, and if no
// western language explains its letters in windows-1252.

// eastern are the letters beyond ASCII of languages with other charsets, in lower case. If
// several fit equally well, the first counts.
var eastern = []struct{ charset, letters string }{
	{"windows-1250", "ąćęłńóśźż"}, {"windows-1250", "áčďéěíňóřšťúůýž"}, {"windows-1250", "áäčďéíĺľňóôŕšťúýž"},
	{"windows-1250", "áéíóöőúüű"}, {"windows-1250", "ăâîşţ"}, {"windows-1250", "čćđšž"},
	{"iso-8859-2", "ąćęłńóśźż"}, {"iso-8859-2", "áčďéěíňóřšťúůýž"}, {"iso-8859-2", "áäčďéíĺľňóôŕšťúýž"},
	{"iso-8859-2", "áéíóöőúüű"}, {"iso-8859-2", "ăâîşţ"}, {"iso-8859-2", "čćđšž"},
	{"windows-1254", "âçğıîöşüûi̇"},
	{"windows-1257", "ąčęėįšųūž"}, {"windows-1257", "āčēģīķļņšūž"}, {"windows-1257", "äõöüšž"},
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

// table is a charset in which each byte is a character.
type table [256]rune

// tables holds the charsets above by name, and windows-1252 under "".
var tables = sync.OnceValue(func() map[string]*table {
	all := map[string]*table{}
	for _, name := range []string{"windows-1252", "windows-1250", "iso-8859-2", "windows-1254", "windows-1257",
		"iso-8859-15", "windows-1256"} {
		enc, _ := lookup(name)
		all[name] = tableOf(enc)
	}
	all[""] = all["windows-1252"]
	return all
})

func tableOf(enc encoding.Encoding) *table {
	var t table
	for i := range t {
		s, _ := enc.NewDecoder().Bytes([]byte{byte(i)})
		t[i], _ = utf8.DecodeRune(s)
	}
	return &t
}

// fit compares the text with a language in a charset. strange is the number of bytes that the
// language does not use. telling is the number of its letters that are other characters in
// windows-1252, and kinds the number of different ones.
func (n *byteCount) fit(letters string, in *table) (strange, telling, kinds int) {
	west := tables()[""]
	for c := utf8.RuneSelf; c < 256; c++ {
		all := n.inside[c] + n.outside[c]
		if all == 0 {
			continue
		}
		switch r := unicode.ToLower(in[c]); {
		case strings.ContainsRune(letters, r):
			if in[c] != west[c] {
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

// detectLatin returns the charset of a text that no western language explains, or "".
func detectLatin(b []byte) string {
	n := countBytes(b)
	least := n.strangeInWest(tables()[""])
	if least >= max(minTelling, n.all/minStrange) {
		best, found := 0, ""
		for _, a := range eastern {
			strange, telling, kinds := n.fit(a.letters, tables()[a.charset])
			if strange <= n.all/100 && telling >= minTelling && kinds > 1 && telling > best {
				best, found = telling, a.charset
			}
		}
		if found != "" {
			return found
		}
		if n.isArabic(b) {
			return "windows-1256"
		}
	}
	if n.isLatin9() {
		return "iso-8859-15"
	}
	return ""
}

// strangeInWest returns the number of bytes that the best fitting western language does not use.
func (n *byteCount) strangeInWest(in *table) int {
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
		n.strangeInWest(tables()["iso-8859-15"]) <= n.all/minStrange
}

// isArabic reports whether a text is Arabic in windows-1256: most letters are Arabic, and many
// words begin with the article.
func (n *byteCount) isArabic(b []byte) bool {
	const alef, lam = 0xC7, 0xE1
	letters, articles, words := 0, 0, 0
	in := tables()["windows-1256"]
	for c := utf8.RuneSelf; c < 256; c++ {
		if unicode.In(in[c], unicode.Arabic) && unicode.IsLetter(in[c]) {
			letters += n.inside[c] + n.outside[c]
		}
	}
	arabic := func(i int) bool { return i >= 0 && i < len(b) && b[i] >= 0xC0 }
	for i := range b {
		if arabic(i) && !arabic(i-1) {
			words++
			if b[i] == alef && i+1 < len(b) && b[i+1] == lam {
				articles++
			}
		}
	}
	return letters > 20 && letters*20 > n.all*19 && letters > 3*words && articles*20 > words
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
