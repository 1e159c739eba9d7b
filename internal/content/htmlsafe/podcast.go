package htmlsafe

import (
	"cmp"
	"strings"

	"github.com/lektordir/lektor/internal/content/podcast"
	"github.com/lektordir/lektor/lektordir"
)

// Podcast returns the properties, the chapters and a kept transcript of an entry as HTML that is safe.
func Podcast(e *lektordir.Entry, kept podcast.Kept) string {
	var b strings.Builder
	b.WriteString(Fields(podcast.Fields(e)))
	if list := podcast.Chapters(e, kept); len(list) > 0 {
		b.WriteString("<details><summary>Chapters</summary>\n<ul>\n")
		for _, c := range list {
			b.WriteString("<li>" + podcast.Clock(c.Start) + " " + Text(c.Title) + "</li>\n")
		}
		b.WriteString("</ul>\n</details>\n")
	}
	if text, mime := podcast.Transcript(e, kept); text != "" {
		b.WriteString("<details><summary>Transcript</summary>\n" +
			Clean([]byte(text), mime, Options{NoImages: true}) + "\n</details>\n")
	}
	return b.String()
}

// Fields returns the properties of an entry or a feed as a list, "" if there are none.
func Fields(fields []podcast.Field) string {
	if len(fields) == 0 {
		return ""
	}
	list := "<ul class=\"podcast\">\n"
	for _, f := range fields {
		value := Text(f.Text)
		if URL(f.URL) != "" {
			value = Link(f.URL, cmp.Or(f.Text, f.URL))
		}
		list += "<li>" + f.Name + ": " + value + "</li>\n"
	}
	return list + "</ul>\n"
}
