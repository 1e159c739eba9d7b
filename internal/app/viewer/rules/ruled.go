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

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/filelog"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// The entries that rules have seen are recorded in
//
//	etc/view/ruled
//
// Rules are for entries in new/. So the file lists only entries in new/ and those that rules have
// not finished. A line is a word, FEED/UNIQUE and possibly a number, separated by tabs. The last
// line of an entry counts.
//
//	seen   all is done; no flags were set
//	done   all is done; flags were set, so the entry is no longer in new/
//	todo   rules are being applied: flags first, then commands
//	run    N   flags are set, and command N, from 0, was about to be started
//	later  N   flags are set, and command N is to be run again
//
// The lines todo, run and later are written before the step, and are not synced. After a kill,
// flags are set again, which changes nothing, and a command that may have run is not run again. A
// line without a newline is ignored. Finished entries that are no longer in new/ are dropped.
// Without the file, for example in a copy without etc/, all entries in new/ count as arrivals.
//
// One process at a time uses the file. It locks the directory etc/view.
const (
	ruledFile  = "etc/view/ruled"
	maxRuled   = 256 << 20 // bytes of the file, enough for two million entries
	ruledSlack = 1000      // superfluous lines before the file is rewritten
)

// progress is a line of the file: how far the rules are with an entry.
type progress struct {
	word string // see ruledFile; "" if the entry has no line
	n    int
}

// write appends the line of an entry.
func (p progress) write(b *bytes.Buffer, key string) {
	b.WriteString(p.word + "\t" + textfile.Escape(key))
	if p.word == "run" || p.word == "later" {
		b.WriteString("\t" + strconv.Itoa(p.n))
	}
	b.WriteByte('\n')
}

// ruled is the file while it is locked.
type ruled struct {
	path     string
	lock     *os.File
	log      *filelog.Log        // nil in a dry run
	progress map[string]progress // by FEED/UNIQUE
	lines    int
	buf      bytes.Buffer // lines that are not written yet
}

// openRuled locks the file, waiting for another process if need be, and reads it. A dry run only
// reads it.
func openRuled(ctx context.Context, s *entrystore.Store, dryRun bool) (*ruled, error) {
	r := &ruled{path: s.Dir.Join(ruledFile), progress: map[string]progress{}}
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
	// If the file system has no locks, continue without one.
	isBusy := func(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }
	_ = workers.WhileBusy(ctx, workers.Sleep, 0, func() {
		s.S.Report.Info("another process applies rules; waiting for it")
	}, isBusy, func() error { return atomicfile.Hold(r.lock, unix.LOCK_EX|unix.LOCK_NB) })
	if ctx.Err() != nil {
		r.close()
		return nil, context.Cause(ctx)
	}
	var data []byte
	if r.log, data, err = filelog.Open(r.path, filelog.Options{Max: maxRuled}); err != nil {
		r.close()
		return nil, err
	}
	r.read(data)
	return r, nil
}

// read parses the lines of the file.
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
		r.progress[textfile.UnescapeName([]byte(f[1]))] = p
	}
}

// note appends a line and writes it to the file, without a sync.
func (r *ruled) note(key, word string, n int) error {
	r.add(key, word, n)
	return r.flush()
}

// add appends a line to the buffer. A kill may lose it.
func (r *ruled) add(key, word string, n int) {
	p := progress{word, n}
	r.progress[key] = p
	r.lines++
	p.write(&r.buf, key)
	if r.buf.Len() > 64<<10 {
		_ = r.flush() // close tries again, and returns the error
	}
}

func (r *ruled) flush() error {
	err := r.log.Append(r.buf.Bytes())
	if err == nil {
		r.buf.Reset()
	}
	return err
}

// compact drops the entries for which keep reports false, and rewrites the file if most of its
// lines are superfluous.
func (r *ruled) compact(keep func(key string, p progress) bool) error {
	if r.log == nil {
		return nil
	}
	n := 0
	for key, p := range r.progress {
		if keep(key, p) {
			n++
		} else {
			delete(r.progress, key)
		}
	}
	if r.lines < 2*n+ruledSlack {
		return nil
	}
	var b bytes.Buffer
	for key, p := range r.progress {
		p.write(&b, key)
	}
	// Synced, because a power cut that leaves the new file empty would make all entries arrivals, and their
	// commands run again.
	if err := r.log.Replace(b.Bytes(), atomicfile.Write); err != nil {
		return err
	}
	r.buf.Reset() // the new file has these lines
	r.lines = n
	return nil
}

// close writes the buffer, closes the file, and unlocks it.
func (r *ruled) close() (err error) {
	if r.log != nil {
		err = cmp.Or(r.flush(), r.log.Close())
	}
	if r.lock != nil {
		r.lock.Close()
	}
	return err
}
