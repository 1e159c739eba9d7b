package viewer

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/lektordir"
)

// The last list and the current entry are files in etc/view, each user's and
// each terminal's own on each host:
//
//	etc/view/list.HOST.UID.TERMINAL      paths of entries, one a line
//	etc/view/current.HOST.UID.TERMINAL   the path of the entry shown last
//
// Paths are relative to the lektor-dir, and those of the moment of listing.

// stateFile gives the path of a file of this user and terminal.
func (v *viewer) stateFile(name string) string {
	return v.Dir.Join("etc", "view", name+"."+owner()+"."+v.terminal)
}

// owner names the user on this host.
func owner() string {
	host, _ := os.Hostname()
	return lektordir.EscapeHost(host) + "." + strconv.Itoa(os.Getuid())
}

// save writes a state file.
func (v *viewer) save(name string, from func(io.Writer) error) error {
	if err := v.Dir.Inside("etc/view"); err != nil {
		return err
	}
	path := v.stateFile(name)
	err := atomicfile.WriteUnsyncedFrom(path, from)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(path), 0o777); err == nil {
			err = atomicfile.WriteUnsyncedFrom(path, from)
		}
	}
	return err
}

// state opens a state file of this terminal. A process without a terminal, and a
// terminal that has none yet, take the one of this user that was written last:
// an editor's or a window manager's command means the list on the screen.
func (v *viewer) state(name string) (*os.File, error) {
	f, err := atomicfile.OpenRegular(v.stateFile(name))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	dir := v.Dir.Join("etc", "view")
	ents, derr := os.ReadDir(dir)
	if derr != nil {
		return nil, err
	}
	var newest os.FileInfo
	for _, e := range ents {
		if !strings.HasPrefix(e.Name(), name+"."+owner()+".") {
			continue
		}
		if fi, err := e.Info(); err == nil && (newest == nil || fi.ModTime().After(newest.ModTime())) {
			newest = fi
		}
	}
	if newest == nil {
		return nil, err
	}
	return atomicfile.OpenRegular(filepath.Join(dir, newest.Name()))
}

// saveList remembers entries as the last list; a failure is a warning.
func (v *viewer) saveList(list iter.Seq2[*entries.Record, error]) {
	v.savePaths(func(yield func(string, error) bool) {
		for r, err := range list {
			path := ""
			if err == nil {
				path = r.Ref.Path()
			}
			if !yield(path, err) {
				return
			}
		}
	})
}

// savePaths is [viewer.saveList] for paths.
func (v *viewer) savePaths(list iter.Seq2[string, error]) {
	err := v.save("list", func(w io.Writer) error {
		b := bufio.NewWriter(w)
		for path, err := range list {
			if err != nil {
				return err
			}
			_, _ = b.WriteString(path)
			_ = b.WriteByte('\n')
		}
		return b.Flush()
	})
	if err != nil {
		v.S.Report.Warn("the numbers cannot be used, they were not saved: %v", err)
	}
}

// those gives records that are in memory as a list.
func those(list []*entries.Record) iter.Seq2[*entries.Record, error] {
	return func(yield func(*entries.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// lastList is the last list, of which no more is in memory than is looked at.
type lastList struct {
	f     *os.File // nil if there was none
	count func() (int, error)
}

// list opens the last list.
func (v *viewer) list() (*lastList, error) {
	f, err := v.state("list")
	if errors.Is(err, fs.ErrNotExist) {
		f, err = nil, nil
	}
	l := &lastList{f: f}
	l.count = sync.OnceValues(func() (n int, err error) {
		for _, err = range l.paths(1) {
			n++
		}
		return n, err
	})
	return l, err
}

func (l *lastList) close() {
	if l.f != nil {
		_ = l.f.Close()
	}
}

// paths yields the paths from a number on. An error ends them.
func (l *lastList) paths(from int) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if l.f == nil {
			return
		}
		r := bufio.NewReaderSize(io.NewSectionReader(l.f, 0, math.MaxInt64), 64<<10)
		for n := 1; ; n++ {
			line, err := r.ReadSlice('\n')
			if err != nil && (err != io.EOF || len(line) == 0) {
				if err != io.EOF {
					yield("", err)
				}
				return
			}
			if n >= from && !yield(strings.TrimSuffix(string(line), "\n"), nil) {
				return
			}
		}
	}
}

// setCurrent remembers the entry that "." means.
func (v *viewer) setCurrent(r lektordir.Ref) error {
	return v.save("current", func(w io.Writer) error { _, err := io.WriteString(w, r.Path()+"\n"); return err })
}

// current gives the path of the entry shown last, "" if there is none.
func (v *viewer) current() string {
	f, err := v.state("current")
	if err != nil {
		return ""
	}
	l := &lastList{f: f}
	defer l.close()
	for path := range l.paths(1) {
		return path
	}
	return ""
}

// entryRange is a number or range of the last list as the user writes it; last
// stands for "$" and for what is left out after "-".
type entryRange struct{ from, to int }

const last = -1

// parseRange reads 3, 2-5, 3-, -5, $ and 3-$. What is none of these is a name.
func parseRange(s string) (entryRange, bool) {
	end := func(s string, empty int) (int, bool) {
		switch {
		case s == "":
			return empty, true
		case s == "$":
			return last, true
		case strings.Trim(s, "0123456789") != "":
			return 0, false
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			n = 1 << 30 // out of any range, which is what there is to say
		}
		return n, true
	}
	if s == "" || s == "-" {
		return entryRange{}, false
	}
	a, b, dash := strings.Cut(s, "-")
	from, ok := end(a, 1)
	if !ok {
		return entryRange{}, false
	}
	if !dash {
		return entryRange{from, from}, true
	}
	to, ok := end(b, last)
	return entryRange{from, to}, ok
}

// Names says which entries the user named.
type Names struct {
	Args []string // paths, unique names, numbers, ranges, "." and "-" for those on stdin
	Nul  bool     // names on stdin are separated by NUL
}

// named yields the entries that the user named, in that order, each once for
// every time it was named. An error stands for one that is not there, and does
// not end it.
func (v *viewer) named(n Names) iter.Seq2[lektordir.Ref, error] {
	return func(yield func(lektordir.Ref, error) bool) {
		open := sync.OnceValues(v.list)
		defer func() {
			if l, err := open(); err == nil {
				l.close()
			}
		}()
		for name, err := range command.ReadArgs(n.Args, v.S.In, n.Nul) {
			rg, isNumber := parseRange(name)
			switch {
			case err != nil:
			case name == ".":
				if name = v.current(); name == "" {
					err = command.Hint(errors.New("there is no current entry"), "\".\" is the entry that show or next showed last")
				}
			case isNumber:
				var lines *lastList
				if lines, err = open(); err == nil {
					rg, err = rg.in(name, lines)
				}
				if err == nil {
					var more bool
					if more, err = v.inRange(lines, rg, yield); !more {
						return
					}
				}
				if err == nil {
					continue
				}
			}
			var ref lektordir.Ref
			if err == nil {
				ref, err = v.Resolve(name, 0)
			}
			if !yield(ref, err) {
				return
			}
		}
	}
}

// inRange yields the entries of a range, and reports whether more are wanted.
func (v *viewer) inRange(list *lastList, rg entryRange, yield func(lektordir.Ref, error) bool) (more bool, err error) {
	n := rg.from - 1
	for path, err := range list.paths(rg.from) {
		if err != nil {
			return true, err
		}
		if n++; !yield(v.Resolve(path, n)) {
			return false, nil
		}
		if n == rg.to {
			break
		}
	}
	return true, nil
}

// in gives a range with the numbers that it has in a list.
func (rg entryRange) in(name string, list *lastList) (entryRange, error) {
	if list.f == nil {
		return rg, command.Hint(fmt.Errorf("there is no list that %s is a number of", name), "make one with lektor-view ls")
	}
	size, err := list.count()
	if err != nil {
		return rg, err
	}
	if size == 0 {
		return rg, command.Hint(fmt.Errorf("%s: the last list is empty", name), "list read entries too with lektor-view ls -a")
	}
	for _, end := range []*int{&rg.from, &rg.to} {
		if *end == last {
			*end = size
		}
		if *end < 1 || *end > size {
			return rg, command.Hint(fmt.Errorf("%s: the last list goes from 1 to %d", name, size), "numbers are those of the last lektor-view ls")
		}
	}
	if rg.from > rg.to {
		return rg, command.Hint(fmt.Errorf("%s: the range is empty", name), "write %d-%d", rg.to, rg.from)
	}
	return rg, nil
}
