package spool

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/lektordir"
)

// pagesDir holds the pages of entries, in a directory for each feed.
const pagesDir = feedfiles.FetchDir + "/pages"

// Page is the page of an entry: its article, or the reason why there is none.
type Page struct {
	URL   string // the requested URL
	Final string // the URL after redirects
	// ETag and LastModified are the validators of Final.
	ETag, LastModified string
	// Refused is the reason why the page has no usable article, "" if it has one.
	Refused string
	// Tries is the number of failed requests, and Next the time of the next one. Both are zero if no
	// other request is planned. If the entry was delivered without its article, they stay until the
	// entry has the article.
	Tries   int
	Next    time.Time
	Article []byte // HTML
	// Text is a digest of the article, to find equal articles; "" without an article. Put sets it.
	Text string
}

// Pages stores pages of a feed: those of the entries in its current document, to make later requests
// conditional, and those that will be requested again. The caller must hold the feed's lock. Put and Get
// may be called concurrently for different pages.
type Pages struct{ docDir }

// PagesOf returns the pages of a feed, see docDirOf.
func PagesOf(d *lektordir.Dir, hash string) (*Pages, error) {
	k, err := docDirOf(d, pagesDir, hash)
	return &Pages{k}, err
}

// readPage reads the page at path; nil if it does not exist or is damaged.
func readPage(path string) (*Page, error) {
	var page Page
	var err error
	if page.Article, err = getDoc(path, page.header()); page.Article == nil || page.Text != textOf(page.Article) {
		return nil, err
	}
	return &page, nil
}

// textOf returns the digest of an article, "" if it is empty.
func textOf(article []byte) string {
	if len(article) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(bytes.TrimSpace(article)))
}

// header returns the values before an article.
func (page *Page) header() []values.Field {
	return []values.Field{{Var: &page.URL}, {Var: &page.Final}, {Var: &page.ETag}, {Var: &page.LastModified},
		{Var: &page.Refused}, {Var: &page.Tries}, {Var: &page.Next}, {Var: &page.Text}}
}

// Put stores a page. It syncs a page with Tries, because only this file records that an entry waits for
// it. Other pages can be fetched again.
func (p *Pages) Put(page *Page) error {
	write := atomicfile.WriteUnsynced
	if page.Tries > 0 {
		write = atomicfile.Write
	}
	page.Text = textOf(page.Article)
	return putDoc(p.path(page.URL), page.header(), page.Article, write)
}

// Get returns the page of a URL, nil if it does not exist or is damaged.
func (p *Pages) Get(url string) (*Page, error) {
	page, err := readPage(p.path(url))
	if page == nil || page.URL != url {
		return nil, err
	}
	return page, nil
}

// Each calls f for each page, without its article, to save memory. It skips pages that cannot be
// read or are damaged.
func (p *Pages) Each(f func(*Page)) error {
	names, err := atomicfile.Optional(os.ReadDir(p.dir))
	for _, n := range names {
		if page, _ := readPage(filepath.Join(p.dir, n.Name())); page != nil {
			page.Article = nil
			f(page)
		}
	}
	return err
}

// RemovePages removes all pages of a feed.
func RemovePages(d *lektordir.Dir, hash string) error {
	p, err := PagesOf(d, hash)
	if err != nil {
		return err
	}
	return os.RemoveAll(p.dir)
}
