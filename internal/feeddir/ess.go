package feeddir

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// The files in src/$feed/etc/ess/ beside those of the [State] of the ESS
// document, which lies there too.
const (
	areaESS     = "ess"
	fileLink    = "link"    // the URL of the feed's ESS document
	fileNNO     = "nno"     // that of an NNO document about it
	fileSize    = "size"    // bytes of the feed as last transferred
	fileHandled = "handled" // an ESS document: entries that need no fetch any more
)

// ESS is what is kept of the documents that tell cheaply whether a feed has
// changed, src/$feed/etc/ess.
type ESS struct {
	Dir  *lektordir.Dir
	Hash string // of the feed
}

func (e ESS) line(name string) string {
	line, _ := atomicfile.Line(filepath.Join(e.Path(), name))
	return strings.TrimSpace(line)
}

// Path is the directory, for messages.
func (e ESS) Path() string { return drawer(e.Dir, e.Hash, areaESS) }

// Link is the URL of the feed's ESS document, "" when it offers none as far as is
// known.
func (e ESS) Link() string { return e.line(fileLink) }

// Size is how many bytes the feed itself took to transfer, 0 when that is not
// known.
func (e ESS) Size() int64 {
	n, err := strconv.ParseInt(e.line(fileSize), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Record keeps the URLs that a feed or its page tells of, and the size of the
// feed where there is a link. What is "" or 0 stays as it is: it was found
// elsewhere.
func (e ESS) Record(link, nno string, size int64) error {
	bad := Guard(e.Dir, e.Hash, areaESS)
	for _, f := range [][2]string{{fileLink, link}, {fileNNO, nno}} {
		if bad == nil && f[1] != "" {
			bad = record(e.Dir, e.Hash, areaESS, f[0], asLines(f[1]))
		}
	}
	if bad == nil && size > 0 && e.Link() != "" {
		bad = record(e.Dir, e.Hash, areaESS, fileSize, asLines(strconv.FormatInt(size, 10)))
	}
	return bad
}

// State opens the state of the ESS document at link. Validators of another link
// are void by that. In a dry run nothing is written.
func (e ESS) State(link string, dryRun bool) (*State, error) {
	if !dryRun {
		if err := record(e.Dir, e.Hash, areaESS, fileURL, asLines(link)); err != nil {
			return nil, err
		}
	}
	return loadState(e.Path())
}

// Moved follows the document to another URL for good.
func (e ESS) Moved(link string) error {
	return record(e.Dir, e.Hash, areaESS, fileLink, asLines(link))
}

// Handled reads the entries that need no fetch any more, an ESS document of at
// most limit bytes. The error is fs.ErrNotExist for none.
func (e ESS) Handled(limit int64) ([]byte, error) {
	return atomicfile.Read(filepath.Join(e.Path(), fileHandled), limit)
}

// SetHandled writes what [ESS.Handled] reads.
func (e ESS) SetHandled(doc []byte) error {
	return record(e.Dir, e.Hash, areaESS, fileHandled, string(doc))
}
