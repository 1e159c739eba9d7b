package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/lazy"
)

// ledger is what a site remembers of itself, in a file of lines with tabs between the
// fields: what lists say of each entry, so that none is read twice, and a digest of
// all that is on each page, so that none is written twice. It is safe to lose: then
// everything is made again.
//
//	lektor-html 1
//	entry KEY SECONDS TITLE EXCERPT [images]
//	page PATH DIGEST BYTES
type ledger struct {
	items map[string]*item
	pages map[string]known // by path
}

// known is a page as it was written: a digest of what is on it, and its bytes.
type known struct {
	digest string
	size   int64
}

const (
	ledgerHead = "lektor-html 1"
	maxLedger  = 1 << 30
)

// readLedger reads a ledger; one that is not there is empty. Lines that are damaged
// are left out, but the first.
func readLedger(path string) (*ledger, error) {
	l := &ledger{items: map[string]*item{}, pages: map[string]known{}}
	data, err := atomicfile.Read(path, maxLedger)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	head, rest, _ := strings.Cut(string(data), "\n")
	if head != ledgerHead && len(data) > 0 {
		return nil, command.Hint(fmt.Errorf("%s is of another program, or of another version", path), "write to a new directory, or remove the file if the directory is a site of ours: all is made again then")
	}
	for line := range strings.Lines(rest) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case !strings.HasSuffix(line, "\n"):
		case fields[0] == "entry" && len(fields) == 6:
			seconds, err := strconv.ParseInt(fields[2], 10, 64)
			feed, _, ok := strings.Cut(fields[1], "/")
			if err == nil && ok {
				l.items[fields[1]] = &item{key: fields[1], name: digest(fields[1]), feed: feed, date: time.Unix(seconds, 0), title: fields[3], excerpt: fields[4], images: fields[5] != ""}
			}
		case fields[0] == "page" && len(fields) == 4:
			if size, err := strconv.ParseInt(fields[3], 10, 64); err == nil {
				l.pages[fields[1]] = known{digest: fields[2], size: size}
			}
		}
	}
	return l, nil
}

func (l *ledger) bytes() []byte {
	var b strings.Builder
	b.WriteString(ledgerHead + "\n")
	for _, k := range slices.Sorted(maps.Keys(l.items)) {
		i := l.items[k]
		images := ""
		if i.images {
			images = "images"
		}
		b.WriteString("entry\t" + k + "\t" + strconv.FormatInt(i.date.Unix(), 10) + "\t" + i.title + "\t" + i.excerpt + "\t" + images + "\n")
	}
	for _, p := range slices.Sorted(maps.Keys(l.pages)) {
		b.WriteString("page\t" + p + "\t" + l.pages[p].digest + "\t" + strconv.FormatInt(l.pages[p].size, 10) + "\n")
	}
	return []byte(b.String())
}

// digest tells texts apart.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// ours are the names of pages.
var ours = lazy.Regexp(`^(style\.css|(index|feeds)\.html|(all|search|entry|feed/[0-9a-f]+|folder/[0-9a-z-]+)/[0-9a-z-]+\.html)$`)
