package scan

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/text/markup"
)

// Plain returns the text of a document of a MIME type. Of markup it drops the tags (the insides of scripts
// and styles with them), and decodes references once. It folds white space to single spaces, and drops
// control characters. Tags of blocks separate words, inline tags do not. It takes time linear in the length
// of s.
func Plain(s, contentType string) string {
	if markup.IsMarkup(contentType) {
		return folded(s, (*textWriter).markup)
	}
	return Line(s)
}

// Title is [Plain] for titles in HTML, which people write as text: see untagged.
func Title(s string) string {
	return folded(s, func(w *textWriter, s string) { w.decode(untagged(s)) })
}

// Line is [Plain] for text without markup.
func Line(s string) string { return folded(s, (*textWriter).fold) }

// folded returns what write writes of s.
func folded(s string, write func(w *textWriter, s string)) string {
	if !utf8.ValidString(s) {
		// Do this first: dropping a control character later could join two halves of a character.
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	var w textWriter
	w.out.Grow(len(s))
	write(&w, s)
	return w.out.String()
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

// decode writes text with references in it.
func (w *textWriter) decode(s string) {
	if strings.IndexByte(s, '&') >= 0 {
		var none markup.Entities
		s = string(none.Decode(make([]byte, 0, len(s)), []byte(s)))
	}
	w.fold(s)
}

// markup writes the text of HTML or XML.
func (w *textWriter) markup(s string) {
	z := New([]byte(s), func(Defect, int, []byte) {})
	for {
		at := z.Pos
		tag := z.Next(nil)
		switch tag.Kind {
		case End, Cut:
			// A tag that the end cuts off is text.
			w.decode(s[max(at, strings.LastIndexByte(s, '>')+1):])
			return
		case CDATA:
			w.fold(string(tag.Data))
		case Text:
			text := s[tag.At:z.Pos]
			if len(text) > 1 && text[0] == '<' && isLetter(text[1]) {
				if end := z.find(z.Pos, ">"); end >= 0 {
					z.Pos = end + 1 // a tag with other things in it than attributes
					continue
				}
			}
			w.decode(text)
		case Open, Close:
			name := strings.ToLower(strings.TrimPrefix(s[tag.At+1:], "/")[:len(tag.Data)])
			switch kind := elements()[name]; {
			case !isLetter(name[0]): // no tag in HTML
				w.decode(s[tag.At:z.Pos])
			case kind == block:
				w.space = true
			case kind == noText && tag.Kind == Open && !tag.Self && !z.SkipContent(name):
				return
			}
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
