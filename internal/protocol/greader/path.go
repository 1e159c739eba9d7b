package greader

import (
	"net/url"
	"strings"
)

// The beginnings of paths that are followed by a stream.
const (
	ContentsPath = "reader/api/0/stream/contents"
	AtomPath     = "reader/atom"
)

// APIPath is the beginning of the paths of most calls.
const APIPath = "reader/api/0/"

// SplitPath splits the path of a request, as it was sent, into the name of a call without a
// leading slash and a stream. It merges slashes, except in the stream, and removes base and the
// prefixes of other servers that clients add. It reports false for a path outside base.
func SplitPath(escaped, base string) (call, stream string, ok bool) {
	path := strings.TrimLeft(escaped, "/")
	base = strings.Trim(base, "/")
	if base != "" {
		rest, within := strings.CutPrefix(path, base)
		if !within || rest != "" && rest[0] != '/' {
			return "", "", false
		}
		path = strings.TrimLeft(rest, "/")
	}
	for again := true; again; {
		again = false
		for _, prefix := range []string{"api", "greader.php"} {
			if rest, found := cutPath(path, prefix); found {
				path, again = rest, true
			}
		}
	}
	for _, prefix := range []string{ContentsPath, AtomPath} {
		if rest, found := cutPath(path, prefix); found {
			if plain, err := url.PathUnescape(rest); err == nil {
				rest = plain
			}
			return prefix, rest, true
		}
	}
	if plain, err := url.PathUnescape(path); err == nil {
		path = plain
	}
	return strings.Join(strings.FieldsFunc(path, func(c rune) bool { return c == '/' }), "/"), "", true
}

// cutPath removes a prefix and the following slash from a path in which slashes may be repeated.
func cutPath(path, prefix string) (rest string, ok bool) {
	for part := range strings.SplitSeq(prefix, "/") {
		path = strings.TrimLeft(path, "/")
		after, found := strings.CutPrefix(path, part)
		if !found || after != "" && after[0] != '/' {
			return "", false
		}
		path = after
	}
	return strings.TrimLeft(path, "/"), true
}
