package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/archive"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

// fails publishes, which must fail with a message that has these words and a hint, and
// change nothing.
func (w *world) fails(words ...string) {
	w.T.Helper()
	before := tree(w.T, w.www)
	err := Publish(context.Background(), w.options, w.Streams(""))
	var hint *cmdline.HintError
	var usage *cmdline.UsageError
	if err == nil || !errors.As(err, &hint) && !errors.As(err, &usage) {
		w.T.Fatalf("%v, without a hint", err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.T.Errorf("%q lacks %q", err, word)
		}
	}
	if after := tree(w.T, w.www); fmt.Sprint(after) != fmt.Sprint(before) {
		w.T.Errorf("it changed files: %v", after)
	}
}

// Two runs at a time could put different entries into one archive.
func TestArchiveLocked(t *testing.T) {
	w := newWorld(t, 1, "atom")
	w.add()
	w.run()
	unlock, err := atomicfile.Lock(filepath.Join(w.www, ".lock"), errors.New("busy"))
	if err != nil {
		t.Fatal(err)
	}
	w.fails("another process publishes to " + w.www)
	unlock()
	w.run()
}

// A link in the place of a file is not followed, and a pipe is not waited for.
func TestArchiveOddFiles(t *testing.T) {
	for _, name := range []string{".lock", ".archives", "index.atom", "archive-0001.atom", "archive-0002.atom", "archive-0009.atom"} {
		for _, odd := range []string{"fifo", "link", "dir", "text"} {
			t.Run(name+" "+odd, func(t *testing.T) {
				w := newWorld(t, 3, "atom")
				w.options.PerPage = 2
				for range 6 {
					w.add()
				}
				w.run()
				elsewhere := filepath.Join(t.TempDir(), "elsewhere")
				path := filepath.Join(w.www, name)
				err := errors.Join(os.RemoveAll(path), os.WriteFile(elsewhere, []byte("mine"), 0o666))
				switch odd {
				case "fifo":
					err = errors.Join(err, syscall.Mkfifo(path, 0o666))
				case "link":
					err = errors.Join(err, os.Symlink(elsewhere, path))
				case "dir":
					err = errors.Join(err, os.Mkdir(path, 0o777))
				case "text":
					err = errors.Join(err, os.WriteFile(path, []byte("mine"), 0o666))
				}
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					w.add()
				}
				done := make(chan error, 1)
				s := w.Streams("")
				go func() { done <- Publish(context.Background(), w.options, s) }()
				select {
				case err = <-done:
				case <-time.After(time.Minute):
					t.Fatal("it waits")
				}
				if data, rerr := os.ReadFile(elsewhere); rerr != nil || string(data) != "mine" {
					t.Errorf("elsewhere there is %q, %v", data, rerr)
				}
				replaced := (name == ".archives" || name == "index.atom") && odd != "dir"
				harmless := name == ".lock" && (odd == "text" || odd == "fifo")
				if replaced || harmless {
					if err != nil {
						t.Fatal(err)
					}
					w.check()
				} else if err == nil {
					t.Error("it was not noticed")
				}
			})
		}
	}
}

// Entries of several feeds keep apart, whatever comes and goes; a feed that is renamed
// changes none of them; and one whose document cannot be made is left out.
func TestArchiveOfSeveralFeeds(t *testing.T) {
	for _, format := range []string{"atom", "rss"} {
		w := newWorld(t, 5, format)
		w.options.PerPage = 2
		const other = "http://b.example/"
		if _, err := w.Feed(other, "Beta"); err != nil {
			t.Fatal(err)
		}
		put := func(feed string, second int64, id, title, date string) string {
			path, err := w.Entry(feed, "new", testdir.Unique(second, int(second)), "id="+id, "title="+title, "pubdate="+date)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
		ids := func() map[string]string {
			w.run()
			out := map[string]string{}
			files, _ := filepath.Glob(filepath.Join(w.www, "*."+format))
			for _, f := range files {
				p, _ := w.document(filepath.Base(f))
				for _, e := range p.entries {
					if id := out[e.title]; id != "" && id != e.id {
						t.Fatalf("%s: %s is %s and %s", format, e.title, id, e.id)
					}
					out[e.title] = e.id
				}
			}
			return out
		}
		first := put(viewdir.FeedID, 1, "2", "A", "2020-01-02T00:00:00Z")
		for i := range int64(5) {
			put(viewdir.FeedID, 10+i, fmt.Sprint("x", i), fmt.Sprint("X", i), "2020-02-02T00:00:00Z")
		}
		had := ids()
		if had["A"] == "" || format == "rss" && had["A"] != "2" {
			t.Fatalf("%s: %v", format, had)
		}
		// An older entry of another feed with the same id, and the first one gone.
		put(other, 2, "2", "B", "2020-01-01T00:00:00Z")
		both := ids()
		if err := os.RemoveAll(first); err != nil {
			t.Fatal(err)
		}
		put(other, 3, "2", "C", "2020-01-03T00:00:00Z")
		if _, err := w.Feed(other, "Gamma"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Feed(viewdir.FeedID, "Delta", "author=Somebody", "language=de"); err != nil {
			t.Fatal(err)
		}
		now := ids()
		for _, m := range []map[string]string{had, both} {
			for title, id := range m {
				if now[title] != id {
					t.Errorf("%s: %s was %s and is %s", format, title, id, now[title])
				}
			}
		}
		if now["A"] == now["B"] || now["B"] == now["C"] || now["A"] == now["C"] {
			t.Errorf("%s: %v", format, now)
		}
		// Nothing was revised by a new name.
		ledger, err := os.ReadFile(filepath.Join(w.www, ".archives"))
		if err != nil || strings.Contains(string(ledger), "+\t") {
			t.Errorf("%s: %v\n%s", format, err, ledger)
		}
	}
}

// A document that an entry left while it was made is made anew.
func TestArchiveWhileEntriesMove(t *testing.T) {
	w := newWorld(t, 8, "atom")
	w.options.PerPage = 2
	for range 9 {
		w.add()
	}
	write := w.options.disk.write
	w.options.disk.write = func(path string, data []byte) error {
		switch filepath.Base(path) {
		case "archive-0001.atom": // the others are still to be read
			w.vanish(w.entries[8])
			w.change(w.entries[7])
		case "archive-0002.atom":
			w.change(w.entries[6])
		}
		return write(path, data)
	}
	w.run()
	w.options.disk.write = write
	w.check()
	var published []string
	for _, s := range w.entries {
		if w.titles[s.id][s.title] {
			published = append(published, s.id)
		}
	}
	if len(published) != 8 {
		t.Errorf("published: %q", published)
	}
}

// There may be more archives than names have digits.
func TestArchiveNumbers(t *testing.T) {
	w := newWorld(t, 9, "atom")
	w.options.PerPage = 1
	l := &archive.Ledger{Self: w.options.Self, Format: "atom", Count: 9999}
	if err := os.WriteFile(filepath.Join(w.www, ".archives"), l.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		w.add()
	}
	if err := Publish(context.Background(), w.options, w.Streams("")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.Err.String(), "9999 archives are gone (archive-0001.atom, archive-0002.atom, archive-0003.atom, …)") {
		t.Errorf("said: %s", &w.Err)
	}
	p, _ := w.document("archive-10001.atom")
	if p.link(t, "prev-archive") != w.server.URL+"/archive-10000.atom" || p.link(t, "next-archive") != w.server.URL+"/archive-10002.atom" {
		t.Errorf("%v", p.links)
	}
	if first, _ := w.document("archive-10000.atom"); first.link(t, "prev-archive") != w.server.URL+"/archive-9999.atom" {
		t.Errorf("%v", first.links)
	}
	if err := os.Remove(filepath.Join(w.www, ".archives")); err != nil {
		t.Fatal(err)
	}
	before := tree(t, w.www)
	if err := Publish(context.Background(), w.options, w.Streams("")); err != nil {
		t.Fatal(err)
	}
	after := tree(t, w.www)
	delete(after, ".archives")
	if fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("made anew, it is\n%v\nnot\n%v", after, before)
	}
}

// An archive that was put there by somebody else is not taken for one of this feed.
func TestArchiveOfAnother(t *testing.T) {
	w := newWorld(t, 2, "atom")
	w.options.PerPage = 2
	for range 6 {
		w.add()
	}
	w.run()
	data, err := os.ReadFile(filepath.Join(w.www, "archive-0002.atom"))
	if err != nil {
		t.Fatal(err)
	}
	planted := filepath.Join(w.www, "archive-0003.atom")
	for _, text := range []string{strings.ReplaceAll(string(data), "index.atom", "other.atom"), strings.Replace(string(data), "<fh:archive/>", "", 1), "x"} {
		if err := os.WriteFile(planted, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		w.fails("archive-0003.atom")
	}
	if err := os.Remove(planted); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.check()
}

// Hostile text in entries makes no archive that cannot be read back, or that lacks an
// entry.
func TestArchiveOfHostileEntries(t *testing.T) {
	const bad = "\x01\x1b[31m\xff\xfe\u2028\ufffe]]>&<script>\"'\u202e</title></entry><entry></item><item><id><guid><fh:archive/>\n"
	for _, format := range []string{"atom", "rss"} {
		w := newWorld(t, 1, format)
		w.options.PerPage = 1
		if _, err := w.Feed(viewdir.FeedID, bad, "link=javascript:x"+bad); err != nil {
			t.Fatal(err)
		}
		for i, files := range [][]string{
			{"title=" + bad, "id=" + bad, "content=" + bad, "author=" + bad, "type=" + bad, "etc/link=" + bad, "etc/categories=" + bad, "etc/enclosures=" + bad + "\t" + bad + "\t-7", "etc/summary=" + bad},
			{"title=", "id=http://[::1", "content=" + bad, "type=text/html", "author=<" + bad + ">", "pubdate=9999-12-31T23:59:59Z", "etc/updated=0001-01-01T00:00:00Z"},
			{"type=application/xhtml+xml", "content=<p>" + bad},
			{"type=application/xhtml+xml", "content=<p><source/><source></source><entry><id>x</id></entry>&#1;</p>"},
			{"type=image/svg+xml", "content=<a xmlns='http://www.w3.org/2005/Atom'><entry><id>y</id></entry></a>", "id= a \t"},
			{"type=image/png", "content=" + bad, "id=a"},
			{"id=\u202ea", "etc/language=" + bad},
		} {
			w.Add("new", fmt.Sprintf("177350000%d.1.h", i), files...)
		}
		for range 2 {
			if err := Publish(context.Background(), w.options, w.Streams("")); err != nil {
				t.Fatal(format, err)
			}
			files, err := filepath.Glob(filepath.Join(w.www, "*."+format))
			if err != nil || len(files) != 7 {
				t.Fatalf("%s: %q, %v", format, files, err)
			}
			ids := map[string]bool{}
			for _, f := range files {
				p, _ := w.document(filepath.Base(f))
				for _, e := range p.entries {
					ids[e.id] = true
				}
			}
			if len(ids) != 7 {
				t.Errorf("%s: %d entries: %v", format, len(ids), ids)
			}
			before := tree(t, w.www)
			if err := os.Remove(filepath.Join(w.www, ".archives")); err != nil {
				t.Fatal(err)
			}
			if err := Publish(context.Background(), w.options, w.Streams("")); err != nil {
				t.Fatal(format, err)
			}
			if after := tree(t, w.www); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%s: made anew, it is\n%v\nnot\n%v", format, after, before)
			}
		}
	}
}

// Pages contain only the selected entries, and the run after a killed one completes it.
func TestPagedKilled(t *testing.T) {
	for _, format := range []string{"atom", "rss", "json"} {
		w := newWorld(t, 4, format)
		w.options.PerPage, w.options.Paged, w.options.Archive = 2, w.www, ""
		for range 9 {
			w.add()
		}
		w.run()
		before := tree(t, w.www)
		for _, s := range w.entries[:5] {
			w.vanish(s)
		}
		w.add()
		start(t, w.www, before)
		w.run()
		want, all := tree(t, w.www), w.writes
		if names := len(want); names != 4 || all != 5 { // lock, three pages written, two removed
			t.Fatalf("%s: %d files, %d changes", format, names, all)
		}
		disk := *w.options.disk
		for k := range all {
			start(t, w.www, before)
			n := 0
			kill := func(do func() error) error {
				if n++; n > k {
					return errKilled
				}
				return do()
			}
			w.options.disk.write = func(path string, data []byte) error { return kill(func() error { return disk.write(path, data) }) }
			w.options.disk.remove = func(path string) error { return kill(func() error { return disk.remove(path) }) }
			if err := Publish(context.Background(), w.options, w.Streams("")); !errors.Is(err, errKilled) {
				t.Fatalf("%s: %d: %v", format, k, err)
			}
			*w.options.disk = disk
			w.run()
			if got := tree(t, w.www); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: killed at change %d, it is\n%v\nnot\n%v", format, k, got, want)
			}
		}
	}
}

// The name of the subscription document is the end of its URL, as a server decodes it.
func TestDocumentName(t *testing.T) {
	w := newWorld(t, 6, "atom")
	for self, want := range map[string]string{
		"/a/index.atom": "index.atom", "/my%20feed": "my feed", "/%C3%BC.xml": "ü.xml", "/archive-1.atom": "archive-1.atom", "/archive-0001.xml": "archive-0001.xml",
	} {
		w.www = t.TempDir()
		w.options.Archive, w.options.Self = w.www, "http://me:pw@e.example"+self
		w.run()
		names := []string{}
		for name, text := range tree(t, w.www) {
			names = append(names, name)
			if strings.Contains(text, "pw") {
				t.Errorf("%s contains the password", name)
			}
		}
		if !slices.Contains(names, want) || len(names) != 3 {
			t.Errorf("%s: %q", self, names)
		}
	}
}
