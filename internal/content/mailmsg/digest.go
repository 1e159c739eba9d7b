package mailmsg

import (
	"fmt"
	"strings"

	"github.com/lektordir/lektor/internal/content/htmlsafe"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// DigestOptions are the options of [Digest].
type DigestOptions struct {
	Lines int  // lines of an entry's content, as text
	Full  bool // all of its content instead
}

// Digest returns entries as one HTML document and as text, with a title that has their number. The
// entries of a feed must follow each other in list.
func Digest(list []*Entry, o DigestOptions) (title, text, html string) {
	var t, h strings.Builder
	feeds, images := 0, false
	for i, e := range list {
		if i == 0 || list[i-1].Ref.Feed != e.Ref.Feed {
			feeds++
			all, unread := 0, 0
			for ; i+all < len(list) && list[i+all].Ref.Feed == e.Ref.Feed; all++ {
				if list[i+all].Ref.Unread() {
					unread++
				}
			}
			count := humanize.Count(all, "entry")
			if unread < all {
				count += fmt.Sprintf(", %d unread", unread)
			}
			fmt.Fprintf(&t, "In feed %s: %s\n\n", FeedTitle(e.Feed), count)
			fmt.Fprintf(&h, "<h2 dir=\"auto\" style=\"%s\">%s <span style=\"%s\">%s</span></h2>\n", styleFeed,
				htmlsafe.Link(e.Feed.Link, FeedTitle(e.Feed)), styleMeta, count)
		}
		e.text1(&t, o)
		e.html1(&h, o)
		images = images || e.Images
	}
	title = fmt.Sprintf("%s in %s", humanize.Count(len(list), "entry"), humanize.Count(feeds, "feed"))
	head, foot := frame(title, "en", images)
	return title, t.String(), head + "<h1 style=\"" + styleTitle + "\">" + title + "</h1>\n" + h.String() + foot
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
	b.WriteString(`<h3 dir="auto"` + Lang(e.language()) + ` style="` + styleEntry + `">` +
		htmlsafe.Link(e.Entry.URL(), e.title()) + "</h3>\n")
	b.WriteString(`<p style="` + styleMeta + `">`)
	if a := e.author(); a != "" {
		b.WriteString("<bdi>" + htmlsafe.Text(a) + "</bdi> · ")
	}
	b.WriteString(e.Date.Format("2 Jan 2006 15:04") + "</p>\n")
	if o.Full {
		b.WriteString(e.content(4))
	} else if line := e.excerpt(o.Lines); line != "" {
		b.WriteString(`<p dir="auto"` + Lang(e.language()) + `>` + htmlsafe.Text(line) + "</p>\n")
	}
}

// title returns the full title of the entry.
func (e *Entry) title() string {
	for _, s := range []string{e.Entry.Title, e.Title} {
		if s = termsafe.Squeeze(s); s != "" {
			return s
		}
	}
	return "(no title)"
}

// excerpt returns the beginning of the content that fills about this many lines.
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
