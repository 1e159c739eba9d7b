package fetch

import (
	"strings"

	"github.com/lektordir/lektor/internal/lazy"
)

// userinfo is what stands before the host of a URL, within any text.
var userinfo = lazy.Regexp(`(?i)\b([a-z][a-z0-9+.-]*://)[^/?#\s"'<>\\]*@`)

// PublicText is [Public] for the URLs within a text, such as the content of an
// entry: user and password are taken out of each.
func PublicText(text string) string {
	if strings.IndexByte(text, '@') < 0 {
		return text
	}
	return userinfo().ReplaceAllString(text, "$1")
}
