package fetcher

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
)

// Reason is why a feed is fetched.
type Reason int

const (
	Due    Reason = iota // its time has come
	Marked               // somebody left a due marker
	Forced               // it is fetched, due or not
	Named                // likewise, and the user named it: a failure is an error
)

// Want is what is wanted of feeds beside their documents.
type Want struct {
	Archives bool // all of them
	Pages    int  // of a paged feed, the first among them; [AllPages] for all, 0 for none
	FullText bool // of unread entries that were delivered without, too
}

// history reports whether older documents are wanted.
func (w Want) history() bool { return w.Archives || w.Pages != 0 }

// task is a feed to fetch.
type task struct {
	hash, url, host string
	reason          Reason
	want            Want
}

func newTask(hash, url string, reason Reason) task {
	// Feeds that come from no host do not wait for each other.
	return task{hash: hash, url: url, host: cmp.Or(fetch.HostKey(url), hash), reason: reason}
}

// Outcome is what became of a feed.
type Outcome struct {
	Summary       // of this feed alone
	Err     error // why it failed
	task    task
	walk    bool      // through its archives or pages is to be made
	began   time.Time // when the visit did, zero if entries of the document are missing
}

// Summary counts what became of the feeds of a run.
type Summary struct {
	Feeds       int
	Fetched     int // a document came
	Unchanged   int // of these, the same as last time
	NotModified int // 304
	Failed      int // for which a server, the network or the document is to blame
	Broken      int // for which this machine is: disk, permissions
	Busy        int // another process fetches them
	Skipped     int // not due any more, or stopped
	New         int // entries delivered
	Updated     int // new versions delivered of entries known before

	// Documents of the history of feeds, archives and pages: those asked for, and
	// those that were had before.
	Requested, Reused int

	kept int // documents that wait in the spool since the walk was stopped
}

// add adds what became of other feeds, or of a walk.
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
	s.kept += o.kept
}

// String is the summary line.
func (s Summary) String() string {
	var parts []string
	add := func(n int, one, many string) {
		if n == 1 {
			parts = append(parts, one)
		} else if n > 1 {
			parts = append(parts, units.Group(int64(n))+" "+many)
		}
	}
	add(s.Fetched, "1 fetched", "fetched")
	add(s.NotModified, "1 not modified", "not modified")
	add(s.Failed+s.Broken, "1 failed", "failed")
	add(s.Busy, "1 busy", "busy")
	add(s.Skipped, "1 not due any more", "not due any more")
	line := units.Count(s.Feeds, "feed") + ": " + strings.Join(parts, ", ")
	if len(parts) == 0 {
		line = units.Count(s.Feeds, "feed") + ": nothing done"
	}
	entries := units.Count(s.New, "new entry")
	if s.Updated > 0 {
		entries += ", " + units.Group(int64(s.Updated)) + " updated"
	}
	if s.Requested+s.Reused > 0 {
		entries += fmt.Sprintf("; history: %s requested, %s reused", units.Count(s.Requested, "document"), units.Group(int64(s.Reused)))
	}
	return line + "; " + entries
}
