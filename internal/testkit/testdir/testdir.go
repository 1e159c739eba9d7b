// Package testdir writes lektor-dirs for tests as a shell script would: file by file, by the
// specification, without lektor's own code.
package testdir

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Dir is a lektor-dir of a test.
type Dir struct {
	Path string
}

// New makes an empty lektor-dir that is removed after the test.
func New(t testing.TB) *Dir {
	t.Helper()
	d := &Dir{filepath.Join(t.TempDir(), "lektor")}
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	return d
}

// Create makes tmp, new, cur and src.
func (d *Dir) Create() error {
	for _, sub := range []string{"tmp", "new", "cur", "src"} {
		if err := os.MkdirAll(filepath.Join(d.Path, sub), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// Hash returns the directory name of the feed with an id.
func Hash(id string) string {
	return fmt.Sprintf("%x", sha1.Sum([]byte(id)))
}

// Feed writes a feed with an id and a name, and more files, and returns its hash.
func (d *Dir) Feed(id, name string, files ...string) (hash string, err error) {
	hash = Hash(id)
	files = append([]string{"id=" + id, "name=" + name}, files...)
	return hash, write(filepath.Join(d.Path, "src", hash), files)
}

// Entry writes an entry of the feed with an id. where is "new" or "cur", and name the name of its
// directory. Files are written as name=text, with a newline at the end. By default, content is
// empty, and title and id are derived from the name. A name alone omits that file, and
// +name=fields is a line of the file extras. Entry returns the path of the entry.
func (d *Dir) Entry(feedID, where, name string, files ...string) (path string, err error) {
	path = filepath.Join(d.Path, where, Hash(feedID), name)
	unique, _, _ := strings.Cut(name, ";")
	files = append([]string{"title=Entry " + unique, "id=urn:x:" + unique, "content="}, files...)
	if err := write(path, files); err != nil {
		return "", err
	}
	if slices.Contains(files, "feed") {
		return path, nil
	}
	return path, os.Symlink("../../../src/"+Hash(feedID), filepath.Join(path, "feed"))
}

// write writes files, given as name=text, into a directory. If a name occurs twice, the last counts.
func write(dir string, files []string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, f := range files {
		name, text, ok := strings.Cut(f, "=")
		path := filepath.Join(dir, name)
		if extra, is := strings.CutPrefix(name, "+"); is {
			if err := add(filepath.Join(dir, "extras"), extra+"\t"+text+"\n"); err != nil {
				return err
			}
			continue
		}
		if !ok {
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// add appends to a file.
func add(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TakeReplaces removes the line "replaces" from the file extras, and returns its field. Two runs
// that deliver the same entries differ in this line.
func TakeReplaces(extras string) (rest, replaces string) {
	for l := range strings.Lines(extras) {
		if r, ok := strings.CutPrefix(l, "replaces\t"); ok {
			replaces = strings.TrimSuffix(r, "\n")
			continue
		}
		rest += l
	}
	return rest, replaces
}

// Unique returns a unique name, as lektor-fetch makes it, of an entry delivered at a Unix time.
// Entries with the same identity are versions of one entry.
func Unique(seconds int64, identity int) string {
	return fmt.Sprintf("%d.M1P1Q1I%016x.host", seconds, identity)
}

// Entry is an entry of a lektor-dir, read without package lektordir, for tests of that package.
type Entry struct {
	Place  string // new or cur
	Feed   string // hash
	Name   string // the name of its directory
	Unique string // the part of Name before the flags
	Flags  string
	Files  map[string]string // see [Files]
}

// Entries reads the entries of a lektor-dir. The error joins the errors of entries that cannot be
// read.
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

// Places returns where the entries of a lektor-dir are, in one line: for each the second of its delivery, and new or
// the flags. The error is that of [Entries].
func Places(dir string) (string, error) {
	entries, err := Entries(dir)
	var list []string
	for _, e := range entries {
		second, _, _ := strings.Cut(e.Unique, ".")
		place := e.Place
		if place == "cur" {
			place = strings.TrimPrefix(e.Flags, "2,")
		}
		list = append(list, second+":"+place)
	}
	slices.Sort(list)
	return strings.Join(list, " "), err
}

// Files reads the files below a directory, by their relative paths. The text of a symbolic link
// is its target.
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

// programsVariable names a directory of programs that are built already. make test sets it.
// Otherwise each package of tests links all programs.
const programsVariable = "LEKTOR_PROGRAMS"

// Programs puts programs, such as lektor-view, into a directory; without names, all programs.
func Programs(to string, names ...string) error {
	if from := os.Getenv(programsVariable); from != "" {
		return programsOf(from, to, names)
	}
	args := []string{"build", "-o", to + "/"}
	for _, name := range names {
		args = append(args, commands+name)
	}
	if len(names) == 0 {
		args = append(args, commands+"...")
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

const commands = "github.com/lektordir/lektor/cmd/"

func programsOf(from, to string, names []string) error {
	if len(names) == 0 {
		found, err := filepath.Glob(filepath.Join(from, "lektor-*"))
		if err != nil || len(found) == 0 {
			return fmt.Errorf("there are no programs in %s=%s", programsVariable, from)
		}
		for _, path := range found {
			names = append(names, filepath.Base(path))
		}
	}
	for _, name := range names {
		path := filepath.Join(from, name)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%s: %w", programsVariable, err)
		}
		if err := os.Symlink(path, filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

// binDir is the directory of [Bin], or "" before the first call.
var binDir string

var build = sync.OnceValue(func() (err error) {
	if binDir, err = os.MkdirTemp("", "lektor-bin-"); err != nil {
		return err
	}
	return Programs(binDir)
})

// Bin returns a directory with all programs. It is the same for all tests of a package, which
// must run in [Main].
func Bin(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds programs")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return binDir
}

// Main runs tests with a PATH that has no installed program of lektor. They may use [Bin].
func Main(m *testing.M) {
	show := hideInstalled()
	code := m.Run()
	show()
	if binDir != "" {
		os.RemoveAll(binDir)
	}
	os.Exit(code)
}

// hideInstalled sets PATH, so that tests find only programs that they build, and returns a function
// that removes what it made. A directory that has a program of lektor is replaced by one with links
// to its other programs, since it may also have the shell.
func hideInstalled() (show func()) {
	var made, path []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if found, _ := filepath.Glob(filepath.Join(dir, "lektor-*")); len(found) > 0 && filepath.IsAbs(dir) {
			to, err := os.MkdirTemp("", "lektor-path-")
			if err == nil {
				err = linkOthers(dir, to)
			}
			if err != nil {
				panic(err)
			}
			made, dir = append(made, to), to
		}
		path = append(path, dir)
	}
	os.Setenv("PATH", strings.Join(path, string(filepath.ListSeparator)))
	return func() {
		for _, dir := range made {
			os.RemoveAll(dir)
		}
	}
}

// linkOthers makes links in a directory to all files of another one but programs of lektor.
func linkOthers(from, to string) error {
	files, err := os.ReadDir(from)
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "lektor-") {
			err = errors.Join(err, os.Symlink(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())))
		}
	}
	return err
}
