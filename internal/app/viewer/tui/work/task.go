package work

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

// Task is work in the background that may take minutes, for example a download. The last line
// shows its progress.
type Task struct {
	part.Task
	Progress string

	run
	label string // name in the user's language
	done  string // message for the user after the end
}

// Tasks are the running tasks. Only the UI goroutine uses them.
type Tasks struct {
	Env  *Env
	list []*Task
}

// progressEvery is the least time between two messages about the progress of a task.
const progressEvery = 100 * time.Millisecond

// Begin begins a task in a goroutine. Its Await is the command that brings its end. Do reports its
// progress, as often as it likes. It must return when its ctx ends; the reader waits for this when it ends.
func (ts *Tasks) Begin(e part.Task) *Task {
	t := &Task{Task: e, label: ts.Env.Tr(e.Name)}
	ts.list = append(ts.list, t)
	t.begin(func() (err error) {
		var mu sync.Mutex
		var last time.Time
		sending := false
		t.done, err = t.Do(ts.Env.Ctx, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if sending || now.Sub(last) < progressEvery {
				return
			}
			sending, last = true, now
			// In a goroutine, as it waits while a command has the terminal.
			go func() {
				ts.Env.Send(t.progressed(text))
				mu.Lock()
				defer mu.Unlock()
				sending = false
			}()
		})
		return err
	}, func() part.Effects { return ts.take(t) })
	return t
}

// progressed returns the message about the progress of a task.
func (t *Task) progressed(text string) part.Then {
	return func() part.Effects {
		t.Progress = text
		return nil
	}
}

// take returns the effects of a task that ended.
func (ts *Tasks) take(t *Task) part.Effects {
	ts.list = slices.DeleteFunc(ts.list, func(other *Task) bool { return other == t })
	switch {
	case t.Then != nil:
		return t.Then(t.err)
	case t.err != nil:
		return part.Effects{part.Say{Text: t.err.Error(), Bad: true}}
	}
	return part.Effects{part.Say{Text: t.done}}
}

// patience is how long the reader waits for tasks at its end, after they were asked to end.
const patience = 2 * time.Second

// Wait waits for the end of the running tasks, whose ctx has ended, but no longer than two seconds.
func (ts *Tasks) Wait() {
	timeout := time.After(patience)
	for _, t := range ts.list {
		select {
		case <-t.ended:
		case <-timeout:
			return
		}
	}
}

// Len returns the number of running tasks.
func (ts *Tasks) Len() int { return len(ts.list) }

// Of returns the running tasks of a name.
func (ts *Tasks) Of(name string) []*Task {
	return slices.DeleteFunc(slices.Clone(ts.list), func(t *Task) bool { return t.Name != name })
}

// Progress returns the progress of all tasks, for the last line.
func (ts *Tasks) Progress() string {
	var all []string
	for _, t := range ts.list {
		all = append(all, strings.TrimSpace(t.label+" "+t.Progress))
	}
	return strings.Join(all, ", ")
}
