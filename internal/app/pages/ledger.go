package pages

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// ledger is the state of a site, in a file of lines with tabs between the fields: the text of each
// entry in lists, so that no entry is read twice, and a digest of each page, so that no page is
// written twice. If the ledger is lost, the whole site is made again.
//
//	lektor-html 1
//	entry KEY SECONDS TITLE EXCERPT [images] LANGUAGE MARKS
//	page PATH DIGEST BYTES
//
// A key, which has the file names of another program, is in the form of package textfile.
type ledger struct {
	path  string
	items map[string]*item   // by key
	pages map[string]written // by path
}

// written is a page as it was written: the digest of its inputs, and its size in bytes.
type written struct {
	digest string
	size   int64
}

const ledgerHead = "lektor-html 1"

// maxLedger is the maximum size of a ledger, in bytes: enough for some two million entries.
const maxLedger = 1 << 30

// lost reports whether text is what a power cut may leave of a file that begins with the line head:
// nothing, a part of that line, or NULs in it.
func lost(text, head string) bool {
	first, _, _ := strings.Cut(text, "\n")
	return strings.HasPrefix(head, text) || strings.Contains(first, "\x00")
}

// openLedger reads a ledger, which is empty if the file does not exist or is lost. It ignores damaged
// lines, but fails if another program wrote the file.
func openLedger(path string) (*ledger, error) {
	l := &ledger{path: path, items: map[string]*item{}, pages: map[string]written{}}
	data, err := atomicfile.Optional(atomicfile.Read(path, maxLedger))
	if err != nil {
		return nil, err
	}
	head, text, _ := strings.Cut(string(data), "\n")
	switch {
	case lost(string(data), ledgerHead):
		return l, nil
	case head != ledgerHead:
		return nil, cmdline.Hint(fmt.Errorf("%s was written by another program, or by another version", path),
			"write to a new directory, or if the directory is a site of lektor-pages, remove the file: the whole site is then made again")
	}
	for line := range strings.Lines(text) {
		line, whole := strings.CutSuffix(line, "\n")
		f := strings.Split(line, "\t")
		switch {
		case !whole, strings.Contains(line, "\x00"):
		case f[0] == "entry" && len(f) == 8:
			seconds, err := strconv.ParseInt(f[2], 10, 64)
			key := textfile.UnescapeName([]byte(f[1]))
			if feed, _, ok := strings.Cut(key, "/"); ok && err == nil {
				l.items[key] = &item{key: key, name: digest(key), feed: feed, Date: time.Unix(seconds, 0), Title: f[3],
					Excerpt: f[4], images: f[5] != "", lang: f[6], Marks: f[7]}
			}
		case f[0] == "page" && len(f) == 4:
			if size, err := strconv.ParseInt(f[3], 10, 64); err == nil {
				l.pages[f[1]] = written{f[2], size}
			}
		}
	}
	return l, nil
}

// write replaces the file.
func (l *ledger) write() error {
	var b bytes.Buffer
	b.WriteString(ledgerHead + "\n")
	for _, key := range slices.Sorted(maps.Keys(l.items)) {
		i, images := l.items[key], ""
		if i.images {
			images = "images"
		}
		fmt.Fprintf(&b, "entry\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", textfile.Escape(key), i.Date.Unix(), i.Title, i.Excerpt,
			images, i.lang, i.Marks)
	}
	for _, path := range slices.Sorted(maps.Keys(l.pages)) {
		fmt.Fprintf(&b, "page\t%s\t%s\t%d\n", path, l.pages[path].digest, l.pages[path].size)
	}
	return atomicfile.WriteUnsynced(l.path, b.Bytes())
}

// digest returns a hash of texts. Each text is hashed with its length, so that their boundaries
// count.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// pageDirs matches the paths of directories with pages.
var pageDirs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(all|search|entry|(feed|folder)(/[0-9a-z-]+)?)$`)
})

// pagePaths matches the paths of pages.
var pagePaths = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(style\.css|(index|feeds)\.html|(all|search|entry|(feed|folder)/[0-9a-z-]+)/[0-9a-z-]+\.html)$`)
})
