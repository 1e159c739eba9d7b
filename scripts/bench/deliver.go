package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/lektordir"
)

// Delivery alone is measured by two programs that are this one run again: both
// have the entries of a lektor-dir in memory and write them to a new one, one
// through the package lektordir, the other by the system calls that cannot be
// saved: the floor.

// deliverArg is the first argument of such a run; the others are the way, the
// lektor-dir to copy and the one to make.
const deliverArg = "-deliver"

// deliveries are the two ways.
var deliveries = map[string]func(from *lektordir.Dir, to string) (func() error, error){
	"lektordir": throughLektordir,
	"floor":     throughFloor,
}

// delivered is what such a run prints.
type delivered struct {
	Nanoseconds int64
}

// deliverChild is main of such a run.
func deliverChild(args []string) error {
	if len(args) != 3 || deliveries[args[0]] == nil {
		return fmt.Errorf("usage: %s WAY FROM TO", deliverArg)
	}
	from, err := lektordir.Open(args[1], nil)
	if err != nil {
		return err
	}
	run, err := deliveries[args[0]](from, args[2])
	if err != nil {
		return err
	}
	runtime.GC()
	unix.Sync()
	start := time.Now()
	if err := run(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(delivered{time.Since(start).Nanoseconds()})
}

// deliver runs one of the ways in a process of its own.
func deliver(way, from, to string) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, deliverArg, way, from, to)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("delivery by %s: %w", way, err)
	}
	var d delivered
	if err := json.Unmarshal(out, &d); err != nil {
		return 0, err
	}
	return time.Duration(d.Nanoseconds), nil
}

// deliveries measures both ways, by turns, with what is in from, and gives the
// best time of each.
func (o options) deliveries(from, tmp string) (map[string]time.Duration, error) {
	best := map[string]time.Duration{}
	for round := range min(o.rounds, 2) { // each makes a third of a million files
		for _, way := range []string{"floor", "lektordir"} {
			d, err := deliver(way, from, filepath.Join(tmp, fmt.Sprintf("%d-%s", round, way)))
			if err != nil {
				return nil, err
			}
			if best[way] == 0 || d < best[way] {
				best[way] = d
			}
		}
	}
	return best, nil
}

// parallel calls f for each of n things, on all processors.
func parallel(n int, f func(i int) error) error {
	work := make(chan int, n)
	for i := range n {
		work <- i
	}
	close(work)
	var wg sync.WaitGroup
	errs := make(chan error, runtime.GOMAXPROCS(0))
	for range cap(errs) {
		wg.Go(func() {
			for i := range work {
				if err := f(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// throughLektordir delivers as a fetcher does.
func throughLektordir(from *lektordir.Dir, to string) (func() error, error) {
	type feed struct {
		about *lektordir.Feed
		items []lektordir.Item
	}
	hashes, err := from.FeedHashes()
	if err != nil {
		return nil, err
	}
	feeds := make([]feed, len(hashes))
	byHash := map[string]*feed{}
	for i, h := range hashes {
		about, err := from.ReadFeed(h)
		if err != nil {
			return nil, err
		}
		feeds[i].about = about
		byHash[h] = &feeds[i]
	}
	refs, err := from.List(context.Background(), lektordir.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		e, err := from.ReadEntry(r, lektordir.AllFields)
		if err != nil {
			return nil, err
		}
		f := byHash[r.Feed]
		f.items = append(f.items, lektordir.Item{Entry: *e, GUID: e.ID, Text: string(e.Content)})
	}
	return func() error {
		return library(to, len(feeds), func(i int) (*lektordir.Feed, []lektordir.Item) { return feeds[i].about, feeds[i].items })
	}, nil
}

// library makes a lektor-dir of n feeds, as a fetcher does that fetches them all
// for the first time.
func library(dir string, n int, feed func(i int) (*lektordir.Feed, []lektordir.Item)) error {
	d, err := lektordir.Create(dir, nil)
	if err != nil {
		return err
	}
	w, err := d.NewWriter(lektordir.WriterOptions{Delay: 250 * time.Millisecond})
	if err != nil {
		return err
	}
	var pending sync.WaitGroup
	failed := make(chan error, n)
	err = parallel(n, func(i int) error {
		about, items := feed(i)
		t, err := w.Begin(lektordir.FeedHash(about.ID))
		if err != nil {
			return err
		}
		if err := t.PutFeed(about); err != nil {
			return err
		}
		if _, err := t.Stage(context.Background(), lektordir.Document{Items: items}); err != nil {
			return err
		}
		pending.Add(1)
		t.Commit(func(err error) {
			defer pending.Done()
			t.Close()
			if err != nil {
				failed <- err
			}
		})
		return nil
	})
	if err != nil {
		return err
	}
	w.Flush()
	pending.Wait()
	if err := w.Close(); err != nil {
		return err
	}
	close(failed)
	return <-failed
}

// throughFloor makes the same files with nothing around it: no locks, no checks,
// names known beforehand, one group for all of it, with the two syncs.
func throughFloor(from *lektordir.Dir, to string) (func() error, error) {
	type file struct {
		name string
		data []byte // of a link: where it leads
		mode fs.FileMode
	}
	type feed struct {
		hash    string
		src     []file
		journal []byte
		entries []string
		files   []file // of the entries, each after the directory that it is in
	}
	hashes, err := from.FeedHashes()
	if err != nil {
		return nil, err
	}
	feeds := make([]feed, len(hashes))
	read := func(base string, skip string) ([]file, error) {
		var files []file
		err := filepath.WalkDir(base, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel := strings.TrimPrefix(strings.TrimPrefix(path, base), "/")
			if rel == "" {
				return nil
			}
			if rel == skip {
				return fs.SkipDir
			}
			f := file{name: rel, mode: e.Type()}
			switch {
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
	for i, h := range hashes {
		f := &feeds[i]
		f.hash = h
		if f.src, err = read(from.Join("src", h), "etc"); err != nil {
			return nil, err
		}
		if f.journal, err = os.ReadFile(from.Join("src", h, "etc/fetch/seen")); err != nil {
			return nil, err
		}
		if f.files, err = read(from.Join("new", h), ""); err != nil {
			return nil, err
		}
		for _, file := range f.files {
			if file.mode.IsDir() && !strings.Contains(file.name, "/") {
				f.entries = append(f.entries, file.name)
			}
		}
	}
	write := func(dir int, name string, data []byte) error {
		fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o666)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.Write(fd, data)
		return err
	}
	// in calls f with a descriptor of a directory.
	in := func(dir string, f func(fd int) error) error {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return f(fd)
	}
	put := func(fd int, files []file) error {
		for _, f := range files {
			var err error
			switch f.mode.Type() {
			case fs.ModeDir:
				err = unix.Mkdirat(fd, f.name, 0o777)
			case fs.ModeSymlink:
				err = unix.Symlinkat(string(f.data), fd, f.name)
			default:
				err = write(fd, f.name, f.data)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.name, err)
			}
		}
		return nil
	}
	return func() error {
		for _, dir := range []string{"", "/tmp", "/new", "/cur", "/src"} {
			if err := os.Mkdir(to+dir, 0o777); err != nil {
				return err
			}
		}
		err := parallel(len(feeds), func(i int) error {
			f := feeds[i]
			for _, dir := range []string{"/src/" + f.hash, "/src/" + f.hash + "/etc", "/src/" + f.hash + "/etc/fetch", "/tmp/" + f.hash, "/new/" + f.hash} {
				if err := unix.Mkdir(to+dir, 0o777); err != nil {
					return err
				}
			}
			if err := in(to+"/src/"+f.hash, func(fd int) error { return put(fd, f.src) }); err != nil {
				return err
			}
			return in(to+"/tmp/"+f.hash, func(fd int) error { return put(fd, f.files) })
		})
		if err != nil {
			return err
		}
		if err := in(to, syncDisk); err != nil {
			return err
		}
		err = parallel(len(feeds), func(i int) error {
			return write(unix.AT_FDCWD, to+"/src/"+feeds[i].hash+"/etc/fetch/seen", feeds[i].journal)
		})
		if err != nil {
			return err
		}
		if err := in(to, syncDisk); err != nil {
			return err
		}
		return parallel(len(feeds), func(i int) error {
			for _, name := range feeds[i].entries {
				rel := "/" + feeds[i].hash + "/" + name
				if err := unix.Rename(to+"/tmp"+rel, to+"/new"+rel); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}
