package stage

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/journal"
)

// ImportedEntry is an entry of a feed that is imported from another reader. The feed's document may no
// longer have it.
type ImportedEntry struct {
	// Item is the entry. Its GUID is that in the feed. If the feed has none, or it is unknown,
	// GUID is "", the entry has a link, and ByLink is true.
	Item
	// ByLink is true if no other entry of the feed has the link, so that the link identifies the
	// entry.
	ByLink bool
}

// StageImported stages those of the entries that were never delivered. entries has the newest entry
// first. After an error, the transaction cannot be committed; close it.
//
// Later documents of the feed are compared with an imported entry by its GUID, and by its link if
// ByLink is true. If a document has the entry, its version counts as changed, whatever it has, because
// the feed's entry is more complete than the one from the other reader.
//
// The link matches only once. It does not match if several entries of the document have it, or if
// the document's entry is more than a day newer and has another title. If several entries of a
// document have the GUID and the link, the one with the same text matches.
func (t *Stager) StageImported(ctx context.Context, entries []ImportedEntry) (Result, error) {
	var res Result
	j, err := t.Journal()
	if err != nil {
		return res, err
	}
	doc := Document{Items: make([]Item, len(entries)), GUIDs: OneID}
	byLink := make(map[*Item]bool, len(entries))
	for i := range entries {
		doc.Items[i] = entries[i].Item
		byLink[&doc.Items[i]] = entries[i].ByLink && entries[i].Link != ""
	}
	var items []*item
	items, res.Repeated = identify(doc)
	links := map[[4]byte]bool{}
	for _, r := range j.All {
		links[r.Key.Link] = true
	}
	known, _ := origins(j, items, doc.GUIDs, t.home)
	renumbered := newRenumberings(j, items, known)
	for i, it := range slices.Backward(items) {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		uniqueLink := byLink[it.entry]
		linked := func(k journal.Key) bool { return links[k.Link] }
		if known[i] != nil || uniqueLink && slices.ContainsFunc(it.keys(), linked) || renumbered.take(it) != nil {
			res.Unchanged++
			continue
		}
		v := it.version("", "")
		v.Content = it.importedContent()
		unique, err := t.Add(ctx, v)
		if err != nil {
			return res, err
		}
		if uniqueLink {
			k := journal.Key{Link: it.key.Link, Rest: minuteOf(it.entry.PubDate)}
			for _, id := range []journal.Digest{importedLink(it.entry.Link), importedTitle(it.entry.Link,
				it.entry.Title)} {
				if err := t.Alias(id, k, v.Content, journal.Record{Unique: unique}); err != nil {
					return res, err
				}
			}
			links[it.key.Link] = true
		}
		res.New = append(res.New, unique)
	}
	return res, nil
}

// importedContent returns the digest that an imported entry has instead of that of its content, so
// that the document's version always differs. The title is not part of it, because some readers
// invent titles.
func (it *item) importedContent() journal.Digest {
	return journal.DigestOf("foreign", it.entry.Link, it.entry.Text)
}

// importedLink returns the identity of an imported entry by its link. In its line of the journal,
// Key.Rest holds the date.
func importedLink(link string) journal.Digest { return journal.DigestOf("foreign link", link) }

// importedTitle returns the identity of an imported entry by its link and its title.
func importedTitle(link, title string) journal.Digest {
	return journal.DigestOf("foreign title", link, strings.TrimSpace(title))
}

// minuteOf encodes a date in minutes since 1970. A missing or earlier date is zero.
func minuteOf(date time.Time) (b [4]byte) {
	if !date.IsZero() {
		binary.BigEndian.PutUint32(b[:], uint32(max(date.Unix()/60, 0)))
	}
	return b
}

// matchImported returns the record of the imported entry that the item matches by its link, or nil. It
// returns nil if the entry was matched before.
func (it *item) matchImported(j *journal.Journal, items []*item) *journal.Record {
	if it.entry.Link == "" {
		return nil
	}
	link := it.entry.Link
	r := journal.Newest(j.Versions(importedLink(link)))
	if r == nil {
		link = otherScheme(link)
		r = journal.Newest(j.Versions(importedLink(link)))
	}
	if r == nil {
		return nil
	}
	minute := binary.BigEndian.Uint32(r.Key.Rest[:])
	later := minute > 0 && !it.entry.PubDate.IsZero() && it.entry.PubDate.Unix()/60 > int64(minute)+24*60
	if later {
		// A feed may have the same link for all of its entries, so the title must match, too.
		titled := journal.Newest(j.Versions(importedTitle(link, it.entry.Title)))
		if strings.TrimSpace(it.entry.Title) == "" || titled == nil || titled.Unique != r.Unique {
			return nil
		}
	}
	for _, other := range items {
		if other != it && other.entry.Link == it.entry.Link {
			return nil
		}
	}
	if slices.ContainsFunc(j.LineageOf(*r), func(v journal.Record) bool { return v.Content != r.Content }) {
		return nil
	}
	return r
}
