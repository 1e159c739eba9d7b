package letter

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/mail"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/htmlsafe"
	"github.com/lektordir/lektor/internal/htmltext"
	"github.com/lektordir/lektor/internal/redact"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// Entry is what a message is made of.
type Entry struct {
	Ref   lektordir.Ref
	Feed  *lektordir.Feed
	Entry *lektordir.Entry // as [entries.Own] gives it: URLs have no passwords, and links are some
	Title string           // what is shown as its title, if it has none itself, as public
	Date  time.Time        // its zone is that of the message
	// Version tells versions of an entry apart of which each has its message; it is
	// empty for the first.
	Version string
	// Images has the message show images, which most mail programs load only when
	// asked to; else there is a link for each.
	Images bool
}

// domain is that of all addresses and IDs. It is nobody's (RFC 2606, 2), so that no
// answer is sent by accident.
const domain = "lektor.invalid"

// width is that of the text, in columns.
const width = 72

// ThreadID is the ID that all messages of a feed refer to. There is no such message:
// mail programs make a thread of those that refer to the same one (RFC 5256, 3).
func ThreadID(feed string) string { return token(feed) + "@" + domain }

// ID is the ID of an entry's message. It is made of the feed and of the entry's
// identity, which is the same on every machine, and where the entry has none of its
// unique name.
func (e *Entry) ID() string {
	id := e.first()
	if e.Version != "" {
		id = digest(e.Version) + "." + id
	}
	return id
}

// first is the ID of the message of the first version.
func (e *Entry) first() string {
	return cmp.Or(e.Ref.Identity(), digest(e.Ref.Unique)) + "." + ThreadID(e.Ref.Feed)
}

// token is the hash of a feed, and of a directory that has another name a digest.
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

// Message gives the entry as a message. It comes from the feed, by the author; the
// address is nobody's.
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
			{"Archived-At", bracketed(htmlsafe.URL(e.Entry.URL()))},
			{"X-RSS-Feed", Token(htmlsafe.URL(e.Feed.ID))}, // no command, and no file
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

func bracketed(url string) string {
	if url = Token(url); url != "" {
		url = "<" + url + ">"
	}
	return url
}

// FeedTitle is what a feed is called.
func FeedTitle(f *lektordir.Feed) string {
	return cmp.Or(termsafe.Squeeze(redact.Text(f.Title())), "(no name)")
}

// author gives the names of the authors, and addresses only of those without a name.
func (e *Entry) author() string {
	var names []string
	for one := range strings.SplitSeq(redact.Text(cmp.Or(e.Entry.Author, e.Feed.Author)), ", ") {
		name, _, _ := strings.Cut(one, "<")
		name = termsafe.Squeeze(cmp.Or(strings.TrimSpace(name), strings.Trim(one, "<> ")))
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// maxKeywords is how many categories a header has.
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

// language is the tag of the language, if it looks like one (RFC 5646, 2.1).
func (e *Entry) language() string {
	tag := cmp.Or(e.Entry.Language, e.Feed.Language)
	if len(tag) < 2 || len(tag) > 35 {
		return ""
	}
	for i := range len(tag) {
		if c := tag[i] | 0x20; (c < 'a' || c > 'z') && (tag[i] < '0' || tag[i] > '9') && tag[i] != '-' {
			return ""
		}
	}
	return tag
}

// base is what relative links of the content are resolved against.
func (e *Entry) base() string { return cmp.Or(e.Entry.URL(), feedurl.Public(e.Feed.ID)) }

// text gives the entry as plain text; title stands above it if the header has not all
// of it.
func (e *Entry) text(title string) string {
	content := htmltext.Render(e.Entry.Content, e.Entry.Type, htmltext.Options{Width: width, Base: e.base()})
	if strings.TrimSpace(content) == "" {
		content = htmltext.Render([]byte(e.Entry.Summary), "text/plain", htmltext.Options{Width: width})
	}
	var b strings.Builder
	if title != "" {
		b.WriteString(title + "\n\n")
	}
	if content = strings.Trim(content, "\n"); strings.TrimSpace(content) != "" {
		b.WriteString(content + "\n\n")
	}
	for _, link := range []struct{ what, url string }{{"", e.Entry.URL()}, {"Comments: ", e.Entry.Comments}} {
		if url := termsafe.Line(link.url); url != "" {
			b.WriteString(link.what + url + "\n")
		}
	}
	for _, enc := range e.Entry.Enclosures {
		_, about := About(enc)
		b.WriteString("Enclosure: " + termsafe.Line(enc.URL) + about + "\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// About gives what an enclosure is called by its URL, and its type and size in
// brackets, with a blank before them, or "".
func About(enc lektordir.Enclosure) (name, about string) {
	name = "enclosure"
	if u, err := url.Parse(enc.URL); err == nil {
		name = u.Hostname()
		if base := path.Base(u.Path); base != "." && base != "/" {
			name = termsafe.Squeeze(base)
		}
	}
	var parts []string
	if t := termsafe.Squeeze(enc.Type); t != "" {
		parts = append(parts, t)
	}
	if enc.Length > 0 {
		parts = append(parts, units.Bytes(enc.Length))
	}
	if len(parts) > 0 {
		about = " (" + strings.Join(parts, ", ") + ")"
	}
	return name, about
}

// html gives the entry as a document.
func (e *Entry) html(title string) string {
	var b strings.Builder
	b.WriteString(`<h1 dir="auto" style="` + styleTitle + `">` + htmlsafe.Link(e.Entry.URL(), title) + "</h1>\n")
	b.WriteString(`<p style="` + styleMeta + `">` + htmlsafe.Text(FeedTitle(e.Feed)))
	if a := e.author(); a != "" {
		b.WriteString(" · " + htmlsafe.Text(a))
	}
	b.WriteString(" · " + e.Date.Format("2 Jan 2006 15:04"))
	if e.Entry.Comments != "" {
		b.WriteString(" · " + htmlsafe.Link(e.Entry.Comments, "Comments"))
	}
	b.WriteString("</p>\n" + e.content(2))
	return Document(title, e.language(), b.String(), e.Images)
}

// content gives the content as HTML, with links to the enclosures below it. heading is
// the level of its highest headings.
func (e *Entry) content(heading int) string {
	content := htmlsafe.Clean(e.Entry.Content, e.Entry.Type, htmlsafe.Options{Base: e.base(), Heading: heading, NoImages: !e.Images})
	if strings.TrimSpace(content) == "" {
		// Of what is no text, this says what it is.
		text := cmp.Or(e.Entry.Summary, htmltext.Render(e.Entry.Content, e.Entry.Type, htmltext.Options{}))
		content = htmlsafe.Clean([]byte(text), "text/plain", htmlsafe.Options{})
	}
	var b strings.Builder
	b.WriteString("<div dir=\"auto\">\n" + content + "\n</div>\n")
	if len(e.Entry.Enclosures) > 0 {
		b.WriteString("<ul>\n")
		for _, enc := range e.Entry.Enclosures {
			name, about := About(enc)
			b.WriteString("<li>" + htmlsafe.Link(enc.URL, name) + htmlsafe.Text(about) + "</li>\n")
		}
		b.WriteString("</ul>\n")
	}
	return b.String()
}
