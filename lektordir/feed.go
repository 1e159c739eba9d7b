package lektordir

import (
	"cmp"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// Feed holds the values in src/$feed; see lektor-dir(5). ID and Name are obligatory; other values
// are empty if the file is missing. Description and Copyright may have several lines.
type Feed struct {
	Hash string // name of the directory: FeedHash(ID), unless the lektor-dir is damaged

	ID          string
	Name        string
	Description string
	Language    string
	Image       string
	Copyright   string
	Author      string

	Link      string // URL of the page that the feed belongs to, in etc/link
	Generator string // the program that made the feed, in etc/generator
	Alias     string // the user's own name for the feed, in etc/view/alias

	Elements Elements // what only podcasts have, in etc/elements
}

// Title returns the name to display: the first of Alias, Name, ID and Hash that is not empty.
func (f *Feed) Title() string {
	return cmp.Or(strings.TrimSpace(f.Alias), strings.TrimSpace(f.Name), f.ID, f.Hash)
}

// fields lists the feed's files, obligatory ones first.
func (f *Feed) fields() []field {
	return []field{
		{"id", &f.ID, true}, {"name", &f.Name, true},
		{"description", &f.Description, false}, {"language", &f.Language, false},
		{"image", &f.Image, false}, {"copyright", &f.Copyright, false},
		{"author", &f.Author, false}, {"etc/link", &f.Link, false},
		{"etc/generator", &f.Generator, false},
	}
}

// Files yields the names, relative to src/$feed, and the texts of the files that delivery writes
// for a feed. A file whose text is empty is removed.
func (f *Feed) Files() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, fd := range f.fields() {
			if !yield(fd.name, *fd.value) {
				return
			}
		}
		lines := (&Entry{Elements: f.Elements}).formatExtras(FieldElements)
		yield(elementsFile, strings.TrimSuffix(string(lines), "\n"))
	}
}

// field is a file and the value it holds.
type field struct {
	name       string
	value      *string
	obligatory bool
}

// ReadFeed reads the feed in src/$hash. If the feed does not exist, errors.Is(err,
// fs.ErrNotExist) is true. If its id or name is missing, the error wraps a [*MalformedError],
// and the feed has the values that could be read.
func (d *Dir) ReadFeed(hash string) (*Feed, error) {
	return d.readFeed(hash, "src/"+hash)
}

// readFeed reads the feed at a path relative to the lektor-dir.
func (d *Dir) readFeed(hash, rel string) (*Feed, error) {
	f := &Feed{Hash: hash}
	base := d.Join(rel)
	var bad error
	for _, fd := range f.fields() {
		data, err := dirfs.ReadFile(base + "/" + fd.name)
		switch {
		case err == nil:
			if *fd.value = textfile.Line(data); fd.obligatory {
				*fd.value = strings.TrimSuffix(*fd.value, "\r") // an editor may have added it
			}
			if fd.value == &f.ID && f.ID == "" { // by a power cut
				bad = errors.Join(bad, &MalformedError{Path: rel, Reason: "its file id is empty"})
			}
		case !isNotExist(err):
			bad = errors.Join(bad, err)
		case fd.obligatory:
			if _, err := os.Stat(base); err != nil {
				return nil, err
			}
			bad = errors.Join(bad, &MalformedError{Path: rel, Reason: "it has no file " + fd.name})
		}
	}
	if data, err := dirfs.ReadFile(base + aliasFile); err == nil {
		f.Alias = textfile.Line(data)
	}
	if data, err := dirfs.ReadFile(base + "/" + elementsFile); err == nil {
		var e Entry
		e.parseExtras(data, FieldElements)
		f.Elements = e.Elements
	}
	return f, bad
}

// elementsFile is the file in src/$feed with the elements of the feed, as in extras.
const elementsFile = "etc/elements"

// aliasFile is the file in src/$feed with the user's own name for the feed.
const aliasFile = "/etc/view/alias"

// Feeds reads all feeds, sorted by hash. It skips those that cannot be read, or that have no id
// or name, and returns their errors, joined; see [Dir.ReadFeed].
func (d *Dir) Feeds() ([]*Feed, error) {
	names, err := d.fs.Feeds("src")
	if err != nil {
		return nil, err
	}
	var feeds []*Feed
	var bad []error
	for _, name := range names {
		f, err := d.ReadFeed(name)
		if err != nil {
			if !isNotExist(err) {
				bad = append(bad, err)
			}
			continue
		}
		feeds = append(feeds, f)
	}
	return feeds, errors.Join(bad...)
}

// FeedHashes lists the directories of src/, sorted. It does not read the feeds.
func (d *Dir) FeedHashes() ([]string, error) { return d.fs.Feeds("src") }

// cachedFeed is a feed and the time at which it was read.
type cachedFeed struct {
	feed *Feed
	read time.Time
}

// feedAge is the time for which FeedOf caches a feed.
const feedAge = time.Second

// FeedOf returns the feed of an entry: src/$feed, or the entry's own feed directory or link if
// src/$feed is missing or malformed. If neither can be read, unknown values are empty. FeedOf
// caches the feeds of src/ for one second.
func (d *Dir) FeedOf(r Ref) *Feed {
	if !entryname.IsFeed(r.Feed) {
		return &Feed{Hash: r.Feed}
	}
	now := d.fs.Now()
	if v, ok := d.feeds.Load(r.Feed); ok {
		cached := v.(cachedFeed)
		if age := now.Sub(cached.read); age >= 0 && age < feedAge {
			return cached.feed
		}
	}
	f, err := d.ReadFeed(r.Feed)
	if err != nil {
		if r.check() == nil {
			if own, ownErr := d.readFeed(r.Feed, r.Path()+"/feed"); ownErr == nil {
				return own
			}
		}
		if f == nil {
			return &Feed{Hash: r.Feed}
		}
		return f
	}
	d.feeds.Store(r.Feed, cachedFeed{f, now})
	return f
}

// FindFeed returns the hash of the feed that a user has named: by its id or URL, its hash, a
// unique beginning of its hash, or the path of src/$hash. It returns a [*NotFoundError] if no
// feed matches, or several.
func (d *Dir) FindFeed(name string) (string, error) {
	if name == "" {
		return "", noFeed(`""`)
	}
	for _, id := range []string{name, NormalizeID(name)} {
		hash := FeedHash(id)
		if _, err := os.Stat(d.Join("src", hash)); err == nil {
			return hash, nil
		}
	}
	prefix := strings.TrimRight(name, "/")
	if strings.ContainsRune(prefix, '/') {
		// A path must have the whole hash, and be in this lektor-dir, so no URL is taken for
		// one.
		src, base := filepath.Split(prefix)
		src = filepath.Clean(src)
		if filepath.Base(src) == "src" && d.holds(filepath.Dir(src), prefix) {
			if fi, err := os.Stat(d.Join("src", base)); err == nil && fi.IsDir() && !strings.HasPrefix(base, ".") {
				return base, nil
			}
		}
		return "", noFeed(name)
	}
	names, err := d.fs.Feeds("src")
	if err != nil {
		return "", err
	}
	var found []string
	for _, n := range names {
		if n == prefix {
			return n, nil
		}
		if strings.HasPrefix(n, strings.ToLower(prefix)) {
			found = append(found, n)
		}
	}
	if len(found) != 1 {
		return "", noFeed(name, found...)
	}
	return found[0], nil
}
