package e2e

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/lektordir"
)

const (
	gardenURL = "http://example.org/feed.xml"
	atomURL   = "http://example.net/atom"
)

// versionEntry is an entry in the lektor-dirs of older versions, with its place and flags.
type versionEntry struct {
	place, flags string
	entry        lektordir.Entry
}

func day(n int) time.Time { return time.Date(2026, 11, n, 10, 0, 0, 0, time.UTC) }

// versionEntries returns the entries of the documents from which the lektor-dirs were made.
func versionEntries() map[string]versionEntry {
	html := "text/html"
	return map[string]versionEntry{
		"urn:x:1": {"cur", "FS", lektordir.Entry{
			ID: "urn:x:1", Title: "Everything", Content: []byte("<p>Long text</p>"), Author: "Bob <bob@example.org>", PubDate: day(20), Type: html,
			Link: "http://example.org/1", Comments: "http://example.org/1/comments", Summary: `Short & plain, with a back\slash`, Categories: []string{"plants", "sea & sand"},
			Enclosures: []lektordir.Enclosure{{URL: "http://example.org/1.mp3", Type: "audio/mpeg", Length: 1234}, {URL: "http://example.org/1.ogg", Type: "audio/ogg", Length: -1}},
			Image:      "http://example.org/1.jpg", Contributors: []string{"Cid"}, Source: lektordir.Source{Title: "Other", URL: "http://other.example.org/feed"},
			Duration: 3723 * time.Second, Episode: 7, Season: 2,
		}},
		"urn:x:2": {"cur", "S", lektordir.Entry{ID: "urn:x:2", Title: "Undated", Content: []byte("Two"), Type: html, Link: "http://example.org/2", PubDateRaw: "soon"}},
		"http://example.org/3": {"new", "", lektordir.Entry{
			ID: "http://example.org/3", Content: []byte("<p>No title here</p>"), PubDate: day(19), Type: html,
		}},
		"urn:x:4": {"cur", "FSa", lektordir.Entry{
			ID: "urn:x:4", Title: "Four", Content: []byte("4"), PubDate: day(18), Type: html, Link: "http://example.org/4", Categories: []string{"plants"},
		}},
		"urn:x:5": {"cur", "T", lektordir.Entry{
			ID: "urn:x:5", Title: "Five", Content: []byte("5"), PubDate: day(17), Type: html, Link: "http://example.org/5",
			Enclosures: []lektordir.Enclosure{{URL: "http://example.org/5.mp3", Type: "audio/mpeg", Length: -1}},
		}},
		"urn:x:6": {"new", "", lektordir.Entry{
			ID: "urn:x:6", Title: "Six, revised", Content: []byte("6, revised"), PubDate: day(16), Type: html, Link: "http://example.org/6", Replaces: "of another version",
		}},
		"urn:y:1": {"new", "", lektordir.Entry{
			ID: "urn:y:1", Title: "An entry", Content: []byte("<b>long</b>"), Author: "Eva <eva@example.net>", PubDate: day(1), Updated: day(20), Type: html, Link: "http://example.net/1",
			Summary: "In short", Categories: []string{"sea"}, Enclosures: []lektordir.Enclosure{{URL: "http://example.net/1.pdf", Type: "application/pdf", Length: 99}},
			Contributors: []string{"Fay"}, Source: lektordir.Source{ID: "urn:feed:src", Title: "Source", Link: "http://src.example.net/", URL: "http://src.example.net/feed"},
		}},
		"urn:y:2": {"cur", "z", lektordir.Entry{
			ID: "urn:y:2", Title: "Text", Content: []byte("plain\ntext"), PubDate: day(19), Link: "http://example.net/2",
		}},
		"urn:hand:1": {"new", "", lektordir.Entry{
			ID: "urn:hand:1", Title: "By hand", Content: []byte("By hand\n"), Author: "Gus <gus@example.com>", PubDate: day(15), Link: "http://example.com/hand",
			Summary: "two lines and a tab", Categories: []string{"one two"}, Enclosures: []lektordir.Enclosure{{URL: "http://example.com/hand.ogg", Type: "audio/ogg", Length: 5}},
		}},
	}
}

// unpackVersion writes the lektor-dir of an older version.
func unpackVersion(t *testing.T, archive string) (path string) {
	t.Helper()
	a, err := txtar.ParseFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "lektor")
	for _, sub := range []string{"tmp", "new", "cur", "src"} {
		if err := os.MkdirAll(filepath.Join(path, sub), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range a.Files {
		text := string(f.Data)
		name, link := strings.CutSuffix(f.Name, "@")
		name, cut := strings.CutSuffix(name, "-")
		if link || cut {
			text = strings.TrimSuffix(text, "\n")
		}
		file := filepath.Join(path, filepath.FromSlash(name))
		if !link {
			writeFile(t, file, text)
			continue
		}
		err := os.MkdirAll(filepath.Dir(file), 0o777)
		if err == nil {
			err = os.Symlink(text, file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestVersions: current programs read every field, flag and setting in a lektor-dir of each older
// version, also after a repair. Fetching the same documents adds no entries.
func TestVersions(t *testing.T) {
	bin := build(t)
	archives, err := filepath.Glob("testdata/versions/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	for _, archive := range archives {
		version := strings.TrimSuffix(filepath.Base(archive), ".txtar")
		t.Run(version, func(t *testing.T) {
			path := unpackVersion(t, archive)
			want := versionEntries()
			set := map[string][2]string{ // a value for each of the two feeds
				"url": {gardenURL, atomURL}, "alias": {"My garden", ""}, "interval": {"2h", ""}, "on-update": {"unread", "ignore"},
				"categories": {"science\nhome/plants", "science"}, "headers": {"X-Key: secret one\nX-Other: two", ""}, "filter": {},
				"private": {"", "yes"}, "history": {"", "off"}, "keep": {"", "30d"}, "fulltext": {"", "on"},
			}
			run := func(program string, args ...string) string {
				t.Helper()
				cmd := exec.Command(filepath.Join(bin, program), args...)
				cmd.Env = append(os.Environ(), "LEKTORDIR="+path, "XDG_CACHE_HOME="+filepath.Join(filepath.Dir(path), "cache"))
				document, err := os.Open("testdata/versions/document.xml")
				if err != nil {
					t.Fatal(err)
				}
				defer document.Close()
				cmd.Stdin = document
				var errs strings.Builder
				cmd.Stderr = &errs
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s %q: %v\n%s", program, args, err, &errs)
				}
				return strings.TrimSpace(string(out))
			}
			look := func(when string) {
				t.Helper()
				d, err := lektordir.Open(path, nil)
				if err != nil {
					t.Fatal(err)
				}
				got := versionRead(t, d)
				for _, id := range slices.Sorted(maps.Keys(want)) {
					if got, want := got[id], want[id]; !reflect.DeepEqual(got, want) {
						t.Errorf("%s: %s is\n%+v, want\n%+v", when, id, got, want)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%s: %d entries, want %d", when, len(got), len(want))
				}
				for name, values := range set {
					for i, u := range []string{gardenURL, atomURL} {
						if got, err := settings.Get(d, lektordir.FeedHash(u), name); err != nil || got != values[i] {
							t.Errorf("%s: %s of %s is %q (%v), want %q", when, name, u, got, err, values[i])
						}
					}
				}
				for query, want := range map[string]string{
					"has:audio": "1 unread of 2", "has:audio is:trashed": "1 unread of 1", "category:plants": "2 unread of 5", "is:unread": "5 unread of 5",
					"has:enclosure": "2 unread of 3", "flag:a": "0 unread of 1", "feed:garden": "2 unread of 5", "id:urn:x:1": "0 unread of 1",
				} {
					if got := run("lektor-view", "count", query); got != want {
						t.Errorf("%s: count %s is %s, want %s", when, query, got, want)
					}
				}
			}
			look("as it was")
			if got := run("lektor-fetch", "deliver", "--id", gardenURL); got != "" {
				t.Errorf("the document that it has brings %s", got)
			}
			look("after a delivery of the same")
			run("lektor-fetch", "check", "--repair")
			if got := run("lektor-fetch", "check"); got != "" {
				t.Errorf("after the repair there is %s", got)
			}
			look("after the repair")
		})
	}
}

// versionRead reads all entries.
func versionRead(t *testing.T, d *lektordir.Dir) map[string]versionEntry {
	t.Helper()
	refs, err := d.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]versionEntry{}
	for _, r := range refs {
		e, err := d.ReadEntry(r, lektordir.AllFields)
		if err != nil {
			t.Fatal(err)
		}
		if e.Replaces != "" {
			e.Replaces = "of another version"
		}
		all[e.ID] = versionEntry{r.Place.String(), r.Flags(), *e}
	}
	return all
}
