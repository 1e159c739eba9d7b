// Package importfmt reads what other feed readers keep for their users: feeds with names
// and folders, saved queries, and what was read. It knows their formats, and neither
// the disk nor the lektor-dir. None of what it reads is run: a list that is a shell
// script is read for the lines that it knows.
package importfmt

import (
	"slices"
	"strings"
	"time"
)

// Library is what a reader keeps.
type Library struct {
	Feeds   []Feed // in its order, each URL once
	Queries []Query
	Rules   []Rule
	// Notes say, a line each, what was not understood or has no equivalent.
	Notes []string
}

// Feed is a feed that another reader fetches.
type Feed struct {
	URL string // as the user wrote it; "exec:" and a command of /bin/sh for one that a command makes
	// Filter is a command of /bin/sh through which its documents go, or "".
	Filter string
	// Key is what the reader calls the feed where it keeps the entries.
	Key        string
	Title      string // the user's own name for it, or ""
	Name       string // its own name, or ""
	Link       string // its page, or ""
	Categories []string
	// Off means that the reader does not fetch it.
	Off bool
}

// Query is a saved query.
type Query struct {
	Name string
	Text string // in the language of lektor-query(7), where Err is nil
	Err  error  // why it cannot be said in it
}

// Item is an entry that another reader knows.
type Item struct {
	Feed string // the Key of its feed, or a URL of the feed; "" if unknown
	Page string // URL of the feed's page, where Feed is "" or of no use
	// ID is what it has for the entry's identifier, URL the entry's page; either may be "".
	ID, URL, Title string
	Date           time.Time // zero if it is not known
	Read, Trashed  bool
	Flagged        bool
	Flags          string // the user's own, a to z
	Marked         bool   // it has other flags, which have no equivalent
	// Made means that the reader made ID, as the feed has none for the entry.
	Made bool
	// Row is what the reader's database has for the entry, Text what else is known of
	// it; nil where that is to be read by the row, or there is nothing.
	Row  int64
	Text *Text
	// FeedTitle is what the reader calls the feed, where the item says so.
	FeedTitle string
}

// Marks are the flags of an item, in the letters of a lektor-dir; "" for an unread one
// without any.
func (i *Item) Marks() string {
	var b strings.Builder
	if i.Flagged {
		b.WriteByte('F')
	}
	if i.Read {
		b.WriteByte('S')
	}
	if i.Trashed {
		b.WriteByte('T')
	}
	b.WriteString(i.Flags)
	return b.String()
}

// Distinct returns a copy of the items without ambiguous keys. It merges no items. If several items
// of a feed have the same URL, such as the home page's, the URL identifies none of them, and each
// loses its URL and title. If several items of a feed have no URL and the same title, each loses
// the title. Items that then have no identifier, URL or title are dropped.
func Distinct(items []Item) []Item {
	type in struct{ feed, what string }
	urls, titles := map[in]int{}, map[in]int{}
	for _, i := range items {
		urls[in{i.Feed, i.URL}]++
		if i.URL == "" {
			titles[in{i.Feed, i.Title}]++
		}
	}
	out := slices.Clone(items)
	for n := range out {
		i := &out[n]
		if i.URL != "" {
			if urls[in{i.Feed, i.URL}] > 1 {
				i.URL, i.Title = "", ""
			}
		} else if titles[in{i.Feed, i.Title}] > 1 {
			i.Title = ""
		}
	}
	return slices.DeleteFunc(out, func(i Item) bool { return i.ID == "" && i.URL == "" && i.Title == "" })
}

// add appends a feed, or completes the one with its URL.
func (l *Library) add(f Feed) {
	for i := range l.Feeds {
		have := &l.Feeds[i]
		if have.URL != f.URL || have.Filter != f.Filter {
			continue
		}
		for _, c := range f.Categories {
			if !slices.Contains(have.Categories, c) {
				have.Categories = append(have.Categories, c)
			}
		}
		if have.Title == "" {
			have.Title = f.Title
		}
		return
	}
	l.Feeds = append(l.Feeds, f)
}

// oneLine makes a line of what may have several.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
