package stage

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/journal"
)

// Foreign is an entry of a feed that is imported from another reader; the feed itself may no
// longer have it.
type Foreign struct {
	// Item is the entry. Its GUID is the one in the feed, or "" if it has none or it is
	// unknown; then the entry has a link, and ByLink is set.
	Item
	// ByLink reports that no other entry of the feed has its link, so that the link
	// identifies it.
	ByLink bool
}

// StageForeign stages those of the entries, the newest first, that were never delivered.
// An error leaves the transaction to be closed, not committed.
//
// Each is known by its GUID, and by its link where that says so. When a document of the
// feed has it, under the GUID or under another one, the document's version is one that
// changed, whatever is in it: it says more than another reader has kept. By the link it
// is recognised once, and never where several have the link, nor in what is more than a day
// newer and has another title.
// If several entries of a document have its GUID and link, the one with its text matches.
func (t *Txn) StageForeign(ctx context.Context, entries []Foreign) (Result, error) {
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
	known, _ := origins(j, items)
	renumbered := newRenumberings(j, items)
	for i, it := range slices.Backward(items) {
		if ctx.Err() != nil {
			return res, context.Cause(ctx)
		}
		alone := byLink[it.Item]
		if known[i] != nil || alone && links[it.key.Link] || renumbered.take(it) != nil {
			res.Unchanged++
			continue
		}
		v := it.version("", "")
		v.Content = it.foreignContent()
		unique, err := t.Add(ctx, v)
		if err != nil {
			return res, err
		}
		if alone {
			k := journal.Key{Link: it.key.Link, Rest: minuteOf(it.PubDate)}
			for _, id := range []journal.Digest{foreignLink(it.Link), foreignTitle(it.Link, it.Title)} {
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

// foreignContent stands for the content of a foreign entry, which no document has so.
// The title is not in it, as some readers invent one for an entry without title.
func (it *item) foreignContent() journal.Digest {
	return journal.DigestOf("foreign", it.Link, it.text())
}

// foreignLink is the identity that a foreign entry has by its link. In the line of the
// journal the date stands for the rest of the second key.
func foreignLink(link string) journal.Digest { return journal.DigestOf("foreign link", link) }

// foreignTitle is the identity that a foreign entry has by its link and its title.
func foreignTitle(link, title string) journal.Digest {
	return journal.DigestOf("foreign title", link, strings.TrimSpace(title))
}

// minuteOf keeps a date, to the minute; nothing for none, and for those before 1970.
func minuteOf(date time.Time) (b [4]byte) {
	if !date.IsZero() {
		binary.BigEndian.PutUint32(b[:], uint32(max(date.Unix()/60, 0)))
	}
	return b
}

// foreign returns the record of the foreign entry that an item is by its link, if the feed
// has not been found to have that entry before, or nil.
func (it *item) foreign(j *journal.Journal, items []*item) *journal.Record {
	if it.Link == "" {
		return nil
	}
	r := journal.Newest(j.Versions(foreignLink(it.Link)))
	if r == nil {
		return nil
	}
	minute := binary.BigEndian.Uint32(r.Key.Rest[:])
	later := minute > 0 && !it.PubDate.IsZero() && it.PubDate.Unix()/60 > int64(minute)+24*60
	if later {
		// A page whose entry changes has one link for all of them, and other titles.
		titled := journal.Newest(j.Versions(foreignTitle(it.Link, it.Title)))
		if strings.TrimSpace(it.Title) == "" || titled == nil || titled.Unique != r.Unique {
			return nil
		}
	}
	for _, other := range items {
		if other != it && other.Link == it.Link {
			return nil
		}
	}
	if slices.ContainsFunc(j.LineageOf(*r), func(v journal.Record) bool { return v.Content != r.Content }) {
		return nil
	}
	return r
}

// byForeignLink reports whether an item was recognised by the link of a foreign entry.
func (it *item) byForeignLink(r *journal.Record) bool {
	return it.Link != "" && r.Identity == foreignLink(it.Link)
}
