package feeddir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// spoolDir is where documents wait that were fetched and not read yet, in a
// directory for each feed.
const spoolDir = markersDir + "/spool"

// maxSpooled is the largest document that is read back, in bytes.
const maxSpooled = 1 << 30

// Spooled is a document that waits, with what must be known of its answer.
type Spooled struct {
	URL, Final                                    string // as it was asked for, and where it came from
	ContentType, ContentLocation, ContentLanguage string
	Body                                          []byte
}

// Spool keeps the documents of a feed that were fetched and whose entries are not
// delivered yet, so that none is fetched twice, whenever the program is stopped. Its
// user holds the feed's lock.
type Spool struct{ keptDir }

// SpoolOf returns the spool of a feed, see keptOf.
func SpoolOf(d *lektordir.Dir, hash string) (*Spool, error) {
	k, err := keptOf(d, spoolDir, hash)
	return &Spool{k}, err
}

// keptDir is a directory of documents of a feed, with a file for each URL.
type keptDir struct{ dir string }

// keptOf returns that of a feed in dir, or an error if it would lie out of the lektor-dir
// by way of a link.
func keptOf(d *lektordir.Dir, dir, hash string) (keptDir, error) {
	return keptDir{d.Join(dir, hash)}, atomicfile.NoLinks(d.Path(), markersDir, dir, dir+"/"+hash)
}

func (k keptDir) path(url string) string {
	return filepath.Join(k.dir, fmt.Sprintf("%.16x", sha256.Sum256([]byte(url))))
}

// Remove removes the document of a URL. That it is not there is no error.
func (k keptDir) Remove(url string) error { return remove(k.path(url)) }

// header are the fields that stand before a document, in their order.
func (doc *Spooled) header() []*string {
	return []*string{&doc.URL, &doc.Final, &doc.ContentType, &doc.ContentLocation, &doc.ContentLanguage}
}

// Put keeps a document. It does not wait for the disk: one that a power cut damages
// is known as damaged, and fetched again.
func (s *Spool) Put(doc *Spooled) error {
	return putKept(s.path(doc.URL), doc.header(), doc.Body, atomicfile.WriteUnsynced)
}

// Get gives the document of a URL, nil when it is not there or damaged.
func (s *Spool) Get(url string) (*Spooled, error) {
	doc := &Spooled{}
	var err error
	if doc.Body, err = getKept(s.path(url), doc.header()); doc.Body == nil || doc.URL != strings.TrimSpace(url) {
		return nil, err
	}
	return doc, nil
}

// putKept writes a file of a digest, a line for each field, and a body, for nobody else to
// read. It waits for the disk if write does.
func putKept(path string, fields []*string, body []byte, write func(string, []byte) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	for _, v := range fields {
		b.WriteString(OneField(*v) + "\n")
	}
	b.Write(body)
	sum := sha256.Sum256(b.Bytes())
	return write(path, append(fmt.Appendf(nil, "%x\n", sum), b.Bytes()...))
}

// getKept reads such a file. The body is nil where there is none, or a damaged one.
func getKept(path string, fields []*string) (body []byte, err error) {
	data, err := atomicfile.Read(path, maxSpooled)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	line, rest, _ := bytes.Cut(data, []byte{'\n'})
	if sum := sha256.Sum256(rest); string(line) != hex.EncodeToString(sum[:]) {
		return nil, nil
	}
	rest, _ = cutFields(rest, fields)
	return append([]byte{}, rest...), nil
}

// cutFields reads the lines of fields; whole is false where one does not end.
func cutFields(data []byte, fields []*string) (rest []byte, whole bool) {
	whole = true
	for _, v := range fields {
		var line []byte
		var ok bool
		line, data, ok = bytes.Cut(data, []byte{'\n'})
		*v, whole = string(line), whole && ok
	}
	return data, whole
}

// Clear removes all of them.
func (s *Spool) Clear() error { return os.RemoveAll(s.dir) }
