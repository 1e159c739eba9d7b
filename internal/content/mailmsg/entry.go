package mailmsg

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/mail"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/content/htmlsafe"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Entry is the input for a message.
type Entry struct {
	Ref   lektordir.Ref
	Feed  *lektordir.Feed
	Entry *lektordir.Entry // as [entrystore.Own] returns it: URLs have no passwords, and links can be followed
	Title string           // the title to show if the entry has none, for example the beginning of its content
	Date  time.Time        // with the time zone of the message
	// Version distinguishes the messages of versions of an entry. It is empty for the first version.
	Version string
	// Images keeps images in the message; most mail programs ask before they load them. If it is
	// not set, each image becomes a link.
	Images bool
}

// domain is the domain of all addresses and IDs. It can belong to nobody (RFC 2606, 2), so that no reply
// is sent by accident.
const domain = "lektor.invalid"

// width is the width of the text in columns.
const width = 72

// ThreadID returns the message ID that all messages of a feed refer to. No message has this ID, but mail
// programs put messages that refer to the same ID into one thread (RFC 5256, 3).
func ThreadID(feed string) string { return token(feed) + "@" + domain }

// ID returns the ID of the entry's message. It is made of the feed and the entry's identity, which is
// the same on every machine. If the entry has no identity, its unique name is used.
func (e *Entry) ID() string {
	id := e.first()
	if e.Version != "" {
		id = digest(e.Version) + "." + id
	}
	return id
}

// first returns the ID of the message of the first version.
func (e *Entry) first() string {
	return cmp.Or(e.Ref.Identity(), digest(e.Ref.Unique)) + "." + ThreadID(e.Ref.Feed)
}

// token returns the hash of a feed, or a digest of the name if it is not a hash.
func token(feed string) string {
	if feed == "" || len(feed) > 40 || strings.Trim(feed, "0123456789abcdef") != "" {
		return digest(feed)
	}
	return feed
}

func digest(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:8])
}

// Message returns the entry as a message. Its sender is the name of the author or feed, with an address
// that does not exist.
func (e *Entry) Message() *Message {
	feed := FeedTitle(e.Feed)
	from := feed
	if author := e.author(); author != "" && !strings.EqualFold(author, feed) {
		from += ": " + author
	}
	subject := e.title()
	m := &Message{
		From:       mail.Address{Name: from, Address: digest(e.Ref.Feed) + "@" + domain},
		Subject:    subject,
		Date:       e.Date,
		ID:         e.ID(),
		References: []string{ThreadID(e.Ref.Feed)},
		Fields: []Field{
			{"List-Id", Phrase(feed) + " <" + token(e.Ref.Feed) + "." + domain + ">"},
			{"Archived-At", ids(htmlsafe.URL(e.Entry.URL()))},
			{"X-RSS-Feed", Token(htmlsafe.URL(e.Feed.ID))}, // web URLs only, not commands or files
			{"Keywords", e.keywords()},
			{"Content-Language", e.language()},
			{"Auto-Submitted", "auto-generated"},
		},
	}
	if e.Version != "" {
		m.References = append(m.References, e.first())
	}
	title := ""
	if _, whole := Brief(subject); !whole {
		title = subject
	}
	m.Text, m.HTML = e.text(title), e.html(subject)
	return m
}

// FeedTitle returns the title of a feed.
func FeedTitle(f *lektordir.Feed) string {
	return cmp.Or(termsafe.Squeeze(feedurl.RedactText(f.Title())), "(no name)")
}

// author returns the names of the authors, and the addresses of authors without a name.
func (e *Entry) author() string {
	return content.Authors(feedurl.RedactText(cmp.Or(e.Entry.Author, e.Feed.Author)), true)
}

// maxKeywords is the maximum number of categories in a header.
const maxKeywords = 20

func (e *Entry) keywords() string {
	var list []string
	for _, c := range e.Entry.Categories {
		if c = Phrase(c); c != "" && len(list) < maxKeywords {
			list = append(list, c)
		}
	}
	return strings.Join(list, ", ")
}

// language returns the language tag of the entry, "" if it is not valid.
func (e *Entry) language() string { return content.Language(cmp.Or(e.Entry.Language, e.Feed.Language)) }

// Lang returns the attribute of HTML for a language tag, with a leading space, "" if the tag is not
// valid.
func Lang(tag string) string {
	if tag = content.Language(tag); tag != "" {
		tag = ` lang="` + tag + `"`
	}
	return tag
}

// base returns the URL that relative links of the content are resolved against.
func (e *Entry) base() string { return cmp.Or(e.Entry.URL(), feedurl.Public(e.Feed.ID)) }

// text returns the entry as plain text. It begins with title if that is not empty.
func (e *Entry) text(title string) string {
	body := htmltext.Render(e.Entry.Content, e.Entry.Type, htmltext.Options{Width: width, Base: e.base()})
	if strings.TrimSpace(body) == "" {
		body = htmltext.Render([]byte(e.Entry.Summary), "text/plain", htmltext.Options{Width: width})
	}
	var b strings.Builder
	if title != "" {
		b.WriteString(title + "\n\n")
	}
	if body = strings.Trim(body, "\n"); strings.TrimSpace(body) != "" {
		b.WriteString(body + "\n\n")
	}
	for _, link := range []struct{ what, url string }{{"", e.Entry.URL()}, {"Comments: ", e.Entry.Comments}} {
		if url := termsafe.Line(link.url); url != "" {
			b.WriteString(link.what + url + "\n")
		}
	}
	for _, enc := range e.Entry.Enclosures {
		_, about := content.About(enc)
		b.WriteString("Enclosure: " + termsafe.Line(enc.URL) + about + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// html returns the entry as an HTML document.
func (e *Entry) html(title string) string {
	var b strings.Builder
	b.WriteString(`<h1 dir="auto" style="` + styleTitle + `">` + htmlsafe.Link(e.Entry.URL(), title) + "</h1>\n")
	b.WriteString(`<p style="` + styleMeta + `"><bdi>` + htmlsafe.Text(FeedTitle(e.Feed)) + "</bdi>")
	if a := e.author(); a != "" {
		b.WriteString(" · <bdi>" + htmlsafe.Text(a) + "</bdi>")
	}
	b.WriteString(" · " + e.Date.Format("2 Jan 2006 15:04"))
	if e.Entry.Comments != "" {
		b.WriteString(" · " + htmlsafe.Link(e.Entry.Comments, "Comments"))
	}
	b.WriteString("</p>\n" + e.content(2))
	return Document(title, e.language(), b.String(), e.Images)
}

// content returns the content as HTML, followed by links to the enclosures. heading is the level of its
// highest headings.
func (e *Entry) content(heading int) string {
	body := htmlsafe.Clean(e.Entry.Content, e.Entry.Type, htmlsafe.Options{Base: e.base(), Heading: heading,
		NoImages: !e.Images})
	if strings.TrimSpace(body) == "" {
		// For content that is not text, this states its type.
		text := cmp.Or(e.Entry.Summary, htmltext.Render(e.Entry.Content, e.Entry.Type, htmltext.Options{}))
		body = htmlsafe.Clean([]byte(text), "text/plain", htmlsafe.Options{})
	}
	var b strings.Builder
	b.WriteString("<div dir=\"auto\"" + Lang(e.language()) + ">\n" + body + "\n</div>\n")
	if len(e.Entry.Enclosures) > 0 {
		b.WriteString("<ul>\n")
		for _, enc := range e.Entry.Enclosures {
			name, about := content.About(enc)
			b.WriteString("<li>" + htmlsafe.Link(enc.URL, name) + htmlsafe.Text(about) + "</li>\n")
		}
		b.WriteString("</ul>\n")
	}
	return b.String()
}
