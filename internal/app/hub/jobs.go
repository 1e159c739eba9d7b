package hub

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/filelog"
	"github.com/lektordir/lektor/internal/http/limiter"
)

// jobs is the table of pending work, by feed: reading the feed for a ping, and notifying
// its subscribers. Handlers add jobs, and [Hub.hurry] begins those that are due. Jobs are
// in a log, too, so a restarted hub continues after a kill; it notifies twice only the
// subscribers that were being notified at the kill. A table is safe for concurrent use.
//
// The log has a line for each change, with tabs between the fields:
//
//	FEED KEY TRIES TIME                   notify a subscriber at TIME; TRIES attempts have failed
//	FEED ping TRIES TIME URL CALLER       read the feed at URL; TRIES readings have failed
//	FEED document LENGTH TIME URL DIGEST  subscribers know this document, or have a job
//	FEED KEY, FEED ping                   the job is done
//
// The jobs of an update and its document are one append, and then the document is recorded in the file
// of the feed. After a kill, the next hub records it, so the same update is never detected again.
type jobs struct {
	mu      sync.Mutex
	log     *filelog.Log
	compact int64                // size at which the log is compacted, in bytes
	stale   bool                 // the log lacks lines that could not be written
	feeds   map[string]*feedJobs // by hash
	// documents are those of the log of an earlier hub, by hash of the feed.
	documents map[string]feedState
}

// feedJobs are the jobs of a feed.
type feedJobs struct {
	ping    *job            // nil for none
	pending map[string]*job // subscribers without the newest document, by key
	version int             // number of the document; each update increments it
	fresh   bool            // no round has begun with this version
	content *heldContent    // document for the next round; nil if it must be read again
	running *round          // newest round that has not ended; nil for none
	joins   int             // subscriptions that are being made
}

// job is the job to read a feed, or to notify a subscriber. An attempt that fails is
// repeated after the times of [retrySteps].
type job struct {
	url, caller string // for a reading: URL of the feed, and caller of the ping

	busy    bool      // an attempt is running
	version int       // version that the last round took
	tries   int       // failed attempts in a row
	at      time.Time // when the next attempt is due; zero for now
	rest    time.Time // until then, no extra attempt is made
	extra   bool      // one more attempt is due now, because of an update
}

// retrySteps is the wait after each failed attempt to notify a subscriber or to read a feed for
// a ping (WebSub, section 7: "Hubs SHOULD retry content distribution requests up to
// self-imposed limits").
var retrySteps = limiter.Backoff{Steps: []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute,
	30 * time.Minute}}

const (
	// extraAfter is the minimum age of the last attempt for an extra one after an update.
	extraAfter = 10 * time.Second

	jobsName = "jobs"
	pingKey  = "ping"
	docKey   = "document"

	maxJobs    = 512 << 20 // maximum size of the log, in bytes
	minCompact = 1 << 20
)

// openJobs opens the table, with the jobs of an earlier hub.
func openJobs(dir string, now time.Time) (*jobs, error) {
	log, data, err := filelog.Open(filepath.Join(dir, jobsName), filelog.Options{Max: maxJobs, Perm: 0o600})
	if err != nil {
		return nil, err
	}
	j := &jobs{log: log, compact: minCompact, feeds: map[string]*feedJobs{}, documents: map[string]feedState{}}
	j.resume(string(data), now)
	return j, nil
}

// resume adds the jobs of lines, and sets times that the log does not record. The caller
// holds mu.
func (j *jobs) resume(lines string, now time.Time) {
	for line := range strings.Lines(lines) {
		j.replay(strings.TrimSuffix(line, "\n"))
	}
	for hash, f := range j.feeds {
		for key, a := range f.pending {
			step := retrySteps.Wait(a.tries, 0, 0)
			switch {
			case retrySteps.Over(a.tries): // the hub was killed before it wrote the last line
				delete(f.pending, key)
			case a.tries > 0 && a.at.IsZero():
				a.at = now.Add(step)
			}
			a.rest = a.at.Add(extraAfter - step)
		}
		j.forget(hash)
	}
}

// replay applies a line of the log. It ignores invalid lines.
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
	f := j.feed(hash)
	switch {
	case key == pingKey && len(rest) == 0:
		f.ping = nil
	case key == pingKey && len(rest) == 4:
		if url := rest[2]; hashOf(url) == hash && checkFeed(url) == nil {
			f.ping = &job{tries: n, at: at, url: url, caller: rest[3]}
		}
	case key == docKey && len(rest) == 4:
		if url := rest[2]; hashOf(url) == hash {
			j.documents[hash] = feedState{URL: url, Digest: rest[3], Length: n, Changed: at}
		}
	case !isKey(key):
	case len(rest) == 0:
		delete(f.pending, key)
	case len(rest) == 2:
		f.pending[key] = &job{tries: n, at: at}
	}
}

// line returns the log line of a job.
func (a *job) line(hash, key string) string {
	line := hash + "\t" + key + "\t" + strconv.Itoa(a.tries) + "\t" + timeText(a.at)
	if key == pingKey {
		line += "\t" + a.url + "\t" + a.caller
	}
	return line + "\n"
}

// line returns the log line of a document to record.
func (f *feedState) line(hash string) string {
	return strings.Join([]string{
		hash, docKey, strconv.Itoa(f.Length), timeText(f.Changed), f.URL, f.Digest}, "\t") + "\n"
}

// feed returns the jobs of a feed; it adds the feed if it is missing. The caller holds mu.
func (j *jobs) feed(hash string) *feedJobs {
	f := j.feeds[hash]
	if f == nil {
		f = &feedJobs{pending: map[string]*job{}}
		j.feeds[hash] = f
	}
	return f
}

// forget removes a feed without jobs from the table. If the table is then empty, it empties
// the log. The caller holds mu.
func (j *jobs) forget(hash string) {
	if f := j.feeds[hash]; f != nil && f.ping == nil && f.running == nil && f.joins == 0 &&
		len(f.pending) == 0 {
		delete(j.feeds, hash)
	}
	if len(j.feeds) == 0 && j.log.Size() > 0 {
		j.log.Cut(0)
		j.stale = false
	}
}

// write appends lines to the log. With sync they are durable when write returns. Without
// sync, a lost line costs no more than a second notification. The caller holds mu.
func (j *jobs) write(lines string, sync bool) error {
	if j.log.Size() > j.compact {
		j.rewrite() // before the lines are appended, because the table may lack their jobs
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

// rewrite compacts the log: it writes the jobs of the table to a new one. If that fails,
// for example on a full disk, the old log stays in use. The caller holds mu.
func (j *jobs) rewrite() {
	var b strings.Builder
	for hash, f := range j.feeds {
		if f.ping != nil {
			b.WriteString(f.ping.line(hash, pingKey))
		}
		for key, a := range f.pending {
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

// due reports whether a job is due. A time more than most ahead was set by a wrong clock,
// so the job is due.
func (a *job) due(now time.Time, most time.Duration) bool {
	return !a.at.After(now) || a.at.Sub(now) > most+time.Second
}

// paused reports whether a job waits longer than it does after its number of failures, because a server asked for a
// pause (Retry-After) or for [Options].PingGap.
func (a *job) paused(now time.Time) bool { return a.at.Sub(now) > retrySteps.Wait(a.tries, 0, 0) }

// work is the jobs that are due at one moment.
type work struct {
	pings  map[string]*job // readings, by the hash of the feed
	rounds []*round        // one for each feed with subscribers to notify
	next   time.Time       // when more is due; zero for never
}

// begin returns the jobs that are due, and marks them as begun. most is the longest time
// that a reading waits. A feed without subscribers is not read while a subscription to it is
// being made, because the subscriber would not get the update.
func (j *jobs) begin(now time.Time, most time.Duration, subscribed func(hash string) bool) work {
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
		if a := f.ping; a != nil && !a.busy && (f.joins == 0 || subscribed(hash)) {
			if a.due(now, most) {
				a.busy = true
				w.pings[hash] = a
			} else {
				soonest(a.at)
			}
		}
		if f.running != nil && f.running.version == f.version {
			continue // subscribers that failed in this round wait for its end, so that one reading serves many
		}
		var keys []string
		busy := false
		for key, a := range f.pending {
			switch {
			case a.busy:
				busy = true // the end of the attempt begins another round
			case a.extra, a.due(now, mostAfter):
				a.version = f.version
				keys = append(keys, key)
			default:
				soonest(a.at)
			}
		}
		if len(keys) > 0 || f.fresh && !busy {
			slices.Sort(keys)
			f.running = &round{hash: hash, version: f.version, fresh: f.fresh, keys: keys,
				content: f.content, done: make(chan struct{})}
			f.content, f.fresh = nil, false
			w.rounds = append(w.rounds, f.running)
		}
	}
	return w
}

// read adds a job to read a feed, or makes it due earlier. It returns when the job is due.
// The job is durable when read returns. If it cannot be written, this hub does it anyway.
func (j *jobs) read(hash string, a job) (time.Time, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.feed(hash)
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

// hasRead ends a job to read a feed, unless another one has replaced it.
func (j *jobs) hasRead(hash string, a *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.feeds[hash]; f != nil && f.ping == a {
		f.ping = nil
		_ = j.write(hash+"\t"+pingKey+"\n", false)
		j.forget(hash)
	}
}

// of returns a copy of the jobs of a feed.
func (j *jobs) of(hash string) feedJobs {
	j.mu.Lock()
	defer j.mu.Unlock()
	if f := j.feeds[hash]; f != nil {
		return *f
	}
	return feedJobs{}
}

// update adds a job for each subscriber. The jobs and the document are durable when update returns.
// It returns the content of an older document that is no longer needed.
func (j *jobs) update(hash string, doc feedState, keys []string, c *heldContent, now time.Time) (older *heldContent,
	err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.feed(hash)
	var b strings.Builder
	var added []string
	b.WriteString(doc.line(hash))
	for _, key := range keys {
		if f.pending[key] == nil {
			b.WriteString((&job{}).line(hash, key))
			added = append(added, key)
		}
	}
	if err := j.write(b.String(), true); err != nil {
		j.forget(hash)
		return nil, err
	}
	for _, key := range added {
		f.pending[key] = &job{}
	}
	for _, key := range keys {
		if a := f.pending[key]; a.tries > 0 && !now.Before(a.rest) {
			a.extra = true
		}
	}
	older, f.content = f.content, c
	f.version++
	f.fresh = f.fresh || len(keys) > 0
	j.forget(hash) // if there are no subscribers
	return older, nil
}

// notify adds a job for one subscriber, who does not know the document of the last update.
func (j *jobs) notify(hash, key string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.feed(hash)
	if f.pending[key] != nil {
		return nil
	}
	f.pending[key] = &job{}
	return j.write(f.pending[key].line(hash, key), true)
}

// join adds n to the number of subscriptions to a feed that are being made.
func (j *jobs) join(hash string, n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.feed(hash).joins += n
	j.forget(hash)
}

// round is a set of attempts to notify subscribers of a feed, all due at the same time.
type round struct {
	hash, feed string // hash and URL of the feed
	version    int
	fresh      bool // first round with this version
	keys       []string
	content    *heldContent  // nil if it must be read again
	done       chan struct{} // closed at the end

	missed int      // number of subscribers whose ladder has ended
	struck []string // keys of the missed subscribers that were asked in their last attempt
}

// job returns the jobs of the feed, and the job for a subscriber, nil if a later round took
// it. The caller holds mu.
func (p *round) job(j *jobs, key string) (*feedJobs, *job) {
	f := j.feed(p.hash)
	if a := f.pending[key]; a != nil && a.version == p.version {
		return f, a
	}
	return f, nil
}

// take begins an attempt. It reports false if there is a newer document: its round will
// notify the subscriber.
func (j *jobs) take(p *round, key string, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, a := p.job(j, key)
	if a == nil || a.busy || p.version != f.version {
		return false
	}
	a.busy = true
	a.extra = a.extra && !a.due(now, mostAfter)
	return true
}

// hasNotified ends the job for a subscriber who was notified or has unsubscribed. If the feed
// was updated meanwhile, the job starts again with the newer document, because an
// unsubscribed one may have registered again before the update.
func (j *jobs) hasNotified(p *round, key string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, a := p.job(j, key)
	switch {
	case a == nil:
	case p.version != f.version:
		*a = job{}
		_ = j.write(a.line(p.hash, key), false)
	default:
		delete(f.pending, key)
		_ = j.write(p.hash+"\t"+key+"\n", false)
	}
}

// failed ends an attempt that failed. An extra attempt does not count for the series of attempts. The
// next attempt is not due before the end of a pause.
func (j *jobs) failed(p *round, key string, now time.Time, pause time.Duration, unread bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f, a := p.job(j, key)
	if a == nil {
		return
	}
	a.busy, a.rest = false, now.Add(max(pause, extraAfter))
	if a.extra {
		a.extra = false
	} else if a.tries++; retrySteps.Over(a.tries) {
		// Write this before the strike: after a kill, one strike too few is better than one
		// too many.
		delete(f.pending, key)
		_ = j.write(p.hash+"\t"+key+"\n", false)
		if p.missed++; !unread {
			p.struck = append(p.struck, key)
		}
		return
	} else {
		a.at = now.Add(retrySteps.Wait(a.tries, 0, 0))
	}
	if end := now.Add(pause); end.After(a.at) {
		a.at = end
	}
	_ = j.write(a.line(p.hash, key), false)
}

// end ends a round. It returns the number of subscribers that wait for another attempt, and
// when the first attempt is due.
func (j *jobs) end(p *round, now time.Time) (retryCount int, next time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := j.feed(p.hash)
	for _, a := range f.pending {
		if !a.busy && a.at.After(now) {
			if retryCount++; retryCount == 1 || a.at.Before(next) {
				next = a.at
			}
		}
	}
	if f.running == p {
		f.running = nil
	}
	j.forget(p.hash)
	return retryCount, next
}

// isKey reports whether s has the form of a [subscription.key] or of [hashOf].
func isKey(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }
