package tui

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// task is work in the background that may take minutes, for example a download. The last line
// shows its progress.
type task struct {
	name     string
	label    string // name in the user's language
	progress string
	finish   bool                              // the reader does not end before it, but by ^C
	then     func(m *model, err error) tea.Cmd // called at its end, if not nil; no message is shown then
	ended    chan struct{}                     // closed at the end
	msg      tea.Msg                           // at the end
}

// await waits for the end of the task, and returns its message.
func (t *task) await() tea.Msg {
	<-t.ended
	return t.msg
}

// taskMsg reports the progress or the end of a task.
type taskMsg struct {
	task     *task
	progress string
	ended    bool
	done     string // message for the user after the end
	err      error
}

// tasks are the running tasks. Only the UI goroutine uses them.
type tasks []*task

// begin begins a task in a goroutine. Its await is the command that brings its end. The function f reports its
// progress, as often as it likes, and returns a message for the user. It must return when its ctx ends; the reader
// waits for this when it ends.
func (ts *tasks) begin(w *world, name string, f func(ctx context.Context, progress func(string)) (done string,
	err error)) *task {
	t := &task{name: name, label: w.Tr(name), ended: make(chan struct{})}
	*ts = append(*ts, t)
	ctx, send := w.ctx, w.send
	run := guarded(func() tea.Msg {
		var mu sync.Mutex
		var last time.Time
		sending := false
		done, err := f(ctx, func(text string) {
			mu.Lock()
			defer mu.Unlock()
			now := time.Now()
			if sending || now.Sub(last) < pause {
				return
			}
			sending, last = true, now
			// In a goroutine, as it waits while a command has the terminal.
			go func() {
				send(taskMsg{task: t, progress: text})
				mu.Lock()
				defer mu.Unlock()
				sending = false
			}()
		})
		return taskMsg{task: t, ended: true, done: done, err: err}
	})
	go func() {
		defer close(t.ended)
		t.msg = run()
	}()
	return t
}

// wait waits for the end of the running tasks, whose ctx has ended, but no longer than patience.
func (ts tasks) wait() {
	timeout := time.After(patience)
	for _, t := range ts {
		select {
		case <-t.ended:
		case <-timeout:
			return
		}
	}
}

// takeTask handles the progress or the end of a task. At the end it shows the message for the user, if
// there is one.
func takeTask(m *model, msg taskMsg) tea.Cmd {
	t := msg.task
	if !msg.ended {
		t.progress = msg.progress
		return nil
	}
	m.tasks = slices.DeleteFunc(m.tasks, func(other *task) bool { return other == t })
	switch {
	case t.then != nil:
		return t.then(m, msg.err)
	case msg.err != nil:
		m.status = status{msg.err.Error(), true}
	default:
		m.status.end(status{msg.done, false})
	}
	return nil
}

// of returns the running task of a name, nil if there is none.
func (ts tasks) of(name string) *task {
	if i := slices.IndexFunc(ts, func(t *task) bool { return t.name == name }); i >= 0 {
		return ts[i]
	}
	return nil
}

// progress returns the progress of all tasks, for the last line.
func (ts tasks) progress() string {
	var all []string
	for _, t := range ts {
		all = append(all, strings.TrimSpace(t.label+" "+t.progress))
	}
	return strings.Join(all, ", ")
}
