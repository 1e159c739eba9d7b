package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/lektordir"
)

// floorFile is a file as the floor makes it.
type floorFile struct {
	name string
	data []byte // of a symbolic link: where it leads
	mode fs.FileMode
	twin string // another name of the same file, which is there already
}

// floorFeed is a feed with all its files.
type floorFeed struct {
	hash    string
	src     []floorFile
	journal []byte
	files   []floorFile // of the entries, each after the directory that it is in
}

// throughFloor makes the same files with nothing around it: no locks, no checks,
// names known beforehand, one group for all of it, with the two syncs.
func throughFloor(from *lektordir.Dir, to string) (func() error, error) {
	hashes, err := from.FeedHashes()
	if err != nil {
		return nil, err
	}
	feeds := make([]floorFeed, len(hashes))
	for i, h := range hashes {
		if feeds[i], err = loadFloor(from, h); err != nil {
			return nil, err
		}
	}
	return func() error {
		for _, dir := range []string{"", "/tmp", "/new", "/cur", "/src"} {
			if err := os.Mkdir(to+dir, 0o777); err != nil {
				return err
			}
		}
		// Each step for all feeds, and the disk in between.
		for i, step := range []func(*floorFeed, string) error{(*floorFeed).stage, (*floorFeed).record, (*floorFeed).deliver} {
			if i > 0 {
				if err := inDir(to, syncDisk); err != nil {
					return err
				}
			}
			if err := parallel(len(feeds), func(i int) error { return step(&feeds[i], to) }); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// loadFloor reads a feed into memory.
func loadFloor(from *lektordir.Dir, hash string) (f floorFeed, err error) {
	f.hash = hash
	if f.src, err = readFloor(from.Join("src", hash), "etc"); err != nil {
		return f, err
	}
	if f.journal, err = os.ReadFile(from.Join("src", hash, "etc/fetch/seen")); err != nil {
		return f, err
	}
	if f.files, err = readFloor(from.Join("new", hash), ""); err != nil {
		return f, err
	}
	return f, nil
}

// readFloor reads all files below base, but for the directory skip.
func readFloor(base, skip string) ([]floorFile, error) {
	var files []floorFile
	seen := map[uint64]string{}
	err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(strings.TrimPrefix(path, base), "/")
		switch rel {
		case "":
			return nil
		case skip:
			return fs.SkipDir
		}
		f := floorFile{name: rel, mode: e.Type()}
		if !e.IsDir() {
			var st unix.Stat_t
			if err := unix.Lstat(path, &st); err != nil {
				return err
			}
			if f.twin = seen[st.Ino]; f.twin == "" {
				seen[st.Ino] = rel
			}
		}
		switch {
		case f.twin != "":
		case e.Type() == fs.ModeSymlink:
			link, lerr := os.Readlink(path)
			f.data, err = []byte(link), lerr
		case e.Type().IsRegular():
			f.data, err = os.ReadFile(path)
		}
		files = append(files, f)
		return err
	})
	return files, err
}

// stage makes the feed, and its entries below tmp.
func (f *floorFeed) stage(to string) error {
	for _, dir := range []string{"/src/" + f.hash, "/src/" + f.hash + "/etc", "/src/" + f.hash + "/etc/fetch", "/tmp/" + f.hash} {
		if err := unix.Mkdir(to+dir, 0o777); err != nil {
			return err
		}
	}
	if err := inDir(to+"/src/"+f.hash, func(fd int) error { return putFloor(fd, f.src) }); err != nil {
		return err
	}
	return inDir(to+"/tmp/"+f.hash, func(fd int) error { return putFloor(fd, f.files) })
}

// record writes the journal.
func (f *floorFeed) record(to string) error {
	return writeFloor(unix.AT_FDCWD, to+"/src/"+f.hash+"/etc/fetch/seen", f.journal)
}

// deliver moves the entries into new.
func (f *floorFeed) deliver(to string) error {
	return unix.Rename(to+"/tmp/"+f.hash, to+"/new/"+f.hash)
}

func putFloor(fd int, files []floorFile) error {
	for _, f := range files {
		var err error
		switch {
		case f.twin != "":
			err = unix.Linkat(fd, f.twin, fd, f.name, 0)
		case f.mode.IsDir():
			err = unix.Mkdirat(fd, f.name, 0o777)
		case f.mode&fs.ModeSymlink != 0:
			err = unix.Symlinkat(string(f.data), fd, f.name)
		default:
			err = writeFloor(fd, f.name, f.data)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

func writeFloor(dir int, name string, data []byte) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, data)
	return err
}

// inDir calls f with a descriptor of a directory.
func inDir(dir string, f func(fd int) error) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return f(fd)
}
