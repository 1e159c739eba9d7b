package sharer

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unique"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/textfile"
	"github.com/lektordir/lektor/lektordir"
)

// store is the file etc/share/replica with set and baseline, so that one commit changes
// both. It is a log of blocks. A block is lines, followed by a line "=" with the CRC-32C of
// the lines; a block that is cut off is ignored. There are four kinds:
//
//   - Lines of set and baseline: a commit. It is synced when the commit returns, and the
//     changes of the lektor-dir that it describes are synced before it.
//   - "doing BOOT STAMP PATH" and lines of the baseline: an action is about to change the
//     lektor-dir, by replacing or renaming the file at PATH.
//   - "done": the action was done, and its lines count.
//   - "failed": the action was not done.
//
// The last three kinds are not synced. After a kill between "doing" and "done", STAMP and the
// present name of the entry show whether the rename happened, see [decoder.happened]. Actions
// count until the machine restarts, and permanently with the next commit.
//
// A file beside the store has the number of the last commit. A store that ends with an
// earlier number was damaged or restored from a backup. It is refused, because actions
// since that commit would look like edits of the user.
//
// The end of the log is known only after all blocks are read. Package filelog would read
// the file a second time, so the store opens it itself. The first block has nearly all marks
// and entries. Their lines are only located at first, and a feed's are read when it is used,
// because a run mostly needs few feeds.
type store struct {
	path    string
	d       *lektordir.Dir
	step    func() // called before each change of a file
	boot    string
	size    int64 // up to the end of the last block
	whole   int64 // size after the whole file was last written
	rewrite bool  // the next commit writes the whole file
	commits int   // number of the last commit
	maxLine int   // see the constant

	end   []byte // result block of the last action, written with the next block
	acted bool   // there are actions since the last commit
	log   *os.File

	from   *os.File // for lines that are read later
	failed error    // such lines could not be read, so nothing more may be written
}

// section is a part of the first block: the lines of a feed's marks or entries.
type section struct{ at, size int64 }

// extend adds the line at an offset to the section.
func (p *section) extend(at int64, line []byte) {
	if p.size == 0 {
		p.at = at
	}
	p.size = at + int64(len(line)) - p.at
}

// read calls parse for each line of a section, which reports whether it is valid.
func (st *store) read(p section, parse func(word string, args []byte) bool) {
	data := make([]byte, p.size)
	_, err := st.from.ReadAt(data, p.at)
	if err == nil && eachLine(data, parse) != nil {
		err = &damagedError{st.path, "it has changed"}
	}
	st.failed = errors.Join(st.failed, err)
}

// eachLine calls parse for each line.
func eachLine(lines []byte, parse func(word string, args []byte) bool) error {
	for line := range bytes.Lines(lines) {
		word, args, _ := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{' '})
		if !parse(string(word), args) {
			return fmt.Errorf("invalid line %.80q", line)
		}
	}
	return nil
}

// storeHeader is the first line of the file. A program refuses a file with another one.
const storeHeader = "lektor-share 2"

// commitsSuffix is appended to the name of the store for the file with the commit number.
const commitsSuffix = ".commits"

// maxLine is the length of the longest line that is read, in bytes. The line of an item with
// [feedsync.MaxConflicts] long conflicts has about half of that.
const maxLine = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// damagedError is the error for a store that is damaged.
type damagedError struct{ path, why string }

func (e *damagedError) Error() string { return e.path + ": " + e.why }

// errStop is the error if the store cannot be written: no further action may be done.
type errStop struct{ error }

func (e *errStop) Unwrap() error { return e.error }

// appendBlock appends the lines of a block and its end.
func appendBlock(b, lines []byte) []byte {
	return fmt.Appendf(append(b, lines...), "= %08x\n", crc32.Checksum(lines, castagnoli))
}

// decoder reads the blocks of a store.
type decoder struct {
	*store
	set     *set
	base    *baseline
	order   []*feedsync.Item
	acts    []act // actions done since the last commit
	pending *act
}

// act is the block of an action.
type act struct {
	boot, stamp, path string
	lines             []byte
}

// load reads the store into a set and a baseline. It reports false if there is no store.
func (st *store) load(s *set, base *baseline) (bool, error) {
	line, err := atomicfile.Line(st.path + commitsSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	last, _ := strconv.Atoi(line) // 0 if a power cut has emptied the file
	st.from, err = atomicfile.OpenRegular(st.path)
	if errors.Is(err, fs.ErrNotExist) {
		st.rewrite, st.commits = true, last
		return false, nil
	}
	if err != nil {
		return false, err
	}
	s.lines, base.lines = st.read, st.read
	d := &decoder{store: st, set: s, base: base}
	if err := d.decode(); err != nil {
		return false, err
	}
	if st.commits < last {
		return false,
			&damagedError{st.path,
				fmt.Sprintf("its last commit is number %d, and this machine made %d: it was damaged, or restored from a backup", st.commits, last)}
	}
	return true, nil
}

// decode reads the blocks. It returns a [*damagedError] if the file is damaged.
func (d *decoder) decode() error {
	damaged := func(why string) error { return &damagedError{d.path, why} }
	in := bufio.NewScanner(d.from)
	in.Buffer(make([]byte, min(1<<18, d.maxLine)), d.maxLine)
	in.Split(wholeLine)
	if !in.Scan() && in.Err() != nil {
		return d.failedRead(in.Err())
	}
	if in.Text() != storeHeader+"\n" {
		return damaged(fmt.Sprintf("it does not begin with %q", storeHeader))
	}
	at, torn := int64(len(in.Bytes())), false
	var sum uint32
	var block []byte // lines of a block after the first
	var bad error
	for in.Scan() {
		line := in.Bytes()
		if end, ok := bytes.CutPrefix(line, []byte("= ")); !ok || len(end) != 9 {
			if sum = crc32.Update(sum, castagnoli, line); d.whole == 0 {
				bad = cmp.Or(bad, d.first(at, line))
			} else {
				block = append(block, line...)
			}
			if int64(len(block)) > d.whole+int64(d.maxLine) {
				return damaged("a block is longer than the rest") // such changes are written as a whole file
			}
			at += int64(len(line))
			continue
		} else if at += int64(len(line)); string(end) != fmt.Sprintf("%08x\n", sum) {
			torn = true
		} else if torn {
			return damaged("a block in the middle of the file is damaged")
		} else if d.whole == 0 {
			d.size, d.whole = at, at
		} else {
			bad = d.block(block)
			d.size = at
		}
		if bad != nil && !torn {
			return damaged(bad.Error())
		}
		sum, block = 0, nil
	}
	if in.Err() != nil {
		return d.failedRead(in.Err())
	}
	if d.whole == 0 {
		return damaged("its first block is damaged") // unlike later blocks, it was written together with the file
	}
	d.settle()
	d.base.lineFeed = ""
	d.set.subs.Append(d.order...)
	d.set.subs.Arrange()
	return nil
}

// wholeLine splits a file into lines with their newlines. A last line without one is ignored.
func wholeLine(data []byte, _ bool) (int, []byte, error) {
	n := bytes.IndexByte(data, '\n') + 1
	if n == 0 {
		return 0, nil, nil
	}
	return n, data[:n], nil
}

// failedRead returns the error for an error of a [bufio.Scanner].
func (d *decoder) failedRead(err error) error {
	if errors.Is(err, bufio.ErrTooLong) {
		return &damagedError{d.path, "a line is longer than " + humanize.Bytes(int64(d.maxLine))}
	}
	return err
}

// first reads a line of the first block. It only locates the marks of the complete document,
// except those with conflicts or of other programs, and the entries.
func (d *decoder) first(at int64, line []byte) error {
	const id = len("mark ")
	if len(line) > id+stateIDLen && line[0] == 'm' && d.set.until.complete.IsZero() {
		flags := line[id+stateIDLen:]
		feed, _ := place(string(line[id : id+stateIDLen]))
		if feed != "" && (bytes.HasPrefix(flags, []byte("\t\t")) || bytes.HasPrefix(flags, []byte("\t-\t"))) {
			p := d.set.stored[feed]
			p.extend(at, line)
			d.set.stored[feed] = p
			return nil
		}
	}
	if f := d.base.feeds[d.base.lineFeed]; f != nil && bytes.HasPrefix(line, []byte("entry ")) {
		f.stored.extend(at, line)
		return nil
	}
	return eachLine(bytes.Clone(line), d.parse)
}

// block applies a complete block.
func (d *decoder) block(lines []byte) error {
	first, rest, _ := bytes.Cut(lines, []byte{'\n'})
	word, args, _ := bytes.Cut(first, []byte{' '})
	switch string(word) {
	case "doing":
		f := strings.SplitN(string(args), " ", 3)
		if len(f) != 3 {
			return fmt.Errorf("invalid line %q", first)
		}
		d.pending = &act{f[0], f[1], textfile.UnescapeName([]byte(f[2])), rest}
		return nil
	case "done":
		if d.pending != nil {
			d.acts = append(d.acts, *d.pending)
		}
		d.pending = nil
		return nil
	case "failed":
		d.pending = nil
		return nil
	}
	for _, a := range d.acts {
		if err := d.lines(a.lines); err != nil {
			return err
		}
	}
	d.acts, d.pending = nil, nil
	return d.lines(lines)
}

// settle applies the actions since the last commit, unless the machine was restarted after
// them: a power cut may have undone their renames.
func (d *decoder) settle() {
	d.rewrite = d.pending != nil || len(d.acts) > 0
	if p := d.pending; p != nil && d.happened(p) {
		d.acts = append(d.acts, *p)
	}
	for _, a := range d.acts {
		if a.boot == d.boot {
			_ = d.lines(a.lines) // the block was complete, so the lines are valid
		}
	}
}

// happened reports whether an action that was killed has changed its file. The user may have
// changed the file since.
func (d *decoder) happened(p *act) bool {
	var was fileState
	if _, err := fmt.Sscanf(p.stamp, stampFormat, &was.ino, &was.ctime, &was.mtime, &was.dir); err != nil {
		return false
	}
	now := look(d.store.d.Join(p.path))
	from, err := lektordir.ParsePath(p.path)
	if err != nil {
		return now.ino != was.ino || now.mtime != was.mtime // a setting or an url is replaced as a whole
	}
	ref, err := d.store.d.Resolve(p.path)
	if err != nil || ref.Place == lektordir.New {
		return false
	}
	after := &baseline{feeds: map[string]*baseFeed{}}
	_ = eachLine(p.lines, after.parseLine) // the block was complete, so the lines are valid
	for _, e := range after.entries(from.Feed) {
		if e.flags == shared(ref) {
			return true
		}
	}
	// If the user made another mark, the action counts as not done: then the next plan repeats it.
	// If it counted as done, its flags would seem to be cleared by the user. If the entry was moved
	// and has its old flags, the user has taken back the action.
	moved := ref.Path() != from.Path() || now.ctime != was.ctime && now.dir != was.dir && now.ino == was.ino &&
		now.mtime == was.mtime
	return moved && ref.Flags() == from.Flags()
}

// lines applies lines of set and baseline.
func (d *decoder) lines(lines []byte) error {
	d.base.lineFeed = ""
	return eachLine(lines, d.parse)
}

func (d *decoder) parse(word string, args []byte) bool {
	return d.line(word, args) || d.base.parseLine(word, args)
}

// line applies a line of the set. It reports false for a line that does not belong to a
// set.
func (d *decoder) line(word string, args []byte) bool {
	s := d.set
	switch word {
	case "mark":
		it, ok := readMark(args)
		if !ok {
			return false
		}
		s.store(&mark{it, true})
	case "subscriptions":
		d.order = nil
	case "item":
		parent, text, ok := bytes.Cut(args, []byte{'\t'})
		if !ok {
			return false
		}
		it, err := feedsync.ReadItem(unescape(text))
		if err != nil {
			return false
		}
		it.Parent = textfile.Unescape(parent)
		d.order = append(d.order, it)
	case "complete":
		s.until.complete = parseDate(args)
		s.allPublished()
	case "until":
		if date, ok := bytes.CutPrefix(args, []byte("subscriptions ")); ok {
			s.until.subs = parseDate(date)
		} else if date, ok := bytes.CutPrefix(args, []byte("marks ")); ok {
			s.until.marks = parseDate(date)
		} else {
			return false
		}
	case "made":
		s.lastOwnEdit = parseDate(args)
	case "withdrawn":
		s.withdrawn = string(args)
	case "commit":
		n, err := strconv.Atoi(string(args))
		d.commits = n
		return err == nil
	default:
		return false
	}
	return true
}

// unescape returns the bytes of a field. It returns the field itself if nothing is escaped.
func unescape(field []byte) []byte {
	if bytes.IndexByte(field, '\\') < 0 {
		return field
	}
	return []byte(textfile.Unescape(field))
}

// appendMark appends the line of a mark: id, flags, version, updates, settled updates and
// content. If the item has more than that, the line has the flag x and the item as in a
// document.
func appendMark(b []byte, m *mark) []byte {
	b = append(append(append(b, "mark "...), m.ID...), '\t')
	if !m.Flat() {
		return append(appendField(append(b, "x\t"...), m.Append(nil)), '\n')
	}
	if m.Deleted {
		b = append(b, '-')
	}
	if m.Conflict {
		b = append(b, '!')
	}
	b = append(strconv.AppendUint(append(b, '\t'), m.Version, 10), '\t')
	b = append(appendUpdates(b, m.History), '\t')
	b = append(appendUpdates(b, m.Settled), '\t')
	return append(appendField(b, m.Content()), '\n')
}

func appendField(b, field []byte) []byte {
	if bytes.ContainsAny(field, "\\\t\n\r") {
		return textfile.AppendField(b, string(field))
	}
	return append(b, field...)
}

// appendUpdates appends updates as seconds/endpoint. An endpoint contains neither space nor
// slash.
func appendUpdates(b []byte, list []feedsync.Update) []byte {
	for i, u := range list {
		if i > 0 {
			b = append(b, ' ')
		}
		if !u.When.IsZero() {
			b = strconv.AppendInt(b, u.When.Unix(), 10)
		}
		b = append(append(b, '/'), u.By...)
	}
	return b
}

// readMark reads the line of [appendMark], without the first word.
func readMark(line []byte) (*feedsync.Item, bool) {
	id, line, _ := bytes.Cut(line, []byte{'\t'})
	flags, line, ok := bytes.Cut(line, []byte{'\t'})
	if string(flags) == "x" {
		it, err := feedsync.ReadItem(unescape(line))
		return it, err == nil && it.ID == string(id)
	}
	number, line, _ := bytes.Cut(line, []byte{'\t'})
	history, line, _ := bytes.Cut(line, []byte{'\t'})
	settled, content, complete := bytes.Cut(line, []byte{'\t'})
	it := feedsync.Restore(string(id), unescape(content))
	it.Deleted, it.Conflict = bytes.IndexByte(flags, '-') >= 0, bytes.IndexByte(flags, '!') >= 0
	var err error
	it.Version, err = strconv.ParseUint(string(number), 10, 64)
	var ok1, ok2 bool
	it.History, ok1 = readUpdates(history)
	it.Settled, ok2 = readUpdates(settled)
	return it, ok && complete && err == nil && ok1 && ok2 && len(it.History) > 0
}

func readUpdates(field []byte) (out []feedsync.Update, ok bool) {
	for len(field) > 0 {
		var one []byte
		one, field, _ = bytes.Cut(field, []byte{' '})
		when, by, complete := bytes.Cut(one, []byte{'/'})
		if !complete {
			return nil, false
		}
		var u feedsync.Update
		if len(when) > 0 {
			n, err := strconv.ParseInt(string(when), 10, 64)
			if err != nil {
				return nil, false
			}
			u.When = time.Unix(n, 0).UTC()
		}
		u.By = unique.Make(string(by)).Value() // there are few endpoints, so the strings are shared
		out = append(out, u)
	}
	return out, true
}

// appendSubs appends the lines of all subscriptions and folders in order.
func appendSubs(b []byte, s *set) []byte {
	b = append(b, "subscriptions\n"...)
	for _, it := range s.subs.Items() {
		b = append(appendField(append(b, "item "...), []byte(it.Parent)), '\t')
		b = append(appendField(b, it.Append(nil)), '\n')
	}
	return b
}

// appendDate appends a line with a date, unless the date is zero.
func appendDate(b []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return b
	}
	return fmt.Appendf(b, "%s %s\n", name, feedsync.FormatDate(t))
}

func parseDate[T string | []byte](s T) time.Time {
	t, _ := feedsync.ParseDate(string(s))
	return t
}

// appendMeta appends the lines of each commit: its number, the dates, and the withdrawn
// feeds.
func (st *store) appendMeta(b []byte, s *set) []byte {
	b = fmt.Appendf(b, "commit %d\n", st.commits)
	b = appendDate(b, "made", s.lastOwnEdit)
	b = appendDate(b, "until subscriptions", s.until.subs)
	b = appendDate(b, "until marks", s.until.marks)
	return fmt.Appendf(b, "withdrawn %s\n", s.withdrawn)
}

// room returns how many bytes the log may grow before the whole file is written again.
func (st *store) room() int {
	const least = 256 << 10
	return int(st.whole + max(st.whole/4, least) - st.size)
}

// writeAll replaces the file by one with a single commit.
func (st *store) writeAll(s *set, base *baseline) error {
	st.close()
	st.step()
	err := atomicfile.WritePrivateFrom(st.path, func(w io.Writer) error {
		if _, err := io.WriteString(w, storeHeader+"\n"); err != nil {
			return err
		}
		crc := crc32.New(castagnoli)
		out := bufio.NewWriterSize(io.MultiWriter(w, crc), 1<<18) // keeps the first error
		var b []byte
		for _, newer := range []bool{false, true} {
			for _, m := range s.sorted(!newer) {
				if m.newer == newer {
					b = appendMark(b[:0], m)
					_, _ = out.Write(b)
				}
			}
			if !newer {
				_, _ = out.Write(appendDate(nil, "complete", s.until.complete))
			}
		}
		_, _ = out.Write(base.appendAll(st.appendMeta(appendSubs(nil, s), s)))
		if err := errors.Join(out.Flush(), st.failed); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "= %08x\n", crc.Sum32())
		return err
	})
	if err != nil {
		return err
	}
	fi, err := os.Stat(st.path)
	if err != nil {
		return err
	}
	st.size, st.whole, st.rewrite, st.end = fi.Size(), fi.Size(), false, nil
	return nil
}

// write appends the result of the last action and a block. If lines is nil, it appends only
// the result.
func (st *store) write(lines []byte) error {
	b := st.end
	if lines != nil {
		b = appendBlock(b, lines)
	}
	if len(b) == 0 {
		return nil
	}
	st.step()
	if st.log == nil {
		f, err := os.OpenFile(st.path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		// Cut off a partial block that a kill or a full disk has left.
		if err := f.Truncate(st.size); err != nil {
			f.Close()
			return err
		}
		st.log = f
	}
	if _, err := st.log.WriteAt(b, st.size); err != nil {
		return err
	}
	st.size, st.end = st.size+int64(len(b)), nil
	return nil
}

// act does an action that renames or replaces the file at rel in the lektor-dir. lines are
// the lines of the baseline after it. The next write records whether it succeeded.
func (st *store) act(rel string, lines []byte, do func() error) error {
	head := fmt.Appendf(nil, "doing %s %s %s\n", st.boot, look(st.d.Join(rel)), textfile.Escape(rel))
	if err := st.write(append(head, lines...)); err != nil {
		return &errStop{err}
	}
	st.acted = true
	st.step()
	err := do()
	word := "done\n"
	if err != nil {
		word = "failed\n"
	}
	st.end = appendBlock(nil, []byte(word))
	return err
}

func (st *store) close() {
	if st.log != nil {
		_ = st.log.Close()
		st.log = nil
	}
}

// fileState is the state of a file or directory: its inode, times in nanoseconds, and the mtime of
// the directory in which it is. A rename changes ctime and dir, a change of its mode only ctime.
type fileState struct {
	ino               uint64
	ctime, mtime, dir int64
}

const stampFormat = "%d.%d.%d.%d"

func (s fileState) String() string { return fmt.Sprintf(stampFormat, s.ino, s.ctime, s.mtime, s.dir) }

// look returns the state of the file at a path, the zero value if there is none.
func look(path string) fileState {
	var file, dir unix.Stat_t
	if atomicfile.Again(func() error { return unix.Lstat(path, &file) }) != nil {
		return fileState{}
	}
	_ = atomicfile.Again(func() error { return unix.Lstat(filepath.Dir(path), &dir) })
	return fileState{uint64(file.Ino), unix.TimespecToNsec(file.Ctim), unix.TimespecToNsec(file.Mtim),
		unix.TimespecToNsec(dir.Mtim)}
}
