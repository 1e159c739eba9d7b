package server

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/entrystore"
	"github.com/lektordir/lektor/internal/feedstate"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/greader"
	"github.com/lektordir/lektor/lektordir"
)

// shown returns the hashes of the feeds that clients see.
func (c *call) shown() ([]string, error) {
	hashes, err := c.lib.dir.FeedHashes()
	return slices.DeleteFunc(hashes, func(hash string) bool { return !feedstate.Shown(c.lib.dir, hash) }), err
}

// feedOf returns the hash of a feed that a client names by its hash or a URL, "" if there is none.
func (c *call) feedOf(name string) string {
	hashes, err := c.shown()
	if err != nil {
		return ""
	}
	for _, hash := range []string{name, lektordir.FeedHash(lektordir.NormalizeID(name)), feedstate.ByURL(c.lib.dir)[name]} {
		if slices.Contains(hashes, hash) {
			return hash
		}
	}
	// The URL that clients know has no password.
	for url, hash := range feedstate.ByURL(c.lib.dir) {
		if feedurl.Public(url) == name {
			return hash
		}
	}
	return ""
}

// feedsIn returns the hashes of the feeds in a folder. Feeds in the folders below are not among
// them, because clients show these as folders of their own.
func (c *call) feedsIn(folder string) (map[string]bool, error) {
	hashes, err := c.shown()
	if err != nil {
		return nil, err
	}
	key, found := folderKey(folder), map[string]bool{}
	for _, hash := range hashes {
		if slices.ContainsFunc(c.entries().Folders(hash), func(f string) bool { return folderKey(f) == key }) {
			found[hash] = true
		}
	}
	return found, nil
}

// folderKey returns a text that is equal for all spellings of a folder.
func folderKey(folder string) string {
	path := entrystore.FolderPath(folder)
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1].Key
}

// subscriptions implements subscription/list.
func (c *call) subscriptions() error {
	hashes, err := c.shown()
	if err != nil {
		return err
	}
	answer := greader.Subscriptions{Subscriptions: []greader.Subscription{}}
	names := c.folderNames(hashes)
	for _, hash := range hashes {
		s, err := c.subscription(hash, names)
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
func (c *call) subscription(hash string, names map[string]string) (greader.Subscription, error) {
	f, err := c.lib.dir.ReadFeed(hash)
	if err != nil && !errors.As(err, new(*lektordir.MalformedError)) {
		return greader.Subscription{}, err
	}
	url := feedstate.PublicURL(c.lib.dir, hash)
	if url == "" {
		url = publicURL(f.ID)
	}
	s := greader.Subscription{
		ID: greader.FeedID(hash), Title: cmp.Or(f.Title(), feedurl.Public(f.ID), hash), Categories: []greader.Category{},
		URL: url, HTMLURL: cmp.Or(publicURL(f.Link), url), IconURL: publicURL(f.Image),
	}
	for _, folder := range c.entries().Folders(hash) {
		name := names[folderKey(folder)]
		if name != "" && !slices.ContainsFunc(s.Categories, func(c greader.Category) bool { return c.Label == name }) {
			s.Categories = append(s.Categories, greader.Category{ID: greader.LabelID(name), Label: name})
		}
	}
	return s, nil
}

// folderNames returns the names of all folders by key: of several spellings the first one.
func (c *call) folderNames(hashes []string) map[string]string {
	names := map[string]string{}
	for _, hash := range hashes {
		for _, folder := range c.entries().Folders(hash) {
			key := folderKey(folder)
			if old, ok := names[key]; key != "" && (!ok || folder < old) {
				names[key] = folder
			}
		}
	}
	return names
}

// tags implements tag/list.
func (c *call) tags() error {
	hashes, err := c.shown()
	if err != nil {
		return err
	}
	s, err := c.lib.snapshot(c.r.Context())
	if err != nil {
		return err
	}
	answer := greader.Tags{Tags: []greader.Tag{{ID: greader.StateID(greader.Starred)}}}
	folders := slices.Sorted(maps.Values(c.folderNames(hashes)))
	for _, name := range folders {
		answer.Tags = append(answer.Tags, greader.Tag{ID: greader.LabelID(name), Type: "folder"})
	}
	var used [26]bool
	for _, e := range s.entries {
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

// taggedJSON is json with an ETag.
func (c *call) taggedJSON(v any) error {
	data, err := greader.JSON(v)
	if err != nil {
		return err
	}
	if c.values.Get("output") == "xml" {
		return c.tagged("text/xml; charset=utf-8", func(w io.Writer) error { return greader.XML(w, bytes.NewReader(data)) })
	}
	return c.tagged("application/json; charset=utf-8", func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// tagged answers with what write writes, and an ETag of it. If the client has that already, the
// answer to a GET request is 304.
func (c *call) tagged(contentType string, write func(io.Writer) error) error {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	sum := sha256.Sum256(b.Bytes())
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	c.w.Header().Set("Content-Type", contentType)
	c.w.Header().Set("ETag", tag)
	if c.r.Method != http.MethodPost && matches(c.r.Header.Get("If-None-Match"), tag) {
		c.w.WriteHeader(http.StatusNotModified)
		return nil
	}
	c.sent = true
	_, err := c.w.Write(b.Bytes())
	return err
}

// matches reports whether a field If-None-Match has a tag.
func matches(field, tag string) bool {
	for t := range strings.SplitSeq(field, ",") {
		if strings.TrimPrefix(strings.TrimSpace(t), "W/") == tag {
			return true
		}
	}
	return false
}
