package viewer

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

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
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

// journal is what the command that runs writes down. The zero value of f stands
// for a command that has moved nothing yet, and has no file.
type journal struct {
	v       *viewer
	command string
	f       *os.File
	size    int64 // of what is written and right
	last    int64 // of the last line
	moves   int
	max     int64
	failed  error // no more is written
	told    bool
}

// moves begins the journal of a command; [journal.close] ends it. Nothing is written
// until an entry is to be moved.
func (v *viewer) moves(command string) *journal {
	v.journal = &journal{v: v, command: command, max: maxJournal}
	return v.journal
}

// note writes down a rename that is about to be made, which [journal.made] or
// [journal.cancel] follows. What the user asked for is done even if it fails.
func (j *journal) note(from, to string) {
	if j == nil || j.failed != nil {
		return
	}
	line := from + "\t" + to + "\n"
	if strings.ContainsAny(from, "\t\n") || strings.ContainsAny(to, "\t\n") {
		j.v.S.Report.Warn("undo will not know of %s: its name has a tab or a newline", from)
		j.last = 0
		return
	}
	err := j.begin()
	if err == nil && j.size+int64(len(line)) > j.max {
		err = fmt.Errorf("there are too many")
	}
	if err == nil {
		if _, err = j.f.WriteString(line); err != nil {
			j.cut() // of a part of it
		}
	}
	if j.failed = err; err != nil {
		return
	}
	j.last = int64(len(line))
	j.size += j.last
	j.moves++
}

// made is told of a rename that was made. If it was not written down it warns, once;
// where it was not made either, as on a disk that is read-only, one message is enough.
func (j *journal) made() {
	switch {
	case j == nil || j.failed == nil || j.told:
		return
	case j.moves > 0:
		j.v.S.Report.Warn("undo will take back only the first %d of these: %v", j.moves, j.failed)
	default:
		j.v.S.Report.Warn("undo will not take this back: %v", j.failed)
	}
	j.told = true
}

// cancel strikes out the last line, whose rename was not made.
func (j *journal) cancel() {
	if j == nil || j.f == nil || j.failed != nil || j.last == 0 {
		return
	}
	j.size -= j.last
	j.last = 0
	j.moves--
	j.cut()
}

// cut takes off what was written beyond the last good line. Where that fails, so
// will the next write.
func (j *journal) cut() { _ = j.f.Truncate(j.size) }

// close ends the journal, and with it what is told of entries that were not moved. A
// command that moved nothing leaves none.
func (j *journal) close() {
	j.v.tellFailed()
	if j.f == nil {
		return
	}
	if j.moves == 0 {
		_ = os.Remove(j.f.Name())
	}
	_ = j.f.Close()
}

// begin makes the file, and removes those of all but the last commands.
func (j *journal) begin() error {
	if j.f != nil {
		return nil
	}
	v := j.v
	if err := v.Dir.Inside("etc/view", undoDir); err != nil {
		return err
	}
	dir := v.Dir.Join(undoDir)
	records, err := v.commands()
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
	var f *os.File
	for try := 0; f == nil; try++ {
		if try == journalTries {
			return fmt.Errorf("%s: others make one all the time", dir)
		}
		number++
		path := filepath.Join(dir, strconv.Itoa(os.Getuid())+"."+strconv.FormatInt(number, 10))
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		// Undo may have come between, found it empty and removed it.
		if there, err := lockRecord(f, unix.LOCK_EX); err != nil || !there {
			f.Close()
			f = nil
			if err != nil {
				return err
			}
		}
	}
	head := j.command + "\t" + v.Now.UTC().Format(time.RFC3339) + "\n"
	if _, err := f.WriteString(head); err != nil {
		_ = os.Remove(f.Name())
		f.Close()
		return err
	}
	j.f, j.size = f, int64(len(head))
	for _, r := range records[min(maxCommands-1, len(records)):] {
		_ = os.Remove(r.path)
	}
	return nil
}

// lockRecord locks a file of the journal until it is closed, and tells whether it
// is still there. A file system without locks does without.
func lockRecord(f *os.File, how int) (there bool, err error) {
	if err := atomicfile.Hold(f, how); errors.Is(err, unix.EWOULDBLOCK) {
		return false, err
	}
	there, err = atomicfile.InPlace(f)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return there, err
}

// record is the file of a command that was run before.
type record struct {
	number int64
	path   string
}

// commands gives the files of this user's last commands, the last first. What has
// another name is none.
func (v *viewer) commands() ([]record, error) {
	names, err := os.ReadDir(v.Dir.Join(undoDir))
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
		records = append(records, record{number, v.Dir.Join(undoDir, e.Name())})
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
	data, err := atomicfile.Read(r.path, maxJournal)
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
		line, whole := strings.CutSuffix(line, "\n")
		if !whole {
			break // killed while it was written: nothing was renamed
		}
		m, ok := parseRenamed(line)
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
