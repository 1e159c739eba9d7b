package markup

import (
	"regexp"
	"strings"
	"sync"
)

// titleTag matches a tag in a title: the slash of an end tag, the name and the attributes.
var titleTag = sync.OnceValue(func() *regexp.Regexp {
	const value = `(?:"[^"]*"|'[^']*'|[^\s<>"'][^\s<>]*)`
	return regexp.MustCompile(`<(/?)([A-Za-z][0-9A-Za-z]*)((?:\s+(?:[^\s<>"'=/]+(?:\s*=\s*` + value + `)?)?)*)\s*/?>`)
})

// imageAttr matches the attributes of an image that decide what it says in a title.
var imageAttr = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\s(alt|src)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"']+))`)
})

// maxTitleTags is the maximum number of tags in a title that may be markup, which limits memory.
const maxTitleTags = 1000

// Unwrap returns the text of a CDATA section that was escaped itself, and so is text in HTML,
// together with the text behind it. If the section is not closed, it ends with the text. Other text
// is returned as it is.
func Unwrap(s string) string {
	for n := 0; ; n++ {
		rest, ok := strings.CutPrefix(strings.TrimLeft(s, Spaces), "<![CDATA[")
		if !ok {
			return strings.Replace(s, "]]>", "", n)
		}
		s = rest
	}
}

// untagged returns a title without its markup, except references. Many publishers escape a title
// once where a format wants HTML, so a tag is markup only if it cannot be a word: pairs of phrasing
// elements, <p> and <div> around the whole, <br>, and images, which are replaced by their alt. All
// else is text: "<script> and Vec<String>".
func untagged(s string) string {
	if strings.IndexByte(s, '<') < 0 {
		return s
	}
	if strings.HasSuffix(strings.TrimRight(s, Spaces), "]]>") {
		s = Unwrap(s)
	}
	tags := titleTag().FindAllStringSubmatchIndex(s, maxTitleTags)
	names := make([]string, len(tags))
	instead := make(map[int]string, len(tags)) // the text in place of a tag that is markup
	ends := map[int]int{}                      // of a start tag, both by their index in tags
	open := map[string][]int{}
	for i, t := range tags {
		name := strings.ToLower(s[t[4]:t[5]])
		names[i] = name
		switch list := open[name]; {
		case name == "br":
			instead[i] = " "
		case name == "img":
			if alt, ok := imageText(s[t[6]:t[7]]); ok {
				instead[i] = alt
			}
		case t[2] == t[3] && s[t[1]-2] != '/':
			open[name] = append(list, i)
		case t[2] < t[3] && len(list) > 0:
			start := list[len(list)-1]
			open[name], ends[start] = list[:len(list)-1], i
			if elements()[name] == phrasing {
				instead[start], instead[i] = "", ""
			}
		}
	}
	from, to := 0, len(s)
	for i := range tags {
		end, ok := ends[i]
		if !ok || strings.TrimSpace(s[from:tags[i][0]]+s[tags[end][1]:to]) != "" {
			break
		}
		if names[i] == "p" || names[i] == "div" {
			instead[i], instead[end] = "", ""
		}
		from, to = tags[i][1], tags[end][0]
	}
	var b strings.Builder
	done := 0
	for i, t := range tags {
		if text, ok := instead[i]; ok {
			b.WriteString(s[done:t[0]] + text)
			done = t[1]
		}
	}
	return b.String() + s[done:]
}

// imageText returns the text of an image with attributes. It is none if it has neither a source nor
// a text.
func imageText(attributes string) (alt string, ok bool) {
	for _, m := range imageAttr().FindAllStringSubmatch(attributes, maxTitleTags) {
		value := m[2] + m[3] + m[4]
		ok = ok || value != ""
		if strings.EqualFold(m[1], "alt") && alt == "" {
			alt = value
		}
	}
	return alt, ok
}
