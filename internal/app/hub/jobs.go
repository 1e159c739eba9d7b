package hub

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/backoff"
	"github.com/lektordir/lektor/internal/filelog"
)

// jobs is the table of what a hub does later, by feed: reading it for a ping, and notifying
// its subscribers. Handlers add jobs, and [Hub.hurry] begins those that are due. Each is in
// a log, too, so that a hub that is started after a kill goes on. That hub notifies a second
// time only the subscribers that were being notified at the kill. A table may be used by
// many goroutines.
//
// The log has a line for each change, with tabs between the fields:
//
//	FEED KEY TRIES TIME                   notify a subscriber; TRIES attempts have failed, the next is due at TIME
//	FEED ping TRIES TIME URL CALLER       read the feed at URL; TRIES readings have failed
//	FEED document LENGTH TIME URL DIGEST  record that subscribers know this document
//	FEED KEY, FEED ping, FEED document    is done
//
// The jobs of an update and its document are one append: a feed is not taken for updated
// once more, whenever the hub is killed.
type jobs struct {
	mu      sync.Mutex
	log     *filelog.Log
	compact int64                // size at which the log is written anew
	stale   bool                 // the log lacks lines that could not be written
	feeds   map[string]*feedJobs // by hash
}

// feedJobs are the jobs of a feed.
type feedJobs struct {
	ping    *job            // nil for none
	newest  *feedState      // the document to be recorded; nil for none
	record  job             // attempts to record it; zero before the first has failed
	left    map[string]*job // subscribers who lack the newest document, by key
	version int             // of the document; each update raises it
	fresh   bool            // no pass has begun with that version
	content *content        // the document, for the next pass; nil if it must be read again
	running *pass           // the newest pass that has not ended
}

// job is a reading of a feed, or attempts to notify a subscriber: the first one, and one
// more after each time of [ladder].
type job struct {
	url, caller string // of a reading: the feed, and who sent the ping

	busy    bool      // it is being done
	version int       // of the document, when a pass last took it
	tries   int       // steps of the ladder that failed
	at      time.Time // when the next step is due; zero for now
	last    time.Time // when an attempt last failed
	extra   bool      // an attempt besides the ladder is due now, as the feed was updated
	unread  bool      // the last step failed because the feed could not be read
}

// ladder is how long to wait after each failed attempt (WebSub, section 7: "Hubs SHOULD
// retry content distribution requests up to self-imposed limits"), to notify a subscriber
// or to read a feed for a ping.
var ladder = backoff.Backoff{Steps: []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute}}

const (
	// extraAfter is how old the last attempt must be for an update to cause another one
	// at once.
	extraAfter = 10 * time.Second

	jobsName = "jobs"
	pingKey  = "ping"
	docKey   = "document"
	fewKeys  = 10

	maxJobs    = 512 << 20 // bytes of the log
	minCompact = 1 << 20
)

// openJobs opens the table with the jobs that an earlier hub left.
func openJobs(dir string, now time.Time) (*jobs, error) {
	log, data, err := filelog.Open(filepath.Join(dir, jobsName), filelog.Options{Max: maxJobs, Perm: 0o600})
	if err != nil {
		return nil, err
	}
	j := &jobs{log: log, compact: minCompact, feeds: map[string]*feedJobs{}}
	j.resume(string(data), now)
	return j, nil
}

// adopt adds lines to the log, which are durable when adopt returns, and their jobs.
func (j *jobs) adopt(lines string, now time.Time) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.write(lines, true); err != nil {
		return err
	}
	j.resume(lines, now)
	return nil
}

// resume adds the jobs of lines, with the times that the log does not have. The caller
// holds mu.
func (j *jobs) resume(lines string, now time.Time) {
	for line := range strings.Lines(lines) {
		j.replay(strings.TrimSuffix(line, "\n"))
	}
	for hash, f := range j.feeds {
		for key, a := range f.left {
			step := ladder.Wait(a.tries, 0, 0)
			switch {
			case ladder.Over(a.tries): // the kill came before its last line
				delete(f.left, key)
			case a.tries > 0 && a.at.IsZero():
				a.at = now.Add(step)
			}
			a.last = a.at.Add(-step)
		}
		j.forget(hash)
	}
}

// replay applies a line of the log. A line that is none is passed over.
func (j *jobs) replay(line string) {
	fields := strings.Split(line, "\t")
	if len(fields) < 2 || !isKey(fields[0]) {
		return
	}
	hash, key, rest := fields[0], fields[1], fields[2:]
	n, at := 0, time.Time{}
	if len(rest) >= 2 {
		var err error
		if n, err = strconv.Atoi(rest[0]); err != nil || n < 0 {
			return
		}
		at = when(rest[1])
	}
	f := j.of(hash)
	switch {
	case key == pingKey && len(rest) == 0:
		f.ping = nil
	case key == pingKey && len(rest) == 4:
		if url := rest[2]; hashOf(url) == hash && checkFeed(url) == nil {
			f.ping = &job{tries: n, at: at, url: url, caller: rest[3]}
		}
	case key == docKey && len(rest) == 0:
		f.newest = nil
	case key == docKey && len(rest) == 4:
		if url := rest[2]; hashOf(url) == hash {
			f.newest = &feedState{URL: url, Digest: rest[3], Length: n, Changed: at}
		}
	case !isKey(key):
	case len(rest) == 0:
		delete(f.left, key)
	case len(rest) == 2:
		f.left[key] = &job{tries: n, at: at}
	}
}

// line is the line of a job.
func (a *job) line(hash, key string) string {
	line := hash + "\t" + key + "\t" + strconv.Itoa(a.tries) + "\t" + stamp(a.at)
	if key == pingKey {
		line += "\t" + a.url + "\t" + a.caller
	}
	return line + "\n"
}

// line is the line of a document that is to be recorded.
func (f *feedState) line(hash string) string {
	return strings.Join([]string{hash, docKey, strconv.Itoa(f.Length), stamp(f.Changed), f.URL, f.Digest}, "\t") + "\n"
}

// of returns the jobs of a feed. The caller holds mu.
func (j *jobs) of(hash string) *feedJobs {
	f := j.feeds[hash]
	if f == nil {
		f = &feedJobs{left: map[string]*job{}}
		j.feeds[hash] = f
	}
	return f
}

// forget removes a feed without jobs from the table, and all from the log if the table is
// empty. The caller holds mu.
func (j *jobs) forget(hash string) {
	if f := j.feeds[hash]; f != nil && f.ping == nil && f.newest == nil && f.running == nil && len(f.left) == 0 {
		delete(j.feeds, hash)
	}
	if len(j.feeds) == 0 && j.log.Size() > 0 {
		j.log.Cut(0)
		j.stale = false
	}
}

// write appends lines to the log. With sync they are durable when write returns; without,
// a line that is lost costs a second notification, no more. The caller holds mu.
func (j *jobs) write(lines string, sync bool) error {
	if j.log.Size() > j.compact {
		j.rewrite() // before the lines, which the table may not have yet
	}
	size := j.log.Size()
	err := j.log.Append([]byte(lines))
	if err == nil && sync {
		if err = j.log.Sync(); err != nil {
			j.log.Cut(size)
		}
	}
	j.stale = j.stale || err != nil
	return err
}

// rewrite writes the log anew from the table, without what is done. If that fails, on a
// full disk, the log goes on as it is. The caller holds mu.
func (j *jobs) rewrite() {
	var b strings.Builder
	for hash, f := range j.feeds {
		if f.ping != nil {
			b.WriteString(f.ping.line(hash, pingKey))
		}
		if f.newest != nil {
			b.WriteString(f.newest.line(hash))
		}
		for key, a := range f.left {
			b.WriteString(a.line(hash, key))
		}
	}
	if err := j.log.Replace([]byte(b.String()), atomicfile.WritePrivate); err == nil {
		j.stale = false
	}
	j.compact = max(minCompact, 4*int64(b.Len()), 2*j.log.Size())
}

// close closes the log.
func (j *jobs) close() { _ = j.log.Close() }

// due reports whether a job is. A time that is further away than it can be comes from a
// clock that was wrong.
func (a *job) due(now time.Time, most time.Duration) bool {
	return !a.at.After(now) || a.at.Sub(now) > most+time.Second
}

// work is the jobs that are due at one moment.
type work struct {
	pings   map[string]*job // readings, by the hash of the feed
	records []string        // hashes of feeds whose document must be recorded again
	passes  []*pass         // one for each feed with subscribers to notify
	next    time.Time       // when more is due; zero for never
}

// retry counts a failure, and sets when the next attempt is due. After the ladder it is due
// every half hour.
func (a *job) retry(now time.Time) {
	a.tries++
	a.at = now.Add(ladder.Wait(a.tries, 0, 0))
}

// begin returns the jobs that are due, and marks them as begun. most is the longest time
// that a reading waits.
func (j *jobs) begin(now time.Time, most time.Duration) work {
	w := work{pings: map[string]*job{}}
	soonest := func(t time.Time) {
		if w.next.IsZero() || t.Before(w.next) {
			w.next = t
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stale {
		j.rewrite()
	}
	for hash, f := range j.feeds {
		if a := f.ping; a != nil && !a.busy {
			if a.due(now, most) {
				a.busy = true
				w.pings[hash] = a
			} else {
				soonest(a.at)
			}
		}
		if a := &f.record; f.newest != nil && a.tries > 0 {
			if a.due(now, mostAfter) {
				w.records = append(w.records, hash)
				a.retry(now)
			}
			soonest(a.at)
		}
		if f.running != nil && f.running.version == f.version {
			continue // who failed in it waits for its end, so that a feed is read once for many
		}
		var keys []string
		busy := false
		for key, a := range f.left {
			switch {
			case a.busy:
				busy = true // its end begins another pass
			case a.extra, a.due(now, mostAfter):
				a.version = f.version
				keys = append(keys, key)
			default:
				soonest(a.at)
			}
		}
		if len(keys) > 0 || f.fresh && !busy {
			slices.Sort(keys)
			f.running = &pass{hash: hash, version: f.version, fresh: f.fresh, few: len(f.left) <= fewKeys, keys: keys, content: f.content, done: make(chan struct{})}
			f.content, f.fresh = nil, false
			w.passes = append(w.passes, f.running)
		}
	}
	return w
}

// read adds a job to read a feed, or moves it forward. It returns when the feed is read.
// The job is durable when read returns; if it cannot be written, this hub does it
// nevertheless.
func (j *jobs) read(hash string, a job) (time.Time, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.of(hash)
	if old := f.ping; old != nil && !old.busy {
		if !old.at.After(a.at) {
			a.at = old.at
		}
		if *old == a {
			return a.at, nil
		}
	}
	f.ping = &a
	return a.at, j.write(a.line(hash, pingKey), true)
}

// hasRead ends a job to read a feed, if none has come in its place.
func (j *jobs) hasRead(hash string, a *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.feeds[hash]; f != nil && f.ping == a {
		f.ping = nil
		_ = j.write(hash+"\t"+pingKey+"\n", false)
		j.forget(hash)
	}
}

// documents returns the documents that are to be recorded, by feed.
func (j *jobs) documents() map[string]feedState {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := map[string]feedState{}
	for hash, f := range j.feeds {
		if f.newest != nil {
			all[hash] = *f.newest
		}
	}
	return all
}

// document returns the document of a feed that is to be recorded; nil for none.
func (j *jobs) document(hash string) *feedState {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.feeds[hash]; f != nil {
		return f.newest
	}
	return nil
}

// notRecorded has a document recorded again later, after the first attempt has failed.
func (j *jobs) notRecorded(hash string, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.feeds[hash]; f != nil && f.newest != nil {
		f.record = job{}
		f.record.retry(now)
	}
}

// hasRecorded ends the job to record a document.
func (j *jobs) hasRecorded(hash string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.feeds[hash]; f != nil && f.newest != nil {
		f.newest, f.record = nil, job{}
		_ = j.write(hash+"\t"+docKey+"\n", false)
		j.forget(hash)
	}
}

// update adds subscribers who must have a new document, and the job to record it. They are
// durable when update returns. It returns the content that nobody needs any more.
func (j *jobs) update(hash string, doc feedState, keys []string, c *content, now time.Time) (older *content, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.of(hash)
	var b strings.Builder
	var added []string
	b.WriteString(doc.line(hash))
	for _, key := range keys {
		if f.left[key] == nil {
			f.left[key] = &job{}
			b.WriteString(f.left[key].line(hash, key))
			added = append(added, key)
		}
	}
	if err := j.write(b.String(), true); err != nil {
		for _, key := range added {
			delete(f.left, key)
		}
		j.forget(hash)
		return nil, err
	}
	for _, key := range keys {
		if a := f.left[key]; a.tries > 0 && now.Sub(a.last) >= extraAfter {
			a.extra = true
		}
	}
	older, f.content = f.content, c
	f.newest = &doc
	f.version++
	f.fresh = true
	return older, nil
}

// running returns the pass of a feed that has not ended; nil for none.
func (j *jobs) running(hash string) *pass {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.feeds[hash]; f != nil {
		return f.running
	}
	return nil
}

// A pass is the attempts to notify subscribers of a feed that were due at one moment.
type pass struct {
	hash, feed string // the feed, and its URL
	version    int
	fresh      bool // the first with this version
	few        bool // so few subscribers that the log names each
	keys       []string
	content    *content      // nil if it must be read again
	done       chan struct{} // closed at the end

	missed int      // subscribers whose ladder has ended
	struck []string // those of them who did not answer with success
}

// of returns the job for a subscriber, if no later pass has it; else nil. The caller holds
// mu.
func (p *pass) of(j *jobs, key string) (*feedJobs, *job) {
	f := j.of(p.hash)
	if a := f.left[key]; a != nil && a.version == p.version {
		return f, a
	}
	return f, nil
}

// take begins an attempt, unless a newer document is there, whose pass has the subscriber.
func (j *jobs) take(p *pass, key string, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, a := p.of(j, key)
	if a == nil || a.busy || p.version != f.version {
		return false
	}
	a.busy = true
	a.extra = a.extra && !a.due(now, mostAfter)
	return true
}

// hasTold ends the attempts at a subscriber who was notified or has ended. If the feed was
// updated meanwhile, the subscriber stays for the newer document: one that ended may have
// registered again before the update.
func (j *jobs) hasTold(p *pass, key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, a := p.of(j, key)
	switch {
	case a == nil:
	case p.version != f.version:
		*a = job{}
		_ = j.write(a.line(p.hash, key), false)
	default:
		delete(f.left, key)
		_ = j.write(p.hash+"\t"+key+"\n", false)
	}
}

// failed ends an attempt that failed. An attempt besides the ladder leaves the ladder as it
// is. The next attempt is not made before the time after.
func (j *jobs) failed(p *pass, key string, now, after time.Time, unread bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, a := p.of(j, key)
	if a == nil {
		return
	}
	a.busy, a.last, a.unread = false, now, unread
	if a.extra {
		a.extra = false
	} else if a.tries++; ladder.Over(a.tries) {
		// Before the strike: one that a kill prevents is better than two.
		delete(f.left, key)
		_ = j.write(p.hash+"\t"+key+"\n", false)
		if p.missed++; !unread {
			p.struck = append(p.struck, key)
		}
		return
	} else {
		a.at = now.Add(ladder.Wait(a.tries, 0, 0))
	}
	if after.After(a.at) {
		a.at = after
	}
	_ = j.write(a.line(p.hash, key), false)
}

// postpone leaves a subscriber alone until a time.
func (j *jobs) postpone(p *pass, key string, until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, a := p.of(j, key); a != nil {
		a.extra, a.at = false, until
	}
}

// end ends a pass. It returns how many subscribers wait for another attempt, and when the
// first of these is due.
func (j *jobs) end(p *pass, now time.Time) (left int, next time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.of(p.hash)
	for _, a := range f.left {
		if !a.busy && a.at.After(now) {
			if left++; left == 1 || a.at.Before(next) {
				next = a.at
			}
		}
	}
	if f.running == p {
		f.running = nil
	}
	j.forget(p.hash)
	return left, next
}

// isKey reports whether a text is a [subscription.key] or [hashOf] a feed.
func isKey(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }
