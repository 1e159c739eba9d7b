package prompt

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Line is a line that the user types.
type Line struct {
	part.Ask
	Text []rune
	At   int // the cursor

	lines      []string // the history, and the line that is being typed
	line       int      // the one that is shown
	candidates []cmdline.Candidate
	chosen     int    // the candidate in the line
	from       int    // the byte at which the word that is completed begins
	rest       []rune // the text after it
}

// maxTyped is the maximum number of characters in a line.
const maxTyped = 1000

// Type handles a key in the line.
func (p *Prompt) Type(name, text string) part.Effects {
	l := p.Line
	switch name {
	case "<enter>":
		p.Line = nil
		return l.Then(string(l.Text))
	case "<esc>":
		p.Line = nil
		if l.Cancel != nil {
			return l.Cancel()
		}
		return nil
	}
	if l.Words != nil {
		if e, ok := p.complete(name); ok {
			return e
		}
	}
	e := p.edit(func() { l.edit(name, text) })
	if l.Ready != nil && l.Ready(string(l.Text)) {
		return append(e, p.Type("<enter>", "")...)
	}
	return e
}

// Paste inserts pasted text into the line. Without a line it is ignored, never taken for
// keys.
func (p *Prompt) Paste(text string) part.Effects {
	if p.Line == nil {
		return nil
	}
	return p.edit(func() { p.Line.insert(strings.TrimSpace(text)) })
}

// edit changes the text of the line.
func (p *Prompt) edit(change func()) part.Effects {
	l := p.Line
	before := string(l.Text)
	change()
	if text := string(l.Text); text != before && l.Typing != nil {
		return l.Typing(text)
	}
	return nil
}

// edit changes the text by a key.
func (l *Line) edit(name, text string) {
	switch name {
	case "<backspace>", "<C-h>":
		l.cut(l.At-1, l.At)
	case "<delete>", "<C-d>":
		l.cut(l.At, l.At+1)
	case "<left>", "<C-b>":
		l.At = max(0, l.At-1)
	case "<right>", "<C-f>":
		l.At = min(len(l.Text), l.At+1)
	case "<home>", "<C-a>":
		l.At = 0
	case "<end>", "<C-e>":
		l.At = len(l.Text)
	case "<C-u>":
		l.cut(0, l.At)
	case "<C-k>":
		l.cut(l.At, len(l.Text))
	case "<C-w>":
		before := strings.TrimRightFunc(string(l.Text[:l.At]), unicode.IsSpace)
		l.cut(len([]rune(before[:strings.LastIndexFunc(before, unicode.IsSpace)+1])), l.At)
	default:
		l.insert(text)
	}
}

// cut removes characters from index from up to to, and moves the cursor there.
func (l *Line) cut(from, to int) {
	from, to = max(0, from), min(to, len(l.Text))
	l.Text = slices.Delete(l.Text, from, to)
	l.At = from
}

// insert inserts text at the cursor.
func (l *Line) insert(text string) {
	typed := []rune(cells.Plain(text))
	if text == " " {
		typed = []rune(text)
	}
	typed = typed[:min(len(typed), max(0, maxTyped-len(l.Text)))]
	l.Text = slices.Insert(l.Text, l.At, typed...)
	l.At += len(typed)
}

// complete handles the keys that complete the line, or show another of the history.
func (p *Prompt) complete(name string) (e part.Effects, ok bool) {
	l := p.Line
	by := map[string]int{"<tab>": 1, "<S-tab>": -1}[name]
	if by == 0 {
		l.candidates = nil
	}
	back := map[string]int{"<up>": -1, "<down>": 1}[name]
	switch {
	case by != 0 && len(l.candidates) > 0:
		l.take(cells.Wrap(l.chosen+by, len(l.candidates)))
	case by != 0:
		return p.find(), true
	case back != 0 && l.Commands != nil:
		l.lines[l.line] = string(l.Text)
		l.line = max(0, min(l.line+back, len(l.lines)-1))
		l.Text = []rune(l.lines[l.line])
		l.At = len(l.Text)
	}
	return nil, by != 0 || back != 0
}

// Remember adds a line to the history.
func (p *Prompt) Remember(text string) {
	if h := p.history; len(h) == 0 || h[len(h)-1] != text {
		p.history = append(h, text)
	}
}

// take puts candidate i into the line.
func (l *Line) take(i int) {
	l.chosen = i
	word := []rune(l.candidates[i].Word)
	l.Text, l.At = slices.Concat(word, l.rest), len(word)
}

// find completes the line up to the cursor. Candidates of commands may come from the disk.
func (p *Prompt) find() part.Effects {
	l, line := p.Line, string(p.Line.Text[:p.Line.At])
	var all []cmdline.Candidate
	for _, word := range l.Words(line) {
		if strings.HasPrefix(word, line) {
			all = append(all, cmdline.Candidate{Word: word})
		}
	}
	return part.Effects{part.Run(func() tea.Msg {
		if l.Commands != nil {
			all = append(all, l.Commands(line)...)
		}
		slices.SortStableFunc(all, func(a, b cmdline.Candidate) int { return strings.Compare(a.Word, b.Word) })
		all = slices.CompactFunc(all, func(a, b cmdline.Candidate) bool {
			return strings.TrimSpace(a.Word) == strings.TrimSpace(b.Word)
		})
		return part.Then(func() part.Effects {
			if p.Line == l && string(l.Text[:l.At]) == line && len(all) > 0 {
				l.candidates, l.from, l.rest = all, cmdline.LastWord(line), slices.Clone(l.Text[l.At:])
				l.take(0)
			}
			return nil
		})
	})}
}

// Shown returns the line with the end of the text that fits width columns, and the column of
// the cursor.
func (l *Line) Shown(width int) (text string, cursor int) {
	label := termsafe.Width(l.Label)
	from := 0
	for from < l.At && termsafe.Width(string(l.Text[from:l.At])) >= width-label {
		from++
	}
	return l.Label + string(l.Text[from:]), label + termsafe.Width(string(l.Text[from:l.At]))
}

// Others returns the candidates that follow the one in the line, without what they share.
func (l *Line) Others() (names []string) {
	for i := 1; i < len(l.candidates); i++ {
		names = append(names,
			strings.TrimSpace(l.candidates[cells.Wrap(l.chosen+i, len(l.candidates))].Word[l.from:]))
	}
	return names
}
