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
	empty := 0
	for l := range bytes.Lines(data) {
		if name, _, ok := bytes.Cut(l, []byte{'\t'}); !ok || len(name) == 0 {
			empty++
		}
	}
	if empty > 0 {
		return c.report(rel, fmt.Sprintf("%d of its lines say nothing: a name, a tab and a value belong there", empty), nil)
	}
	return nil
}

// etcFiles looks at the extras that an entry has in its etc/; extras is the data of its
// file extras, nil if it has none.
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
				return nil // not what a conversion left behind
			}
		}
		what = "the file extras has the same as its files"
	}
	return c.report(r.Path()+"/"+etcDir, what, func() error { return c.convert(r, extras == nil, old) })
}

// convert writes the file extras of an entry, unless it is there, and removes the files of
// its etc/ that say the same. A viewer may move the entry meanwhile.
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
	// Files that nobody knows stay, and so does the directory then.
	if dir, err := fs.ReadDir(root.FS(), etcDir); err != nil || len(dir) > 0 {
		return err
	}
	return root.Remove(etcDir)
}

// writeIn writes a file of a directory whole, and returns when it is durable.
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
