package tui

import (
	"io"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// still is a model that shows nothing.
type still struct{}

func (still) Init() tea.Cmd                         { return nil }
func (s still) Update(tea.Msg) (tea.Model, tea.Cmd) { return s, nil }
func (still) View() tea.View                        { return tea.NewView("") }

// Without the clock, an idle reader would wake up to draw. If this test fails at its first tick, the library has
// learned to rest, and idle.go can go.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tea.NewProgram(still{}, tea.WithInput(nil), tea.WithOutput(io.Discard), tea.WithoutSignalHandler(),
			tea.WithFPS(framesPerSecond), tea.WithWindowSize(80, 24), tea.WithEnvironment([]string{"TERM=xterm"}))
		ended := make(chan error)
		go func() {
			_, err := p.Run()
			ended <- err
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		ticker := (*time.Ticker)(reflect.ValueOf(p).Elem().FieldByName("ticker").UnsafePointer())
		// The library takes ticks too, but not all of a minute.
		ticks := func() bool {
			select {
			case <-ticker.C:
				return true
			case <-time.After(time.Minute):
				return false
			}
		}
		if !ticks() {
			t.Fatal("the library does not tick")
		}
		c := newDrawClock(p)
		time.Sleep(time.Minute)
		if ticks() {
			t.Error("an idle reader wakes")
		}
		c.wake(true)
		if !ticks() {
			t.Error("a key is not drawn")
		}
		p.Quit()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
