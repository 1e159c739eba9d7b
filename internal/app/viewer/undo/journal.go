package undo

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/filelog"
	"github.com/lektordir/lektor/lektordir"
)

// What a command moved is written down in a file of its own, so that two commands
// at once are not in each other's way:
//
//	etc/view/undo/UID.NUMBER
//
// The number is one more than the greatest of this user. The first line is the
// command and when it began, with a tab between; the others are the renames in
// their order, the old path, a tab and the new one, relative to the lektor-dir.
//
// A line is written before its rename: what a kill leaves is at most a line too
// many, and undo finds that entry where it was. It is in the kernel's hands then, and
// not synced, as the renames themselves are not. Whoever writes the file, and whoever
// takes it back, has it locked; that is all that is locked, and no entry waits for it.
const (
	undoDir      = "etc/view/undo"
	maxCommands  = 20
	maxJournal   = 64 << 20 // bytes of one command: those of 300,000 entries
	journalTries = 100
)

// journal is what the command that runs writes down; nil for a command that writes nothing
// down.
type journal struct {
	store   *entries.Store
	command string
	log     *filelog.Log // nil until an entry is moved
	moves   int
	max     int64
	failed  error // no more is written
	told    bool  // that undo will not know of some
}

// record writes down a rename, and makes it. The rename is made even if it cannot be
// written down; then a warning says so, once, unless the rename failed, too: where both
// fail, as on a disk that is read-only, one message is enough.
func (j *journal) record(from, to string, rename func() error) error {
	if j == nil {
		return rename()
	}
	before, noted := j.note(from, to)
	err := rename()
	switch {
	case err != nil && noted:
		j.log.Cut(before)
		j.moves--
	case err != nil || j.failed == nil || j.told:
	case j.moves > 0:
		j.store.S.Report.Warn("undo will take back only the first %d of these: %v", j.moves, j.failed)
		j.told = true
	default:
		j.store.S.Report.Warn("undo will not take this back: %v", j.failed)
		j.told = true
	}
	return err
}

// note appends a line. It returns the size of the log before it, and whether there is
// such a line now.
func (j *journal) note(from, to string) (before int64, noted bool) {
	if j.failed != nil {
		return 0, false
	}
	if strings.ContainsAny(from, "\t\n") || strings.ContainsAny(to, "\t\n") {
		j.store.S.Report.Warn("undo will not know of %s: its name has a tab or a newline", from)
		return 0, false
	}
	if j.failed = j.begin(); j.failed != nil {
		return 0, false
	}
	line := from + "\t" + to + "\n"
	before = j.log.Size()
	if before+int64(len(line)) > j.max {
		j.failed = errors.New("there are too many")
	} else {
		j.failed = j.log.Append([]byte(line))
	}
	if j.failed != nil {
		return 0, false
	}
	j.moves++
	return before, true
}

// close ends the journal. A command that moved nothing leaves none.
func (j *journal) close() {
	if j == nil || j.log == nil {
		return
	}
	if j.moves == 0 {
		_ = j.log.Remove()
	}
	_ = j.log.Close()
}

// begin makes the file, and removes those of all but the last commands.
func (j *journal) begin() error {
	if j.log != nil {
		return nil
	}
	d := j.store.Dir
	if err := atomicfile.NoLinks(d.Path(), "etc/view", undoDir); err != nil {
		return err
	}
	dir := d.Join(undoDir)
	records, err := commands(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	number := int64(0)
	for _, r := range records {
		number = max(number, r.number)
	}
	for range journalTries {
		number++
		path := filepath.Join(dir, strconv.Itoa(os.Getuid())+"."+strconv.FormatInt(number, 10))
		log, _, err := filelog.Open(path, filelog.Options{New: true, Lock: true})
		// Another command was faster, or undo finds the file empty and removes it.
		if errors.Is(err, fs.ErrExist) || errors.Is(err, filelog.ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		if err := log.Append([]byte(j.command + "\t" + j.store.Now.UTC().Format(time.RFC3339) + "\n")); err != nil {
			_ = log.Remove()
			_ = log.Close()
			return err
		}
		j.log = log
		for _, r := range records[min(maxCommands-1, len(records)):] {
			_ = os.Remove(r.path)
		}
		return nil
	}
	return fmt.Errorf("%s: others make one all the time", dir)
}

// record is the file of a command that was run before.
type record struct {
	number int64
	path   string
}

// commands returns the files of this user's last commands, the last first. What has
// another name is none.
func commands(d *lektordir.Dir) ([]record, error) {
	names, err := os.ReadDir(d.Join(undoDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var records []record
	for _, e := range names {
		digits, ok := strings.CutPrefix(e.Name(), strconv.Itoa(os.Getuid())+".")
		// With more digits than these there would be no number after it.
		if !ok || len(digits) > 15 || digits == "" || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		number, _ := strconv.ParseInt(digits, 10, 64)
		records = append(records, record{number, d.Join(undoDir, e.Name())})
	}
	slices.SortFunc(records, func(a, b record) int { return cmp.Compare(b.number, a.number) })
	return records, nil
}

// renamed is a rename that was written down.
type renamed struct {
	from lektordir.Ref
	to   lektordir.Ref // zero for one that was removed
}

// done is what a command wrote down.
type done struct {
	command string
	began   time.Time
	moves   []renamed
	odd     int // lines that are no renames of entries
}

// read reads a file of the journal.
func (r record) read() (*done, error) {
	data, err := filelog.Read(r.path, filelog.Options{Max: maxJournal})
	if err != nil {
		return nil, err
	}
	d := parseDone(string(data))
	if d == nil {
		return nil, fmt.Errorf("%s: it is not what a command writes", r.path)
	}
	return d, nil
}

// parseDone reads the text of a file of the journal; nil is none. What stands in it
// is not believed: no line moves anything but an entry, and that from cur/ to cur/
// only.
func parseDone(text string) *done {
	if text == "" {
		return &done{} // killed before it wrote anything
	}
	head, text, _ := strings.Cut(text, "\n")
	command, began, _ := strings.Cut(head, "\t")
	d := &done{command: command}
	var err error
	if d.began, err = time.Parse(time.RFC3339, began); err != nil || command == "" {
		return nil
	}
	for line := range strings.Lines(text) {
		m, ok := parseRenamed(strings.TrimSuffix(line, "\n"))
		if !ok {
			d.odd++
			continue
		}
		d.moves = append(d.moves, m)
	}
	return d
}

// parseRenamed reads a line of the journal.
func parseRenamed(line string) (m renamed, ok bool) {
	from, to, _ := strings.Cut(line, "\t")
	var err error
	if m.from, err = lektordir.ParsePath(from); err != nil {
		return m, false
	}
	if to == removedPath(m.from) {
		return m, true
	}
	m.to, err = lektordir.ParsePath(to)
	return m, err == nil && m.to.Place == lektordir.Cur && m.to.Feed == m.from.Feed && m.to.Unique == m.from.Unique
}

// removedPath is where an entry is put that is removed, see [lektordir.Dir.Remove].
func removedPath(r lektordir.Ref) string { return "tmp/" + r.Feed + "/" + r.Unique + ";gone" }
