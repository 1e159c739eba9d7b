package pages

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/tsv"
	"github.com/lektordir/lektor/lektordir"
)

// mailLedger remembers beside a mailbox what was put into it, so that nothing is that
// was once: not what a mail program has moved or deleted, and not what a publisher
// changed a word in. A line is the feed and the unique name of an entry, with a slash
// between, in the form of package tsv. It is written before the messages appear, and
// synced, and nothing is ever taken out of it. A line without its end does not count, and
// is cut off.
//
// The file is locked for as long as the ledger is open.
type mailLedger struct {
	f      *os.File
	unlock func()
	fresh  bool            // there was none
	keys   map[string]bool // feed/unique
	ids    map[string]bool // feed and identity
	// there asks the mailbox whether it has an entry, where the ledger was lost.
	there func(lektordir.Ref) bool
	buf   bytes.Buffer
}

const mailLedgerHead = "lektor-mail 1\n"

// openMailLedger locks and reads a ledger, which is made if need be.
// to is the mailbox.
func openMailLedger(path, to string) (*mailLedger, error) {
	unlock, err := atomicfile.Lock(path, command.Hint(fmt.Errorf("another process adds to %s", to), "try again in a moment"))
	if err != nil {
		return nil, err
	}
	l := &mailLedger{unlock: unlock, keys: map[string]bool{}, ids: map[string]bool{}}
	if err := l.read(path); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *mailLedger) read(path string) error {
	f, err := atomicfile.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	whole, size := int64(0), int64(0)
	for line, err := range linesOf(f) {
		if err != nil {
			return err
		}
		size += int64(len(line))
		if !strings.HasSuffix(line, "\n") {
			break
		}
		if whole == 0 && line != mailLedgerHead {
			return command.Hint(fmt.Errorf("%s is of another program, or of another version", path), "add to a new mailbox, or remove the file; then what was moved out of this mailbox is added again")
		}
		if whole > 0 {
			if r, ok := mailRef(strings.TrimSuffix(line, "\n")); ok {
				l.know(r)
			}
		}
		whole = size
	}
	l.fresh = whole == 0
	if l.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0); err != nil {
		return err
	}
	if whole < size {
		err = l.f.Truncate(whole)
	}
	if l.fresh && err == nil {
		l.buf.WriteString(mailLedgerHead)
		err = l.f.Chmod(0o600) // as mailboxes are
	}
	return err
}

// each calls f for what is in the file.
func (l *mailLedger) each(f func(lektordir.Ref)) error {
	in, err := atomicfile.OpenRegular(l.f.Name())
	if err != nil {
		return err
	}
	defer in.Close()
	for line, err := range linesOf(in) {
		if err != nil {
			return err
		}
		if r, ok := mailRef(strings.TrimSuffix(line, "\n")); ok {
			f(r)
		}
	}
	return nil
}

// linesOf yields the lines of a file with their ends, which the last may lack.
func linesOf(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		b := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := b.ReadString('\n')
			if line != "" && !yield(line, nil) || errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}

// mailKey is an entry in a line, and mailRef reads it.
func mailKey(r lektordir.Ref) string { return tsv.Escape(r.Feed + "/" + r.Unique) }

func mailRef(key string) (lektordir.Ref, bool) {
	feed, unique, ok := strings.Cut(tsv.Unescape([]byte(key)), "/")
	return lektordir.Ref{Feed: feed, Unique: unique}, ok
}

func identityKey(r lektordir.Ref) string {
	if id := r.Identity(); id != "" {
		return r.Feed + "\x00" + id
	}
	return ""
}

func (l *mailLedger) know(r lektordir.Ref) {
	l.keys[mailKey(r)] = true
	if id := identityKey(r); id != "" {
		l.ids[id] = true
	}
}

// knows tells whether an entry was mailed, and if not, whether another version of it
// was.
func (l *mailLedger) knows(r lektordir.Ref) (known, later bool) {
	if l.there != nil && l.there(r) {
		l.add(r)
	}
	id := identityKey(r)
	return l.keys[mailKey(r)], id != "" && l.ids[id]
}

// add adds an entry, which is in the file after [mailLedger.flush].
func (l *mailLedger) add(r lektordir.Ref) {
	l.know(r)
	l.buf.WriteString(mailKey(r) + "\n")
}

// flush writes and syncs what was added. After an error nothing of it counts.
func (l *mailLedger) flush() error {
	if l.buf.Len() == 0 {
		return nil
	}
	fi, err := l.f.Stat()
	if err == nil {
		_, err = l.f.Write(l.buf.Bytes())
	}
	if err == nil {
		err = l.f.Sync()
	}
	if err == nil && l.fresh {
		err = atomicfile.SyncDir(filepath.Dir(l.f.Name()))
	}
	if err != nil {
		if fi != nil {
			_ = l.f.Truncate(fi.Size())
		}
		return err
	}
	l.buf.Reset()
	return nil
}

func (l *mailLedger) close() {
	if l.f != nil {
		_ = l.f.Close()
	}
	l.unlock()
}
