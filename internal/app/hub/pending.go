package hub

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
)

// pending is the journal of a round of notifications: a file in pending/ with the
// feed's URL in the first line, the keys of those to be notified, an empty line, and
// then what came of it, a line appended for each:
//
//	KEY          was notified, cannot be, or is not tried any more
//	KEY failed   was not reached; a tab between the two
//	KEY newer    is in a later round of the feed, which has the newer document
//	again TIME   the pass is over, and those that are left are tried at TIME, but
//	             those whose subscription says that it is to be later
//
// It is on the disk before the first is notified, and removed when nobody is left, or
// is to be tried any more, see [retryAfter]. So a hub that is killed finishes the
// round when it is started again; who was being notified just then is notified once
// more. It may be used by many at once.
type pending struct {
	path string
	hash string
	feed string
	few  bool // so few that the log tells of each who was notified

	mu    sync.Mutex
	file  *os.File        // appended to, while a pass is under way
	left  map[string]*one // by key
	again time.Time       // when the next begins; zero while one is under way
}

// one is a subscriber who is left to a round.
type one struct {
	tries  int       // that failed
	failed bool      // in this pass
	after  time.Time // when he is to be tried; zero for as soon as the others
}

// retryAfter is how long who was not reached is left alone, after each try of a round
// (WebSub, section 7: "Hubs SHOULD retry content distribution requests up to
// self-imposed limits"), if he does not want to be for longer, see [mostAfter]. After
// the last the next update is his chance.
var retryAfter = [...]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute}

const (
	// maxPending is how much of a journal is read, in bytes: a million keys.
	maxPending = 96 << 20

	fewKeys = 10

	failedMark = "failed"
	newerMark  = "newer"
	againMark  = "again"
)

// begun writes the journal of a round.
func (h *Hub) begun(hash, feedURL string, keys []string) (*pending, error) {
	h.mu.Lock()
	h.serial++
	serial := h.serial
	h.mu.Unlock()
	p := &pending{hash: hash, feed: feedURL, few: len(keys) <= fewKeys, left: make(map[string]*one, len(keys))}
	p.path = filepath.Join(h.dir, "pending", fmt.Sprintf("%s.%d-%d", hash, h.now().UnixNano(), serial))
	var b bytes.Buffer
	b.WriteString(strings.ReplaceAll(feedURL, "\n", " ") + "\n")
	for _, k := range keys {
		p.left[k] = &one{}
		b.WriteString(k + "\n")
	}
	b.WriteByte('\n')
	if err := atomicfile.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return nil, err
	}
	return p, atomicfile.Write(p.path, b.Bytes())
}

// note appends a line, or several. What cannot be noted costs a second notification after a kill,
// no more. The caller holds mu.
func (p *pending) note(line string) {
	if p.file == nil {
		var err error
		if p.file, err = os.OpenFile(p.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			return
		}
	}
	_, _ = p.file.WriteString(line + "\n")
}

// close closes the file, which is opened again when it is needed. The caller holds mu.
func (p *pending) close() {
	if p.file != nil {
		_ = p.file.Close()
		p.file = nil
	}
}

// wants reports whether somebody is to be notified yet.
func (p *pending) wants(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, left := p.left[key]
	return left
}

// done takes note that somebody was notified, or cannot be.
func (p *pending) done(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, left := p.left[key]; left {
		delete(p.left, key)
		p.note(key)
	}
}

// failed takes note that somebody was not reached in this pass.
func (p *pending) failed(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.left[key]; o != nil {
		o.fail()
		p.note(key + "\t" + failedMark)
	}
}

func (o *one) fail() { o.failed, o.after = true, time.Time{}; o.tries++ }

// later leaves somebody alone until a time, whether he failed in this pass or is not
// to be tried in it.
func (p *pending) later(key string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if o := p.left[key]; o != nil {
		o.after = until
	}
}

// tried reports whether somebody was not reached in this round already.
func (p *pending) tried(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	o := p.left[key]
	return o != nil && o.tries > 0
}

// yield leaves those that a later round of the feed has to that one, and reports
// whether nobody is left to a round that waits, so that it is over.
func (p *pending) yield(keys []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var given []string
	for _, key := range keys {
		if _, left := p.left[key]; left {
			delete(p.left, key)
			given = append(given, key+"\t"+newerMark)
		}
	}
	if len(given) > 0 {
		p.note(strings.Join(given, "\n"))
	}
	if p.again.IsZero() {
		return false // the pass that is under way ends it
	}
	p.close()
	return len(p.left) == 0
}

// all lists who is left.
func (p *pending) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.left))
}

// todo lists who is to be notified in this pass.
func (p *pending) todo(now time.Time) (keys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, o := range p.left {
		if !o.failed && !o.after.After(now) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// rested is what became of a pass.
type rested struct {
	wait         time.Duration // until the next
	left, missed int           // subscribers for whom there is one, and there is none
}

// rest ends a pass. The round is over when there is nobody left.
func (p *pending) rest(now time.Time) (r rested) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.close()
	var next time.Time
	var missed []string
	for key, o := range p.left {
		if o.failed {
			if o.tries > len(retryAfter) {
				delete(p.left, key)
				missed = append(missed, key)
				continue
			}
			if at := now.Add(retryAfter[o.tries-1]); at.After(o.after) {
				o.after = at
			}
			o.failed = false
		}
		if next.IsZero() || o.after.Before(next) {
			next = o.after
		}
	}
	r.missed, r.left = len(missed), len(p.left)
	if r.left == 0 {
		return r
	}
	if next.Before(now) {
		next = now
	}
	r.wait, p.again = next.Sub(now), next
	p.note(strings.Join(append(missed, againMark+"\t"+stamp(next)), "\n"))
	return r
}

// ripe reports whether a round that rests is to go on, and has it begin its pass; else
// it gives when it is to. A time that is further away than it can be is of a clock that
// was wrong.
func (p *pending) ripe(now time.Time) (bool, time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.again.IsZero():
		return false, time.Time{}
	case p.again.After(now) && p.again.Sub(now) <= mostAfter+time.Second:
		return false, p.again
	}
	p.again = time.Time{}
	return true, time.Time{}
}

// remove ends the round.
func (p *pending) remove() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
	_ = os.Remove(p.path)
}

// stop leaves the rest of the round to the next hub.
func (p *pending) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
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
	p := &pending{path: path, hash: hash, feed: feed, left: map[string]*one{}}
	for key := range strings.FieldsSeq(all) {
		if isKey(key) {
			p.left[key] = &one{}
		}
	}
	p.few = len(p.left) <= fewKeys
	for line := range strings.Lines(over) {
		if line, whole := strings.CutSuffix(line, "\n"); whole {
			p.replay(line)
		}
	}
	return p, nil
}

// replay takes a line of the journal for what it says.
func (p *pending) replay(line string) {
	key, mark, _ := strings.Cut(line, "\t")
	o := p.left[key]
	switch {
	case key == againMark:
		p.again = when(mark)
		for _, o := range p.left {
			o.failed = false
		}
	case o == nil:
	case mark == failedMark:
		o.fail()
		p.again = time.Time{} // the next pass had begun
	case mark == newerMark:
		delete(p.left, key)
	case line == key:
		delete(p.left, key)
		p.again = time.Time{}
	}
}

// isKey reports whether a text is that of [subscription.key], and so a name of a file.
func isKey(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }
