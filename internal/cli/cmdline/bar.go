package cmdline

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cheggaaa/pb/v3"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// bar is the last line of a terminal that shows the progress of long work. It is drawn when a
// step is added, not by a timer. It is not safe for concurrent use.
type bar struct {
	w     io.Writer
	pace  time.Duration // between two drawings
	line  *pb.ProgressBar
	total int       // -1 if unknown: then a spinner replaces the bar
	drawn time.Time // last drawing
	width int       // width of the widest line drawn so far, in columns
}

// newBar returns a bar that fits the terminal. A total of -1 means unknown.
func newBar(w io.Writer, pace time.Duration, total int, description string) *bar {
	columns, _ := size(w)
	description = termsafe.Line(description)
	template, width := fitBar(cmp.Or(columns, 80), termsafe.Width(description), total)
	line := pb.New(max(total, 0)).Set("description", description).Set(pb.Static, true)
	line.SetTemplateString(template).SetWidth(width).Start()
	return &bar{w: w, pace: pace, total: total, line: line}
}

// add counts n steps as done.
func (b *bar) add(n int) {
	b.line.Add(n)
	b.draw()
}

// draw draws the bar if pace has passed since the last drawing. At the end of the work it clears
// the line.
func (b *bar) draw() {
	if b.total >= 0 && b.line.Current() >= int64(b.total) {
		b.clear()
		return
	}
	if now := time.Now(); now.Sub(b.drawn) >= b.pace {
		b.drawn = now
		line := b.line.String()
		shorter := strings.Repeat(" ", max(b.width-termsafe.Width(line), 0))
		b.width = max(b.width, termsafe.Width(line))
		io.WriteString(b.w, "\r"+line+shorter)
	}
}

// clear removes the bar from the screen until it is drawn again.
func (b *bar) clear() {
	io.WriteString(b.w, "\r"+strings.Repeat(" ", b.width)+"\r")
}

// fitBar returns the parts of a bar that fit the terminal, as a template, and its width: the
// description, a bar of at most 24 columns, and the count. A longer line would wrap, and each
// drawing would leave a line on the screen.
func fitBar(columns, description, total int) (template string, width int) {
	const most, least = 24, 4
	digits := len(strconv.Itoa(total))
	count := fmt.Sprintf(` ({{counters . "%%%ds/%%s" "%%[1]s"}}) `, digits)
	bar := ` {{bar . "" "█" "█" "░" ""}}`
	if os.Getenv("NO_COLOR") != "" {
		bar = ` {{bar . "[" "=" ">" " " "]"}}`
	}
	percent, name := `{{percent . "%3.0f%%"}}`, `{{string . "description"}}`
	full := name + " " + percent
	if total < 0 {
		bar, percent = "", `{{cycle . "|" "/" "-" "\\"}}`
		full = percent + " " + name
	}
	counts := 2*digits + len(" (/) ")
	left := columns - len("100%") - len(" ") - 1 // the last column is left free
	switch {
	case bar != "" && left >= description+1+least+counts:
		return full + bar + count, min(columns-1, description+len(" 100% ")+most+counts)
	case left >= description+counts:
		return full + count, columns - 1
	case left >= counts:
		return percent + count, columns - 1
	}
	return percent, columns - 1
}
