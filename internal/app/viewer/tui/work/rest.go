package work

import (
	"os"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// rest is what the user has requested and the screen does not know to be done when it has gone.
type rest struct {
	*Env
	report  *cmdline.Reporter
	runs    []*run
	changes []*Change
	tasks   []*Task // that have to be finished
}

// rest returns what is left.
func (w *Work) rest(report *cmdline.Reporter) *rest {
	r := &rest{Env: w.Env, report: report}
	for _, c := range w.changes {
		if !c.made {
			r.changes, r.runs = append(r.changes, c), append(r.runs, &c.run)
		}
	}
	for _, t := range w.Tasks.list {
		if t.Finish {
			r.tasks, r.runs = append(r.tasks, t), append(r.runs, &t.run)
		}
	}
	return r
}

// reportEvery is the time between two reports of what is left.
const reportEvery = time.Second

// Drain waits for the end of what the user has requested, after the screen has gone. It reports progress if that takes
// long, and failures. At the first ^C among signals it calls interrupt, which must end Ctx. It returns a defect that
// ended work, else nil.
func (w *Work) Drain(report *cmdline.Reporter, signals <-chan os.Signal, interrupt func(os.Signal)) *part.Defect {
	r := w.rest(report)
	ended := make(chan *part.Defect, 1)
	go func() {
		var first *part.Defect
		for _, run := range r.runs {
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
			report.Info("%s", r.progress())
		case s := <-signals:
			if s == syscall.SIGINT && timeout == nil {
				interrupt(s)
				timeout = time.After(patience)
			}
		case <-timeout: // for example, a file system does not answer
			return nil
		case d := <-ended:
			if d == nil {
				r.reportEnd()
			}
			return d
		}
	}
}

// progress returns the message while something is being done.
func (r *rest) progress() string {
	if done, total := r.marked(); done < total {
		return r.Trf("marked %d of %d; ^C ends without the rest", done, total)
	}
	for _, t := range r.tasks {
		select {
		case <-t.ended:
		default:
			return r.Trf("%s; ^C ends without it", t.label)
		}
	}
	return r.Trf("%s; ^C ends without it", r.Tr("changing a subscription"))
}

// marked returns how many entries are done, and how many there are.
func (r *rest) marked() (done, total int) {
	for _, c := range r.changes {
		done += int(c.marked.Load())
		total += len(c.refs)
	}
	return done, total
}

// reportEnd reports how many entries were marked if ^C ended that, else the failures.
func (r *rest) reportEnd() {
	if r.Ctx.Err() != nil {
		if done, total := r.marked(); done < total {
			r.report.Error("%s", r.Trf("marked %d of %d", done, total))
		}
		return
	}
	for _, run := range r.runs {
		if run.err != nil {
			r.report.Print(run.err)
		}
	}
}
