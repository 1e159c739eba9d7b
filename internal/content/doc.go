// Package content is the room of the contents of entries, made safe: HTML, text for a terminal, mail. It
// holds the style sheet of all pages that lektor makes, and how authors, languages and enclosures are shown. It may
// import text and lektordir.
package content

import _ "embed" // for StyleSheet

// StyleSheet is the style sheet of the site of lektor-pages html, the page of a hub, and that of
// lektor-view stats. It is readable on a phone, and has dark colours for readers who prefer them.
//
//go:embed style.css
var StyleSheet string
