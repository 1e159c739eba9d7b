package archive

// Candidate is an entry that is to be given an id.
type Candidate struct {
	// Global tells whether the ID, which it has already, is unique beyond its feed,
	// as an IRI is.
	Global bool
	Entry
	// Else gives an id that stands for one which cannot be had, and that no other
	// entry has.
	Else func(id string) string
}

// had gives the id that the entry of a line has, "" if that cannot be told.
func (c *Candidate) had(n *line) string {
	if !n.gone {
		return n.ID
	}
	id := c.ID
	for range 10 {
		if hidden(id) == n.ID {
			return id
		}
		id = c.Else(id)
	}
	return ""
}

// IDs gives each entry the id that it is published under, oldest first. Readers
// know an entry by its id alone, so an entry that was published keeps its id, and
// none gets that of another, whatever others come and go beside it. A new entry
// has its own id if that is free, else the one of Else.
//
// An id that is unique beyond its feed passes on to an entry of another feed once
// the one that had it is gone: the feed has moved, and the entry is the same.
func (l *Ledger) IDs(list []Candidate) []string {
	ids := make([]string, len(list))
	taken := map[string]bool{}
	present := map[Origin]bool{}
	take := func(i int, id string) {
		ids[i], taken[id] = id, true
	}
	for i, c := range list {
		present[c.Origin] = true
		if n := l.byOrigin[c.Origin]; n != nil {
			if id := c.had(n); id != "" && !taken[id] {
				take(i, id)
			}
		}
	}
	// A ledger that was made anew knows no origins: the same words tell an entry,
	// and only then the id.
	for _, exact := range []bool{true, false} {
		for i, c := range list {
			for _, id := range []string{c.Else(c.ID), c.ID} {
				if ids[i] == "" && !taken[id] && l.orphan(&c, id, exact) {
					take(i, id)
				}
			}
		}
	}
	for i, c := range list {
		if ids[i] == "" {
			id := c.ID
			for taken[id] || !l.free(&c, id, present) {
				id = c.Else(id)
			}
			take(i, id)
		}
	}
	return ids
}

// orphan reports whether an id is in the ledger without an origin, and, if exact, with the
// words of the candidate.
func (l *Ledger) orphan(c *Candidate, id string, exact bool) bool {
	n := l.of(id)
	return n != nil && !n.Origin.known() && (!exact || c.is(n.Digest))
}

// free reports whether no entry was published under an id; or one was in another feed that
// is not present, and the id is the candidate's own and unique beyond its feed.
func (l *Ledger) free(c *Candidate, id string, present map[Origin]bool) bool {
	n := l.of(id)
	return n == nil || id == c.ID && c.Global && n.Origin.Feed != c.Origin.Feed && !present[n.Origin]
}

// Plan says where entries go, by their place in the list that was given.
type Plan struct {
	// Archives are the new ones, in the order of their numbers, each of as many
	// entries as were asked for.
	Archives [][]int
	// Subscription is what the subscription document holds, in the order of the
	// list.
	Subscription []int
}

// Plan makes the plan for the entries that there are, oldest first, and archives of
// perPage entries. The ledger stays as it is.
//
// The subscription document has what is in no archive: at least perPage entries if
// there are so many, and fewer than twice as many. Beyond that the oldest go into
// an archive, those first that were in the subscription document before: an entry
// that arrives late, with an old date, is seen there first, too. An archived entry
// is in the subscription document if it is of another version than in the archive,
// or ever was there in one: should it be as it was archived again, who has the
// other version must learn so (section 4.1).
//
// An archive that is recorded leaves the plan of the others as it was, so that it
// does not matter whether a run is interrupted between two.
func (l *Ledger) Plan(list []Entry, perPage int) Plan {
	var before, fresh []int
	in := make([]bool, len(list))
	for i, e := range list {
		switch n := l.of(e.ID); {
		case n != nil && n.archive > 0:
			in[i] = n.revised || !e.is(n.Digest)
		case n == nil || n.gone || !e.is(n.Digest):
			fresh = append(fresh, i)
		default:
			before = append(before, i)
		}
	}
	pending := append(before, fresh...)
	var p Plan
	for len(pending) >= 2*perPage {
		p.Archives = append(p.Archives, pending[:perPage:perPage])
		pending = pending[perPage:]
	}
	for _, i := range pending {
		in[i] = true
	}
	for i := range list {
		if in[i] {
			p.Subscription = append(p.Subscription, i)
		}
	}
	return p
}
