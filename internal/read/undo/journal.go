// Package undo marks and removes entries for viewers, and records that in journals, by which
// lektor-view undo takes it back.
package undo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/filelog"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// The journal of each command is a file of its own, so that concurrent commands do not disturb
// each other:
//
//	etc/view/undo/UID.NUMBER
//
// The number is one more than the user's greatest. The first line is the command, a tab and the
// time at which it began. Each other line is a rename: the old path, a tab and the new path,
// relative to the lektor-dir; or it is a change of a setting of a feed: the feed's hash, the key, the old value
// and the new one, with tabs between them and the escapes of textfile. If these values are equal, they were removed.
//
// A line is written before its rename or change, those of many entries a chunk at a time. So a kill leaves lines
// too many, at most those of a chunk. Undo then finds these entries at their old paths. Lines are not
// synced, as the renames are not either. The command
// that writes the file, and undo, lock it. Entries are not locked.
const (
	// Dir is the directory of the journals, relative to the lektor-dir.
	Dir = "etc/view/undo"
	// MaxCommands is the number of commands of a user whose journals are kept.
	MaxCommands  = 20
	maxJournal   = 64 << 20 // bytes of one journal, enough for 300,000 entries
	journalTries = 100
	maxChunk     = 256 // lines

	// secretsAge is the time after which values that may be secret are removed.
	secretsAge = 30 * 24 * time.Hour
)

// journal is the journal of the running command; nil for a command that cannot be undone.
type journal struct {
	store   *entrystore.Store
	command string
	log     *filelog.Log // nil until an entry is moved
	moves   int
	ahead   []string // lines that are at the end of the log, of renames that are not made yet
	written int64    // size of the log before them
	chunk   int      // number of lines of the last chunk; 0 after a failure
	max     int64
	failed  error // why no more lines are written
	warned  bool  // the user knows that undo will be incomplete

	span   Span   // see [Mover.Span]
	chain  *Chain // nil for a command
	client string
}

// record writes a rename to the journal and makes it. If writing fails, it makes the rename
// anyway and warns once. If the rename fails too, for example on a read-only disk, it returns
// that error without the warning.
func (j *journal) record(from, to string, rename func() error) error {
	if j == nil {
		return rename()
	}
	before, written := j.note(from, to)
	err := rename()
	switch {
	case err == nil:
		j.warn()
	case written:
		j.log.Cut(before)
		j.ahead, j.chunk = nil, 0
		j.moves--
	}
	return err
}

// warn warns once that lines cannot be written.
func (j *journal) warn() {
	switch {
	case j.failed == nil || j.warned:
		return
	case j.moves > 0:
		j.store.S.Report.Warn("undo can take back only the first %d of these: %v", j.moves, j.failed)
	default:
		j.store.S.Report.Warn("undo cannot take this back: %v", j.failed)
	}
	j.warned = true
}

// note appends a line for a rename. It returns the size of the log before the line, and whether
// the line was written.
func (j *journal) note(from, to string) (before int64, written bool) {
	line, ok := moveLine(from, to)
	switch {
	case j.failed != nil:
		return 0, false
	case !ok:
		j.store.S.Report.Warn("undo cannot take back %s: its name has a tab or a newline", from)
		return 0, false
	case len(j.ahead) > 0 && j.ahead[0] == line:
		before = j.written
		j.ahead, j.written = j.ahead[1:], before+int64(len(line))
		j.moves++
		return before, true
	}
	return j.append(line, 1)
}

// moveLine returns the line of a rename, and whether it can be read.
func moveLine(from, to string) (line string, ok bool) {
	line = from + "\t" + to + "\n"
	return line, strings.Count(line, "\t") == 1 && strings.Count(line, "\n") == 1
}

// append appends lines of n changes. It returns the size of the log before, and whether they were written.
func (j *journal) append(lines string, n int) (before int64, written bool) {
	if j.failed == nil {
		j.failed = j.begin()
	}
	if j.failed != nil {
		return 0, false
	}
	j.forget()
	if before = j.log.Size(); before+int64(len(lines)) > j.max {
		j.failed = errors.New("the journal of the command is full")
	} else if j.failed = j.log.Append([]byte(lines)); j.failed == nil {
		j.moves += n
	}
	return before, j.failed == nil
}

// settings appends lines for changes of settings. They are synced, as the changes are.
func (j *journal) settings(changes []subscriptions.Change) {
	c := Contents{Changes: changes}
	if _, written := j.append(c.Lines(), len(changes)); written {
		j.failed = errors.Join(j.log.Sync(), atomicfile.SyncDir(j.store.Dir.Join(Dir)))
	}
	j.warn()
}

// settingLine returns the line of a change of a setting.
func settingLine(c subscriptions.Change) string {
	return strings.Join([]string{c.Hash, c.Key, textfile.Escape(c.Old), textfile.Escape(c.New)}, "\t") + "\n"
}

// announce writes lines before their renames, a chunk of them. It is for speed only: a line that is not
// written is left to note.
func (j *journal) announce(refs []lektordir.Ref, set, unset string) {
	if j == nil || len(j.ahead) > 0 || j.failed != nil || j.log == nil {
		return // the first rename creates the journal
	}
	j.chunk = min(max(2*j.chunk, 1), maxChunk)
	if j.chunk == 1 {
		return
	}
	var ahead []string
	for _, ref := range refs {
		to, err := ref.WithFlags(set, unset)
		line, ok := moveLine(ref.Path(), to.Path())
		if err != nil || to == ref || !ok {
			continue // note refuses it
		}
		if ahead = append(ahead, line); len(ahead) == j.chunk {
			break
		}
	}
	text, before := strings.Join(ahead, ""), j.log.Size()
	if before+int64(len(text)) <= j.max && j.log.Append([]byte(text)) == nil {
		j.ahead, j.written = ahead, before
	}
}

// forget removes the lines of renames that will not be made in this order.
func (j *journal) forget() {
	if len(j.ahead) > 0 {
		j.log.Cut(j.written)
		j.ahead = nil
	}
}

// close closes the journal, and removes it if it has no rename.
func (j *journal) close() {
	if j == nil || j.log == nil {
		return
	}
	j.forget()
	j.span.To = j.log.Size()
	if j.moves == 0 {
		_ = j.log.Remove()
	}
	_ = j.log.Close()
}

// begin creates the journal if it does not exist yet, and removes the journals of older commands.
func (j *journal) begin() error {
	if j.log != nil {
		return nil
	}
	d := j.store.Dir
	if err := atomicfile.NoLinks(d.Path(), "etc/view", Dir); err != nil {
		return err
	}
	dir := d.Join(Dir)
	ForgetSecrets(d, j.store.Now)
	records, err := Records(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	number := int64(0)
	for _, r := range records {
		number = max(number, r.Number)
	}
	if j.chain != nil && j.chain.number == number && j.resume(j.chain) {
		return nil
	}
	for range journalTries {
		number++
		log, _, err := filelog.Open(journalPath(d, number), filelog.Options{New: true, Lock: true, Perm: 0o600})
		// Another command took the number, or undo has locked the empty file to remove it.
		if errors.Is(err, fs.ErrExist) || errors.Is(err, filelog.ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		head := j.command + "\t" + j.store.Now.UTC().Format(time.RFC3339) + "\n"
		if err := log.Append([]byte(head)); err != nil {
			_ = log.Remove()
			_ = log.Close()
			return err
		}
		j.log, j.span = log, Span{Number: number, From: log.Size()}
		if j.chain != nil {
			*j.chain = Chain{number: number, head: head, client: j.client, began: j.store.Now}
		}
		for _, r := range records[min(MaxCommands-1, len(records)):] {
			_ = os.Remove(r.Path)
		}
		return nil
	}
	return fmt.Errorf("%s: cannot create a file: other commands took each free number first", dir)
}

// resume continues the journal of a chain, and reports whether it may.
func (j *journal) resume(c *Chain) bool {
	if c.client != j.client || j.store.Now.Sub(c.began) >= maxChain {
		return false
	}
	log, data, err := filelog.Open(journalPath(j.store.Dir, c.number), filelog.Options{Lock: true, Max: j.max / 2})
	if err != nil {
		return false
	}
	if strings.HasPrefix(string(data), c.head) {
		j.log, j.moves = log, bytes.Count(data, []byte("\n"))-1
		j.span = Span{Number: c.number, From: log.Size()}
		return true
	}
	// It was taken back, and this or another command has made it anew.
	if len(data) == 0 {
		_ = log.Remove()
	}
	_ = log.Close()
	return false
}

// journalPath returns the path of a journal of this user.
func journalPath(d *lektordir.Dir, number int64) string {
	return d.Join(Dir, strconv.Itoa(os.Getuid())+"."+strconv.FormatInt(number, 10))
}

// Chain is the journal that several movers of one client write, one after the other, as for the requests of
// a client of lektor-serve. The zero value has none yet.
type Chain struct {
	number int64
	head   string // first line
	client string
	began  time.Time
}

// maxChain is the time for which a journal is continued.
const maxChain = 10 * time.Minute

// Record is the journal file of an earlier command.
type Record struct {
	Path   string
	Number int64 // from 1; a later command has a greater one, unless undo has taken back this one before
}

// Records returns the journals of this user, newest first. It ignores files with other names.
func Records(d *lektordir.Dir) ([]Record, error) {
	names, err := os.ReadDir(d.Join(Dir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var records []Record
	for _, e := range names {
		digits, ok := strings.CutPrefix(e.Name(), strconv.Itoa(os.Getuid())+".")
		// Longer numbers could overflow.
		if !ok || len(digits) > 15 || digits == "" || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
			continue
		}
		number, _ := strconv.ParseInt(digits, 10, 64)
		records = append(records, Record{d.Join(Dir, e.Name()), number})
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(b.Number, a.Number) })
	return records, nil
}

// Span is the part of a journal that one mover wrote. The zero value has no changes.
type Span struct{ Number, From, To int64 }

// Read reads and parses a part of a journal. The error is [fs.ErrNotExist] if there is no such part any more.
func (s Span) Read(d *lektordir.Dir) (*Contents, error) {
	r := Record{Path: journalPath(d, s.Number)}
	data, err := filelog.Read(r.Path, filelog.Options{Max: maxJournal})
	if err != nil {
		return nil, err
	}
	if s.From < 1 || s.To < s.From || s.To > int64(len(data)) || data[s.From-1] != '\n' {
		return nil, fs.ErrNotExist
	}
	c := &Contents{}
	c.addLines(string(data[s.From:s.To]))
	return c, nil
}

// Move is a line of a journal.
type Move struct {
	From lektordir.Ref
	To   lektordir.Ref // zero if the entry was removed
}

// Back returns the flags to set and to clear that take back the move of an entry that was not removed.
func (m Move) Back() (set, unset string) {
	from, to := m.From.Flags(), m.To.Flags()
	return without(from, to), without(to, from)
}

// without returns the letters of a that are not in b.
func without(a, b string) string {
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune(b, c) {
			return -1
		}
		return c
	}, a)
}

// Contents is the text of a journal, parsed.
type Contents struct {
	Command string
	Began   time.Time
	Moves   []Move
	Changes []subscriptions.Change
	Invalid int // number of invalid lines
}

// Lines returns the changes of settings in the form of the journal.
func (c *Contents) Lines() string {
	var b strings.Builder
	for _, change := range c.Changes {
		b.WriteString(settingLine(change))
	}
	return b.String()
}

// Read reads and parses a journal.
func (r Record) Read() (*Contents, error) {
	data, err := filelog.Read(r.Path, filelog.Options{Max: maxJournal})
	if err != nil {
		return nil, err
	}
	d := parseJournal(string(data))
	if d == nil {
		return nil, fmt.Errorf("%s: the file is not a journal of a command", r.Path)
	}
	return d, nil
}

// parseJournal parses the text of a journal. It returns nil if the first line is invalid. The text
// is not trusted: a line is valid only if it renames an entry into cur/ or removes it, or names a setting.
func parseJournal(text string) *Contents {
	if text == "" {
		return &Contents{} // the command was killed before it wrote a line
	}
	head, text, _ := strings.Cut(text, "\n")
	command, began, _ := strings.Cut(head, "\t")
	d := &Contents{Command: command}
	var err error
	if d.Began, err = time.Parse(time.RFC3339, began); err != nil || command == "" {
		return nil
	}
	d.addLines(text)
	return d
}

// addLines adds the lines of a text after the first line of a journal.
func (c *Contents) addLines(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if m, ok := parseMove(line); ok {
			c.Moves = append(c.Moves, m)
		} else if change, ok := ParseChange(line); ok {
			c.Changes = append(c.Changes, change)
		} else {
			c.Invalid++
		}
	}
}

// ParseChange parses a line about a setting.
func ParseChange(line string) (c subscriptions.Change, ok bool) {
	fields := strings.Split(line, "\t")
	if len(fields) != 4 {
		return c, false
	}
	c = subscriptions.Change{Hash: fields[0], Key: fields[1], Old: textfile.UnescapeName([]byte(fields[2])),
		New: textfile.UnescapeName([]byte(fields[3]))}
	return c, c.Check() == nil
}

// ForgetSecrets removes values that may be secret from the journals of this user that were written more than 30
// days ago. A journal that cannot be read or replaced stays for the next call.
func ForgetSecrets(d *lektordir.Dir, now time.Time) {
	records, _ := Records(d)
	for _, r := range records {
		fi, err := os.Lstat(r.Path)
		if err == nil && fi.Mode().IsRegular() && now.Sub(fi.ModTime()) >= secretsAge {
			r.forgetSecrets()
		}
	}
}

// forgetSecrets overwrites the lines of a journal that have secret values.
func (r Record) forgetSecrets() {
	log, data, err := filelog.Open(r.Path, filelog.Options{Lock: true, Max: maxJournal})
	if err != nil {
		return
	}
	defer log.Close()
	var kept strings.Builder
	for line := range strings.Lines(string(data)) {
		if c, ok := ParseChange(strings.TrimSuffix(line, "\n")); ok &&
			(subscriptions.Secret(c.Key, c.Old) || subscriptions.Secret(c.Key, c.New)) {
			c.Old, c.New = "", ""
			line = settingLine(c)
		}
		kept.WriteString(line)
	}
	if kept.Len() != len(data) {
		_ = atomicfile.WritePrivate(r.Path, []byte(kept.String()))
	}
}

// parseMove parses a line of a journal.
func parseMove(line string) (m Move, ok bool) {
	from, to, _ := strings.Cut(line, "\t")
	var err error
	if m.From, err = lektordir.ParsePath(from); err != nil {
		return m, false
	}
	if to == removedPath(m.From) {
		return m, true
	}
	m.To, err = lektordir.ParsePath(to)
	return m, err == nil && m.To.Place == lektordir.Cur && m.To.Feed == m.From.Feed && m.To.Unique == m.From.Unique
}

// removedPath returns the path that stands for the removal of an entry, see
// [lektordir.Dir.Remove].
func removedPath(r lektordir.Ref) string { return "tmp/" + r.Feed + "/" + r.Unique + ";gone" }
