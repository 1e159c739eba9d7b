package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestTUIExport: an entry is piped into a command, copied, bookmarked, and saved as text.
func TestTUIExport(t *testing.T) { onSizes(t, exporting) }

func exporting(t *testing.T, columns, lines int) {
	d := readerDir(t, false)
	out := t.TempDir()
	to := func(name string) string { return `sh -c 'cat >` + filepath.Join(out, name) + `'` }
	r := read(t, d, columns, lines, "", "LEKTOR_CLIPBOARD="+to("clip"), `LEKTOR_BOOKMARK=sh -c 'echo kept "$1" {{.title}}' sh`)
	r.see(t, `9 unread`)
	r.Keys("l", "Enter")
	r.see(t, `Text of 9`)
	has := func(name, want string) {
		t.Helper()
		r.Until(name, func([]string) bool {
			text, _ := os.ReadFile(filepath.Join(out, name))
			return strings.TrimSpace(string(text)) == want
		})
	}
	r.Keys("|")
	r.see(t, `^pipe the text to:`)
	r.Type("sed -n s/Text/TEXT/p")
	r.Keys("Enter")
	r.Await("TEXT of 9, a link[1].")
	r.Await("[Enter]")
	r.Keys("Enter")
	r.see(t, `Text of 9`)
	r.Keys("|")
	r.Type("html " + to("html"))
	r.Keys("Enter")
	r.Await("[Enter]")
	has("html", `<h1>Heading</h1><p>Text of 9, <a href="https://x.example/9">a link</a>.</p>`)
	r.Keys("Enter")
	r.see(t, `Text of 9`)
	r.Keys("y", "t")
	has("clip", "three 2")
	r.see(t, `^title copied`)
	r.Keys("w")
	r.see(t, `^save entry as`)
	r.Keys("C-u")
	r.Type(filepath.Join(out, "9.txt"))
	r.Keys("Enter")
	r.see(t, `^saved as`)
	if text := r.read(t, filepath.Join(out, "9.txt")); len(text) < 20 || text[:14] != "Title: three 2" {
		t.Errorf("%q", text)
	}
	r.Keys("C-p")
	r.see(t, `no link|^kept`)
	r.Keys("Q")
	r.ended(t, 0)
}

// TestTUIDownload: enclosures are downloaded in the background. The reader asks before it ends,
// and a download that was not complete is continued.
func TestTUIDownload(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("ETag", `"x"`)
		if asked.Add(1) > 1 {
			if got := q.Header.Get("Range"); got != "bytes=1000-" {
				t.Errorf("asked for %q", got)
			}
			http.ServeContent(w, q, "", time.Time{}, strings.NewReader(strings.Repeat("x", 2000)))
			return
		}
		w.Header().Set("Content-Length", "2000")
		fmt.Fprint(w, strings.Repeat("x", 1000))
		w.(http.Flusher).Flush()
		<-q.Context().Done()
	}))
	defer s.Close()
	d := testdir.New(t)
	feed := s.URL + "/feed"
	if _, err := d.Feed(feed, "Cast"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Entry(feed, "new", "1700000001.1.h", "title=pod", "+enclosure="+s.URL+"/slow.mp3"+"\taudio/mpeg\t2000"); err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	r := read(t, d, 80, 24, "", "LEKTOR_PLAYER=sh -c 'wc -c <\"$0\" >"+filepath.Join(to, "played")+"'")
	r.see(t, `pod`)
	r.Keys("l", "Enter")
	r.see(t, `Enclosure: http`)
	r.Keys("D")
	r.see(t, `^download to: ~/Podcasts`)
	r.Keys("C-u")
	r.Type(to)
	r.Keys("Enter")
	r.see(t, `^1 download added; B lists them`)
	r.Keys("j")
	r.see(t, `^pod 50% of 2,000 bytes`)
	r.Keys("B")
	r.see(t, `>50% of 2,000 bytes  pod  http`)
	r.Keys("q") // closes the list
	r.see(t, `Enclosure: http`)
	r.Keys("Q")
	r.see(t, `^1 download is not complete; end anyway\? \(y/n\)`)
	r.Keys("y")
	r.ended(t, 0)

	r = read(t, d, 80, 24, "", "LEKTOR_PLAYER=sh -c 'wc -c <\"$0\" >"+filepath.Join(to, "played")+"'")
	r.see(t, `>.*All`)
	r.Keys("a")
	r.see(t, `pod`)
	r.Keys("l", "Enter")
	r.see(t, `Enclosure: http`)
	r.Keys("D") // the directory is remembered
	r.see(t, `^pod saved`)
	r.Keys("B")
	r.see(t, `>saved  pod  /`)
	r.Keys("Enter")
	r.Until("played", func([]string) bool {
		text, _ := os.ReadFile(filepath.Join(to, "played"))
		return string(text) == "2000\n"
	})
	r.place(t, 1, "cur;2,Sd")
	r.see(t, `>saved`)
	r.Keys("Q") // closes the list
	r.see(t, `Enclosure: http`)
	r.Keys("Q")
	r.ended(t, 0)
}
