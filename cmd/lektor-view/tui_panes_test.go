package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTUICommandWithoutEntry: a user's command without a template runs in the feeds pane, and one
// with a template does not.
func TestTUICommandWithoutEntry(t *testing.T) {
	t.Parallel()
	d := readerDir(t, false)
	if err := os.MkdirAll(filepath.Join(d.Path, "etc/view"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "etc/view/keys"), []byte("x spawn echo it ran\ny spawn echo {{.title}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := read(t, d, 100, 20, "")
	r.see(t, `three 2`)
	r.Keys("x")
	r.see(t, `^it ran`)
	r.Keys("y")
	r.see(t, `choose an entry first`)
}

// TestTUIPageFollows: the entry beside the list is the one under the cursor. It stays unread
// until it is opened.
func TestTUIPageFollows(t *testing.T) {
	t.Parallel()
	r := read(t, readerDir(t, false), 160, 20, "")
	r.see(t, `three 2`)
	r.Keys("Enter", "Enter") // open the list, then the newest entry
	r.see(t, `Text of 9, `)
	r.place(t, 9, "cur;2,S")
	r.Keys("BTab")
	r.Keys("j")
	r.see(t, `Text of 8, `)
	r.gone(t, `Text of 9, `)
	r.Keys("j")
	r.see(t, `Text of 7, `)
	r.place(t, 8, "new")
	r.place(t, 7, "new")
	r.Keys("Enter")
	r.place(t, 7, "cur;2,S")
}

// TestTUITwins: feeds with the same name are shown with their hosts, or with more of their URLs.
func TestTUITwins(t *testing.T) {
	t.Parallel()
	d := readerDir(t, false)
	for _, id := range []string{"http://one.example/", "http://two.example/", "http://same.example/a", "http://same.example/b"} {
		name := "Twins"
		if strings.Contains(id, "same") {
			name = "Others"
		}
		if _, err := d.Feed(id, name); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Entry(id, "new", "1700000100.1.h", "title=x"); err != nil {
			t.Fatal(err)
		}
	}
	r := read(t, d, 160, 30, "")
	r.see(t, `Twins +one.example`)
	r.see(t, `Twins +two.example`)
	r.see(t, `Others +same.example/a`)
	r.see(t, `Others +same.example/b`)
	r.see(t, `Alpha {10}`)
}
