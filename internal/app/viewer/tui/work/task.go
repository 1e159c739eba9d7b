package work

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

// Task is work in the background that may take minutes, for example a download. The last line
// shows its progress.
type Task struct {
	part.Task
	run
	progress atomic.Value // the text of the last progress
	done     string       // message for the user after the end
}

// Progress returns the text of the last progress.
func (t *Task) Progress() string {
	text, _ := t.progress.Load().(string)
	return text
}

// Tasks are the running tasks. Only the UI goroutine uses them.
type Tasks struct {
	Env  *Env
	list []*Task
}

// progressEvery is the time between two looks at the progress of a task.
const progressEvery = 100 * time.Millisecond

// Begin begins a task in a goroutine. The effects bring its progress and its end. Do must return when its ctx ends; the
// reader waits for this when it ends.
func (ts *Tasks) Begin(e part.Task) (*Task, part.Effects) {
	t := &Task{Task: e}
	t.label = ts.Env.Tr(e.Name)
	ts.list = append(ts.list, t)
	t.begin(func() (err error) {
		t.done, err = t.Do(ts.Env.Ctx, func(text string) { t.progress.Store(text) })
		return err
	}, func() part.Effects { return ts.take(t) })
	return t, append(ts.look(t), part.Run(t.Await))
}

// look returns the effects that show the progress of a task until it ends.
func (ts *Tasks) look(t *Task) part.Effects {
	if !slices.Contains(ts.list, t) {
		return nil
	}
	return part.Effects{part.Run(ts.Env.After(progressEvery, part.Then(func() part.Effects { return ts.look(t) })))}
}

// take returns the effects of a task that ended.
func (ts *Tasks) take(t *Task) part.Effects {
	ts.list = slices.DeleteFunc(ts.list, func(other *Task) bool { return other == t })
	if t.Then != nil {
		return t.Then(t.err)
	}
	return ts.Env.Result(t.done, t.err)
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

// Of returns the running tasks of a name.
func (ts *Tasks) Of(name string) []*Task {
	return slices.DeleteFunc(slices.Clone(ts.list), func(t *Task) bool { return t.Name != name })
}

// Progress returns the progress of all tasks, for the last line.
func (ts *Tasks) Progress() string {
	var all []string
	for _, t := range ts.list {
		if text := strings.TrimSpace(t.label + " " + t.Progress()); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

// run is work in a goroutine, whether or not the loop of the screen runs.
type run struct {
	label  string        // its name in the user's language; "" if it is a change
	total  int           // number of entries that it marks
	marked atomic.Int64  // number of entries that it has marked
	ended  chan struct{} // closed at the end
	msg    tea.Msg       // at the end: a [part.Then], or a defect
	err    error         // at the end
}

// begin begins work, whose message at the end is then.
func (r *run) begin(do func() error, then part.Then) {
	r.ended = make(chan struct{})
	guarded := part.Guarded(func() tea.Msg {
		r.err = do()
		return then
	})
	go func() {
		defer close(r.ended)
		r.msg = guarded()
	}()
}

// Await waits for the end of the work, and returns its message.
func (r *run) Await() tea.Msg {
	<-r.ended
	return r.msg
}
