package sharer

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/tsv"
)

// store is the file with the set and the baseline, etc/share/replica, so that one commit
// changes both. It is a log of blocks. A block is lines, and at its end a line "=" with the
// CRC-32C of the lines; one that is cut off does not count. There are four kinds:
//
//   - Lines of set and baseline: a commit. It is on the disk when it counts, and so is
//     all of the lektor-dir that it speaks of.
//   - "doing BOOT STAMP PATH" and lines of the baseline: an action is about to change the
//     lektor-dir, by the rename of what is at PATH.
//   - "done": it was done, and its lines count; or "failed": it was not.
//
// The three others are not synced. After a kill between rename and "done", STAMP tells
// whether the rename came to pass. They count as long as the machine runs, and for good
// with the next commit.
type store struct {
	path    string
	root    string // of the lektor-dir
	step    func() // called before each change of a file
	sync    func() error
	boot    string
	size    int64 // up to the end of the last block
	whole   int64 // size when all of it was last written
	rewrite bool  // the next commit writes all of it

	saved     baseline // as the blocks have it
	savedSubs []byte
	savedMeta []byte

	end   []byte // of an action, written with the next block
	acted bool   // there are actions since the last commit
	log   *os.File
}

// storeHeader begins the file. A program that finds another one does not know the form.
const storeHeader = "lektor-share 2"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// damagedError is the error for a file that no program of ours leaves so.
type damagedError struct{ path, why string }

func (e *damagedError) Error() string { return e.path + ": " + e.why }

// appendBlock appends the lines of a block and its end.
func appendBlock(b, lines []byte) []byte {
	return fmt.Appendf(append(b, lines...), "= %08x\n", crc32.Checksum(lines, castagnoli))
}

// decoder reads the blocks of a store.
type decoder struct {
	set     *set
	words   map[string]string // endpoints
	base    *baseReader
	boot    string
	stamp   func(path string) string // of what is there now
	order   []*feedsync.Item
	acts    []act // since the last commit
	pending *act
	whole   int64 // length of the first block, with which all was written
	rewrite bool
}

// act is the block of an action.
type act struct {
	boot, stamp, path string
	lines             []byte
}

// decode reads a store into a set and a baseline, and returns the length of what counts.
func (d *decoder) decode(path string, data []byte) (int64, error) {
	head, rest, ok := bytes.Cut(data, []byte{'\n'})
	if !ok || string(head) != storeHeader {
		return 0, &damagedError{path, fmt.Sprintf("it does not begin with %q", storeHeader)}
	}
	good := len(data) - len(rest)
	begin, torn := good, false
	for at := good; at < len(data); {
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			break
		}
		line := data[at : at+n]
		next := at + n + 1
		if len(line) == 10 && line[0] == '=' && line[1] == ' ' {
			sum, err := strconv.ParseUint(string(line[2:]), 16, 32)
			sound := err == nil && uint32(sum) == crc32.Checksum(data[begin:at], castagnoli)
			switch {
			case sound && torn:
				return 0, &damagedError{path, "a part in the middle of it is damaged"}
			case !sound:
				torn = true
			default:
				if err := d.block(data[begin:at]); err != nil {
					return 0, &damagedError{path, err.Error()}
				}
				if good = next; d.whole == 0 {
					d.whole = int64(next)
				}
			}
			begin = next
		}
		at = next
	}
	if d.whole == 0 {
		return 0, &damagedError{path, "the block that it begins with is damaged"} // it was written as one
	}
	d.settle()
	d.set.subs = d.set.empty(feedsync.OPML)
	d.set.subs.Append(d.order...)
	d.set.subs.Arrange()
	return int64(good), nil
}

// block takes a block that is whole.
func (d *decoder) block(lines []byte) error {
	first, rest, _ := bytes.Cut(lines, []byte{'\n'})
	word, args, _ := bytes.Cut(first, []byte{' '})
	switch string(word) {
	case "doing":
		f := strings.SplitN(string(args), " ", 3)
		if len(f) != 3 {
			return fmt.Errorf("%q makes no sense", first)
		}
		d.pending = &act{f[0], f[1], tsv.Unescape([]byte(f[2])), rest}
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

// settle takes the actions since the last commit, if the machine has been running since:
// a power cut may have undone their renames.
func (d *decoder) settle() {
	if p := d.pending; p != nil {
		d.rewrite = true
		if d.stamp(p.path) != p.stamp {
			d.acts = append(d.acts, *p)
		}
	}
	for _, a := range d.acts {
		if a.boot != d.boot {
			d.rewrite = true
			continue
		}
		_ = d.lines(a.lines) // they are whole
	}
	d.rewrite = d.rewrite || len(d.acts) > 0
}

// lines takes lines of set and baseline.
func (d *decoder) lines(lines []byte) error {
	d.base.feed = nil
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		word, args, _ := bytes.Cut(line, []byte{' '})
		if !d.line(string(word), args) && !d.base.take(string(word), args) {
			return fmt.Errorf("%.80q makes no sense", line)
		}
	}
	return nil
}

// line takes a line of the set; it reports false for one that is none.
func (d *decoder) line(word string, args []byte) bool {
	s := d.set
	switch word {
	case "mark":
		it, ok := readMark(args, d.words)
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
		it.Parent = string(parent)
		d.order = append(d.order, it)
	case "complete":
		s.until.complete = parseDate(args)
		for _, marks := range s.marks {
			for _, m := range marks {
				m.newer = false
			}
		}
	case "until":
		kind, date, _ := bytes.Cut(args, []byte{' '})
		switch string(kind) {
		case "subscriptions":
			s.until.subs = parseDate(date)
		case "marks":
			s.until.marks = parseDate(date)
		default:
			return false
		}
	case "made":
		s.made = parseDate(args)
	case "withdrawn":
		s.withdrawn = string(args)
	default:
		return false
	}
	return true
}

func parseDate(b []byte) time.Time {
	t, _ := feedsync.ParseDate(string(b))
	return t
}

// unescape returns the bytes of a field, the same ones where nothing is escaped.
func unescape(field []byte) []byte {
	if bytes.IndexByte(field, '\\') < 0 {
		return field
	}
	return []byte(tsv.Unescape(field))
}

// appendMark appends the line of a mark: id, flags, version, updates, settled ones and
// content. If it has more than that, it is the flag x and the item as in a document.
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
		return tsv.Append(b, string(field))
	}
	return append(b, field...)
}

// appendUpdates appends updates as seconds/endpoint, which holds neither blank nor slash.
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

// readMark reads what [appendMark] appended, behind the word. words holds the endpoints.
func readMark(line []byte, words map[string]string) (*feedsync.Item, bool) {
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
	it.History, ok1 = readUpdates(history, words)
	it.Settled, ok2 = readUpdates(settled, words)
	return it, ok && complete && err == nil && ok1 && ok2 && len(it.History) > 0
}

func readUpdates(field []byte, words map[string]string) (out []feedsync.Update, ok bool) {
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
		if u.By, ok = words[string(by)]; !ok {
			u.By = string(by)
			words[u.By] = u.By
		}
		out = append(out, u)
	}
	return out, true
}

// appendSubs appends the lines of all subscriptions and folders, in their order.
func appendSubs(b []byte, s *set) []byte {
	b = append(b, "subscriptions\n"...)
	for _, it := range s.subs.Items() {
		b = append(append(append(b, "item "...), it.Parent...), '\t')
		b = append(appendField(b, it.Append(nil)), '\n')
	}
	return b
}

// appendMeta appends the lines of what is known of the documents.
func appendMeta(b []byte, s *set) []byte {
	date := func(name string, t time.Time) {
		if !t.IsZero() {
			b = fmt.Appendf(b, "%s %s\n", name, feedsync.FormatDate(t))
		}
	}
	date("made", s.made)
	date("until subscriptions", s.until.subs)
	date("until marks", s.until.marks)
	return fmt.Appendf(b, "withdrawn %s\n", s.withdrawn)
}

// load reads the store; it reports false where there is none.
func (st *store) load(s *set) (baseline, bool, error) {
	data, err := atomicfile.Read(st.path, maxStore)
	if errors.Is(err, fs.ErrNotExist) {
		st.rewrite, st.saved = true, baseline{}
		st.savedSubs = appendSubs(nil, s)
		return baseline{}, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	needs(int(ownWeight * float64(len(data))))
	d := &decoder{set: s, words: map[string]string{}, base: &baseReader{base: baseline{}}, boot: st.boot, stamp: func(rel string) string { return stampOf(filepath.Join(st.root, rel)) }}
	if st.size, err = d.decode(st.path, data); err != nil {
		return nil, false, err
	}
	st.whole, st.rewrite = d.whole, d.rewrite
	st.remember(s, d.base.base)
	return d.base.base.clone(), true, nil
}

// remember notes what the blocks say now.
func (st *store) remember(s *set, base baseline) {
	st.saved, st.savedSubs, st.savedMeta = base, appendSubs(nil, s), appendMeta(nil, s)
	clear(s.touched)
}

// commit makes the set and the baseline what the store has, on the disk. complete tells
// that a document with all marks is written.
func (st *store) commit(s *set, base baseline, complete bool) error {
	changes := appendChanges(nil, st.saved, base)
	subs, meta := appendSubs(nil, s), appendMeta(nil, s)
	var lines []byte
	for _, id := range slices.Sorted(maps.Keys(s.touched)) {
		lines = appendMark(lines, s.mark(id))
	}
	if !bytes.Equal(subs, st.savedSubs) {
		lines = append(lines, subs...)
	}
	if complete {
		lines = fmt.Appendf(lines, "complete %s\n", feedsync.FormatDate(s.until.complete))
	}
	if !bytes.Equal(meta, st.savedMeta) {
		lines = append(lines, meta...)
	}
	lines = append(lines, changes...)
	if len(lines) == 0 && !st.acted && !st.rewrite {
		return nil
	}
	if len(changes) > 0 || st.acted {
		if err := st.sync(); err != nil {
			return err
		}
	}
	if complete {
		for _, marks := range s.marks {
			for _, m := range marks {
				m.newer = false
			}
		}
	}
	var err error
	if st.rewrite || st.size+int64(len(lines)) > st.whole+max(st.whole/2, minGrowth) {
		err = st.writeAll(s, base)
	} else {
		err = st.write(lines, true)
	}
	if err != nil {
		return err
	}
	st.acted = false
	st.remember(s, base.clone())
	return nil
}

// subsDiffer reports whether the subscriptions differ from what is stored.
func (st *store) subsDiffer(s *set) bool { return !bytes.Equal(appendSubs(nil, s), st.savedSubs) }

// minGrowth is how much the store may grow, however small it is, before all of it is
// written anew, in bytes.
const minGrowth = 256 << 10

// writeAll replaces the file by one with a single commit.
func (st *store) writeAll(s *set, base baseline) error {
	st.close()
	st.step()
	var size int64
	err := atomicfile.WritePrivateFrom(st.path, func(w io.Writer) error {
		size = 0
		crc := uint32(0)
		out := func(b []byte) error {
			n, err := w.Write(b)
			size += int64(n)
			return err
		}
		var b []byte
		flush := func(least int) error {
			if len(b) < least {
				return nil
			}
			crc = crc32.Update(crc, castagnoli, b)
			err := out(b)
			b = b[:0]
			return err
		}
		if err := out([]byte(storeHeader + "\n")); err != nil {
			return err
		}
		for _, newer := range []bool{false, true} {
			for _, m := range s.sorted(func(_ string, m *mark) bool { return m.newer == newer }) {
				b = appendMark(b, m)
				if err := flush(1 << 18); err != nil {
					return err
				}
			}
			if !newer && !s.until.complete.IsZero() {
				b = fmt.Appendf(b, "complete %s\n", feedsync.FormatDate(s.until.complete))
			}
		}
		b = appendMeta(appendSubs(b, s), s)
		b = appendChanges(b, nil, base)
		if err := flush(0); err != nil {
			return err
		}
		return out(fmt.Appendf(nil, "= %08x\n", crc))
	})
	if err != nil {
		return err
	}
	st.size, st.whole, st.rewrite, st.end = size, size, false, nil
	return nil
}

// write appends a block, behind the end of the last action.
func (st *store) write(lines []byte, durable bool) error {
	st.step()
	if st.log == nil {
		f, err := os.OpenFile(st.path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		// What a kill or a full disk has left behind the last block does not count.
		if err := f.Truncate(st.size); err != nil {
			f.Close()
			return err
		}
		st.log = f
	}
	b := st.end
	if lines != nil {
		b = appendBlock(b, lines)
	}
	if _, err := st.log.WriteAt(b, st.size); err != nil {
		return err
	}
	st.size, st.end = st.size+int64(len(b)), nil
	if !durable {
		return nil
	}
	return st.log.Sync()
}

// begin notes that an action is about to rename what is at a path of the lektor-dir; lines
// are those of the baseline when it is done.
func (st *store) begin(rel string, lines []byte) error {
	head := fmt.Appendf(nil, "doing %s %s %s\n", st.boot, stampOf(filepath.Join(st.root, rel)), tsv.Escape(rel))
	if err := st.write(append(head, lines...), false); err != nil {
		return err
	}
	st.acted = true
	return nil
}

// finish notes the end of an action; [store.flush] or the next one writes it.
func (st *store) finish(done bool) {
	word := "failed\n"
	if done {
		word = "done\n"
	}
	st.end = appendBlock(nil, []byte(word))
}

// flush writes the end of the last action.
func (st *store) flush() error {
	if st.end == nil {
		return nil
	}
	return st.write(nil, false)
}

func (st *store) close() {
	if st.log != nil {
		_ = st.log.Close()
		st.log = nil
	}
}

// stampOf returns what changes when what is at a path is renamed or replaced.
func stampOf(path string) string {
	fi, err := os.Lstat(path)
	if err != nil {
		return "none"
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Sprint(fi.ModTime().UnixNano())
	}
	return fmt.Sprintf("%d.%s", st.Ino, changeTime(st))
}
