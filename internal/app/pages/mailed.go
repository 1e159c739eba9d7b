package pages

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/lektordir/lektor/internal/cmdline"
	"github.com/lektordir/lektor/internal/filelog"
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
	log   *filelog.Log
	fresh bool            // the file was missing or empty
	keys  map[string]bool // feed/unique
	ids   map[string]bool // feed and identity
	// there asks the mailbox whether it has an entry, where the ledger was lost.
	there func(lektordir.Ref) bool
	buf   bytes.Buffer
}

const (
	mailLedgerHead = "lektor-mail 1"
	maxMailLedger  = 1 << 30 // bytes: those of ten million entries
)

// openMailLedger locks and reads a ledger, which is made if need be.
// to is the mailbox.
func openMailLedger(path, to string) (*mailLedger, error) {
	log, data, err := filelog.Open(path, filelog.Options{Max: maxMailLedger, Perm: 0o600, Lock: true}) // as mailboxes are
	if errors.Is(err, filelog.ErrLocked) {
		return nil, cmdline.Hint(fmt.Errorf("another process adds to %s", to), "try again in a moment")
	}
	if err != nil {
		return nil, err
	}
	l := &mailLedger{log: log, fresh: len(data) == 0, keys: map[string]bool{}, ids: map[string]bool{}}
	head, lines, _ := strings.Cut(string(data), "\n")
	switch {
	case l.fresh:
		l.buf.WriteString(mailLedgerHead + "\n")
	case head != mailLedgerHead:
		l.close()
		return nil, cmdline.Hint(fmt.Errorf("%s is of another program, or of another version", path), "add to a new mailbox, or remove the file; then what was moved out of this mailbox is added again")
	}
	for line := range strings.Lines(lines) {
		if r, ok := mailRef(strings.TrimSuffix(line, "\n")); ok {
			l.know(r)
		}
	}
	return l, nil
}

// each calls f for what the ledger knows.
func (l *mailLedger) each(f func(lektordir.Ref)) {
	for key := range l.keys {
		if r, ok := mailRef(key); ok {
			f(r)
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

// knows reports whether an entry was mailed, and if not, whether another version of it
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
	before := l.log.Size()
	if err := l.log.Append(l.buf.Bytes()); err != nil {
		return err
	}
	if err := l.log.Sync(); err != nil {
		l.log.Cut(before)
		return err
	}
	l.buf.Reset()
	return nil
}

func (l *mailLedger) close() { _ = l.log.Close() }
