package history

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/units"
)

// Stored is an archive whose entries are stored.
type Stored struct {
	URL   string // that led to it
	Final string // where it came from after redirects
	Self  string // what it calls itself, if it may; "" for nothing
	Prev  string // the archive before it, "" for the first of all
	// Digest is the SHA-256 of the document, in hexadecimal; Time is when its
	// entries were stored.
	Digest string
	Time   time.Time
}

// Record finds archives by each of their URLs. The zero value has none.
type Record struct {
	byURL  map[string]Stored
	bySelf map[string]Stored
	n      int
}

// Add adds an archive. Of two under one URL the later one counts.
func (r *Record) Add(s Stored) {
	if r.byURL == nil {
		r.byURL, r.bySelf = map[string]Stored{}, map[string]Stored{}
	}
	if _, again := r.Find(s.Final); !again {
		r.n++
	}
	r.byURL[s.URL], r.byURL[s.Final] = s, s
	if s.Self != "" {
		r.bySelf[s.Self] = s
	}
}

// Find finds an archive under any of its URLs: under that by which it was asked for,
// or came, before that by which it calls itself, which might be wrong.
func (r *Record) Find(url string) (Stored, bool) {
	s, ok := r.byURL[url]
	if !ok {
		s, ok = r.bySelf[url]
	}
	return s, ok
}

// Forget makes the archive of a URL one that is not stored, under each of its URLs.
func (r *Record) Forget(url string) {
	s, ok := r.Find(url)
	if !ok {
		return
	}
	for _, m := range []map[string]Stored{r.byURL, r.bySelf} {
		maps.DeleteFunc(m, func(_ string, o Stored) bool { return o.Final == s.Final })
	}
	r.n--
}

// before finds an archive that names another one as the archive before it.
func (r *Record) before(s Stored) (newer Stored, ok bool) {
	for _, o := range r.byURL {
		if old, ok := r.Find(o.Prev); ok && old.Final == s.Final && o.Final != s.Final {
			return o, true
		}
	}
	return Stored{}, false
}

// Len counts the archives.
func (r *Record) Len() int { return r.n }

// Limits bound a walk; 0 means no limit. Only documents that were asked for count,
// so that a walk that ended at a limit goes on by the next one.
type Limits struct {
	Documents int
	Entries   int
	Bytes     int64 // of documents, after decompression
}

// Names of the command-line flags that raise the [Limits], without the dashes.
const (
	FlagDocuments = "limit-documents"
	FlagEntries   = "limit-entries"
	FlagBytes     = "limit-bytes"
)

// Stop is why a walk ended before the first archive of all.
type Stop struct {
	URL    string // of the archive that is missing
	Reason string // one line
}

func (s *Stop) Error() string {
	return fmt.Sprintf("%s: %s", feedurl.Brief(feedurl.Public(s.URL)), s.Reason)
}

// Baseline is the end of a walk that nobody asked for: entries from before it are no news.
// The zero value means none: the walk goes on to the first archive of all.
type Baseline struct {
	// URL is the archive that the subscription document named when nothing was missing;
	// "" when it named none.
	URL string
	// Since is when the last visit began after which nothing was missing.
	Since time.Time
}

// overlap is how much older than [Baseline].Since an entry that is not known may be and
// still count as news: clocks differ, and a date may be that of a draft.
const overlap = 24 * time.Hour

// Set reports whether there is a baseline.
func (b Baseline) Set() bool { return !b.Since.IsZero() }

// Behind reports whether all entries of a document are older than the baseline, so that
// no archive before it has news. versions are the dates of its entries, zero where there
// is none; delivered is when those that are known came, which stands for a missing date.
// An empty document says nothing.
func (b Baseline) Behind(versions, delivered map[string]time.Time) bool {
	for id, date := range versions {
		if date.IsZero() {
			date = delivered[id]
		}
		if date.IsZero() || !date.Before(b.Since) {
			return false
		}
	}
	return b.Set() && len(versions) > 0
}

// News reports whether an entry of this date that is not known is to be delivered. One
// without a date is.
func (b Baseline) News(date time.Time) bool {
	return date.IsZero() || !date.Before(b.Since.Add(-overlap))
}

// Walk is a walk from a subscription document through its archives, to older and
// older ones. [Walk.Next] returns which to get, and [Walk.Got], [Walk.Arrived] or
// [Walk.Fail] take what came of it before the next call. It is not safe for concurrent
// use.
type Walk struct {
	// These may be set before the first call.
	Limits   Limits
	Baseline Baseline // where the walk ends as if that were the first archive
	// Gap is the archive at which the walk before ended too early, "" for none. Without it
	// a walk with a baseline ends at a recorded archive. With it recorded archives are
	// passed, to it and to what may be missing behind it.
	Gap string
	// Later leaves Gap for another time, since it could not be had before.
	Later bool

	record  *Record
	next    string         // "" at the end
	from    string         // the document that named it
	trail   []string       // the archives that were passed; "" for one that was asked for in this walk
	broken  []string       // those of trail of which one has the link that stopped the walk
	visited map[string]int // URLs, and how long trail was when each was passed
	stop    *Stop
	waits   bool // it ended at Gap
	known   int
	spent   Limits // by documents that were asked for
}

// Forget makes a recorded archive one that is asked for again.
func (w *Walk) Forget(url string) { w.record.Forget(url) }

// NewWalk begins a walk at the first archive that the subscription document names.
// own are the URLs of that document, the first the one its links are judged from.
// record is what was stored before; only [Walk.Forget] changes it.
func NewWalk(record *Record, first string, own ...string) *Walk {
	w := &Walk{record: record, next: first, visited: map[string]int{}}
	for i, u := range own {
		if u = Normal(u); i == 0 {
			w.from = u
		}
		w.visited[u] = 0
	}
	return w
}

// Next returns the URL of the archive that comes next, and of the document that named
// it. It passes what was stored before. At the end of the walk ok is false, and
// [Walk.Stopped] tells why it is not the end of the archives, if it is not.
func (w *Walk) Next() (url, from string, ok bool) {
	for w.stop == nil && w.next != "" {
		if w.Baseline.Set() && w.next == w.Baseline.URL {
			break
		}
		if w.circle(w.next, "this one was passed before") {
			break
		}
		if s, ok := w.record.Find(w.next); ok {
			if w.Baseline.Set() && w.Gap == "" {
				break
			}
			w.known++
			w.pass(s, s.URL)
			continue
		}
		if w.Later && w.next == w.Gap {
			w.waits = true
			break
		}
		if err := Check(w.from, w.next); err != nil {
			w.Fail(err.(*LinkError).Reason, true)
			break
		}
		return w.next, w.from, true
	}
	w.next = ""
	return "", "", false
}

// pass goes on behind an archive. stale is its URL, or "" if it was asked for in this walk.
func (w *Walk) pass(s Stored, stale string) {
	at := len(w.trail)
	w.visited[w.next], w.visited[s.URL], w.visited[s.Final] = at, at, at
	w.from, w.next, w.trail = s.Final, s.Prev, append(w.trail, stale)
}

// circle ends the walk if an archive was passed before. Each link of the circle may be the
// wrong one, but most likely the last.
func (w *Walk) circle(url, reason string) bool {
	begin, passed := w.visited[url]
	if !passed {
		return false
	}
	w.Fail("the archives go round in a circle: "+reason, true)
	if len(w.broken) == 0 {
		w.broken = slices.DeleteFunc(slices.Clone(w.trail[begin:]), func(u string) bool { return u == "" })
	}
	return true
}

// End ends the walk behind the archive that came last, as if it were the first.
func (w *Walk) End() { w.next = "" }

// May is the reason for which the limits do not let another document be asked for,
// or nil; the walk has ended then.
func (w *Walk) May() *Stop {
	spent, flag := "", ""
	switch {
	case w.Limits.Documents > 0 && w.spent.Documents >= w.Limits.Documents:
		spent, flag = units.Count(w.spent.Documents, "document"), FlagDocuments
	case w.Limits.Entries > 0 && w.spent.Entries >= w.Limits.Entries:
		spent, flag = units.Count(w.spent.Entries, "entry"), FlagEntries
	case w.Limits.Bytes > 0 && w.spent.Bytes >= w.Limits.Bytes:
		spent, flag = units.Bytes(w.spent.Bytes), FlagBytes
	}
	if flag != "" {
		w.Fail(fmt.Sprintf("the walk ended here after %s; the next one goes on from here, and --%s raises the limit", spent, flag), false)
	}
	return w.stop
}

// Count counts a document that was asked for towards the limits.
func (w *Walk) Count(entries int, bytes int64) {
	w.spent.Documents++
	w.spent.Entries += entries
	w.spent.Bytes += bytes
}

// Arrived takes the URL that the archive which Next returned came from, after
// redirects. It returns what is stored under that URL already: the walk then goes
// on behind it. An error ends the walk.
func (w *Walk) Arrived(final string) (known *Stored, err error) {
	final = Normal(final)
	if err := Check(w.next, final); err != nil {
		w.Fail("it redirects to "+feedurl.Brief(feedurl.Public(final))+": "+err.(*LinkError).Reason, true)
		return nil, w.stop
	}
	if final != w.next && w.circle(final, "it redirects to "+feedurl.Brief(final)+", which was passed before") {
		return nil, w.stop
	}
	s, ok := w.record.Find(final)
	if !ok {
		return nil, nil
	}
	// An archive that moved has its old place in the chain. One that another archive
	// leads to has a place of its own, and those between would be passed over.
	if newer, ok := w.record.before(s); ok {
		w.Fail("it redirects to "+feedurl.Brief(final)+", which is the archive before "+feedurl.Brief(newer.Final), true)
		return nil, w.stop
	}
	s.URL = w.next
	if w.pass(s, s.Final); w.Baseline.Set() && w.Gap == "" {
		w.End()
	}
	return &s, nil
}

// Got takes what the archive that Next returned says of others. It returns what is to
// be recorded of it, but for digest and time.
func (w *Walk) Got(d Document) Stored {
	s := Stored{URL: w.next, Final: d.URL, Self: d.Self, Prev: d.Prev}
	w.pass(s, "")
	return s
}

// Fail ends the walk at the archive that Next returned last. link reports whether the
// link that led there is to blame.
func (w *Walk) Fail(reason string, link bool) {
	w.stop = &Stop{URL: w.next, Reason: reason}
	if last := len(w.trail) - 1; link && last >= 0 && w.trail[last] != "" {
		w.broken = w.trail[last:]
	}
}

// Stopped is why the walk ended before the first archive; nil when it has got
// there, or to the baseline.
func (w *Walk) Stopped() *Stop { return w.stop }

// Broken returns the URLs of recorded archives of which one has the link that stopped the
// walk. Its publisher may have mended the link since it was recorded.
func (w *Walk) Broken() []string { return w.broken }

// Waits reports whether the walk ended at an archive that is not to be asked for yet.
func (w *Walk) Waits() bool { return w.waits }

// Known counts the archives that were passed since they are stored.
func (w *Walk) Known() int { return w.known }
