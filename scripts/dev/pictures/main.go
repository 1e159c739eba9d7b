// Pictures reads a screen of text and SGR sequences, as tmux captures it, and writes it as
// SVG. The script draw beside it makes the pictures of the README with it.
package main

import (
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// ground and ink are the colours of the picture, besides the sixteen of a terminal.
const ground, ink = "#16181d", "#d8dbe2"

var colours = [16]string{
	"#3b4048", "#e06c75", "#98c379", "#e5c07b", "#6ba6ff", "#c678dd", "#56b6c2", "#d8dbe2",
	"#5c6370", "#ff7b86", "#b5e08d", "#ffd98a", "#8cbcff", "#dd92f0", "#6fd3df", "#ffffff",
}

// These are the size of a character, and the distance from the edge, in pixels.
const cellWidth, cellHeight, edge = 8, 17, 12

func main() {
	must.Main("pictures", func() {
		must.Get(os.Stdout.WriteString(svg(string(must.Get(io.ReadAll(os.Stdin))),
			"lektor-view tui: folders and feeds, entries, and the entry")))
	})
}

// piece matches text in one style, and the escape sequence before it.
var piece = regexp.MustCompile(`(?:\x1b\[([0-9;]*)m)?([^\x1b]*)`)

// svg returns a screen as SVG. title describes it.
func svg(screen, title string) string {
	var b strings.Builder
	style := map[string]bool{} // active SGR codes
	width := 0
	lines := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
	for y, line := range lines {
		x := 0
		for _, m := range piece.FindAllStringSubmatch(line, -1) {
			if strings.HasPrefix(m[0], "\x1b") {
				apply(style, m[1])
			}
			// A wide character is placed separately, since fonts disagree on its width.
			for _, text := range regexp.MustCompile(`\p{Han}|\P{Han}+`).FindAllString(m[2], -1) {
				draw(&b, text, style, x, y)
				x += termsafe.Width(text)
			}
		}
		width = max(width, x)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img">
<title>%s</title>
<rect width="100%%" height="100%%" rx="8" fill="%s"/>
<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13" fill="%s">
%s</g>
</svg>
`, width*cellWidth+2*edge, len(lines)*cellHeight+2*edge, html.EscapeString(title), ground, ink, &b)
}

// apply changes the style by the codes of a sequence.
func apply(style map[string]bool, codes string) {
	for code := range strings.SplitSeq(codes, ";") {
		switch code {
		case "", "0":
			clear(style)
		case "22", "24", "27", "39":
			for _, off := range map[string][]string{"22": {"1", "2"}, "24": {"4"}, "27": {"7"}, "39": names()}[code] {
				delete(style, off)
			}
		default:
			style[code] = true
		}
	}
}

// names returns the codes of the sixteen colours.
func names() (all []string) {
	for i := range 8 {
		all = append(all, fmt.Sprint(30+i))
	}
	for i := range 8 {
		all = append(all, fmt.Sprint(90+i))
	}
	return all
}

// draw adds text in a style, with the width of its columns.
func draw(b *strings.Builder, text string, style map[string]bool, x, y int) {
	fill, attrs := ink, ""
	for i, code := range names() {
		if style[code] {
			fill = colours[i]
		}
	}
	left, top := edge+x*cellWidth, edge+y*cellHeight
	if style["7"] {
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", left, top,
			termsafe.Width(text)*cellWidth, cellHeight, fill)
		fill = ground
	}
	if !style["4"] {
		text = strings.TrimRight(text, " ")
	}
	if text == "" {
		return
	}
	for code, attr := range map[string]string{"1": ` font-weight="bold"`, "2": ` opacity=".55"`,
		"4": ` text-decoration="underline"`} {
		if style[code] {
			attrs += attr
		}
	}
	// Programs disagree on several spaces, but not on no-break spaces.
	spaced := strings.ReplaceAll(html.EscapeString(text), " ", "\u00a0")
	fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d" fill="%s"%s>%s</text>`+"\n", left, top+cellHeight-4,
		termsafe.Width(text)*cellWidth, fill, attrs, spaced)
}
