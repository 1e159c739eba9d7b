//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// meeting is the directory in which machines publish. It is in the lektor-dir, since calls
// elsewhere are not counted.
const meeting = "etc/meeting"

// syncShared returns the command that syncs a lektor-dir, which may be a copy.
func syncShared(e *env, dir string) []string {
	must.Do(os.WriteFile(filepath.Join(dir, "etc/share/target"), []byte(filepath.Join(dir, meeting)+"\n"), 0o600))
	return []string{e.share, "sync", "--allow", "127.0.0.0/8"}
}

// sharing prepares a lektor-dir with edits, and the edits of another machine.
func sharing(e *env, dir string) {
	ctx := context.Background()
	other := filepath.Join(e.work, fmt.Sprintf("other-%d", e.serial.Add(1)))
	copyTree(dir, other)
	defer os.RemoveAll(other)
	target := filepath.Join(dir, meeting)
	run := func(at string, argv ...string) { must.Do(e.run(ctx, at, "", argv...)) }
	run(dir, e.share, "init", "--name", "here", target)
	run(other, e.share, "init", "--name", "there", target)
	for range 2 {
		run(dir, e.share, "sync", "--allow", "127.0.0.0/8")
		run(other, e.share, "sync", "--allow", "127.0.0.0/8")
	}
	// Make edits on both sides.
	for i, x := range read(dir) {
		switch i % 3 {
		case 0:
			run(dir, e.view, "mark", "--set", "S", x.Unique)
		case 1:
			run(other, e.view, "mark", "--set", "F", x.Unique)
		default:
			run(dir, e.view, "mark", "--set", "F", x.Unique)
			run(other, e.view, "mark", "--set", "S", x.Unique)
		}
	}
	run(other, e.fetch, "set", e.url(0), "alias", "An alias")
	run(other, e.fetch, "set", e.url(0), "categories", "Folder/Within")
	run(other, e.fetch, "rm", e.url(1))
	run(other, e.fetch, "add", e.url(3))
	run(other, e.share, "sync", "--allow", "127.0.0.0/8")
	run(dir, e.fetch, "add", e.url(4))
}

// timeless returns the part of a file that does not depend on time and place, or false if there
// is none.
func timeless(name, data string) (string, bool) {
	rel := strings.TrimPrefix(name, "etc/share/")
	if rel == "target" || rel == "published" || strings.HasPrefix(rel, "replica") ||
		strings.HasPrefix(rel, "read/") {
		return "", false // paths, inodes, times and their order
	}
	if strings.HasSuffix(rel, ".opml") || strings.HasSuffix(rel, ".rss") {
		return "", false // see items
	}
	return data, true
}

// element is an element of XML.
type element struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Text    string     `xml:",chardata"`
	Kids    []element  `xml:",any"`
}

func (n *element) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

// items adds the contents of a machine's documents, without times. An edit that a later sync
// records has a later time, and may be at another place, or in the other document of states.
func items(all map[string]string, dir, name string) {
	for _, doc := range []string{"subscriptions.opml", "state-all.rss", "state.rss"} {
		data, err := os.ReadFile(filepath.Join(dir, doc))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		must.Do(err)
		var root element
		must.Do(xml.Unmarshal(data, &root))
		root.items(all, name+"/", "")
	}
}

// items adds the items of an element and of the elements in it.
func (n *element) items(all map[string]string, prefix, parent string) {
	for i := range n.Kids {
		k := &n.Kids[i]
		if k.XMLName.Local != "item" && k.XMLName.Local != "outline" {
			k.items(all, prefix, parent)
			continue
		}
		id, says := parent, ""
		for _, s := range k.Kids {
			switch {
			case s.XMLName.Local == "sync":
				id = s.attr("id")
				says += fmt.Sprintf(" version %s deleted %q conflict %q", s.attr("version"), s.attr("deleted"),
					s.attr("conflict"))
				for _, h := range s.Kids {
					says += " " + h.XMLName.Local + " by " + h.attr("by")
					for _, u := range h.Kids {
						says += " " + u.XMLName.Local + " by " + u.attr("by")
					}
				}
			case s.XMLName.Local != "outline":
				says += fmt.Sprintf(" %s=%q", s.XMLName.Local, s.Text)
			}
		}
		for _, a := range k.Attrs {
			says += fmt.Sprintf(" %s=%q", a.Name.Local, a.Value)
		}
		all[prefix+id] = "in " + parent + says
		k.items(all, prefix, id)
	}
}

// documents adds the items of all machines.
func documents(all map[string]string, dir string) {
	places := must.Get(filepath.Glob(filepath.Join(dir, meeting, "*")))
	for _, place := range places {
		items(all, place, "items of "+filepath.Base(place))
	}
}

// whole checks that the documents of all machines are complete.
func (t *trial) whole(ctx context.Context, dir string) (err error) {
	defer must.Catch(&err)
	if !t.s.shares {
		return nil
	}
	all := must.Get(filepath.Glob(filepath.Join(dir, meeting, "*/*")))
	all = slices.DeleteFunc(all, func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), ".") // not complete yet
	})
	return t.e.run(ctx, dir, "", append([]string{t.e.share, "check", "--strict"}, all...)...)
}
