package work

import (
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

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
