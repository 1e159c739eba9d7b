package lektordir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"
)

// If a viewer moves an entry while it is read, ReadEntry returns all of its files or
// fs.ErrNotExist.
func TestMovedWhileItIsRead(t *testing.T) {
	d, _ := newDir(t)
	whole := &Entry{Title: "T", ID: "urn:x:1", Content: []byte("<p>x\n"), Author: "A", PubDate: time.Unix(1_700_000_000, 0).UTC(), Type: "text/html", Link: "http://a.example/"}
	for name, text := range map[string]string{"title": "T\n", "id": "urn:x:1\n", "content": "<p>x\n", "author": "A\n", "pubdate": "2023-11-14T22:13:20Z\n", "type": "text/html\n", "extras": "link\thttp://a.example/\n"} {
		path := d.Join("tmp", "entry", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, place := range []string{"new", "cur"} {
		if err := os.MkdirAll(d.Join(place, feedHash), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	at := d.Join("tmp", "entry")
	for i := range 300 {
		ref := Ref{Feed: feedHash, Unique: fmt.Sprintf("17%08d.1.h", i), Place: New}
		if err := os.Rename(at, d.abs(ref)); err != nil {
			t.Fatal(err)
		}
		at = d.Join("cur", feedHash, ref.Unique+";2,S")
		want := *whole
		fields := AllFields &^ FieldFeed
		if i%4 > 1 { // optional fields only
			fields &^= Obligatory
			want.Title, want.ID, want.Content = "", "", nil
		}
		var reading sync.WaitGroup
		begun := make(chan struct{})
		reading.Go(func() {
			for n := 0; ; n++ {
				if n == i%3 {
					close(begun)
				}
				got, err := d.ReadEntry(ref, fields)
				if err != nil {
					if !isNotExist(err) {
						t.Errorf("%d: %v", i, err)
					}
					return
				}
				if !reflect.DeepEqual(got, &want) {
					t.Errorf("%d: read as %+v", i, got)
					return
				}
			}
		})
		<-begun
		err := os.Rename(d.abs(ref), at)
		reading.Wait()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// If an entry is moved and moved back while it is read, for example by an undo, it is read whole.
func TestMovedAndBack(t *testing.T) {
	d, _ := newDir(t)
	ref := Ref{Feed: feedHash, Unique: "1700000000.1.h", Place: New}
	to := Ref{Feed: feedHash, Unique: ref.Unique, Place: Cur, Info: "2,S"}
	for _, name := range []string{"title", "id", "content"} {
		path := filepath.Join(d.abs(ref), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(d.abs(to)), 0o777); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		var reading sync.WaitGroup
		begun := make(chan struct{})
		reading.Go(func() {
			close(begun)
			for range 3 {
				e, err := d.ReadEntry(ref, FieldTitle|FieldID|FieldContent)
				if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && e.ID != "x" {
					t.Errorf("%v %v", e, err)
				}
			}
		})
		<-begun
		for _, move := range [][2]Ref{{ref, to}, {to, ref}} {
			if err := os.Rename(d.abs(move[0]), d.abs(move[1])); err != nil {
				t.Fatal(err)
			}
		}
		reading.Wait()
	}
}
