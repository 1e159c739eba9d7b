package feedurl

import (
	"regexp"
	"strings"
	"sync"
)

// userinfo matches a URL within a text, up to its host.
var userinfo = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^/?#\s"'<>\\]*@`)
})

// RedactText removes user name and password from each URL within a text, such as the content of an
// entry or a message.
func RedactText(text string) string {
	if strings.IndexByte(text, '@') < 0 {
		return text
	}
	return userinfo().ReplaceAllString(text, "$1")
}
