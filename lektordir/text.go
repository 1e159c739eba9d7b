package lektordir

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// clean makes text fit for a file: valid UTF-8 without NUL.
func clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}

// content is clean for content that is text, and the same bytes when they are
// fit or no text.
func content(b []byte, mimeType string) []byte {
	if !IsText(mimeType) || utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		return b
	}
	return []byte(clean(string(b)))
}

// baseType is a MIME type in lower case, without parameters.
func baseType(mimeType string) string {
	t, _, _ := strings.Cut(strings.ToLower(mimeType), ";")
	return strings.TrimSpace(t)
}

// IsText reports whether content of a MIME type is text, as it is without a
// type. Of other types, such as images, each byte counts.
func IsText(mimeType string) bool {
	group, name, ok := strings.Cut(baseType(mimeType), "/")
	return !ok || group == "text" || group == "message" ||
		name == "xml" || name == "json" || strings.HasSuffix(name, "+xml") || strings.HasSuffix(name, "+json")
}

// oneLine is clean for a file of a single line.
func oneLine(s string) string {
	s = clean(s)
	if strings.ContainsAny(s, "\r\n") {
		s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\r' || r == '\n' }), " ")
	}
	return s
}

// oneField is oneLine for what has no business with tabs, as addresses and types.
func oneField(s string) string { return strings.ReplaceAll(oneLine(s), "\t", " ") }

// line is the text of a file: without the one newline that ends it, and valid
// UTF-8 whatever wrote it.
func line(data []byte) string {
	s := strings.TrimSuffix(string(data), "\n")
	return strings.ToValidUTF8(s, "\uFFFD")
}

// plainText is the text of content: without markup, where its type has any.
func plainText(content []byte, mimeType string) string {
	if t := baseType(mimeType); !strings.HasSuffix(t, "html") && !strings.HasSuffix(t, "xml") {
		return string(content)
	}
	z := html.NewTokenizer(bytes.NewReader(content))
	z.AllowCDATA(true)
	var b strings.Builder
	within := "" // an element whose content is not shown
	for {
		tt := z.Next()
		switch tt {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			if within == "" {
				b.Write(z.Text())
			}
			continue
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
		default:
			continue
		}
		name, _ := z.TagName()
		switch kind := elements[string(name)]; {
		case within != "":
			if tt == html.EndTagToken && string(name) == within {
				within = ""
			}
		case kind == noText:
			if tt == html.StartTagToken {
				within = string(name)
			}
		case kind == block:
			b.WriteByte(' ')
		}
	}
}

// Kinds of elements; others stand within a word.
const (
	block  = 1 + iota // separates words
	noText            // its content is not shown
)

var elements = func() map[string]int {
	m := map[string]int{"iframe": noText, "script": noText, "style": noText, "template": noText}
	for name := range strings.FieldsSeq(`address article aside blockquote body br caption center
		colgroup dd details dialog dir div dl dt fieldset figcaption figure footer form frame frameset
		h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li main menu nav noframes noscript ol
		optgroup option p pre search section select summary table tbody td textarea tfoot th thead
		title tr ul`) {
		m[name] = block
	}
	return m
}()

// fold makes white space single spaces, and drops control characters.
func fold(s string) string {
	if folded(s) {
		return s
	}
	s = strings.Map(func(r rune) rune {
		if r < 0x20 && !unicode.IsSpace(r) || r == 0x7f {
			return -1
		}
		return r
	}, clean(s))
	return strings.Join(strings.Fields(s), " ")
}

// folded reports whether nothing is to be done to text, as for most; it may fail
// to see that.
func folded(s string) bool {
	space := true // before s[i]
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c > ' ' && c < 0x7f:
			space = false
		case c == ' ' && !space:
			space = true
		case c < utf8.RuneSelf:
			return false
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError || unicode.IsSpace(r) {
				return false
			}
			i += n - 1
			space = false
		}
	}
	return s == "" || !space
}
