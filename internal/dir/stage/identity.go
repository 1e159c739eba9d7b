package stage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/journal"
)

// item is an entry with the digests by which it is recognised.
type item struct {
	entry    *Item
	identity journal.Digest
	// others holds the identities that the entry may have had in an older document. They differ
	// from identity because other entries of the document may share the guid or the link.
	others []journal.Digest
	bare   journal.Digest // digest of the guid only, or of the link if there is no guid
	level  int            // see identify
	// ambiguous is true if other entries of the document have the same guid and link.
	ambiguous bool
	// renamed is true if the item was recognised by another name: in the other scheme, or by the
	// link of an imported entry.
	renamed bool
	// moved is true if of the item only the link has changed, as those of most others: the site has moved.
	moved bool
	// former, if not nil, is the item with the URLs with which it was delivered.
	former  *item
	key     journal.Key
	rest    journal.Digest // digest of title, text and date
	whole   journal.Digest // digest of title, text, date and enclosures
	files   []string       // URLs of the enclosures, see enclosureURLs
	content journal.Digest // digest of title, link, text, enclosures and status
	now     properties
	// The dates or other properties may differ from those in new/.
	checkDates, checkOthers bool
}

// unknown is the digest of a content in a line of the journal that was restored.
var unknown journal.Digest

// is reports whether content is the digest of the item's content, with its link in either scheme, or
// is unknown.
func (it *item) is(content journal.Digest) bool {
	return content == unknown || content == it.content || it.entry.Link != "" &&
		content == it.contentAt(otherScheme(it.entry.Link)) || it.former != nil && it.former.is(content)
}

// identities returns the identities under which the item may be recorded.
func (it *item) identities() []journal.Digest {
	return append([]journal.Digest{it.identity}, it.others...)
}

// contentAt returns the digest of the item's content with another link.
func (it *item) contentAt(link string) journal.Digest {
	parts := slices.Concat([]string{"content", it.entry.Title, link, it.entry.Text}, it.files)
	if it.entry.Status != "" {
		parts = append(parts, "status", it.entry.Status)
	}
	return journal.DigestOf(parts...)
}

// digests sets the digests that do not depend on other entries of the document. Without enclosures,
// they are those of the time before enclosures counted.
func (it *item) digests() {
	it.files = enclosureURLs(it.entry.Enclosures)
	it.content = it.contentAt(it.entry.Link)
	rest := []string{"rest", it.entry.Title, it.entry.Text, date(it.entry.PubDate, it.entry.PubDateRaw, time.RFC3339)}
	it.rest = journal.DigestOf(rest...)
	if it.whole = it.rest; len(it.files) > 0 {
		it.whole = journal.DigestOf(append(rest, it.files...)...)
	}
	copy(it.key.Rest[:], it.whole[:])
	it.key.Link = it.linkAt(it.entry.Link)
}

// linkAt returns the first half of the second key with another link. The enclosures of an entry
// without a link stand in for it.
func (it *item) linkAt(link string) (half [4]byte) {
	var d journal.Digest
	if link != "" {
		d = journal.DigestOf("link", link)
	} else if len(it.files) > 0 {
		d = journal.DigestOf(append([]string{"enclosures"}, it.files...)...)
	}
	copy(half[:], d[:])
	return half
}

// enclosureURLs returns the URLs in order, each once, as https and without queries: these have the
// tokens and counters of a single fetch.
func enclosureURLs(urls []string) (out []string) {
	for _, u := range urls {
		u, _, _ = strings.Cut(u, "?")
		if strings.HasPrefix(u, "http://") {
			u = otherScheme(u)
		}
		out = append(out, u)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// identify sets the identities of the item. level decides which of them it is recorded under: 0 is the
// guid or the link, 1 guid and link, 2 also title, text and date, and 3 also the enclosures.
func (it *item) identify(level int) {
	guid, link, rest := it.entry.GUID, it.entry.Link, string(it.rest[:])
	var ids []journal.Digest
	switch {
	case guid != "":
		ids = []journal.Digest{journal.DigestOf("guid", guid), journal.DigestOf("guid link", guid, link),
			journal.DigestOf("guid link digest", guid, link, rest)}
	case link != "":
		ids = []journal.Digest{journal.DigestOf("link", link), journal.DigestOf("link digest", link, rest)}
	default:
		ids = []journal.Digest{journal.DigestOf("digest", rest)}
	}
	at := max(level-3+len(ids), 0)
	if last := ids[len(ids)-1]; len(it.files) > 0 {
		ids = append(ids, journal.DigestOf("enclosures", string(last[:]), string(it.whole[:])))
	}
	at = min(at, len(ids)-1)
	it.identity, it.bare, it.level = ids[at], ids[0], level
	if it.others = ids[1:]; at > 0 {
		it.others = slices.Clone(ids[:at])
		slices.Reverse(it.others)
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
	type triple struct {
		pair
		rest journal.Digest
	}
	guids := make(shared[string, string], len(items))
	pairs := make(shared[pair, journal.Digest], len(items))
	triples := make(shared[triple, journal.Digest], len(items))
	all := make([]item, len(items))
	for i := range items {
		it := &all[i]
		it.entry = &items[i]
		it.digests()
		names := pair{it.entry.GUID, it.entry.Link}
		guids.add(it.entry.GUID, it.entry.Link)
		pairs.add(names, it.whole)
		triples.add(triple{names, it.rest}, it.whole)
	}
	seen := make(map[journal.Digest]int, len(items)) // -> index in out
	out = make([]*item, 0, len(items))
	for i := range all {
		it := &all[i]
		names := pair{it.entry.GUID, it.entry.Link}
		// Atom entries with one id and one link are versions of one entry.
		it.ambiguous = pairs[names].several && !(doc.GUIDs != Loose && it.entry.GUID != "")
		level := 0
		switch {
		case it.ambiguous && triples[triple{names, it.rest}].several:
			level = 3
		case it.ambiguous:
			level = 2
		case it.entry.GUID != "" && doc.GUIDs != Own && guids[it.entry.GUID].several:
			level = 1
		}
		it.identify(level)
		if n, ok := seen[it.identity]; ok {
			repeated++
			if it.entry.updated().After(out[n].entry.updated()) {
				out[n] = it
			}
			continue
		}
		seen[it.identity] = len(out)
		out = append(out, it)
	}
	return out, repeated
}

// otherScheme returns a URL with https instead of http, or the other way round. It returns any other
// text as it is.
func otherScheme(url string) string {
	if rest, ok := strings.CutPrefix(url, "http://"); ok {
		return "https://" + rest
	}
	if rest, ok := strings.CutPrefix(url, "https://"); ok {
		return "http://" + rest
	}
	return url
}

// inOtherScheme returns the item with its guid, its link or both in the other scheme.
func (it *item) inOtherScheme() (out []*item) {
	guid, link := otherScheme(it.entry.GUID), otherScheme(it.entry.Link)
	if guid == it.entry.GUID && link == it.entry.Link {
		return nil
	}
	for _, names := range [][2]string{{guid, link}, {guid, it.entry.Link}, {it.entry.GUID, link}} {
		out = append(out, it.at(names[0], names[1], it.entry.Enclosures))
	}
	return out
}

// at returns the item with another guid, link and enclosures.
func (it *item) at(guid, link string, enclosures []string) *item {
	x := *it.entry
	x.GUID, x.Link, x.Enclosures = guid, link, enclosures
	other := &item{entry: &x, ambiguous: it.ambiguous}
	other.digests()
	other.identify(it.level)
	return other
}

// secured returns the last record of the entry that has the names of the item in the other scheme, or
// nil: the site has moved to https, or announces its entries under both. An entry that the document
// has, too, is another one. So it is with a site that has moved from home, the host of the feed's id, if title, text,
// date and the paths of all URLs are the same.
func (it *item) secured(j *journal.Journal, present map[journal.Digest]bool, home string) *journal.Record {
	schemes := it.inOtherScheme()
	for i, other := range append(schemes, it.atHome(home)...) {
		if other.identity == it.identity || !present[other.identity] {
			if r := other.find(j); r != nil && (i < len(schemes) || r.Key == other.key) {
				it.former = other
				return r
			}
		}
	}
	return nil
}

// atHome returns the item with its URLs at a host, in each scheme.
func (it *item) atHome(home string) []*item {
	from := cmp.Or(hostOf(it.entry.Link), hostOf(it.entry.GUID))
	if from == "" || home == "" || from == home {
		return nil
	}
	back := func(url string) string {
		if hostOf(url) == from {
			return strings.Replace(url, "://"+from, "://"+home, 1)
		}
		return url
	}
	var files []string
	for _, f := range it.entry.Enclosures {
		files = append(files, back(f))
	}
	former := it.at(back(it.entry.GUID), back(it.entry.Link), files)
	return append(former.inOtherScheme(), former)
}

// hostOf returns the host of a URL, with its port, and "" for another text.
func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

// identitiesOf returns the identities under which items may be recorded.
func identitiesOf(items []*item) map[journal.Digest]bool {
	present := make(map[journal.Digest]bool, len(items))
	for _, it := range items {
		for _, id := range it.identities() {
			present[id] = true
		}
	}
	return present
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
			if r.Key.Link == it.key.Link && (!it.ambiguous || r.Content == it.content ||
				r.Content == it.importedContent()) {
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
// which are new. home returns the host of the feed's id.
func origins(j *journal.Journal, items []*item, guids GUIDs, home func() string) (known []*journal.Record,
	split []bool) {
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
	present := identitiesOf(items)
	claims := make(map[string]int, len(items)) // lineage -> index of the item that gets the record
	for i, it := range slices.Backward(items) {
		if known[i] = it.find(j); known[i] == nil {
			if guids != Own {
				known[i] = it.secured(j, present, home())
			}
			if known[i] == nil {
				known[i] = it.matchImported(j, items)
			}
			if it.renamed = known[i] != nil; !it.renamed {
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
	present map[journal.Digest]bool          // identities that the document has
	claimed map[string]bool                  // lineages of its known entries
	found   map[journal.Key][]journal.Record // by second key, the records that are left
}

func newRenumberings(j *journal.Journal, items []*item, known []*journal.Record) *renumberings {
	n := &renumberings{j, identitiesOf(items), map[string]bool{}, map[journal.Key][]journal.Record{}}
	for _, r := range known {
		if r != nil {
			n.claimed[r.Lineage()] = true
		}
	}
	return n
}

// stays reports whether a record is of an entry that the document still has.
func (n *renumberings) stays(r journal.Record) bool {
	return n.present[r.Identity] || n.claimed[r.Lineage()]
}

// take returns the record of a delivered entry that has all values of the item except the guid, or
// nil. Link, title and text alone may be those of every entry, so the item must also have a date or
// enclosures. The document must no longer have the entry. take returns each entry only once.
func (n *renumberings) take(it *item) *journal.Record {
	if !it.distinct() {
		return nil
	}
	for _, k := range it.keys() {
		recs, ok := n.found[k]
		if !ok {
			if recs = n.j.WithKey(k); slices.ContainsFunc(recs, n.stays) {
				recs = nil
			}
		}
		if old := journal.Newest(recs); old != nil {
			r := *old // recs is overwritten
			n.found[k] = slices.DeleteFunc(recs, func(x journal.Record) bool { return x.Lineage() == r.Lineage() })
			return &r
		}
		n.found[k] = nil
	}
	return nil
}

// takeMoved returns the record of a delivered entry that has all values of the item except guid and
// link, or nil. The item must have a text and a date. takeMoved returns one entry of several alike.
func (n *renumberings) takeMoved(it *item) *journal.Record {
	if it.entry.Text == "" || it.entry.PubDate.IsZero() {
		return nil
	}
	recs := n.j.WithRest(it.key.Rest)
	old := journal.Newest(recs)
	if old == nil || slices.ContainsFunc(recs, n.stays) {
		return nil
	}
	n.claimed[old.Lineage()] = true
	return old
}

// distinct reports whether the second key distinguishes the item from others.
func (it *item) distinct() bool {
	return it.entry.Link != "" && !it.entry.PubDate.IsZero() || len(it.files) > 0
}

// keys returns the second key with the link in either scheme.
func (it *item) keys() []journal.Key {
	return []journal.Key{it.key, {Link: it.linkAt(otherScheme(it.entry.Link)), Rest: it.key.Rest}}
}

// most reports whether n entries of a document are at least two, and more than half.
func most(n, all int) bool { return n > 1 && 2*n > all }

// renumbered returns, for each entry of a document that is not known, the record of the delivered entry
// whose guid was regenerated, or nil. Publishers regenerate guids all at once: if as many guids stayed,
// a new guid is a new entry. If a site moves to another host, most entries have another link, too.
func renumbered(j *journal.Journal, items []*item, known []*journal.Record, split []bool) []*journal.Record {
	old := make([]*journal.Record, len(items))
	if j.Good == 0 {
		return old
	}
	n := newRenumberings(j, items, known)
	stayed, found := 0, 0
	var unknown []int
	for i, it := range slices.Backward(items) {
		switch {
		case known[i] == nil && !split[i]:
			if old[i] = n.take(it); old[i] != nil {
				found++
			} else {
				unknown = append(unknown, i)
			}
		case known[i] != nil && it.entry.GUID != "" && it.level == 0:
			stayed++
		}
	}
	if most(len(unknown), len(items)) {
		moved := map[int]*journal.Record{}
		for _, i := range unknown {
			if r := n.takeMoved(items[i]); r != nil {
				moved[i] = r
			}
		}
		if most(len(moved), len(items)) {
			for i, r := range moved {
				old[i] = r
			}
			found += len(moved)
		}
	}
	if stayed >= found {
		clear(old)
	}
	return old
}

// markMoved marks the items of which only the link has changed, if these are most of the known ones.
func markMoved(items []*item, known []*journal.Record) {
	var moved []*item
	delivered := 0
	for i, r := range known {
		if r == nil {
			continue
		}
		delivered++
		if it := items[i]; r.Key.Rest == it.key.Rest && r.Key.Link != it.key.Link && !it.is(r.Content) {
			moved = append(moved, it)
		}
	}
	if most(len(moved), delivered) {
		for _, it := range moved {
			it.moved = true
		}
	}
}
