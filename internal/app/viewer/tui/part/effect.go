// Package part is what all parts of the screen share.
package part

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/texts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Env is what parts share, and none of them changes.
type Env struct {
	Ctx context.Context // ends when the reader ends
	*texts.Printer
	Send func(tea.Msg) // from goroutines
	// After sends a message after a delay.
	After func(time.Duration, tea.Msg) tea.Cmd
	// KeyOf returns the keys of an action, for messages.
	KeyOf func(action string) string
}

// Effects are what a part asks of the others, in order. They are values of the types below. A part
// returns them at once, or sends them as a message of work in the background.
type Effects []any

type (
	// Say shows a message in the last line. Without a text, that of a later key stays.
	Say struct {
		Text string
		Bad  bool // it is an error
	}
	// Run is work in the background. Its message is Effects, or a Then.
	Run tea.Cmd
	// Then is a message that is called on the UI goroutine, after work in the background.
	Then func() Effects
	// List makes the list. If Again is set, it is the same list after a change, whose lines stay meanwhile.
	List struct{ Again bool }
	// Change sets and clears flags: on the screen at once, on the disk in the order of the keys. Then is
	// called after the disk has made the change; it may be nil.
	Change struct {
		Refs       []lektordir.Ref
		Set, Unset string
		Then       func(moved []lektordir.Ref) Effects
	}
	// Rescan reads feeds that have changed, by their hashes; "" stands for any.
	Rescan struct{ Feeds map[string]bool }
	// Do does an action.
	Do struct{ keys.Call }
	// Ask lets the user type a line.
	Ask struct {
		Label, Text string
		Then        func(text string) Effects
		Ready       func(text string) bool    // reports whether the text needs no Enter; nil if it always does
		Typing      func(text string) Effects // called after each change of the text; may be nil
		Cancel      func() Effects            // called for Esc; may be nil
		// Words returns lines that the line may become; it may be nil.
		Words func(line string) []string
		// Commands, if it is not nil, completes the line too, in another goroutine. <up> then shows the lines before.
		Commands func(line string) []cmdline.Candidate
		// Late is set if the question comes from the background. It is dropped if the user is typing another answer.
		Late bool
	}
	// Confirm asks a question that y answers with yes, and any other key with no.
	Confirm struct {
		Text string
		Yes  func() Effects
		Late bool // as of Ask
	}
	// Menu opens a menu, or closes the one that is open if Lines is nil.
	Menu struct{ *Lines }
	// Task is work with progress in the last line. Do returns a message for the user.
	Task struct {
		Name   string
		Do     func(ctx context.Context, progress func(string)) (done string, err error)
		Finish bool                    // the reader does not end before it, but by ^C
		Then   func(err error) Effects // called at its end; if nil, the message is shown
	}
	// Exec runs a command on the terminal. If Wait is set, the user presses Enter after it.
	Exec struct {
		Cmd  *exec.Cmd
		Name string
		Wait bool
		Then func() Effects // after its end, and after an error is shown; may be nil
	}
	// Download saves enclosures of an entry below a directory, "" for the remembered one.
	Download struct {
		Ref  lektordir.Ref
		URLs []string
		Dir  string
	}
)

// Lines are the lines of a menu, a list over the whole screen, for example the keys or the links of an entry.
type Lines struct {
	Title string
	Text  []string
	Hint  string // for the last line
	At, Y int    // the cursor, and the first line on the screen
	// Keys are actions of this menu by their keys; others have the keys of the user.
	Keys map[string]string
	Live func() []string // if not nil, it makes the lines anew for each scene
	// Choose does an action on the line of the cursor. It reports whether the action belongs to the menu; the
	// menu stays open unless it is closed by an effect. If it is nil, the lines are only text without a cursor.
	// If the menu is live, at can be beyond the last line, as keys may come faster than draws.
	Choose func(c keys.Call, at int) (e Effects, ok bool)
}

// Choice returns a menu of lines that open closes. Then do is called with the line of the cursor.
func Choice(title, hint string, lines []string, do func(at int) Effects) *Lines {
	return &Lines{Title: title, Hint: hint, Text: lines, Choose: func(c keys.Call, at int) (Effects, bool) {
		if c.Action != "open" {
			return nil, false
		}
		return append(Effects{Menu{}}, do(at)...), true
	}}
}

// Given is an action with what the parent has resolved for it.
type Given struct {
	keys.Call
	Ref  lektordir.Ref // the chosen entry, if the action needs one
	Feed string        // the hash of the chosen feed, if the action needs one
}

// Word returns the first word of the action, "" if it has none.
func (g Given) Word() string {
	if len(g.Words) == 0 {
		return ""
	}
	return g.Words[0]
}

// Ask lets the user type the word of the action, and then does the action with it.
func (g Given) Ask(a Ask) Effects {
	a.Then = func(text string) Effects { return Effects{Do{keys.Call{Action: g.Action, Words: []string{text}}}} }
	return Effects{a}
}

// Say returns the effect that shows a message.
func (e *Env) Say(format string, args ...any) Effects {
	return Effects{Say{Text: e.Trf(format, args...)}}
}

// HintMark is between an error and its hint, as between the messages of lektor-fetch.
const HintMark = "; hint: "

// Fail returns the effect that shows an error with its hint. There is none if the reader is ending.
func (e *Env) Fail(err error) Effects {
	if hint, ok := errors.AsType[*cmdline.HintError](err); ok {
		err = fmt.Errorf("%w%s%s", err, HintMark, hint.Hint)
	}
	if e.Ctx.Err() != nil {
		return nil
	}
	return Effects{Say{e.Tr(err.Error()), true}}
}

// Result returns the effects of work that has a message or an error.
func (e *Env) Result(message string, err error) Effects {
	if err != nil {
		return e.Fail(err)
	}
	return Effects{Say{Text: message}}
}

// Background returns the effect of work in the background that returns effects.
func Background(f func() Effects) Effects { return Effects{Run(func() tea.Msg { return f() })} }

// Key identifies an entry, whatever its flags are.
type Key = catalog.ID

// KeyOf returns the key of an entry.
func KeyOf(r lektordir.Ref) Key { return catalog.IDOf(r) }

// Defect is the message of a command that panicked.
type Defect struct{ *workers.Panic }

func (d *Defect) String() string { return termsafe.Clean(d.Error()) }

// Guarded returns cmd with a panic turned into a *[Defect] message, which ends the reader as if
// the user had quit. The library's own recovery closes the terminal while goroutines still read
// from it.
func Guarded(cmd tea.Cmd) tea.Cmd {
	if cmd == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = &Defect{workers.Caught(v)}
			}
		}()
		msg = cmd()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = Guarded(batch[i])
			}
		}
		return msg
	}
}

// InOrder returns a command that runs commands one after the other, each guarded.
func InOrder(cmds ...tea.Cmd) tea.Cmd {
	for i := range cmds {
		cmds[i] = Guarded(cmds[i])
	}
	return tea.Sequence(cmds...)
}
