package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// disk changes the files of a directory of documents. Each call is atomic: a kill
// leaves the old file or the new one.
type disk struct {
	write  func(path string, data []byte) error
	remove func(path string) error
}

// documents is a directory with the documents of one feed. It is locked.
type documents struct {
	dir  string
	name string   // name of the subscription document
	base *url.URL // URL of the subscription document
	ext  string   // extension of the other documents
	disk disk
}

// The files of a directory of documents beside the subscription document.
const (
	lockName   = ".lock"
	ledgerName = ".archives"
	archives   = "archive" // archive-0001.atom, and so on
	pages      = "page"    // page-0002.atom, and so on
)

// maxPublished is the maximum size in bytes of a published document that is read.
const maxPublished = 1 << 30

// numberedName matches the name of an archive or a page.
var numberedName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(archive|page)-([0-9]{4,})\.(atom|rss|json)$`)
})

// inDir creates dir if necessary, and calls publish while dir is locked. The lock file is never
// removed.
func (p *publisher) inDir(dir string, publish func(*documents) error) error {
	d := &documents{dir: dir, base: p.self, ext: p.o.Format, disk: disk{atomicfile.Write, atomicfile.Remove}}
	if p.o.disk != nil {
		d.disk = *p.o.disk
	}
	var err error
	if d.name, err = documentName(p.self); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	busy := cmdline.Hint(fmt.Errorf("another process publishes to %s", dir),
		"try again in a moment; each feed has a directory of its own")
	unlock, err := atomicfile.Lock(d.path(lockName), busy)
	switch {
	case err == busy:
		return err
	case err != nil:
		return fmt.Errorf("cannot lock %s: %w", dir, err)
	}
	defer unlock()
	return publish(d)
}

// documentName returns the name of the file for a URL, which is the last segment of its path.
func documentName(u *url.URL) (string, error) {
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	because := ""
	switch {
	case u.RawQuery != "" || u.ForceQuery:
		because = "it has a query"
	case name == "":
		because = "it does not end in a file name"
	case strings.HasPrefix(name, "."):
		because = "the name of the file begins with a dot"
	case strings.ContainsFunc(name, func(r rune) bool {
		return r < ' ' || r == 0x7f || r == '/' || r == '\\' ||
			r == '\uFFFD'
	}),
		strings.Contains(strings.ToLower(u.EscapedPath()), "%2f"):
		because = "no file can have that name"
	case numberedName().MatchString(strings.ToLower(name)):
		because = "that is the name of an archive or a page"
	}
	if because == "" {
		return name, nil
	}
	return "", &cmdline.UsageError{
		Message: fmt.Sprintf("--self %s: %s", u, because),
		Hint:    "it is the URL of the subscription document, which is a file in the directory, such as https://me.example/feed/index.atom",
	}
}

func (d *documents) path(name string) string { return filepath.Join(d.dir, name) }

// url returns the URL of a file of the directory.
func (d *documents) url(name string) string {
	return d.base.ResolveReference(&url.URL{Path: name}).String()
}

// numbered returns the name of an archive or a page.
func (d *documents) numbered(kind string, number int) string {
	return fmt.Sprintf("%s-%04d.%s", kind, number, d.ext)
}

// found returns the numbers of the archives or pages in the directory. It fails if one is not a
// regular file, or has another format, as the directory belongs to another feed then.
func (d *documents) found(kind string) (map[int]bool, error) {
	names, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, err
	}
	there := map[int]bool{}
	for _, n := range names {
		m := numberedName().FindStringSubmatch(n.Name())
		if m == nil || m[1] != kind {
			continue
		}
		number, err := strconv.Atoi(m[2])
		if err != nil || number < 1 || n.Name() != fmt.Sprintf("%s-%04d.%s", kind, number, m[3]) {
			continue // publish does not write such names, for example archive-00001.atom
		}
		switch {
		case m[3] != d.ext:
			return nil, cmdline.Hint(fmt.Errorf("%s: the directory has documents of another format", d.path(n.Name())),
				"publish to another directory, or with --format %s", m[3])
		case !n.Type().IsRegular():
			return nil, cmdline.Hint(fmt.Errorf("%s is not a regular file", d.path(n.Name())),
				"remove it, or put the document back that was in its place")
		}
		there[number] = true
	}
	return there, nil
}

// sweep removes the temporary files of killed runs.
func (d *documents) sweep() {
	paths := []string{d.path(d.name), d.path(ledgerName)}
	names, _ := os.ReadDir(d.dir) // leftovers do no harm, so errors are ignored
	for _, n := range names {
		of := strings.TrimRight(strings.TrimPrefix(n.Name(), "."), "0123456789")
		if numberedName().MatchString(of) {
			paths = append(paths, d.path(of))
		}
	}
	atomicfile.Sweep(paths...)
}

// read reads a file of the directory. It does not follow links.
func (d *documents) read(name string) ([]byte, error) {
	path := d.path(name)
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	return atomicfile.Read(path, maxPublished)
}

// put writes a file, unless it has these bytes already.
func (d *documents) put(name string, data []byte) error {
	if old, err := d.read(name); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return d.disk.write(d.path(name), data)
}
