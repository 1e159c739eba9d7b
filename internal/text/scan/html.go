package scan

import (
	"html"
	"net/url"
	"strings"

	"github.com/lektordir/lektor/internal/text/markup"
)

// ResolveHTML makes the URLs in HTML absolute. Only the values that change are rewritten;
// everything else stays byte for byte, and HTML in which nothing changes is returned as it is.
// References to a place in the same text (#name) are left unchanged. Unless fixed is set, the first
// <base href> in s overrides base for what follows.
//
// It stops when the text has grown by *budget, so that a short reference repeated
// often under a long base cannot fill the memory.
func ResolveHTML(s string, base *url.URL, fixed bool, budget *int) string {
	if base == nil && fixed || *budget <= 0 || strings.IndexByte(s, '<') < 0 {
		return s
	}
	z := New([]byte(s), func(Defect, int, []byte) {})
	offset := func(part []byte) int { return cap(z.Src) - cap(part) } // of a part that is not empty
	var out []byte
	copied := 0 // s[:copied] is in out
	for tag := z.Next(nil); tag.Kind != End; tag = z.Next(nil) {
		if tag.Kind != Open {
			continue
		}
		for _, a := range z.Attrs {
			if len(a.Val) == 0 || *budget <= 0 {
				continue
			}
			from := offset(a.Val)
			val, key := s[from:from+len(a.Val)], strings.ToLower(s[offset(a.Key):][:len(a.Key)])
			if !markup.IsURLAttr(key) {
				continue
			}
			abs, changed := markup.ResolveAttr(base, key, val)
			if key == "href" && !fixed && strings.EqualFold(string(tag.Data), "base") {
				base, fixed = markup.Base(base, html.UnescapeString(val)), true
			}
			if !changed || base == nil {
				continue
			}
			if *budget -= max(len(abs)-len(val), 0); *budget <= 0 {
				continue
			}
			quote := `"`
			if strings.IndexByte(`"'`, s[from-1]) >= 0 {
				quote = ""
			}
			out = append(out, s[copied:from]+quote+attrEscaper.Replace(abs)+quote...)
			copied = from + len(val)
		}
		switch name := strings.ToLower(string(tag.Data)); name {
		case "script", "style", "textarea": // the contents of these are no HTML
			if !z.SkipContent(name) {
				z.Pos = len(z.Src)
			}
		}
	}
	if copied == 0 {
		return s
	}
	return string(append(out, s[copied:]...))
}

var attrEscaper = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "'", "&#39;", "<", "&lt;", ">", "&gt;")

// SkipContent skips the content of an element of HTML that is not markup, up to its end tag. It
// reports false if there is none. name is in lower case.
func (s *Scanner) SkipContent(name string) bool {
	end := "</" + name
	if s.ends.Lack(end) { // search for a missing end tag only once
		return false
	}
	n := markup.IndexFold(s.Src[s.Pos:], end)
	if n < 0 {
		s.ends = append(s.ends, end)
		return false
	}
	s.Pos += n
	return true
}
