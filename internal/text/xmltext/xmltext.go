// Package xmltext escapes text for XML 1.0.
package xmltext

import "strings"

var (
	escapeText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	escapeAttr = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;",
		"\t", "&#9;", "\n", "&#10;", "\r", "&#13;")
)

// Text escapes text for use between tags, and [Attr] for use in an attribute. Both drop
// characters that XML cannot contain.
func Text(s string) string { return escape(escapeText, s) }

// Attr is [Text] for the value of an attribute in double quotes.
func Attr(s string) string { return escape(escapeAttr, s) }

func escape(escaper *strings.Replacer, s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7F || c == '&' || c == '<' || c == '>' || c == '"' {
			return escaper.Replace(strings.Map(Writable, s))
		}
	}
	return s
}

// Writable returns a character that XML can contain (Char of XML 1.0), else -1, for [strings.Map].
func Writable(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0xD800 && r < 0xE000 || r == 0xFFFE || r == 0xFFFF ||
		r > 0x10FFFF {
		return -1
	}
	return r
}
