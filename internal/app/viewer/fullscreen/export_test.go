package fullscreen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSaveEntry: the name of the file decides the form. A file is replaced only if that is asked
// for, and a program that fails leaves no file.
func TestSaveEntry(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1700000001.1.h", "title=Tea/Cake", "content=<p>words</p>", "type=text/html")
	l := f.adapter(1 << 30)
	refs, err := listAll(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	ref, dir := refs[0].Ref(), t.TempDir()
	if got := l.SaveName(t.Context(), ref, dir+"/"); got != filepath.Join(dir, "2023-11-15 Tea-Cake.txt") {
		t.Errorf("%s", got)
	}
	pages := func(script string) {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "lektor-pages"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	}
	pages(`echo "$*"`)
	for _, tc := range []struct{ name, want string }{
		{"a.txt", "Title: Tea/Cake\nFeed: Alpha\nDelivered: Wed, 15 Nov 2023"},
		{"a.html", "digest --full --dir " + f.Path + " " + ref.Path()},
		{"a.EML", "message --dir " + f.Path + " " + ref.Path()},
	} {
		path := filepath.Join(dir, tc.name)
		err := l.SaveEntry(t.Context(), ref, path, false)
		text, _ := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(text), tc.want) {
			t.Errorf("%s: %v %q", tc.name, err, text)
		}
	}
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, []byte("mine"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := l.SaveEntry(t.Context(), ref, path, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v", err)
	}
	if err := l.SaveEntry(t.Context(), ref, path, true); err != nil {
		t.Errorf("%v", err)
	}
	if text, _ := os.ReadFile(path); !strings.HasPrefix(string(text), "Title: ") {
		t.Errorf("%q", text)
	}
	pages("echo begin; echo no disk >&2; exit 1")
	if err := l.SaveEntry(t.Context(), ref, filepath.Join(dir, "b.html"), false); err == nil || err.Error() != "no disk" {
		t.Errorf("%v", err)
	}
	if err := l.SaveEntry(t.Context(), ref, filepath.Join(dir, "b.odt"), false); err == nil || !strings.Contains(err.Error(), ".txt, .html or .eml") {
		t.Errorf("%v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 3 {
		t.Errorf("%v", names)
	}
}
