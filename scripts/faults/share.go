//go:build linux && (amd64 || arm64)

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lektordir/lektor/internal/testkit/must"
)

// meeting is where machines publish, in the lektor-dir, as calls elsewhere are not
// counted.
const meeting = "etc/meeting"

// syncShared is a sync of a lektor-dir that may be a copy.
func syncShared(e *env, dir string) []string {
	must.Do(os.WriteFile(filepath.Join(dir, "etc/share/target"), []byte(filepath.Join(dir, meeting)+"\n"), 0o600))
	return []string{e.share, "sync"}
}

// sharing prepares a lektor-dir with edits of its own, and those of another machine.
func sharing(e *env, dir string) {
	ctx := context.Background()
	other := filepath.Join(e.work, fmt.Sprintf("other-%d", e.serial.Add(1)))
	copyTree(dir, other)
	defer os.RemoveAll(other)
	target := filepath.Join(dir, meeting)
	run := func(at string, argv ...string) { must.Do(e.run(ctx, at, "", argv...)) }
	run(dir, e.share, "init", "--name", "here", target)
	run(other, e.share, "init", "--name", "there", target)
	for range 2 {
		run(dir, e.share, "sync")
		run(other, e.share, "sync")
	}
	// What both did since.
	for i, x := range read(dir) {
		switch i % 3 {
		case 0:
			run(dir, e.view, "mark", "--set", "S", x.Unique)
		case 1:
			run(other, e.view, "mark", "--set", "F", x.Unique)
		default:
			run(dir, e.view, "mark", "--set", "F", x.Unique)
			run(other, e.view, "mark", "--set", "S", x.Unique)
		}
	}
	run(other, e.fetch, "set", e.url(0), "alias", "An alias")
	run(other, e.fetch, "set", e.url(0), "categories", "Folder/Within")
	run(other, e.fetch, "rm", e.url(1))
	run(other, e.fetch, "add", e.url(3))
	run(other, e.share, "sync")
	run(dir, e.fetch, "add", e.url(4))
}

var (
	dates = regexp.MustCompile(`(when|until|since)="[^"]*"`)
	made  = regexp.MustCompile(`(?m)^made .*\n`)
)

// timeless gives what of a file is the same whenever and wherever it was made; false if
// that is nothing.
func timeless(name, data string) (string, bool) {
	rel := strings.TrimPrefix(name, "etc/share/")
	if rel == "target" || rel == "published" || strings.HasPrefix(rel, "read/") {
		return "", false // paths, inodes and times
	}
	return made.ReplaceAllString(dates.ReplaceAllString(data, `$1=""`), ""), true
}

// whole looks whether the documents of all machines are.
func (t *trial) whole(ctx context.Context, dir string) (err error) {
	defer must.Catch(&err)
	if !t.s.shares {
		return nil
	}
	mine := must.Get(filepath.Glob(filepath.Join(dir, "etc/share/*.[or][ps][ms]*")))
	all := must.Get(filepath.Glob(filepath.Join(dir, meeting, "*/*")))
	return t.e.run(ctx, dir, "", append([]string{t.e.share, "check", "--strict"}, append(mine, all...)...)...)
}
