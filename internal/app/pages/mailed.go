package pages

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/filelog"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// mailLedger is the record of the entries that were delivered to a mailbox, in a file beside it.
// So no entry is delivered again: neither one whose message a mail program moved or deleted, nor
// one that its publisher corrected. A line is the feed and the unique name of an entry, with a
// slash between them, in the form of package textfile. Lines are written and synced before the messages
// appear, and are never removed. A line that is cut off is ignored and truncated.
//
// The file is locked while the ledger is open.
type mailLedger struct {
	log  *filelog.Log
	lost bool            // lines may be missing, or all of them
	keys map[string]bool // feed/unique
	ids  map[string]bool // feed and identity
	// there reports whether the mailbox has an entry; nil unless lines were lost.
	there func(lektordir.Ref) bool
	buf   bytes.Buffer // lines for the next flush
}

const (
	mailLedgerHead = "lektor-mail 1"
	maxMailLedger  = 1 << 30 // bytes, enough for ten million entries
)

// openMailLedger locks and reads a ledger, and creates it if it is missing. to is the mailbox, for
// messages.
func openMailLedger(path, to string) (*mailLedger, error) {
	// private, like mailboxes
	log, data, err := filelog.Open(path, filelog.Options{Max: maxMailLedger, Perm: 0o600, Lock: true})
	if errors.Is(err, filelog.ErrLocked) {
		return nil, cmdline.Hint(fmt.Errorf("another process adds to %s", to), "try again in a moment")
	}
	if err != nil {
		return nil, err
	}
	text := string(data)
	l := &mailLedger{log: log, lost: lost(text, mailLedgerHead), keys: map[string]bool{}, ids: map[string]bool{}}
	head, lines, _ := strings.Cut(text, "\n")
	know := l.know
	switch {
	case l.lost: // its lines are written again below a new head
		log.Cut(0)
		l.buf.WriteString(mailLedgerHead + "\n")
		know = l.add
	case head != mailLedgerHead:
		l.close()
		return nil, cmdline.Hint(fmt.Errorf("%s was written by another program, or by another version", path),
			"name a new mailbox, or remove the file; then messages that you moved or deleted are delivered again")
	}
	for line := range strings.Lines(lines) {
		if r, ok := mailRef(strings.TrimSuffix(line, "\n")); ok && !strings.Contains(line, "\x00") {
			know(r)
		} else {
			l.lost = true
		}
	}
	return l, nil
}

// each calls f for each entry in the ledger.
func (l *mailLedger) each(f func(lektordir.Ref)) {
	for key := range l.keys {
		if r, ok := mailRef(key); ok {
			f(r)
		}
	}
}

// mailKey returns the line for an entry, without its newline; mailRef is the reverse.
func mailKey(r lektordir.Ref) string { return textfile.Escape(r.Feed + "/" + r.Unique) }

func mailRef(key string) (lektordir.Ref, bool) {
	feed, unique, ok := strings.Cut(textfile.UnescapeName([]byte(key)), "/")
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

// knows reports whether an entry was mailed, and whether any version of it was.
func (l *mailLedger) knows(r lektordir.Ref) (known, version bool) {
	if l.there != nil && l.there(r) {
		l.add(r)
	}
	id := identityKey(r)
	return l.keys[mailKey(r)], id != "" && l.ids[id]
}

// add adds an entry. [mailLedger.flush] writes it to the file.
func (l *mailLedger) add(r lektordir.Ref) {
	l.know(r)
	l.buf.WriteString(mailKey(r) + "\n")
}

// flush writes and syncs the added lines. If it fails, it truncates the file to its former size.
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
