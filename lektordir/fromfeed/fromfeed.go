// Package fromfeed makes feeds and entries of package lektordir from those that package feedconv has
// read, so that nothing is lost on the way from a document to a lektor-dir. All functions are safe for
// concurrent use.
package fromfeed

import (
	"net/mail"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/lektordir"
)

// Feed returns a feed in the form of a lektor-dir. Its id is chosen by the caller, mostly by
// [lektordir.NormalizeID] of the URL of the document, and stays the same. Its name is the title of the
// document on one line, or the id without a title.
func Feed(id string, f *feedconv.Feed) *lektordir.Feed {
	name := strings.Join(strings.Fields(f.Title), " ")
	if name == "" {
		name = id
	}
	return &lektordir.Feed{
		ID: id, Name: name, Description: f.Description, Language: f.Language, Image: f.Image,
		Copyright: f.Copyright, Author: strings.Join(names(f.Authors), ", "), Link: f.Link,
		Generator: f.Generator.String(), Elements: elements(nil, "", f.Extensions),
	}
}

// Entry returns an entry of a document in the form of a lektor-dir, with all that an entry there can
// have. It has no [lektordir.Entry.Replaces]: delivery sets that. The content and the lists may be shared
// with e. Extensions and attributes are left out, except those of podcasts, see [Extensions]; so is the type
// of the summary, which becomes text.
func Entry(e *feedconv.Entry) *lektordir.Entry {
	to := &lektordir.Entry{
		Title: e.Title, ID: e.ID, Type: e.Type, Link: e.Link,
		PubDate: e.PubDate, PubDateRaw: e.PubDateRaw, Updated: e.Updated,
		Categories: e.Categories, Comments: e.Comments,

		Content: []byte(e.Content),
		// The extra summary has no type, so it is text.
		Summary:      feedconv.PlainText(e.Summary, e.SummaryType),
		Author:       strings.Join(names(e.Authors), ", "),
		Contributors: names(e.Contributors),
		People: append(people(lektordir.RoleAuthor, e.Authors),
			people(lektordir.RoleContributor, e.Contributors)...),
		Image: e.Image, Language: e.Language, Rights: e.Rights,
		Duration: e.Duration, Episode: e.Episode, Season: e.Season,
		Elements: elements(status(e.Attributes), "", e.Extensions),
	}
	for _, c := range e.Terms {
		to.Terms = append(to.Terms, lektordir.Category(c))
	}
	for _, l := range e.Links {
		to.Relations = append(to.Relations, lektordir.Relation{Rel: l.Rel, URL: l.URL, Type: l.Type, Title: l.Title})
	}
	for _, r := range e.InReplyTo {
		to.InReplyTo = append(to.InReplyTo, lektordir.ReplyTo{Ref: r.Ref, URL: r.URL, Type: r.Type, Source: r.Source})
	}
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
	return to
}

// people returns persons with a role. It returns none if there is only one person, and the text of
// that person, as in the file author, has all that is known.
func people(role string, list []feedconv.Person) []lektordir.Person {
	if len(list) == 1 && list[0].URL == "" && (list[0].Email == "" || isAddress(list[0])) {
		return nil
	}
	return inRole(role, list)
}

// isAddress reports whether the text of a person is a mail address with the same name and address.
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

// names returns the texts of persons, without empty ones.
func names(list []feedconv.Person) []string {
	var out []string
	for _, p := range list {
		if s := p.String(); s != "" {
			out = append(out, s)
		}
	}
	return out
}
