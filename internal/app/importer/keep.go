package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/feeds/feedstage"
	"github.com/lektordir/lektor/internal/feeds/marks"
	"github.com/lektordir/lektor/internal/protocol/importfmt"
)

// keepAtOnce is the maximum number of entries in memory with their texts, for each feed that is
// worked on.
const keepAtOnce = 500

// entryOf converts an entry of another reader; ok is false if it has neither a guid nor a link.
// base is the URL against which relative references are resolved if the entry has no base of its
// own. feedconv reads it as an item of a JSON Feed, so that it gets the same form and the same
// identity as an entry that its feed delivers.
func entryOf(k importfmt.Kept, base string) (e feedconv.Entry, ok bool) {
	item := map[string]any{"id": k.GUID, "url": k.URL, "title": k.Title}
	if !k.Date.IsZero() {
		item["date_published"] = k.Date.UTC().Format(time.RFC3339)
	}
	if t := k.Text; t != nil {
		item["content_html"], item["tags"] = t.Content, t.Categories
		if t.Plain {
			item["content_html"], item["content_text"] = "", t.Content
		}
		if t.Author != "" {
			item["authors"] = []any{map[string]any{"name": t.Author}}
		}
		var files []any
		for _, a := range t.Enclosures {
			file := map[string]any{"url": a.URL, "mime_type": a.Type}
			if a.Length > 0 {
				file["size_in_bytes"] = a.Length
			}
			files = append(files, file)
		}
		item["attachments"] = files
		base = cmp.Or(t.Base, base)
	}
	maps.DeleteFunc(item, func(_ string, value any) bool { return value == "" })
	doc, err := json.Marshal(map[string]any{"version": "https://jsonfeed.org/version/1.1", "items": []any{item}})
	if err != nil {
		return e, false
	}
	f, err := feedconv.ParseBytes(doc, feedconv.Options{URL: base, ContentType: "application/feed+json"})
	if err != nil || len(f.Entries) != 1 {
		return e, false
	}
	e = f.Entries[0]
	return e, e.GUID != "" || e.Link != ""
}

// deliver delivers the entries of another reader that were never delivered, and returns their
// number. t keeps the lock of the feed, also after an error.
func (m *mover) deliver(ctx context.Context, t *stage.Stager, src *source, base string, kept []importfmt.Kept) (n int,
	err error) {
	read := make([]marks.Mark, len(kept))
	for i, k := range kept {
		read[i] = marks.Mark{Flags: "S", ID: k.GUID, Date: k.Date}
		if k.ByLink {
			read[i].URL, read[i].Title = k.URL, k.Title
		}
	}
	delivered, err := marks.Arrived(m.d, t.Feed(), read)
	if err != nil {
		return 0, err
	}
	var list []importfmt.Kept
	for i, k := range kept {
		if !delivered[i] {
			list = append(list, k)
		}
	}
	// The newest entry is delivered last, as when a document is delivered.
	for len(list) > 0 {
		at := max(len(list)-keepAtOnce, 0)
		batch := list[at:]
		list = list[:at]
		if src.read != nil {
			if err := src.read(ctx, batch); err != nil {
				return n, err
			}
		}
		var entries []feedconv.Entry
		var byLink []bool
		for i, k := range batch {
			e, ok := entryOf(k, base)
			if src.read != nil {
				batch[i].Text = nil // free the memory for the next batch
			}
			if ok {
				entries, byLink = append(entries, e), append(byLink, k.ByLink)
			}
		}
		res, err := feedstage.StageImported(ctx, t, entries, func(i int) bool { return byLink[i] })
		if err != nil {
			return n, err
		}
		done := make(chan error, 1)
		t.Commit(func(err error) { done <- err })
		m.w.Flush()
		if err := <-done; err != nil {
			return n, err
		}
		n += len(res.New)
		*t = *t.Next()
	}
	return n, nil
}
