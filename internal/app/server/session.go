package server

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/lektordir"
)

// The functions of this file are for package page, whose requests are those of the API in other words.

// Options returns the options of the server.
func (s *Server) Options() Options { return s.opts }

// Warn reports an error of a request.
func (s *Server) Warn(err error) { s.s.Report.Warn("%v", err) }

// Accounts returns the users and tokens of the server.
func (s *Server) Accounts() Accounts { return s.accounts }

// Open returns the lektor-dir of the user with a token, for one request. Feeds are in all their folders. The error
// is accounts.ErrDenied if the token is not valid.
func (s *Server) Open(w http.ResponseWriter, r *http.Request, token string) (*View, error) {
	user, err := s.accounts.Check(token)
	if err != nil {
		return nil, err
	}
	c := &request{Server: s, w: w, r: r, auth: token, user: user}
	c.extend()
	if c.lib, err = s.library(user.Dir); err != nil {
		return nil, err
	}
	v, err := c.currentView()
	if err != nil {
		return nil, err
	}
	v.all, v.Store.Index = true, c.lib.index
	return v, nil
}

// FeedsIn returns the feeds of a stream, all if it is neither a folder nor a feed.
func (v *View) FeedsIn(s greader.Stream) (list []*catalog.Feed) {
	switch s.Kind {
	case greader.Feed:
		if f := v.Feed(v.feedOf(s.Name)); f != nil {
			return []*catalog.Feed{f}
		}
		return nil
	case greader.Label:
		in := v.feedsIn(s.Name, allFolders)
		return v.Only(func(f *catalog.Feed) bool { return in[f] }).Feeds
	}
	return v.Feeds
}

// KeyOf returns the key of an entry that is shown, 0 if it is not.
func (v *View) KeyOf(r lektordir.Ref) greader.ID {
	want := catalog.IDOf(r)
	// Keys that collide are consecutive.
	for key := greader.IDOf(r.Unique, r.Delivered()); ; key++ {
		e, ok := v.Item(key)
		if !ok {
			return 0
		}
		if e.ID() == want {
			return key
		}
	}
}

// Title returns the title of a feed, without a password or command.
func Title(f *catalog.Feed) string { return titleOf(f.About.Feed) }

// Trouble returns the error of the last fetch of a feed in a few words, "" for none.
func (v *View) Trouble(f *catalog.Feed) string {
	if text := cmp.Or(f.About.NeverRead, schedule.LastError(v.dir, f.Hash)); f.About.Subscribed && text != "" {
		return brief(text)
	}
	return ""
}

// Done is a change that can be taken back.
type Done struct {
	Count int
	undo.Span
}

// TakeBack takes back a change. What was changed again since stays as it is.
func (v *View) TakeBack(span undo.Span) (done Done, err error) {
	c, err := span.Read(v.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return done, &httpError{http.StatusGone, "this cannot be taken back any more"}
	}
	if err != nil {
		return done, err
	}
	done.Span = v.moving(func(m *undo.Mover, moved map[string]bool) {
		for _, move := range slices.Backward(c.Moves) {
			set, unset := move.Back()
			moved[move.To.Feed] = true
			_, failed := m.SetFlags(move.To, set, unset)
			switch {
			case failed == nil:
				done.Count++
			case !errors.Is(failed, fs.ErrNotExist) && !undo.Removed(failed):
				err = failed
				return
			}
		}
	})
	if err != nil || len(c.Changes) == 0 {
		return done, err
	}
	err = v.request.edit(func(e *editor) error {
		for _, change := range c.Changes {
			var outcomes []subscriptions.Outcome
			if err := e.whenFree(func() (err error) {
				outcomes, err = subscriptions.TakeBack(e.w, e.dir, change.Hash, []subscriptions.Change{change}, false)
				return err
			}); err != nil {
				return err
			}
			if slices.Contains(outcomes, subscriptions.Restored) {
				done.Count++
			}
		}
		return nil
	})
	return done, err
}

// Subscribe subscribes to a feed, or to that of a page, as quickadd does. The change has no count if it was
// subscribed to before.
func (v *View) Subscribe(url string) (hash string, done Done, err error) {
	err = v.request.edit(func(e *editor) error {
		var err error
		hash, err = e.subscribe(withScheme(strings.TrimSpace(url)), "", nil)
		if done.Span = e.recorded; done.Span != (undo.Span{}) {
			done.Count = 1
		}
		return err
	})
	return hash, done, err
}

// Successor returns the feed that a subscription has become, or the feed itself.
func (v *View) Successor(hash string) *catalog.Feed {
	return v.Feed(cmp.Or(subscriptions.Successor(v.dir, hash), hash))
}

// Fetch leaves due markers for feeds that are subscribed to, and returns how many.
func (v *View) Fetch(feeds []*catalog.Feed) (n int, err error) {
	for _, f := range feeds {
		if !f.About.Subscribed || f.About.Paused {
			continue
		}
		if err := schedule.AddMarker(v.dir, f.Hash); err != nil {
			return n, fmt.Errorf("a due marker: %w", err)
		}
		n++
	}
	return n, nil
}

// Refusal returns the status and the message for a user whose request failed.
func Refusal(err error) (status int, message string) {
	if refused, ok := errors.AsType[*httpError](err); ok {
		return refused.status, refused.message
	}
	return http.StatusInternalServerError, "The lektor-dir cannot be read or written; the log of the server says why."
}

// readHere has the entries that were marked as read through this server, and when. Lists that were made before
// still show them.
type readHere struct {
	mu sync.Mutex
	at map[greader.ID]int64
}

// maxSeen is the number of entries in [readHere] after which it begins anew.
const maxSeen = 10_000

func (s *readHere) add(key greader.ID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil || len(s.at) >= maxSeen {
		s.at = map[greader.ID]int64{}
	}
	s.at[key] = now.UnixMicro()
}

// ReadSince reports whether an entry was marked as read through this server at a time or later.
func (v *View) ReadSince(key greader.ID, micros int64) bool {
	s := &v.request.lib.seen
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.at[key]
	return ok && at >= micros
}
