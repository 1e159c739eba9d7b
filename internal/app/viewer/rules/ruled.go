package rules

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/filelog"
	"github.com/lektordir/lektor/internal/tsv"
)

// What the rules have seen is remembered in
//
//	etc/view/ruled
//
// Rules are for what arrives, which is in new/ and in nobody's hands yet. So the file
// has no more than that, and what rules are still at work on: a line for each, of a
// word, the feed and the unique name with a slash between, and perhaps a number, with
// tabs between them. The last line of an entry counts.
//
//	seen   nothing is left to do
//	done   nothing is left to do, and flags were set, so that it is not in new/
//	todo   rules are applied to it: its flags first, then commands
//	run    N   flags are set, and command N, from 0, was about to be started
//	later  N   flags are set, and command N wants to be run again
//
// A line is written before what it tells of is begun, and not synced: after a kill,
// flags are set again, which changes nothing, and a command that may have run is not
// run again. Where a power cut undid a move, flags are set again too. A line without its end does not count. What is not in new/ any more is
// dropped. Without the file, as in a copy without etc/, all that is new is an arrival.
//
// One process at a time is at it; etc/view is locked for that.
const (
	ruledFile  = "etc/view/ruled"
	maxRuled   = 256 << 20 // bytes: those of two million entries
	ruledSlack = 1000      // lines too many before it is written anew
)

// progress is how far rules are with an entry.
type progress struct {
	word string // see above; "" for none
	n    int
}

// write appends the line of an entry.
func (p progress) write(b *bytes.Buffer, key string) {
	b.WriteString(p.word + "\t" + tsv.Escape(key))
	if p.word == "run" || p.word == "later" {
		b.WriteString("\t" + strconv.Itoa(p.n))
	}
	b.WriteByte('\n')
}

// ruled is the file, locked.
type ruled struct {
	path  string
	lock  *os.File
	log   *filelog.Log        // nil in a dry run
	known map[string]progress // by feed and unique name
	lines int
	buf   bytes.Buffer // lines that nothing depends on yet
}

// openRuled locks the file, waits for who has it, and reads it. For a dry run it reads
// it, and that is all.
func openRuled(ctx context.Context, s *entries.Store, dryRun bool) (*ruled, error) {
	r := &ruled{path: s.Dir.Join(ruledFile), known: map[string]progress{}}
	if dryRun {
		data, err := filelog.Read(r.path, filelog.Options{Max: maxRuled})
		r.read(data)
		return r, err
	}
	if err := atomicfile.NoLinks(s.Dir.Path(), "etc/view"); err != nil {
		return nil, err
	}
	dir := filepath.Dir(r.path)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	var err error
	if r.lock, err = os.Open(dir); err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err = atomicfile.Hold(r.lock, unix.LOCK_EX|unix.LOCK_NB)
		// A file system without locks does without.
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		if !told {
			s.S.Report.Info("another process applies rules; waiting for it")
		}
		select {
		case <-ctx.Done():
			r.close()
			return nil, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
	var data []byte
	if r.log, data, err = filelog.Open(r.path, filelog.Options{Max: maxRuled}); err != nil {
		r.close()
		return nil, err
	}
	r.read(data)
	return r, nil
}

// read reads the lines of the file.
func (r *ruled) read(data []byte) {
	for line := range strings.Lines(string(data)) {
		r.lines++
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) < 2 {
			continue
		}
		p := progress{word: f[0]}
		if len(f) > 2 {
			var err error
			if p.n, err = strconv.Atoi(f[2]); err != nil || p.n < 0 {
				continue
			}
		}
		r.known[tsv.Unescape([]byte(f[1]))] = p
	}
}

// note appends a line. It is in the kernel's hands when note returns.
func (r *ruled) note(key, word string, n int) error {
	r.add(key, word, n)
	return r.flush()
}

// add appends a line that may be lost in a kill.
func (r *ruled) add(key, word string, n int) {
	p := progress{word, n}
	r.known[key] = p
	r.lines++
	p.write(&r.buf, key)
	if r.buf.Len() > 64<<10 {
		_ = r.flush() // and again at the end, which tells
	}
}

func (r *ruled) flush() error {
	err := r.log.Append(r.buf.Bytes())
	if err == nil {
		r.buf.Reset()
	}
	return err
}

// compact writes the file anew if much of it is about entries that are not there any
// more, or are in somebody's hands: there tells which are left.
func (r *ruled) compact(there func(key string, p progress) bool) error {
	if r.log == nil {
		return nil
	}
	kept := 0
	for key, p := range r.known {
		if there(key, p) {
			kept++
		} else {
			delete(r.known, key)
		}
	}
	if r.lines < 2*kept+ruledSlack {
		return nil
	}
	var b bytes.Buffer
	for key, p := range r.known {
		p.write(&b, key)
	}
	if err := r.log.Replace(b.Bytes(), atomicfile.WriteUnsynced); err != nil {
		return err
	}
	r.buf.Reset() // the file has those lines
	r.lines = kept
	return nil
}

// close writes what is left, and unlocks.
func (r *ruled) close() (err error) {
	if r.log != nil {
		err = cmp.Or(r.flush(), r.log.Close())
	}
	if r.lock != nil {
		r.lock.Close()
	}
	return err
}
