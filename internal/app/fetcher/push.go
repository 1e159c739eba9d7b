package fetcher

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feeddir"
)

// push records how a feed tells of its updates, for those who listen.
func (r *Runner) push(hash string, feed *feedconv.Feed) error {
	return feeddir.PushOf(feed.Clouds, feed.Links).Write(r.Dir, hash)
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
