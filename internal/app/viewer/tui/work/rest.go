package work

import (
	"os"
	"slices"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// Rest is what the user has requested and the screen does not know to be done when it has gone.
type Rest struct {
	*Env
	Report  *cmdline.Reporter
	changes []*Change
	tasks   []*Task // that have to be finished
}

// NewRest returns what is left of a queue and of tasks.
func NewRest(q *Queue, ts *Tasks, report *cmdline.Reporter) *Rest {
	return &Rest{
		q.Env, report,
		slices.DeleteFunc(slices.Clone(q.changes), func(c *Change) bool { return c.made }),
		slices.DeleteFunc(slices.Clone(ts.list), func(t *Task) bool { return !t.Finish }),
	}
}

// reportEvery is the time between two reports of what is left.
const reportEvery = time.Second

// Drain waits for the end of what is left. It reports progress if that takes long, and failures. At the first ^C
// among signals it calls interrupt, which must end Ctx. It returns a defect that ended work, else nil.
func (r *Rest) Drain(signals <-chan os.Signal, interrupt func(os.Signal)) *part.Defect {
	ended := make(chan *part.Defect, 1)
	go func() {
		var first *part.Defect
		for _, msg := range r.ends() {
			if d, ok := msg.(*part.Defect); ok && first == nil {
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
			r.Report.Info("%s", r.progress())
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

// ends waits for the ends, and returns their messages.
func (r *Rest) ends() (msgs []tea.Msg) {
	for _, c := range r.changes {
		msgs = append(msgs, c.await())
	}
	for _, t := range r.tasks {
		msgs = append(msgs, t.Await())
	}
	return msgs
}

// progress returns the message while something is being done.
func (r *Rest) progress() string {
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
func (r *Rest) marked() (done, total int) {
	for _, c := range r.changes {
		done += int(c.marked.Load())
		total += len(c.refs)
	}
	return done, total
}

// reportEnd reports how many entries were marked if ^C ended that, else the failures.
func (r *Rest) reportEnd() {
	if r.Ctx.Err() != nil {
		if done, total := r.marked(); done < total {
			r.Report.Error("%s", r.Trf("marked %d of %d", done, total))
		}
		return
	}
	for _, msg := range r.ends() {
		var err error
		switch msg := msg.(type) {
		case Ended:
			err = msg.Err
		case TaskMsg:
			err = msg.Err
		}
		if err != nil {
			r.Report.Print(err)
		}
	}
}
