package work

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// Changes are made in their order, whether or not anybody waits for them. One that panics ends the reader, and those
// after it are made. What is left reports the failures.
func TestOrder(t *testing.T) {
	env := &Env{Env: &part.Env{Ctx: t.Context(), Printer: texts.New(func(string) string { return "" })}}
	q, ts := &Queue{Env: env}, &Tasks{Env: env}
	var made strings.Builder
	hold := make(chan struct{})
	for i, err := range []error{nil, errors.New("failed"), nil} {
		q.Add(func() Result {
			<-hold
			made.WriteByte("abc"[i])
			return Result{Err: err}
		}, nil)
	}
	var messages strings.Builder
	rest := NewRest(q, ts, cmdline.NewStreams("lektor-view", nil, io.Discard, &messages).Report)
	close(hold)
	if d := rest.Drain(nil, nil); d != nil || made.String() != "abc" || messages.String() != "lektor-view: failed\n" {
		t.Errorf("made %q, defect %v, messages %q", &made, d, &messages)
	}
	q.Add(func() Result { panic("broken") }, nil)
	q.Add(func() Result { return Result{Message: "after it"} }, nil)
	if d := NewRest(q, ts, rest.Report).Drain(nil, nil); d == nil || !strings.Contains(d.Error(), "broken") {
		t.Errorf("defect %v", d)
	}
	if e := q.last.await().(Ended); e.Message != "after it" {
		t.Errorf("%+v", e)
	}
	if _, ok := q.changes[3].await().(*part.Defect); !ok {
		t.Error("no defect")
	}
}
