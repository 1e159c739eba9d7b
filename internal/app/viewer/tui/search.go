package tui

import (
	"context"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/lektordir"
)

// text gives the query that a list is of, "" for what needs none.
func (w wanted) text() string {
	var parts []string
	if w.of.kind == savedNode {
		parts = append(parts, `query:"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w.of.name)+`"`)
	}
	if q := strings.TrimSpace(w.query); q != "" {
		if len(parts) > 0 {
			q = "(" + q + ")"
		}
		parts = append(parts, q)
	}
	return strings.Join(parts, " ")
}

// searching is a search at work. It goes through the entries in the order in which they
// are listed, so that what is found first stands first, and tells from time to time.
type searching struct {
	wanted
	text  string
	shelf *shelf
	keep  *kept
	seq   int
	// marked is what is being marked.
	marked []*moves

	query Query
	rest  []*item // that are still to be asked about; nil before it has begun
	whole bool    // their dates are known
	found []*item
}

// A search asks about so many entries at once, and tells after so long.
const (
	searchChunk = 256
	searchPause = 100 * time.Millisecond
)

// step searches for a while.
func (s *searching) step(ctx context.Context, d Disk) tea.Cmd {
	return func() tea.Msg {
		began := time.Now()
		msg := listMsg{seq: s.seq, marked: s.marked}
		if s.rest == nil {
			if s.query, msg.err = d.Query(ctx, s.text); msg.err != nil {
				return msg
			}
			found, ok := s.query.Find(ctx)
			refs := s.shelf.entries(s.of, nil)
			// A saved query shows what is unread, as ls does, unless it says otherwise.
			if s.of.kind == savedNode && s.wanted.query == "" && !s.all && !s.query.State {
				refs = slices.DeleteFunc(refs, func(r lektordir.Ref) bool { return !r.Unread() && !s.keep.has(keyOf(r)) })
			}
			if ok {
				in := make(map[key]bool, len(found))
				for _, r := range found {
					in[keyOf(r)] = true
				}
				refs = slices.DeleteFunc(refs, func(r lektordir.Ref) bool { return !in[keyOf(r)] })
				msg.items, msg.whole = sorted(ctx, d, refs, s.oldest)
				msg.items = overlaid(msg.items, s.marked)
				return msg
			}
			s.rest, s.whole = sorted(ctx, d, refs, s.oldest)
		}
		// What is shown is not written to any more.
		s.found = s.found[:len(s.found):len(s.found)]
		for len(s.rest) > 0 && ctx.Err() == nil && time.Since(began) < searchPause {
			n := min(searchChunk, len(s.rest))
			refs := make([]lektordir.Ref, n)
			for i, it := range s.rest[:n] {
				refs[i] = it.ref
			}
			for i, yes := range s.query.Match(ctx, refs) {
				if yes {
					s.found = append(s.found, s.rest[i])
				}
			}
			s.rest = s.rest[n:]
		}
		msg.items, msg.whole = overlaid(slices.Clone(s.found), s.marked), s.whole
		if len(s.rest) > 0 && ctx.Err() == nil {
			msg.rest = s.step(ctx, d)
		}
		return msg
	}
}
