// Package delivery joins feedconv and lektordir: it decides which entries of a
// document are new or changed, and stages those.
package delivery

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
)

// Policy says what becomes of an entry that changed after it was delivered.
type Policy string

// The policies, as src/$feed/etc/fetch/on-update has them.
const (
	// Unread replaces a version that is still in new/, and ignores the change
	// otherwise.
	Unread Policy = "unread"
	// Deliver delivers the new version beside the old one. A version that was
	// delivered before is not delivered again, so that a feed which wavers
	// between two does not go on for ever.
	Deliver Policy = "deliver"
	// Ignore ignores the change.
	Ignore Policy = "ignore"
)

// ParsePolicy reads a policy; "" is the default, Unread.
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(strings.TrimSpace(s)); p {
	case "":
		return Unread, nil
	case Unread, Deliver, Ignore:
		return p, nil
	}
	return "", fmt.Errorf("%q is no policy for changed entries: it is one of unread, deliver, ignore", s)
}

// Options say how to stage.
type Options struct {
	Policy Policy // "" means Unread
}

// Result says what became of a document's entries. New and Updated will be in
// new/ once the transaction is committed.
type Result struct {
	New, Updated []lektordir.Ref
	// Unchanged counts entries delivered before as they are now, Ignored those
	// whose change the policy passes over, and Repeated those that stand in
	// the document more than once.
	Unchanged, Ignored, Repeated int
}

// item is an entry on its way.
type item struct {
	e        *feedconv.Entry
	identity lektordir.Digest
	// others are identities under which the entry may have been recorded when
	// the document was another: alone with its guid, or sharing it.
	others []lektordir.Digest
	// ambiguous tells that others of the document share guid and link.
	ambiguous bool
	key       lektordir.Key
	content   lektordir.Digest
}

// Stage stages what is new or changed in a document, oldest first as far as the
// document tells: feeds have the newest entry on top. The error is a local one;
// the transaction must be closed then, not committed.
func Stage(ctx context.Context, t *lektordir.Txn, f *feedconv.Feed, o Options) (Result, error) {
	var res Result
	atom := f.Format == feedconv.Atom10 || f.Format == feedconv.Atom03
	items := identify(f.Entries, atom, &res)
	return res, stage(ctx, t, items, o, true, &res)
}

// Put stages one entry whose GUID is given by the caller. It is recognised by
// that alone.
func Put(ctx context.Context, t *lektordir.Txn, e feedconv.Entry, o Options) (Result, error) {
	var res Result
	items := identify([]feedconv.Entry{e}, true, &res)
	return res, stage(ctx, t, items, o, false, &res)
}

// identify gives each entry its identity, and leaves out repeated ones. atom
// tells that entries with the same id are the same entry (RFC 4287, section
// 4.1.1), which RSS does not say of guids.
func identify(entries []feedconv.Entry, atom bool, res *Result) []*item {
	type pair struct{ guid, link string }
	// What stands in the document with a guid, or with guid and link: the first,
	// and whether there is another.
	type links struct {
		first   string
		several bool
	}
	type digests struct {
		first   lektordir.Digest
		several bool
	}
	guids := make(map[string]links, len(entries))
	pairs := make(map[pair]digests, len(entries))
	all := make([]*item, len(entries))
	for i := range entries {
		e := &entries[i]
		it := &item{e: e}
		text := e.Content // by which change is detected
		if lektordir.IsText(e.ContentType) {
			text = feedconv.PlainText(text, e.ContentType)
		}
		date := e.PublishedRaw
		if !e.Published.IsZero() {
			date = e.Published.UTC().Format(time.RFC3339)
		}
		it.content = lektordir.DigestOf("content", e.Title, e.Link, text)
		rest := lektordir.DigestOf("rest", e.Title, text, date)
		copy(it.key.Rest[:], rest[:])
		if e.Link != "" {
			link := lektordir.DigestOf("link", e.Link)
			copy(it.key.Link[:], link[:])
		}
		g, ok := guids[e.GUID]
		if !ok {
			g.first = e.Link
		}
		guids[e.GUID] = links{g.first, g.several || g.first != e.Link}
		p := pair{e.GUID, e.Link}
		d, ok := pairs[p]
		if !ok {
			d.first = rest
		}
		pairs[p] = digests{d.first, d.several || d.first != rest}
		all[i] = it
	}
	seen := map[lektordir.Digest]int{} // -> index in out
	out := make([]*item, 0, len(all))
	for _, it := range all {
		e := it.e
		rest := string(it.key.Rest[:])
		alone := lektordir.DigestOf("guid", e.GUID)
		linked := lektordir.DigestOf("guid link", e.GUID, e.Link)
		exact := lektordir.DigestOf("guid link digest", e.GUID, e.Link, rest)
		// Of Atom entries with one id, those with one link are versions.
		it.ambiguous = pairs[pair{e.GUID, e.Link}].several && !(atom && e.GUID != "")
		switch {
		case e.GUID != "" && guids[e.GUID].several && !it.ambiguous:
			it.identity, it.others = linked, []lektordir.Digest{alone}
		case e.GUID != "" && it.ambiguous:
			it.identity, it.others = exact, []lektordir.Digest{linked, alone}
		case e.GUID != "":
			it.identity, it.others = alone, []lektordir.Digest{linked, exact}
		case e.Link != "" && it.ambiguous:
			it.identity, it.others = lektordir.DigestOf("link digest", e.Link, rest), []lektordir.Digest{lektordir.DigestOf("link", e.Link)}
		case e.Link != "":
			it.identity, it.others = lektordir.DigestOf("link", e.Link), []lektordir.Digest{lektordir.DigestOf("link digest", e.Link, rest)}
		default:
			it.identity = lektordir.DigestOf("digest", rest)
		}
		if i, ok := seen[it.identity]; ok {
			res.Repeated++
			if e.Updated.After(out[i].e.Updated) {
				out[i] = it
			}
			continue
		}
		seen[it.identity] = len(out)
		out = append(out, it)
	}
	return out
}

// find gives the last record of an entry that was delivered before, or nil. Under
// a bare guid, any of those that shared it in some document may be recorded, so
// records with the entry's own link come first; and while it is shared, the
// bare guid with another link says nothing. Where the link is shared too, only
// the content tells.
func (it *item) find(j *lektordir.Journal) *lektordir.Record {
	own := j.Versions(it.identity)
	if it.linked(own) {
		return last(own)
	}
	for _, id := range it.others {
		for _, r := range j.Versions(id) {
			if r.Key.Link == it.key.Link && (!it.ambiguous || r.Content == it.content) {
				return last(j.Versions(id))
			}
		}
	}
	if len(own) > 0 || it.sharing() {
		return last(own)
	}
	for _, id := range it.others {
		if recs := j.Versions(id); len(recs) > 0 {
			return last(recs)
		}
	}
	return nil
}

// linked reports whether one of the records has the entry's own link.
func (it *item) linked(recs []lektordir.Record) bool {
	return slices.ContainsFunc(recs, func(r lektordir.Record) bool { return r.Key.Link == it.key.Link })
}

// last gives the last of the records, or nil.
func last(recs []lektordir.Record) *lektordir.Record {
	if len(recs) == 0 {
		return nil
	}
	return &recs[len(recs)-1]
}

// origins gives for each entry the last record of the one delivered before that
// it is, or nil. Two entries of a document cannot both be the same one delivered
// before, where a guid was renumbered and the old one came back, say: it is the
// one that it was delivered as, else the one that was recognised as it, else the
// one that might be it. split tells of the others, which are new.
func origins(j *lektordir.Journal, items []*item) (known []*lektordir.Record, split []bool) {
	known = make([]*lektordir.Record, len(items))
	split = make([]bool, len(items))
	if j.Len() == 0 {
		return known, split
	}
	rank := func(i int) int {
		switch r := known[i]; {
		case r.Identity != items[i].identity:
			return 2
		case !strings.HasPrefix(items[i].identity.String(), r.Lineage()):
			return 1
		}
		return 0
	}
	claims := make(map[string]int, len(items)) // lineage -> entry
	for i := len(items) - 1; i >= 0; i-- {
		if known[i] = items[i].find(j); known[i] == nil {
			continue
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

// sharing reports whether the entry shares its guid, or its link, with others
// of the document, so that the last of its other identities is the bare one.
func (it *item) sharing() bool {
	if it.e.GUID != "" {
		return it.identity != lektordir.DigestOf("guid", it.e.GUID)
	}
	return it.identity != lektordir.DigestOf("link", it.e.Link)
}

func stage(ctx context.Context, t *lektordir.Txn, items []*item, o Options, secondKey bool, res *Result) error {
	j, err := t.Journal()
	if err != nil {
		return err
	}
	present := make(map[lektordir.Digest]bool, len(items))
	for _, it := range items {
		present[it.identity] = true
		for _, id := range it.others {
			present[id] = true
		}
	}
	known, split := origins(j, items)
	// The same for all entries with a key, which may be as many as the document has.
	renumberings := map[lektordir.Key]*lektordir.Record{}
	for i, it := range slices.Backward(items) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		v := lektordir.Version{Identity: it.identity, Key: it.key, Content: it.content}
		if known[i] == nil {
			if secondKey && !split[i] {
				old, ok := renumberings[it.key]
				if !ok {
					old = renumbered(j, it, present)
				}
				renumberings[it.key] = nil // for one entry only
				if old != nil {
					if err := t.Alias(it.identity, it.key, it.content, *old); err != nil {
						return err
					}
					res.Unchanged++
					continue
				}
			}
			ref, err := t.Add(ctx, complete(v, it))
			if err != nil {
				return err
			}
			res.New = append(res.New, ref)
			continue
		}
		lineage := j.Lineage(*known[i])
		last := lineage[len(lineage)-1]
		if last.Content == it.content {
			res.Unchanged++
			continue
		}
		v.Lineage = last.Lineage()
		switch o.Policy {
		case Deliver:
			if slices.ContainsFunc(lineage, func(r lektordir.Record) bool { return r.Content == it.content }) {
				res.Ignored++
				continue
			}
			v.Entry.Replaces = last.Unique
		case Ignore:
			res.Ignored++
			continue
		default:
			if _, err := os.Lstat(t.Dir().Join("new", t.Feed(), last.Unique)); err != nil {
				res.Ignored++
				continue
			}
			v.Replaces = last.Unique
		}
		ref, err := t.Add(ctx, complete(v, it))
		if err != nil {
			return err
		}
		res.Updated = append(res.Updated, ref)
	}
	return nil
}

// renumbered finds the entry delivered before whose guid alone changed: all
// else is equal, it has a link, and its guid is not in the document any more.
func renumbered(j *lektordir.Journal, it *item, present map[lektordir.Digest]bool) *lektordir.Record {
	if it.e.Link == "" {
		return nil
	}
	recs := j.WithKey(it.key)
	for _, r := range recs {
		if present[r.Identity] {
			return nil
		}
	}
	return last(recs)
}

// complete fills the entry of a version.
func complete(v lektordir.Version, it *item) lektordir.Version {
	replaces := v.Entry.Replaces
	v.Entry = Entry(it.e)
	v.Entry.Replaces = replaces
	return v
}

// Entry gives an entry of a document the form of a lektor-dir.
func Entry(e *feedconv.Entry) lektordir.Entry {
	out := lektordir.Entry{
		Title:      e.Title,
		ID:         e.ID,
		Content:    []byte(e.Content),
		PubDate:    e.Published,
		Type:       e.ContentType,
		Link:       e.Link,
		Categories: e.Categories,
		Comments:   e.Comments,
		PubDateRaw: e.PublishedRaw,
	}
	if !e.Updated.Equal(e.Published) {
		out.Updated = e.Updated
	}
	// The file summary has no type beside it, so it is text.
	out.Summary = feedconv.PlainText(e.Summary, e.SummaryType)
	authors := make([]string, 0, len(e.Authors))
	for _, p := range e.Authors {
		if s := p.String(); s != "" {
			authors = append(authors, s)
		}
	}
	out.Author = strings.Join(authors, ", ")
	for _, enc := range e.Enclosures {
		out.Enclosures = append(out.Enclosures, lektordir.Enclosure{URL: enc.URL, Type: enc.Type, Length: enc.Length})
	}
	return out
}
