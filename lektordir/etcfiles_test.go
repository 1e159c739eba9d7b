package lektordir

import (
	"context"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/commit"
	"github.com/lektordir/lektor/internal/dirfs"
)

// If an entry has no file extras, its extras are read from files in etc/. Check converts them to
// lines with the same values.
func TestExtrasInEtc(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Entry
		left  []string // in etc/ after the repair
	}{
		{name: "all", files: map[string]string{
			"etc/link": "http://a.example/\n", "etc/updated": "2026-01-31T12:00:00Z\n", "etc/comments": "c", "etc/pubdate-raw": "soon\n", "etc/replaces": "1.b.c\n",
			"etc/categories": "x\n\ny z\n", "etc/enclosures": "http://a.example/1\taudio/mpeg\t12\nhttp://a.example/2\t\t\n\t\t\n",
			"etc/summary": "one\n\ttwo\\n\n\n", "etc/image": "i\n", "etc/language": "de\n", "etc/contributors": "Ann\nBob\n", "etc/source": "urn:s\tS\t\thttp://s.example/\n",
			"etc/duration": "90\n", "etc/episode": "3\n", "etc/season": "x\n",
		}, want: Entry{
			Link: "http://a.example/", Updated: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Comments: "c", PubDateRaw: "soon", Replaces: "1.b.c",
			Categories: []string{"x", "y z"}, Enclosures: []Enclosure{{"http://a.example/1", "audio/mpeg", 12}, {"http://a.example/2", "", -1}},
			Summary: "one\n\ttwo\\n\n", Image: "i", Language: "de", Contributors: []string{"Ann", "Bob"}, Source: Source{ID: "urn:s", Title: "S", URL: "http://s.example/"},
			Duration: 90 * time.Second, Episode: 3,
		}},
		{name: "another program's", files: map[string]string{"etc/link": "l\n", "etc/mine": "m\n"}, want: Entry{Link: "l"}, left: []string{"mine"}},
		{name: "lines count", files: map[string]string{"extras": "comments\tc\n", "etc/link": "l\n"}, want: Entry{Comments: "c"}, left: []string{"link"}},
		{name: "a repair that was killed", files: map[string]string{"extras": "link\tl\ncategory\ta\n", "etc/categories": "a\n"}, want: Entry{Link: "l", Categories: []string{"a"}}},
		{name: "no directory", files: map[string]string{"etc": "m\n"}},
		{name: "nothing known", files: map[string]string{"etc/mine": "m\n"}, left: []string{"mine"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir() + "/lektor"
			d, err := Create(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			hash := FeedHash(feedID)
			write(t, path+"/src/"+hash+"/id", feedID+"\n")
			write(t, path+"/src/"+hash+"/name", "Feed\n")
			r := Ref{Place: New, Feed: hash, Unique: "1.a.b"}
			for name, text := range map[string]string{"title": "t\n", "id": "urn:x\n", "content": "c"} {
				write(t, d.abs(r)+"/"+name, text)
			}
			if err := os.Symlink(commit.LinkTo(hash), d.abs(r)+"/feed"); err != nil {
				t.Fatal(err)
			}
			for name, text := range c.files {
				write(t, d.abs(r)+"/"+name, text)
			}
			read := func(when string) {
				t.Helper()
				got, err := d.ReadEntry(r, Extras)
				if err != nil || !reflect.DeepEqual(*got, c.want) {
					t.Errorf("%s: got %+v, %v\nwant %+v", when, *got, err, c.want)
				}
			}
			read("before")
			if _, err := d.Check(context.Background(), true); err != nil {
				t.Fatal(err)
			}
			read("after the repair")
			names, err := dirfs.Names(d.abs(r) + "/etc")
			if err != nil && !isNotExist(err) && c.files["etc"] == "" || strings.Join(names, " ") != strings.Join(c.left, " ") {
				t.Errorf("etc/ has %q (%v), want %q", names, err, c.left)
			}
			problems, err := d.Check(context.Background(), true)
			if err != nil || len(problems) > 0 {
				t.Errorf("the second check finds %v, %v", problems, err)
			}
		})
	}
}
