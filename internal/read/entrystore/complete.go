package entrystore

import (
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Complete returns candidates for a word of a command line: feeds, folders, settings, flags and
// terms of queries. A feed whose title cannot be typed is completed by its URL.
func Complete(k cmdline.Kind) []cmdline.Candidate {
	switch {
	case k.Name == "FEED":
		return feedNames(feeds(k.Dir), k.Word)
	case k.Name == "SETTING":
		return plain(settings.Names)
	case k.Name == "FLAGS":
		return []cmdline.Candidate{{Word: "S", About: "seen, that is read", Open: true},
			{Word: "F", About: "flagged", Open: true}, {Word: "T", About: "trashed", Open: true}}
	case k.Name == "QUERY":
		return terms(k)
	case k.Flag == "category":
		return plain(folders(k.Dir))
	}
	return nil
}

// CompleteSubscribed is like [Complete], but returns only subscribed feeds. For rm and set it returns
// all feeds.
func CompleteSubscribed(k cmdline.Kind) []cmdline.Candidate {
	if k.Name != "FEED" || k.Command == "rm" || k.Command == "set" {
		return Complete(k)
	}
	d, err := lektordir.Open(k.Dir, nil)
	if err != nil {
		return nil
	}
	list := slices.DeleteFunc(feeds(k.Dir), func(f *lektordir.Feed) bool { return !feedfiles.Subscribed(d, f.Hash) })
	return feedNames(list, k.Word)
}

func plain(words []string) (all []cmdline.Candidate) {
	for _, w := range words {
		all = append(all, cmdline.Candidate{Word: w})
	}
	return all
}

// feeds returns the feeds of a lektor-dir that can be read.
func feeds(dir string) []*lektordir.Feed {
	d, err := lektordir.Open(dir, nil)
	if err != nil {
		return nil
	}
	list, _ := d.Feeds()
	return list
}

// feedNames returns a candidate for each feed: its title if that is unique, else its id. If word is
// the beginning of a URL, it returns ids.
func feedNames(list []*lektordir.Feed, word string) (all []cmdline.Candidate) {
	titles := map[string]int{}
	for _, f := range list {
		titles[strings.ToLower(f.Title())]++
	}
	for _, f := range list {
		title, id := f.Title(), feedurl.Public(f.ID)
		switch {
		case titles[strings.ToLower(title)] == 1 && typable(title) && !strings.HasPrefix(word, "http"):
			all = append(all, cmdline.Candidate{Word: title, Typed: title, About: id})
		case typable(id):
			all = append(all, cmdline.Candidate{Word: id, About: title})
		default:
			all = append(all, cmdline.Candidate{Word: f.Hash, About: title})
		}
	}
	return all
}

// typable reports whether a name can be typed: it is one line without control characters, and does
// not look like a flag.
func typable(name string) bool {
	return name != "" && termsafe.Line(name) == name && name[0] != '-' && strings.TrimSpace(name) == name
}

// folders returns the folders of feeds and their parents.
func folders(dir string) (all []string) {
	d, err := lektordir.Open(dir, nil)
	if err != nil {
		return nil
	}
	hashes, _ := d.FeedHashes()
	for _, h := range hashes {
		all = slices.AppendSeq(all, maps.Values(FoldersAbove(settings.Categories(d, h))))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// terms returns the terms that complete a word of a query.
func terms(k cmdline.Kind) (all []cmdline.Candidate) {
	negated := ""
	word := k.Word
	for strings.HasPrefix(word, "not:") {
		negated, word = negated+"not:", word[len("not:"):]
	}
	keys, values := query.Keys()
	key, _, ok := strings.Cut(word, ":")
	if !ok {
		for _, name := range keys {
			all = append(all, cmdline.Candidate{Word: negated + name + ":", Open: true})
		}
		return all
	}
	add := func(value, about string) {
		all = append(all, cmdline.Candidate{Word: negated + key + ":" + query.Value(value), Typed: negated + key + ":" +
			value, About: about})
	}
	switch key {
	case "feed":
		for _, c := range feedNames(feeds(k.Dir), word[len("feed:"):]) {
			add(c.Word, c.About)
		}
	case "folder", "category":
		for _, f := range folders(k.Dir) {
			add(f, "")
		}
	case "query":
		names, _ := savedNames(k.Dir)
		for _, n := range names {
			add(n, "")
		}
	case "label":
		labels, _ := Labels(k.Dir)
		for _, l := range labels {
			if l.Flag != "" {
				add(l.Name, l.Flag)
			}
		}
	case "flag":
		for _, c := range Complete(cmdline.Kind{Name: "FLAGS"}) {
			add(c.Word, c.About)
		}
	case "since", "before", "on", "delivered", "read":
		for _, v := range []string{"today", "yesterday", "1d", "1w", "4w", "1y"} {
			add(v, "")
		}
	default:
		for _, v := range values[key] {
			add(v, "")
		}
	}
	return all
}
