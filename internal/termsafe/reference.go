package termsafe

import (
	"fmt"
	"unicode/utf8"
)

// XML gives an XML document in which characters that a terminal acts on, C1
// controls, bidirectional overrides and isolates, and the separators of lines,
// are numeric references: it says the same, and may be looked at. They must stand
// in text and in values of attributes alone, and not in CDATA.
func XML(doc []byte) []byte { return refer(doc, "&#x%X;") }

// JSON is [XML] for a JSON document, whose strings have escapes for them.
func JSON(doc []byte) []byte { return refer(doc, `\u%04x`) }

func refer(doc []byte, format string) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(doc); {
		if doc[i] < utf8.RuneSelf && doc[i] != 0x7f {
			i++
			continue
		}
		r, n := utf8.DecodeRune(doc[i:])
		// Not the byte order mark, which may begin a document.
		if unsafe(r) && r != 0xfeff {
			out = fmt.Appendf(append(out, doc[done:i]...), format, r)
			done = i + n
		}
		i += n
	}
	if out == nil {
		return doc
	}
	return append(out, doc[done:]...)
}
