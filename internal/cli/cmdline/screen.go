package cmdline

import (
	"bytes"
	"strings"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Screen is a terminal to write lines for. The zero value means no terminal: lines are neither
// truncated nor coloured.
type Screen struct {
	Width  int  // columns
	Height int  // lines; 0 if unknown
	Color  bool // use colours and bold
}

// Screen returns the terminal Out.
func (s *Streams) Screen() Screen {
	if !s.OutIsTerminal() {
		return Screen{}
	}
	_, height := s.Size()
	return Screen{Width: s.Width(), Height: height, Color: s.Color()}
}

// Style is the style of a piece of a line: parameters of SGR (ECMA-48, 8.3.117).
type Style string

// The styles.
const (
	Plain   Style = ""
	Bold    Style = "1"
	Feed    Style = "36"   // cyan
	Current Style = "1;34" // bold and blue
	Failed  Style = "31"   // red
)

// Piece is a part of a line in one style. Its text must be safe for a terminal.
type Piece struct {
	Text  string
	Style Style
}

// Line writes pieces as a line, truncated to the width of the screen, without trailing blanks. Each
// style ends with its piece.
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
