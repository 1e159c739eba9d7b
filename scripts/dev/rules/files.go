package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// quoted matches a word in backquotes. named matches those that name a file or directory of the
// project: by its path, or by a name with an extension of sources.
var (
	quoted = regexp.MustCompile("`([^`\\s]+)`")
	named  = regexp.MustCompile(`^((cmd|docs|feedconv|internal|lektordir|man|scripts)/.*|[^/]+\.(go|md|html|css|[157]))$`)
)

// missing returns a line for each file that a page names and that does not exist. A name without a
// directory may be that of a file anywhere in the project, but in a row of a table that names
// directories only in these. Braces and stars match as in a shell.
func missing(root, page string) (found []string, err error) {
	var paths []string
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		rel, _ := filepath.Rel(root, p)
		paths = append(paths, rel)
		return err
	})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	for line := range strings.Lines(string(text)) {
		var names, places []string
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if named.MatchString(m[1]) {
				names = append(names, unbraced(strings.TrimSuffix(m[1], "/"))...)
			}
		}
		for _, name := range names {
			if dir := path.Dir(name); dir != "." && path.Ext(name) != "" {
				places = append(places, dir)
			} else if dir != "." {
				places = append(places, name)
			}
		}
		if !strings.HasPrefix(line, "|") {
			places = nil
		}
		for _, name := range names {
			if !slices.ContainsFunc(paths, func(p string) bool { return matches(name, p, places) }) {
				found = append(found, fmt.Sprintf("%s: there is no %s, where the text has it", page, name))
			}
		}
	}
	return found, err
}

// matches reports whether a name means a path. A name without a directory means a file below one of
// places, or any if there are none.
func matches(name, p string, places []string) bool {
	if strings.Contains(name, "/") {
		matched, _ := path.Match(name, p)
		return matched
	}
	return p == name || path.Base(p) == name && (len(places) == 0 ||
		slices.ContainsFunc(places, func(place string) bool {
			for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
				if matched, _ := path.Match(place, dir); matched {
					return true
				}
			}
			return false
		}))
}

// unbraced expands the first braces of a pattern.
func unbraced(pattern string) []string {
	before, rest, ok := strings.Cut(pattern, "{")
	choices, after, closed := strings.Cut(rest, "}")
	if !ok || !closed {
		return []string{pattern}
	}
	var all []string
	for choice := range strings.SplitSeq(choices, ",") {
		all = append(all, before+choice+after)
	}
	return all
}

// maxWords is the maximum number of words in a cell of the table that says where to change what. A place that needs
// more explanation has it in a comment, or is simplified.
const maxWords = 25

// wordy returns a line for each row of the last table of a page whose second cell has too many words.
func wordy(page, text string) (found []string) {
	_, table, _ := strings.Cut(text, "\n## Where to change what\n")
	for row := range strings.Lines(table) {
		what, cell, ok := strings.Cut(strings.Trim(row, "| \n"), " | ")
		if n := len(strings.Fields(cell)); ok && n > maxWords {
			found = append(found, fmt.Sprintf("%s: the cell after %q has %d words; the limit is %d", page, what, n, maxWords))
		}
	}
	return found
}
