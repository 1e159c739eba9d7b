package index_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestCheckMeanwhile: what comes, moves and goes while the index is compared is no
// difference; what was changed behind its back before is one.
func TestCheckMeanwhile(t *testing.T) {
	w := filled(t, 40)
	w.build()
	_, x := w.open()
	check := func(meanwhile func()) (problems []string, entries int) {
		t.Helper()
		once := false
		n, err := x.Check(context.Background(), func(done, total int) {
			if !once {
				once = true
				meanwhile()
			}
			if done > total {
				t.Errorf("%d of %d are compared", done, total)
			}
		}, func(p string) { problems = append(problems, p) })
		w.must(err)
		return problems, n
	}
	// The feeds are compared by their hashes.
	first, last := "http://a.example/", "http://b.example/"
	if testdir.Hash(first) > testdir.Hash(last) {
		first, last = last, first
	}
	found, n := check(func() {
		list, err := filepath.Glob(filepath.Join(w.dir.Path, "*", testdir.Hash(last), "[0-9]*"))
		w.must(err)
		w.must(os.RemoveAll(list[0]))
		w.must(os.Rename(list[1], list[1]+"F"))
		_, err = w.dir.Entry(last, "new", testdir.Unique(1700009000, 9000), "title=Came")
		w.must(err)
		_, err = w.dir.Feed("http://c.example/", "C")
		w.must(err)
		_, err = w.dir.Entry("http://c.example/", "new", testdir.Unique(1700009001, 9001), "title=Came, too")
		w.must(err)
	})
	if len(found) > 0 || n < 40 {
		t.Errorf("%d were compared: %q", n, found)
	}
	made, err := w.dir.Entry(last, "tmp", testdir.Unique(1700009002, 9002), "title=Whole")
	w.must(err)
	path := filepath.Join(w.dir.Path, "new", testdir.Hash(last), filepath.Base(made))
	// A rename in the step of the clock in which it was written would not be told from
	// that.
	w.must(os.Chtimes(made, time.Unix(1700009002, 0), time.Unix(1700009002, 0)))
	w.must(os.Rename(made, path))
	w.build()
	w.must(os.WriteFile(filepath.Join(path, "title"), []byte("Another\n"), 0o666))
	w.clock = func() time.Time { return time.Now().Add(time.Second) }
	_, x = w.open()
	rel, err := filepath.Rel(w.dir.Path, path)
	w.must(err)
	if found, _ = check(func() {}); len(found) != 1 || !strings.HasPrefix(found[0], rel+": its flags, date, title") {
		t.Errorf("got %q; want len(found) == 1 and strings.HasPrefix(found[0], rel+\": its flags, date, title\")", found)
	}
}

// TestClockJumps: an entry that is being copied file by file is looked at again when
// the clock has been set meanwhile, as long as nothing else says that time went by.
func TestClockJumps(t *testing.T) {
	for _, jump := range []time.Duration{0, 2 * time.Hour, -2 * time.Hour} {
		w := filled(t, 20)
		w.build()
		path, err := w.dir.Entry("http://a.example/", "new", testdir.Unique(1700009000, 9000), "title=Copied")
		w.must(err)
		look := func() []string { return w.same("title:copied", entrystore.Selection{All: true}) }
		look()
		w.clock = func() time.Time { return time.Now().Add(jump) }
		for range 3 {
			look()
		}
		w.must(os.WriteFile(filepath.Join(path, "author"), []byte("Late\n"), 0o666))
		if found := look(); len(found) != 1 || !strings.Contains(found[0], `"Late"`) {
			t.Errorf("%s: got %q; want len(found) == 1 and strings.Contains(found[0], `\"Late\"`)", jump, found)
		}
	}
}

// TestCheckFinds: of what is missing in the file, each is told of.
func TestCheckFinds(t *testing.T) {
	for _, tc := range []struct{ statement, says string }{
		{"DELETE FROM words WHERE rowid = 7", "some of its words are missing"},
		{"DELETE FROM vocab", "the vocabulary lacks a word of it"},
		{"UPDATE entry SET author = x'656c7365' WHERE id = 7", "its flags, date, title or other values differ"},
		{"UPDATE entry SET link = 9 WHERE id = 7", "its flags, date, title or other values differ"},
		{"UPDATE entry SET date = date + 1 WHERE id = 7", "its flags, date, title or other values differ"},
		{"UPDATE entry SET unread = 1 - unread WHERE id = 7", "its flags, date, title or other values differ"},
		{"UPDATE entry SET listed = 0 WHERE id = 7", "another version of it is shown"},
		{"DELETE FROM entry WHERE id = 7", "the index does not have it"},
	} {
		w := filled(t, 20)
		// Young entries would be read again.
		list, err := filepath.Glob(filepath.Join(w.dir.Path, "*", "*", "[0-9]*"))
		w.must(err)
		for _, path := range list {
			w.must(os.Chtimes(path, time.Unix(1700000000, 0), time.Unix(1700000000, 0)))
		}
		w.build()
		db, err := sql.Open("sqlite", "file:"+w.file())
		w.must(err)
		_, err = db.Exec(tc.statement)
		w.must(err)
		w.must(db.Close())
		_, x := w.open()
		var found []string
		_, err = x.Check(context.Background(), nil, func(p string) { found = append(found, p) })
		w.must(err)
		if !slices.ContainsFunc(found, func(p string) bool { return strings.HasSuffix(p, tc.says) }) {
			t.Errorf("%s: %q", tc.statement, found)
		}
	}
}
