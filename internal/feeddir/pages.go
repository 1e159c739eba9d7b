package feeddir

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/lektordir"
)

// FullText tells whether the entries of a feed get the articles of their pages, by
// src/$feed/etc/fulltext.
func FullText(d *lektordir.Dir, hash string) bool {
	line, err := atomicfile.Line(d.Join("src", hash, fullTextFile))
	return err == nil && strings.TrimSpace(line) == "on"
}

// pagesDir is where the pages of entries are kept, in a directory for each feed.
const pagesDir = markersDir + "/pages"

// Page is what is known of the page of an entry: its article, or that it could not be
// had.
type Page struct {
	URL   string // as it is asked for
	Final string // where it was found
	// ETag and LastModified are the validators of Final.
	ETag, LastModified string
	// Refused says why the article is none, "" for one that is.
	Refused string
	// Tries is how often the page was asked for in vain, and Next when it may be asked
	// for again. Both are zero for a page that need not be; of one that came for an entry
	// that had been delivered without they stay until the entry has it.
	Tries   int
	Next    time.Time
	Article []byte // HTML
	// Text is a digest of the article, which articles with the same text share; "" where
	// there is none. Put sets it.
	Text string
}

// Pages keeps the pages of the entries of a feed: those that its document has, so that a
// page is asked for once and later only whether it changed; and those that are to be
// asked for again. Its user holds the feed's lock; calls of Put and Get may overlap
// if they are about different pages.
type Pages struct{ keptDir }

// PagesOf returns those of a feed, see keptOf.
func PagesOf(d *lektordir.Dir, hash string) (*Pages, error) {
	k, err := keptOf(d, pagesDir, hash)
	return &Pages{k}, err
}

// readPage reads the page at a path, nil when it is not there or damaged.
func readPage(path string) (*Page, error) {
	var page Page
	var tries, next string
	var err error
	if page.Article, err = getKept(path, page.fields(&tries, &next)); page.Article == nil || page.Text != textOf(page.Article) {
		return nil, err
	}
	page.Tries, _ = strconv.Atoi(tries)
	page.Next, _ = time.Parse(time.RFC3339, next)
	return &page, nil
}

// textOf is the digest of an article, "" of none.
func textOf(article []byte) string {
	if len(article) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(bytes.TrimSpace(article)))
}

// fields are the lines that stand before an article, in their order.
func (page *Page) fields(tries, next *string) []*string {
	return []*string{&page.URL, &page.Final, &page.ETag, &page.LastModified, &page.Refused, tries, next, &page.Text}
}

// Put keeps a page. One that is to be asked for again is on the disk when it returns, as
// nothing else would tell that an entry waits for it; any other can be had again.
func (p *Pages) Put(page *Page) error {
	tries, next := "", ""
	if page.Tries > 0 {
		tries, next = strconv.Itoa(page.Tries), page.Next.UTC().Format(time.RFC3339)
	}
	write := atomicfile.WriteUnsynced
	if page.Tries > 0 {
		write = atomicfile.Write
	}
	page.Text = textOf(page.Article)
	return putKept(p.path(page.URL), page.fields(&tries, &next), page.Article, write)
}

// Get gives the page of a URL, nil when it is not there or damaged.
func (p *Pages) Get(url string) (*Page, error) {
	page, err := readPage(p.path(url))
	if page == nil || page.URL != url {
		return nil, err
	}
	return page, nil
}

// Each calls f for the pages, without their articles, which are long and may be many. A
// page that cannot be read, or is damaged, is left out.
func (p *Pages) Each(f func(*Page)) error {
	names, err := os.ReadDir(p.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if page, _ := readPage(filepath.Join(p.dir, n.Name())); page != nil {
			page.Article = nil
			f(page)
		}
	}
	return err
}

// removePages removes all pages of a feed.
func removePages(d *lektordir.Dir, hash string) error {
	p, err := PagesOf(d, hash)
	if err != nil {
		return err
	}
	return os.RemoveAll(p.dir)
}
