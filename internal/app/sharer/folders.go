package sharer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/protocol/opml"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// folders is the folder tree of a document of subscriptions.
type folders struct {
	doc    *feedsync.Document
	parent map[string]string // id -> id of the parent, with cycles broken
	paths  map[string]string // id -> path
	ids    map[string]string // path -> id of the existing folder
	cycle  []string          // folders that would be inside themselves; they are shown at the root
}

// isFolder reports whether an item is a folder. The id of a feed is a hash.
func isFolder(it *feedsync.Item) bool { return strings.HasPrefix(it.ID, folderPrefix) }

const folderPrefix = "folder:"

// foldersOf returns the tree of the folders of a document.
func foldersOf(doc *feedsync.Document) *folders {
	t := &folders{doc: doc, paths: map[string]string{}, ids: map[string]string{}}
	parents := map[string]string{}
	items := doc.Items()
	for _, it := range items {
		parents[it.ID] = it.Parent
	}
	t.parent, t.cycle = feedsync.Parents(parents)
	for _, it := range items {
		if isFolder(it) && !it.Deleted {
			path := t.path(it.ID)
			// If several folders have one path, all machines choose the lowest id.
			if old, ok := t.ids[path]; !ok || it.ID < old {
				t.ids[path] = it.ID
			}
		}
	}
	return t
}

// path returns the path of a folder, in the form of a category. A deleted folder that still
// holds items has a path, too.
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
	p := opml.JoinPath(append(opml.SplitPath(t.path(t.parent[id])), it.Value("", "text")))
	t.paths[id] = p
	return p
}

// split splits a path into the path of the parent and the last name.
func split(path string) (parent, name string) {
	names := opml.SplitPath(path)
	if len(names) == 0 {
		return "", ""
	}
	return opml.JoinPath(names[:len(names)-1]), names[len(names)-1]
}

func folderContent(name string) []byte {
	return []byte(`<outline text="` + xmltext.Attr(name) + `"></outline>`)
}

// folder returns the id of the folder at a path. It creates missing folders.
func (n *noter) folder(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if id, ok := n.tree.ids[path]; ok {
		return id, nil
	}
	above, name := split(path)
	parent, err := n.folder(above)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	id := folderPrefix + hex.EncodeToString(sum[:8])
	if old := n.set.subs.Item(id); old != nil && (!old.Deleted || old.Version >= feedsync.MaxVersion ||
		old.Value("", "text") != name || old.Parent != parent) {
		// The folder with this id was renamed or moved, so the new one needs another id.
		random, err := random(n.rand, 8)
		if err != nil {
			return "", err
		}
		id += "-" + random
	}
	if err := n.set.modify(feedsync.OPML, id, false, folderContent(name), parent); err != nil {
		return "", err
	}
	n.tree.parent[id], n.tree.paths[id], n.tree.ids[path] = parent, path, id
	return id, nil
}

// random returns n random bytes in hexadecimal, read from from (nil: crypto/rand).
func random(from io.Reader, n int) (string, error) {
	if from == nil {
		from = rand.Reader
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b), nil
}

// moveFolder renames or moves a folder. It does nothing if the new path exists.
func (n *noter) moveFolder(m *folderMove) error {
	id, ok := n.tree.ids[m.from]
	if _, taken := n.tree.ids[m.to]; !ok || taken {
		return nil
	}
	above, name := split(m.to)
	parent, err := n.folder(above)
	if err != nil {
		return err
	}
	if err := n.set.modify(feedsync.OPML, id, false, folderContent(name), parent); err != nil {
		return err
	}
	n.tree = foldersOf(n.set.subs)
	return nil
}

// dropEmpty deletes the folder at a path if it is empty, then its parents.
func (n *noter) dropEmpty(path string) error {
	for path != "" {
		t := foldersOf(n.set.subs)
		id, ok := t.ids[path]
		if !ok {
			return nil
		}
		for _, it := range n.set.subs.Items() {
			if !it.Deleted && t.parent[it.ID] == id {
				return nil
			}
		}
		if err := n.set.modify(feedsync.OPML, id, true, nil, ""); err != nil {
			return fmt.Errorf("folder %s: %w", path, err)
		}
		path, _ = split(path)
	}
	return nil
}
