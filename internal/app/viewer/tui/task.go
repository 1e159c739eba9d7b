package tui

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
)

// task is work in the background that may take minutes, for example a download. The last line
// shows its progress.
type task struct {
	name     string
	label    string // name in the user's language
	progress string
	began    atomic.Bool
	ended    chan struct{} // closed at the end
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

// begin returns the command that runs a task. The function f reports its progress, as often as
// it likes, and returns a message for the user. It must return when its ctx ends; the reader
// waits for this when it ends.
func (ts *tasks) begin(w *world, name string, f func(ctx context.Context, progress func(string)) (done string, err error)) tea.Cmd {
	t := &task{name: name, label: w.tr(name), ended: make(chan struct{})}
	*ts = append(*ts, t)
	ctx, send := w.ctx, w.send
	return func() tea.Msg {
		t.began.Store(true)
		defer close(t.ended)
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
	}
}

// runTask returns the command that runs a task. Its end calls then, and shows no message.
func runTask(m *model, name string, f func(ctx context.Context, progress func(string)) error, then func(m *model, err error) tea.Cmd) tea.Cmd {
	run := m.tasks.begin(&m.world, name, func(ctx context.Context, progress func(string)) (string, error) {
		return "", f(ctx, progress)
	})
	return func() tea.Msg {
		msg := run().(taskMsg) // as begin returns
		return thenMsg(func(m *model) tea.Cmd {
			m.tasks.take(msg)
			return then(m, msg.err)
		})
	}
}

// wait waits for the end of the running tasks, whose ctx has ended, but no longer than patience.
func (ts tasks) wait() {
	timeout := time.After(patience)
	for _, t := range ts {
		if !t.began.Load() {
			continue
		}
		select {
		case <-t.ended:
		case <-timeout:
			return
		}
	}
}

// take handles the progress or the end of a task. At the end it returns the message for the user,
// if there is one.
func (ts *tasks) take(msg taskMsg) status {
	if !msg.ended {
		msg.task.progress = msg.progress
		return status{}
	}
	*ts = slices.DeleteFunc(*ts, func(t *task) bool { return t == msg.task })
	if msg.err != nil {
		return status{msg.err.Error(), true}
	}
	return status{msg.done, false}
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
