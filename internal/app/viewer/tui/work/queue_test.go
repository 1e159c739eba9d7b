package work

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// Changes are made in their order, whether or not anybody waits for them. One that panics ends the reader, and those
// after it are made. What is left reports the failures.
func TestOrder(t *testing.T) {
	env := &Env{Env: &part.Env{Ctx: t.Context(), Printer: texts.New(func(string) string { return "" })}}
	w := New(env)
	var made strings.Builder
	hold := make(chan struct{})
	for i, err := range []error{nil, errors.New("failed"), nil} {
		w.Add(func() (string, []lektordir.Ref, error) {
			<-hold
			made.WriteByte("abc"[i])
			return "", nil, err
		}, nil)
	}
	var messages strings.Builder
	report := cmdline.NewStreams("lektor-view", nil, io.Discard, &messages).Report
	go close(hold)
	if d := w.Drain(t.Context(), report, nil); d != nil || made.String() != "abc" || messages.String() != "lektor-view: failed\n" {
		t.Errorf("made %q, defect %v, messages %q", &made, d, &messages)
	}
	w.Add(func() (string, []lektordir.Ref, error) { panic("broken") }, nil)
	w.Add(func() (string, []lektordir.Ref, error) { return "after it", nil, nil }, nil)
	if d := w.Drain(t.Context(), report, nil); d == nil || !strings.Contains(d.Error(), "broken") {
		t.Errorf("defect %v", d)
	}
	last := w.changes[len(w.changes)-1]
	if last.Await(); last.message != "after it" {
		t.Errorf("%q", last.message)
	}
	if _, ok := w.changes[3].Await().(*part.Defect); !ok {
		t.Error("no defect")
	}
}
