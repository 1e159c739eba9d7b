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
	room  int       // columns that a line may have
	width int       // width of the widest line drawn so far
}

// newBar returns a bar that fits the terminal: a longer line would wrap, and each drawing would leave a
// line on the screen. A total of -1 means unknown.
func newBar(w io.Writer, pace time.Duration, total int, description string) *bar {
	const most = 24 // columns of the bar itself
	columns, _ := size(w)
	room := cmp.Or(columns, 80) - 1 // the last column is left free
	description = termsafe.Line(description)
	digits := len(strconv.Itoa(total))
	template := `{{string . "description"}} {{percent . "%3.0f%%"}} {{bar . "" "█" "█" "░" ""}}`
	switch {
	case total < 0:
		template = `{{cycle . "|" "/" "-" "\\"}} {{string . "description"}}`
	case os.Getenv("NO_COLOR") != "":
		template = strings.Replace(template, `"" "█" "█" "░" ""`, `"[" "=" ">" " " "]"`, 1)
	}
	template += fmt.Sprintf(` ({{counters . "%%%ds/%%s" "%%[1]s"}}) `, digits)
	line := pb.New(max(total, 0)).Set("description", description).Set(pb.Static, true).SetTemplateString(template)
	line.SetWidth(min(room, termsafe.Width(description)+len(" 100% ")+most+2*digits+len(" (/) "))).Start()
	return &bar{w: w, pace: pace, total: total, line: line, room: room}
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
		line := termsafe.Truncate(b.line.String(), b.room)
		shorter := strings.Repeat(" ", max(b.width-termsafe.Width(line), 0))
		b.width = max(b.width, termsafe.Width(line))
		io.WriteString(b.w, "\r"+line+shorter)
	}
}

// clear removes the bar from the screen until it is drawn again.
func (b *bar) clear() {
	io.WriteString(b.w, "\r"+strings.Repeat(" ", b.width)+"\r")
}
