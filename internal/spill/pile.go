package spill

import (
	"bufio"
	"bytes"
	"io"
	"iter"
	"os"
)

// Pile is texts by number, in the order in which they came. Of much, little is in memory
// at a time: the rest lies in a file that has no name. Where there can be no file, or the
// disk is full, all is in memory. It is used by one goroutine at a time.
type Pile struct {
	most   int
	ends   []int64 // of each
	memory []byte  // what comes after what is in the file
	file   *os.File
	filed  int64 // how much is in the file
	whole  bool  // nothing can be put into the file any more
}

// mostPiled is how many bytes a pile has in memory where nothing else is said.
const mostPiled = 1 << 20

// NewPile gives a pile with nothing on it, of which so many bytes are in memory; 0 stands
// for a mebibyte. Whoever has it closes it.
func NewPile(most int) *Pile {
	if most == 0 {
		most = mostPiled
	}
	return &Pile{most: most}
}

// Len is how many texts there are.
func (p *Pile) Len() int { return len(p.ends) }

// Close gives the file back.
func (p *Pile) Close() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// Add adds a text, which it copies.
func (p *Pile) Add(text []byte) {
	p.memory = append(p.memory, text...)
	p.ends = append(p.ends, p.filed+int64(len(p.memory)))
	if len(p.memory) < p.most || p.whole {
		return
	}
	if p.file == nil {
		if p.file = noName(); p.file == nil {
			p.whole = true
			return
		}
	}
	if _, err := p.file.WriteAt(p.memory, p.filed); err != nil {
		p.whole = true
		return
	}
	p.filed += int64(len(p.memory))
	p.memory = p.memory[:0]
}

// Text gives the text of a number, from 0. The error is that of the file.
func (p *Pile) Text(i int) (string, error) {
	from := int64(0)
	if i > 0 {
		from = p.ends[i-1]
	}
	if from >= p.filed {
		return string(p.memory[from-p.filed : p.ends[i]-p.filed]), nil
	}
	text := make([]byte, p.ends[i]-from)
	_, err := io.ReadFull(io.NewSectionReader(p.file, from, int64(len(text))), text)
	return string(text), err
}

// Texts yields the texts. After an error, which is of the file, there are no more.
func (p *Pile) Texts() iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		r := bufio.NewReaderSize(p.Reader(), 64<<10)
		at := int64(0)
		for _, end := range p.ends {
			text := make([]byte, end-at)
			_, err := io.ReadFull(r, text)
			if !yield(string(text), err) || err != nil {
				return
			}
			at = end
		}
	}
}

// Reader reads the texts, one after the other.
func (p *Pile) Reader() io.Reader {
	memory := bytes.NewReader(p.memory)
	if p.file == nil {
		return memory
	}
	return io.MultiReader(io.NewSectionReader(p.file, 0, p.filed), memory)
}

// noName opens a file that goes when it is closed; nil where there can be none.
func noName() *os.File {
	f, err := os.CreateTemp("", "lektor-list-")
	if err != nil {
		return nil
	}
	_ = os.Remove(f.Name())
	return f
}
