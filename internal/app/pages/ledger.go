package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
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
//
// Entries stand in the order of their keys, and pages in that of their paths. What does
// not is as if it were not there.
type ledger struct {
	f       *os.File // nil for none
	entries int      // that it has, once all of them were read
}

// known is a page as it was written: a digest of what is on it, and its bytes.
type known struct {
	digest string
	size   int64
}

const ledgerHead = "lektor-html 1"

// openLedger opens a ledger; one that is not there is empty. Lines that are damaged
// are left out, but the first. What is read stays the same when the file is replaced.
func openLedger(path string) (*ledger, error) {
	f, err := atomicfile.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &ledger{}, nil
	}
	if err != nil {
		return nil, err
	}
	l := &ledger{f: f}
	for line, err := range linesOf(io.NewSectionReader(f, 0, math.MaxInt64)) {
		if strings.TrimSuffix(line, "\n") == ledgerHead {
			break
		}
		l.close()
		if err != nil {
			return nil, err
		}
		return nil, command.Hint(fmt.Errorf("%s is of another program, or of another version", path), "write to a new directory, or remove the file if the directory is a site of ours: all is made again then")
	}
	return l, nil
}

func (l *ledger) close() {
	if l.f != nil {
		_ = l.f.Close()
	}
}

// lines yields the lines of a kind, which are whole, as they are and in fields.
func (l *ledger) lines(kind string, yield func(line string, fields []string) bool) error {
	if l.f == nil {
		return nil
	}
	for line, err := range linesOf(io.NewSectionReader(l.f, 0, math.MaxInt64)) {
		if err != nil {
			return err
		}
		if text, whole := strings.CutSuffix(line, "\n"); whole && strings.HasPrefix(line, kind+"\t") && !yield(line, strings.Split(text, "\t")) {
			break
		}
	}
	return nil
}

// items yields the entries, and counts them.
func (l *ledger) items() iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		l.entries = 0
		more := true
		err := l.lines("entry", func(_ string, fields []string) bool {
			if i := parseItem(fields); i != nil {
				l.entries++
				more = yield(i, nil)
			}
			return more
		})
		if err != nil && more {
			yield(nil, err)
		}
	}
}

func parseItem(fields []string) *item {
	if len(fields) != 6 {
		return nil
	}
	seconds, err := strconv.ParseInt(fields[2], 10, 64)
	feed, _, ok := strings.Cut(fields[1], "/")
	if err != nil || !ok {
		return nil
	}
	return &item{key: fields[1], name: digest(fields[1]), feed: feed, date: time.Unix(seconds, 0), title: fields[3], excerpt: fields[4], images: fields[5] != ""}
}

// noted is a page that the ledger knows.
type noted struct {
	path string
	known
}

// pages yields the pages.
func (l *ledger) pages() iter.Seq2[noted, error] {
	return func(yield func(noted, error) bool) {
		more := true
		err := l.lines("page", func(_ string, fields []string) bool {
			if len(fields) == 4 {
				if size, err := strconv.ParseInt(fields[3], 10, 64); err == nil {
					more = yield(noted{fields[1], known{fields[2], size}}, nil)
				}
			}
			return more
		})
		if err != nil && more {
			yield(noted{}, err)
		}
	}
}

// appendLine appends the line of an entry.
func (i *item) appendLine(b []byte) []byte {
	images := ""
	if i.images {
		images = "images"
	}
	return append(b, "entry\t"+i.key+"\t"+strconv.FormatInt(i.date.Unix(), 10)+"\t"+i.title+"\t"+i.excerpt+"\t"+images+"\n"...)
}

func (n noted) line() string {
	return "page\t" + n.path + "\t" + n.digest + "\t" + strconv.FormatInt(n.size, 10) + "\n"
}

// digest tells texts apart.
func digest(parts ...string) string {
	d := newDigester(parts...)
	return d.sum()
}

// digester makes a digest of texts that come one by one.
type digester struct{ h hash.Hash }

func newDigester(parts ...string) digester {
	d := digester{sha256.New()}
	d.add(parts...)
	return d
}

func (d digester) add(parts ...string) {
	for _, p := range parts {
		fmt.Fprintf(d.h, "%d:%s", len(p), p)
	}
}

func (d digester) sum() string { return hex.EncodeToString(d.h.Sum(nil)[:12]) }

// ourDirs are the names of the directories that have pages.
var ourDirs = lazy.Regexp(`^(all|search|entry|(feed|folder)(/[0-9a-z-]+)?)$`)

// ours are the names of pages.
var ours = lazy.Regexp(`^(style\.css|(index|feeds)\.html|(all|search|entry|feed/[0-9a-f]+|folder/[0-9a-z-]+)/[0-9a-z-]+\.html)$`)
