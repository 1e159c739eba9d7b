package fetcher

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// Reason is the reason why a feed is fetched.
type Reason int

const (
	Due    Reason = iota // the interval of the feed is over
	Marked               // the feed has a due marker
	Forced               // fetched whether or not it is due
	Named                // as Forced, and the user named the feed: a failure is an error
)

// Want selects what to fetch of a feed besides its document.
type Want struct {
	Archives bool // all archives
	Pages    int  // number of pages of a paged feed, including the first; [AllPages] for all, 0 for none
	FullText bool // also for unread entries that were delivered without an article
}

// history reports whether w includes older documents.
func (w Want) history() bool { return w.Archives || w.Pages != 0 }

// task is a feed to fetch.
type task struct {
	hash, url, host string
	reason          Reason
	want            Want
}

func newTask(hash, url string, reason Reason) task {
	// A feed without a host does not wait for other feeds.
	return task{hash: hash, url: url, host: cmp.Or(fetch.HostKey(url), hash), reason: reason}
}

// VisitResult is the result of a visit of a feed.
type VisitResult struct {
	Summary       // counts this feed alone
	Err     error // the reason of a failure
	task    task
	walk    bool      // the archives or pages are to be walked
	began   time.Time // start of the visit; zero if the document was incomplete
	joined  bool      // the document has no entries, or some that were delivered before, so none is missing between
}

// Summary counts the results of a run.
type Summary struct {
	Feeds       int
	Fetched     int // a document was received
	Unchanged   int // part of Fetched: the document was the same as last time
	NotModified int // 304
	Failed      int // because of the server, the network or the document
	Broken      int // because of this machine: disk, permissions
	Busy        int // locked by another process
	Skipped     int // no longer due, or stopped
	New         int // entries delivered
	Updated     int // new versions of older entries delivered

	// Requested and Reused count archives and pages: requested ones, and ones that had been fetched
	// before.
	Requested, Reused int

	spooled int // documents that wait in the spool since the walk was stopped
}

// add adds the counts of o, except Feeds.
func (s *Summary) add(o Summary) {
	s.Fetched += o.Fetched
	s.Unchanged += o.Unchanged
	s.NotModified += o.NotModified
	s.Failed += o.Failed
	s.Broken += o.Broken
	s.Busy += o.Busy
	s.Skipped += o.Skipped
	s.New += o.New
	s.Updated += o.Updated
	s.Requested += o.Requested
	s.Reused += o.Reused
	s.spooled += o.spooled
}

// String returns the summary line.
func (s Summary) String() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, humanize.Group(int64(n))+" "+what)
		}
	}
	add(s.Fetched, "fetched")
	add(s.NotModified, "not modified")
	add(s.Failed+s.Broken, "failed")
	add(s.Busy, "busy")
	add(s.Skipped, "not due any more")
	line := humanize.Count(s.Feeds, "feed") + ": " + cmp.Or(strings.Join(parts, ", "), "nothing done")
	entries := humanize.Count(s.New, "new entry")
	if s.Updated > 0 {
		entries += ", " + humanize.Group(int64(s.Updated)) + " updated"
	}
	if s.Requested+s.Reused > 0 {
		entries += fmt.Sprintf("; history: %s requested, %s reused", humanize.Count(s.Requested, "document"),
			humanize.Group(int64(s.Reused)))
	}
	return line + "; " + entries
}
