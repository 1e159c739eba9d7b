package tidy

import (
	"slices"

	"github.com/lektordir/lektor/internal/text/scan"
)

// gap says whether, and why, an element has no end tag.
type gap uint8

const (
	closed   gap = iota
	unclosed     // an end tag of an element around it comes first
	cutOff       // the document ends first
)

// defects are the elements of a document that have no end tag. They are nil for a well-formed
// document. In others, an element without an end tag is closed by the elements that follow.
type defects struct {
	all  bool // more than are worth a list: every element may be one
	list []defect
	next int // the first that has not been asked for
}

type defect struct {
	at  int // where its start tag begins
	gap gap
}

// maxDefects is the maximum number of defects, and of open elements, that are recorded.
const maxDefects = 1 << 16

// at reports whether the element is closed whose start tag begins at pos; pos
// does not decrease from call to call. A nil d has no defects.
func (d *defects) at(pos int) gap {
	switch {
	case d == nil:
		return closed
	case d.all:
		return unclosed
	}
	for d.next < len(d.list) && d.list[d.next].at < pos {
		d.next++
	}
	if d.next < len(d.list) && d.list[d.next].at == pos {
		return d.list[d.next].gap
	}
	return closed
}

func (d *defects) add(at int, g gap) {
	if len(d.list) >= maxDefects {
		d.all = true
		return
	}
	d.list = append(d.list, defect{at, g})
}

// findDefects scans the document from the root's start tag on, which begins at root.
func (t *tidier) findDefects(tag []byte, root int) *defects {
	d := &defects{}
	type element struct {
		at   int
		id   int32
		name int32 // its length
	}
	id := t.names.intern(tag)
	stack := []element{{root, id, int32(len(tag))}}
	count := make([]int32, len(t.names.infos)+64) // how many are open, by name
	count[id]++
	s := scan.New(t.Src, func(scan.Defect, int, []byte) {})
	s.Pos = t.Pos
	for {
		var inside []byte
		if n := len(stack); n > 0 {
			top := stack[n-1]
			inside = t.Src[top.at+1 : top.at+1+int(top.name)]
		}
		tk := s.Next(inside)
		switch tk.Kind {
		case scan.End:
			for _, e := range stack {
				d.add(e.at, cutOff)
			}
			slices.SortFunc(d.list, func(a, b defect) int { return a.at - b.at })
			return d
		case scan.Open, scan.Close, scan.Cut:
			if id = t.names.intern(tk.Data); int(id) >= len(count) {
				count = append(count, make([]int32, len(count))...)
			}
		}
		switch tk.Kind {
		case scan.Open:
			if len(stack) > maxDefects {
				return &defects{all: true}
			}
			if !tk.Self {
				count[id]++
				stack = append(stack, element{tk.At, id, int32(len(tk.Data))})
			}
		case scan.Close, scan.Cut:
			for open := count[id] > 0; open; {
				top := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				count[top.id]--
				if open = top.id != id; open {
					d.add(top.at, unclosed)
				}
			}
		}
	}
}
