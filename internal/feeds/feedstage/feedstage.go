// Package feedstage joins feedconv, lektordir and stage: it converts the entries of a document
// to the form in which they are delivered.
package feedstage

import (
	"context"
	"iter"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/lektordir"
	"github.com/lektordir/lektor/lektordir/fromfeed"
)

// On returns a transaction in which documents are staged, with the dates of the entries in d.
func On(d *lektordir.Dir, t *commit.Txn) *stage.Stager {
	return stage.New(t, func(path string) (time.Time, error) {
		ref, err := lektordir.ParsePath(path)
		if err != nil {
			return time.Time{}, err
		}
		e, err := d.ReadEntry(ref, lektordir.FieldUpdated|lektordir.FieldPubDate)
		if err != nil {
			return time.Time{}, err
		}
		if e.Updated.IsZero() {
			return e.PubDate, nil
		}
		return e.Updated, nil
	})
}

// Put stages one entry whose GUID the caller has chosen. Only the GUID identifies it.
func Put(ctx context.Context, t *stage.Stager, e feedconv.Entry, p lektordir.Policy) (stage.Result, error) {
	return t.Stage(ctx, stage.Document{Items: []stage.Item{item(&e, 0, nil)}, Policy: string(p), GUIDs: stage.Own})
}

// Document returns the entries of a document in the form of package stage. revise, if not nil, may change
// the entry at an index of the document before it is written.
func Document(f *feedconv.Feed, p lektordir.Policy, revise func(i int, e *lektordir.Entry)) stage.Document {
	doc := stage.Document{Items: make([]stage.Item, len(f.Entries)), Policy: string(p)}
	if f.Format == feedconv.Atom10 || f.Format == feedconv.Atom03 {
		doc.GUIDs = stage.OneID
	}
	for i := range f.Entries {
		doc.Items[i] = item(&f.Entries[i], i, revise)
	}
	return doc
}

// item returns the entry at index i in the form of package stage. revise is the parameter of [Document].
func item(e *feedconv.Entry, i int, revise func(int, *lektordir.Entry)) stage.Item {
	var enclosures []string
	for _, enc := range e.Enclosures {
		enclosures = append(enclosures, enc.URL)
	}
	return stage.Item{
		GUID: e.GUID, Title: e.Title, Link: e.Link,
		PubDate: e.PubDate, PubDateRaw: e.PubDateRaw, Updated: e.Updated,
		Text: stage.PlainText(e.Content, e.Type), Enclosures: enclosures, Status: fromfeed.Live(e).Get("status"),
		Files: func(replaces string) iter.Seq2[string, []byte] {
			to := fromfeed.Entry(e)
			if revise != nil {
				revise(i, to)
			}
			to.ID = stage.ID(to.ID, e.GUID, to.Link, to.Title, to.PubDate, to.PubDateRaw, to.Content)
			to.Replaces = replaces
			return to.Files()
		},
	}
}

// StageImported stages entries that are imported from another reader, the newest first. byLink
// reports whether the link of the entry at index i identifies it. See [stage.Stager.StageImported].
func StageImported(ctx context.Context, t *stage.Stager, entries []feedconv.Entry,
	byLink func(i int) bool) (stage.Result,
	error) {
	imported := make([]stage.ImportedEntry, len(entries))
	for i := range entries {
		imported[i] = stage.ImportedEntry{Item: item(&entries[i], i, nil), ByLink: byLink(i)}
	}
	return t.StageImported(ctx, imported)
}
