package feeddir

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// NotSubscribedError is the error for a feed that is there and not subscribed
// to.
type NotSubscribedError struct{ Name string }

func (e *NotSubscribedError) Error() string { return "not subscribed to " + e.Name }

// SeveralError is the error for a name that several feeds have.
type SeveralError struct {
	Name   string
	Hashes []string
}

func (e *SeveralError) Error() string {
	return fmt.Sprintf("%d feeds are called %s: %s", len(e.Hashes), e.Name, strings.Join(e.Hashes, " "))
}

// GuessError is the error for a name that no feed has, with feeds that may be meant: those
// that have the name as a part of their own, or of their URL.
type GuessError struct {
	Err    error
	Likely []string // title and URL, for people
}

func (e *GuessError) Error() string { return e.Err.Error() }
func (e *GuessError) Unwrap() error { return e.Err }

// maxGuesses is how many feeds a [GuessError] names.
const maxGuesses = 4

// Finder finds feeds by what users call them. What it has to read of all feeds
// for that it reads once, so it is for the length of a command. It is not safe
// for concurrent use.
type Finder struct {
	Dir *lektordir.Dir
	// All is for commands on feeds that are not subscribed to, too.
	All bool

	urls  map[string]string
	names map[string][]string // folded alias or name -> hashes
}

// Find gives the hash of the subscription that the user names, see [Finder].
func Find(d *lektordir.Dir, name string) (string, error) { return (&Finder{Dir: d}).Find(name) }

// Find gives the hash of the feed that the user names: by its alias, as
// [lektordir.Dir.FindFeed] does, by the URL it is fetched from now, or by the
// name it gives itself. An alias or a name counts only when one feed has it. The
// error is a [*lektordir.NotFoundError], a [*NotSubscribedError] or a
// [*SeveralError].
func (f *Finder) Find(name string) (string, error) {
	hash, err := f.Dir.FindFeed(name)
	exact := hash == name || hash == lektordir.FeedHash(name) || hash == lektordir.FeedHash(lektordir.NormalizeID(name))
	if err == nil && (exact || strings.ContainsRune(name, '/')) && f.counts(hash) {
		return hash, nil
	}
	aliases, names := f.called(name)
	if len(aliases) == 1 {
		return aliases[0], nil
	}
	switch ours := f.counted(hash, err); {
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

// counted returns the feeds that [lektordir.Dir.FindFeed] found and that are looked for: of
// several with the same beginning, one may be.
func (f *Finder) counted(hash string, err error) []string {
	var found []string
	if none, ok := errors.AsType[*lektordir.NotFoundError](err); ok {
		found = slices.Clone(none.Matches)
	} else if err == nil {
		found = []string{hash}
	}
	return slices.DeleteFunc(found, func(h string) bool { return !f.counts(h) })
}

// unknown is the error for a name that no feed has that is looked for. err is the reason.
func (f *Finder) unknown(name string, err error) error {
	if len(f.names[aliasFile+"\n"+fold(name)])+len(f.names["name\n"+fold(name)]) > 0 {
		return &NotSubscribedError{Name: name}
	}
	if none, ok := errors.AsType[*lektordir.NotFoundError](err); ok && len(none.Matches) == 0 {
		if likely := f.likely(name); len(likely) > 0 {
			return &GuessError{Err: err, Likely: likely}
		}
	}
	return err
}

// likely returns feeds that have a name as a part of their own, or of their URL.
func (f *Finder) likely(name string) (list []string) {
	part := fold(name)
	if len(part) < 2 {
		return nil
	}
	hashes, _ := f.Dir.FeedHashes()
	for _, h := range hashes {
		feed, err := f.Dir.ReadFeed(h)
		if err != nil || !f.counts(h) {
			continue
		}
		url := fetch.Public(feed.ID)
		if !slices.ContainsFunc([]string{feed.Alias, feed.Name, url}, func(s string) bool { return strings.Contains(fold(s), part) }) {
			continue
		}
		if len(list) == maxGuesses {
			return append(list, "…")
		}
		list = append(list, fmt.Sprintf("%s (%s)", termsafe.Brief(feed.Title()), url))
	}
	return list
}

// byURL is [ByURL], and as what is printed has no passwords, without them. Where
// several feeds differ in nothing else, none of them is found so.
func (f *Finder) byURL() map[string]string {
	urls := ByURL(f.Dir)
	public := map[string]string{}
	add := func(url, hash string) {
		bare := lektordir.NormalizeID(fetch.Public(url))
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

// counts reports whether a feed is one that is looked for.
func (f *Finder) counts(hash string) bool { return f.All || Subscribed(f.Dir, hash) }

// called gives the feeds that the user calls so, and those that call themselves
// so.
func (f *Finder) called(name string) (aliases, names []string) {
	if f.names == nil {
		f.names = map[string][]string{}
		hashes, _ := f.Dir.FeedHashes()
		for _, h := range hashes {
			for _, file := range []string{aliasFile, "name"} {
				if v, _ := atomicfile.Line(filepath.Join(f.Dir.Join("src", h), file)); v != "" {
					key := file + "\n" + fold(v)
					f.names[key] = append(f.names[key], h)
				}
			}
		}
	}
	of := func(file string) []string {
		return slices.DeleteFunc(slices.Clone(f.names[file+"\n"+fold(name)]), func(h string) bool { return !f.counts(h) })
	}
	return of(aliasFile), of("name")
}

// fold makes names comparable as people compare them.
func fold(name string) string { return strings.ToLower(oneLine(name)) }

// ByURL gives the hashes of the subscriptions by the URLs they are fetched from
// now.
func ByURL(d *lektordir.Dir) map[string]string {
	hashes, _ := d.FeedHashes()
	byURL := make(map[string]string, len(hashes))
	for _, h := range hashes {
		if u, err := URL(d, h); err == nil && u != "" {
			byURL[lektordir.NormalizeID(u)] = h
		}
	}
	return byURL
}

// InCategory tells whether a category, a path of folders, is one of a feed's, or
// above one, in capitals or not. Every feed is in "".
func InCategory(categories []string, category string) bool {
	return category == "" || slices.ContainsFunc(categories, func(c string) bool {
		return strings.EqualFold(c, category) || len(c) > len(category) && c[len(category)] == '/' && strings.EqualFold(c[:len(category)], category)
	})
}
