package index_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// copyOf is an entry of the test, as its directory says.
type copyOf struct {
	place, feed, name string
	seconds, identity int
	page              int // which page the link names
	replaces          bool
}

func (c copyOf) path() string { return c.place + "/" + c.feed + "/" + c.name }

// repeated returns the paths of the entries that lektor-query(7) calls repeats, from their names and links alone.
// An entry is not listed if a newer version of it is there.
func repeated(all []copyOf) (paths []string) {
	listed := slices.DeleteFunc(slices.Clone(all), func(c copyOf) bool {
		return slices.ContainsFunc(all, func(o copyOf) bool {
			return o.feed == c.feed && o.identity == c.identity && o.seconds > c.seconds
		})
	})
	for _, c := range listed {
		if c.replaces || c.page < 0 {
			continue
		}
		for _, o := range listed {
			if o.feed != c.feed && o.page == c.page &&
				(o.replaces || o.seconds < c.seconds || o.seconds == c.seconds && o.feed < c.feed) {
				paths = append(paths, c.path())
				break
			}
		}
	}
	slices.Sort(paths)
	return paths
}

// TestRepeats: the index and the directory find the repeats that a plain search finds, while entries come, are
// marked, replaced and removed, and most answers are the index's.
func TestRepeats(t *testing.T) {
	for seed := range uint64(6) {
		w, random := newWorld(t), rand.New(rand.NewPCG(seed, 1))
		indexed := 0
		w.indexed = &indexed
		var all []copyOf
		deliver := func() {
			id := []string{"http://a.example/", "http://b.example/", "http://c.example/"}[random.IntN(3)]
			c := copyOf{place: "new", feed: testdir.Hash(id), seconds: 1700000000 + random.IntN(40), identity: 1 + random.IntN(60), page: random.IntN(8) - 1, replaces: random.IntN(9) == 0}
			c.name = testdir.Unique(int64(c.seconds), c.identity)
			if slices.ContainsFunc(all, func(o copyOf) bool { return o.feed == c.feed && o.identity == c.identity && o.seconds == c.seconds }) {
				return
			}
			page := strconv.Itoa(c.page)
			link := []string{"http://x.example/" + page, "https://WWW.x.example:443/" + page + "/?utm_source=rss&UTM_medium=feed"}[random.IntN(2)]
			files := []string{"+link=" + link}
			switch {
			case c.page < 0:
				files = []string{"id=urn:x:" + c.name} // it has no page
			case random.IntN(3) == 0:
				files = []string{"id=" + link}
			}
			if c.replaces {
				files = append(files, "+replaces=1600000000.x.host")
			}
			if _, err := w.dir.Entry(id, c.place, c.name, files...); err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		for _, id := range []string{"http://a.example/", "http://b.example/", "http://c.example/"} {
			if _, err := w.dir.Feed(id, id); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			deliver()
		}
		w.build()
		for step := range 25 {
			switch i := random.IntN(len(all)); random.IntN(4) {
			case 0, 1:
				deliver()
			case 2: // it is read, or read and trashed
				if c := all[i]; c.place == "new" {
					all[i].place, all[i].name = "cur", c.name+[]string{";2,S", ";2,ST"}[random.IntN(2)]
					if err := os.MkdirAll(filepath.Join(w.dir.Path, "cur", c.feed), 0o777); err != nil {
						t.Fatal(err)
					}
					if err := os.Rename(filepath.Join(w.dir.Path, c.path()), filepath.Join(w.dir.Path, all[i].path())); err != nil {
						t.Fatal(err)
					}
				}
			case 3:
				if err := os.RemoveAll(filepath.Join(w.dir.Path, all[i].path())); err != nil {
					t.Fatal(err)
				}
				all = slices.Delete(all, i, i+1)
			}
			var got []string
			for _, line := range w.same("is:repeat", entrystore.Selection{All: true, Hidden: true}) {
				path, _, _ := strings.Cut(line, " ")
				got = append(got, path)
			}
			slices.Sort(got)
			if want := repeated(all); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: %s\nnot\n%s\n%s", seed, step, strings.Join(got, "\n"), strings.Join(want, "\n"), fmt.Sprint(all))
			}
			for _, words := range []string{"not:is:repeat", "is:repeat is:unread", "entry not:is:repeat or is:trashed", "is:repeat or feed:a.example"} {
				w.same(words, entrystore.Selection{Newest: random.IntN(5)})
			}
		}
		w.whole()
		if indexed < 25*5 {
			t.Errorf("seed %d: only %d answers were the index's", seed, indexed)
		}

	}
}
