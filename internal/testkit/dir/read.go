package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Entry is an entry as it lies in a lektor-dir, read without package lektordir,
// for tests of what that does.
type Entry struct {
	Place  string // new or cur
	Feed   string // hash
	Name   string // of its directory
	Unique string // the part of Name before the flags
	Flags  string
	Files  map[string]string // see [Files]
}

// Entries reads the entries of a lektor-dir. The error joins what could not be read
// of them.
func Entries(dir string) ([]*Entry, error) {
	var all []*Entry
	paths, err := filepath.Glob(filepath.Join(dir, "[cn][ue][rw]", "*", "*"))
	bad := []error{err}
	for _, path := range paths {
		feed, name := filepath.Split(path)
		e := &Entry{Place: filepath.Base(filepath.Dir(filepath.Clean(feed))), Feed: filepath.Base(feed), Name: name}
		e.Unique, e.Flags, _ = strings.Cut(name, ";")
		e.Files, err = Files(path)
		all, bad = append(all, e), append(bad, err)
	}
	return all, errors.Join(bad...)
}

// Files reads the files below a directory, by their paths in it; of a symbolic
// link, where it leads.
func Files(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if e.Type()&fs.ModeSymlink != 0 {
			files[name], err = os.Readlink(path)
			return err
		}
		b, err := os.ReadFile(path)
		files[name] = string(b)
		return err
	})
	return files, err
}

// Programs builds programs, such as lektor-view, into a directory.
func Programs(to string, names ...string) error {
	args := []string{"build", "-o", to + "/"}
	for _, name := range names {
		args = append(args, "github.com/lektordir/lektor/cmd/"+name)
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
