package save

import (
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

// cast is a server with the files of a podcast, and a lektor-dir with its entries.
type cast struct {
	*fixture
	url   string
	files map[string]string // by path
	asked []string
	o     Options
	now   time.Time
}

func newCast(t *testing.T, entries ...[]string) *cast {
	t.Helper()
	c := &cast{fixture: newFixture(t), files: map[string]string{}, now: viewdir.Now}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked = append(c.asked, r.URL.Path)
		if text, ok := c.files[r.URL.Path]; ok {
			w.Write([]byte(text))
		} else {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	if _, err := c.Feed(c.url+"/feed", "Cast"); err != nil {
		t.Fatal(err)
	}
	for i, files := range entries {
		for j := range files {
			files[j] = strings.ReplaceAll(files[j], "URL", c.url)
		}
		if _, err := c.Entry(c.url+"/feed", "new", fmt.Sprintf("170000000%d.1.h", i), files...); err != nil {
			t.Fatal(err)
		}
	}
	c.o = saveOptions(c.Path, t.TempDir())
	c.o.Query = []string{"is:unread"}
	c.o.Now = func() time.Time { return c.now }
	return c
}

// save saves, and returns the names of the files that are there now, the paths that were asked for, and the
// exit status.
func (c *cast) save(t *testing.T) (names, asked []string, status int) {
	t.Helper()
	c.asked = nil
	c.Err.Reset()
	status = cmdline.Status(Save(t.Context(), c.o, c.Streams("")))
	list, _ := os.ReadDir(filepath.Join(c.o.To, "Cast"))
	for _, f := range list {
		if !strings.HasPrefix(f.Name(), ".") {
			names = append(names, f.Name())
		}
	}
	return names, c.asked, status
}

// TestSaveAlternatives: of alternatives, the one that fits best is saved.
func TestSaveAlternatives(t *testing.T) {
	alternative := func(name string, attributes ...string) string {
		return "+element=podcast:alternateEnclosure\t\t" + strings.Join(attributes, "\t") +
			"\n+element=podcast:alternateEnclosure/podcast:source\t\turi=ipfs://x\n+element=podcast:alternateEnclosure/podcast:source\t\turi=URL/" + name
	}
	var entry []string
	for _, e := range []string{"+enclosure=URL/a.mp3\taudio/mpeg\t",
		alternative("low.opus", "type=audio/opus", "bitrate=16000", "lang=en"), alternative("high.opus", "type=audio/opus", "bitrate=96000", "lang=en"),
		alternative("de.mp3", "type=audio/mpeg", "bitrate=64000.5", "lang=de-AT"), alternative("v.mp4", "type=video/mp4", "bitrate=500000")} {
		entry = append(entry, strings.Split(e, "\n")...)
	}
	for _, tc := range []struct {
		o    Options
		want string
	}{
		{Options{}, "/a.mp3"}, {Options{Type: "audio"}, "/a.mp3"}, {Options{Type: "video"}, "/v.mp4"}, {Options{Type: "audio/opus"}, "/low.opus"},
		{Options{Lang: "de"}, "/de.mp3"}, {Options{Lang: "fr"}, "/a.mp3"}, {Options{Bitrate: 100}, "/high.opus"}, {Options{Bitrate: 70}, "/de.mp3"},
		{Options{Bitrate: 8}, "/low.opus"}, {Options{Bitrate: 1000}, "/v.mp4"}, {Options{Type: "audio", Bitrate: 1000}, "/high.opus"}, {Options{Type: "image"}, ""},
	} {
		c := newCast(t, append([]string{"title=Pod"}, entry...))
		c.files[tc.want] = "x"
		c.o.Type, c.o.Lang, c.o.Bitrate = tc.o.Type, tc.o.Lang, tc.o.Bitrate
		if _, asked, status := c.save(t); strings.Join(asked, " ") != tc.want || status != 0 {
			t.Errorf("%+v: asked for %q, status %d, %s", tc.o, asked, status, &c.Err)
		}
	}
}

// TestSaveOnlyAlternatives: an entry may have alternatives alone. A broadcast that goes on is not saved.
func TestSaveOnlyAlternatives(t *testing.T) {
	alternative := []string{"+element=podcast:alternateEnclosure\t\ttype=video/youtube", "+element=podcast:alternateEnclosure/podcast:source\t\turi=https://www.youtube.com/watch?v=x",
		"+element=podcast:alternateEnclosure\t\ttype=audio/mpeg", "+element=podcast:alternateEnclosure/podcast:source\t\turi=URL/a.mp3"}
	c := newCast(t, alternative, []string{"+enclosure=URL/stream", "+element=podcast:liveItem\t\tstatus=live"}, []string{"+enclosure=URL/ended", "+element=podcast:liveItem\t\tstatus=ended"})
	c.files["/a.mp3"], c.files["/ended"] = "x", "x"
	c.o.Query, c.o.Args = nil, []string{"1700000000.1.h", "1700000001.1.h", "1700000002.1.h"}
	if _, asked, status := c.save(t); strings.Join(asked, " ") != "/a.mp3 /ended" || status != 0 {
		t.Errorf("asked for %q, status %d, %s", asked, status, &c.Err)
	}
}

// TestSaveIntegrity: a file with another digest than that of the feed is not saved.
func TestSaveIntegrity(t *testing.T) {
	sum := sha512.Sum384([]byte("the file"))
	c := newCast(t, []string{"title=Pod", "+enclosure=URL/a.mp3\taudio/mpeg\t", "+element=podcast:alternateEnclosure\t\ttype=audio/mpeg",
		"+element=podcast:alternateEnclosure/podcast:source\t\turi=URL/a.mp3",
		"+element=podcast:alternateEnclosure/podcast:integrity\t\ttype=sri\tvalue=sha256-no sha384-" + base64.StdEncoding.EncodeToString(sum[:])})
	c.files["/a.mp3"] = "another file"
	if names, _, status := c.save(t); len(names) > 0 || status != cmdline.StatusRemote || !strings.Contains(c.Err.String(), "another digest than the feed says") {
		t.Errorf("%q, status %d, %s", names, status, &c.Err)
	}
	c.files["/a.mp3"] = "the file"
	c.now = c.now.Add(time.Hour)
	if names, _, status := c.save(t); !slices.Equal(names, []string{"2023-11-15 Pod.mp3"}) || status != 0 {
		t.Errorf("%q, status %d, %s", names, status, &c.Err)
	}
}

// TestSaveBeside: transcripts and chapters are saved beside the enclosure, each URL once.
func TestSaveBeside(t *testing.T) {
	c := newCast(t, []string{"title=Pod", "+enclosure=URL/a.mp3\taudio/mpeg\t",
		"+element=podcast:transcript\t\turl=URL/t?x\ttype=text/vtt\tlanguage=../en", "+element=podcast:transcript\t\turl=URL/t.html\ttype=text/html",
		"+element=podcast:transcript\t\turl=URL/t.html\ttype=text/html", "+element=podcast:transcript\t\turl=file:///etc/passwd", "+element=podcast:transcript\t\turl=URL/gone",
		"+element=podcast:chapters\t\turl=URL/c\ttype=application/json+chapters"})
	for _, name := range []string{"/a.mp3", "/t", "/t.html", "/c"} {
		c.files[name] = name
	}
	names, asked, status := c.save(t)
	want := []string{"2023-11-15 Pod.chapters.json", "2023-11-15 Pod.en.vtt", "2023-11-15 Pod.html", "2023-11-15 Pod.mp3"}
	if !slices.Equal(names, want) || len(asked) != 5 || status != cmdline.StatusRemote {
		t.Errorf("%q, asked for %q, status %d, %s", names, asked, status, &c.Err)
	}
	// A transcript that never comes does not keep the entry from being saved.
	for range maxFailures {
		c.now = c.now.Add(1000 * time.Hour)
		_, _, status = c.save(t)
	}
	if _, asked, _ := c.save(t); len(asked) > 0 || status != 0 {
		t.Errorf("asked for %q, status %d", asked, status)
	}
	if names, _ := filepath.Glob(filepath.Join(c.Path, "cur/*/*;2,d")); len(names) != 1 {
		t.Errorf("no flag: %q", names)
	}
}

// TestSaveNewest: of each feed, only the newest entries are saved.
func TestSaveNewest(t *testing.T) {
	c := newCast(t, []string{"+enclosure=URL/0.mp3"}, []string{"+enclosure=URL/1.mp3"}, []string{"+enclosure=URL/2.mp3"})
	for i := range 3 {
		c.files[fmt.Sprintf("/%d.mp3", i)] = "x"
	}
	c.o.Newest = 2
	for i, want := range [][]string{{"/1.mp3", "/2.mp3"}, nil} { // those that were saved count, too
		if _, asked, status := c.save(t); !slices.Equal(asked, want) || status != 0 {
			t.Errorf("run %d: asked for %q, status %d, %s", i, asked, status, &c.Err)
		}
		c.o.Query = []string{"is:unread or is:read"}
	}
}

// TestSaveMissing: a file that is not there is asked for ever more rarely, and after five times no more. The
// exit status says whether something may still come.
func TestSaveMissing(t *testing.T) {
	c := newCast(t, []string{"title=Pod", "+enclosure=URL/a.mp3\taudio/mpeg\t"})
	var at []time.Duration
	for hour := range 400 {
		c.now = viewdir.Now.Add(time.Duration(hour) * time.Hour)
		_, asked, status := c.save(t)
		if len(asked) > 0 {
			at = append(at, c.now.Sub(viewdir.Now)/time.Hour)
		}
		if last := len(at) == maxFailures; status == cmdline.StatusRemote && last || status == 0 && !last {
			t.Fatalf("status %d after %d requests: %s", status, len(at), &c.Err)
		}
		if len(asked) == 0 && c.Err.Len() > 0 {
			t.Fatalf("a message without a request: %s", &c.Err)
		}
	}
	if got := fmt.Sprint(at); got != "[0s 1ns 6ns 31ns 156ns]" {
		t.Errorf("asked after %s hours", got)
	}
	c.o.Query, c.o.Args = nil, []string{"1700000000.1.h"}
	c.files["/a.mp3"] = "x"
	if names, _, status := c.save(t); len(names) != 1 || status != 0 {
		t.Errorf("named: %q, status %d, %s", names, status, &c.Err)
	}
}
