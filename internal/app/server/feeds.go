package server

import (
	"cmp"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/lektordir/lektor/internal/feedstate"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/greader"
	"github.com/lektordir/lektor/lektordir"
)

// subscriptions implements subscription/list.
func (c *call) subscriptions() error {
	v, err := c.look()
	if err != nil {
		return err
	}
	answer := greader.Subscriptions{Subscriptions: []greader.Subscription{}}
	names := v.folderNames()
	for _, hash := range v.feeds {
		s, err := v.subscription(hash, names)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		answer.Subscriptions = append(answer.Subscriptions, s)
	}
	return c.taggedJSON(answer)
}

// subscription reads a feed.
func (v *view) subscription(hash string, names map[string]string) (greader.Subscription, error) {
	f, err := v.dir.ReadFeed(hash)
	if err != nil && !errors.As(err, new(*lektordir.MalformedError)) {
		return greader.Subscription{}, err
	}
	url := feedstate.PublicURL(v.dir, hash)
	if url == "" {
		url = publicURL(f.ID)
	}
	s := greader.Subscription{
		ID: greader.FeedID(hash), Title: cmp.Or(f.Title(), feedurl.Public(f.ID), hash), Categories: []greader.Category{},
		URL: url, HTMLURL: cmp.Or(publicURL(f.Link), url), IconURL: publicURL(f.Image),
	}
	for _, name := range v.labels(hash, names) {
		s.Categories = append(s.Categories, greader.Category{ID: greader.LabelID(name), Label: name})
	}
	return s, nil
}

// tags implements tag/list.
func (c *call) tags() error {
	v, err := c.look()
	if err != nil {
		return err
	}
	answer := greader.Tags{Tags: []greader.Tag{{ID: greader.StateID(greader.Starred)}}}
	folders := slices.Sorted(maps.Values(v.folderNames()))
	for _, name := range folders {
		answer.Tags = append(answer.Tags, greader.Tag{ID: greader.LabelID(name), Type: "folder"})
	}
	var used [26]bool
	for _, e := range v.entries {
		if e.ref.Trashed() {
			continue
		}
		for _, flag := range []byte(e.ref.Flags()) {
			if flag >= 'a' && flag <= 'z' {
				used[flag-'a'] = true
			}
		}
	}
	for i, u := range used {
		if name := greader.FlagLabel('a' + byte(i)); u && !slices.Contains(folders, name) {
			answer.Tags = append(answer.Tags, greader.Tag{ID: greader.LabelID(name), Type: "tag"})
		}
	}
	return c.taggedJSON(answer)
}
