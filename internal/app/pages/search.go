package pages

import (
	"cmp"
	"encoding/hex"
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
		for _, word := range words(i.Title) {
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

// searchName returns the name of the page of the words that begin with prefix.
func searchName(prefix string) string { return hex.EncodeToString([]byte(prefix)) + ".html" }

// wordsPage returns the page of the words that begin with prefix.
func (w *site) wordsPage(prefix string, entries map[string][]*item) page {
	parts := []string{version, w.o.Title, prefix}
	for _, word := range slices.Sorted(maps.Keys(entries)) {
		parts = append(parts, word, strconv.Itoa(len(entries[word])))
		for _, i := range entries[word][:min(len(entries[word]), maxPerWord)] {
			parts = append(parts, i.key, i.Title)
		}
	}
	return page{"search/" + searchName(prefix), digest(parts...), "words", func() (map[string]any, bool) {
		return map[string]any{"Title": "Index: " + prefix + "…", "Prefix": prefix, "Words": entries}, true
	}}
}

// searchPage returns the first page of the search index, with links to the pages of words.
func (w *site) searchPage(sorted []string, prefixes map[string]map[string][]*item, searched int) page {
	parts := []string{version, w.o.Title, strconv.Itoa(searched), strconv.Itoa(len(w.list))}
	var letters [][]string
	for i, p := range sorted {
		parts = append(parts, p, strconv.Itoa(len(prefixes[p])))
		if i == 0 || []rune(p)[0] != []rune(sorted[i-1])[0] {
			letters = append(letters, nil)
		}
		letters[len(letters)-1] = append(letters[len(letters)-1], p)
	}
	newest := ""
	if searched < len(w.list) {
		newest = humanize.Count(searched, "entry")
	}
	return page{"search/index.html", digest(parts...), "search", func() (map[string]any, bool) {
		return map[string]any{"Title": "Index", "Newest": newest, "Letters": letters}, true
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
