package lektordir

import (
	"cmp"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/textfile"
)

// Feed holds the values in src/$feed (specification, "Feeds"). ID and Name are
// obligatory; the others are empty if the file is missing. Description
// and Copyright may have several lines.
type Feed struct {
	Hash string // name of the directory; FeedHash(ID) unless the lektor-dir is damaged

	ID          string
	Name        string
	Description string
	Language    string
	Image       string
	Copyright   string
	Author      string

	Link      string // extra etc/link: the page the feed belongs to
	Generator string // extra etc/generator: the program that made the feed
	Alias     string // extra etc/view/alias: the user's own name for it
}

// Title returns the name for display: the user's alias, else the name, else the id.
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

// Files yields the names and the texts of the files that delivery writes for a feed.
func (f *Feed) Files() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, fd := range f.fields() {
			if !yield(fd.name, *fd.value) {
				return
			}
		}
	}
}

// field is a file and the value it holds.
type field struct {
	name       string
	value      *string
	obligatory bool
}

// ReadFeed reads src/$hash. If id or name is missing, [errors.As] finds a
// [*MalformedError], and the feed has the values that could be read. If there is no
// such feed, the error is fs.ErrNotExist.
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
			*fd.value = textfile.Line(data)
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
	return f, bad
}

// aliasFile is the file in src/$feed with the user's own name for the feed.
const aliasFile = "/etc/view/alias"

// Feeds reads all feeds, sorted by hash. Directories without an id or a name
// are left out, and are in the joined error: [errors.As] finds a [*MalformedError].
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

// FeedHashes lists the directories of src/, sorted, without looking into them.
func (d *Dir) FeedHashes() ([]string, error) { return d.fs.Feeds("src") }

// knownFeed is a feed and when it was read.
type knownFeed struct {
	feed *Feed
	read time.Time
}

// feedAge is how long FeedOf caches a feed.
const feedAge = time.Second

// FeedOf returns the feed of an entry: src/$feed, or if that is missing or
// malformed, the entry's own feed directory or link. It never fails: unknown values stay
// empty. It reads a feed at most once a second.
func (d *Dir) FeedOf(r Ref) *Feed {
	if !entryname.IsFeed(r.Feed) {
		return &Feed{Hash: r.Feed}
	}
	now := d.fs.Now()
	if known, ok := d.feeds.Load(r.Feed); ok {
		k := known.(knownFeed)
		if age := now.Sub(k.read); age >= 0 && age < feedAge {
			return k.feed
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
	d.feeds.Store(r.Feed, knownFeed{f, now})
	return f
}

// FindFeed returns the hash of the feed that the user names: by its id or URL, its hash,
// a beginning of the hash that no other feed has, or the path of src/$hash. The
// error is a [*NotFoundError] if no feed matches.
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
		// A path names its feed in full. A URL that looks like one is none.
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
