package server

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// subscriptions implements subscription/list.
func (c *request) subscriptions() error {
	v, err := c.currentView()
	if err != nil {
		return err
	}
	answer := greader.Subscriptions{Subscriptions: []greader.Subscription{}}
	names := v.Folders()
	for _, f := range v.Feeds {
		s, err := v.subscription(f, names)
		if err != nil {
			return err
		}
		s.Title = shownTitle(f.About)
		answer.Subscriptions = append(answer.Subscriptions, s)
	}
	return c.json(answer)
}

// hashURN begins the URL that clients see of a feed that has none, or none that they may see.
const hashURN = "urn:sha1:"

// subscription returns a feed. The error is that of reading it.
func (v *View) subscription(f *catalog.Feed, names map[string]string) (greader.Subscription, error) {
	a := f.About
	if a.Err != nil && !errors.As(a.Err, new(*lektordir.MalformedError)) {
		return greader.Subscription{}, a.Err
	}
	// Liferea leaves out a feed without a URL.
	url := cmp.Or(publicURL(a.Public, a.ID), hashURN+f.Hash)
	s := greader.Subscription{
		ID: greader.FeedID(f.Hash), Title: titleOf(a.Feed), Categories: []greader.Category{}, URL: url,
		HTMLURL: publicURL(a.Link, url), IconURL: publicURL(a.Image),
	}
	for _, name := range v.FoldersOf(f, names) {
		s.Categories = append(s.Categories, greader.Category{ID: greader.LabelID(name), Label: name})
	}
	return s, nil
}

// shownTitle returns the title of a feed, with the error of one of which no document was ever read.
func shownTitle(a *subscriptions.About) string {
	if a.NeverRead == "" {
		return titleOf(a.Feed)
	}
	return titleOf(a.Feed) + " (" + brief(a.NeverRead) + ")"
}

// brief returns the error of a fetch in a few words, such as "not found".
func brief(text string) string {
	// the URL before the error
	for strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "file:") {
		_, text, _ = strings.Cut(text, ": ")
	}
	if strings.HasPrefix(text, "exec:") {
		return "the command failed"
	}
	if status, ok := strings.CutPrefix(text, "the server answered "); ok {
		text = strings.ToLower(strings.TrimLeft(status, "0123456789"))
	}
	words := strings.Split(text, `"`)
	for i := 1; i < len(words); i += 2 {
		words[i] = "" // within the quotes
	}
	text = strings.Join(words, "")
	if end := strings.IndexAny(text, ",;:("); end >= 0 {
		text = text[:end]
	}
	return cmp.Or(termsafe.Truncate(termsafe.Squeeze(text), 60), "not fetched")
}

// titleOf returns the title of a feed, without the password or command that its id may have, and without
// characters that a terminal acts on: clients show it as it is.
func titleOf(f *lektordir.Feed) string {
	title := termsafe.Line(f.Title())
	if title != f.ID {
		return title
	}
	if u := publicURL(f.ID); u != "" {
		return u
	}
	if scheme, _, _ := strings.Cut(strings.ToLower(f.ID), ":"); scheme == "exec" || f.ID == "" {
		return f.Hash
	}
	return feedurl.Public(f.ID)
}

// tags implements tag/list.
func (c *request) tags() error {
	v, err := c.currentView()
	if err != nil {
		return err
	}
	answer := greader.Tags{Tags: []greader.Tag{{ID: greader.StateID(greader.Starred)}}}
	folders := slices.Sorted(maps.Values(v.Folders()))
	for _, name := range folders {
		answer.Tags = append(answer.Tags, greader.Tag{ID: greader.LabelID(name), Type: "folder"})
	}
	used := v.usedFlags()
	for _, l := range v.ownLabels {
		used += l.Flag
	}
	for flag := range strings.SplitSeq(flags, "") {
		if name := v.flagLabel(flag); strings.Contains(used, flag) && !slices.Contains(folders, name) {
			answer.Tags = append(answer.Tags, greader.Tag{ID: greader.LabelID(name), Type: "tag"})
		}
	}
	return c.json(answer)
}

// flags are the flags of the user.
const flags = "abcdefghijklmnopqrstuvwxyz"

// usedFlags returns the flags of the user that entries have which are not trashed, each once.
func (v *View) usedFlags() string {
	var used catalog.Flags
	for _, f := range v.Feeds {
		used |= f.Flags
	}
	return (used & catalog.FlagsOf(flags)).String()
}
