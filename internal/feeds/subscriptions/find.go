package subscriptions

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// NotSubscribedError reports a feed that exists but is not subscribed to.
type NotSubscribedError struct {
	Name    string
	Setting string // the setting that only subscriptions have, or ""
}

func (e *NotSubscribedError) Error() string {
	if e.Setting != "" {
		return fmt.Sprintf("%s is only for feeds that lektor-fetch fetches, and it does not fetch %s", e.Setting,
			e.Name)
	}
	return "not subscribed to " + e.Name
}

// SeveralError reports a name that several feeds have.
type SeveralError struct {
	Name   string
	Hashes []string
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%d feeds are called %s: %s", len(e.Hashes), e.Name, strings.Join(e.Hashes, " "))
}

// GuessError reports a name that no feed has. It lists feeds whose name or URL contains it.
type GuessError struct {
	Err    error
	Likely []string // title and URL, for the user
}

func (e *GuessError) Error() string { return e.Err.Error() }
func (e *GuessError) Unwrap() error { return e.Err }

// maxGuesses is the maximum number of feeds in a [GuessError].
const maxGuesses = 4

// Finder finds feeds by names that users type. It caches the names and URLs of all feeds, so use it for
// one command only. It is not safe for concurrent use.
type Finder struct {
	Dir *lektordir.Dir
	// All also finds feeds that are not subscribed to.
	All bool

	urls  map[string]string
	names map[string][]string // folded alias or name -> hashes
}

// FindAny returns the hash of a feed by its name, see [Finder.Find]. A name that several feeds have is that
// of the subscription among them.
func FindAny(d *lektordir.Dir, name string) (string, error) {
	f := &Finder{Dir: d}
	hash, err := f.Find(name)
	if err != nil && !errors.As(err, new(*SeveralError)) {
		f.All = true
		return f.Find(name)
	}
	return hash, err
}

// Find returns the hash of the feed with a name: its alias, any name that [lektordir.Dir.FindFeed]
// accepts, its present URL, or its own title. An alias or title must be unique. The error may be a
// [*lektordir.NotFoundError], a [*NotSubscribedError], a [*SeveralError] or a [*GuessError].
func (f *Finder) Find(name string) (string, error) {
	hash, err := f.Dir.FindFeed(name)
	exact := hash == name || hash == lektordir.FeedHash(name) || hash == lektordir.FeedHash(lektordir.NormalizeID(name))
	if err == nil && (exact || strings.ContainsRune(name, '/')) && f.includes(hash) {
		return hash, nil
	}
	aliases, names := f.byName(name)
	if len(aliases) == 1 {
		return aliases[0], nil
	}
	switch ours := f.included(hash, err); {
	case len(ours) == 1:
		return ours[0], nil
	case err == nil:
		err = &NotSubscribedError{Name: name}
	}
	if strings.Contains(name, ":") {
		if f.urls == nil {
			f.urls = f.byURL()
		}
		if hash := f.urls[lektordir.NormalizeID(name)]; hash != "" {
			return hash, nil
		}
	}
	if len(aliases) == 0 {
		aliases = names
	}
	switch len(aliases) {
	case 0:
		return "", f.unknown(name, err)
	case 1:
		return aliases[0], nil
	}
	return "", &SeveralError{Name: name, Hashes: aliases}
}

// included returns those of the feeds that [lektordir.Dir.FindFeed] found that f includes. If the
// name matches several, only one of them may be subscribed to.
func (f *Finder) included(hash string, err error) []string {
	var found []string
	if none, ok := errors.AsType[*lektordir.NotFoundError](err); ok {
		found = slices.Clone(none.Matches)
	} else if err == nil {
		found = []string{hash}
	}
	return slices.DeleteFunc(found, func(h string) bool { return !f.includes(h) })
}

// unknown returns the error for a name that no included feed has. err is the error of FindFeed.
func (f *Finder) unknown(name string, err error) error {
	if len(f.names[feedfiles.PathAlias+"\n"+fold(name)])+len(f.names["name\n"+fold(name)]) > 0 {
		return &NotSubscribedError{Name: name}
	}
	if none, ok := errors.AsType[*lektordir.NotFoundError](err); ok && len(none.Matches) == 0 {
		if likely := f.likely(name); len(likely) > 0 {
			return &GuessError{Err: err, Likely: likely}
		}
	}
	return err
}

// likely returns the feeds whose name or URL contains name.
func (f *Finder) likely(name string) (list []string) {
	part := fold(name)
	if len(part) < 2 {
		return nil
	}
	hashes, _ := f.Dir.FeedHashes()
	for _, h := range hashes {
		feed, err := f.Dir.ReadFeed(h)
		if err != nil || !f.includes(h) {
			continue
		}
		url := feedurl.Public(feed.ID)
		if !slices.ContainsFunc([]string{feed.Alias, feed.Name, url},
			func(s string) bool { return strings.Contains(fold(s), part) }) {
			continue
		}
		if len(list) == maxGuesses {
			return append(list, "…")
		}
		list = append(list, fmt.Sprintf("%s (%s)", termsafe.Brief(feed.Title()), url))
	}
	return list
}

// byURL is like [ByURL], but also has the URLs without passwords, as they are printed. If the URLs of
// several feeds differ only in the password, such a URL matches none of them.
func (f *Finder) byURL() map[string]string {
	urls := ByURL(f.Dir)
	public := map[string]string{}
	add := func(url, hash string) {
		bare := lektordir.NormalizeID(feedurl.Public(url))
		if have, ok := public[bare]; bare != url && ok && have != hash {
			public[bare] = ""
		} else if bare != url {
			public[bare] = hash
		}
	}
	for url, hash := range urls {
		add(url, hash)
		if id, _ := atomicfile.Line(f.Dir.Join("src", hash, "id")); id != "" {
			add(id, hash)
		}
	}
	for url, hash := range public {
		if _, ok := urls[url]; !ok {
			urls[url] = hash
		}
	}
	return urls
}

// includes reports whether f includes a feed.
func (f *Finder) includes(hash string) bool { return f.All || feedfiles.Subscribed(f.Dir, hash) }

// byName returns the feeds whose alias is name, and those whose own title is name.
func (f *Finder) byName(name string) (aliases, names []string) {
	if f.names == nil {
		f.names = map[string][]string{}
		hashes, _ := f.Dir.FeedHashes()
		for _, h := range hashes {
			for _, file := range []string{feedfiles.PathAlias, "name"} {
				if v, _ := atomicfile.Line(filepath.Join(f.Dir.Join("src", h), file)); v != "" {
					key := file + "\n" + fold(v)
					f.names[key] = append(f.names[key], h)
				}
			}
		}
	}
	of := func(file string) []string {
		return slices.DeleteFunc(slices.Clone(f.names[file+"\n"+fold(name)]),
			func(h string) bool { return !f.includes(h) })
	}
	return of(feedfiles.PathAlias), of("name")
}

// fold returns a name for comparison, without case.
func fold(name string) string { return strings.ToLower(feedfiles.OneLine(name)) }

// ByURL returns the hashes of the subscriptions by their present URLs.
func ByURL(d *lektordir.Dir) map[string]string {
	hashes, _ := d.FeedHashes()
	byURL := make(map[string]string, len(hashes))
	for _, h := range hashes {
		if u, err := feedfiles.URL(d, h); err == nil && u != "" {
			byURL[lektordir.NormalizeID(u)] = h
		}
	}
	return byURL
}
