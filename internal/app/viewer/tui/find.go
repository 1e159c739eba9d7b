package tui

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// finder is a search in the text of the open entry.
type finder struct {
	text    string  // folded; "" if there is no search
	matches []match // in the order of the text
	at      int     // the match that the cursor is on
}

// match is an occurrence of the text of a search in a line, from byte from up to byte to.
type match struct{ line, from, to int }

// find finds all matches in lines. A match lies in one line.
func (f *finder) find(lines []string) {
	f.matches = nil
	if f.text == "" {
		return
	}
	for i, line := range lines {
		if strings.Contains(query.Fold(line), f.text) {
			for _, m := range matchesIn(line, f.text) {
				f.matches = append(f.matches, match{i, m[0], m[1]})
			}
		}
	}
	f.at = max(0, min(f.at, len(f.matches)-1))
}

// matchesIn returns the bytes from and to of each occurrence of a folded text in a line. The line
// is folded one character at a time, so that each folded byte has an origin.
func matchesIn(line, text string) (found [][2]int) {
	var folded strings.Builder
	var origin []int // of each byte of folded
	for i, r := range line {
		piece := query.Fold(string(r))
		if piece == " " && strings.HasSuffix(folded.String(), " ") {
			continue
		}
		folded.WriteString(piece)
		for range len(piece) {
			origin = append(origin, i)
		}
	}
	s := folded.String()
	for at := 0; ; {
		i := strings.Index(s[at:], text)
		if i < 0 {
			return found
		}
		from, last := origin[at+i], origin[at+i+len(text)-1]
		_, n := utf8.DecodeRuneInString(line[last:])
		found = append(found, [2]int{from, last + n})
		at += i + len(text)
	}
}

// on returns the matches in a line, and the index among them of the match that the cursor is on,
// -1 if it is in another line.
func (f *finder) on(line int) (matches []match, at int) {
	from, _ := slices.BinarySearchFunc(f.matches, line, func(m match, line int) int { return m.line - line })
	to := from
	for to < len(f.matches) && f.matches[to].line == line {
		to++
	}
	if at = -1; f.at >= from && f.at < to {
		at = f.at - from
	}
	return f.matches[from:to], at
}

// toMatch shows the match of the cursor of the search.
func toMatch(b *browser) {
	p := &b.page
	if line := p.find.matches[p.find.at].line; line < p.y || line >= p.y+linesOf(b, keys.PagePane) {
		p.y = line - linesOf(b, keys.PagePane)/3
		b.scroll(0)
	}
}

// searching reports whether a search in the open entry is on, and the focus is on the entry.
func searching(b *browser) bool { return b.focus == keys.PagePane && b.page.find.text != "" }

// searchPage searches for a text in the open entry, from the first line on the screen. An empty
// text ends the search.
func searchPage(m *model, text string) tea.Cmd {
	b := &m.browser
	f := &b.page.find
	*f = finder{text: query.Fold(text)}
	f.find(b.page.lines)
	switch {
	case f.text == "":
		return nil
	case len(f.matches) == 0:
		m.say("%s is not in the text", text)
		*f = finder{}
		return nil
	}
	f.at = max(0, slices.IndexFunc(f.matches, func(x match) bool { return x.line >= b.page.y }))
	toMatch(b)
	m.say("match %d of %d", f.at+1, len(f.matches))
	return nil
}

// nextOf returns the action that moves to the next match (by 1) or the previous one (by -1) if a
// search in the entry is on, and to an unread entry otherwise.
func nextOf(by int) func(*model, keys.Call) tea.Cmd {
	return func(m *model, _ keys.Call) tea.Cmd {
		b := &m.browser
		f := &b.page.find
		if !searching(b) || len(f.matches) == 0 {
			m.apply(b.nextUnread(by))
			return nil
		}
		at := f.at + by
		f.at = cells.Wrap(at, len(f.matches))
		toMatch(b)
		if at == f.at {
			m.say("match %d of %d", f.at+1, len(f.matches))
		} else {
			m.say("match %d of %d, around the end of the text", f.at+1, len(f.matches))
		}
		return nil
	}
}

// marked returns a line of the text in a style, with the matches of a search in it reversed.
func (p *painter) marked(line int, s cells.Style, text string) string {
	matches, at := p.page.find.on(line)
	var b strings.Builder
	done := 0
	for i, m := range matches {
		if m.to > len(text) {
			break // cut off
		}
		hit := cells.MatchText
		if i == at {
			hit = cells.MatchHere // bold, too
		}
		b.WriteString(p.look.Paint(s, text[done:m.from]) + p.look.Paint(hit, text[m.from:m.to]))
		done = m.to
	}
	return b.String() + p.look.Paint(s, text[done:])
}
