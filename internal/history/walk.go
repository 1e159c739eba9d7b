package history

import (
	"fmt"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
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
	return fmt.Sprintf("%s: %s", fetch.Brief(fetch.Public(s.URL)), s.Reason)
}

// Walk is a walk from a subscription document through its archives, to older and
// older ones. [Walk.Next] says which to get, and is told of it by [Walk.Got]
// before it is asked again. It is not safe for concurrent use.
type Walk struct {
	// These may be set before the first call. Baseline is the archive at which the
	// walk ends as if it were the first, "" for none; Waiting the one that is not to be
	// asked for yet, since it could not be had before.
	Limits            Limits
	Baseline, Waiting string

	record  *Record
	next    string // "" at the end
	from    string // the document that named it
	visited map[string]bool
	stop    *Stop
	waits   bool // it ended at Waiting
	known   int

	documents, entries int
	bytes              int64
}

// NewWalk begins a walk at the first archive that the subscription document names.
// own are the URLs of that document, the first the one its links are judged from.
// record is what was stored before, and is not changed.
func NewWalk(record *Record, first string, own ...string) *Walk {
	w := &Walk{record: record, next: first, visited: map[string]bool{}}
	for i, u := range own {
		if u = Normal(u); i == 0 {
			w.from = u
		}
		w.visited[u] = true
	}
	return w
}

// Next gives the URL of the archive that comes next, and of the document that named
// it. It passes what was stored before. At the end of the walk ok is false, and
// [Walk.Stopped] tells why it is not the end of the archives, if it is not.
func (w *Walk) Next() (url, from string, ok bool) {
	for w.stop == nil && w.next != "" {
		if w.Baseline != "" && w.next == w.Baseline {
			w.next = ""
			break
		}
		if w.visited[w.next] {
			w.Fail("the archives go round in a circle: this one was passed before")
			break
		}
		if s, ok := w.record.Find(w.next); ok {
			w.known++
			w.pass(s)
			continue
		}
		if w.Waiting != "" && w.next == w.Waiting {
			w.waits, w.next = true, ""
			break
		}
		if err := Check(w.from, w.next); err != nil {
			w.Fail(err.(*LinkError).Reason)
			break
		}
		return w.next, w.from, true
	}
	return "", "", false
}

// pass goes on behind an archive that is stored.
func (w *Walk) pass(s Stored) {
	w.visited[w.next], w.visited[s.URL], w.visited[s.Final] = true, true, true
	w.from, w.next = s.Final, s.Prev
}

// May is the reason for which the limits do not let another document be asked for,
// or nil; the walk has ended then.
func (w *Walk) May() *Stop {
	switch l := w.Limits; {
	case l.Documents > 0 && w.documents >= l.Documents:
		w.Fail(fmt.Sprintf("the walk ended here after %s; the next one goes on from here, and --%s raises the limit", units.Count(w.documents, "document"), FlagDocuments))
	case l.Entries > 0 && w.entries >= l.Entries:
		w.Fail(fmt.Sprintf("the walk ended here after %s; the next one goes on from here, and --%s raises the limit", units.Count(w.entries, "entry"), FlagEntries))
	case l.Bytes > 0 && w.bytes >= l.Bytes:
		w.Fail(fmt.Sprintf("the walk ended here after %s; the next one goes on from here, and --%s raises the limit", units.Bytes(w.bytes), FlagBytes))
	}
	return w.stop
}

// Count counts a document that was asked for towards the limits.
func (w *Walk) Count(entries int, bytes int64) {
	w.documents++
	w.entries += entries
	w.bytes += bytes
}

// Arrived tells the URL that the archive which Next gave came from, after
// redirects. It reports what is stored under that URL already: the walk then goes
// on behind it. An error ends the walk.
func (w *Walk) Arrived(final string) (known *Stored, err error) {
	final = Normal(final)
	if err := Check(w.next, final); err != nil {
		w.Fail("it redirects to " + fetch.Brief(fetch.Public(final)) + ": " + err.(*LinkError).Reason)
		return nil, w.stop
	}
	if final != w.next && w.visited[final] {
		w.Fail("the archives go round in a circle: it redirects to " + fetch.Brief(final) + ", which was passed before")
		return nil, w.stop
	}
	if s, ok := w.record.Find(final); ok {
		s.URL = w.next
		w.pass(s)
		return &s, nil
	}
	return nil, nil
}

// Got tells what the archive that Next gave says of others. It gives it as it is to
// be recorded, but for digest and time.
func (w *Walk) Got(d Document) Stored {
	s := Stored{URL: w.next, Final: d.URL, Self: d.Self, Prev: d.Prev}
	w.pass(s)
	return s
}

// Fail ends the walk at the archive that Next gave last.
func (w *Walk) Fail(reason string) { w.stop = &Stop{URL: w.next, Reason: reason} }

// Stopped tells why the walk ended before the first archive; nil when it has got
// there, or to the baseline.
func (w *Walk) Stopped() *Stop { return w.stop }

// Waits tells that the walk ended at an archive that is not to be asked for yet.
func (w *Walk) Waits() bool { return w.waits }

// Known counts the archives that were passed since they are stored.
func (w *Walk) Known() int { return w.known }
