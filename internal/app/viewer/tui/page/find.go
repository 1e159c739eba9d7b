package page

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// finder is a search in the text of the open entry.
type finder struct {
	text    string  // folded; "" if there is no search
	matches []Match // in the order of the text
	at      int     // the match that the cursor is on
}

// Match is an occurrence of the text of a search in a line, from byte From up to byte To.
type Match struct{ Line, From, To int }

// find finds all matches in lines. A match lies in one line.
func (f *finder) find(lines []string) {
	f.matches = nil
	if f.text == "" {
		return
	}
	for i, line := range lines {
		if strings.Contains(query.Fold(line), f.text) {
			f.matches = append(f.matches, matchesIn(i, line, f.text)...)
		}
	}
	f.at = max(0, min(f.at, len(f.matches)-1))
}

// matchesIn returns each occurrence of a folded text in a line, of which n is the index. The line
// is folded one character at a time, so that each folded byte has an origin.
func matchesIn(n int, line, text string) (found []Match) {
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
		_, size := utf8.DecodeRuneInString(line[last:])
		found = append(found, Match{n, from, last + size})
		at += i + len(text)
	}
}

// Matches returns the matches of a search in a line, and the index among them of the match that the cursor is
// on, -1 if it is in another line.
func (p *Page) Matches(line int) (matches []Match, at int) {
	all := p.find.matches
	byLine := func(m Match, line int) int { return m.Line - line }
	from, _ := slices.BinarySearchFunc(all, line, byLine)
	to, _ := slices.BinarySearchFunc(all, line+1, byLine)
	if at = p.find.at - from; at < 0 || at >= to-from {
		at = -1
	}
	return all[from:to], at
}

// Match returns the match that the cursor of the search is on; ok is false if there is none.
func (p *Page) Match() (at Match, ok bool) {
	if ok = p.find.at < len(p.find.matches); ok {
		at = p.find.matches[p.find.at]
	}
	return at, ok
}

// Searching reports whether a search is on.
func (p *Page) Searching() bool { return p.find.text != "" }

// EndSearch ends the search.
func (p *Page) EndSearch() { p.find = finder{} }

// toMatch shows the match of the cursor of the search.
func (p *Page) toMatch() {
	_, height := p.Size()
	if line := p.find.matches[p.find.at].Line; line < p.Y || line >= p.Y+height {
		p.Y = line - height/3
		p.Scroll(0)
	}
}

// Search searches for a text, from the first line on the screen. An empty text ends the search.
func (p *Page) Search(text string) part.Effects {
	f := &p.find
	*f = finder{text: query.Fold(text)}
	f.find(p.Lines)
	switch {
	case f.text == "":
		return nil
	case len(f.matches) == 0:
		p.EndSearch()
		return p.Say("%s is not in the text", text)
	}
	f.at = max(0, slices.IndexFunc(f.matches, func(x Match) bool { return x.Line >= p.Y }))
	p.toMatch()
	return p.Say("match %d of %d", f.at+1, len(f.matches))
}

// NextMatch moves to the next match of the search (by 1), or to the previous one (by -1).
func (p *Page) NextMatch(by int) part.Effects {
	f := &p.find
	at := f.at + by
	f.at = cells.Wrap(at, len(f.matches))
	p.toMatch()
	if at == f.at {
		return p.Say("match %d of %d", f.at+1, len(f.matches))
	}
	return p.Say("match %d of %d, around the end of the text", f.at+1, len(f.matches))
}
