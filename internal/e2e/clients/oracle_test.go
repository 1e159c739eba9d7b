package clients

import (
	"cmp"
	"crypto/sha1"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// oracle answers from a lektor-dir by lektor-dir(5) alone: by directories, names and files.
type oracle struct {
	t   testing.TB
	dir string
	all bool // clients see all folders of a feed
}

// item is an entry that a viewer shows.
type item struct {
	feed, path      string // hash; where the entry is
	unique, flags   string
	seconds, micros int64
	identity        string
	title           string
	read            bool
}

func (i item) starred() bool { return strings.Contains(i.flags, "F") }

// feed is one that is subscribed to, or that has entries.
type feed struct {
	hash, id, name, link, url string
	folders                   []string
}

func (o oracle) names(dir string) []string {
	found, err := os.ReadDir(filepath.Join(o.dir, dir))
	if err != nil && !os.IsNotExist(err) {
		o.t.Fatal(err)
	}
	var names []string
	for _, e := range found {
		if !strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(e.Name(), ";") {
			names = append(names, e.Name())
		}
	}
	return names
}

// text returns a file without the newline at its end, "" if there is none.
func (o oracle) text(path ...string) string {
	b, err := os.ReadFile(filepath.Join(append([]string{o.dir}, path...)...))
	if err != nil && !os.IsNotExist(err) {
		o.t.Fatal(err)
	}
	return strings.TrimSuffix(string(b), "\n")
}

func (o oracle) feeds() []feed {
	var all []feed
	shown := o.items()
	for _, hash := range o.names("src") {
		f := feed{hash: hash, id: o.text("src", hash, "id"), name: o.text("src", hash, "name"), link: o.text("src", hash, "etc/link"), url: o.text("src", hash, "etc/fetch/url")}
		f.name = cmp.Or(o.text("src", hash, "etc/view/alias"), f.name)
		f.folders = o.folders(hash)
		// A feed that is not subscribed to belongs to the user or another fetcher, if it has entries.
		if f.url == "" && !slices.ContainsFunc(shown, func(i item) bool { return i.feed == hash }) {
			continue
		}
		if f.id != "" && fmt.Sprintf("%x", sha1.Sum([]byte(f.id))) == hash {
			all = append(all, f)
		}
	}
	return all
}

// feed returns the one that has a name.
func (o oracle) feed(name string) feed {
	o.t.Helper()
	for _, f := range o.feeds() {
		if f.name == name {
			return f
		}
	}
	o.t.Fatalf("no feed %q", name)
	return feed{}
}

var ours = regexp.MustCompile(`^(\d+)\.M(\d+)P\d+Q\d+I([0-9a-f]{16})\.`)

// items returns all entries that are shown, the newest delivery first.
func (o oracle) items() []item {
	versions := map[string]item{} // the newest of each entry
	for _, place := range []string{"new", "cur"} {
		for _, hash := range o.names(place) {
			if o.left(hash) {
				continue
			}
			for _, name := range o.names(filepath.Join(place, hash)) {
				i := o.item(place, hash, name)
				key := hash + " " + cmp.Or(i.identity, i.unique)
				if old, ok := versions[key]; !ok || byDelivery(old, i) < 0 {
					versions[key] = i
				}
			}
		}
	}
	var all []item
	for _, i := range versions {
		if !strings.Contains(i.flags, "T") && !o.withdrawn(i) {
			all = append(all, i)
		}
	}
	slices.SortFunc(all, func(a, b item) int { return byDelivery(b, a) })
	return all
}

func byDelivery(a, b item) int {
	return cmp.Or(cmp.Compare(a.seconds, b.seconds), cmp.Compare(a.micros, b.micros))
}

func (o oracle) item(place, hash, name string) item {
	i := item{feed: hash, path: filepath.Join(o.dir, place, hash, name)}
	marked := false
	i.unique, i.flags, marked = strings.Cut(name, ";2,")
	i.unique, _, _ = strings.Cut(i.unique, ";")
	i.read = place == "cur" && (!marked || strings.Contains(i.flags, "S"))
	var err error
	if m := ours.FindStringSubmatch(i.unique); m != nil {
		i.seconds, err = strconv.ParseInt(m[1], 10, 64)
		i.micros, _ = strconv.ParseInt(m[2], 10, 64)
		i.identity = m[3]
	} else {
		seconds, _, _ := strings.Cut(i.unique, ".")
		i.seconds, err = strconv.ParseInt(seconds, 10, 64)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	key := o.dir + " " + hash + " " + i.unique
	title, ok := known.Load(key)
	if !ok {
		title = o.text(place, hash, name, "title")
		known.Store(key, title)
	}
	i.title, _ = title.(string)
	return i
}

// known are the titles of entries, which do not change, by lektor-dir, feed and unique name.
var known sync.Map

// left reports whether the subscription of a feed was ended. Its entries stay, and clients do not see them.
func (o oracle) left(hash string) bool {
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(o.dir, "src", hash, name))
		return err == nil
	}
	return there("etc/view/left") && !there("etc/fetch/url")
}

// withdrawn reports whether a complete feed lacks the entry.
func (o oracle) withdrawn(i item) bool {
	b, err := os.ReadFile(filepath.Join(o.dir, "src", i.feed, "etc/history/complete"))
	return err == nil && i.identity != "" && !slices.Contains(strings.Split(string(b), "\n"), i.identity)
}

// folders returns the folders of a feed, by its hash.
func (o oracle) folders(hash string) []string {
	list := o.text("src", hash, "etc/categories")
	if list == "" {
		return nil
	}
	return strings.Split(list, "\n")
}

// shown returns the folders of a feed that clients see.
func (o oracle) shown(hash string) []string {
	list := o.folders(hash)
	if !o.all {
		list = list[:min(len(list), 1)]
	}
	return list
}

const state = "user/-/state/com.google/"

// in reports whether an entry is in a stream: "feed/HASH", a state or a label.
func (o oracle) in(i item, stream string) bool {
	if hash, ok := strings.CutPrefix(stream, "feed/"); ok {
		return i.feed == hash
	}
	if label, ok := strings.CutPrefix(stream, "user/-/label/"); ok {
		flag, is := strings.CutPrefix(label, "flag-")
		return is && strings.Contains(i.flags, flag) || slices.Contains(o.shown(i.feed), label)
	}
	switch strings.TrimPrefix(stream, state) {
	case "reading-list":
		return true
	case "read":
		return i.read
	case "starred":
		return i.starred()
	case "kept-unread", "unread":
		return !i.read
	}
	return false
}

// stream returns the entries of a stream, without those of other streams.
func (o oracle) stream(stream string, without ...string) []item {
	return slices.DeleteFunc(o.items(), func(i item) bool {
		return !o.in(i, stream) || slices.ContainsFunc(without, func(x string) bool { return o.in(i, x) })
	})
}

// finder returns a function that returns the entry with an id, as the lektor-dir is now. An id
// is 4 × the microseconds since 1970 + 2 bits of the identity.
func (o oracle) finder() func(id string) (item, bool) {
	all := map[int64][]item{}
	for _, i := range o.items() {
		all[i.seconds] = append(all[i.seconds], i)
	}
	return func(id string) (item, bool) {
		o.t.Helper()
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil || len(id) != 16 || n <= 0 {
			o.t.Errorf("%q is no id of 16 digits", id)
			return item{}, false
		}
		for _, i := range all[n/4_000_000] {
			if i.identity == "" || i.micros == n/4%1_000_000 {
				return i, true
			}
		}
		return item{}, false
	}
}

// titles are what test failures show of entries.
func titles(items []item) []string {
	var all []string
	for _, i := range items {
		all = append(all, i.title)
	}
	return all
}

// snapshot returns all that a client may change or must not: each entry's place and flags,
// with the digest of its files, and the files of feeds.
func (o oracle) snapshot() map[string]string {
	all := map[string]string{}
	entries, err := testdir.Entries(o.dir)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, e := range entries {
		all[e.Feed+" "+e.Unique] += e.Place + " " + e.Flags + " " + digest(e.Files)
	}
	files, err := testdir.Files(filepath.Join(o.dir, "src"))
	if err != nil {
		o.t.Fatal(err)
	}
	for name, text := range files {
		all["src/"+name] = text
	}
	return all
}

func digest(files map[string]string) string {
	h := sha1.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%q=%q\n", name, files[name])
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:8]
}

// changes lists what differs between two snapshots, a line each.
func changes(before, after map[string]string) []string {
	var all []string
	for key, was := range before {
		if is, ok := after[key]; !ok {
			all = append(all, "gone: "+key)
		} else if is != was {
			all = append(all, fmt.Sprintf("%s: %q, was %q", key, is, was))
		}
	}
	for key, is := range after {
		if _, ok := before[key]; !ok {
			all = append(all, fmt.Sprintf("more: %s %q", key, is))
		}
	}
	slices.Sort(all)
	return all
}
