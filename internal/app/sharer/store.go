package sharer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
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
// The whole file is read into memory. The lines of marks and entries are parsed when their feed is
// used, because a run mostly needs few feeds.
type store struct {
	path    string
	d       *lektordir.Dir
	step    func() // called before each change of a file
	boot    string
	size    int64 // up to the end of the last block
	whole   int64 // size after the whole file was last written
	rewrite bool  // the next commit writes the whole file
	commits int   // number of the last commit

	end   []byte // result block of the last action, written with the next block
	acted bool   // there are actions since the last commit
	log   *os.File
}

// eachLine calls parse for each line, with the first word and the rest.
func eachLine(lines []byte, parse func(line, word, args []byte) bool) error {
	for len(lines) > 0 {
		line := lines[:bytes.IndexByte(lines, '\n')+1] // with the capacity that lineRuns needs
		word, args, _ := bytes.Cut(line[:len(line)-1], []byte{' '})
		if !parse(line, word, args) {
			return fmt.Errorf("invalid line %.80q", line)
		}
		lines = lines[len(line):]
	}
	return nil
}

// lineRuns are lines of the store that are not parsed yet: the parts of its memory in which one follows the
// other, so that a line takes no memory of its own.
type lineRuns [][]byte

func (r *lineRuns) add(line []byte) {
	if n := len(*r); n > 0 {
		if last := &(*r)[n-1]; cap(*last) > len(*last) && &(*last)[:len(*last)+1][len(*last)] == &line[0] {
			*last = (*last)[:len(*last)+len(line)]
			return
		}
	}
	*r = append(*r, line)
}

// lines yields the lines without their first word and the newline.
func (r lineRuns) lines(word string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for _, run := range r {
			for line := range bytes.Lines(run) {
				if !yield(line[len(word) : len(line)-1]) {
					return
				}
			}
		}
	}
}

// storeHeader is the first line of the file. A program refuses a file with another one.
const storeHeader = "lektor-share 2"

// commitsSuffix is appended to the name of the store for the file with the commit number.
const commitsSuffix = ".commits"

// maxStore is the size of the largest store, in bytes. That is enough for four million marks.
const maxStore = 2<<30 - 2

// minRoom is the number of bytes that the log may always grow before the whole file is written again.
const minRoom = 256 << 10

// maxTorn is the length of an incomplete block at the end of a store that may be longer than its first
// block, in bytes.
const maxTorn = 16 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// damaged returns the error for a store that is damaged.
func (st *store) damaged(why string) error {
	return cmdline.Hint(fmt.Errorf("%s: %s", st.path, why),
		"remove it, and the next sync restores it from the other machines")
}

// errStop is the error if the store cannot be written: no further action may be done.
type errStop struct{ error }

func (e *errStop) Unwrap() error { return e.error }

// endLen is the length of the last line of a block.
const endLen = len("= 12345678\n")

// appendBlock appends the lines of a block and its end.
func appendBlock(b, lines []byte) []byte {
	return fmt.Appendf(append(b, lines...), "= %08x\n", crc32.Checksum(lines, castagnoli))
}

// decoder reads the blocks of a store.
type decoder struct {
	*store
	set     *itemSet
	base    *baseline
	done    []actionBlock // actions since the last commit
	pending *actionBlock
}

// actionBlock is the block of an action.
type actionBlock struct {
	boot, stamp, path string
	lines             []byte
}

// load reads the store into a set and a baseline. It reports false if there is no store.
func (st *store) load(s *itemSet, base *baseline) (bool, error) {
	line, err := atomicfile.Line(st.path + commitsSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	last, _ := strconv.Atoi(line) // 0 if a power cut has emptied the file
	data, err := atomicfile.ReadRaw(st.path, maxStore)
	if errors.Is(err, fs.ErrNotExist) {
		st.rewrite, st.commits = true, last
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// Each line leaves garbage, which would double the memory of a large store.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	d := &decoder{store: st, set: s, base: base}
	if err := d.decode(data); err != nil {
		return false, err
	}
	if st.commits < last {
		return false, st.damaged(fmt.Sprintf("its last commit is number %d, and this machine made %d: it was damaged, or restored from a backup", st.commits, last))
	}
	return true, nil
}

// decode reads the blocks.
func (d *decoder) decode(data []byte) error {
	rest, ok := bytes.CutPrefix(data, []byte(storeHeader+"\n"))
	if !ok {
		return d.damaged(fmt.Sprintf("it does not begin with %q", storeHeader))
	}
	torn := false
	for {
		n := bytes.Index(rest, []byte("\n= ")) + 1
		if n == 0 || len(rest) < n+endLen {
			break
		}
		lines, end := rest[:n], rest[n:n+endLen]
		rest = rest[n+endLen:]
		var bad error
		switch {
		case string(end) != fmt.Sprintf("= %08x\n", crc32.Checksum(lines, castagnoli)):
			torn = true
			continue
		case torn:
			return d.damaged("a block in the middle of the file is damaged")
		case d.whole == 0:
			d.whole = int64(len(data) - len(rest))
			bad = d.lines(lines)
		default:
			bad = d.block(lines)
		}
		if bad != nil {
			return d.damaged(bad.Error())
		}
		d.size = int64(len(data) - len(rest))
	}
	switch {
	case d.whole == 0:
		return d.damaged("its first block is damaged") // unlike later blocks, it was written together with the file
	case int64(len(data)) > d.size+d.whole+maxTorn:
		return d.damaged("a block is longer than the rest") // such changes are written as a whole file
	}
	d.finish()
	d.base.lineFeed = ""
	return nil
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
		d.pending = &actionBlock{f[0], f[1], textfile.UnescapeName([]byte(f[2])), rest}
		return nil
	case "done", "failed":
		if d.pending != nil && string(word) == "done" {
			d.done = append(d.done, *d.pending)
		}
		d.pending = nil
		return nil
	}
	for _, a := range d.done {
		if err := d.lines(a.lines); err != nil {
			return err
		}
	}
	d.done, d.pending = nil, nil
	return d.lines(lines)
}

// finish applies the actions since the last commit, unless the machine was restarted after
// them: a power cut may have undone their renames.
func (d *decoder) finish() {
	d.rewrite = d.pending != nil || len(d.done) > 0
	if p := d.pending; p != nil && d.happened(p) {
		d.done = append(d.done, *p)
	}
	for _, a := range d.done {
		if a.boot == d.boot {
			_ = d.lines(a.lines) // the block was complete, so the lines are valid
		}
	}
}

// happened reports whether an action that was killed has changed its file. The user may have
// changed the file since.
func (d *decoder) happened(p *actionBlock) bool {
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

// parse applies a line, and reports whether it is valid.
func (d *decoder) parse(line, word, args []byte) bool {
	s := d.set
	switch string(word) {
	case "mark":
		s.marks.load(line)
	case "subscriptions":
		s.subs = s.empty(feedsync.OPML)
	case "item":
		parent, text, _ := bytes.Cut(args, []byte{'\t'})
		it, err := feedsync.ReadItem(unescape(text))
		if err != nil {
			return false
		}
		it.Parent = textfile.Unescape(parent)
		s.subs.Append(it)
	case "complete":
		s.dates.complete = parseDate(args)
		s.marks.published()
	case "until":
		what, date, _ := bytes.Cut(args, []byte{' '})
		until := map[string]*time.Time{"subscriptions": &s.dates.subs, "marks": &s.dates.marks}[string(what)]
		if until == nil {
			return false
		}
		*until = parseDate(date)
	case "made":
		s.lastOwnEdit = parseDate(args)
	case "withdrawn":
		s.withdrawn = string(args)
	case "commit":
		n, err := strconv.Atoi(string(args))
		d.commits = n
		return err == nil
	default:
		return d.base.parseLine(line, word, args)
	}
	return true
}

// appendSubs appends the lines of all subscriptions and folders in order.
func appendSubs(b []byte, s *itemSet) []byte {
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
func (st *store) appendMeta(b []byte, s *itemSet) []byte {
	b = fmt.Appendf(b, "commit %d\nwithdrawn %s\n", st.commits, s.withdrawn)
	b = appendDate(b, "made", s.lastOwnEdit)
	b = appendDate(b, "until subscriptions", s.dates.subs)
	return appendDate(b, "until marks", s.dates.marks)
}

// writeAll replaces the file by one with a single commit.
func (st *store) writeAll(s *itemSet, base *baseline) error {
	st.close()
	st.step()
	err := atomicfile.WritePrivateFrom(st.path, func(w io.Writer) error {
		if _, err := io.WriteString(w, storeHeader+"\n"); err != nil {
			return err
		}
		crc := crc32.New(castagnoli)
		out := bufio.NewWriterSize(io.MultiWriter(w, crc), 1<<18) // keeps the first error
		s.marks.write(out, false)
		_, _ = out.Write(appendDate(nil, "complete", s.dates.complete))
		s.marks.write(out, true)
		_, _ = out.Write(base.appendAll(st.appendMeta(appendSubs(nil, s), s)))
		if err := out.Flush(); err != nil {
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

// do does an action that renames or replaces the file at rel in the lektor-dir. lines are
// the lines of the baseline after it. The next write records whether it succeeded.
func (st *store) do(rel string, lines []byte, action func() error) error {
	head := fmt.Appendf(nil, "doing %s %s %s\n", st.boot, look(st.d.Join(rel)), textfile.Escape(rel))
	if err := st.write(append(head, lines...)); err != nil {
		return &errStop{err}
	}
	st.acted = true
	st.step()
	err := action()
	word := "done\n"
	if err != nil {
		word = "failed\n"
	}
	st.end = appendBlock(nil, []byte(word))
	return err
}

// syncMoves syncs the directories in which files of the lektor-dir were renamed.
func (st *store) syncMoves() error {
	hashes, err := st.d.FeedHashes()
	if err != nil {
		return err
	}
	rels := []string{"new", "cur", "src"}
	for _, hash := range hashes {
		rels = append(rels, "new/"+hash, "cur/"+hash)
		for _, file := range []string{feedfiles.URLPath(hash), feedfiles.CategoriesPath(hash), "src/" +
			feedfiles.AliasPath(hash)} {
			rels = append(rels, filepath.Dir(file))
		}
	}
	return dirfs.SyncMoves(st.d.Path(), rels...)
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
