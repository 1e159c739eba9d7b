package work

import (
	"cmp"
	"context"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// left returns what the user has requested and the screen does not know to be done when it has gone.
func (w *Work) left() (left []*run) {
	for _, c := range w.changes {
		if !c.made {
			left = append(left, &c.run)
		}
	}
	for _, t := range w.Tasks.list {
		if t.Finish {
			left = append(left, &t.run)
		}
	}
	return left
}

// reportEvery is the time between two reports of what is left.
const reportEvery = time.Second

// Drain waits for the end of what the user has requested, after the screen has gone. It reports progress if that takes
// long, and failures. If ctx ends meanwhile by ^C, it calls interrupt, which must end Ctx of w. After a signal that
// ended the screen, ^C kills the process. Drain returns a defect that ended work, else nil.
func (w *Work) Drain(ctx context.Context, report *cmdline.Reporter, interrupt func()) (first *part.Defect) {
	left, signal := w.left(), ctx.Done()
	if ctx.Err() != nil {
		signal = nil
	}
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	var timeout <-chan time.Time
	for i := 0; i < len(left); {
		select {
		case <-left[i].ended:
			if d, ok := left[i].msg.(*part.Defect); ok {
				first = cmp.Or(first, d)
			}
			i++
		case <-ticker.C:
			report.Info("%s", w.progress(left, left[i]))
		case <-signal:
			signal = nil
			if context.Cause(ctx) == cmdline.Stopped(syscall.SIGINT) { // others only end the screen
				interrupt()
				timeout = time.After(patience)
			}
		case <-timeout: // for example, a file system does not answer
			return first
		}
	}
	if first == nil {
		w.reportEnd(left, report)
	}
	return first
}

// progress returns the message while now, of what is left, is being done.
func (w *Work) progress(left []*run, now *run) string {
	if done, total := marked(left); done < total {
		return w.Trf("marked %d of %d; ^C ends without the rest", done, total)
	}
	return w.Trf("%s; ^C ends without it", cmp.Or(now.label, w.Tr("changing a subscription")))
}

// marked returns how many entries are done, and how many there are.
func marked(left []*run) (done, total int) {
	for _, r := range left {
		done += int(r.marked.Load())
		total += r.total
	}
	return done, total
}

// reportEnd reports how many entries were marked if ^C ended that, else the failures.
func (w *Work) reportEnd(left []*run, report *cmdline.Reporter) {
	if done, total := marked(left); w.Ctx.Err() != nil && done < total {
		report.Error("%s", w.Trf("marked %d of %d", done, total))
	}
	for _, r := range left {
		if r.err != nil && w.Ctx.Err() == nil {
			report.Print(r.err)
		}
	}
}
