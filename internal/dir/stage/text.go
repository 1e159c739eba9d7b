package stage

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/lektordir/lektor/internal/text/textfile"
)

// PlainText returns content as [Item].Text has it: text without the markup of HTML or XML and with
// single spaces, other content as it is.
func PlainText(content []byte, mimeType string) string {
	var text string
	if t := textfile.BaseType(mimeType); strings.HasSuffix(t, "html") || strings.HasSuffix(t, "xml") {
		text = withoutMarkup(content)
	} else {
		text = string(content)
	}
	if textfile.IsText(mimeType) {
		text = fold(text)
	}
	return text
}

func withoutMarkup(content []byte) string {
	z := html.NewTokenizer(bytes.NewReader(content))
	z.AllowCDATA(true)
	var b strings.Builder
	within := "" // name of the open element whose content is not shown, or ""
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

// Kinds of elements. Other elements do not separate words.
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

// fold replaces white space by single spaces, and removes control characters.
func fold(s string) string {
	s = textfile.Clean(s)
	out := make([]byte, 0, len(s))
	copied := 0 // length of the part of s that is in out
	for i := 0; i < len(s); {
		if c := s[i]; c > ' ' && c < 0x7f {
			i++
			continue
		}
		out = append(out, s[copied:i]...)
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case !unicode.IsSpace(r) && r >= 0x20 && r != 0x7f:
			out = append(out, s[i:i+n]...)
		case unicode.IsSpace(r) && len(out) > 0 && out[len(out)-1] != ' ':
			out = append(out, ' ')
		}
		i += n
		copied = i
	}
	return strings.TrimSuffix(string(append(out, s[copied:]...)), " ")
}
