package lektordir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/dirfs"
)

// extras checks the extras of an entry. Unknown extras are not a problem.
func (c *checker) extras(r Ref) error {
	rel := r.Path() + "/" + extrasFile.name
	data, err := dirfs.ReadFile(c.d.Join(rel))
	if err != nil {
		if isNotExist(err) {
			return c.etcFiles(r, nil)
		}
		return err
	}
	if err := c.etcFiles(r, data); err != nil {
		return err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return c.report(rel, "it is not UTF-8 without NUL", nil)
	}
	malformed := 0
	for l := range bytes.Lines(data) {
		if name, _, ok := bytes.Cut(l, []byte{'\t'}); !ok || len(name) == 0 {
			malformed++
		}
	}
	if malformed > 0 {
		return c.report(rel, fmt.Sprintf("%d of its lines are malformed: a line is a name, a tab and a value", malformed), nil)
	}
	return nil
}

// etcFiles checks the extras that an entry has as files in its etc/. extras is the data of its
// file extras, or nil if that does not exist.
func (c *checker) etcFiles(r Ref, extras []byte) error {
	old, err := etcExtras(c.d.abs(r))
	if err != nil || len(old) == 0 {
		return err
	}
	what := "its extras are files, as older versions wrote them"
	if extras != nil {
		have := map[string]bool{}
		for l := range bytes.Lines(extras) {
			have[string(bytes.TrimSuffix(l, []byte{'\n'}))] = true
		}
		for l := range bytes.Lines(old) {
			if !have[string(bytes.TrimSuffix(l, []byte{'\n'}))] {
				return nil // the files differ, so an interrupted conversion did not leave them
			}
		}
		what = "the file extras has the same as its files"
	}
	return c.report(r.Path()+"/"+etcDir, what, func() error { return c.convert(r, extras == nil, old) })
}

// convert removes the files in etc/ of an entry whose values are in its file extras. If write
// is true, it writes data to that file first. A viewer may move the entry meanwhile.
func (c *checker) convert(r Ref, write bool, data []byte) error {
	if err := c.d.fs.Inside(r.Place.String()+"/"+r.Feed, r.Path(), r.Path()+"/"+etcDir); err != nil {
		return err
	}
	root, err := os.OpenRoot(c.d.abs(r))
	if err != nil {
		return err
	}
	defer root.Close()
	if write {
		if err := writeIn(root, extrasFile.name, data); err != nil {
			return err
		}
	}
	for _, f := range etcFiles {
		if err := root.Remove(filepath.Join(etcDir, f.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Unknown files stay, and the directory with them.
	if dir, err := fs.ReadDir(root.FS(), etcDir); err != nil || len(dir) > 0 {
		return err
	}
	return root.Remove(etcDir)
}

// writeIn replaces a file in root atomically, and returns when it is durable.
func writeIn(root *os.Root, name string, data []byte) error {
	tmp := "." + name
	f, err := root.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		root.Remove(tmp)
		return err
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
