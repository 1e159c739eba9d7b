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
	"github.com/lektordir/lektor/internal/websub"
)

// round is the job to notify the subscribers of a feed. A feed has one at most: an update
// adds its subscribers to it. Its file in pending/ has the URL of the feed in the first
// line, the key of each subscriber, an empty line, and then one line for each result:
//
//	KEY             was notified, has ended, or is not tried any more
//	KEY TRIES TIME  TRIES attempts have failed, the next is due at TIME; tabs between
//
// Earlier versions had a file for each update of a feed, and wrote these lines:
//
//	KEY failed   one more attempt has failed
//	KEY newer    a later file has the subscriber
//	again TIME   the next attempts are due at TIME
//
// The file is durable before the first subscriber is notified, so a hub that is started
// after a kill finishes the round. It notifies a second time only the subscribers that
// were being notified at the kill.
type round struct {
	hash string
	feed string
	few  bool // so few subscribers that the log names each

	mu      sync.Mutex
	path    string
	file    *os.File            // open for results while a pass runs
	left    map[string]*attempt // by key
	version int                 // of the document; each update raises it
	content *content            // the document, for the next pass; nil if it must be read again
	passed  chan struct{}       // closed at the end of the next pass
	ended   bool                // an update must begin another round
}

// content is a document for subscribers by WebSub, and the bytes that it takes of
// [Hub].held.
type content struct {
	websub.Content
	held int64
}

// attempt is a subscriber who lacks the newest document of a round. Its ladder is the
// first attempt and one more after each time of [ladder].
type attempt struct {
	state   attemptState
	version int       // of the document that it is queued for
	tries   int       // steps of the ladder that failed
	last    time.Time // when an attempt last failed
	at      time.Time // when the next step is due; zero for now
	extra   bool      // an attempt besides the ladder is due now, as the feed was updated
	unread  bool      // the last step failed because the feed could not be read
}

type attemptState int

const (
	waiting attemptState = iota
	queued               // in the queue of a pass
	busy                 // being notified
	failing              // has failed in a pass that still runs
)

// ladder is how long to wait after each failed attempt (WebSub, section 7: "Hubs SHOULD
// retry content distribution requests up to self-imposed limits"), to notify a subscriber
// or to read a feed for a ping.
var ladder = [...]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute}

const (
	// extraAfter is how old the last attempt must be for an update to cause another one
	// at once.
	extraAfter = 10 * time.Second

	// maxPending is how much of a file is read, in bytes: a million keys.
	maxPending = 96 << 20

	fewKeys = 10

	failedMark = "failed"
	newerMark  = "newer"
	againMark  = "again"
)

// newPath returns a path for the file of a round.
func (h *Hub) newPath(hash string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serial++
	return filepath.Join(h.dir, "pending", fmt.Sprintf("%s.%d-%d", hash, h.now().UnixNano(), h.serial))
}

// update adds subscribers who must have a new document. That is durable when update
// returns. It returns the content that nobody needs any more, and reports false if the
// round has ended.
func (r *round) update(path string, keys []string, c *content, passed chan struct{}, now time.Time) (older *content, open bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, false, nil
	}
	left := make(map[string]*attempt, len(keys))
	maps.Copy(left, r.left)
	for _, key := range keys {
		if left[key] == nil {
			left[key] = &attempt{}
		}
	}
	if err := r.replace(path, left); err != nil {
		return nil, true, err
	}
	for _, key := range keys {
		if a := left[key]; a.tries > 0 && now.Sub(a.last) >= extraAfter {
			a.extra = true
		}
	}
	older, r.content = r.content, c
	r.version++
	r.passed = passed
	r.few = len(left) <= fewKeys
	return older, true, nil
}

// replace writes the file of a round anew, under another name, and removes the old one.
// After a kill between the two, the newer one counts. The caller holds mu.
func (r *round) replace(path string, left map[string]*attempt) error {
	var b bytes.Buffer
	b.WriteString(strings.ReplaceAll(r.feed, "\n", " ") + "\n")
	keys := slices.Sorted(maps.Keys(left))
	for _, key := range keys {
		b.WriteString(key + "\n")
	}
	b.WriteByte('\n')
	for _, key := range keys {
		if a := left[key]; a.tries > 0 {
			b.WriteString(a.line(key))
		}
	}
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(path, b.Bytes()); err != nil {
		return err
	}
	r.close()
	if r.path != "" {
		_ = os.Remove(r.path)
	}
	r.path, r.left = path, left
	return nil
}

func (a *attempt) line(key string) string {
	return key + "\t" + strconv.Itoa(a.tries) + "\t" + stamp(a.at) + "\n"
}

// note appends lines. If that fails, a kill costs a second notification, no more. The
// caller holds mu.
func (r *round) note(lines string) {
	if r.file == nil {
		var err error
		if r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
			return
		}
	}
	_, _ = r.file.WriteString(lines)
}

// close closes the file until it is written again. The caller holds mu.
func (r *round) close() {
	if r.file != nil {
		_ = r.file.Close()
		r.file = nil
	}
}

// pass is a part of a round: the attempts that were due at one moment.
type pass struct {
	*round
	version int
	few     bool // [round].few when it began
	keys    []string
	content *content      // nil if it must be read again
	passed  chan struct{} // closed at the end; or nil
}

// begin returns the attempts that are due, as a pass; nil for none. next is when there will
// be more; zero for never.
func (r *round) begin(now time.Time) (p *pass, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p = &pass{round: r, version: r.version, few: r.few}
	running := false
	for key, a := range r.left {
		switch {
		case a.state == busy:
			running = true
		case a.state == failing, a.state == queued && a.version == r.version:
		case a.due(now) || a.extra:
			a.state, a.version = queued, r.version
			p.keys = append(p.keys, key)
		case next.IsZero() || a.at.Before(next):
			next = a.at
		}
	}
	// Nobody may be due after an update: then the pass ends what waits for it. Those who
	// are being notified begin another.
	if len(p.keys) == 0 && (r.passed == nil || running) {
		return nil, next
	}
	slices.Sort(p.keys)
	p.content, r.content = r.content, nil
	p.passed, r.passed = r.passed, nil
	return p, next
}

// due reports whether the next step of the ladder is. A time that is further away than it
// can be comes from a clock that was wrong.
func (a *attempt) due(now time.Time) bool {
	return !a.at.After(now) || a.at.Sub(now) > mostAfter+time.Second
}

// take begins an attempt, unless a newer document is there, whose pass has the subscriber.
func (p *pass) take(key string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.left[key]
	if a == nil || a.state != queued || a.version != p.version || p.version != p.round.version {
		return false
	}
	a.state = busy
	a.extra = a.extra && !a.due(now)
	return true
}

// done ends the attempts at a subscriber who was notified or has ended. If the feed was
// updated meanwhile, the subscriber stays for the newer document: one that ended may have
// registered again before the update.
func (p *pass) done(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.left[key]
	switch {
	case a == nil:
	case p.version != p.round.version:
		*a = attempt{}
		p.note(key + "\t0\t\n")
	default:
		delete(p.left, key)
		p.note(key + "\n")
	}
}

// failed ends an attempt that failed. An attempt besides the ladder leaves the ladder as it
// is. The next attempt is not made before the time after.
func (p *pass) failed(key string, now, after time.Time, unread bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.left[key]
	if a == nil {
		return
	}
	a.last, a.unread = now, unread
	if a.extra {
		a.state, a.extra = waiting, false
		if after.After(a.at) {
			a.at = after
		}
		return
	}
	a.state = failing
	a.tries++
	a.wait(now)
	if after.After(a.at) {
		a.at = after
	}
	p.note(a.line(key))
}

// wait moves the next step of a ladder to its time after now, if it is not later anyway.
func (a *attempt) wait(now time.Time) {
	if a.tries > len(ladder) {
		return
	}
	if at := now.Add(ladder[max(a.tries, 1)-1]); at.After(a.at) {
		a.at = at
	}
}

// postpone leaves a subscriber alone until a time.
func (p *pass) postpone(key string, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.left[key]; a != nil {
		a.state, a.extra, a.at = waiting, false, until
	}
}

// rested is the result of a pass.
type rested struct {
	left   int           // subscribers who wait for another attempt
	wait   time.Duration // until the first of these
	missed int           // subscribers whose ladder has ended
	struck []string      // those of them who did not answer with success
	ended  bool          // the round
}

// rest ends a pass. All who failed in it wait from now on, so that a feed is read once for
// many of them.
func (p *pass) rest(now time.Time) (s rested) {
	r := p.round
	r.mu.Lock()
	defer r.mu.Unlock()
	var next time.Time
	for key, a := range r.left {
		if a.state == failing && a.version == p.version {
			if a.tries > len(ladder) {
				// In this order: a strike that a kill prevents is better than two.
				delete(r.left, key)
				r.note(key + "\n")
				if s.missed++; !a.unread {
					s.struck = append(s.struck, key)
				}
				continue
			}
			a.state = waiting
			a.wait(now)
		}
		if a.state == waiting && a.at.After(now) {
			if s.left++; s.left == 1 || a.at.Before(next) {
				next = a.at
			}
		}
	}
	s.wait = next.Sub(now)
	if len(r.left) == 0 {
		s.ended, r.ended = true, true
		r.close()
		_ = os.Remove(r.path)
	}
	return s
}

// readRound reads the file of a round that an earlier hub left.
func readRound(path string, now time.Time) (*round, error) {
	hash, serial, ok := strings.Cut(filepath.Base(path), ".")
	if _, err := strconv.ParseUint(strings.ReplaceAll(serial, "-", ""), 10, 64); !ok || err != nil || !isKey(hash) {
		return nil, fmt.Errorf("%s: it is no file of a round of notifications", path)
	}
	data, err := atomicfile.Read(path, maxPending)
	if err != nil {
		return nil, err
	}
	feed, rest, _ := strings.Cut(string(data), "\n")
	all, results, ok := strings.Cut("\n"+rest, "\n\n")
	if !ok {
		return nil, fmt.Errorf("%s: it is cut off", path)
	}
	r := &round{path: path, hash: hash, feed: feed, left: map[string]*attempt{}}
	for key := range strings.FieldsSeq(all) {
		if isKey(key) {
			r.left[key] = &attempt{}
		}
	}
	for line := range strings.Lines(results) {
		if line, whole := strings.CutSuffix(line, "\n"); whole {
			r.replay(line)
		}
	}
	for key, a := range r.left {
		switch {
		case a.tries > len(ladder): // the ladder had ended, and the kill came before its last line
			delete(r.left, key)
		case a.tries > 0 && a.at.IsZero(): // the kill came before its time was written
			a.wait(now)
		}
		if a.tries > 0 {
			a.last = a.at.Add(-ladder[min(a.tries, len(ladder))-1])
		}
	}
	r.few = len(r.left) <= fewKeys
	return r, nil
}

// replay applies a result.
func (r *round) replay(line string) {
	key, mark, more := strings.Cut(line, "\t")
	if key == againMark {
		for _, a := range r.left {
			if a.tries > 0 {
				a.at = when(mark)
			}
		}
		return
	}
	a := r.left[key]
	tries, at, _ := strings.Cut(mark, "\t")
	n, err := strconv.Atoi(tries)
	switch {
	case a == nil:
	case !more, mark == newerMark:
		delete(r.left, key)
	case mark == failedMark:
		a.tries++
		a.at = time.Time{}
	case err == nil && n >= 0:
		a.tries, a.at = n, when(at)
	}
}

// isKey reports whether a text is a [subscription.key] or [hashOf] a feed, and so the name
// of a file.
func isKey(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }
