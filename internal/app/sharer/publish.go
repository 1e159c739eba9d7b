package sharer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedsync"
)

// publish brings the documents to the target, as far as they differ from what is there.
func (h *share) publish(ctx context.Context) error {
	switch {
	case h.target == "":
		return nil
	case isURL(h.target):
		return h.upload(ctx)
	}
	if fi, err := os.Stat(h.target); err != nil || !fi.IsDir() {
		return command.Hint(fmt.Errorf("%s is not there; nothing is published", h.target), anotherTarget)
	}
	return h.copyTo(h.place())
}

// place is where this endpoint publishes: a directory or a URL.
func (h *share) place() string {
	if isURL(h.target) {
		return strings.TrimSuffix(h.target, "/") + "/" + h.me
	}
	return filepath.Join(h.target, h.me)
}

// overwritten looks at what this endpoint published last, if that has been written by
// somebody else since: when that is a copy of this lektor-dir, the two would overwrite
// each other's edits for ever, and neither would know. It comes before the set is saved:
// an edit that bears this endpoint's name can be found out, and none that both have made.
func (h *share) overwritten(ctx context.Context) error {
	switch {
	case h.target == "":
		return nil
	case isURL(h.target):
		return h.overwrittenThere(ctx)
	}
	put := h.record("../" + publishedFile)
	for _, name := range documents {
		path := filepath.Join(h.place(), name)
		if _, is := cutIdentity(put[name]); is == identity(path) {
			continue
		}
		data, err := atomicfile.Read(path, maxDocument)
		if err != nil {
			continue // gone, or not to be read: it is written anew
		}
		h.needs(int(parsedWeight * float64(len(data))))
		doc, _ := feedsync.Parse(data)
		if doc == nil {
			continue
		}
		if err := h.published(path, name, doc); err != nil {
			return err
		}
	}
	return nil
}

// copyTo writes the documents into a directory, as far as they are not those that it
// was given last. The complete one comes before the partial one that names it.
func (h *share) copyTo(dir string) error {
	put := h.record("../" + publishedFile)
	for _, name := range documents {
		from, to := h.path(name), filepath.Join(dir, name)
		if was, is := cutIdentity(put[name]); !atomicfile.Exists(from) || was == identity(from) && is == identity(to) && atomicfile.Exists(to) {
			continue
		}
		h.change()
		// Before there is a document there is no directory, and nobody looks into it.
		if err := makeDir(dir); err != nil {
			return err
		}
		if err := copyFile(from, to); err != nil {
			return err
		}
		put[name] = identity(from) + ", " + identity(to)
	}
	return h.writeRecord("../"+publishedFile, put)
}

// makeDir makes a directory that is to be written to.
func makeDir(dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if errors.Is(err, syscall.ENOTDIR) {
		return command.Hint(err, "it has to be a directory: move what is in its place, or choose another")
	}
	return err
}

// cutIdentity gives the identities of a document of the set and of its copy in the
// target.
func cutIdentity(put string) (was, is string) {
	was, is, _ = strings.Cut(put, ", ")
	return was, is
}

// identity is what changes when a file does.
func identity(path string) string {
	fi, err := os.Stat(path)
	if err != nil {
		return "none"
	}
	// Whoever replaces a file by another makes an inode.
	is := fmt.Sprintf("%d %d", fi.Size(), fi.ModTime().UnixNano())
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		is += fmt.Sprintf(" %d", st.Ino)
	}
	return is
}

// copyFile copies a file, unless the copy is there.
func copyFile(from, to string) error {
	source := func(w io.Writer) error {
		f, err := os.Open(from)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
	if same := (&comparer{}); same.open(to) {
		err := source(same)
		if same.end() && err == nil {
			return nil
		}
	}
	err := atomicfile.WritePrivateFrom(to, source)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, errors.ErrUnsupported) {
		// A stick, or a server that is mounted, may know no permissions.
		var data []byte
		if data, err = atomicfile.Read(from, maxDocument); err == nil {
			err = atomicfile.Write(to, data)
		}
	}
	return err
}

// comparer compares what is written to it with a file.
type comparer struct {
	f    *os.File
	buf  []byte
	diff bool
}

var errDiffers = errors.New("it differs")

func (c *comparer) open(path string) bool {
	if fi, err := os.Lstat(path); err != nil || !fi.Mode().IsRegular() {
		return false
	}
	var err error
	c.f, err = os.Open(path)
	return err == nil
}

func (c *comparer) Write(b []byte) (int, error) {
	if len(c.buf) < len(b) {
		c.buf = make([]byte, len(b))
	}
	if n, err := io.ReadFull(c.f, c.buf[:len(b)]); err != nil || !bytes.Equal(c.buf[:n], b) {
		c.diff = true
		return 0, errDiffers
	}
	return len(b), nil
}

// end tells whether the file was all of it.
func (c *comparer) end() bool {
	n, err := c.f.Read(make([]byte, 1))
	c.f.Close()
	return !c.diff && n == 0 && err == io.EOF
}
