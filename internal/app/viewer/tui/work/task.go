package work

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

// Task is work in the background that may take minutes, for example a download. The last line
// shows its progress.
type Task struct {
	Finish   bool                         // the reader does not end before it, but by ^C
	Then     func(err error) part.Effects // called at its end, if not nil; no message is shown then
	Progress string

	name  string
	label string        // name in the user's language
	ended chan struct{} // closed at the end
	msg   tea.Msg       // at the end: a TaskMsg, or a defect
}

// TaskMsg reports the progress or the end of a task.
type TaskMsg struct {
	Task     *Task
	Progress string
	Ended    bool
	Done     string // message for the user after the end
	Err      error
}

// Await waits for the end of the task, and returns its message.
func (t *Task) Await() tea.Msg {
	<-t.ended
	return t.msg
}

// Tasks are the running tasks. Only the UI goroutine uses them.
type Tasks struct {
	Env  *Env
	list []*Task
}

// progressEvery is the least time between two messages about the progress of a task.
const progressEvery = 100 * time.Millisecond

// Begin begins a task in a goroutine. Its Await is the command that brings its end. The function f reports its
// progress, as often as it likes, and returns a message for the user. It must return when its ctx ends; the reader
// waits for this when it ends.
func (ts *Tasks) Begin(name string, f func(ctx context.Context, progress func(string)) (done string, err error)) *Task {
	t := &Task{name: name, label: ts.Env.Tr(name), ended: make(chan struct{})}
	ts.list = append(ts.list, t)
	run := part.Guarded(func() tea.Msg {
		var mu sync.Mutex
		var last time.Time
		sending := false
		done, err := f(ts.Env.Ctx, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if sending || now.Sub(last) < progressEvery {
				return
			}
			sending, last = true, now
			// In a goroutine, as it waits while a command has the terminal.
			go func() {
				ts.Env.Send(TaskMsg{Task: t, Progress: text})
				mu.Lock()
				defer mu.Unlock()
				sending = false
			}()
		})
		return TaskMsg{Task: t, Ended: true, Done: done, Err: err}
	})
	go func() {
		defer close(t.ended)
		t.msg = run()
	}()
	return t
}

// Take records the progress or the end of a task.
func (ts *Tasks) Take(msg TaskMsg) {
	if msg.Task.Progress = msg.Progress; msg.Ended {
		ts.list = slices.DeleteFunc(ts.list, func(other *Task) bool { return other == msg.Task })
	}
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
	return slices.DeleteFunc(slices.Clone(ts.list), func(t *Task) bool { return t.name != name })
}

// Progress returns the progress of all tasks, for the last line.
func (ts *Tasks) Progress() string {
	var all []string
	for _, t := range ts.list {
		all = append(all, strings.TrimSpace(t.label+" "+t.Progress))
	}
	return strings.Join(all, ", ")
}
