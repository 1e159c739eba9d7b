// Package viewer is the room of lektor-view: to select entries, list and
// show them, and to record what was read. Each command is a function of
// options and streams that knows nothing of a command line.
//
// Nothing here takes a lock. Entries may arrive, move and go while a command
// runs; what is gone when it is to be shown is left out, and what the user
// named is looked for where it is now.
package viewer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of every command.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock; its location is the time zone of days and of what is
	// shown. The default is time.Now.
	Now func() time.Time
	// Terminal names the terminal that numbers belong to, see [Terminal].
	Terminal string
}

// viewer is one run of a command.
type viewer struct {
	Common
	dir *lektordir.Dir
	s   *command.Streams
	now time.Time // when the command began

	feeds    sync.Map // hash -> *lektordir.Feed
	warnings atomic.Int64
}

// open opens the lektor-dir.
func (c Common) open(s *command.Streams) (*viewer, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	dir, err := command.OpenDir(c.Dir, &lektordir.Options{Now: c.Now})
	if err != nil {
		return nil, err
	}
	return &viewer{Common: c, dir: dir, s: s, now: c.Now()}, nil
}

// maxWarnings is how many malformed entries are named one by one.
const maxWarnings = 20

// skip warns of an entry or feed that is left out because it is malformed.
func (v *viewer) skip(err error) {
	for _, e := range joined.Errors(err) {
		switch n := v.warnings.Add(1); {
		case n < maxWarnings:
			v.s.Report.Warn("%v; skipped", e)
		case n == maxWarnings:
			v.s.Report.Warn("%v; skipped, and so are others like it (see lektor-fetch check)", e)
		}
	}
}

// report sorts what a walk of the lektor-dir complained of: what is malformed
// is a warning, the rest failures.
func (v *viewer) report(err error) {
	for _, e := range joined.Errors(err) {
		var name *lektordir.NameError
		var bad *lektordir.MalformedError
		switch {
		case errors.As(e, &name), errors.As(e, &bad):
			v.skip(e)
		case errors.Is(e, fs.ErrNotExist):
			// Went while we looked.
		default:
			v.s.Report.Print(e)
		}
	}
}

// feed gives an entry's feed, reading each once.
func (v *viewer) feed(r lektordir.Ref) *lektordir.Feed {
	if f, ok := v.feeds.Load(r.Feed); ok {
		return f.(*lektordir.Feed)
	}
	f, _ := v.feeds.LoadOrStore(r.Feed, v.dir.FeedOf(r))
	return f.(*lektordir.Feed)
}

// parseQuery reads the query on a command line.
func parseQuery(words []string) (*query.Query, error) {
	q, err := query.Parse(strings.Join(words, " "))
	var e *query.Error
	if errors.As(err, &e) {
		return nil, &command.UsageError{Message: err.Error(), Hint: cmp.Or(e.Hint, "see lektor-query(7)")}
	}
	return q, err
}

// selection says which entries are wanted.
type selection struct {
	query *query.Query
	all   bool // read ones too, whatever the query says
	// newest limits to so many of the newest; 0 does not.
	newest int
	dated  bool // the entries' dates are needed
}

// find gives the entries of a selection, in no order that means anything
// unless newest is set. Malformed ones among those that had to be opened are
// left out with a warning.
func (v *viewer) find(ctx context.Context, sel selection) ([]*record, error) {
	refs, err := v.dir.List(ctx, lektordir.ListOptions{})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	v.report(err)
	m := sel.query.Bind(v.now)
	onlyUnread := !sel.all && !sel.query.MentionsState()
	found := make([]*record, 0, len(refs))
	open := sel.dated || sel.newest > 0
	for _, ref := range refs {
		if onlyUnread && !ref.Unread() {
			continue
		}
		r := &record{v: v, ref: ref}
		if !sel.query.Empty() {
			switch r.match(m) {
			case query.No:
				continue
			case query.Maybe:
				r.open = true
				open = true
			}
		}
		found = append(found, r)
	}
	if open {
		first := sel.query.Fields() &^ lektordir.FieldContent
		parallel(ctx, len(found), func(i int) {
			r := found[i]
			if !v.decide(r, m, first, sel.dated || sel.newest > 0) {
				found[i] = nil
			}
		})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		found = slices.DeleteFunc(found, func(r *record) bool { return r == nil })
	}
	if sel.newest > 0 && len(found) > sel.newest {
		slices.SortFunc(found, byDate)
		found = slices.Clone(found[len(found)-sel.newest:])
	}
	return found, nil
}

// decide reads what is needed to tell whether the entry is wanted: cheap files
// first, the content only if those do not tell.
func (v *viewer) decide(r *record, m *query.Matcher, first lektordir.Fields, dated bool) bool {
	var need lektordir.Fields
	if dated {
		need = lektordir.FieldPubDate
	}
	if !r.open {
		return need == 0 || v.usable(r.read(need))
	}
	if !v.usable(r.read(need | first)) {
		return false
	}
	verdict := r.match(m)
	if verdict == query.Maybe {
		if !v.usable(r.read(first | lektordir.FieldContent | lektordir.FieldType)) {
			return false
		}
		verdict = r.match(m)
		r.forget()
	}
	return verdict == query.Yes
}

// usable reports whether an entry could be read, and says why not. Something
// else in the place of its files is the entry's fault, and no failure of ours;
// what the system refuses is.
func (v *viewer) usable(err error) bool {
	if err == nil {
		return true
	}
	for _, e := range joined.Errors(err) {
		var errno syscall.Errno
		if errors.As(e, &errno) {
			v.report(e)
		} else {
			v.skip(e)
		}
	}
	return false
}

// parallel calls f for 0 to n-1 on all cores. It stops early when ctx ends.
func parallel(ctx context.Context, n int, f func(int)) {
	workers := min(runtime.GOMAXPROCS(0), (n+15)/16)
	if workers <= 1 {
		for i := range n {
			if ctx.Err() != nil {
				return
			}
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for ctx.Err() == nil {
				// A handful at a time, so that the counter is no bottleneck.
				end := int(next.Add(16))
				for i := end - 16; i < min(end, n); i++ {
					f(i)
				}
				if end >= n {
					return
				}
			}
		})
	}
	wg.Wait()
}

// Terminal names the terminal of this process, so that each has a list of its
// own: the device behind one of the standard streams, or "none".
func Terminal() string {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if name := terminalOf(f); name != "" {
			return name
		}
	}
	return "none"
}
