// Package spool stores documents that were fetched for a feed: archives until their entries are delivered, and
// the pages of entries.
package spool

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/lektordir"
)

// spoolDir holds fetched documents whose entries are not delivered yet, in a directory for each
// feed.
const spoolDir = feedfiles.FetchDir + "/spool"

// maxSpooled is the maximum size of a spooled document, in bytes.
const maxSpooled = 1 << 30

// Spooled is a spooled document with the headers that parsing needs.
type Spooled struct {
	URL, Final                                    string // the requested URL, and the URL after redirects
	ContentType, ContentLocation, ContentLanguage string
	Body                                          []byte
}

// Spool stores fetched documents of a feed until their entries are delivered, so that they are not fetched
// again if the program is stopped. The caller must hold the feed's lock.
type Spool struct{ docDir }

// Of returns the spool of a feed, see docDirOf.
func Of(d *lektordir.Dir, hash string) (*Spool, error) {
	k, err := docDirOf(d, spoolDir, hash)
	return &Spool{k}, err
}

// docDir is a directory of documents of a feed, with a file for each URL.
type docDir struct{ dir string }

// docDirOf returns the docDir of a feed in dir. It fails if a link may lead out of the lektor-dir.
func docDirOf(d *lektordir.Dir, dir, hash string) (docDir, error) {
	return docDir{d.Join(dir, hash)}, atomicfile.NoLinks(d.Path(), feedfiles.FetchDir, dir, dir+"/"+hash)
}

func (k docDir) path(url string) string {
	return filepath.Join(k.dir, fmt.Sprintf("%.16x", sha256.Sum256([]byte(url))))
}

// Remove removes the document of a URL. It returns nil if there is none.
func (k docDir) Remove(url string) error { return atomicfile.RemoveUnsynced(k.path(url)) }

// header returns the values before a document.
func (doc *Spooled) header() []values.Field {
	return []values.Field{{Var: &doc.URL}, {Var: &doc.Final}, {Var: &doc.ContentType}, {Var: &doc.ContentLocation},
		{Var: &doc.ContentLanguage}}
}

// Put stores a document. It does not sync: if a power cut damages a document, the digest does not match,
// and the document is fetched again.
func (s *Spool) Put(doc *Spooled) error {
	return putDoc(s.path(doc.URL), doc.header(), doc.Body, atomicfile.WriteUnsynced)
}

// Get returns the document of a URL, nil if it does not exist or is damaged.
func (s *Spool) Get(url string) (*Spooled, error) {
	doc := &Spooled{}
	var err error
	if doc.Body, err = getDoc(s.path(url), doc.header()); doc.Body == nil || doc.URL != strings.TrimSpace(url) {
		return nil, err
	}
	return doc, nil
}

// putDoc writes a file: a line with a digest, a line for each value, and the body. write is a function of
// package atomicfile.
func putDoc(path string, header []values.Field, body []byte, write func(string, []byte) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, v := range header {
		b.WriteString(feedfiles.OneField(v.Text()) + "\n")
	}
	b.Write(body)
	sum := sha256.Sum256(b.Bytes())
	return write(path, append(fmt.Appendf(nil, "%x\n", sum), b.Bytes()...))
}

// getDoc reads a file that putDoc wrote. The body is nil if it does not exist or is damaged.
func getDoc(path string, header []values.Field) (body []byte, err error) {
	data, err := atomicfile.Optional(atomicfile.Read(path, maxSpooled))
	if err != nil {
		return nil, err
	}
	line, rest, _ := bytes.Cut(data, []byte{'\n'})
	if sum := sha256.Sum256(rest); string(line) != hex.EncodeToString(sum[:]) {
		return nil, nil
	}
	for _, v := range header {
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		v.Parse(string(line))
	}
	return append([]byte{}, rest...), nil
}

// Clear removes all documents.
func (s *Spool) Clear() error { return os.RemoveAll(s.dir) }
