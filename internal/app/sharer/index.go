package sharer

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/feedsync"
)

// indexHeader begins the index of the complete document: the file that tells where in
// it each item stands, so that a run need not parse all of it. Behind the header stand
// size and CRC-32C of the document, and where its items begin and end. A line is of an
// item: its id, or below a line with / and a feed the identity of the entry and the
// flag; - for
// a tombstone, ! for a conflict; and where it begins, and its length. The last line is
// the CRC-32C of all before it. An index that is lost, or not that of the document, is
// made anew.
const indexHeader = "lektor-share 1 index"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// summed counts and sums what goes through it.
type summed struct {
	w   io.Writer
	n   int
	crc uint32
}

func (s *summed) Write(b []byte) (int, error) {
	s.n += len(b)
	s.crc = crc32.Update(s.crc, castagnoli, b)
	return s.w.Write(b)
}

// makeIndex gives the index of the complete document, which went through sum.
func (s *states) makeIndex(sum *summed) []byte {
	begin, end := sum.n, 0
	for _, marks := range s.feeds {
		for _, m := range marks {
			begin, end = min(begin, m.at), max(end, m.at+len(m.text))
		}
	}
	end = max(begin, end)
	b := fmt.Appendf(nil, "%s %d %d %d %d\n", indexHeader, sum.n, sum.crc, begin, end)
	for feed, marks := range s.byFeed() {
		if feed != "" {
			b = append(append(append(b, '/'), feed...), '\n')
		}
		for _, m := range marks {
			if b = append(append(b, m.lineage...), ' '); feed != "" {
				b = append(b, m.flag, ' ')
			}
			if m.deleted {
				b = append(b, '-')
			}
			if m.conflict {
				b = append(b, '!')
			}
			b = strconv.AppendInt(append(b, ' '), int64(m.at), 10)
			b = append(strconv.AppendInt(append(b, ' '), int64(len(m.text)), 10), '\n')
		}
	}
	return fmt.Appendf(b, "end %d\n", crc32.Checksum(b, castagnoli))
}

// readIndex takes the items of the complete document from its index. It reports whether
// the index is of that document.
func (s *states) readIndex(data, index []byte) bool {
	text := string(index)
	at := strings.LastIndex(text, "end ")
	if at < 0 || text[at:] != fmt.Sprintf("end %d\n", crc32.Checksum(index[:at], castagnoli)) {
		return false
	}
	head, text, _ := strings.Cut(text[:at], "\n")
	var size, begin, end int
	var crc uint32
	if n, err := fmt.Sscanf(head, indexHeader+" %d %d %d %d", &size, &crc, &begin, &end); n != 4 || err != nil {
		return false
	}
	if size != len(data) || begin < 0 || begin > end || end > size || crc != crc32.Checksum(data, castagnoli) {
		return false
	}
	frame, err := feedsync.Parse(slices.Concat(data[:begin], data[end:]))
	if err != nil || frame.Sharing == nil || !s.frame.SameScope(frame) {
		return false
	}
	feeds := map[string][]mark{}
	feed, marks := "", []mark(nil)
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if hash, ok := strings.CutPrefix(line, "/"); ok {
			feeds[feed] = marks
			feed, marks = hash, make([]mark, 0, len(marks))
			continue
		}
		var m mark
		m.lineage, line, _ = strings.Cut(line, " ")
		if feed != "" {
			if len(line) < 2 || line[1] != ' ' {
				return false
			}
			m.flag, line = line[0], line[2:]
		}
		is, place, _ := strings.Cut(line, " ")
		m.deleted, m.conflict = strings.Contains(is, "-"), strings.Contains(is, "!")
		from, length, _ := strings.Cut(place, " ")
		at, err1 := strconv.Atoi(from)
		n, err2 := strconv.Atoi(length)
		if err1 != nil || err2 != nil || at < begin || n < 0 || at+n > end {
			return false
		}
		m.at, m.text = at, data[at:at+n:at+n]
		marks = append(marks, m)
	}
	feeds[feed] = marks
	s.frame, s.feeds = frame, feeds
	return true
}
