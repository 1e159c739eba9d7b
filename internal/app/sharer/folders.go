package sharer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/opml"
)

// folders is the tree of folders that the set of subscriptions has.
type folders struct {
	doc    *feedsync.Document
	parent map[string]string // effective
	paths  map[string]string // id -> path
	ids    map[string]string // path -> id of the folder that is not deleted
}

// isFolder tells whether an item is a folder: feeds have an xmlUrl, and their
// tombstones the hash of one for an id.
func isFolder(it *feedsync.Item) bool { return strings.HasPrefix(it.ID, folderPrefix) }

const folderPrefix = "folder:"

func (h *share) folders() *folders {
	t := &folders{doc: h.subs, paths: map[string]string{}, ids: map[string]string{}}
	parents := map[string]string{}
	items := h.subs.Items()
	for _, it := range items {
		parents[it.ID] = it.Parent
	}
	t.parent, _ = feedsync.Parents(parents)
	for _, it := range items {
		if isFolder(it) && !it.Deleted {
			path := t.path(it.ID)
			// Of several with one path the lowest id counts, on every machine.
			if old, ok := t.ids[path]; !ok || it.ID < old {
				t.ids[path] = it.ID
			}
		}
	}
	return t
}

// path gives the path of a folder, as a category has it. A folder that was deleted
// while something was put into it is one as long as that is there.
func (t *folders) path(id string) string {
	if id == "" {
		return ""
	}
	if p, ok := t.paths[id]; ok {
		return p
	}
	it := t.doc.Item(id)
	if it == nil || !isFolder(it) {
		return ""
	}
	p := join(t.path(t.parent[id]), it.Value("", "text"))
	t.paths[id] = p
	return p
}

// join gives the path of a folder of a name in another.
func join(parent, name string) string {
	return opml.JoinPath(append(opml.SplitPath(parent), name))
}

// clean gives a category in the form in which paths are compared.
func clean(category string) string { return opml.JoinPath(opml.SplitPath(category)) }

// split takes the last name off a path.
func split(path string) (parent, name string) {
	names := opml.SplitPath(path)
	if len(names) == 0 {
		return "", ""
	}
	return opml.JoinPath(names[:len(names)-1]), names[len(names)-1]
}

func folderContent(name string) []byte {
	return []byte(`<outline text="` + feedsync.Attr(name) + `"/>`)
}

// folder gives the id of the folder at a path, which is made where it is missing.
func (h *share) folder(t *folders, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if id, ok := t.ids[path]; ok {
		return id, nil
	}
	above, name := split(path)
	parent, err := h.folder(t, above)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	id := folderPrefix + hex.EncodeToString(sum[:8])
	if old := h.subs.Item(id); old != nil && !(old.Deleted && old.Value("", "text") == name && old.Parent == parent) {
		// It was renamed or moved, and is another now.
		random, err := h.random(8)
		if err != nil {
			return "", err
		}
		id += "-" + random
	}
	if err := h.modify(h.subs, id, folderContent(name), parent); err != nil {
		return "", err
	}
	t.parent[id], t.paths[id], t.ids[path] = parent, path, id
	return id, nil
}

// random gives n random bytes in hexadecimal.
func (h *share) random(n int) (string, error) {
	from := h.c.Rand
	if from == nil {
		from = rand.Reader
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// moveFolders finds folders that were renamed or moved: all feeds that were directly in
// one are in one other now, which there was not. from and to are the first categories
// of feeds, before and now.
func (h *share) moveFolders(t *folders, from, to map[string]string) error {
	members := map[string][]string{} // path before -> feeds
	for hash, path := range from {
		members[path] = append(members[path], hash)
	}
	still := map[string]bool{} // paths that a feed is in now, or below
	for _, path := range to {
		for p := path; p != ""; p, _ = split(p) {
			still[p] = true
		}
	}
	paths := make([]string, 0, len(members))
	for path := range members {
		paths = append(paths, path)
	}
	// From the outer to the inner: what is moved with its folder is not moved.
	slices.SortFunc(paths, func(a, b string) int { return len(opml.SplitPath(a)) - len(opml.SplitPath(b)) })
	for _, path := range paths {
		id, ok := t.ids[path]
		now := to[members[path][0]]
		_, taken := t.ids[now]
		one := !slices.ContainsFunc(members[path], func(hash string) bool { return to[hash] != now })
		if !ok || path == "" || now == "" || now == path || taken || !one || still[path] || strings.HasPrefix(now, path+"/") {
			continue
		}
		above, name := split(now)
		parent, err := h.folder(t, above)
		if err != nil {
			return err
		}
		if err := h.modify(h.subs, id, folderContent(name), parent); err != nil {
			return err
		}
		*t = *h.folders()
	}
	return nil
}

// dropEmpty deletes the folder at a path that nothing is in any more, and those above
// it.
func (h *share) dropEmpty(path string) error {
	for path != "" {
		t := h.folders()
		id, ok := t.ids[path]
		if !ok {
			return nil
		}
		for _, it := range h.subs.Items() {
			if !it.Deleted && t.parent[it.ID] == id {
				return nil
			}
		}
		if err := h.modify(h.subs, id, nil, ""); err != nil {
			return fmt.Errorf("folder %s: %w", path, err)
		}
		path, _ = split(path)
	}
	return nil
}
