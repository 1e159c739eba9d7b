// Package importfmt reads the files of other feed readers: feeds with names and folders, saved
// queries, and which entries were read. It parses formats only, and accesses neither the disk nor
// the lektor-dir. Nothing is executed: in a list that is a shell script, it reads only the lines
// that it can parse.
package importfmt

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Library is the data of a reader.
type Library struct {
	Feeds   []Feed // in its order, each URL once
	Queries []Query
	Rules   []Rule
	// Notes are the lines that could not be read or have no equivalent, one note for each.
	Notes []string
}

// Feed is a feed that another reader fetches.
type Feed struct {
	URL string // as the user wrote it; "exec:" and a command of /bin/sh for one that a command makes
	// Filter is a shell command that filters the feed's documents, or "".
	Filter string
	// Key is the reader's own key of the feed in its list of entries.
	Key        string
	Title      string // the user's own name for it, or ""
	Name       string // its own name, or ""
	Link       string // its page, or ""
	Categories []string
	// Off is true if the reader does not fetch the feed.
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
	// ID is the entry's identifier in the reader, URL the entry's page. Either may be "".
	ID, URL, Title string
	Date           time.Time // zero if it is not known
	Read, Trashed  bool
	Flagged        bool
	Flags          string // the user's own, a to z
	Marked         bool   // it has other flags, which have no equivalent
	// Made is true if the reader made ID, because the entry has none in the feed.
	Made bool
	// Row is the number of the entry in the reader's database. Text is the rest of the entry; nil
	// if it must be read by Row, or does not exist.
	Row  int64
	Text *Text
	// FeedTitle is the reader's name of the feed, if the item contains it.
	FeedTitle string
}

// Marks returns the flags of an item, as letters of a lektor-dir; "" for an unread item without
// flags.
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

// note adds a note on a line.
func (l *Library) note(line int, format string, a ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf("line %d: ", line)+fmt.Sprintf(format, a...))
}

// oneLine joins the words of s with single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
