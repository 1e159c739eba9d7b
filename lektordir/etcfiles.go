package lektordir

import (
	"errors"
	"os"
	"strings"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/textfile"
	"github.com/lektordir/lektor/internal/tsv"
)

// etcDir is the directory of an entry in which older versions wrote each extra to a file of its
// own. If an entry has no file extras, its extras are read from there.
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

// etcExtras returns the files in etc/ of an entry as lines of a file extras, or nil if it has
// none. It skips files that cannot be read, and returns their errors, joined.
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

// appendExtras appends the text of the file to b, as lines of the file extras.
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
