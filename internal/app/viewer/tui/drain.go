package tui

import (
	"slices"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
)

// leftover is what the user requested and the screen does not know to be done.
type leftover struct {
	*world
	changes []*change
	tasks   []*task // that have to be finished
}

// leftover returns what is left to do when the screen has gone.
func (m *model) leftover() *leftover {
	return &leftover{
		&m.world,
		slices.DeleteFunc(slices.Clone(m.marks.changes), func(c *change) bool { return c.made }),
		slices.DeleteFunc(slices.Clone(m.tasks), func(t *task) bool { return !t.finish }),
	}
}

// reportEvery is the time between two reports of what is left.
const reportEvery = time.Second

// drain waits for the end of what is left. It reports progress if that takes long, and failures. ^C calls cancel,
// which ends that. It returns a defect that ended it, else nil.
func (l *leftover) drain(cancel func()) *defect {
	ended := make(chan *defect, 1)
	go func() {
		var first *defect
		for _, msg := range l.ends() {
			if d, ok := msg.(*defect); ok && first == nil {
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
			l.o.Report.Info("%s", l.progress())
		case s := <-l.terminal.signals:
			if s == syscall.SIGINT && timeout == nil {
				l.terminal.endedBy.Store(s)
				cancel()
				timeout = time.After(patience)
			}
		case <-timeout: // for example, a file system does not answer
			return nil
		case d := <-ended:
			if d == nil {
				l.reportEnd()
			}
			return d
		}
	}
}

// ends waits for the ends, and returns their messages.
func (l *leftover) ends() (msgs []tea.Msg) {
	for _, c := range l.changes {
		msgs = append(msgs, c.await())
	}
	for _, t := range l.tasks {
		msgs = append(msgs, t.await())
	}
	return msgs
}

// progress returns the message while something is being done.
func (l *leftover) progress() string {
	if done, total := l.marked(); done < total {
		return l.Trf("marked %d of %d; ^C ends without the rest", done, total)
	}
	for _, t := range l.tasks {
		select {
		case <-t.ended:
		default:
			return l.Trf("%s; ^C ends without it", t.label)
		}
	}
	return l.Trf("%s; ^C ends without it", l.Tr("changing a subscription"))
}

// marked returns how many entries are done, and how many there are.
func (l *leftover) marked() (done, total int) {
	for _, c := range l.changes {
		done += int(c.marked.Load())
		total += len(c.refs)
	}
	return done, total
}

// reportEnd reports how many entries were marked if ^C ended that, else the failures.
func (l *leftover) reportEnd() {
	if l.ctx.Err() != nil {
		if done, total := l.marked(); done < total {
			l.o.Report.Error("%s", l.Trf("marked %d of %d", done, total))
		}
		return
	}
	for _, msg := range l.ends() {
		var err error
		switch msg := msg.(type) {
		case changeMsg:
			err = msg.err
		case taskMsg:
			err = msg.err
		}
		if err != nil {
			l.o.Report.Print(err)
		}
	}
}
