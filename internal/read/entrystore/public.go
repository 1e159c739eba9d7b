package entrystore

import (
	"slices"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/content/podcast"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// Public returns an entry as it may be published: without user names and passwords in URLs, and
// without invalid links, see [feedconv.IsLink], which other programs or earlier versions may have
// stored. It replaces an article by the feed's own text, so if the content was read,
// [lektordir.FieldFeedContent] must have been read too.
func Public(e *lektordir.Entry) *lektordir.Entry {
	p := *e
	if p.FullText.URL != "" {
		p.Content, p.Type = p.FeedContent, p.FullText.Type
		p.FeedContent, p.FullText = nil, lektordir.FullText{}
	}
	for _, s := range []*string{&p.Title, &p.ID, &p.Author, &p.Link, &p.Summary, &p.Comments, &p.Image, &p.Source.ID,
		&p.Source.Title, &p.Source.Link, &p.Source.URL, &p.Rights,
		&p.Source.Copyright, &p.Source.Image, &p.Source.Description} {
		*s = feedurl.RedactText(*s)
	}
	for _, s := range []*string{&p.Link, &p.Comments, &p.Image, &p.Source.Link, &p.Source.URL, &p.Source.Image} {
		*s = Followable(*s)
	}
	if textfile.IsText(p.Type) {
		p.Content = []byte(feedurl.RedactText(string(p.Content)))
	}
	redact(&p.Categories, func(c *string) []*string { return []*string{c} })
	redact(&p.Contributors, func(c *string) []*string { return []*string{c} })
	redact(&p.Terms, func(c *lektordir.Category) []*string { return []*string{&c.Name, &c.Scheme, &c.Label, &c.Term} })
	redact(&p.Relations, func(r *lektordir.Relation) []*string { return []*string{&r.Rel, &r.URL, &r.Title} })
	redact(&p.InReplyTo, func(r *lektordir.ReplyTo) []*string { return []*string{&r.Ref, &r.URL, &r.Source} })
	redact(&p.People, func(who *lektordir.Person) []*string { return []*string{&who.Name, &who.Email, &who.URL} })
	redact(&p.Enclosures, func(e *lektordir.Enclosure) []*string { return []*string{&e.URL} })
	redact(&p.Elements, publicElement)
	p.Relations = slices.DeleteFunc(p.Relations, func(r lektordir.Relation) bool { return !feedconv.IsLink(r.URL) })
	p.Enclosures = slices.DeleteFunc(p.Enclosures, func(e lektordir.Enclosure) bool { return !feedconv.IsLink(e.URL) })
	for i := range p.InReplyTo {
		r := &p.InReplyTo[i]
		r.URL, r.Source = Followable(r.URL), Followable(r.Source)
	}
	for i := range p.People {
		p.People[i].URL = Followable(p.People[i].URL)
	}
	return &p
}

// redact replaces a list by a copy without user names and passwords in the texts of its elements.
func redact[S ~[]T, T any](list *S, texts func(*T) []*string) {
	*list = slices.Clone(*list)
	for i := range *list {
		for _, s := range texts(&(*list)[i]) {
			*s = feedurl.RedactText(*s)
		}
	}
}

// publicElement removes the values of attributes of e that are references which a reader must not follow, and returns
// its texts.
func publicElement(e *lektordir.Element) []*string {
	texts := []*string{&e.Text}
	e.Attributes = slices.Clone(e.Attributes)
	for i := range e.Attributes {
		a := &e.Attributes[i]
		texts = append(texts, &a.Value)
		switch name := strings.ToLower(a.Name); {
		case strings.HasSuffix(name, "url"), name == "uri", name == "href", name == "src", name == "img":
			a.Value = Followable(a.Value)
		}
	}
	return texts
}

// FeedFields returns the properties of a feed that only podcasts have, as they may be published.
func FeedFields(f *lektordir.Feed) []podcast.Field {
	elements := f.Elements
	redact(&elements, publicElement)
	return podcast.FeedFields(elements)
}

// Own is like [Public], but keeps the article. It is for output that only the user reads, for
// example mail.
func Own(e *lektordir.Entry) *lektordir.Entry {
	own := *e
	own.FullText, own.FeedContent = lektordir.FullText{}, nil
	return Public(&own)
}

// Followable returns url if it is a link, else "".
func Followable(url string) string {
	if !feedconv.IsLink(url) {
		return ""
	}
	return url
}
