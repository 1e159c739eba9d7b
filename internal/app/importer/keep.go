package importer

import (
	"context"
	"encoding/json"
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

// jsonEntry is an item of a JSON Feed. feedconv reads it, so that an entry of another reader gets
// the same form and the same identity as an entry that its feed delivers.
type jsonEntry struct {
	ID          string      `json:"id,omitempty"`
	URL         string      `json:"url,omitempty"`
	Title       string      `json:"title,omitempty"`
	HTML        string      `json:"content_html,omitempty"`
	Plain       string      `json:"content_text,omitempty"`
	Published   string      `json:"date_published,omitempty"`
	Authors     []jsonName  `json:"authors,omitempty"`
	Tags        []string    `json:"tags,omitempty"`
	Attachments []jsonAsset `json:"attachments,omitempty"`
}

type jsonName struct {
	Name string `json:"name"`
}

type jsonAsset struct {
	URL  string `json:"url"`
	Type string `json:"mime_type,omitempty"`
	Size int64  `json:"size_in_bytes,omitempty"`
}

// entryOf converts an entry of another reader; ok is false if it has neither a guid nor a link.
// base is the URL against which relative references are resolved if the entry has no base of its
// own.
func entryOf(k importfmt.Kept, base string) (e feedconv.Entry, ok bool) {
	j := jsonEntry{ID: k.GUID, URL: k.URL, Title: k.Title}
	if !k.Date.IsZero() {
		j.Published = k.Date.UTC().Format(time.RFC3339)
	}
	if t := k.Text; t != nil {
		j.HTML, j.Tags = t.Content, t.Categories
		if t.Plain {
			j.HTML, j.Plain = "", t.Content
		}
		if t.Author != "" {
			j.Authors = []jsonName{{t.Author}}
		}
		for _, a := range t.Enclosures {
			j.Attachments = append(j.Attachments, jsonAsset{a.URL, a.Type, max(a.Length, 0)})
		}
		if t.Base != "" {
			base = t.Base
		}
	}
	doc, err := json.Marshal(map[string]any{"version": "https://jsonfeed.org/version/1.1", "items": []jsonEntry{j}})
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
