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
	w := New(env)
	var made strings.Builder
	hold := make(chan struct{})
	for i, err := range []error{nil, errors.New("failed"), nil} {
		w.Add(func() (Result, error) {
			<-hold
			made.WriteByte("abc"[i])
			return Result{}, err
		}, nil)
	}
	var messages strings.Builder
	report := cmdline.NewStreams("lektor-view", nil, io.Discard, &messages).Report
	go close(hold)
	if d := w.Drain(t.Context(), report, nil); d != nil || made.String() != "abc" || messages.String() != "lektor-view: failed\n" {
		t.Errorf("made %q, defect %v, messages %q", &made, d, &messages)
	}
	w.Add(func() (Result, error) { panic("broken") }, nil)
	w.Add(func() (Result, error) { return Result{Message: "after it"}, nil }, nil)
	if d := w.Drain(t.Context(), report, nil); d == nil || !strings.Contains(d.Error(), "broken") {
		t.Errorf("defect %v", d)
	}
	if w.last.Await(); w.last.result.Message != "after it" {
		t.Errorf("%+v", w.last.result)
	}
	if _, ok := w.changes[3].Await().(*part.Defect); !ok {
		t.Error("no defect")
	}
}
