// Package delivery joins feedconv and lektordir: it gives the entries of a
// document the form in which they are delivered.
package delivery

import (
	"context"
	"net/mail"
	"strings"
	"time"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
)

// Options are what [StageWith] takes, see [lektordir.Document].
type Options struct {
	Dates lektordir.Dates
	Keep  func(identity string) bool
	Rank  bool
	Apart bool
	// Article, if not nil, is asked once for each entry that is staged, by its index in
	// the document, whether it has an article that takes the place of its content.
	Article func(i int) (Article, bool)
}

// Article is the text of an entry's page.
type Article struct {
	URL  string // of the page
	HTML []byte
}

// Replace makes an article the content of an entry, beside which the feed's own is kept.
func (a Article) Replace(e *lektordir.Entry) {
	e.FeedContent, e.FullText = e.Content, lektordir.FullText{URL: a.URL, Type: e.Type}
	e.Content, e.Type = a.HTML, "text/html"
}

// StageWith stages what is new or changed in a document. The error is a local one;
// the transaction must be closed then, not committed.
func StageWith(ctx context.Context, t *lektordir.Txn, f *feedconv.Feed, p lektordir.Policy, o Options) (lektordir.Result, error) {
	doc := document(f, p)
	doc.Dates, doc.Keep, doc.Rank, doc.Apart = o.Dates, o.Keep, o.Rank, o.Apart
	if o.Article != nil {
		for i := range doc.Items {
			fill := doc.Items[i].Fill
			doc.Items[i].Fill = func(to *lektordir.Entry) {
				fill(to)
				if a, ok := o.Article(i); ok {
					a.Replace(to)
				}
			}
		}
	}
	return t.Stage(ctx, doc)
}

// Wanted gives the entries of a document that [StageWith] would stage now, by their
// index, see [lektordir.Txn.Wanted].
func Wanted(t *lektordir.Txn, f *feedconv.Feed, p lektordir.Policy, dates lektordir.Dates) ([]lektordir.Wanted, error) {
	doc := document(f, p)
	doc.Dates = dates
	return t.Wanted(doc)
}

// Versions gives the entries of a document, see [lektordir.Document.Versions].
func Versions(f *feedconv.Feed) map[string]time.Time {
	doc := document(f, "")
	return doc.Versions()
}

// Arrived returns when those of them came that were delivered before, see
// [lektordir.Txn.Arrived].
func Arrived(t *lektordir.Txn, f *feedconv.Feed) (map[string]time.Time, error) {
	return t.Arrived(document(f, ""))
}

// Put stages one entry whose GUID is given by the caller. It is recognised by
// that alone.
func Put(ctx context.Context, t *lektordir.Txn, e feedconv.Entry, p lektordir.Policy) (lektordir.Result, error) {
	return t.Stage(ctx, lektordir.Document{Items: []lektordir.Item{item(&e)}, Policy: p, OneID: true, Own: true})
}

func document(f *feedconv.Feed, p lektordir.Policy) lektordir.Document {
	doc := lektordir.Document{
		Items:  make([]lektordir.Item, len(f.Entries)),
		Policy: p,
		OneID:  f.Format == feedconv.Atom10 || f.Format == feedconv.Atom03,
	}
	for i := range f.Entries {
		doc.Items[i] = item(&f.Entries[i])
	}
	return doc
}

// item gives an entry the form of a lektor-dir; what is costly, and tells nothing
// of which entry it is, when it is wanted.
func item(e *feedconv.Entry) lektordir.Item {
	var earlier *lektordir.Item
	if e.Earlier != nil {
		before := item(e.Earlier)
		earlier = &before
	}
	text := e.Content
	if lektordir.IsText(e.ContentType) {
		text = feedconv.PlainText(text, e.ContentType)
	}
	return lektordir.Item{
		GUID: e.GUID, Text: text, Earlier: earlier,
		Entry: lektordir.Entry{
			Title: e.Title, ID: e.ID, Type: e.ContentType, Link: e.Link,
			PubDate: e.Published, PubDateRaw: e.PublishedRaw, Updated: e.Updated,
			Categories: e.Categories, Comments: e.Comments,
		},
		Fill: func(to *lektordir.Entry) {
			to.Content = []byte(e.Content)
			// The file summary has no type beside it, so it is text.
			to.Summary = feedconv.PlainText(e.Summary, e.SummaryType)
			to.Author = strings.Join(persons(e.Authors), ", ")
			to.Contributors = persons(e.Contributors)
			to.People = append(people(lektordir.RoleAuthor, e.Authors), people(lektordir.RoleContributor, e.Contributors)...)
			to.Image, to.Language, to.Rights = e.Image, e.Language, e.Rights
			for _, c := range e.Terms {
				to.Terms = append(to.Terms, lektordir.Category(c))
			}
			for _, l := range e.Links {
				to.Relations = append(to.Relations, lektordir.Relation{Rel: l.Rel, URL: l.Href, Type: l.Type, Title: l.Title})
			}
			to.Duration, to.Episode, to.Season = e.Duration, e.Episode, e.Season
			if e.Source != nil {
				s := e.Source
				to.People = append(to.People, inRole(lektordir.RoleSource, s.Authors)...)
				to.Source = lektordir.Source{
					ID: s.ID, Title: s.Title, Link: s.Link, URL: s.URL, Updated: s.Updated,
					Copyright: s.Copyright, Image: s.Image, Description: s.Description,
				}
			}
			for _, enc := range e.Enclosures {
				to.Enclosures = append(to.Enclosures, lektordir.Enclosure{URL: enc.URL, Type: enc.Type, Length: enc.Length})
			}
		},
	}
}

// people returns persons with a role, none if the text of one person says the same.
func people(role string, list []feedconv.Person) []lektordir.Person {
	if len(list) == 1 && list[0].URL == "" && (list[0].Email == "" || isAddress(list[0])) {
		return nil
	}
	return inRole(role, list)
}

// isAddress reports whether the text of a person, read as an address of mail, is that
// person.
func isAddress(p feedconv.Person) bool {
	a, err := mail.ParseAddress(p.String())
	return err == nil && a.Name == p.Name && a.Address == p.Email
}

// inRole returns persons with a role.
func inRole(role string, list []feedconv.Person) []lektordir.Person {
	out := make([]lektordir.Person, len(list))
	for i, p := range list {
		out[i] = lektordir.Person{Role: role, Name: p.Name, Email: p.Email, URL: p.URL}
	}
	return out
}

// persons are those of whom anything is known.
func persons(list []feedconv.Person) []string {
	var out []string
	for _, p := range list {
		if s := p.String(); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// StageForeign stages entries that are not from a document of the feed, but were kept by
// another reader, the newest first; byLink tells of each, by its index, whether its link
// tells which it is. See [lektordir.Txn.StageForeign].
func StageForeign(ctx context.Context, t *lektordir.Txn, entries []feedconv.Entry, byLink func(i int) bool) (lektordir.Result, error) {
	foreign := make([]lektordir.Foreign, len(entries))
	for i := range entries {
		foreign[i] = lektordir.Foreign{Item: item(&entries[i]), ByLink: byLink(i)}
	}
	return t.StageForeign(ctx, foreign)
}
