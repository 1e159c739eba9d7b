// Package prompt is what the user is typing or choosing: a line, the answer to a question, or a line of a menu.
package prompt

import (
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
)

// Prompt holds the overlays of the screen. At most one of Line, Question and Menu has the keys, in this order.
type Prompt struct {
	*part.Env
	// Size returns the columns of the screen, and the lines between the first and the last.
	Size func() (width, height int)

	Line     *Line         // nil if the user types none
	Question *part.Confirm // nil if there is none
	Menu     *part.Lines   // nil if none is open
	Messages []string      // of the last line and of fetches, newest first

	history []string // lines of the command line
	burst   *byte    // the burst whose keys do nothing; nil if keys act
}

// Open reports whether a line, a question or a menu is open.
func (p *Prompt) Open() bool { return p.Answers() || p.Menu != nil }

// Answers reports whether the reader waits for an answer of the user.
func (p *Prompt) Answers() bool { return p.Line != nil || p.Question != nil }

// Clear closes all that is open.
func (p *Prompt) Clear() { p.Line, p.Question, p.Menu, p.burst = nil, nil, nil, nil }

// Ask lets the user type a line, unless the question is late and the user types another.
func (p *Prompt) Ask(a part.Ask) {
	if !a.Late || !p.Answers() {
		trimmed := strings.TrimRight(a.Label, " ")
		a.Label = p.Tr(trimmed) + a.Label[len(trimmed):]
		p.Line = &Line{Ask: a, Text: []rune(a.Text), At: len([]rune(a.Text)),
			lines: append(slices.Clone(p.history), ""), line: len(p.history)}
	}
}

// Confirm asks a question, unless it is late and the user answers another.
func (p *Prompt) Confirm(q part.Confirm) part.Effects {
	switch {
	case !q.Late:
		p.Question = &q
	case !p.Answers():
		p.Question = &q
		return p.Quiet() // it comes while the user may type
	}
	return nil
}

// Answer takes a key as the answer to the question.
func (p *Prompt) Answer(name string) part.Effects {
	q := p.Question
	p.Question = nil
	switch name {
	case "y":
		return q.Yes()
	case "n":
		return nil
	}
	return p.Quiet()
}

// maxMessages is the maximum number of messages to show again.
const maxMessages = 200

// Keep keeps messages to show again, each once in a row.
func (p *Prompt) Keep(messages ...string) {
	all := slices.Compact(slices.Concat(messages, p.Messages))
	p.Messages = all[:min(maxMessages, len(all))]
}

// ShowMessages shows the messages of the last line, and those of fetches, as a whole.
func (p *Prompt) ShowMessages(part.Given) part.Effects {
	if len(p.Messages) == 0 {
		return p.Say("there were no messages")
	}
	p.ShowText(p.Tr("messages, the newest first"), p.Messages)
	return nil
}

// ShowText opens a menu of a text, without a cursor.
func (p *Prompt) ShowText(title string, text []string) {
	n := &part.Lines{Title: title, Hint: "keys that move scroll, any other key closes this"}
	width, _ := p.Size()
	for _, line := range text {
		n.Text = append(n.Text, cells.BreakLines(line, max(10, width-2))...)
	}
	p.Menu = n
}

// burstPause is the time between two keys from which on they are no burst: longer than between those
// of one write, and shorter than anyone needs to see the screen and press a key.
const burstPause = 20 * time.Millisecond

// Quiet ignores the keys that follow a key, until none comes for burstPause. They were typed
// before the user saw an overlay close, or a question, and may do harm without it.
func (p *Prompt) Quiet() part.Effects {
	b := new(byte)
	p.burst = b
	return part.Effects{part.Run(p.After(burstPause, part.Then(func() part.Effects {
		if p.burst == b {
			p.burst = nil
		}
		return nil
	})))}
}

// IsQuiet reports whether keys are ignored.
func (p *Prompt) IsQuiet() bool { return p.burst != nil }

// Listen ends that keys are ignored.
func (p *Prompt) Listen() { p.burst = nil }

// moves returns the number of lines by which an action moves in a menu, 0 if it does not move.
func moves(c keys.Call, lines, height int) int {
	count, page := max(c.Count, 1), height-1
	return map[string]int{"down": count, "scroll-down": count, "up": -count, "scroll-up": -count,
		"page-down": page, "forward": page, "half-down": page, "page-up": -page, "half-up": -page,
		"top": -lines, "bottom": lines}[c.Action]
}

// MenuKey does an action in the menu that is open. Actions that do not belong to the menu close it.
func (p *Prompt) MenuKey(c keys.Call) part.Effects {
	n := p.Menu
	_, height := p.Size()
	by := moves(c, len(n.Text), height)
	switch {
	case by != 0 && n.Choose == nil:
		n.Y = max(0, min(n.Y+by, len(n.Text)-height))
		return nil
	case by != 0:
		n.At = max(0, min(n.At+by, len(n.Text)-1))
		return nil
	case n.Choose != nil && (n.At < len(n.Text) || n.Live != nil):
		if e, ok := n.Choose(c, n.At); ok {
			return e
		}
	}
	p.Menu = nil
	return p.Quiet()
}
