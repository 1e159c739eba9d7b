package discover

import (
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
)

// First returns the index in Feeds of the feed that a reader of the page most likely wants: the first,
// but one below the path of the page before others, and feeds of comments last. pageURL is the URL of
// the page; Feeds must not be empty.
func (r *Result) First(pageURL string) int {
	below := func(string) bool { return false }
	if page, err := url.Parse(pageURL); err == nil {
		own := page.Path
		if strings.HasPrefix(path.Base(own), "index.") {
			own = path.Dir(own)
		}
		dir := strings.TrimRight(own, "/") + "/"
		below = func(feed string) bool {
			u, err := url.Parse(feed)
			return err == nil && strings.EqualFold(u.Host, page.Host) && dir != "/" && strings.HasPrefix(u.Path, dir)
		}
	}
	rank := func(l Link) int {
		switch {
		case l.ofComments():
			return 2
		case below(l.URL):
			return 0
		}
		return 1
	}
	best := 0
	for i, l := range r.Feeds {
		if rank(l) < rank(r.Feeds[best]) {
			best = i
		}
	}
	return best
}

// ofComments reports whether the link leads to the comments of a site or page, by WordPress's path or by
// its title in one of several languages.
func (l Link) ofComments() bool {
	title := strings.ToLower(l.Title)
	return strings.Contains(strings.ToLower(l.URL), "/comments/") ||
		slices.ContainsFunc([]string{"comment", "kommentar", "coment", "commenti", "reacties", "komentar", "комментар",
			"コメント", "评论"}, func(word string) bool { return strings.Contains(title, word) })
}

// OneFeed reports whether all feeds of a page are the same one in several formats: their titles are
// equal, or differ only in the name of the format. n is the index in Feeds of the best format: Atom,
// which has ids and exact dates, then JSON Feed, then RSS.
func (r *Result) OneFeed() (n int, ok bool) {
	var formats [3]int // 1 + index of the link, by format
	for i, l := range r.Feeds {
		at := slices.Index(formatNames, l.format())
		if formats[at] > 0 || l.Title == "" || l.subject() != r.Feeds[0].subject() {
			return 0, false
		}
		formats[at] = i + 1
	}
	for _, i := range formats {
		if i > 0 {
			return i - 1, len(r.Feeds) > 1
		}
	}
	return 0, false
}

// formatNames are the formats of feeds, the best first.
var formatNames = []string{"atom", "json", "rss"}

// format returns one of formatNames, by the MIME type of the link.
func (l Link) format() string {
	for _, name := range formatNames {
		if strings.Contains(l.Type, name) {
			return name
		}
	}
	return "rss"
}

// subject returns the title of the link without names and versions of formats, in lower case.
func (l Link) subject() string {
	words := strings.FieldsFunc(strings.ToLower(l.Title), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsNumber(r) && r != '.'
	})
	words = slices.DeleteFunc(words, func(word string) bool {
		return slices.Contains([]string{"atom", "json", "rss", "rss2", "xml", "rdf", "feed", "feeds", "0.91", "0.92",
			"1.0", "1.1", "2.0"}, word)
	})
	return strings.Join(words, " ")
}
