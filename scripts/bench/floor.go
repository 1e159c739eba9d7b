package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/testkit/must"
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
func throughFloor(from *lektordir.Dir, to string) func() {
	hashes := must.Get(from.FeedHashes())
	feeds := make([]floorFeed, len(hashes))
	for i, h := range hashes {
		feeds[i] = loadFloor(from, h)
	}
	return func() {
		for _, dir := range []string{"", "/tmp", "/new", "/cur", "/src"} {
			must.Do(os.Mkdir(to+dir, 0o777))
		}
		// Each step for all feeds, and the disk in between.
		for i, step := range []func(*floorFeed, string){(*floorFeed).stage, (*floorFeed).record, (*floorFeed).deliver} {
			if i > 0 {
				inDir(to, func(fd int) { must.Do(syncDisk(fd)) })
			}
			parallel(len(feeds), func(i int) { step(&feeds[i], to) })
		}
	}
}

// loadFloor reads a feed into memory.
func loadFloor(from *lektordir.Dir, hash string) (f floorFeed) {
	f.hash = hash
	f.src = readFloor(from.Join("src", hash), "etc")
	f.journal = must.Get(os.ReadFile(from.Join("src", hash, "etc/fetch/seen")))
	f.files = readFloor(from.Join("new", hash), "")
	return f
}

// readFloor reads all files below base, but for the directory skip.
func readFloor(base, skip string) (files []floorFile) {
	seen := map[uint64]string{}
	must.Do(filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
		must.Do(err)
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
			must.Do(unix.Lstat(path, &st))
			if f.twin = seen[st.Ino]; f.twin == "" {
				seen[st.Ino] = rel
			}
		}
		switch {
		case f.twin != "":
		case e.Type() == fs.ModeSymlink:
			f.data = []byte(must.Get(os.Readlink(path)))
		case e.Type().IsRegular():
			f.data = must.Get(os.ReadFile(path))
		}
		files = append(files, f)
		return nil
	}))
	return files
}

// stage makes the feed, and its entries below tmp.
func (f *floorFeed) stage(to string) {
	for _, dir := range []string{"/src/" + f.hash, "/src/" + f.hash + "/etc", "/src/" + f.hash + "/etc/fetch", "/tmp/" + f.hash} {
		must.Do(unix.Mkdir(to+dir, 0o777))
	}
	inDir(to+"/src/"+f.hash, func(fd int) { putFloor(fd, f.src) })
	inDir(to+"/tmp/"+f.hash, func(fd int) { putFloor(fd, f.files) })
}

// record writes the journal.
func (f *floorFeed) record(to string) {
	must.Do(writeFloor(unix.AT_FDCWD, to+"/src/"+f.hash+"/etc/fetch/seen", f.journal))
}

// deliver moves the entries into new.
func (f *floorFeed) deliver(to string) {
	must.Do(unix.Rename(to+"/tmp/"+f.hash, to+"/new/"+f.hash))
}

func putFloor(fd int, files []floorFile) {
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
		must.That(err, "%s", f.name)
	}
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
func inDir(dir string, f func(fd int)) {
	fd := must.Get(unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))
	defer unix.Close(fd)
	f(fd)
}
