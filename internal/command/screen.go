package command

import (
	"bytes"
	"strings"

	"github.com/lektordir/lektor/internal/termsafe"
)

// Screen is the terminal that lines are for. The zero value is none: then lines are
// for programs, and neither fitted nor coloured.
type Screen struct {
	Width  int  // columns
	Height int  // lines; 0 if the terminal does not say
	Color  bool // colours and bold letters
}

// Screen is the terminal that Out is.
func (s *Streams) Screen() Screen {
	if !s.OutIsTerminal() {
		return Screen{}
	}
	_, height := s.Size()
	return Screen{Width: s.Width(), Height: height, Color: s.Color()}
}

// Style is how a piece of a line looks on a terminal: the parameters of SGR
// (ECMA-48, 8.3.117).
type Style string

// The styles there are.
const (
	Plain   Style = ""
	Bold    Style = "1"
	Feed    Style = "36"   // cyan
	Current Style = "1;34" // bold and blue
	Failed  Style = "31"   // red
)

// Piece is a part of a line in one style. Its text is clean.
type Piece struct {
	Text  string
	Style Style
}

// Line writes pieces as a line, which is fitted to the screen, if there is one.
// Blanks at its end are left out. Every style ends before the next piece begins.
func (s Screen) Line(b *bytes.Buffer, line ...Piece) {
	for len(line) > 0 {
		end := &line[len(line)-1]
		if end.Text = strings.TrimRight(end.Text, " "); end.Text != "" {
			break
		}
		line = line[:len(line)-1]
	}
	left := s.Width
	for _, p := range line {
		if s.Width > 0 {
			width := termsafe.Width(p.Text)
			if width > left {
				p.Text = termsafe.Truncate(p.Text, left)
				width = left
			}
			left -= width
		}
		if p.Text == "" || p.Style == Plain || !s.Color {
			b.WriteString(p.Text)
		} else {
			b.WriteString("\x1b[" + string(p.Style) + "m" + p.Text + "\x1b[m")
		}
	}
	b.WriteByte('\n')
}
