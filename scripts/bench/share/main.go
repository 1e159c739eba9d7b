// Share measures lektor-share: the first synchronisation of so many marks, one without
// news, one after a single change, and a peer that reads them.
package main

import (
	"crypto/sha1"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	n := flag.Int("n", 100_000, "marks")
	flag.Parse()
	if err := run(*n); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(n int) error {
	work, err := os.MkdirTemp("", "lektor-share-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	mine, theirs := filepath.Join(work, "mine"), filepath.Join(work, "theirs")
	for i, dir := range []string{mine, theirs} {
		if err := fill(dir, n, i == 0); err != nil {
			return err
		}
		if err := share(dir, "", "init", filepath.Join(work, "sync")); err != nil {
			return err
		}
	}
	fmt.Printf("%d marks of entries\n", n)
	for _, s := range []struct {
		dir, what string
		before    func() error
	}{
		{mine, "first sync", nil},
		{mine, "nothing new", nil},
		{mine, "one change", func() error { return flagOne(mine) }},
		{theirs, "a peer that reads all", nil},
		{mine, "one change more", func() error { return flagOne(mine) }},
		{theirs, "a peer that reads it", nil},
	} {
		if s.before != nil {
			if err := s.before(); err != nil {
				return err
			}
		}
		if err := share(s.dir, s.what, "sync", "-q"); err != nil {
			return err
		}
	}
	found, err := filepath.Glob(filepath.Join(work, "sync/*/*.rss"))
	for _, path := range found {
		if fi, err := os.Stat(path); err == nil {
			fmt.Printf("%-24s %12d bytes\n", filepath.Base(path), fi.Size())
		}
	}
	return err
}

// share runs lektor-share, and tells what it took.
func share(dir, what string, args ...string) error {
	cmd := exec.Command("bin/lektor-share", args...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && what != "" {
		fmt.Printf("%-24s %8.2f s %8.2f s of processor %6d MiB\n", what, time.Since(begin).Seconds(),
			(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), usage.Maxrss>>10)
	}
	return nil
}

const perFeed = 1000

// fill makes a lektor-dir of n entries, read or not.
func fill(dir string, n int, read bool) error {
	for _, sub := range []string{"tmp", "new", "cur", "src"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			return err
		}
	}
	for i := range n {
		id := fmt.Sprintf("http://feed%d.example/", i/perFeed)
		hash := fmt.Sprintf("%x", sha1.Sum([]byte(id)))
		if i%perFeed == 0 {
			if err := write(filepath.Join(dir, "src", hash), map[string]string{"id": id, "name": "A feed", "etc/fetch/url": id}); err != nil {
				return err
			}
		}
		name := fmt.Sprintf("1503674340.M%dP1Q%dI%016x.host", i%1_000_000, i, i)
		place := "new"
		if read {
			place, name = "cur", name+";2,S"
		}
		entry := filepath.Join(dir, place, hash, name)
		if err := write(entry, map[string]string{"title": fmt.Sprintf("Entry %d, with a title of usual length", i), "id": fmt.Sprintf("%sentries/%d.html", id, i), "content": ""}); err != nil {
			return err
		}
		if err := os.Symlink("../../../src/"+hash, filepath.Join(entry, "feed")); err != nil {
			return err
		}
	}
	return nil
}

func write(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// flagOne flags an entry that is not flagged.
func flagOne(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "cur/*/*;2,S"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no entry is left: %w", err)
	}
	return os.Rename(found[0], strings.TrimSuffix(found[0], "S")+"FS")
}
