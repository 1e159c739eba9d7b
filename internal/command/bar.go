package command

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/termsafe"
)

// bar is the last line of a terminal that shows how far long work is. It is not safe for
// concurrent use.
type bar struct {
	w     io.Writer
	pace  time.Duration // between two drawings
	text  string        // description in front of the bar
	cells int           // columns of the bar itself
	count bool          // show the number of steps
	ascii bool
	done  int
	total int       // -1 if it is not known: then a spinner stands for the bar
	turn  int       // of the spinner
	drawn time.Time // last drawing
	width int       // of the widest line that was drawn
}

// newBar returns a bar that fits a terminal; total is -1 if it is not known.
func newBar(w io.Writer, pace time.Duration, total int, description string) *bar {
	b := &bar{w: w, pace: pace, total: total, ascii: os.Getenv("NO_COLOR") != ""}
	columns, _ := size(w)
	b.text, b.cells, b.count = fitBar(cmp.Or(columns, 80), termsafe.Line(description), total)
	return b
}

// add counts n steps as done.
func (b *bar) add(n int) {
	b.done += n
	b.draw()
}

// draw draws the bar if the last drawing is long enough ago. At the end of the work it
// clears the line.
func (b *bar) draw() {
	if b.total >= 0 && b.done >= b.total {
		b.clear()
		return
	}
	if now := time.Now(); now.Sub(b.drawn) >= b.pace {
		b.drawn = now
		line := b.line()
		shorter := strings.Repeat(" ", max(b.width-termsafe.Width(line), 0))
		b.width = max(b.width, termsafe.Width(line))
		io.WriteString(b.w, "\r"+line+shorter)
	}
}

// clear takes the bar off the screen until it is drawn again.
func (b *bar) clear() {
	io.WriteString(b.w, "\r"+strings.Repeat(" ", b.width)+"\r")
}

// line returns the bar as text, with a space after it for the cursor.
func (b *bar) line() string {
	var count string
	if b.total < 0 {
		if b.count {
			count = fmt.Sprintf("(%d)", b.done)
		}
		b.turn++
		return fmt.Sprintf("%c %s %s ", `|/-\`[(b.turn-1)%4], b.text, count)
	}
	if b.count {
		count = fmt.Sprintf("(%d/%d)", b.done, b.total)
	}
	percent := 100 * b.done / b.total
	return fmt.Sprintf("%s%4d%% %s %s ", b.text, percent, b.cellsOf(percent*b.cells/100), count)
}

// cellsOf returns the bar itself, n of its cells filled.
func (b *bar) cellsOf(n int) string {
	switch rest := b.cells - n; {
	case !b.ascii:
		return strings.Repeat("█", n) + strings.Repeat("░", rest)
	case b.cells == 0:
		return ""
	case n == 0:
		return "[" + strings.Repeat(" ", rest) + "]"
	default:
		return "[" + strings.Repeat("=", n-1) + ">" + strings.Repeat(" ", rest) + "]"
	}
}

// fitBar returns what fits on a terminal beside the percentage: the description, columns of
// the bar itself, and whether the count does. A line that is too long would wrap, and be drawn
// again below itself for ever.
func fitBar(columns int, description string, total int) (text string, bar int, count bool) {
	const most, least = 24, 4
	// "fetching 100% [====] (2000/2000) ", and the last column, which is left free.
	counts := 2*len(strconv.Itoa(total)) + len("(/)")
	left := columns - len(" 100% [] ") - len(" ") - 1
	switch {
	case left >= termsafe.Width(description)+least+counts:
		return description, min(most, left-termsafe.Width(description)-counts), true
	case left >= termsafe.Width(description)+counts:
		return description, 0, true
	case left >= counts:
		return "", 0, true
	}
	return "", 0, false
}
