package server

import (
	"context"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// elsewhere knows the links that entries of several feeds have. To ask the index takes milliseconds, too long for each
// entry that is shown, so it is asked in the background.
type elsewhere struct {
	running sync.WaitGroup

	mu    sync.Mutex
	busy  bool
	asked time.Time
	links map[string][]lektordir.Ref // by the form of [feedurl.Article]
}

// askAgain is how long the answer of the index is used.
const askAgain = 5 * time.Minute

// Elsewhere returns the entries of other feeds that have the same link as an entry, as they were a few minutes ago. It
// returns none without an index.
func (v *View) Elsewhere(r *entrystore.Record) (list []Entry) {
	link := feedurl.Article(r.URL())
	e := &v.request.lib.elsewhere
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.busy && v.Store.Now.Sub(e.asked) >= askAgain {
		e.busy = true
		e.running.Go(func() { e.ask(v.Store) })
	}
	for _, ref := range e.links[link] {
		if ref.Feed == r.Ref.Feed {
			continue
		}
		if key := v.KeyOf(ref); key != 0 {
			at, _ := v.Item(key)
			list = append(list, at)
		}
	}
	return list
}

// ask asks the index for the links that entries of several feeds have.
func (e *elsewhere) ask(s *entrystore.Store) {
	repeat, _ := query.Parse("is:repeat")
	of, found := map[string]string{}, map[string][]lektordir.Ref{}
	list, ok, _ := s.Indexed(context.Background(), entrystore.Selection{Query: repeat, All: true})
	for _, r := range list {
		if link := feedurl.Article(r.URL()); link != "" {
			of[link] = ""
		}
	}
	if ok && len(of) > 0 {
		list, _, _ = s.Indexed(context.Background(), entrystore.Selection{Query: &query.Query{}, All: true, Links: of})
		for _, r := range list {
			link := feedurl.Article(r.URL())
			found[link] = append(found[link], r.Ref)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.links, e.asked, e.busy = found, s.Now, false
}
