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
	p.Categories = slices.Clone(p.Categories)
	for i, c := range p.Categories {
		p.Categories[i] = feedurl.RedactText(c)
	}
	p.Terms = slices.Clone(p.Terms)
	for i := range p.Terms {
		c := &p.Terms[i]
		for _, s := range []*string{&c.Name, &c.Scheme, &c.Label, &c.Term} {
			*s = feedurl.RedactText(*s)
		}
	}
	p.Contributors = slices.Clone(p.Contributors)
	for i, c := range p.Contributors {
		p.Contributors[i] = feedurl.RedactText(c)
	}
	p.Relations = slices.DeleteFunc(slices.Clone(p.Relations),
		func(r lektordir.Relation) bool { return !feedconv.IsLink(r.URL) })
	for i := range p.Relations {
		r := &p.Relations[i]
		r.Rel, r.URL, r.Title = feedurl.RedactText(r.Rel), feedurl.RedactText(r.URL), feedurl.RedactText(r.Title)
	}
	p.InReplyTo = slices.Clone(p.InReplyTo)
	for i := range p.InReplyTo {
		r := &p.InReplyTo[i]
		r.Ref = feedurl.RedactText(r.Ref)
		r.URL, r.Source = Followable(feedurl.RedactText(r.URL)), Followable(feedurl.RedactText(r.Source))
	}
	p.People = slices.Clone(p.People)
	for i := range p.People {
		who := &p.People[i]
		who.Name, who.Email = feedurl.RedactText(who.Name), feedurl.RedactText(who.Email)
		who.URL = Followable(feedurl.RedactText(who.URL))
	}
	p.Elements = publicElements(p.Elements)
	p.Enclosures = slices.DeleteFunc(slices.Clone(p.Enclosures),
		func(e lektordir.Enclosure) bool { return !feedconv.IsLink(e.URL) })
	for i := range p.Enclosures {
		p.Enclosures[i].URL = feedurl.RedactText(p.Enclosures[i].URL)
	}
	return &p
}

// publicElements returns elements without passwords, and without attributes that are references which a
// reader must not follow.
func publicElements(list lektordir.Elements) lektordir.Elements {
	list = slices.Clone(list)
	for i := range list {
		e := &list[i]
		e.Text, e.Attributes = feedurl.RedactText(e.Text), slices.Clone(e.Attributes)
		for j := range e.Attributes {
			a := &e.Attributes[j]
			a.Value = feedurl.RedactText(a.Value)
			switch name := strings.ToLower(a.Name); {
			case strings.HasSuffix(name, "url"), name == "uri", name == "href", name == "src", name == "img":
				a.Value = Followable(a.Value)
			}
		}
	}
	return list
}

// FeedFields returns the properties of a feed that only podcasts have, as they may be published.
func FeedFields(f *lektordir.Feed) []podcast.Field {
	return podcast.FeedFields(publicElements(f.Elements))
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
