package work

import (
	"os"
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
// long, and failures. At the first ^C among signals it calls interrupt, which must end Ctx. It returns a defect that
// ended work, else nil.
func (w *Work) Drain(report *cmdline.Reporter, signals <-chan os.Signal, interrupt func(os.Signal)) *part.Defect {
	left := w.left()
	ended := make(chan *part.Defect, 1)
	go func() {
		var first *part.Defect
		for _, run := range left {
			if d, ok := run.Await().(*part.Defect); ok && first == nil {
				first = d
			}
		}
		ended <- first
	}()
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	var timeout <-chan time.Time
	for {
		select {
		case <-ticker.C:
			report.Info("%s", w.progress(left))
		case s := <-signals:
			if s == syscall.SIGINT && timeout == nil {
				interrupt(s)
				timeout = time.After(patience)
			}
		case <-timeout: // for example, a file system does not answer
			return nil
		case d := <-ended:
			if d == nil {
				w.reportEnd(left, report)
			}
			return d
		}
	}
}

// progress returns the message while something is being done.
func (w *Work) progress(left []*run) string {
	if done, total := marked(left); done < total {
		return w.Trf("marked %d of %d; ^C ends without the rest", done, total)
	}
	for _, r := range left {
		select {
		case <-r.ended:
		default:
			if r.label != "" {
				return w.Trf("%s; ^C ends without it", r.label)
			}
		}
	}
	return w.Trf("%s; ^C ends without it", w.Tr("changing a subscription"))
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
