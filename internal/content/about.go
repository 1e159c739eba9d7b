package content

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Authors returns the names in a line of authors. With addresses it also returns the addresses of
// authors without a name, otherwise none.
func Authors(line string, addresses bool) string {
	var names []string
	for one := range strings.SplitSeq(line, ", ") {
		name, _, _ := strings.Cut(one, "<")
		if name = strings.TrimSpace(name); name == "" {
			name = strings.Trim(one, "<> ")
		}
		if !addresses {
			words := slices.DeleteFunc(strings.Fields(name),
				func(w string) bool { return strings.IndexByte(strings.TrimLeft(w, "("), '@') > 0 })
			if name = strings.Join(words, " "); strings.HasPrefix(name, "(") {
				name = strings.Trim(name, "()")
			}
		}
		if name = termsafe.Squeeze(name); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Language returns a language tag, "" if it is not valid (RFC 5646, 2.1).
func Language(tag string) string {
	const valid = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"
	if len(tag) < 2 || len(tag) > 35 || strings.Trim(tag, valid) != "" {
		return ""
	}
	return tag
}

// About returns the file name of an enclosure, and its type and size in parentheses with a leading
// space, "" if both are unknown.
func About(enc lektordir.Enclosure) (name, about string) {
	name = "enclosure"
	if u, err := url.Parse(enc.URL); err == nil {
		name = u.Hostname()
		if base := path.Base(u.Path); base != "." && base != "/" {
			name = termsafe.Squeeze(base)
		}
	}
	var parts []string
	if t := termsafe.Squeeze(enc.Type); t != "" {
		parts = append(parts, t)
	}
	if enc.Length > 0 {
		parts = append(parts, humanize.Bytes(enc.Length))
	}
	if len(parts) > 0 {
		about = " (" + strings.Join(parts, ", ") + ")"
	}
	return name, about
}
