package stage

import (
	"iter"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/journal"
)

// item is an entry and what it is recognised by (DESIGN: identity and change).
type item struct {
	*Item
	identity journal.Digest
	// others are identities under which the entry may have been recorded when
	// the document was another: alone with its guid, or sharing it.
	others []journal.Digest
	bare   journal.Digest // digest of the guid only, or of the link if there is no guid
	// ambiguous reports that other entries of the document share guid and link.
	ambiguous bool
	key       journal.Key
	rest      journal.Digest // digest of title, text and date
	content   journal.Digest
	earlier   *item // by Item.Earlier
}

// is reports whether a digest is of the content of the item, in either reading.
func (it *item) is(content journal.Digest) bool {
	return content == it.content || it.earlier != nil && content == it.earlier.content
}

// identities yields the identities under which the item may be recorded.
func (it *item) identities() iter.Seq[journal.Digest] {
	return func(yield func(journal.Digest) bool) {
		for ; it != nil; it = it.earlier {
			if !yield(it.identity) {
				return
			}
			for _, id := range it.others {
				if !yield(id) {
					return
				}
			}
		}
	}
}

// digests sets the digests that depend only on the entry's own fields.
func (it *item) digests() {
	text := it.text()
	it.content = journal.DigestOf("content", it.Title, it.Link, text)
	it.rest = journal.DigestOf("rest", it.Title, text, date(it.PubDate, it.PubDateRaw, time.RFC3339))
	copy(it.key.Rest[:], it.rest[:])
	if it.Link != "" {
		link := journal.DigestOf("link", it.Link)
		copy(it.key.Link[:], link[:])
	}
}

// shared records for each key whether a document has several different values with it, and
// the first of them.
type shared[K, V comparable] map[K]struct {
	first   V
	several bool
}

func (s shared[K, V]) add(k K, v V) {
	x, ok := s[k]
	if !ok {
		x.first = v
	}
	x.several = x.several || x.first != v
	s[k] = x
}

// identify computes the identity of each entry of a document. It omits and counts repeated
// entries.
func identify(doc Document) (out []*item, repeated int) {
	items := doc.Items
	type pair struct{ guid, link string }
	guids := make(shared[string, string], len(items))
	pairs := make(shared[pair, journal.Digest], len(items))
	all := make([]item, len(items))
	for i := range items {
		it := &all[i]
		it.Item = &items[i]
		it.digests()
		guids.add(it.GUID, it.Link)
		pairs.add(pair{it.GUID, it.Link}, it.rest)
	}
	seen := make(map[journal.Digest]int, len(items)) // -> index in out
	out = make([]*item, 0, len(items))
	for i := range all {
		it := &all[i]
		guid, link, rest := it.GUID, it.Link, string(it.rest[:])
		// Atom entries with one id and one link are versions of one entry.
		it.ambiguous = pairs[pair{guid, link}].several && !(doc.GUIDs != Loose && guid != "")
		// The least specific identity comes first.
		var ids []journal.Digest
		at := 0
		switch {
		case guid != "":
			ids = []journal.Digest{journal.DigestOf("guid", guid), journal.DigestOf("guid link", guid, link), journal.DigestOf("guid link digest", guid, link, rest)}
			switch {
			case doc.GUIDs == Own:
			case it.ambiguous:
				at = 2
			case guids[guid].several:
				at = 1
			}
		case link != "":
			ids = []journal.Digest{journal.DigestOf("link", link), journal.DigestOf("link digest", link, rest)}
			if it.ambiguous {
				at = 1
			}
		default:
			ids = []journal.Digest{journal.DigestOf("digest", rest)}
		}
		it.identity, it.bare = ids[at], ids[0]
		if it.others = ids[1:]; at > 0 {
			it.others = ids[:at]
			slices.Reverse(it.others)
		}
		if n, ok := seen[it.identity]; ok {
			repeated++
			if it.updated().After(out[n].updated()) {
				out[n] = it
			}
			continue
		}
		seen[it.identity] = len(out)
		out = append(out, it)
	}
	readEarlier(doc, out)
	return out, repeated
}

// readEarlier identifies the items of a document that have an earlier reading by it, among
// the others as they were then.
func readEarlier(doc Document, items []*item) {
	if !slices.ContainsFunc(items, func(it *item) bool { return it.Earlier != nil }) {
		return
	}
	before := doc
	before.Items = slices.Clone(doc.Items)
	now := make(map[*Item]*Item, len(doc.Items)) // by the one before
	for i := range before.Items {
		if e := doc.Items[i].Earlier; e != nil {
			before.Items[i] = *e
		}
		before.Items[i].Earlier = nil
		now[&before.Items[i]] = &doc.Items[i]
	}
	earlier := make(map[*Item]*item, len(doc.Items))
	all, _ := identify(before)
	for _, it := range all {
		earlier[now[it.Item]] = it
	}
	for _, it := range items {
		if it.Earlier != nil {
			it.earlier = earlier[it.Item]
		}
	}
}

// find returns the last record of the item as it was delivered before, or nil. A bare guid
// may record any entry that shared the guid in some document, so records with the item's
// own link come first, and while the guid is shared, a record of the bare guid with another
// link does not match. If the link is shared too, only the content decides.
func (it *item) find(j *journal.Journal) *journal.Record {
	own := j.Versions(it.identity)
	if slices.ContainsFunc(own, func(r journal.Record) bool { return r.Key.Link == it.key.Link }) {
		return journal.Newest(own)
	}
	others := make([][]journal.Record, len(it.others))
	for i, id := range it.others {
		others[i] = j.Versions(id)
		for _, r := range others[i] {
			if r.Key.Link == it.key.Link && (!it.ambiguous || r.Content == it.content || r.Content == it.foreignContent()) {
				return journal.Newest(others[i])
			}
		}
	}
	if len(own) > 0 || it.identity != it.bare {
		return journal.Newest(own)
	}
	for _, recs := range others {
		if len(recs) > 0 {
			return journal.Newest(recs)
		}
	}
	return nil
}

// origins returns for each entry the last record of the delivered entry that it equals, or
// nil. If two entries of a document match one delivered entry, for example because a guid
// was renumbered and the old one came back, only one gets it: the one that was delivered as
// it, else the one that was recognised as it, else the one that may be it. split reports
// the others, which are new.
func origins(j *journal.Journal, items []*item) (known []*journal.Record, split []bool) {
	known = make([]*journal.Record, len(items))
	split = make([]bool, len(items))
	if j.Good == 0 {
		return known, split
	}
	rank := func(i int) int {
		switch r := known[i]; {
		case r.Identity != items[i].identity:
			return 2
		case items[i].identity.String() != r.Lineage():
			return 1
		}
		return 0
	}
	claims := make(map[string]int, len(items)) // lineage -> entry
	for i, it := range slices.Backward(items) {
		if known[i] = it.find(j); known[i] == nil && it.earlier != nil {
			known[i] = it.earlier.find(j)
		}
		if known[i] == nil {
			if known[i] = it.foreign(j, items); known[i] == nil {
				continue
			}
		}
		lineage := known[i].Lineage()
		other, ok := claims[lineage]
		if ok && rank(other) <= rank(i) {
			known[i], split[i] = nil, true
			continue
		}
		if ok {
			known[other], split[other] = nil, true
		}
		claims[lineage] = i
	}
	return known, split
}

// renumberings finds entries delivered before whose guid alone changed.
type renumberings struct {
	j       *journal.Journal
	present map[journal.Digest]bool         // identities that the document has
	found   map[journal.Key]*journal.Record // the same for all entries with a key; nil once it is taken
}

func newRenumberings(j *journal.Journal, items []*item) *renumberings {
	present := make(map[journal.Digest]bool, len(items))
	for _, it := range items {
		for id := range it.identities() {
			present[id] = true
		}
	}
	return &renumberings{j, present, map[journal.Key]*journal.Record{}}
}

// take returns the record of a delivered entry that equals the item in all but its guid, if
// the item has a link and the old guid is no longer in the document. It returns a record
// only once.
func (n *renumberings) take(it *item) *journal.Record {
	if it.Link == "" {
		return nil
	}
	old, ok := n.found[it.key]
	if !ok {
		recs := n.j.WithKey(it.key)
		if !slices.ContainsFunc(recs, func(r journal.Record) bool { return n.present[r.Identity] }) {
			old = journal.Newest(recs)
		}
	}
	n.found[it.key] = nil
	return old
}
