package sharer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If a document is cut off, the items before the cut are used and missing items are not
// deletions. When the document is whole again, all of it is read, even if its beginning has
// not changed.
func TestCutOffDocument(t *testing.T) {
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
		if err := Sync(t.Context(), SyncOptions{Common: b.common()}, b.streams()); err != errRemote {
			t.Fatalf("%v", err)
		}
		for _, name := range []string{subsFile, completeFile} {
			line := fmt.Sprintf("%s: line %d: ", name, bytes.Count(whole[name][:len(whole[name])*3/5], []byte("\n"))+1)
			if text := b.err.String(); !strings.Contains(text, line) || !strings.Contains(text, "before this error are used, and the document is read again") {
				t.Errorf("want %q: %s", line, text)
			}
		}
		if read, subscribed := counts(); read < 5 || read >= entries || subscribed < 3 || subscribed >= 7 {
			t.Errorf("half documents: %d of %d entries are read, and %d of 7 feeds subscribed: %s", read, entries, subscribed, b.state())
		}
	}
	// b publishes its part of the set, and a does not mistake the rest for deletions.
	before := a.state()
	a.sync()
	if s := a.state(); s != before {
		t.Errorf("half of its own document came back as an edit: %s\nnot %s", s, before)
	}
	for name, data := range whole {
		if now, err := os.ReadFile(filepath.Join(target, own, name)); err != nil || len(now) >= len(data) {
			continue // a has written the document anew
		}
		if err := os.WriteFile(filepath.Join(target, own, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.sync()
	if read, subscribed := counts(); read != entries || subscribed != 7 {
		t.Errorf("the documents are whole again, but %d entries are read and %d feeds subscribed: %s", read, subscribed, b.state())
	}
	rounds(2, a, b)
	same(t, a, b)
	if c := a.conflicts() + b.conflicts(); c != "" {
		t.Errorf("conflicts: %s", c)
	}
}

// If the store of this machine is damaged, nothing is read, applied or published until the
// user removes the store. Then the machine restores its set, tombstones included, from the
// other machines and from its own published documents.
func TestOwnSetBroken(t *testing.T) {
	for what, spoil := range map[string]func([]byte) []byte{
		"cut in the middle":       func(b []byte) []byte { return b[:len(b)/4] },
		"a letter":                func(b []byte) []byte { return bytes.Replace(b, []byte("Entry 1"), []byte("Entry 7"), 1) },
		"another form":            func(b []byte) []byte { return bytes.Replace(b, []byte("lektor-share 2"), []byte("lektor-share 9"), 1) },
		"empty":                   func([]byte) []byte { return nil },
		"cut in the last commit":  func(b []byte) []byte { return b[:len(b)-5] },
		"without the last commit": func(b []byte) []byte { return b[:bytes.LastIndex(b[:len(b)-12], []byte("\n= "))+12] },
		"a page without contents": func(b []byte) []byte { return append(make([]byte, 4096), b[4096:]...) },
	} {
		t.Run(what, func(t *testing.T) {
			all, target := machines(t, "a b")
			a, b := all[0], all[1]
			for _, m := range all {
				for f := range 9 {
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
			path := filepath.Join(a.Path, shareDir, storeFile)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			own := a.endpoint()
			published, _ := os.ReadFile(filepath.Join(target, own, partialFile))
			if err := os.WriteFile(path, spoil(data), 0o600); err != nil {
				t.Fatal(err)
			}
			err = Sync(t.Context(), SyncOptions{Common: a.common()}, a.streams())
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%v", err)
			}
			if now, _ := os.ReadFile(filepath.Join(target, own, partialFile)); !bytes.Equal(now, published) || a.state() != state {
				t.Error("a sync with a damaged store changed something")
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

// Bytes after the last block, as after a kill or on a full disk, are ignored, and the next
// commit truncates them.
func TestTornStore(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	fetched(1, 40, all...)
	rounds(2, a, b)
	a.mark(1, 1, "F", "")
	a.sync()
	path := filepath.Join(a.Path, shareDir, storeFile)
	before, err := os.ReadFile(path)
	number, nerr := os.ReadFile(path + commitsSuffix)
	if err := errors.Join(err, nerr); err != nil {
		t.Fatal(err)
	}
	want := a.set()
	a.mark(1, 2, "F", "")
	a.sync()
	after, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(after, before) || len(after) == len(before) {
		t.Fatalf("the store is no log: %v", err)
	}
	for n := len(before); n < len(after); n++ {
		if err := errors.Join(os.WriteFile(path, after[:n], 0o600), os.WriteFile(path+commitsSuffix, number, 0o600)); err != nil {
			t.Fatal(err)
		}
		if s := a.set(); s != want {
			t.Fatalf("cut off after %d of %d bytes it has\n%s\nwant\n%s", n, len(after), s, want)
		}
	}
	a.sync()
	if s := a.set(); s == want {
		t.Error("the edit is lost")
	}
	rounds(1, b, a)
	same(t, a, b)
}

// A store that lacks commits of this machine is refused, wherever it ends: otherwise flags
// that the user cleared since would be set again. Without a store, the machine restores its
// set from the others.
func TestStoreThatLacksCommits(t *testing.T) {
	all, _ := machines(t, "a b")
	a, b := all[0], all[1]
	fetched(1, 4, all...)
	rounds(2, a, b)
	path := filepath.Join(b.Path, shareDir, storeFile)
	for n := range 3 {
		a.mark(1, n, "F", "")
		b.mark(1, n, "S", "")
		rounds(1, a, b)
	}
	b.mark(1, 0, "", "F")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	state, ends := b.state(), 0
	for n := 0; n < len(whole); n++ {
		if n < len(whole)-1 && !bytes.HasPrefix(whole[n:], []byte("\n= ")) {
			continue
		}
		ends++
		if err := os.WriteFile(path, whole[:n+1], 0o600); err != nil {
			t.Fatal(err)
		}
		status, text := b.talk()
		if n == len(whole)-1 {
			if status != 0 {
				t.Errorf("whole: %d, %s", status, text)
			}
			break
		}
		if status != 1 || !strings.Contains(text, "hint: remove it") || b.state() != state {
			t.Errorf("cut off after %d of %d bytes: %d, %s", n+1, len(whole), status, text)
		}
	}
	if ends < 8 {
		t.Errorf("only %d blocks", ends)
	}
	rounds(2, a, b)
	same(t, a, b)
	if a.has(1, 0, 'F') {
		t.Error("a flag that the user removed is set again")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	a.mark(1, 3, "F", "")
	rounds(2, a, b)
	same(t, a, b)
	if !b.has(1, 3, 'F') || b.has(1, 0, 'F') {
		t.Errorf("%s", b.state())
	}
}
