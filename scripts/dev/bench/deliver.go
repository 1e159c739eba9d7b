//go:build linux

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/dir/stage"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/lektordir"
)

// Delivery alone is measured by two programs, which are this program run again. Both hold the
// entries of a lektor-dir in memory and write them to a new one: one by package lektordir, the
// other by the bare system calls that are necessary, the floor.

// deliverArg is the first argument of such a run. The others are the name of the way, the
// lektor-dir to copy and the one to make.
const deliverArg = "-deliver"

var deliveries = map[string]func(from *lektordir.Dir, to string) func(){"lektordir": throughLektordir,
	"floor": throughFloor}

// deliver measures both ways, with feeds that lektor-fetch has fetched.
func (b *bench) deliver() {
	ways := b.packages("lektordir")
	if sizes["large"] == 0 || ways == nil {
		return
	}
	s := serve(sizes["large"], sizes["entries"], sizes["bytes"])
	defer s.Close()
	us := b.ours("lektor-fetch")[0]
	take(setupLektor(us, us.dir, s.urls)())
	// Each round makes a third of a million files.
	g := group{what: fmt.Sprintf("delivery alone, %d × %d", sizes["large"], sizes["entries"]), unit: "entries",
		n: sizes["large"] * sizes["entries"], rounds: min(b.rounds, 3)}
	from := filepath.Join(us.dir, "feeds")
	for _, w := range ways {
		w.once = func(w *way, _ int) measurement {
			return w.timed(deliverArg, "lektordir", from, filepath.Join(b.place(), "feeds"))
		}
	}
	b.compare(g, append(ways, &way{name: "floor"}), func(w *way, _ int) measurement {
		return w.timed(deliverArg, "floor", from, filepath.Join(b.place(), "feeds"))
	})
}

// deliverChild is the main function of such a run.
func deliverChild(args []string) {
	run := deliveries[args[0]](must.Get(lektordir.Open(args[1], nil)), args[2])
	runtime.GC()
	unix.Sync()
	timeOf(run)
}

// throughLektordir returns a function that delivers like a fetcher.
func throughLektordir(from *lektordir.Dir, to string) func() {
	type feed struct {
		about *lektordir.Feed
		items []stage.Item
	}
	hashes := must.Get(from.FeedHashes())
	feeds := make([]feed, len(hashes))
	byHash := map[string]*feed{}
	for i, h := range hashes {
		feeds[i].about = must.Get(from.ReadFeed(h))
		byHash[h] = &feeds[i]
	}
	for _, r := range must.Get(from.List(context.Background(), lektordir.ListOptions{})) {
		e := must.Get(from.ReadEntry(r, lektordir.AllFields))
		f := byHash[r.Feed]
		f.items = append(f.items, itemOf(*e))
	}
	return func() {
		deliver(to, len(feeds), func(i int) (*lektordir.Feed, []stage.Item) { return feeds[i].about, feeds[i].items })
	}
}

// floorFile is a file that the floor makes.
type floorFile struct {
	name string
	data []byte // content; the target of a symbolic link
	mode fs.FileMode
	twin string // an existing name of the same file, to link to
}

// floorFeed is a feed with all its files.
type floorFeed struct {
	hash    string
	src     []floorFile
	journal []byte
	files   []floorFile // files of the entries, each after its directory
}

// throughFloor returns a function that makes the same files by bare calls: without locks and
// checks, with known names, in one group, with the two syncs.
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
		// Each step is done for all feeds, with a sync in between.
		for i, step := range []func(*floorFeed, string){(*floorFeed).stage, (*floorFeed).record, (*floorFeed).deliver} {
			if i > 0 {
				inDir(to, func(fd int) { must.Do(unix.Syncfs(fd)) })
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

// readFloor reads all files below base, except in the directory skip.
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
	for _, dir := range []string{"/src/" + f.hash, "/src/" + f.hash + "/etc", "/src/" + f.hash + "/etc/fetch", "/tmp/" +
		f.hash} {
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
