package sharer

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was read whole of a document counts, though it breaks off; what is missing in it
// is as it was; and when it is whole again, all of it counts, though nothing at its
// beginning has changed since.
func TestHalfOfIt(t *testing.T) {
	all, target := machines(t, "a b")
	a, b := all[0], all[1]
	const entries = 20
	for _, m := range all {
		m.subscribe(1, "Folder")
		for n := range entries {
			m.deliver(1, n)
		}
	}
	rounds(1, a)
	for n := range entries {
		a.mark(1, n, "S", "")
	}
	for n := range 6 {
		a.subscribe(10+n, "Folder")
	}
	a.sync()
	own := a.endpoint()
	whole := map[string][]byte{}
	for _, name := range documents {
		path := filepath.Join(target, own, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		whole[name] = data
		half := data[:len(data)*3/5]
		if err := os.WriteFile(path, half, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	counts := func() (read, subscribed int) {
		s := b.state()
		return strings.Count(s, " S\n"), strings.Count(s+"\n", "http://feed1")
	}
	for range 2 {
		if err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams()); err != remote {
			t.Fatalf("%v", err)
		}
		for _, name := range []string{subsFile, completeFile} {
			line := fmt.Sprintf("%s: line %d: ", name, bytes.Count(whole[name][:len(whole[name])*3/5], []byte("\n"))+1)
			if text := b.err.String(); !strings.Contains(text, line) || !strings.Contains(text, "before that count, and it is read again") {
				t.Errorf("want %q: %s", line, text)
			}
		}
		if read, subscribed := counts(); read < 5 || read >= entries || subscribed < 3 || subscribed >= 7 {
			t.Errorf("of half of the documents %d of %d are read, and %d of 7 subscribed to: %s", read, entries, subscribed, b.state())
		}
	}
	// b publishes what it has, and a does not take it for an edit.
	before := a.state()
	a.sync()
	if s := a.state(); s != before {
		t.Errorf("half of its own document came back as an edit: %s\nnot %s", s, before)
	}
	for name, data := range whole {
		if now, err := os.ReadFile(filepath.Join(target, own, name)); err != nil || len(now) >= len(data) {
			continue // a wrote it anew
		}
		if err := os.WriteFile(filepath.Join(target, own, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.sync()
	if read, subscribed := counts(); read != entries || subscribed != 7 {
		t.Errorf("whole again, %d are read, and %d subscribed to: %s", read, subscribed, b.state())
	}
	rounds(2, a, b)
	same(t, a, b)
	if c := a.conflicts() + b.conflicts(); c != "" {
		t.Errorf("conflicts: %s", c)
	}
}

// The own set that is broken is no set that half is missing of: nothing is read,
// applied or published until the user has removed it; and then the machine has again
// what it had, tombstones too, from the others and from what it published itself.
func TestOwnSetBroken(t *testing.T) {
	for _, name := range documents {
		t.Run(name, func(t *testing.T) {
			all, target := machines(t, "a b")
			a, b := all[0], all[1]
			for _, m := range all {
				for f := range 4 {
					m.subscribe(f, "Folder")
					m.deliver(f, 1)
				}
			}
			a.mark(1, 1, "FS", "")
			rounds(2, a, b)
			a.mark(2, 1, "S", "")
			a.unsubscribe(3)
			rounds(1, a)
			set, state := a.set(), a.state()
			path := filepath.Join(a.Path, shareDir, name)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			own := a.endpoint()
			published, _ := os.ReadFile(filepath.Join(target, own, name))
			if err := os.WriteFile(path, data[:len(data)/2], 0o600); err != nil {
				t.Fatal(err)
			}
			err = Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams())
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "line ") {
				t.Errorf("%v", err)
			}
			if now, _ := os.ReadFile(filepath.Join(target, own, name)); !bytes.Equal(now, published) || a.state() != state {
				t.Error("something was done with half of a set")
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			a.sync()
			if s := a.state(); s != state {
				t.Errorf("without it:\n%s\nwant\n%s", s, state)
			}
			if s := a.set(); s != set {
				t.Errorf("the set is\n%s\nand was\n%s", s, set)
			}
			rounds(2, b, a)
			same(t, a, b)
			if c := a.conflicts() + b.conflicts(); c != "" {
				t.Errorf("conflicts: %s", c)
			}
		})
	}
}

// The index is a help, and no more: lost, cut off, or of another document, it is made
// anew, and what it says is what the document says.
func TestIndex(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	fetched(1, 40, all...)
	for n := range 40 {
		a.mark(1, n, "S", "")
	}
	rounds(2, a, b)
	index, complete := filepath.Join(a.Path, shareDir, indexFile), filepath.Join(a.Path, shareDir, completeFile)
	good, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(complete)
	if err != nil {
		t.Fatal(err)
	}
	want := a.set()
	for what, spoil := range map[string]func() error{
		"lost":    func() error { return os.Remove(index) },
		"cut off": func() error { return os.WriteFile(index, good[:len(good)/2], 0o600) },
		"empty":   func() error { return os.WriteFile(index, nil, 0o600) },
		"a digit": func() error {
			return os.WriteFile(index, bytes.Replace(good, []byte(" S "), []byte(" T "), 1), 0o600)
		},
		"another document": func() error {
			// By hand, as of another title: nothing stands where it stood.
			return os.WriteFile(complete, bytes.Replace(document, []byte("Entries read"), []byte("What was read"), 1), 0o600)
		},
		"the same length": func() error {
			return os.WriteFile(complete, bytes.Replace(document, []byte("Entries read"), []byte("ENTRIES read"), 1), 0o600)
		},
	} {
		if err := os.WriteFile(index, good, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(complete, document, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if s := a.set(); s != want {
			t.Errorf("%s: the set is\n%s\nand was\n%s", what, s, want)
		}
		a.sync()
		if s := a.set(); s != want {
			t.Errorf("%s: after a sync the set is\n%s\nand was\n%s", what, s, want)
		}
		// And it is made anew.
		h, err := a.common().begin(a.streams())
		if err != nil {
			t.Fatal(err)
		}
		data, _ := os.ReadFile(complete)
		now, _ := os.ReadFile(index)
		if !h.states.readIndex(data, now) {
			t.Errorf("%s: there is no index again", what)
		}
		h.end()
	}
}
