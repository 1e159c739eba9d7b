package lektordir

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/textfile"
	"github.com/lektordir/lektor/internal/tsv"
)

// etcDir is the directory in which lektor-dir(5) once put each extra of an entry into a
// file of its own. Entries without the file extras are still read so.
const etcDir = "etc"

// etcFile is a file of that directory.
type etcFile struct {
	name, extra string
	lines       bool // each of its lines is one extra
	fields      bool // tabs separate the fields of a line
}

var etcFiles = []etcFile{
	{name: "link", extra: "link"},
	{name: "updated", extra: "updated"},
	{name: "categories", extra: "category", lines: true},
	{name: "enclosures", extra: "enclosure", lines: true, fields: true},
	{name: "comments", extra: "comments"},
	{name: "pubdate-raw", extra: "pubdate-raw"},
	{name: "replaces", extra: "replaces"},
	{name: "image", extra: "image"},
	{name: "language", extra: "language"},
	{name: "contributors", extra: "contributor", lines: true},
	{name: "source", extra: "source", fields: true},
	{name: "duration", extra: "duration"},
	{name: "episode", extra: "episode"},
	{name: "season", extra: "season"},
	{name: "summary", extra: "summary"},
}

// etcExtras returns the lines that the file extras of an entry would have, made from the
// files of its etc/; nil if there are none. A file that cannot be read is left out and is
// part of the error.
func etcExtras(entry string) ([]byte, error) {
	if fi, err := os.Stat(entry + "/" + etcDir); err != nil || !fi.IsDir() {
		if isNotExist(err) {
			err = nil
		}
		return nil, err
	}
	var b []byte
	var bad error
	for _, f := range etcFiles {
		data, err := dirfs.ReadFile(entry + "/" + etcDir + "/" + f.name)
		if err != nil {
			if !isNotExist(err) {
				bad = errors.Join(bad, err)
			}
			continue
		}
		b = f.appendExtras(b, textfile.Clean(textfile.Line(data)))
	}
	return b, bad
}

// appendExtras adds the text of the file as lines of the file extras.
func (f etcFile) appendExtras(b []byte, text string) []byte {
	all := []string{text}
	if f.lines {
		all = strings.Split(text, "\n")
	}
	for _, l := range all {
		fields := []string{l}
		if f.fields {
			fields = strings.Split(l, "\t")
		}
		if strings.Join(fields, "") == "" {
			continue
		}
		b = append(b, f.extra...)
		for _, field := range fields {
			b = tsv.Append(append(b, '\t'), field)
		}
		b = append(b, '\n')
	}
	return b
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
