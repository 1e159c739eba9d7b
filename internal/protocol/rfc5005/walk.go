package rfc5005

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// Stored is an archive whose entries are stored.
type Stored struct {
	URL   string // the link that led to it
	Final string // the URL after redirects
	Self  string // its self link, if valid; or ""
	Prev  string // the archive before it, "" for the first archive
	// Digest is the SHA-256 of the document, in hexadecimal; Time is the time when its entries were
	// stored.
	Digest string
	Time   time.Time
}

// Record finds archives by each of their URLs. The zero value is empty.
type Record struct {
	byURL  map[string]Stored
	bySelf map[string]Stored
	n      int
}

// Add adds an archive. It replaces an archive with the same URL.
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

// Find returns the archive with a URL: preferably its requested URL, or the URL after redirects,
// rather than its self link, which might be wrong.
func (r *Record) Find(url string) (Stored, bool) {
	s, ok := r.byURL[url]
	if !ok {
		s, ok = r.bySelf[url]
	}
	return s, ok
}

// Forget removes the archive with a URL, under all of its URLs.
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

// before returns an archive that names s as the archive before it.
func (r *Record) before(s Stored) (newer Stored, ok bool) {
	for _, o := range r.byURL {
		if old, ok := r.Find(o.Prev); ok && old.Final == s.Final && o.Final != s.Final {
			return o, true
		}
	}
	return Stored{}, false
}

// Len returns the number of archives.
func (r *Record) Len() int { return r.n }

// Limits are the limits of a walk; 0 means no limit. Only requested documents count, so that the
// next walk continues after a limit.
type Limits struct {
	Documents int
	Entries   int
	Bytes     int64 // size of the documents, after decompression
}

// Names of the flags that set the [Limits], without dashes.
const (
	FlagDocuments = "limit-documents"
	FlagEntries   = "limit-entries"
	FlagBytes     = "limit-bytes"
)

// Stop is the reason why a walk ended before the first archive, or a link is not followed.
type Stop struct {
	URL    string // URL of the archive that is missing, or of the link
	Reason string // one line
}

func (s *Stop) Error() string {
	return fmt.Sprintf("%s: %s", feedurl.Brief(feedurl.Public(s.URL)), s.Reason)
}

// Baseline ends an automatic walk, because entries before it are not new. With the zero value, the
// walk continues to the first archive.
type Baseline struct {
	// URL is the archive that the subscription document named when no entry was missing; "" if it
	// named none.
	URL string
	// Since is the start of the last visit after which no entry was missing.
	Since time.Time
}

// overlap is how much older than [Baseline].Since an unknown entry may be to be new: clocks differ,
// and a date may be that of a draft.
const overlap = 24 * time.Hour

// Set reports whether there is a baseline.
func (b Baseline) Set() bool { return !b.Since.IsZero() }

// Behind reports whether all entries of a document are older than the baseline, so that no older
// archive has new entries. versions has the dates of its entries, zero if unknown; delivered has
// the delivery times of known entries, which replace missing dates. Behind returns false for an
// empty document.
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

// Skipped returns the number of unknown entries of a document that are not News. The arguments are
// those of [Baseline.Behind].
func (b Baseline) Skipped(versions, delivered map[string]time.Time) (n int) {
	for id, date := range versions {
		if _, known := delivered[id]; !known && !b.News(date) {
			n++
		}
	}
	return n
}

// News reports whether an unknown entry of this date must be delivered. An entry without a date
// must.
func (b Baseline) News(date time.Time) bool {
	return date.IsZero() || !date.Before(b.Since.Add(-overlap))
}

// Walk is a walk from a subscription document through its archives, from newer to older ones. After
// each [Walk.Next] the caller fetches the archive and calls [Walk.Got], [Walk.Arrived] or
// [Walk.Fail]. A Walk is not safe for concurrent use.
type Walk struct {
	// Optional; set them before the first call.
	Limits   Limits
	Baseline Baseline // the walk ends there, as if it were the first archive
	// Gap is the archive at which the last walk ended early, or "". Without it, a walk with a
	// baseline ends at a recorded archive. With it, recorded archives are passed, to reach Gap and
	// other missing archives behind it.
	Gap string
	// Later skips Gap, as it failed before and its retry is not due.
	Later bool

	record  *Record
	next    string         // "" at the end
	from    string         // the document that named it
	trail   []string       // the archives passed; "" for one requested in this walk
	broken  []string       // archives of trail; one of them has the link that stopped the walk
	visited map[string]int // URLs, with the length of trail when each was passed
	stop    *Stop
	waits   bool // the walk ended at Gap
	known   int
	spent   Limits // by requested documents
}

// Forget removes a recorded archive, so that it is requested again.
func (w *Walk) Forget(url string) { w.record.Forget(url) }

// NewWalk returns a walk that starts at the first archive that the subscription document names. own
// are the URLs of that document; links are checked from the first. record holds the stored
// archives; only [Walk.Forget] changes it.
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

// Next returns the URL of the next archive to fetch, and of the document that named it. It passes
// recorded archives. At the end of the walk ok is false; [Walk.Stopped] returns the reason if that
// is not the end of the archives.
func (w *Walk) Next() (url, from string, ok bool) {
	for w.stop == nil && w.next != "" {
		if w.Baseline.Set() && w.next == w.Baseline.URL {
			break
		}
		if w.loops(w.next, "this one was passed before") {
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
			w.Fail(err.Reason, true)
			break
		}
		return w.next, w.from, true
	}
	w.next = ""
	return "", "", false
}

// pass continues behind an archive. stale is its URL, or "" if it was requested in this walk.
func (w *Walk) pass(s Stored, stale string) {
	at := len(w.trail)
	w.visited[w.next], w.visited[s.URL], w.visited[s.Final] = at, at, at
	w.from, w.next, w.trail = s.Final, s.Prev, append(w.trail, stale)
}

// loops reports whether an archive was passed before, and then ends the walk. Each link of the loop
// may be wrong, most likely the last one.
func (w *Walk) loops(url, reason string) bool {
	begin, passed := w.visited[url]
	if !passed {
		return false
	}
	w.Fail("the archives form a loop: "+reason, true)
	if len(w.broken) == 0 {
		w.broken = slices.DeleteFunc(slices.Clone(w.trail[begin:]), func(u string) bool { return u == "" })
	}
	return true
}

// End ends the walk after the last archive, as if it were the first of the feed.
func (w *Walk) End() { w.next = "" }

// May returns nil if the limits permit another request; otherwise it ends the walk and returns the
// reason.
func (w *Walk) May() *Stop {
	spent, flag := "", ""
	switch {
	case w.Limits.Documents > 0 && w.spent.Documents >= w.Limits.Documents:
		spent, flag = humanize.Count(w.spent.Documents, "document"), FlagDocuments
	case w.Limits.Entries > 0 && w.spent.Entries >= w.Limits.Entries:
		spent, flag = humanize.Count(w.spent.Entries, "entry"), FlagEntries
	case w.Limits.Bytes > 0 && w.spent.Bytes >= w.Limits.Bytes:
		spent, flag = humanize.Bytes(w.spent.Bytes), FlagBytes
	}
	if flag != "" {
		w.Fail(fmt.Sprintf("the walk ended here after %s; the next one goes on from here, and --%s raises the limit",
			spent, flag), false)
	}
	return w.stop
}

// Count adds a requested document to the totals of the limits.
func (w *Walk) Count(entries int, bytes int64) {
	w.spent.Documents++
	w.spent.Entries += entries
	w.spent.Bytes += bytes
}

// Arrived records the URL, after redirects, of the archive that Next returned. If an archive with
// that URL is stored, it returns that, and the walk continues behind it. An error ends the walk.
func (w *Walk) Arrived(final string) (known *Stored, err error) {
	final = Normal(final)
	if err := Check(w.next, final); err != nil {
		w.Fail("it redirects to "+feedurl.Brief(feedurl.Public(final))+": "+err.Reason, true)
		return nil, w.stop
	}
	if final != w.next && w.loops(final, "it redirects to "+feedurl.Brief(final)+", which was passed before") {
		return nil, w.stop
	}
	s, ok := w.record.Find(final)
	if !ok {
		return nil, nil
	}
	// An archive that moved keeps its place in the chain. But if another archive names this
	// one, it has another place, and the archives between would be skipped.
	if newer, ok := w.record.before(s); ok {
		w.Fail("it redirects to "+feedurl.Brief(final)+", which is the archive before "+feedurl.Brief(newer.Final),
			true)
		return nil, w.stop
	}
	s.URL = w.next
	if w.pass(s, s.Final); w.Baseline.Set() && w.Gap == "" {
		w.End()
	}
	return &s, nil
}

// Got continues behind the archive that Next returned. It returns the record of the archive,
// without digest and time.
func (w *Walk) Got(d Document) Stored {
	s := Stored{URL: w.next, Final: d.URL, Self: d.Self, Prev: d.Prev}
	w.pass(s, "")
	return s
}

// Fail ends the walk at the archive that Next returned last. link reports whether the link to it is
// the cause.
func (w *Walk) Fail(reason string, link bool) {
	w.stop = &Stop{URL: w.next, Reason: reason}
	if last := len(w.trail) - 1; link && last >= 0 && w.trail[last] != "" {
		w.broken = w.trail[last:]
	}
}

// Stopped returns the reason why the walk ended early; nil if it reached the first archive or the
// baseline.
func (w *Walk) Stopped() *Stop { return w.stop }

// Broken returns the URLs of recorded archives, one of which has the link that stopped the walk.
// Its publisher may have corrected the link since.
func (w *Walk) Broken() []string { return w.broken }

// Waits reports whether the walk ended at an archive whose retry is not due.
func (w *Walk) Waits() bool { return w.waits }

// Known returns the number of recorded archives that were passed.
func (w *Walk) Known() int { return w.known }
