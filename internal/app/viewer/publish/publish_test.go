package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

func (f *fixture) publish(format string, change func(*Options)) string {
	f.T.Helper()
	o := Options{Common: f.Common(), Format: format}
	if change != nil {
		change(&o)
	}
	if err := Publish(context.Background(), o, f.Streams("")); err != nil {
		f.T.Fatal(err)
	}
	return f.Out.String()
}

// Entries of one feed may share a guid, as many as they are.
func TestPublishedIDsAreUnique(t *testing.T) {
	for _, id := range []string{"http://a.example/same", "same"} {
		f := newFixture(t)
		for i := range 5 {
			f.Add("new", fmt.Sprintf("177350000%d.1.h", i), "id="+id, fmt.Sprintf("+link=http://a.example/%d", i))
		}
		for format, expr := range map[string]string{"atom": `<entry>\s*<id>([^<]*)`, "rss": `<guid[^>]*>([^<]*)`, "json": `(?m)^      "id": "([^"]*)`} {
			ids := map[string]bool{}
			doc := f.publish(format, nil)
			for _, m := range regexp.MustCompile(expr).FindAllStringSubmatch(doc, -1) {
				ids[m[1]] = true
			}
			if len(ids) != 5 {
				t.Errorf("%s %s: %d ids of 5\n%s", id, format, len(ids), doc)
			}
			if f.publish(format, nil) != doc {
				t.Errorf("%s: not the same again", format)
			}
		}
	}
}

func TestPublishHostileEntries(t *testing.T) {
	const bad = "\x01\x1b[31m\xff\xfe\u2028\ufffe]]>&<script>\"'\u202e</title>"
	f := newFixture(t)
	f.Feed(viewdir.FeedID, bad, "link=javascript:x"+bad)
	f.Add("new", "1773500000.1.h", "title="+bad, "id="+bad, "content="+bad, "author="+bad, "type="+bad, "+link="+bad, "+category="+bad, "+enclosure="+bad+"\t"+bad+"\t-7", "+summary="+bad, "+comments="+bad)
	f.Add("new", "1773500001.1.h", "title=", "id=http://[::1", "content="+bad, "type=text/html", "author=<"+bad+">", "pubdate=9999-12-31T23:59:59Z", "+updated=0001-01-01T00:00:00Z", "+enclosure=http://a.example/x y\t\t99999999999999999999")
	f.Add("new", "1773500002.1.h", "type=application/xhtml+xml", "content=<p>"+bad)
	f.Add("new", "1773500003.1.h", "type=image/png", "content="+bad)
	for _, format := range []string{"atom", "rss", "json"} {
		doc := f.publish(format, func(o *Options) { o.Title = bad })
		if !utf8.ValidString(doc) {
			t.Errorf("%s: not UTF-8", format)
		}
		if format == "json" {
			if !json.Valid([]byte(doc)) {
				t.Errorf("not JSON:\n%s", doc)
			}
			continue
		}
		d := xml.NewDecoder(bytes.NewReader([]byte(doc)))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s: %v\n%s", format, err, doc)
				break
			}
		}
	}
}

// A pipe is written to, and not read first to see whether it has changed.
func TestPublishToAPipe(t *testing.T) {
	f := newFixture(t)
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	o := Options{Common: f.Common(), Format: "atom", Output: pipe}
	s := f.Streams("")
	got := make(chan []byte, 1)
	go func() { b, _ := os.ReadFile(pipe); got <- b }()
	go func() { _ = Publish(context.Background(), o, s) }()
	select {
	case b := <-got:
		if !bytes.Contains(b, []byte("<feed")) {
			t.Errorf("%q", b)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits")
	}
}

// No published document contains a password.
func TestPublishNoPassword(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "title=One")
	for _, format := range []string{"atom", "rss", "json"} {
		out := f.publish(format, func(o *Options) {
			o.Self, o.Hubs = "http://me:secret@example.com/feed", []string{"http://me:secret@hub.example/"}
		})
		if strings.Contains(out, "secret") || !strings.Contains(out, "http://example.com/feed") {
			t.Errorf("%s: %s", format, out)
		}
	}
}

// A cloud of XML-RPC has the path /RPC2 unless the URL has one.
func TestPublishCloud(t *testing.T) {
	for in, want := range map[string]string{
		"xmlrpc://rpc.example:5337":           "http 5337 /RPC2 xml-rpc rssCloud.pleaseNotify",
		"xmlrpc://rpc.example:5337/":          "http 5337 /RPC2 xml-rpc rssCloud.pleaseNotify",
		"xmlrpc://rpc.example/x":              "http 80 /x xml-rpc rssCloud.pleaseNotify",
		"https://rpc.example/rpc2":            "http 443 /rpc2 xml-rpc rssCloud.pleaseNotify",
		"http://rpc.example":                  "http 80 /rsscloud/pleaseNotify http-post ",
		"http://rpc.example/":                 "http 80 /rsscloud/pleaseNotify http-post ",
		"https://rpc.example/pleaseNotify?a=": "http 443 /pleaseNotify?a= https-post ",
	} {
		c, err := cloudOf(in)
		if got := fmt.Sprintf("http %d %s %s %s", c.Port, c.Path, c.Protocol, c.RegisterProcedure); err != nil || got != want || c.Domain != "rpc.example" {
			t.Errorf("%s: %q, %v; want %q", in, got, err, want)
		}
	}
}

// TestPublishMeanwhile: an entry that goes while the pages are written is in none of them,
// and one that always goes ends the run.
func TestPublishMeanwhile(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Feed("http://a.example/", "Alpha"); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i := range 40 {
		path, err := f.Entry("http://a.example/", "cur", testdir.Unique(1700000000+int64(i), i+1)+";2,", fmt.Sprint("title=Title ", i), fmt.Sprint("id=urn:x:", i))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	to := t.TempDir()
	doomed := 1
	o := Options{Common: f.Common(), Format: "atom", Self: "http://me.example/index.atom", Paged: to, PerPage: 2, disk: &disk{
		write: func(path string, data []byte) error {
			for ; doomed > 0; doomed-- {
				if err := os.RemoveAll(paths[len(paths)-1]); err != nil {
					return err
				}
				paths = paths[:len(paths)-1]
			}
			return atomicfile.WriteUnsynced(path, data)
		}, remove: os.Remove,
	}}
	if err := Publish(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(to, "index.atom"))
	if err != nil || strings.Contains(string(first), "Title 39<") || !strings.Contains(string(first), "Title 38<") || !strings.Contains(string(first), "Title 37<") {
		t.Errorf("%v, and the first page is\n%s", err, first)
	}
	o.disk.write = func(path string, data []byte) error {
		if err := os.RemoveAll(paths[len(paths)-1]); err != nil {
			return err
		}
		paths = paths[:len(paths)-1]
		return atomicfile.WriteUnsynced(path, data)
	}
	o.PerPage = 3
	defer func(pauses []time.Duration) { untilSettled = pauses }(untilSettled)
	untilSettled = []time.Duration{0, 1, 1, 1, 1}
	var hint *cmdline.HintError
	if err := Publish(t.Context(), o, f.Streams("")); !errors.As(err, &hint) || !strings.Contains(err.Error(), "change") {
		t.Errorf("it ended with %v", err)
	}
}

// TestPublishBesideExpire: a document is written beside a process that removes many
// entries, one after the other, when that has ended.
func TestPublishBesideExpire(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Feed("http://a.example/", "Alpha"); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for i := range 600 {
		path, err := f.Entry("http://a.example/", "cur", testdir.Unique(1700000000+int64(i), i+1)+";2,", fmt.Sprint("title=Title ", i), fmt.Sprint("id=urn:x:", i))
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	to := filepath.Join(t.TempDir(), "feed.atom")
	removed := make(chan error)
	go func() {
		var err error
		for _, path := range paths[:500] {
			time.Sleep(time.Millisecond)
			err = errors.Join(err, os.RemoveAll(path))
		}
		removed <- err
	}()
	err := Publish(t.Context(), Options{Common: f.Common(), Format: "atom", Output: to}, f.Streams(""))
	if err := errors.Join(err, <-removed); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(to); err != nil || strings.Count(string(data), "<entry>") < 100 {
		t.Errorf("%d entries, %v", strings.Count(string(data), "<entry>"), err)
	}
}

// TestPublishLanguage: an entry has its language, or that of its feed.
func TestPublishLanguage(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773500000.1.h", "id=http://a.example/1", "pubdate=2026-01-01T00:00:00Z")
	f.Add("new", "1773500001.1.h", "id=http://a.example/2", "pubdate=2026-01-02T00:00:00Z", "+language=fr")
	if _, err := f.Feed(viewdir.FeedID, "Alpha", "language=de-AT"); err != nil {
		t.Fatal(err)
	}
	for format, expr := range map[string]string{"atom": `<entry xml:lang="([^"]*)"`, "rss": `<dc:language>([^<]*)`, "json": `"language": "([^"]*)`} {
		doc := f.publish(format, nil)
		var got []string
		for _, m := range regexp.MustCompile(expr).FindAllStringSubmatch(doc, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != "fr de-AT" {
			t.Errorf("%s: languages %q in\n%s", format, got, doc)
		}
	}
}

// TestPublishPodcast: a document with the entries of one podcast has what podcast programs require of the
// feed, one with those of several feeds has not.
func TestPublishPodcast(t *testing.T) {
	for _, several := range []bool{false, true} {
		f := newFixture(t)
		if _, err := f.Feed("http://cast.example/", "Cast", "image=http://me:secret@cast.example/c.png", "author=Ann <ann@cast.example>", "language=de", "description=About frost",
			"etc/elements=element\titunes:explicit\ttrue\nelement\tpodcast:guid\tg-1\nelement\titunes:new-feed-url\thttp://elsewhere.example/\nelement\tpodcast:podroll\nelement\tpodcast:podroll/podcast:remoteItem\t\tfeedUrl=http://frogs.example/\nelement\titunes:category\t\ttext=Leisure\nelement\titunes:category/itunes:category\t\ttext=Hobbies\nelement\titunes:category\t\ttext=News"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Entry("http://cast.example/", "new", "1700000001.1.h", "title=Owl", "+duration=60", "+image=http://cast.example/1.png"); err != nil {
			t.Fatal(err)
		}
		if several {
			f.Add("new", "1700000002.1.h", "title=Other")
		}
		got := f.publish("rss", nil)
		head, item, _ := strings.Cut(got, "<item>")
		for _, want := range []string{"<itunes:explicit>true</itunes:explicit>", "<podcast:guid>g-1</podcast:guid>", `<podcast:remoteItem feedUrl="http://frogs.example/"/>`, `<itunes:category text="Leisure"><itunes:category text="Hobbies"/></itunes:category>`, `<itunes:category text="News"/>`,
			`<itunes:image href="http://cast.example/c.png"/>`, "<itunes:author>Ann</itunes:author>", "<language>de</language>", "<description>About frost</description>"} {
			if strings.Contains(head, want) == several {
				t.Errorf("several feeds: %t: %s:\n%s", several, want, head)
			}
		}
		if !strings.Contains(item, `<itunes:image href="http://cast.example/1.png"/>`) || strings.Contains(got, "elsewhere") || strings.Contains(got, "secret") {
			t.Errorf("%s", got)
		}
	}
}

// TestPublishPodcastInDirectory: each document of a feed of several documents has the head of the podcast.
func TestPublishPodcastInDirectory(t *testing.T) {
	for _, archive := range []bool{false, true} {
		f := newFixture(t)
		if _, err := f.Feed("http://cast.example/", "Cast", "image=http://cast.example/c.png", "etc/elements=element\tpodcast:guid\tg-1\nelement\titunes:category\t\ttext=News"); err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			if _, err := f.Entry("http://cast.example/", "new", fmt.Sprintf("170000000%d.1.h", i), fmt.Sprint("title=Owl ", i)); err != nil {
				t.Fatal(err)
			}
		}
		dir := filepath.Join(t.TempDir(), "www")
		for range 2 { // the documents stay as they are
			f.publish("rss", func(o *Options) {
				o.Self, o.PerPage, o.Paged = "http://me.example/feed/index.rss", 2, dir
				if archive {
					o.Paged, o.Archive = "", dir
				}
			})
			names, _ := filepath.Glob(filepath.Join(dir, "*.rss"))
			for _, name := range names {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				head, _, _ := strings.Cut(string(data), "<item>")
				for _, want := range []string{"<podcast:guid>g-1</podcast:guid>", `<itunes:category text="News"/>`, `<itunes:image href="http://cast.example/c.png"/>`} {
					if !strings.Contains(head, want) {
						t.Errorf("archive %t, %s: no %s:\n%s", archive, filepath.Base(name), want, head)
					}
				}
			}
			if want := map[bool]int{false: 3, true: 2}[archive]; len(names) != want {
				t.Errorf("archive %t: %q", archive, names)
			}
		}
	}
}
