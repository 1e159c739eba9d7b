package hub

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// pending is the journal of a round of notifications: a file in pending/ with the
// feed's URL in the first line, the keys of those to be notified, an empty line, and
// the key of each who was, appended when that is over. It is on the disk before the
// first is notified and removed after the last, so that a hub that is killed finishes
// the round when it is started again. Who was being notified just then is notified
// once more.
type pending struct {
	path string
	hash string
	feed string
	keys []string

	mu   sync.Mutex
	file *os.File // appended to
	left int
}

// maxPending is how much of a journal is read, in bytes: a million keys.
const maxPending = 96 << 20

// begun writes the journal of a round.
func (h *Hub) begun(hash, feedURL string, keys []string) (*pending, error) {
	h.mu.Lock()
	h.serial++
	serial := h.serial
	h.mu.Unlock()
	p := &pending{hash: hash, feed: feedURL, keys: keys, left: len(keys)}
	p.path = filepath.Join(h.dir, "pending", fmt.Sprintf("%s.%d-%d", hash, h.now().UnixNano(), serial))
	var b bytes.Buffer
	b.WriteString(strings.ReplaceAll(feedURL, "\n", " ") + "\n")
	for _, k := range keys {
		b.WriteString(k + "\n")
	}
	b.WriteByte('\n')
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(p.path, b.Bytes()); err != nil {
		return nil, err
	}
	return p, p.open()
}

func (p *pending) open() (err error) {
	p.file, err = os.OpenFile(p.path, os.O_WRONLY|os.O_APPEND, 0)
	return err
}

// done takes note that somebody was notified, or cannot be.
func (p *pending) done(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left--
	// What cannot be noted costs a second notification after a kill, no more.
	_, _ = p.file.WriteString(key + "\n")
}

// end ends the journal, which is kept where somebody is left.
func (p *pending) end() {
	_ = p.file.Close()
	if p.left <= 0 {
		_ = os.Remove(p.path)
	}
}

// readPending reads a journal that a hub left, as those who are left.
func readPending(path string) (*pending, error) {
	hash, serial, ok := strings.Cut(filepath.Base(path), ".")
	if _, err := strconv.ParseUint(strings.ReplaceAll(serial, "-", ""), 10, 64); !ok || err != nil || len(hash) != 40 {
		return nil, fmt.Errorf("%s: it is no journal of deliveries", path)
	}
	data, err := atomicfile.Read(path, maxPending)
	if err != nil {
		return nil, err
	}
	feed, rest, _ := strings.Cut(string(data), "\n")
	all, over, ok := strings.Cut("\n"+rest, "\n\n")
	if !ok {
		return nil, fmt.Errorf("%s: it is cut off", path)
	}
	done := map[string]bool{}
	for line := range strings.Lines(over) {
		if key, whole := strings.CutSuffix(line, "\n"); whole {
			done[key] = true
		}
	}
	p := &pending{path: path, hash: hash, feed: feed}
	for key := range strings.FieldsSeq(all) {
		if !done[key] && len(key) == 40 && !strings.ContainsAny(key, "/.") {
			p.keys = append(p.keys, key)
		}
	}
	p.left = len(p.keys)
	return p, p.open()
}
