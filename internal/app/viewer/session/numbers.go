package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// The last list and the current entry are files in etc/view. Each user has separate files for
// each host and terminal:
//
//	etc/view/list.HOST.UID.TERMINAL      paths of entries, one a line
//	etc/view/current.HOST.UID.TERMINAL   the path of the entry shown last
//
// Paths are relative to the lektor-dir, as they were when the list was made, and in the form of
// package textfile.

// stateFile returns the path of a state file of this user, host and terminal.
func (v *Session) stateFile(name string) string {
	return v.Dir.Join("etc", "view", name+"."+owner()+"."+v.terminal)
}

// owner returns the part of the name that stands for the host and the user.
func owner() string {
	host, _ := os.Hostname()
	return entryname.EscapeHost(host) + "." + strconv.Itoa(os.Getuid())
}

// writeState writes a state file.
func (v *Session) writeState(name string, data []byte) error {
	if err := atomicfile.NoLinks(v.Dir.Path(), "etc/view"); err != nil {
		return err
	}
	path := v.stateFile(name)
	return atomicfile.InDir(path, func() error { return atomicfile.WriteUnsynced(path, data) })
}

// maxState is the maximum size of a state file in bytes, enough for ten million entries.
const maxState = 1 << 30

// readState returns the lines of a state file of this terminal. If there is none, it reads the
// user's newest one of any terminal, so that a command of an editor or a window manager uses the
// list on the screen.
func (v *Session) readState(name string) ([]string, error) {
	data, err := atomicfile.Read(v.stateFile(name), maxState)
	if errors.Is(err, fs.ErrNotExist) {
		dir := v.Dir.Join("etc", "view")
		ents, _ := os.ReadDir(dir)
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
		data, err = atomicfile.Read(filepath.Join(dir, newest.Name()), maxState)
	}
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		lines[i] = textfile.UnescapeName([]byte(line))
	}
	return lines[:len(lines)-1], err
}

// SaveList saves entries as the last list. It only warns if that fails.
func (v *Session) SaveList(list []*entrystore.Record) {
	var b bytes.Buffer
	for _, r := range list {
		b.WriteString(textfile.Escape(r.Ref.Path()) + "\n")
	}
	if err := v.writeState("list", b.Bytes()); err != nil {
		v.S.Report.Warn("the numbers cannot be used, because saving them failed: %v", err)
	}
}

// LastList returns the paths of the last list, nil if there is none.
func (v *Session) LastList() ([]string, error) {
	return atomicfile.Optional(v.readState("list"))
}

// SetCurrent saves the entry that "." refers to.
func (v *Session) SetCurrent(r lektordir.Ref) error {
	return v.writeState("current", []byte(textfile.Escape(r.Path())+"\n"))
}

// Current returns the path of the entry shown last, "" if there is none.
func (v *Session) Current() string {
	if lines, err := v.readState("current"); err == nil && len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// parseRange parses a range of numbers of a list of some size: 3, 2-5, 3-, -5, $ and 3-$. It reports false for other
// text, which is a name.
func parseRange(s string, size int) (from, to int, ok bool) {
	ok = s != "" && s != "-"
	end := func(s string, empty int) int {
		switch {
		case s == "":
			return empty
		case s == "$":
			return size
		}
		ok = ok && strings.Trim(s, "0123456789") == ""
		n, err := strconv.Atoi(s)
		if err != nil {
			n = 1 << 30 // too large, so that the error says so
		}
		return n
	}
	a, b, dash := strings.Cut(s, "-")
	from = end(a, 1)
	if to = from; dash {
		to = end(b, size)
	}
	return from, to, ok
}

// Names are the entries that the user named.
type Names struct {
	Args []string // paths, unique names, numbers, ranges, "."; "-" reads names from stdin
	Nul  bool     // names on stdin are separated by NUL
}

// Named yields the records of the entries that the user named, in that order, as often as they were named, until
// ctx ends. If an entry does not exist, it calls failed and continues.
func (v *Session) Named(ctx context.Context, n Names, failed func(error)) iter.Seq[*entrystore.Record] {
	return func(yield func(*entrystore.Record) bool) {
		one := func(ref lektordir.Ref, err error) (more bool) {
			switch {
			case ctx.Err() != nil:
				return false
			case err != nil:
				failed(err)
				return true
			}
			return yield(v.Record(ref))
		}
		list := sync.OnceValues(v.LastList)
		for name, err := range cmdline.ReadArgs(n.Args, v.S.In, n.Nul) {
			_, _, isNumber := parseRange(name, 0)
			switch {
			case err != nil:
			case name == ".":
				if name = v.Current(); name == "" {
					err = cmdline.Hint(errors.New("there is no current entry"),
						"\".\" is the entry that show or next showed last")
				}
			case isNumber:
				paths, bad := list()
				from, to, _ := parseRange(name, len(paths))
				if err = cmp.Or(bad, checkRange(name, from, to, paths)); err == nil {
					for n := from; n <= to; n++ {
						if !one(v.Resolve(paths[n-1], n)) {
							return
						}
					}
					continue
				}
				if _, other := v.Dir.Resolve(name); other == nil {
					err = nil // another program gave the entry such a name
				}
			}
			var ref lektordir.Ref
			if err == nil {
				ref, err = v.Resolve(name, 0)
			}
			if !one(ref, err) {
				return
			}
		}
	}
}

// checkRange returns an error if a list lacks a range. name is for errors.
func checkRange(name string, from, to int, list []string) error {
	size := len(list)
	switch {
	case list == nil:
		return cmdline.Hint(fmt.Errorf("%s: there is no list that this number refers to", name),
			"make one with lektor-view ls")
	case size == 0:
		return cmdline.Hint(fmt.Errorf("%s: the last list is empty", name),
			"list read entries too with lektor-view ls -a")
	case min(from, to) < 1 || max(from, to) > size:
		return cmdline.Hint(fmt.Errorf("%s: the last list goes from 1 to %d", name, size),
			"numbers are those of the last lektor-view ls")
	case from > to:
		return cmdline.Hint(fmt.Errorf("%s: the range is empty", name), "write %d-%d", to, from)
	}
	return nil
}
