// Package feedstage joins feedconv, lektordir and stage: it converts the entries of a document
// to the form in which they are delivered.
package feedstage

import (
	"cmp"
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

// Options are the options of [StageWith].
type Options struct {
	// These are the fields of [stage.Document].
	Dates     stage.Dates
	Keep      func(identity string) bool
	NoOverlap bool
	// Article, if not nil, returns the article that replaces the content of the entry at an index
	// of the document; ok is false if there is none. It is called for entries that are known or
	// staged. If it fails, StageWith returns its error, because an entry that is delivered without its
	// article would never get it.
	Article func(i int) (a Article, ok bool, err error)
}

// Article is the text of an entry's page.
type Article struct {
	URL  string // URL of the page
	HTML []byte
}

// Replace sets the content of e to the article, and its FeedContent to the feed's content.
func (a Article) Replace(e *lektordir.Entry) {
	e.FeedContent, e.FullText = e.Content, lektordir.FullText{URL: a.URL, Type: e.Type}
	e.Content, e.Type = a.HTML, "text/html"
}

// StageWith stages the entries of a document that are new or have changed. After an error, the
// transaction cannot be committed; close it.
func StageWith(ctx context.Context, t *stage.Stager, f *feedconv.Feed, p lektordir.Policy, o Options) (stage.Result,
	error) {
	var failed error
	var article func(i int) (Article, bool)
	if o.Article != nil {
		article = func(i int) (Article, bool) {
			a, ok, err := o.Article(i)
			failed = cmp.Or(failed, err)
			return a, ok
		}
	}
	doc := document(f, p, article)
	doc.Dates, doc.Keep, doc.NoOverlap = o.Dates, o.Keep, o.NoOverlap
	out, err := t.Stage(ctx, doc)
	return out, cmp.Or(err, failed)
}

// Wanted returns the entries of a document that [StageWith] would stage now; see [stage.Stager.Wanted].
func Wanted(t *stage.Stager, f *feedconv.Feed, p lektordir.Policy, dates stage.Dates) ([]stage.Wanted, error) {
	doc := document(f, p, nil)
	doc.Dates = dates
	return t.Wanted(doc)
}

// Versions returns the identities of the entries of a document and their dates; see
// [stage.Document.Versions].
func Versions(f *feedconv.Feed) map[string]time.Time {
	doc := document(f, "", nil)
	return doc.Versions()
}

// Arrived returns the times at which the entries of a document were first delivered; see
// [stage.Stager.Arrived].
func Arrived(t *stage.Stager, f *feedconv.Feed) (map[string]time.Time, error) {
	return t.Arrived(document(f, "", nil))
}

// Put stages one entry whose GUID the caller has chosen. Only the GUID identifies it.
func Put(ctx context.Context, t *stage.Stager, e feedconv.Entry, p lektordir.Policy) (stage.Result, error) {
	return t.Stage(ctx, stage.Document{Items: []stage.Item{item(&e, nil)}, Policy: string(p), GUIDs: stage.Own})
}

func document(f *feedconv.Feed, p lektordir.Policy, article func(i int) (Article, bool)) stage.Document {
	doc := stage.Document{Items: make([]stage.Item, len(f.Entries)), Policy: string(p)}
	if f.Format == feedconv.Atom10 || f.Format == feedconv.Atom03 {
		doc.GUIDs = stage.OneID
	}
	for i := range f.Entries {
		doc.Items[i] = item(&f.Entries[i], func(e *lektordir.Entry) {
			if article == nil {
				return
			}
			if a, ok := article(i); ok {
				a.Replace(e)
			}
		})
	}
	return doc
}

// item returns an entry in the form of package stage. revise, if not nil, may change the entry before
// it is written.
func item(e *feedconv.Entry, revise func(*lektordir.Entry)) stage.Item {
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
				revise(to)
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
		imported[i] = stage.ImportedEntry{Item: item(&entries[i], nil), ByLink: byLink(i)}
	}
	return t.StageImported(ctx, imported)
}
