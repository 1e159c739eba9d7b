package letter

import (
	"fmt"
	"strings"

	"github.com/lektordir/lektor/internal/htmlsafe"
	"github.com/lektordir/lektor/internal/htmltext"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// DigestOptions say what a digest has of each entry.
type DigestOptions struct {
	Lines int  // of its content, as text
	Full  bool // all of its content instead
}

// Digest gives entries as one document of HTML, and as text, with a title that counts
// them. Those of a feed stand one after the other. [DigestFeed] and [Entry.Digest] give
// the parts of what is larger.
func Digest(list []*Entry, o DigestOptions) (title, text, html string) {
	var t, h strings.Builder
	feeds, images := 0, false
	for i, e := range list {
		if i == 0 || list[i-1].Ref.Feed != e.Ref.Feed {
			f := DigestFeed{Feed: e.Feed}
			for n := i; n < len(list) && list[n].Ref.Feed == e.Ref.Feed; n++ {
				f.Add(list[n])
			}
			feeds++
			text, html := f.Head()
			t.WriteString(text)
			h.WriteString(html)
		}
		text, html := e.Digest(o)
		t.WriteString(text)
		h.WriteString(html)
		images = images || e.Images
	}
	title, head, foot := DigestDocument(len(list), feeds, images)
	return title, t.String(), head + h.String() + foot
}

// DigestDocument gives the title of a digest of so many entries and feeds, and what stands
// before and after its parts in HTML.
func DigestDocument(entries, feeds int, images bool) (title, head, foot string) {
	title = fmt.Sprintf("%s in %s", units.Count(entries, "entry"), units.Count(feeds, "feed"))
	head, foot = frame(title, "en", images)
	return title, head + "<h1 style=\"" + styleTitle + "\">" + title + "</h1>\n", foot
}

// DigestFeed is a feed in a digest, and counts its entries.
type DigestFeed struct {
	Feed            *lektordir.Feed
	Entries, unread int
}

// Add counts an entry.
func (f *DigestFeed) Add(e *Entry) {
	f.Entries++
	if e.Ref.Unread() {
		f.unread++
	}
}

// Head gives what stands above the entries of the feed: what it is called, how many there
// are, and how many of them are unread.
func (f *DigestFeed) Head() (text, html string) {
	count := units.Count(f.Entries, "entry")
	if f.unread < f.Entries {
		count += fmt.Sprintf(", %d unread", f.unread)
	}
	return fmt.Sprintf("In feed %s: %s\n\n", FeedTitle(f.Feed), count),
		fmt.Sprintf("<h2 dir=\"auto\" style=\"%s\">%s <span style=\"%s\">%s</span></h2>\n", styleFeed, htmlsafe.Link(f.Feed.Link, FeedTitle(f.Feed)), styleMeta, count)
}

// Digest gives the entry as it stands in a digest.
func (e *Entry) Digest(o DigestOptions) (text, html string) {
	var t, h strings.Builder
	e.text1(&t, o)
	e.html1(&h, o)
	return t.String(), h.String()
}

// text1 writes an entry of a digest as text.
func (e *Entry) text1(b *strings.Builder, o DigestOptions) {
	b.WriteString(e.title() + "\n")
	if o.Full {
		b.WriteString("\n" + e.text("") + "\n")
		return
	}
	if line := e.excerpt(o.Lines); line != "" {
		b.WriteString(htmltext.Render([]byte(line), "text/plain", htmltext.Options{Width: width}))
	}
	if url := termsafe.Line(e.Entry.URL()); url != "" {
		b.WriteString(url + "\n")
	}
	b.WriteByte('\n')
}

// html1 writes an entry of a digest as HTML.
func (e *Entry) html1(b *strings.Builder, o DigestOptions) {
	b.WriteString(`<h3 dir="auto" style="` + styleEntry + `">` + htmlsafe.Link(e.Entry.URL(), e.title()) + "</h3>\n")
	b.WriteString(`<p style="` + styleMeta + `">`)
	if a := e.author(); a != "" {
		b.WriteString(htmlsafe.Text(a) + " · ")
	}
	b.WriteString(e.Date.Format("2 Jan 2006 15:04") + "</p>\n")
	if o.Full {
		b.WriteString(e.content(4))
	} else if line := e.excerpt(o.Lines); line != "" {
		b.WriteString(`<p dir="auto">` + htmlsafe.Text(line) + "</p>\n")
	}
}

// title is what the entry is called, whole.
func (e *Entry) title() string {
	for _, s := range []string{e.Entry.Title, e.Title} {
		if s = termsafe.Squeeze(s); s != "" {
			return s
		}
	}
	return "(no title)"
}

// excerpt is the beginning of the content, so much that it would fill so many lines.
func (e *Entry) excerpt(lines int) string {
	content, kind := e.Entry.Content, e.Entry.Type
	line := htmltext.Excerpt(content, kind, lines*width)
	if line == "" {
		line = htmltext.Excerpt([]byte(e.Entry.Summary), "", lines*width)
	}
	if strings.TrimSpace(e.Entry.Title) == "" && len(line) <= len(e.Title) {
		return "" // it is the title
	}
	return line
}
