package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/lektordir"
)

// editOf returns the flags to set and to clear for the tags that a request adds and removes. States that the server
// does not know, and labels other than those of flags, change nothing.
func (v *View) editOf(add, remove []string) (set, unset string) {
	for _, id := range remove {
		if s, ok := greader.ParseStream(id); ok && id != "" {
			unset += v.flagsOf(s)
		}
	}
	for _, id := range add {
		s, ok := greader.ParseStream(id)
		if !ok || id == "" {
			continue
		}
		if s == (greader.Stream{Kind: greader.State, Name: greader.KeptUnread}) {
			unset += "S"
		}
		set += v.flagsOf(s)
	}
	// A tag that is added counts more than the same one removed.
	return set, strings.Map(func(c rune) rune {
		if strings.ContainsRune(set, c) {
			return -1
		}
		return c
	}, unset)
}

// flagsOf returns the flag of a stream, "" if it has none.
func (v *View) flagsOf(s greader.Stream) string {
	switch {
	case s.Kind == greader.Label && len(v.feedsIn(s.Name, allFolders)) == 0:
		return v.flag(s.Name)
	case s.Kind == greader.State && s.Name == greader.Read:
		return "S"
	case s.Kind == greader.State && s.Name == greader.Starred:
		return "F"
	}
	return ""
}

// editTag implements edit-tag. Unknown ids are passed over: a client may send marks of entries
// that were removed meanwhile. A label that is added and that nothing has gets a flag; without items, it
// becomes a folder.
func (c *request) editTag() error {
	labels := folders(c.values["a"])
	if len(c.values["i"])+len(labels) == 0 {
		return bad("i: no item")
	}
	v, err := c.currentView()
	if err == nil {
		v, err = v.withLabels(labels, len(c.values["i"]) == 0)
	}
	if err != nil {
		return err
	}
	set, unset := v.editOf(c.values["a"], c.values["r"])
	_, err = v.Mark(v.Items(greader.ParseIDs(c.values["i"])), set, unset)
	return err
}

// moving calls move with the mover of a client: its marks within ten minutes have one journal of undo. It returns
// the part of the journal that the moves have.
func (v *View) moving(move func(m *undo.Mover, moved map[string]bool)) undo.Span {
	lib, moved := v.request.lib, map[string]bool{}
	lib.marking.Lock()
	defer lib.marking.Unlock()
	defer func() { v.request.syncSoon(lib, moved) }()
	m := undo.Moving(v.Store, "lektor-serve")
	m.Continue(&lib.marks, v.request.auth)
	move(m, moved)
	m.Close()
	return m.Span()
}

// Mark sets and clears flags of entries, except of those that have them so. The error is that of the first of them that
// could not be marked.
func (v *View) Mark(entries []Entry, set, unset string) (done Done, err error) {
	var refs []lektordir.Ref
	for _, at := range entries {
		flags := at.Flags().String()
		missing := func(c rune) bool { return !strings.ContainsRune(flags, c) }
		if strings.ContainsFunc(set, missing) || strings.ContainsAny(flags, unset) {
			refs = append(refs, at.Ref())
			if strings.Contains(set, "S") {
				v.request.lib.seen.add(at.Key, v.Store.Now)
			}
		}
	}
	failed := 0
	done.Span = v.moving(func(m *undo.Mover, moved map[string]bool) {
		for i, ref := range refs {
			moved[ref.Feed] = true
			m.Announce(refs[i:], set, unset)
			switch _, bad := m.SetFlags(ref, set, unset); {
			case bad == nil:
				done.Count++
			case !errors.Is(bad, fs.ErrNotExist) && !undo.Removed(bad):
				failed++
				err = cmp.Or(err, bad)
			}
		}
	})
	if failed > 1 {
		err = fmt.Errorf("%d of %d entries could not be marked: %w", failed, len(entries), err)
	}
	return done, err
}

// markAll implements mark-all-as-read: for the entries that are in the lektor-dir when the request
// comes, or for those of them that were delivered up to the time ts, inclusive. Without ts no times
// are compared: the list of the entries is made once, so those that come later stay unread.
func (c *request) markAll() error {
	stream, ok := greader.ParseStream(c.values.Get("s"))
	if !ok || c.values.Get("s") == "" {
		return bad("s: the id of a stream is missing or malformed")
	}
	until := time.UnixMicro(math.MaxInt64)
	if ts := c.values.Get("ts"); strings.Trim(ts, "0") != "" { // FreshRSS takes 0 for no time
		if until, ok = greader.ParseStamp(ts); !ok {
			return bad("ts: not a time")
		}
	}
	v, err := c.currentView()
	if err != nil {
		return err
	}
	var found []Entry
	for e := range v.In(stream, 0, 0, true) {
		if e.Unread() && e.Micros() <= until.UnixMicro() {
			found = append(found, e)
		}
	}
	_, err = v.Mark(found, "S", "")
	return err
}
