package feedsync

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// seconds returns a time with the precision of documents.
func seconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Second)
}

// Create returns a new item (section 4.1). The caller must set its content.
func Create(id string, when time.Time, by string) (*Item, error) {
	if !IsNSS(id) {
		return nil, fmt.Errorf("%q cannot be the id of an item", brief(id))
	}
	return &Item{ID: id, Version: 1, History: []Update{{seconds(when), by}}}, nil // steps 1 and 2
}

// Update returns the next version of the item after an edit by an endpoint (section 4.2), with the same
// content. deleted makes it a deletion.
func (it *Item) Update(deleted bool, when time.Time, by string) (*Item, error) {
	return it.next(deleted, Update{seconds(when), by}, it.Settled, slices.Concat(it.History, it.Settled))
}

// next returns the next version. Its history has the edit and the previous update, then the updates in
// heads, then the rest of known. If known has an update twice, these are two edits in one second, and both
// are kept.
func (it *Item) next(deleted bool, edit Update, heads, known []Update) (*Item, error) {
	if it.Version >= MaxVersion {
		return nil, &BoundError{it.ID, "its version is the greatest possible"}
	}
	next := it.clone()
	next.Version++ // step 1
	// Step 2: the previous last update becomes the first of the earlier updates. If these are
	// too many, the oldest are dropped (step 2.3).
	previous := it.History[:min(1, len(it.History))]
	history, rest := append([]Update{edit}, previous...), minus(known, previous)
	for _, u := range heads {
		if i := slices.Index(rest, u); i >= 0 {
			history, rest = append(history, u), slices.Delete(rest, i, i+1)
		}
	}
	history = append(history, rest...)
	next.History, next.Settled = history[:min(len(history), 1+KeepUpdates)], nil
	next.Deleted = deleted                     // step 3
	next.Conflict, next.Conflicts = false, nil // step 4
	return next, nil
}

// Moment returns the time for an edit by an endpoint: now, or the next second in which the
// endpoint has no edit of the item. Edits are identified by endpoint and second alone.
func (it *Item) Moment(now time.Time, by string) time.Time {
	known := slices.Concat(it.History, it.Settled)
	for _, c := range it.Conflicts {
		known = append(known, c.History...)
	}
	u := Update{seconds(now), by}
	for slices.Contains(known, u) {
		u.When = u.When.Add(time.Second)
	}
	return u.When
}

// Resolve is [Item.Update] by an endpoint that has resolved the conflicts of the item. The
// updates of the losers are added after its own. With them, an endpoint that reads the
// resolution before it reads a loser knows that the conflict is settled. The previous
// update stays directly after the new one, where other endpoints expect it.
func (it *Item) Resolve(deleted bool, when time.Time, by string) (*Item, error) {
	var heads []Update
	all, stale := slices.Concat(it.History, it.Settled), false
	for _, c := range it.Conflicts {
		heads = append(heads, c.Head())
		all = union(all, c.History)
		stale = stale || len(c.History) > 1
	}
	newest := func(a, b Update) int { return b.compare(a) }
	slices.SortFunc(heads, newest)
	if stale {
		// Stale copies of losers and of the winner are equally likely.
		slices.SortStableFunc(all, newest)
	}
	return it.next(deleted, Update{seconds(when), by}, append(heads, it.Settled...), all)
}

// earlierUpdates returns the updates before the last one.
func (it *Item) earlierUpdates() []Update { return it.History[min(1, len(it.History)):] }

// union returns the updates of both lists, each as often as in the list that has it more
// often.
func union(a, b []Update) []Update {
	return append(slices.Clone(a), minus(b, a)...)
}

// minus returns the updates of a without those of b, counting repetitions.
func minus(a, b []Update) []Update {
	left := slices.Clone(b)
	var out []Update
	for _, u := range a {
		if i := slices.Index(left, u); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		out = append(out, u)
	}
	return out
}

// count returns how often a list has an update. Two edits by an endpoint within a second
// are equal.
func count(list []Update, u Update) int {
	n := 0
	for _, o := range list {
		if o == u {
			n++
		}
	}
	return n
}

// Rules are the rules of a merge.
type Rules struct {
	// Strict merges exactly as the specification says. Otherwise the merge differs:
	//
	//   - Equal content, or two deletions, are not a conflict.
	//   - The conflicts of both items are united if neither item follows the
	//     other. Conflicts that the winner's author had resolved stay resolved.
	//   - Items are not in conflict if the loser's last update is anywhere in the
	//     winner's history.
	//   - Items with equal keys and different content are in conflict, and
	//     the bytewise greater content wins.
	Strict bool
	// Equal reports whether two items that are not deleted mean the same to the
	// program; nil compares their canonical content, and parents.
	Equal func(a, b *Item) bool
}

// MergeResult is the result of merging an item.
type MergeResult struct {
	Item *Item // the merged item; local itself if nothing changed
	// Incoming reports that the incoming item won.
	Incoming bool
	// Detected reports that the two items are in conflict.
	Detected bool
}

// Compare orders items by their keys (section 4.4, step 1).
func Compare(a, b *Item) int {
	// An absent value sorts first, as the zero value does.
	return cmp.Or(cmp.Compare(a.Version, b.Version), a.Head().compare(b.Head()))
}

// equal reports whether two items mean the same.
func (r Rules) equal(a, b *Item) bool {
	switch {
	case a.Deleted || b.Deleted:
		return a.Deleted == b.Deleted
	case r.Equal != nil:
		return r.Equal(a, b)
	}
	return sameContent(a, b)
}

// sameContent reports whether two items have the same parent and the same bytes of content.
func sameContent(a, b *Item) bool { return a.Parent == b.Parent && bytes.Equal(a.Content, b.Content) }

// weight returns the text that decides between versions with equal keys.
func (it *Item) weight() string {
	return fmt.Sprint(it.Deleted) + "\x00" + string(it.Content) + "\x00" + it.Parent
}

// Merge merges an incoming item with the local one of the same id (section 4.4).
func Merge(local, incoming *Item, r Rules) MergeResult {
	// Steps 1 and 2.
	order := Compare(incoming, local)
	if order == 0 {
		return mergeTie(local, incoming, r)
	}
	winner, loser := incoming, local
	if order < 0 {
		winner, loser = local, incoming
	}
	// Step 3, and section 4.4.1.
	concurrent := Concurrent(winner, loser, r)
	detected := concurrent && (r.Strict || !r.equal(winner, loser))
	out := MergeResult{Item: winner, Incoming: winner == incoming, Detected: detected}
	if r.Strict {
		if detected {
			out.Item = winner.with(reduce(append(slices.Clone(winner.Conflicts), loser.asLoser())), true)
		}
		return out
	}
	if concurrent {
		out.Item = winner.unite(loser, detected, r)
	}
	return out
}

// Concurrent is conflict detection (section 4.4.1): it reports whether the winner's author
// did not know the loser's last update.
func Concurrent(winner, loser *Item, r Rules) bool {
	if len(winner.History) == 0 || len(loser.History) == 0 {
		return false // step 1: there is no history
	}
	if !r.Strict && count(winner.earlierUpdates(), loser.Head()) >= count(loser.History, loser.Head()) {
		return false
	}
	n := winner.Version - loser.Version // steps 1.1 and 1.2
	if n >= uint64(len(winner.History)) {
		return false // step 1.4: the nth update does not exist
	}
	return winner.History[n] != loser.Head() // steps 1.3, 1.5 and 1.6; 0 is the history itself
}

// mergeTie merges items with equal keys.
func mergeTie(local, incoming *Item, r Rules) MergeResult {
	out := MergeResult{Item: local}
	if r.Strict {
		return out
	}
	same := local.Deleted == incoming.Deleted && sameContent(local, incoming)
	if same && len(incoming.Conflicts) == 0 && incoming.Conflict == local.Conflict && len(incoming.Settled) == 0 {
		return out // true for nearly all items of nearly all documents
	}
	winner, loser := local, incoming
	if !same && incoming.weight() > local.weight() {
		winner, loser = incoming, local
	}
	out.Incoming = winner == incoming
	out.Detected = !r.equal(winner, loser)
	out.Item = winner.unite(loser, out.Detected, r)
	return out
}

// with returns the item with other conflicts.
func (it *Item) with(conflicts []*Item, flag bool) *Item {
	same := func(a, b *Item) bool { return a == b || compareConflicts(a, b) == 0 }
	if flag == it.Conflict && slices.EqualFunc(conflicts, it.Conflicts, same) {
		return it
	}
	next := it.clone()
	next.Conflict, next.Conflicts = flag, conflicts
	return next
}

// asLoser returns the item in the form of a conflict of another item (section 5.2).
func (it *Item) asLoser() *Item {
	lost := &Item{ID: it.ID, Version: it.Version, Deleted: it.Deleted, Parent: it.Parent, History: it.History,
		Content: it.Content}
	if it.extra != nil {
		lost.extra = &extra{updates: it.extra.updates}
	}
	return lost
}

// unite returns the winner with the conflicts of both items, and with the loser if the two
// are in conflict. A conflict is dropped if the author of the winner or of another loser
// knew it, or if it means the same as the winner.
func (it *Item) unite(loser *Item, detected bool, r Rules) *Item {
	all := slices.Concat(it.Conflicts, loser.Conflicts)
	if detected {
		all = append(all, loser.asLoser())
	}
	known := slices.Clone(all)
	all = slices.DeleteFunc(all, func(c *Item) bool {
		times := count(c.History, c.Head())
		knows := func(o *Item) bool { return count(o.earlierUpdates(), c.Head()) >= times }
		// Conflicts of one endpoint are ordered by age, see reduce.
		return knows(it) || c.Content != nil && r.equal(it, c) ||
			slices.ContainsFunc(known, func(o *Item) bool { return o.Head().By != c.Head().By && knows(o) })
	})
	// Some endpoints write the flag without an sx:conflict.
	flagOnly := it.Conflict && len(it.Conflicts) == 0 || loser.Conflict && len(loser.Conflicts) == 0
	all = reduce(all)
	next := it.with(all, flagOnly || len(all) > 0)
	theirs := slices.Concat(loser.History, loser.Settled)
	switch {
	case Compare(it, loser) == 0:
		theirs = slices.Concat(it.History, loser.Settled)
	case detected:
		theirs = loser.Settled
	}
	settled := minus(union(slices.Concat(it.History, it.Settled), theirs), it.History)
	slices.SortFunc(settled, Update.compare)
	settled = settled[max(0, len(settled)-KeepUpdates):]
	if slices.Equal(settled, it.Settled) {
		return next
	}
	if next == it {
		next = it.clone()
	}
	next.Settled = settled
	return next
}

// compareConflicts orders the conflicts of one endpoint by age (section 5.2).
func compareConflicts(a, b *Item) int {
	x, y := a.Head(), b.Head()
	if c := cmp.Or(strings.Compare(x.By, y.By), cmp.Compare(a.Version, b.Version), x.When.Compare(y.When)); c != 0 {
		return c
	}
	return strings.Compare(a.weight(), b.weight())
}

// reduce keeps the latest conflict of each endpoint, and one without an endpoint (section
// 5.2). If these are more than MaxConflicts, it keeps the last ones in the order of
// compareConflicts.
func reduce(all []*Item) []*Item {
	slices.SortStableFunc(all, compareConflicts)
	var out []*Item
	for _, c := range all {
		if n := len(out); n > 0 && out[n-1].Head().By == c.Head().By {
			out[n-1] = c
			continue
		}
		out = append(out, c)
	}
	return out[max(0, len(out)-MaxConflicts):]
}
