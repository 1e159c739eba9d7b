package archive

// Candidate is an entry that needs an id.
type Candidate struct {
	// Global is set if its present ID is unique across feeds, such as an IRI.
	Global bool
	Entry
	// Else returns a substitute for an id that cannot be used, which no other entry has.
	Else func(id string) string
}

// published returns the id under which the entry of a line was published, "" if it is unknown.
func (c *Candidate) published(n *line) string {
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

// IDs returns the id under which each entry is published; list must be in order, oldest first.
// Readers identify an entry by its id alone, so a published entry keeps its id, and no entry gets
// the id of another, whatever other entries are added or removed. A new entry has its own id if
// that is free, otherwise the one of Else.
//
// An id that is unique beyond its feed passes to an entry of another feed if the entry that had it
// is gone: then the feed has moved, and the entry is the same.
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
			if id := c.published(n); id != "" && !taken[id] {
				take(i, id)
			}
		}
	}
	// A restored ledger has no origins: match by the digest first, and then by the id.
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

// orphan reports whether an id is in the ledger without an origin, and, if exact is set, with a
// digest of the candidate.
func (l *Ledger) orphan(c *Candidate, id string, exact bool) bool {
	n := l.lookup(id)
	return n != nil && !n.Origin.known() && (!exact || c.is(n.Digest))
}

// free reports whether a candidate can get an id: no entry was published under it, or the id is
// the candidate's own, unique beyond its feed, and that of an entry of another feed that is not
// present.
func (l *Ledger) free(c *Candidate, id string, present map[Origin]bool) bool {
	n := l.lookup(id)
	return n == nil || id == c.ID && c.Global && n.Origin.Feed != c.Origin.Feed && !present[n.Origin]
}

// Plan assigns entries to documents, by their indexes in the list.
type Plan struct {
	// Archives are the new archives, in the order of their numbers, with perPage entries each.
	Archives [][]int
	// Subscription is the content of the subscription document, in the order of the list.
	Subscription []int
}

// Plan returns the plan for a list of entries, oldest first, and archives of perPage entries. It
// does not change the ledger.
//
// The subscription document holds the entries that are in no archive: at least perPage if there are
// enough, and fewer than twice as many. If there are more, the oldest go into an archive, first those that
// were in the subscription document before: so an entry that arrives late, with an old date, also
// appears there first. The document also holds an archived entry whose version differs from the
// archive, or ever differed there: readers that have the other version must learn of the return to
// the archived one (section 4.1).
//
// Recording an archive does not change the plan of the others, so a run may be interrupted between
// two.
func (l *Ledger) Plan(list []Entry, perPage int) Plan {
	var before, fresh []int
	in := make([]bool, len(list))
	for i, e := range list {
		switch n := l.lookup(e.ID); {
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
