package feedconv

import (
	"bytes"
	"slices"
)

// gap tells whether an element has its end tag.
type gap uint8

const (
	closed   gap = iota
	unclosed     // an end tag of an element around it comes first
	cutOff       // the document ends first
)

// defects are the elements of a document that have no end tag. A document
// without any is read as it stands: only what proves to be open where it should
// not be is closed by what follows.
type defects struct {
	all  bool // more than are worth a list: every element may be one
	list []defect
	next int // the first that has not been asked for
}

type defect struct {
	at  int // where its start tag begins
	gap gap
}

// maxDefects is how many defects are told apart, and how many open elements.
const maxDefects = 1 << 16

// at tells whether the element is closed whose start tag begins at pos; pos
// does not decrease from call to call.
func (d *defects) at(pos int) gap {
	if d.all {
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

// findDefects looks from behind the root's start tag on, which began at root.
func (t *tidier) findDefects(tag []byte, root int) defects {
	var d defects
	if wellFormed(t.src, t.pos, tag) {
		return d
	}
	type element struct {
		at   int
		id   int32
		name int32 // its length
	}
	id := t.intern(tag)
	stack := []element{{root, id, int32(len(tag))}}
	count := make([]int32, len(t.infos)+64) // how many are open, by name
	count[id]++
	s := newScanner(t.src, &warnings{mute: true})
	s.pos = t.pos
	for {
		var inside []byte
		if n := len(stack); n > 0 {
			top := stack[n-1]
			inside = t.src[top.at+1 : top.at+1+int(top.name)]
		}
		tk := s.next(inside)
		switch tk.kind {
		case tokenEnd:
			for _, e := range stack {
				d.add(e.at, cutOff)
			}
			slices.SortFunc(d.list, func(a, b defect) int { return a.at - b.at })
			return d
		case tokenOpen, tokenClose, tokenCut:
			if id = t.intern(tk.data); int(id) >= len(count) {
				count = append(count, make([]int32, len(count))...)
			}
		}
		switch tk.kind {
		case tokenOpen:
			if len(stack) > maxDefects {
				return defects{all: true}
			}
			if !tk.self {
				count[id]++
				stack = append(stack, element{tk.at, id, int32(len(tk.data))})
			}
		case tokenClose, tokenCut:
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

// wellFormed tells, quickly, whether every element is closed from pos on, which
// is behind the start tag of the root. It may say no where a slower look finds
// nothing, but not the other way round.
func wellFormed(src []byte, pos int, root []byte) bool {
	stack := append(make([][]byte, 0, 32), root)
	for {
		n := bytes.IndexByte(src[pos:], '<')
		if n < 0 || pos+n+1 >= len(src) {
			return n < 0 && len(stack) == 0
		}
		i := pos + n + 1
		switch src[i] {
		case '/':
			if len(stack) == 0 {
				return false
			}
			name := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if !bytes.HasPrefix(src[i+1:], name) {
				return false
			}
			if pos = skipSpace(src, i+1+len(name)); pos >= len(src) || src[pos] != '>' {
				return false
			}
			pos++
		case '!', '?':
			end := "?>"
			switch rest := src[i:]; {
			case bytes.HasPrefix(rest, []byte("!--")):
				i += 3
				end = "-->"
			case bytes.HasPrefix(rest, []byte("![CDATA[")):
				end = "]]>"
			case rest[0] == '!':
				return false
			}
			if n = bytes.Index(src[i:], []byte(end)); n < 0 {
				return false
			}
			pos = i + n + len(end)
		default:
			next, name, self := strictTag(src, i)
			if name == nil || len(stack) == 0 || len(stack) > maxDefects {
				return false
			}
			if !self {
				stack = append(stack, name)
			}
			pos = next
		}
	}
}

// strictTag reads the start tag whose name begins at i, if it is as XML wants
// it; else name is nil.
func strictTag(src []byte, i int) (next int, name []byte, self bool) {
	j := i
	if !isNameStart(src[j]) {
		return 0, nil, false
	}
	for j < len(src) && nameBytes[src[j]] {
		j++
	}
	name = src[i:j]
	for {
		before := j
		j = skipSpace(src, j)
		switch {
		case j >= len(src):
			return 0, nil, false
		case src[j] == '>' && name[len(name)-1] != ':':
			return j + 1, name, false
		case src[j] == '/':
			if j+1 >= len(src) || src[j+1] != '>' {
				return 0, nil, false
			}
			return j + 2, name, true
		case j == before || !isNameStart(src[j]):
			return 0, nil, false
		}
		for j < len(src) && nameBytes[src[j]] {
			j++
		}
		if j = skipSpace(src, j); j >= len(src) || src[j] != '=' {
			return 0, nil, false
		}
		if j = skipSpace(src, j+1); j >= len(src) || src[j] != '"' && src[j] != '\'' {
			return 0, nil, false
		}
		n := bytes.IndexByte(src[j+1:], src[j])
		if n < 0 || bytes.IndexByte(src[j+1:j+1+n], '<') >= 0 {
			return 0, nil, false
		}
		j += n + 2
	}
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	return i
}
