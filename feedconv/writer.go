package feedconv

import (
	"bytes"
	"strconv"
)

// writer writes the clean document.
type writer struct {
	out       []byte
	aside     []string
	asideFrom int
}

func (w *writer) open(name string) {
	w.out = append(w.out, '<')
	w.out = append(w.out, name...)
}

func (w *writer) attr(name string, value []byte) {
	w.out = append(w.out, ' ')
	w.out = append(w.out, name...)
	w.out = append(w.out, '=', '"')
	w.out = appendEscaped(w.out, value, true)
	w.out = append(w.out, '"')
}

// attrIf writes an attribute that has a value.
func (w *writer) attrIf(name, value string) {
	if value != "" {
		w.attr(name, []byte(value))
	}
}

func (w *writer) endOpen()  { w.out = append(w.out, '>') }
func (w *writer) endEmpty() { w.out = append(w.out, "/>"...) }

func (w *writer) end(name string) {
	w.out = append(w.out, '<', '/')
	w.out = append(w.out, name...)
	w.out = append(w.out, '>')
}

// Escapes of characters in text, and in the value of an attribute.
var (
	textEscapes = [256]string{'&': "&amp;", '<': "&lt;", '>': "&gt;"}
	attrEscapes = [256]string{'&': "&amp;", '<': "&lt;", '>': "&gt;", '"': "&#34;", '\n': "&#10;", '\t': "&#9;"}
)

// appendEscaped escapes text, or an attribute's value.
func appendEscaped(dst, s []byte, attribute bool) []byte {
	escapes := &textEscapes
	if attribute {
		escapes = &attrEscapes
	}
	start := 0
	for i, c := range s {
		if escape := escapes[c]; escape != "" {
			dst = append(dst, s[start:i]...)
			dst = append(dst, escape...)
			start = i + 1
		}
	}
	return append(dst, s[start:]...)
}

// text writes a string as what gofeed will read unchanged. Extensions are read
// by encoding/xml, piece by piece, so theirs is one escaped piece; everything
// else by gofeed, which takes CDATA verbatim and decodes other text by rules
// that depend on the element. Long ones are set aside where they may be.
func (w *writer) text(s []byte, extension, mayAside, verbatim bool) {
	if !extension && !verbatim && len(s) > 0 && !bytes.ContainsAny(s, "<>&") && !isSpace(s[0]) && !isSpace(s[len(s)-1]) {
		// gofeed trims what is not CDATA, and more than isSpace knows.
		s = bytes.TrimSpace(s)
	}
	if mayAside && (len(s) >= w.asideFrom || bytes.HasPrefix(s, []byte(asideMark))) {
		w.aside = append(w.aside, string(s))
		s = strconv.AppendInt([]byte(asideMark), int64(len(w.aside)-1), 10)
	}
	switch {
	case extension:
		w.out = appendEscaped(w.out, s, false)
	case len(s) == 0:
	case !verbatim && !bytes.ContainsAny(s, "<>&") && !isSpace(s[0]) && !isSpace(s[len(s)-1]):
		w.out = append(w.out, s...)
	default:
		w.cdata(s)
	}
}

func (w *writer) cdata(s []byte) {
	w.out = append(w.out, "<![CDATA["...)
	for {
		n := bytes.Index(s, []byte("]]>"))
		if n < 0 {
			break
		}
		w.out = append(w.out, s[:n+2]...)
		w.out = append(w.out, "]]><![CDATA["...)
		s = s[n+2:]
	}
	w.out = append(w.out, s...)
	w.out = append(w.out, "]]>"...)
}
