package pages

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/content/htmlsafe"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/content/mailmsg"
	"github.com/lektordir/lektor/internal/content/podcast"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// version is changed if the layout of pages changes, so that all pages are written again.
const version = "6"

// policy is the Content-Security-Policy of pages. If untrusted markup passed the sanitiser, the
// policy would still keep it from running scripts and sending forms.
const policy = "default-src 'none'; style-src 'self'; img-src http: https: data:; media-src http: https:; base-uri 'none'; form-action 'none'"

func excerpt(e *entrystore.Record) string {
	// The ledger keeps excerpts for public sites too, so they never contain the article.
	c := entrystore.Public(e.Get(lektordir.FieldContent | lektordir.FieldType | lektordir.FieldFeedContent))
	return termsafe.Squeeze(feedurl.RedactText(htmltext.Excerpt(c.Content, c.Type, excerptWidth)))
}

// text returns untrusted text as a line of HTML.
func text(s string) string { return htmlsafe.Text(s) }

// head writes the beginning of a page. up is the relative URL of the root of the site.
func (w *site) head(b *strings.Builder, up, title string) {
	full := w.o.Title
	if title != "" {
		full = title + " · " + w.o.Title
	}
	fmt.Fprintf(b, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>%s</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="%s">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="%sstyle.css">
</head>
<body>
<header>
<p class="site"><a dir="auto" href="%sindex.html">%s</a></p>
<nav aria-label="Site"><a href="%sfeeds.html">Feeds</a> <a href="%ssearch/index.html">Index</a></nav>
</header>
<main>
`, text(full), policy, up, up, text(w.o.Title), up, up)
}

const foot = "</main>\n</body>\n</html>\n"

// up returns the relative URL of the root of the site from a page.
func up(name string) string { return strings.Repeat("../", strings.Count(name, "/")) }

// path returns the path of an entry's page.
func (i *item) path() string { return "entry/" + i.name + ".html" }

// group is a list of entries with one or more pages.
type group struct {
	title  string // empty for the list of all entries
	index  string // path of the page with the newest entries
	dir    string // path of the directory of the other pages
	feed   *lektordir.Feed
	folder bool
	items  []*item // oldest first
}

// page returns the path of page n. Page 1 has the oldest entries.
func (g *group) page(n int) string { return g.dir + "/" + strconv.Itoa(n) + ".html" }

// group sorts entries into the lists of the site.
func (w *site) group() {
	byFeed := map[string][]*item{}
	var feeds []string // in the order of their oldest entries
	for _, i := range w.list {
		if byFeed[i.feed] == nil {
			feeds = append(feeds, i.feed)
		}
		byFeed[i.feed] = append(byFeed[i.feed], i)
	}
	folders := map[string]*group{}
	for _, feed := range feeds {
		f := w.feedOf(byFeed[feed][0])
		g := &group{title: mailmsg.FeedTitle(f), dir: feedDir(feed), feed: f, items: byFeed[feed]}
		w.feeds = append(w.feeds, g)
		for key, name := range entrystore.FoldersAbove(w.r.Folders(feed)) {
			folder := folders[key]
			if folder == nil {
				folder = &group{title: termsafe.Squeeze(name), folder: true, dir: "folder/" + slug(key)}
				folders[key] = folder
			}
			folder.items = append(folder.items, g.items...)
		}
	}
	byTitle := func(a, b *group) int {
		return cmp.Or(cmp.Compare(query.Fold(a.title), query.Fold(b.title)), cmp.Compare(a.dir, b.dir))
	}
	slices.SortFunc(w.feeds, byTitle)
	w.groups = append(w.groups, w.feeds...)
	for _, g := range slices.SortedFunc(maps.Values(folders), byTitle) {
		slices.SortFunc(g.items, byDate)
		w.groups = append(w.groups, g)
	}
	for _, g := range w.groups {
		g.index = g.dir + "/index.html"
	}
	w.groups = append(w.groups, &group{index: "index.html", dir: "all", items: w.list})
}

// feedDir returns the directory of a feed's pages. A feed of another program may have any file name.
func feedDir(feed string) string {
	if strings.Trim(feed, "0123456789abcdef") == "" {
		return "feed/" + feed
	}
	return "feed/" + slug(feed)
}

// slug returns a part of a URL for a name. A digest makes it unique.
func slug(name string) string {
	var b strings.Builder
	for _, c := range query.Fold(name) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() >= 40 {
			break
		}
	}
	return strings.Trim(b.String(), "-") + "-" + digest(name)[:8]
}

// listPage is a page of a list.
type listPage struct {
	g     *group
	name  string
	items []*item
	older int    // number of the page with older entries; 0 for none
	newer string // path of the page with newer entries; "" for none
}

// pages returns the pages of the list. They are numbered from the oldest entries, so a new entry
// changes only the index, and from time to time adds a page.
func (g *group) pages(perPage int) []listPage {
	whole := max(0, len(g.items)/perPage-1) // the index also has the entries of the newest full page
	var list []listPage
	for k := 1; k <= whole; k++ {
		p := listPage{g: g, name: g.page(k), items: g.items[(k-1)*perPage : k*perPage], older: k - 1, newer: g.index}
		if k < whole {
			p.newer = g.page(k + 1)
		}
		list = append(list, p)
	}
	return append(list, listPage{g: g, name: g.index, items: g.items[whole*perPage:], older: whole})
}

// listPage returns a page of a list with its entries.
func (w *site) listPage(p listPage) page {
	g, name, older, newer := p.g, p.name, p.older, p.newer
	parts, facts := []string{version, w.o.Title, g.title, name, strconv.Itoa(older), newer}, ""
	if g.feed != nil {
		facts = htmlsafe.Fields(entrystore.FeedFields(g.feed))
		parts = append(parts, g.feed.Link, facts)
	}
	for _, i := range p.items {
		parts = append(parts, i.key, i.title, i.excerpt, i.date.String(), w.feedOf(i).Title(), w.lang(i), i.marks)
	}
	return page{path: name, digest: digest(parts...), render: func(b *strings.Builder) bool {
		root := up(name)
		w.head(b, root, g.title)
		fmt.Fprintf(b, "<h1 dir=\"auto\">%s</h1>\n", text(cmp.Or(g.title, w.o.Title)))
		if g.feed != nil {
			if link := entrystore.Followable(feedurl.Public(g.feed.Link)); link != "" {
				fmt.Fprintf(b, "<p class=\"meta\">%s</p>\n", htmlsafe.Link(link, link))
			}
		}
		if facts != "" {
			b.WriteString("<details><summary>The podcast</summary>\n" + facts + "</details>\n")
		}
		if len(p.items) == 0 {
			b.WriteString("<p>There are no entries.</p>\n")
		} else {
			b.WriteString("<ul class=\"entries\">\n")
			for _, i := range slices.Backward(p.items) {
				w.row(b, root, i, g.feed == nil)
			}
			b.WriteString("</ul>\n")
		}
		if older > 0 || newer != "" {
			b.WriteString("<nav class=\"pages\" aria-label=\"Pages\">")
			if newer != "" {
				fmt.Fprintf(b, `<a href="%s%s" rel="prev">Newer</a> `, root, newer)
			}
			if older > 0 {
				fmt.Fprintf(b, `<a href="%s%s" rel="next">Older</a>`, root, g.page(older))
			}
			b.WriteString("</nav>\n")
		}
		b.WriteString(foot)
		return true
	}}
}

// row writes an entry of a list.
func (w *site) row(b *strings.Builder, root string, i *item, feed bool) {
	title := cmp.Or(i.title, i.excerpt, "(no title)")
	fmt.Fprintf(b, `<li>%s<a class="title" dir="auto"%s href="%s%s">%s</a><p class="meta">`, markNames(i.marks),
		w.lang(i), root, i.path(), text(title))
	if feed {
		fmt.Fprintf(b, `<a dir="auto" href="%s%s/index.html">%s</a> · `, root, feedDir(i.feed),
			text(mailmsg.FeedTitle(w.feedOf(i))))
	}
	b.WriteString(moment(i.date) + "</p>")
	if i.title != "" && i.excerpt != "" {
		fmt.Fprintf(b, `<p><span class="excerpt" dir="auto"%s>%s</span></p>`, w.lang(i), text(i.excerpt))
	}
	b.WriteString("</li>\n")
}

// markNames returns the HTML of the marks of an item.
func markNames(marks string) string {
	const mark = `<abbr class="%[1]s" title="%[1]s">%[2]s</abbr> `
	return strings.NewReplacer("U", fmt.Sprintf(mark, "unread", "●"), "F",
		fmt.Sprintf(mark, "flagged", "⚑")).Replace(marks)
}

// lang returns the attribute for the language of an entry.
func (w *site) lang(i *item) string { return mailmsg.Lang(cmp.Or(i.lang, w.feedOf(i).Language)) }

// moment returns the HTML element of a time.
func moment(t time.Time) string {
	return `<time datetime="` + t.Format(time.RFC3339) + `">` + t.Format("2 Jan 2006 15:04") + "</time>"
}

// mayHaveImages reports whether an entry may have images. It returns true for some entries without
// images, since it does not parse HTML.
func mayHaveImages(e *entrystore.Record) bool {
	c := e.Get(lektordir.FieldContent | lektordir.FieldType | lektordir.FieldFeedContent)
	has := func(kind string, content []byte) bool {
		content = bytes.ToLower(content)
		return htmltext.KindOf(kind, content) == htmltext.HTML &&
			(bytes.Contains(content, []byte("<img")) || bytes.Contains(content, []byte("<picture")))
	}
	return has(c.Type, c.Content) || has(c.FullText.Type, c.FeedContent)
}

// imagesPath returns the path of the second page of an entry, with its images. They are on another
// page because browsers also load lazy images that are not visible.
func (i *item) imagesPath() string { return "entry/" + i.name + "-images.html" }

// entryPage returns the page of an entry, with its images or without.
func (w *site) entryPage(i *item, images bool) page {
	f, around := w.feedOf(i), w.around(i)
	name := i.path()
	if images && !w.o.Images {
		name = i.imagesPath()
	}
	return page{path: name, digest: digest(version, w.o.Title, i.key, f.Title(), f.Author, i.date.String(),
		strconv.FormatBool(images), strconv.FormatBool(i.ref.HasFlag('d')), strconv.FormatBool(w.o.Private), w.lang(i),
		around), render: func(b *strings.Builder) bool {
		r := w.r.Record(i.ref)
		err := r.Read(lektordir.AllFields)
		e := r.Get(0)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.r.Usable(err) // prints the error
			}
			// Lists link to this page, so it shows their excerpt.
			e = &lektordir.Entry{Content: []byte(i.excerpt)}
		}
		shown := entrystore.Public
		if w.o.Private {
			shown = entrystore.Own
		}
		w.entry(b, i, shown(e), images, r.Kept)
		b.WriteString(around + foot)
		return err == nil
	}}
}

// around returns the links from an entry's page to those of its neighbours.
func (w *site) around(i *item) string {
	s := ""
	if i.newer != nil {
		s = `<a href="../` + i.newer.path() + `" rel="prev">Newer</a> `
	}
	if i.older != nil {
		s += `<a href="../` + i.older.path() + `" rel="next">Older</a>`
	}
	return `<nav class="pages" aria-label="Entries">` + s + "</nav>\n"
}

// entry writes the content of an entry.
func (w *site) entry(b *strings.Builder, i *item, e *lektordir.Entry, images bool, kept podcast.Kept) {
	const root = "../"
	title := cmp.Or(i.title, i.excerpt, "(no title)")
	content := htmlsafe.Clean(e.Content, e.Type, htmlsafe.Options{Base: cmp.Or(e.URL(), w.feedOf(i).ID),
		NoImages: !images})
	if strings.TrimSpace(content) == "" && e.Summary != "" {
		content = htmlsafe.Clean([]byte(e.Summary), "text/plain", htmlsafe.Options{})
	}
	w.head(b, root, title)
	b.WriteString("<article>\n")
	fmt.Fprintf(b, "<h1 dir=\"auto\"%s>%s</h1>\n<p class=\"meta\">", w.lang(i), text(title))
	fmt.Fprintf(b, `<a dir="auto" href="%s%s/index.html">%s</a>`, root, feedDir(i.feed),
		text(mailmsg.FeedTitle(w.feedOf(i))))
	if a := mailmsg.Authors(feedurl.RedactText(cmp.Or(e.Author, w.feedOf(i).Author)), false); a != "" {
		b.WriteString(" · <bdi>" + text(a) + "</bdi>")
	}
	b.WriteString(" · " + moment(i.date))
	if u := e.URL(); entrystore.Followable(u) != "" {
		b.WriteString(" · " + htmlsafe.Link(u, "Original"))
	}
	if entrystore.Followable(e.Comments) != "" {
		b.WriteString(" · " + htmlsafe.Link(e.Comments, "Comments"))
	}
	b.WriteString("</p>\n")
	if i.images && !images {
		fmt.Fprintf(b, "<p class=\"ask\"><a href=\"%s%s\">Show images</a></p>\n", root, i.imagesPath())
	}
	fmt.Fprintf(b, "<div class=\"content\" dir=\"auto\"%s>\n%s\n</div>\n", w.lang(i), content)
	w.enclosures(b, e)
	b.WriteString(htmlsafe.Podcast(e, kept))
	if len(e.Categories) > 0 {
		fmt.Fprintf(b, "<p class=\"meta\" dir=\"auto\">%s</p>\n",
			text(termsafe.Squeeze(strings.Join(e.Categories, ", "))))
	}
	b.WriteString("</article>\n")
}

// enclosures writes the enclosures of an entry. A player loads nothing until it is started.
func (w *site) enclosures(b *strings.Builder, e *lektordir.Entry) {
	if len(e.Enclosures) == 0 {
		return
	}
	b.WriteString("<ul class=\"enclosures\">\n")
	for _, enc := range e.Enclosures {
		name, about := mailmsg.About(enc)
		b.WriteString("<li>" + htmlsafe.Link(enc.URL, name) + text(about))
		kind, _, _ := strings.Cut(enc.Type, "/")
		if src := htmlsafe.URL(enc.URL); src != "" && (kind == "audio" || kind == "video") {
			fmt.Fprintf(b, `<br><%s controls preload="none" src="%s"></%s>`, kind, text(src), kind)
		}
		b.WriteString("</li>\n")
	}
	b.WriteString("</ul>\n")
}

// feedsPage lists folders and feeds.
func (w *site) feedsPage() page {
	const name = "feeds.html"
	parts := []string{version, w.o.Title}
	var folders []*group
	for _, g := range w.groups {
		if g.folder {
			folders = append(folders, g)
		}
		parts = append(parts, g.title, g.index, strconv.Itoa(len(g.items)))
	}
	return page{path: name, digest: digest(parts...), render: func(b *strings.Builder) bool {
		w.head(b, "", "Feeds")
		b.WriteString("<h1>Feeds</h1>\n")
		list := func(heading string, groups []*group) {
			if len(groups) == 0 {
				return
			}
			if heading != "" {
				b.WriteString("<h2>" + heading + "</h2>\n")
			}
			b.WriteString("<ul>\n")
			for _, g := range groups {
				fmt.Fprintf(b, "<li><a dir=\"auto\" href=\"%s\">%s</a> <span class=\"meta\">%s</span></li>\n", g.index,
					text(g.title), humanize.Count(len(g.items), "entry"))
			}
			b.WriteString("</ul>\n")
		}
		list("Folders", folders)
		heading := ""
		if len(folders) > 0 {
			heading = "All feeds"
		}
		list(heading, w.feeds)
		b.WriteString(foot)
		return true
	}}
}
