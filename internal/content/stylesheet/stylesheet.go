// Package stylesheet holds the style sheet of all pages that lektor makes: the site of
// lektor-pages html, the page of a hub, and that of lektor-view stats. It is readable on a phone,
// and has dark colours for readers who prefer them.
package stylesheet

import _ "embed" // for CSS

// CSS is the style sheet.
//
//go:embed style.css
var CSS string
