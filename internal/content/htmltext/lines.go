package htmltext

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// frame is an open element that puts a prefix before its lines.
type frame struct {
	tag    string // blockquote, ul, ol, li, dl, dd, pre
	first  string // prefix of its first line; "" after that is written
	prefix string // prefix of its lines

	bullets bool   // a list without numbers; also one that counts down, since its first number is unknown
	count   int    // number of the next item of a list
	style   string // style of the numbers: a, A, i, I, else digits
}

// lines are the lines written so far, and the prefixes of the next one.
type lines struct {
	o       Options
	out     strings.Builder
	frames  []frame
	pre     int    // number of open pre elements
	preHead bool   // at the beginning of a pre element
	gap     int    // newlines to write before the next line
	last    string // prefix of a blank line after the last line
}

// push opens a frame, unless there are too many.
func (l *lines) push(f frame) {
	if len(l.frames) < maxFrames {
		l.frames = append(l.frames, f)
	}
}

// pop closes the innermost open frame of a tag, with the frames inside it, unless it is outside
// of the innermost barrier.
func (l *lines) pop(tag string, barriers ...string) {
	for i, f := range slices.Backward(l.frames) {
		t := f.tag
		if t == tag {
			for _, f := range l.frames[i:] {
				if f.tag == "pre" && tag != "pre" && l.pre > 0 {
					l.pre--
				}
			}
			l.frames = l.frames[:i]
			return
		}
		if slices.Contains(barriers, t) {
			return
		}
	}
}

func (l *lines) within(tag string) bool {
	return slices.ContainsFunc(l.frames, func(f frame) bool { return f.tag == tag })
}

// prefix returns the prefix of the next line. Frames that would leave less than half of the width
// for text have no prefix. take marks first prefixes as written.
func (l *lines) prefix(take bool) string {
	var b strings.Builder
	width := 0
	for i := range l.frames {
		f := &l.frames[i]
		p := f.prefix
		if f.first != "" {
			p = f.first
		}
		w := utf8.RuneCountInString(p)
		if l.o.Bare || l.o.Width > 0 && width+w > l.o.Width/2 || width+w > 60 {
			continue
		}
		width += w
		b.WriteString(p)
		if take {
			f.first = ""
		}
	}
	return b.String()
}

// room returns the number of columns left for text.
func (l *lines) room() int {
	if l.o.Width <= 0 {
		return 72
	}
	return max(l.o.Width-utf8.RuneCountInString(l.prefix(false)), 1)
}

// blank returns the prefix of a blank line between the last line and the next: the marks of the
// quotes that contain both.
func (l *lines) blank() string {
	next := l.quotes()
	n := 0
	for n < len(next) && n < len(l.last) && next[n] == l.last[n] {
		n++
	}
	return strings.TrimRight(next[:n], " ")
}

// quotes returns the prefix of the lines without the marks of items.
func (l *lines) quotes() string {
	if len(l.frames) == 0 {
		return ""
	}
	var b strings.Builder
	for _, f := range l.frames {
		if f.prefix == "> " {
			b.WriteString(f.prefix)
		} else {
			b.WriteString(strings.Repeat(" ", len(f.prefix)))
		}
		if b.Len() > 60 || l.o.Width > 0 && b.Len() > l.o.Width/2 {
			break
		}
	}
	if l.o.Bare {
		return ""
	}
	return b.String()
}

// line writes one line, after the pending newlines.
func (l *lines) line(s string) {
	if l.out.Len() > 0 && l.gap > 1 {
		l.out.WriteString(l.blank())
		l.out.WriteByte('\n')
	}
	l.gap = 1
	l.out.WriteString(strings.TrimRight(l.prefix(true)+s, " \u00a0"))
	l.out.WriteByte('\n')
	l.last = l.quotes()
}
