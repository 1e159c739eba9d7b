package stage

import (
	"iter"
	"slices"
	"time"

	"github.com/lektordir/lektor/internal/journal"
)

// item is an entry with the digests by which it is recognised.
type item struct {
	*Item
	identity journal.Digest
	// others holds the identities that the entry may have had in an older document. They differ
	// from identity because other entries of the document may share the guid or the link.
	others []journal.Digest
	bare   journal.Digest // digest of the guid only, or of the link if there is no guid
	// ambiguous is true if other entries of the document have the same guid and link.
	ambiguous bool
	key       journal.Key
	rest      journal.Digest // digest of title, text and date
	content   journal.Digest // digest of title, link and text
}

// unknown is the digest of a content in a line of the journal that was restored.
var unknown journal.Digest

// identities yields the identities under which the item may be recorded.
func (it *item) identities() iter.Seq[journal.Digest] {
	return func(yield func(journal.Digest) bool) {
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

// digests sets the digests that do not depend on other entries of the document.
func (it *item) digests() {
	it.content = journal.DigestOf("content", it.Title, it.Link, it.Text)
	it.rest = journal.DigestOf("rest", it.Title, it.Text, date(it.PubDate, it.PubDateRaw, time.RFC3339))
	copy(it.key.Rest[:], it.rest[:])
	if it.Link != "" {
		link := journal.DigestOf("link", it.Link)
		copy(it.key.Link[:], link[:])
	}
}

// shared records, for each key, the first value that a document has with it, and whether it has
// different ones.
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

// identify computes the identity of each entry of a document. If several entries have one
// identity, it keeps the newest; repeated is the number of the others.
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
	return out, repeated
}

// find returns the last record of the item, or nil if it was not delivered. If several entries have
// shared the guid in some document, a record of the guid alone may belong to any of them. So records
// with the item's own link come first. If the guid is shared in this document, a record of the guid
// with another link does not match. If guid and link are shared, only the content decides.
func (it *item) find(j *journal.Journal) *journal.Record {
	own := j.Versions(it.identity)
	if slices.ContainsFunc(own, func(r journal.Record) bool { return r.Key.Link == it.key.Link }) {
		return journal.Newest(own)
	}
	others := make([][]journal.Record, len(it.others))
	for i, id := range it.others {
		others[i] = j.Versions(id)
		for _, r := range others[i] {
			if r.Key.Link == it.key.Link && (!it.ambiguous || r.Content == it.content || r.Content == it.importedContent()) {
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

// origins returns, for each entry of a document, the last record of the delivered entry that it
// matches, or nil. If several match one delivered entry, for example because its guid changed and
// then the old guid came back, only one gets the record: the one whose identity is in the unique
// name, or the one whose identity is in the record, or any of them. split is true for the others,
// which are new.
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
	claims := make(map[string]int, len(items)) // lineage -> index of the item that gets the record
	for i, it := range slices.Backward(items) {
		if known[i] = it.find(j); known[i] == nil {
			if known[i] = it.matchImported(j, items); known[i] == nil {
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

// renumberings finds delivered entries of which only the guid has changed.
type renumberings struct {
	j       *journal.Journal
	present map[journal.Digest]bool         // identities that the document has
	found   map[journal.Key]*journal.Record // results of take; nil after the first
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

// take returns the record of a delivered entry that has all values of the item except the guid, or
// nil. The item must have a link, and the document must no longer have the old guid. take returns
// each record only once.
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
