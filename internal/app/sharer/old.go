package sharer

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/feedsync"
)

// Files of the previous version:
const (
	oldIndexFile = "index"
	oldLastFile  = "last"
)

// migrate reads the set and the baseline of the previous version, which kept the set as its
// documents, and the baseline in a file of its own.
func (p *replica) migrate(r *run) error {
	if _, err := atomicfile.Read(r.path(publishedFile), maxDocument); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // without this file, migrate cannot know whether there was a set
	}
	put := r.record("../" + publishedFile)
	for _, name := range documents {
		p.lost = p.lost || put.Get(name) != "" && !atomicfile.Exists(r.path(name))
	}
	subs, err := r.ownDocument(subsFile, feedsync.OPML)
	if err != nil {
		return err
	}
	p.set.subs.Append(subs.Items()...)
	p.set.subs.Arrange()
	if subs.Sharing != nil {
		p.set.until.subs = subs.Sharing.Until
	}
	for _, name := range []string{completeFile, partialFile} {
		doc, err := r.ownDocument(name, feedsync.RSS)
		if err != nil {
			return err
		}
		u := &p.set.until
		if doc.Sharing != nil {
			if name == partialFile && doc.Sharing.Until.Before(u.marks) {
				continue // the complete document is newer, and has all marks
			}
			if u.marks = doc.Sharing.Until; name == completeFile {
				u.complete = u.marks
			}
		}
		for _, it := range doc.Items() {
			p.set.put(it)
			p.set.mark(it.ID).newer = name == partialFile
		}
	}
	clear(p.set.touched) // marks that were published already are not changes
	return p.migrateBaseline(r)
}

// ownDocument reads a document of the set. A missing one is empty.
func (r *run) ownDocument(name string, kind feedsync.Kind) (*feedsync.Document, error) {
	data, err := atomicfile.Read(r.path(name), maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return feedsync.New(kind, "", "", ""), nil
	}
	if err != nil {
		return nil, err
	}
	doc, err := parse(data, kind, nil)
	if err != nil {
		return nil, cmdline.Hint(fmt.Errorf("%s: %w", r.path(name), err), "it was edited or damaged; remove it, and the next sync restores it from the other machines")
	}
	return doc, nil
}

// migrateBaseline reads the old baseline, etc/share/last.
func (p *replica) migrateBaseline(r *run) error {
	path := r.path(oldLastFile)
	data, err := atomicfile.Read(path, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		p.set.made = p.set.lastEdit(r.me)
		return nil
	}
	if err != nil {
		return err
	}
	for n, text := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		word, rest, _ := strings.Cut(text, " ")
		ok := n > 0
		switch {
		case n == 0:
			ok = text == "lektor-share 1"
		case word == "made":
			p.set.made = parseDate(rest)
		case word == "feed" || word == "subscribed" || word == "alias" || word == "in":
			ok = p.base.take(word, []byte(rest))
		default:
			ok = p.base.take("entry", []byte(text)) // this version had no keyword before entries
		}
		if !ok {
			return fmt.Errorf("%s: invalid line %q; if you remove the file, all differences between this machine and the set count as edits", path, text)
		}
	}
	p.base.of = ""
	return nil
}
