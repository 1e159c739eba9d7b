package markup

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Mode is the kind of text that [Plain] reads.
type Mode uint8

// Modes of [Plain].
const (
	Text  Mode = iota // no markup
	HTML              // or XML
	Title             // as in titles, which people write as text where a format wants HTML: see untagged
)

// ModeOf returns HTML if a media type is one of markup.
func ModeOf(contentType string) Mode {
	if IsMarkup(contentType) {
		return HTML
	}
	return Text
}

// textWriter collects words, with one space between two of them.
type textWriter struct {
	out   strings.Builder
	space bool // white space was seen since the last word
}

func (w *textWriter) text(s string) {
	if w.space && w.out.Len() > 0 {
		w.out.WriteByte(' ')
	}
	w.space = false
	w.out.WriteString(s)
}

// fold writes text that may have white space and control characters in it.
func (w *textWriter) fold(s string) {
	from := 0
	for i, r := range s {
		single := r == ' ' && from < i && i+1 < len(s) && s[i+1] > ' ' && s[i+1] < 0x7f
		if single || r > ' ' && r < 0x7f || r > 0x7f && !unicode.IsSpace(r) {
			continue // several words are written at once
		}
		if from < i {
			w.text(s[from:i])
		}
		from, w.space = i+utf8.RuneLen(r), w.space || unicode.IsSpace(r)
	}
	if from < len(s) {
		w.text(s[from:])
	}
}

// textScanner walks over markup.
type textScanner struct {
	textWriter
	s               string
	mode            Mode
	ends            Ends
	source, decoded []byte // buffers, reused for the next entity
}

// Plain returns the text without its markup (the insides of scripts and styles
// with it), entities decoded once, white space folded to single spaces, control
// characters dropped. Tags of blocks separate words, inline tags do not. It takes time
// linear in the length of s.
func Plain(s string, mode Mode) string {
	if !utf8.ValidString(s) {
		// Do this first: dropping a control character later could join two halves of a character.
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if mode == Title {
		s = untagged(s)
	}
	x := textScanner{s: s, mode: mode}
	x.out.Grow(len(s))
	for i := 0; ; {
		next := strings.IndexAny(s[i:], [...]string{Text: "", HTML: "<&", Title: "&"}[mode])
		if next < 0 {
			x.fold(s[i:])
			return x.out.String()
		}
		x.fold(s[i : i+next])
		if i += next; s[i] == '<' {
			i = x.tag(i)
		} else {
			i = x.entity(i)
		}
	}
}

// literal writes the character at i as text.
func (x *textScanner) literal(i int) int {
	x.text(x.s[i : i+1])
	return i + 1
}

// entity decodes what begins at i, if it is an entity.
func (x *textScanner) entity(i int) int {
	var none Entities
	x.source = append(x.source[:0], x.s[i:min(len(x.s), i+maxEntityName+2)]...)
	decoded, n := none.reference(x.decoded[:0], x.source)
	if n == 0 {
		return x.literal(i)
	}
	x.decoded = decoded
	x.fold(string(decoded))
	return i + n
}

// tag skips markup that begins at i.
func (x *textScanner) tag(i int) int {
	if i+1 >= len(x.s) {
		return x.literal(i)
	}
	rest := x.s[i:]
	switch c := rest[1]; {
	case c == '!' || c == '?':
		return x.declaration(i)
	case c == '/' && len(rest) > 2 && isLetter(rest[2]):
		return x.element(i, i+2)
	case isLetter(c):
		return x.element(i, i+1)
	}
	return x.literal(i)
}

// declaration skips comments and declarations, and keeps the text of CDATA sections.
func (x *textScanner) declaration(i int) int {
	rest := x.s[i:]
	if strings.HasPrefix(rest, "<!--") {
		if end := x.ends.Index(rest[4:], "-->"); end >= 0 {
			return i + 4 + end + 3
		}
	} else if strings.HasPrefix(rest, "<![CDATA[") {
		if end := x.ends.Index(rest[9:], "]]>"); end >= 0 {
			x.fold(rest[9 : 9+end])
			return i + 9 + end + 3
		}
	}
	if end := x.ends.Index(rest, ">"); end >= 0 {
		return i + end + 1
	}
	return x.literal(i)
}

// element skips the tag that begins at i, with its name at nameAt. It skips the content, too, if
// the element is not text.
func (x *textScanner) element(i, nameAt int) int {
	end := x.tagEnd(nameAt)
	if end < 0 {
		return x.literal(i)
	}
	nameEnd := nameAt
	for nameEnd < end && !IsSpace(x.s[nameEnd]) && x.s[nameEnd] != '/' && x.s[nameEnd] != '>' {
		nameEnd++
	}
	switch elements()[strings.ToLower(x.s[nameAt:nameEnd])] {
	case block:
		x.space = true
	case noText:
		if x.s[i+1] != '/' && x.s[end-2] != '/' {
			return x.skipTo(x.s[nameAt:nameEnd], end)
		}
	}
	return end
}

// tagEnd finds the end of a tag, outside quotes. It returns -1 if there is none.
func (x *textScanner) tagEnd(i int) int {
	if x.ends.Lack(">") {
		return -1
	}
	for j := i; j < len(x.s); j++ {
		switch x.s[j] {
		case '>':
			return j + 1
		case '"', '\'':
			if x.s[j-1] != '=' && x.s[j-1] != ' ' {
				continue
			}
			if end := x.ends.Index(x.s[j+1:], x.s[j:j+1]); end >= 0 {
				j += 1 + end
			}
		}
	}
	// No > outside quotes closes the tag: look for one inside.
	gt := x.ends.Index(x.s[i:], ">")
	if gt < 0 {
		return -1
	}
	x.ends = append(x.ends, `"`, `'`)
	return i + gt + 1
}

// skipTo finds the end tag of an element whose content is not text, or the end of the document.
func (x *textScanner) skipTo(name string, from int) int {
	for i := from; ; {
		j := strings.Index(x.s[i:], "</")
		if j < 0 {
			return len(x.s)
		}
		i += j + 2
		if len(x.s)-i >= len(name) && strings.EqualFold(x.s[i:i+len(name)], name) {
			gt := strings.IndexByte(x.s[i:], '>')
			if gt < 0 {
				return len(x.s)
			}
			return i + gt + 1
		}
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

type elementKind byte

const (
	inline   elementKind = iota
	phrasing             // inline, and markup in a title if it is closed
	block                // separates words
	noText               // its content is not shown
)

// elements are those of HTML that are not inline, including what was once part of it, and phrasing
// elements.
var elements = sync.OnceValue(func() map[string]elementKind {
	m := map[string]elementKind{}
	for kind, names := range map[elementKind]string{
		phrasing: `a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr
			q rb rp rt rtc ruby s samp small span strike strong sub sup time tt u var`,
		block: `address article aside blockquote body br caption center colgroup dd details
			dialog dir div dl dt fieldset figcaption figure footer form frame frameset h1 h2 h3
			h4 h5 h6 head header hgroup hr html legend li main menu nav noframes noscript ol
			optgroup option p pre search section select summary table tbody td textarea tfoot
			th thead title tr ul`,
		noText: `iframe script style template`,
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = kind
		}
	}
	return m
})
