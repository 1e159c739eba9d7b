package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/lazy"
)

// disk changes the files of a directory of documents. Each call is atomic: a kill
// leaves what was there before it, or after it.
type disk struct {
	write  func(path string, data []byte) error
	remove func(path string) error
}

// documents is a directory with the documents of one feed, which nobody else
// publishes to at the time.
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

// maxPublished is the largest document that is read again, for what it holds.
const maxPublished = 1 << 30

// numbered is the name of an archive or a page.
var numberedName = lazy.Regexp(`^(archive|page)-([0-9]{4,})\.(atom|rss|json)$`)

var extensions = map[feedconv.Format]string{feedconv.Atom10: "atom", feedconv.RSS20: "rss", feedconv.JSONFeed: "json"}

// inDir creates dir if necessary, and calls publish while dir is locked. The lock file is never
// removed.
func (p *publisher) inDir(dir string, publish func(*documents) error) error {
	d := &documents{dir: dir, base: p.self, ext: extensions[p.format], disk: disk{atomicfile.Write, atomicfile.Remove}}
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
	busy := command.Hint(fmt.Errorf("another process publishes to %s", dir), "try again in a moment; each feed has a directory of its own")
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

// documentName is the name of the file that is served under a URL: the last segment
// of its path.
func documentName(u *url.URL) (string, error) {
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	because := ""
	switch {
	case u.RawQuery != "" || u.ForceQuery:
		because = "it has a query, by which no file is found"
	case name == "":
		because = "it ends in no name of a file"
	case strings.HasPrefix(name, "."):
		because = "the name of the file begins with a dot"
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '/' || r == '\\' || r == '\uFFFD' }),
		strings.Contains(strings.ToLower(u.EscapedPath()), "%2f"):
		because = "no file can have that name"
	case numberedName().MatchString(strings.ToLower(name)):
		because = "that is the name of an archive or a page"
	}
	if because == "" {
		return name, nil
	}
	return "", &command.UsageError{
		Message: fmt.Sprintf("--self %s: %s", u, because),
		Hint:    "it is the URL of the subscription document, which is a file in the directory, such as https://me.example/feed/index.atom",
	}
}

func (d *documents) path(name string) string { return filepath.Join(d.dir, name) }

// url is where a file of the directory is found.
func (d *documents) url(name string) string {
	return d.base.ResolveReference(&url.URL{Path: name}).String()
}

// numbered is the name of an archive or a page.
func (d *documents) numbered(kind string, number int) string {
	return fmt.Sprintf("%s-%04d.%s", kind, number, d.ext)
}

// found returns the numbers of the archives or pages that there are. One that is no
// file is an error, and so is one of another format: the directory has been used
// for another feed then.
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
			return nil, command.Hint(fmt.Errorf("%s: the directory has documents of another format", d.path(n.Name())), "publish to another directory, or with --format %s", m[3])
		case !n.Type().IsRegular():
			return nil, command.Hint(fmt.Errorf("%s is no regular file", d.path(n.Name())), "remove it, or put the document back that was in its place")
		}
		there[number] = true
	}
	return there, nil
}

// temporary is the name of what a kill has left of an archive or a page.
var temporary = lazy.Regexp(`^\.((?:archive|page)-[0-9]{4,}\.(?:atom|rss|json))[0-9]+$`)

// sweep removes what kills have left.
func (d *documents) sweep() {
	paths := []string{d.path(d.name), d.path(ledgerName)}
	names, _ := os.ReadDir(d.dir) // a nuisance, and no failure
	for _, n := range names {
		if m := temporary().FindStringSubmatch(n.Name()); m != nil {
			paths = append(paths, d.path(m[1]))
		}
	}
	atomicfile.Sweep(paths...)
}

// read reads a file of the directory. A link in its place is none of ours.
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

// put makes sure that a file has these bytes, and touches none that has.
func (d *documents) put(name string, data []byte) error {
	if old, err := d.read(name); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return d.disk.write(d.path(name), data)
}
