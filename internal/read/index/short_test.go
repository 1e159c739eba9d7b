package index

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// TestShortFile cuts off the end of a file beside a journal: wherever it ends, the file is
// damaged, unless the journal has the rest.
func TestShortFile(t *testing.T) {
	ctx := context.Background()
	made := testdir.New(t)
	d, err := lektordir.Open(made.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := made.Feed("http://a.example/", "A"); err != nil {
		t.Fatal(err)
	}
	n := 0
	deliver := func(more int) {
		for range more {
			var text strings.Builder
			for i := range 300 {
				fmt.Fprintf(&text, "w%dx%dy ", n, i*7919%1009)
			}
			if _, err := made.Entry("http://a.example/", "new", testdir.Unique(1700000000+int64(n), n+1), "title=T", "content="+text.String()); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	x := New(d, Options{Cache: filepath.Join(t.TempDir(), "cache"), Budget: time.Hour, Warn: t.Errorf})
	deliver(60)
	if err := x.Build(ctx, nil); err != nil {
		t.Fatal(err)
	}
	held, err := x.open() // so that another session's close is not the last, and leaves the journal
	if err != nil {
		t.Fatal(err)
	}
	held.c.one("PRAGMA user_version")
	// The journal must have grown the file, or the loss of it cannot be seen.
	files := map[string][]byte{}
	last := 0 // offset of the newest first page in the journal
	for round := 0; round < 12 || last == 0 || pagesIn(files["-wal"][last+24:])*pageSize <= len(files[""]); round++ {
		if round == 100 {
			t.Fatal("the journal does not grow the file")
		}
		deliver(2)
		v, err := x.Look(ctx)
		if err != nil || v == nil {
			t.Fatal(v, err)
		}
		v.Close()
		for _, suffix := range []string{"", "-wal"} {
			if files[suffix], err = os.ReadFile(x.path + suffix); err != nil {
				t.Fatal(err)
			}
		}
		last = lastFirstPage(files["-wal"])
	}
	held.close()
	size := len(files[""])
	y := &Index{path: filepath.Join(t.TempDir(), "copy")}
	copied := func(end int) {
		_ = y.unlink()
		for suffix, data := range files {
			if suffix == "" {
				data = data[:end]
			}
			if err := os.WriteFile(y.path+suffix, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	copied(size)
	want := contents(y.path)
	if want == "" {
		t.Fatal("a file that is whole is not")
	}
	for end := 0; end < size; end += pageSize / 2 {
		copied(end)
		if got := contents(y.path); got != "" && got != want {
			t.Errorf("a file that lacks all from %d of %d bytes on has other rows", end, size)
		}
	}
	// A checkpoint writes the first page first, which has the number of pages. A kill then
	// leaves a file that is shorter.
	first := slices.Clone(files["-wal"][last+24 : last+frame])
	binary.LittleEndian.PutUint32(first[pageSize-4:], checksum(first, 0)) // as it is in the file
	copy(files[""], first)
	copied(size)
	if contents(y.path) != want {
		t.Error("a file whose end is in the journal is not whole")
	}
	files["-wal"] = files["-wal"][:32+frame]
	if copied(size); contents(y.path) != "" {
		t.Error("a file that has lost its journal is whole")
	}
}

// frame is the size of a page in a journal, with its header.
const frame = 24 + pageSize

// lastFirstPage returns the offset of the last frame of a journal that has the first page,
// 0 if none has.
func lastFirstPage(wal []byte) (last int) {
	for at := 32; at+frame <= len(wal); at += frame {
		if binary.BigEndian.Uint32(wal[at:]) == 1 {
			last = at
		}
	}
	return last
}

// pagesIn returns the number of pages of a file by its first page.
func pagesIn(first []byte) int { return int(binary.BigEndian.Uint32(first[28:])) }

// contents are all rows of all tables, "" where SQLite finds that something is wrong.
func contents(path string) string {
	c, err := connect(path)
	if err != nil {
		return ""
	}
	defer c.close()
	var all strings.Builder
	var tables []string
	for r := c.query("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"); r.next(); {
		tables = append(tables, r.text(0))
	}
	for _, table := range tables {
		for r := c.query("SELECT * FROM " + table); r.next(); {
			fmt.Fprintln(&all, table, r.values)
		}
	}
	if c.err != nil {
		return ""
	}
	return all.String()
}
