package pages

import (
	"bytes"
	"cmp"
	_ "embed" // for templates
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/lektordir/lektor/internal/content"
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
const version = "7"

func excerpt(e *entrystore.Record) string {
	// The ledger keeps excerpts for public sites too, so they never contain the article.
	c := entrystore.Public(e.Get(lektordir.FieldContent | lektordir.FieldType | lektordir.FieldFeedContent))
	return termsafe.Squeeze(feedurl.RedactText(htmltext.Excerpt(c.Content, c.Type, excerptWidth)))
}

//go:embed pages.html
var templates string

// functions returns the functions of the templates. Templates put text and URLs into pages by text, link and html.
func (w *site) functions() template.FuncMap {
	return template.FuncMap{
		"text":  htmlsafe.Text,
		"link":  htmlsafe.Link,
		"lang":  w.lang,
		"feed":  func(i *item) string { return mailmsg.FeedTitle(w.feedOf(i)) },
		"count": func(items []*item) string { return humanize.Count(len(items), "entry") },
		"some":  func(items []*item) []*item { return items[:min(len(items), maxPerWord)] },
		"more":  func(items []*item) int { return max(0, len(items)-maxPerWord) },

		"feedDir": func(i *item) string { return feedDir(i.feed) }, "searchName": searchName,
	}
}

// Path returns the path of an entry's page.
func (i *item) Path() string { return "entry/" + i.name + ".html" }

// Shown returns the title that lists and the entry's page show.
func (i *item) Shown() string { return cmp.Or(i.Title, i.Excerpt, "(no title)") }

// group is a list of entries with one or more pages.
type group struct {
	Title  string // empty for the list of all entries
	Index  string // path of the page with the newest entries
	dir    string // path of the directory of the other pages
	feed   *lektordir.Feed
	folder bool
	Items  []*item // oldest first
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
		g := &group{Title: mailmsg.FeedTitle(f), dir: feedDir(feed), feed: f, Items: byFeed[feed]}
		w.feeds = append(w.feeds, g)
		for key, name := range entrystore.FoldersAbove(w.r.Folders(feed)) {
			folder := folders[key]
			if folder == nil {
				folder = &group{Title: termsafe.Squeeze(name), folder: true, dir: "folder/" + slug(key)}
				folders[key] = folder
			}
			folder.Items = append(folder.Items, g.Items...)
		}
	}
	byTitle := func(a, b *group) int {
		return cmp.Or(cmp.Compare(query.Fold(a.Title), query.Fold(b.Title)), cmp.Compare(a.dir, b.dir))
	}
	slices.SortFunc(w.feeds, byTitle)
	w.groups = append(w.groups, w.feeds...)
	for _, g := range slices.SortedFunc(maps.Values(folders), byTitle) {
		slices.SortFunc(g.Items, byDate)
		w.groups = append(w.groups, g)
	}
	for _, g := range w.groups {
		g.Index = g.dir + "/index.html"
	}
	w.groups = append(w.groups, &group{Index: "index.html", dir: "all", Items: w.list})
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
	whole := max(0, len(g.Items)/perPage-1) // the index also has the entries of the newest full page
	var list []listPage
	for k := 1; k <= whole; k++ {
		p := listPage{g: g, name: g.page(k), items: g.Items[(k-1)*perPage : k*perPage], older: k - 1, newer: g.Index}
		if k < whole {
			p.newer = g.page(k + 1)
		}
		list = append(list, p)
	}
	return append(list, listPage{g: g, name: g.Index, items: g.Items[whole*perPage:], older: whole})
}

// listPage returns a page of a list with its entries.
func (w *site) listPage(p listPage) page {
	g, older, link, facts := p.g, "", "", ""
	if p.older > 0 {
		older = g.page(p.older)
	}
	parts := []string{version, w.o.Title, g.Title, p.name, older, p.newer}
	if g.feed != nil {
		link, facts = entrystore.Followable(feedurl.Public(g.feed.Link)), htmlsafe.Fields(entrystore.FeedFields(g.feed))
		parts = append(parts, link, facts)
	}
	for _, i := range p.items {
		parts = append(parts, i.key, i.Title, i.Excerpt, i.Date.String(), w.feedOf(i).Title(), w.lang(i), i.Marks)
	}
	return page{p.name, digest(parts...), "list", func() (map[string]any, bool) {
		items := slices.Clone(p.items)
		slices.Reverse(items)
		return map[string]any{"Title": g.Title, "Link": link, "Facts": facts, "Items": items,
			"Feeds": g.feed == nil, "Newer": p.newer, "Older": older}, true
	}}
}

// lang returns the attribute for the language of an entry.
func (w *site) lang(i *item) string { return mailmsg.Lang(cmp.Or(i.lang, w.feedOf(i).Language)) }

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

// ImagesPath returns the path of the second page of an entry, with its images. They are on another
// page because browsers also load lazy images that are not visible.
func (i *item) ImagesPath() string { return "entry/" + i.name + "-images.html" }

// entryPage returns the page of an entry, with its images or without.
func (w *site) entryPage(i *item, images bool) page {
	f, name, around := w.feedOf(i), i.Path(), ""
	if images && !w.o.Images {
		name = i.ImagesPath()
	}
	for _, next := range []*item{i.Newer, i.Older} {
		if around += "|"; next != nil {
			around += next.Path()
		}
	}
	return page{name, digest(version, w.o.Title, i.key, f.Title(), f.Author, i.Date.String(),
		strconv.FormatBool(images), strconv.FormatBool(i.ref.HasFlag('d')), strconv.FormatBool(w.o.Private), w.lang(i),
		around), "entry", func() (map[string]any, bool) {
		r := w.r.Record(i.ref)
		err := r.Read(lektordir.AllFields)
		e := r.Get(0)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				w.r.Usable(err) // prints the error
			}
			// Lists link to this page, so it shows their excerpt.
			e = &lektordir.Entry{Content: []byte(i.Excerpt)}
		}
		shown := entrystore.Public
		if w.o.Private {
			shown = entrystore.Own
		}
		return w.entry(i, shown(e), images, r.Kept), err == nil
	}}
}

// enclosure is a file of an entry. If a browser may play it, Player is audio or video. A player loads nothing until it
// is started.
type enclosure struct{ URL, Name, About, Player, Source string }

// entry returns the values of an entry's page.
func (w *site) entry(i *item, e *lektordir.Entry, images bool, kept podcast.Kept) map[string]any {
	text := htmlsafe.Clean(e.Content, e.Type, htmlsafe.Options{Base: cmp.Or(e.URL(), w.feedOf(i).ID),
		NoImages: !images})
	if strings.TrimSpace(text) == "" && e.Summary != "" {
		text = htmlsafe.Clean([]byte(e.Summary), "text/plain", htmlsafe.Options{})
	}
	var enclosures []enclosure
	for _, enc := range e.Enclosures {
		x := enclosure{URL: enc.URL, Source: htmlsafe.URL(enc.URL)}
		if x.Name, x.About = content.About(enc); x.Source != "" {
			x.Player, _, _ = strings.Cut(enc.Type, "/")
		}
		enclosures = append(enclosures, x)
	}
	return map[string]any{"Title": i.Shown(), "Item": i, "Content": text,
		"Author":   content.Authors(feedurl.RedactText(cmp.Or(e.Author, w.feedOf(i).Author)), false),
		"Original": entrystore.Followable(e.URL()), "Comments": entrystore.Followable(e.Comments),
		"Ask": i.images && !images, "Enclosures": enclosures, "Podcast": htmlsafe.Podcast(e, kept),
		"Categories": termsafe.Squeeze(strings.Join(e.Categories, ", "))}
}

// feedsPage lists folders and feeds.
func (w *site) feedsPage() page {
	parts := []string{version, w.o.Title}
	var folders []*group
	for _, g := range w.groups {
		if g.folder {
			folders = append(folders, g)
		}
		parts = append(parts, g.Title, g.Index, strconv.Itoa(len(g.Items)))
	}
	return page{"feeds.html", digest(parts...), "feeds", func() (map[string]any, bool) {
		return map[string]any{"Title": "Feeds", "Folders": folders, "Feeds": w.feeds}, true
	}}
}
