package settings

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// FullText reports whether the entries of a feed get the articles of their pages, by the setting
// src/$feed/etc/fulltext. It fails if that file exists and cannot be read, because an entry that is
// delivered without its article would never get it.
func FullText(d *lektordir.Dir, hash string) (bool, error) {
	line, err := atomicfile.Line(d.Join("src", hash, feedfiles.PathFullText))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return strings.TrimSpace(line) == "on", nil
}

// Paused reports whether the user has paused a feed, so that it is requested only if the user names it.
func Paused(d *lektordir.Dir, hash string) bool {
	line, err := atomicfile.Line(d.Join("src", hash, feedfiles.PathPaused))
	return err == nil && !strings.EqualFold(strings.TrimSpace(line), "off")
}

// Categories returns the categories of a feed, from src/$feed/etc/categories.
func Categories(d *lektordir.Dir, hash string) []string {
	list, _ := ReadCategories(d, hash)
	return list
}

// ReadCategories returns the categories, and an error if the file exists and cannot be read.
func ReadCategories(d *lektordir.Dir, hash string) (out []string, err error) {
	data, err := atomicfile.Read(filepath.Join(d.Join("src", hash), feedfiles.PathCategories), feedfiles.MaxSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSpace(l); l != "" && !slices.Contains(out, l) {
			out = append(out, l)
		}
	}
	return out, nil
}

// SetCategories writes the categories of a feed; an empty list removes the file.
func SetCategories(d *lektordir.Dir, hash string, categories []string, write func(string, []byte) error) error {
	var lines []string
	for _, c := range categories {
		if c = feedfiles.OneLine(c); c != "" {
			lines = append(lines, c)
		}
	}
	return feedfiles.In(d, hash, "").RecordBy(write, atomicfile.Remove, filepath.Base(feedfiles.PathCategories),
		lines...)
}

// InCategory reports whether category, a path of folders, is one of categories or a parent of one,
// ignoring case. Every feed is in "".
func InCategory(categories []string, category string) bool {
	return category == "" || slices.ContainsFunc(categories, func(c string) bool {
		return strings.EqualFold(c, category) || len(c) > len(category) && c[len(category)] == '/' &&
			strings.EqualFold(c[:len(category)], category)
	})
}
