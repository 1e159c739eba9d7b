package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/termsafe"
)

// look is how a character looks.
type look struct {
	colour                            int // of the sixteen; -1 for the terminal's own
	bold, faint, underlined, reversed bool
}

// cell is a column of a line. One that a wide character begins is followed by an empty
// one.
type cell struct {
	text string
	look look
}

// parse reads what tmux captured: text, and SGR sequences.
func parse(screen string, columns, lines int) [][]cell {
	grid := make([][]cell, 0, lines)
	now := look{colour: -1}
	for line := range strings.SplitSeq(strings.TrimSuffix(screen, "\n"), "\n") {
		var row []cell
		for line != "" {
			if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
				codes, after, _ := strings.Cut(rest, "m")
				now.apply(codes)
				line = after
				continue
			}
			r := []rune(line)[0]
			line = line[len(string(r)):]
			switch termsafe.Width(string(r)) {
			case 0:
				if len(row) > 0 {
					row[len(row)-1].text += string(r)
				}
			case 2:
				row = append(row, cell{string(r), now}, cell{"", now})
			default:
				row = append(row, cell{string(r), now})
			}
		}
		for len(row) < columns {
			row = append(row, cell{" ", look{colour: -1}})
		}
		grid = append(grid, row[:columns])
	}
	for len(grid) < lines {
		grid = append(grid, nil)
	}
	return grid[:lines]
}

// apply takes the codes of a sequence.
func (l *look) apply(codes string) {
	for code := range strings.SplitSeq(codes, ";") {
		n, _ := strconv.Atoi(code) // none is 0
		switch {
		case n == 0:
			*l = look{colour: -1}
		case n == 1:
			l.bold = true
		case n == 2:
			l.faint = true
		case n == 4:
			l.underlined = true
		case n == 7:
			l.reversed = true
		case n == 22:
			l.bold, l.faint = false, false
		case n == 24:
			l.underlined = false
		case n == 27:
			l.reversed = false
		case n >= 30 && n <= 37:
			l.colour = n - 30
		case n == 39:
			l.colour = -1
		case n >= 90 && n <= 97:
			l.colour = n - 90 + 8
		}
	}
}

// The colours of the picture.
const ground, ink = "#16181d", "#d8dbe2"

var colours = [16]string{
	"#3b4048", "#e06c75", "#98c379", "#e5c07b", "#6ba6ff", "#c678dd", "#56b6c2", "#d8dbe2",
	"#5c6370", "#ff7b86", "#b5e08d", "#ffd98a", "#8cbcff", "#dd92f0", "#6fd3df", "#ffffff",
}

// A character is so large, and so far from the edge.
const cellWidth, cellHeight, edge = 8, 17, 12

// svg draws a screen. Its title says what it shows.
func svg(grid [][]cell, title string) string {
	var b strings.Builder
	width := len(grid[0])*cellWidth + 2*edge
	height := len(grid)*cellHeight + 2*edge
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" rx="8" fill="%s"/>`+"\n", width, height, ground)
	fmt.Fprintf(&b, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace" font-size="13" fill="%s">`+"\n", ink)
	for y, row := range grid {
		for x := 0; x < len(row); {
			end := min(x+2, len(row)) // of a wide character
			if termsafe.Width(row[x].text) < 2 {
				for end = x + 1; end < len(row) && row[end].look == row[x].look && termsafe.Width(row[end].text) == 1; end++ {
				}
			}
			piece(&b, row[x:end], x, y)
			x = end
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}

// piece draws characters that look alike, in as many columns as they have.
func piece(b *strings.Builder, cells []cell, x, y int) {
	var text strings.Builder
	for _, c := range cells {
		text.WriteString(c.text)
	}
	l := cells[0].look
	fill, back := ink, ""
	if l.colour >= 0 {
		fill = colours[l.colour]
	}
	if l.reversed {
		fill, back = ground, fill
	}
	left, top := edge+x*cellWidth, edge+y*cellHeight
	if back != "" {
		opacity := ""
		if l.faint {
			opacity = ` opacity=".45"`
		}
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"%s/>`+"\n", left, top, len(cells)*cellWidth, cellHeight, back, opacity)
	}
	trimmed := strings.TrimRight(text.String(), " ")
	if trimmed == "" && !l.underlined {
		return
	}
	width := len(cells)
	if !l.underlined {
		width -= len(text.String()) - len(trimmed)
	} else {
		trimmed = text.String()
	}
	attrs := ""
	if fill != ink {
		attrs += fmt.Sprintf(` fill="%s"`, fill)
	}
	if l.bold {
		attrs += ` font-weight="bold"`
	}
	if l.faint && !l.reversed {
		attrs += ` opacity=".55"`
	}
	if l.underlined {
		attrs += ` text-decoration="underline"`
	}
	// Programs disagree on what to do with several spaces, but not on these.
	trimmed = strings.ReplaceAll(html.EscapeString(trimmed), " ", "\u00a0")
	fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d"%s>%s</text>`+"\n", left, top+cellHeight-4, width*cellWidth, attrs, trimmed)
}
