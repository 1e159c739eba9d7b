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

// Progress shows the progress of long work in the last line of a terminal; elsewhere it does nothing.
// It is drawn when a step is added, not by a timer. It is safe for concurrent use. A nil *Progress does
// nothing.
type Progress struct {
	r     *Reporter
	line  *pb.ProgressBar
	total int       // -1 if unknown: then a spinner replaces the bar
	drawn time.Time // last drawing
	room  int       // columns that a line may have
	width int       // width of the widest line drawn so far
}

// Progress shows a bar of total steps after a description, or nothing if stderr is not a terminal
// or another bar is shown. Call [Progress.Done] at the end; [Main] removes a bar that is left.
func (r *Reporter) Progress(total int, description string) *Progress {
	if total <= 0 {
		return nil
	}
	return r.begin(total, description)
}

// Counter is [Reporter.Progress] for an unknown number of steps: it shows how many are done.
func (r *Reporter) Counter(description string) *Progress { return r.begin(-1, description) }

// begin shows a bar that fits the terminal: a longer line would wrap, and each drawing would leave a
// line on the screen. A total of -1 means unknown.
func (r *Reporter) begin(total int, description string) *Progress {
	if !r.terminal {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bar != nil {
		return nil
	}
	const most = 24 // columns of the bar itself
	columns, _ := size(r.w)
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
	r.bar = &Progress{r: r, total: total, line: line, room: room}
	r.bar.draw()
	return r.bar
}

// do calls f if the bar is still shown.
func (p *Progress) do(f func()) {
	if p == nil {
		return
	}
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	if p.r.bar == p {
		f()
	}
}

// Add adds n finished steps.
func (p *Progress) Add(n int) {
	p.do(func() {
		p.line.Add(n)
		p.draw()
	})
}

// Done removes the bar.
func (p *Progress) Done() {
	p.do(func() {
		p.clear()
		p.r.bar = nil
	})
}

// draw draws the bar if pace has passed since the last drawing. At the end of the work it clears
// the line.
func (p *Progress) draw() {
	if p.total >= 0 && p.line.Current() >= int64(p.total) {
		p.clear()
		return
	}
	if now := time.Now(); now.Sub(p.drawn) >= p.r.pace {
		p.drawn = now
		line := termsafe.Truncate(p.line.String(), p.room)
		shorter := strings.Repeat(" ", max(p.width-termsafe.Width(line), 0))
		p.width = max(p.width, termsafe.Width(line))
		io.WriteString(p.r.w, "\r"+line+shorter)
	}
}

// clear removes the bar from the screen until it is drawn again.
func (p *Progress) clear() {
	io.WriteString(p.r.w, "\r"+strings.Repeat(" ", p.width)+"\r")
}
