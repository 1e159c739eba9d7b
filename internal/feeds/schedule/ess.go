package schedule

import (
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// The files in src/$feed/etc/ess/, besides those of the [State] of the ESS document.
const (
	areaESS     = "ess"
	fileLink    = "link"    // the URL of the feed's ESS document
	fileNNO     = "nno"     // URL of an NNO document about it
	fileSize    = "size"    // size of the feed as last transferred, in bytes
	fileHandled = "handled" // an ESS document: entries that need not be fetched any more
)

// ESS is the state of the ESS and NNO documents of a feed, which are smaller than the feed and show
// whether it has changed: the directory src/$feed/etc/ess.
type ESS struct{ dir feedfiles.Dir }

// ESSOf returns the ESS of a feed.
func ESSOf(d *lektordir.Dir, hash string) ESS { return ESS{feedfiles.In(d, hash, areaESS)} }

func (e ESS) line(name string) string { return strings.TrimSpace(e.dir.Line(name)) }

// Path returns the directory, for messages.
func (e ESS) Path() string { return e.dir.Path("") }

// Link returns the URL of the feed's ESS document, "" if none is known.
func (e ESS) Link() string { return e.line(fileLink) }

// Size returns the number of bytes transferred for the feed itself, 0 if unknown.
func (e ESS) Size() int64 {
	n, _ := strconv.ParseInt(e.line(fileSize), 10, 64)
	return max(n, 0)
}

// Record stores the URLs of the feed's ESS and NNO documents, and the size of the feed if its ESS
// document is known. "" and 0 leave a value unchanged, because another source may have set it.
func (e ESS) Record(link, nno string, size int64) (bad error) {
	for _, f := range [][2]string{{fileLink, link}, {fileNNO, nno}} {
		if bad == nil && f[1] != "" {
			bad = e.dir.Record(f[0], f[1])
		}
	}
	if bad == nil && size > 0 && e.Link() != "" {
		bad = e.dir.Record(fileSize, strconv.FormatInt(size, 10))
	}
	return bad
}

// State loads the state of the ESS document at link. It does not use validators of another link. A dry
// run writes nothing.
func (e ESS) State(link string, dryRun bool) (*State, error) {
	if !dryRun {
		if err := e.dir.Record(feedfiles.FileURL, link); err != nil {
			return nil, err
		}
	}
	return LoadFrom(e.Path())
}

// Save saves the state of the document, and before it the new URL after a permanent redirect.
func (e ESS) Save(s *State) error {
	if to := s.MovedTo(); to != "" {
		if err := e.dir.Record(fileLink, to); err != nil {
			return err
		}
	}
	return s.Save()
}

// Handled reads the entries that need not be fetched any more, an ESS document of at most limit
// bytes. The error is fs.ErrNotExist if there is none.
func (e ESS) Handled(limit int64) ([]byte, error) {
	return atomicfile.Read(e.dir.Path(fileHandled), limit)
}

// SetHandled writes the document that [ESS.Handled] reads.
func (e ESS) SetHandled(doc []byte) error { return e.dir.Record(fileHandled, string(doc)) }
