package spool

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// The spool returns a stored document, unless its file is damaged.
func TestSpool(t *testing.T) {
	d := must.Get(lektordir.Create(filepath.Join(t.TempDir(), "d"), nil))
	s, err := Of(d, "0123")
	if err != nil {
		t.Fatal(err)
	}
	doc := &Spooled{URL: "http://x.example/1", Final: "http://x.example/2", ContentType: "text/xml; charset=x", Body: []byte("\n\n<a>\x00\n")}
	if got, err := s.Get(doc.URL); got != nil || err != nil {
		t.Error(got, err)
	}
	if err := s.Put(doc); err != nil {
		t.Fatal(err)
	}
	got, err := s.Get(doc.URL)
	if err != nil || got == nil || got.Final != doc.Final || got.ContentType != doc.ContentType || !bytes.Equal(got.Body, doc.Body) {
		t.Fatalf("%+v, %v", got, err)
	}
	data, _ := os.ReadFile(s.path(doc.URL))
	for i := range data {
		for _, bad := range [][]byte{data[:i], append(append(bytes.Clone(data[:i]), data[i]^1), data[i+1:]...)} {
			if err := os.WriteFile(s.path(doc.URL), bad, 0o666); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Get(doc.URL); got != nil || err != nil {
				t.Fatalf("byte %d: %+v, %v", i, got, err)
			}
		}
	}
	if fi, err := os.Stat(d.Join("etc/fetch/spool/0123")); err != nil || fi.Mode().Perm() != 0o700 {
		t.Error(fi.Mode(), err)
	}
	if err := s.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(d.Join("etc/fetch/spool/0123")); !os.IsNotExist(err) {
		t.Error(err)
	}
	if err := os.Symlink(t.TempDir(), d.Join("etc/fetch/spool/0123")); err != nil {
		t.Fatal(err)
	}
	if _, err := Of(d, "0123"); err == nil {
		t.Error("SpoolOf follows a link out of the lektor-dir")
	}
}
