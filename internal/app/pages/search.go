package pages

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// Limits that keep the search index small.
const (
	maxSearched = 20_000 // entries, the newest
	maxPerWord  = 50     // entries of each word
)

// searchPages returns an index of the words in the titles of the newest entries. It has a page for
// each pair of first letters, and needs neither a server nor scripts.
func (w *site) searchPages(newest []*item) []page {
	prefixes := map[string]map[string][]*item{} // prefix → word → entries, newest first
	for _, i := range slices.Backward(newest) {
		for _, word := range words(i.title) {
			p := prefix(word)
			if prefixes[p] == nil {
				prefixes[p] = map[string][]*item{}
			}
			prefixes[p][word] = append(prefixes[p][word], i)
		}
	}
	var pages []page
	sorted := slices.Sorted(maps.Keys(prefixes))
	for _, p := range sorted {
		pages = append(pages, w.wordsPage(p, prefixes[p]))
	}
	return append(pages, w.searchPage(sorted, prefixes, len(newest)))
}

func searchPath(prefix string) string {
	return "search/" + hex.EncodeToString([]byte(prefix)) + ".html"
}

// wordsPage returns the page of the words that begin with prefix.
func (w *site) wordsPage(prefix string, entries map[string][]*item) page {
	sorted := slices.Sorted(maps.Keys(entries))
	parts := []string{version, w.o.Title, prefix}
	for _, word := range sorted {
		parts = append(parts, word, strconv.Itoa(len(entries[word])))
		for _, i := range entries[word][:min(len(entries[word]), maxPerWord)] {
			parts = append(parts, i.key, i.title)
		}
	}
	return page{path: searchPath(prefix), digest: digest(parts...), render: func(b *strings.Builder) bool {
		w.head(b, "../", "Index: "+prefix+"…")
		fmt.Fprintf(b, "<h1>Words with <bdi>%s</bdi>…</h1>\n", text(prefix))
		for _, word := range sorted {
			list := entries[word]
			fmt.Fprintf(b, "<h2 dir=\"auto\">%s</h2>\n<ul>\n", text(word))
			for _, i := range list[:min(len(list), maxPerWord)] {
				b.WriteString(`<li><a dir="auto" href="../` + i.path() + `">` + text(i.title) + "</a></li>\n")
			}
			b.WriteString("</ul>\n")
			if more := len(list) - maxPerWord; more > 0 {
				fmt.Fprintf(b, "<p class=\"meta\">and %s more</p>\n", strconv.Itoa(more))
			}
		}
		b.WriteString(foot)
		return true
	}}
}

// searchPage returns the first page of the search index, with links to the pages of words.
func (w *site) searchPage(sorted []string, prefixes map[string]map[string][]*item, searched int) page {
	parts := []string{version, w.o.Title, strconv.Itoa(searched), strconv.Itoa(len(w.list))}
	for _, p := range sorted {
		parts = append(parts, p, strconv.Itoa(len(prefixes[p])))
	}
	return page{path: "search/index.html", digest: digest(parts...), render: func(b *strings.Builder) bool {
		w.head(b, "../", "Index")
		b.WriteString("<h1>Index</h1>\n<p>Words in titles, by their first letters.</p>\n")
		if searched < len(w.list) {
			fmt.Fprintf(b, "<p class=\"meta\">Of the newest %s.</p>\n", humanize.Count(searched, "entry"))
		}
		letter := ""
		for _, p := range sorted {
			first := string([]rune(p)[:1])
			if first != letter {
				if letter != "" {
					b.WriteString("</p>\n")
				}
				b.WriteString("<p class=\"words\">")
				letter = first
			}
			fmt.Fprintf(b, "<a href=\"%s\">%s</a> ", strings.TrimPrefix(searchPath(p), "search/"), text(p))
		}
		if letter != "" {
			b.WriteString("</p>\n")
		}
		b.WriteString(foot)
		return true
	}}
}

// prefix returns the first two letters of a word.
func prefix(word string) string {
	runes := []rune(word)
	return string(runes[:min(2, len(runes))])
}

// words returns the words of a title for the search index: folded as in queries, and without words
// of one letter. In scripts without spaces between words, each pair of adjacent characters is a
// word.
func words(title string) []string {
	var list []string
	for _, run := range strings.FieldsFunc(query.Fold(title), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r)
	}) {
		var word, wide []rune
		flush := func() {
			if len(word) > 1 {
				list = append(list, string(word))
			}
			for n := range len(wide) {
				if n+1 < len(wide) || len(wide) == 1 {
					list = append(list, string(wide[n:min(n+2, len(wide))]))
				}
			}
			word, wide = nil, nil
		}
		for _, r := range run {
			unspaced := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao,
				unicode.Khmer, unicode.Myanmar)
			if unspaced && len(word) > 0 || !unspaced && len(wide) > 0 {
				flush()
			}
			if unspaced {
				wide = append(wide, r)
			} else {
				word = append(word, r)
			}
		}
		flush()
	}
	slices.SortFunc(list, cmp.Compare)
	return slices.Compact(list)
}
