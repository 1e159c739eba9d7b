package sharer

import (
	"path/filepath"
	"testing"
	"time"
)

// Actions since the last commit count as long as the machine runs: a power cut may have
// undone their renames. One that a kill interrupted counts if what it renames has changed.
func TestActionsSinceTheLastCommit(t *testing.T) {
	const feed = "39875aee1d270e42dd987cdfd5cad33c40fa37b1"
	for _, c := range []struct {
		name       string
		end        func(*store) // of the action
		boot, path string       // afterwards
		want       string
	}{
		{"done", func(st *store) { st.finish(true) }, "one", "a", "F"},
		{"done, and the power was cut", func(st *store) { st.finish(true) }, "two", "a", ""},
		{"failed", func(st *store) { st.finish(false) }, "one", "a", ""},
		{"killed before the rename", func(*store) {}, "one", "a", ""},
		{"killed behind the rename", func(*store) {}, "one", "b", "F"},
		{"killed behind the rename, and the power was cut", func(*store) {}, "two", "b", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			open := func(boot string) *store {
				return &store{path: filepath.Join(dir, storeFile), root: dir, boot: boot, step: func() {}, sync: func() error { return nil }}
			}
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			st, s := open("one"), newSet("me", now)
			base, _, err := st.load(s)
			if err != nil {
				t.Fatal(err)
			}
			base.feed(feed).entries["0000000000000001"] = baseEntry{}
			if err := st.commit(s, base, false); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "a")
			if err := writeFile(path, emptyDocument); err != nil {
				t.Fatal(err)
			}
			if err := st.begin("a", baseEntry{flags: "F"}.appendTo([]byte("of "+feed+"\n"), "0000000000000001")); err != nil {
				t.Fatal(err)
			}
			if c.path != "a" {
				rename(t, path, filepath.Join(dir, c.path))
			}
			c.end(st)
			if err := st.flush(); err != nil {
				t.Fatal(err)
			}
			st.close()
			// The next run says the same, whether it commits or not, and so does one behind it.
			for n := range 3 {
				st, s := open(c.boot), newSet("me", now)
				base, there, err := st.load(s)
				if err != nil || !there {
					t.Fatal(there, err)
				}
				if got := base[feed].entries["0000000000000001"].flags; got != c.want {
					t.Errorf("run %d: the baseline has %q, want %q", n, got, c.want)
				}
				if n == 1 {
					if err := st.commit(s, base, false); err != nil {
						t.Fatal(err)
					}
				}
				st.close()
			}
		})
	}
}
