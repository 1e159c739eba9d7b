package fetcher

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/atomicfile"
)

// push records how a feed tells of its updates, in src/$feed/etc/push/, for
// those who listen: cloud (the attributes of each cloud element in a line,
// separated by tabs: domain, port, path, registerProcedure, protocol), hub and
// self (a URL a line).
func (r *Runner) push(hash string, feed *feedconv.Feed) error {
	var cloud, hub, self []string
	for _, c := range feed.Clouds {
		port := ""
		if c.Port != 0 {
			port = strconv.Itoa(c.Port)
		}
		cloud = append(cloud, strings.Join([]string{oneField(c.Domain), port, oneField(c.Path), oneField(c.RegisterProcedure), oneField(c.Protocol)}, "\t"))
	}
	for _, l := range feed.Links {
		switch strings.ToLower(l.Rel) {
		case "hub":
			hub = append(hub, oneField(l.Href))
		case "self":
			self = append(self, oneField(l.Href))
		}
	}
	if err := r.Dir.InsideSrc(hash, "push"); err != nil {
		return err
	}
	dir := r.Dir.SrcEtc(hash, "push")
	return errors.Join(record(dir, "cloud", cloud), record(dir, "hub", hub), record(dir, "self", self))
}

// record makes a file hold lines, and touches nothing when it does already.
func record(dir, name string, lines []string) error {
	path := filepath.Join(dir, name)
	old, err := atomicfile.Read(path, atomicfile.MaxLine)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text := strings.Join(lines, "\n")
	switch {
	case text == "" && err != nil, err == nil && string(old) == text+"\n":
		return nil
	case text == "":
		return os.Remove(path)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return atomicfile.WriteUnsynced(path, []byte(text+"\n"))
}

// oneField makes text fit for a field between tabs.
func oneField(s string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(s, "\x00", "")), " ")
}
