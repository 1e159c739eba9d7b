package fetcher

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/opml"
	"github.com/lektordir/lektor/lektordir"
)

// Imported tells what became of a list.
type Imported struct {
	Added   []*feeddir.Subscription
	Already int
	// Refused are feeds that are not http or https: a list made by others
	// must not name local files, let alone commands.
	Refused []string
}

// Import subscribes to the feeds of a list. Folders become categories, and feeds
// that are subscribed to already get those they lack. What cannot be
// subscribed to is in the joined error, and the others are subscribed to.
func Import(w *lektordir.Writer, d *lektordir.Dir, doc *opml.Document, dryRun bool) (Imported, error) {
	var out Imported
	var bad error
	byURL := feeddir.ByURL(d)
	seen := map[string]bool{}
	for _, f := range doc.Feeds() {
		id := feeddir.FeedURL(f.URL)
		if !fetch.IsHTTP(id) {
			out.Refused = append(out.Refused, f.URL)
			continue
		}
		hash := lektordir.FeedHash(id)
		if !feeddir.Subscribed(d, hash) {
			hash = cmp.Or(byURL[id], hash)
		}
		if seen[hash] {
			continue
		}
		seen[hash] = true
		if feeddir.Subscribed(d, hash) {
			out.Already++
			if !dryRun {
				bad = errors.Join(bad, addCategories(d, hash, f.Categories))
			}
			continue
		}
		s := &feeddir.Subscription{ID: id, Hash: hash, Name: f.Title, Link: f.HTMLURL, About: f.Description, Categories: f.Categories}
		if !dryRun {
			added, err := feeddir.Add(w, d, s, feeddir.Options{Unsynced: true})
			if err != nil {
				bad = errors.Join(bad, err)
				continue
			}
			if !added {
				out.Already++
				continue
			}
		}
		out.Added = append(out.Added, s)
	}
	if dryRun {
		return out, bad
	}
	bad = errors.Join(bad, feeddir.Finish(w, d, out.Added))
	out.Added = slices.DeleteFunc(out.Added, func(s *feeddir.Subscription) bool { return !feeddir.Subscribed(d, s.Hash) })
	all := doc
	old, err := template(d)
	if unread := (*fs.PathError)(nil); errors.As(err, &unread) {
		return out, errors.Join(bad, err) // written over, it would be lost
	}
	if err == nil && old != nil {
		old.Merge(doc)
		all = old
	}
	path := feeddir.ListFile(d)
	data := all.Bytes()
	if _, err := opml.Parse(data); err != nil {
		// Written, it could not be read, and the next list would replace it.
		return out, errors.Join(bad, fmt.Errorf("%s stays as it was, and export will not give back all of this list: with it, %w", path, err))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return out, errors.Join(bad, err)
	}
	return out, errors.Join(bad, atomicfile.Write(path, data))
}

func addCategories(d *lektordir.Dir, hash string, categories []string) error {
	have := feeddir.Categories(d, hash)
	all := slices.Clone(have)
	for _, c := range categories {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	if len(all) == len(have) {
		return nil
	}
	return feeddir.SetCategories(d, hash, all, atomicfile.WriteUnsynced)
}

// template reads the lists imported before; nil when there is none.
func template(d *lektordir.Dir) (*opml.Document, error) {
	data, err := atomicfile.Read(feeddir.ListFile(d), opml.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return opml.Parse(data)
}

// Export makes a list of all subscriptions.
func Export(d *lektordir.Dir) (*opml.Document, error) {
	subs, bad := feeddir.List(d)
	doc, err := template(d)
	if err != nil {
		bad = errors.Join(bad, err)
	}
	if doc == nil {
		doc = opml.New("Subscriptions")
	}
	feeds := make([]opml.Feed, 0, len(subs))
	for _, s := range subs {
		f := opml.Feed{URL: s.URL, ID: s.ID, Title: s.Alias, Name: s.Name, HTMLURL: s.Link, Description: s.About, Categories: s.Categories}
		if local := strings.ToLower(s.URL); strings.HasPrefix(local, "exec:") || strings.HasPrefix(local, "file:") {
			// Of use on this machine only, and perhaps nobody's business.
			continue
		}
		feeds = append(feeds, f)
	}
	return doc.Update(feeds, feeddir.FeedURL), bad
}
