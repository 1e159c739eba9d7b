package importfmt

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Text is the text of an entry in another reader, with author, categories and enclosures.
type Text struct {
	Author, Content string
	Plain           bool   // Content is text without markup
	Base            string // URL at which relative references in it begin, or ""
	Categories      []string
	Enclosures      []Enclosure
}

// Enclosure is a file that belongs to an entry. Length is in bytes, -1 if unknown.
type Enclosure struct {
	URL, Type string
	Length    int64
}

// Kept is an entry that is unread or flagged in another reader. Its feed may no longer list it.
type Kept struct {
	*Item
	GUID   string // identifier in the feed, "" if it is not known
	ByLink bool   // no other item of the feed has the URL
}

// Keep returns the unread and the flagged items that are not deleted, newest first. unsure is the
// number of such items that it leaves out, because they have no identifier from the feed and no URL
// of their own: if they were delivered, the feed would deliver them again.
func Keep(items []Item) (kept []Kept, unsure int) {
	type in struct{ feed, url string }
	urls := make(map[in]int, len(items))
	for i := range items {
		urls[in{items[i].Feed, items[i].URL}]++
	}
	for n := range items {
		i := &items[n]
		if i.Trashed || i.Read && !i.Flagged && i.Flags == "" && !i.Marked {
			continue
		}
		k := Kept{Item: i, GUID: i.ID, ByLink: i.URL != "" && urls[in{i.Feed, i.URL}] == 1}
		if i.Made {
			k.GUID = ""
		}
		if strings.TrimSpace(k.GUID) == "" && !k.ByLink {
			unsure++
			continue
		}
		kept = append(kept, k)
	}
	slices.SortStableFunc(kept, func(a, b Kept) int { return cmp.Compare(b.Date.Unix(), a.Date.Unix()) })
	return kept, unsure
}

// dated finds the date at the end of an identifier that newsboat made.
var dated = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? .*\d\d:\d\d.*$`)
})

// Identify sets Made if newsboat made the identifier because the feed has none: from link and date,
// or, without a link, from the title. The identifier has the link as the feed writes it; newsboat's
// URL of the entry may be written otherwise.
func (i *Item) Identify() {
	switch {
	case i.ID == "" || i.ID == i.URL:
	case i.URL == "":
		i.Made = i.ID == i.Title
	default:
		link, rest, found := i.ID, "", false
		if rest, found = strings.CutPrefix(i.ID, i.URL); found {
			link = i.URL
		} else if at := dated().FindStringIndex(i.ID); at != nil {
			link, rest = i.ID[:at[0]], i.ID[at[0]:]
		}
		if rest == "" || !isWeb(link) || !hasYear(rest, i.Date) {
			return
		}
		i.Made, i.URL = true, link
	}
}

// hasYear reports whether a date as it was written may be one that was read so: it has a
// time and the year, be it in another zone.
func hasYear(text string, date time.Time) bool {
	for _, d := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		year := date.Add(d).Format("2006")
		if strings.Contains(text, year) || strings.Contains(text, " "+year[2:]+" ") {
			return strings.Contains(text, ":")
		}
	}
	return false
}
