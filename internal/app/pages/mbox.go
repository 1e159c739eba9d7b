package pages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/letter"
	"github.com/lektordir/lektor/internal/spill"
	"github.com/lektordir/lektor/lektordir"
)

// MboxOptions are the options of [Mbox].
type MboxOptions struct {
	Common
	To     string // the mailbox, which is made if need be; "-" for standard output
	Images bool   // messages show images
	Print  command.PrinterOptions
	// Wait is how long to wait for a mail program that has the mailbox locked; see
	// [LockWait].
	Wait time.Duration
	Host string // the default is the machine's

	step func() // of tests, see [mailing]
}

// LockWait is longer than mail programs have a mailbox locked that is not damaged.
const LockWait = 10 * time.Second

// Mbox adds entries to a mailbox in the form mboxrd (RFC 4155 knows it as one of
// several), each once, whatever becomes of the messages there. What is no file, such as
// standard output, gets all of them.
//
// A batch is first written to a file beside the mailbox, with the place in it where it
// goes, and synced; then it is added to the mailbox, then to the ledger, and the file
// is removed. So the next run can tell how far a kill has let it come, and does what
// is left.
func Mbox(ctx context.Context, o MboxOptions, s *command.Streams) error {
	m, err := newMailing(o.Common, o.Images, o.Print, o.step, s)
	if err != nil {
		return err
	}
	defer m.index.Work(ctx)
	if o.To == "-" {
		return m.stream(ctx, s.Out)
	}
	path := o.To
	switch fi, err := os.Stat(path); {
	case err == nil && fi.IsDir():
		return command.Hint(fmt.Errorf("%s is a directory", path), "for a maildir, there is the command maildir")
	case err == nil && !fi.Mode().IsRegular():
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(m.stream(ctx, f), f.Close())
	case err == nil:
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return command.Hint(err, "mailboxes are made, directories for them are not")
		}
	}
	b := &mbox{mailing: m, path: path, wait: o.Wait, owner: o.Host + ":lektor"}
	if o.Host == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		b.owner = host + b.owner
	}
	if m.ledger, err = openMailLedger(b.beside("lektor-mail"), path); err != nil {
		return err
	}
	defer m.ledger.close()
	// Nobody of us has the mailbox locked, as the ledger is ours.
	dropDot(path+".lock", b.owner)
	if err := b.recover(ctx); err != nil {
		return err
	}
	if m.ledger.fresh {
		if err := b.learn(); err != nil {
			return err
		}
	}
	err = m.inBatches(ctx, func(batch []*post) error { return b.add(ctx, batch) })
	return errors.Join(err, m.end(o.To))
}

// stream writes all to where nothing is known of what is there.
func (m *mailing) stream(ctx context.Context, w io.Writer) error {
	return m.inBatches(ctx, func(batch []*post) error {
		for _, p := range batch {
			if _, err := w.Write(inMbox(p)); err != nil {
				return err
			}
		}
		return nil
	})
}

// inMbox gives a message as it stands in a mailbox: after a line that begins with
// "From ", and before an empty one. Lines in it that begin so, whatever number of '>'
// is before that, get one more. Flags are in the fields that mail programs have for
// them.
func inMbox(p *post) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "From %s %s\n", p.message.From.Address, p.record.Ref.Delivered().UTC().Format(time.ANSIC))
	b.WriteString(statusOf(p.record.Ref))
	for line := range bytes.Lines(p.data) {
		if bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From ")) {
			b.WriteByte('>')
		}
		b.Write(line)
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// statusOf gives the fields of the flags: R read, O not new, F flagged, D deleted.
func statusOf(r lektordir.Ref) string {
	status, x := "", ""
	if !r.Unread() {
		status += "R"
	}
	if r.Place == lektordir.Cur {
		status += "O"
	}
	for _, flag := range []struct {
		ours   byte
		theirs string
	}{{'T', "D"}, {'F', "F"}} {
		if r.HasFlag(flag.ours) {
			x += flag.theirs
		}
	}
	text := ""
	if status != "" {
		text += "Status: " + status + "\n"
	}
	if x != "" {
		text += "X-Status: " + x + "\n"
	}
	return text
}

// mbox is a mailbox that is a file.
type mbox struct {
	*mailing
	path  string // no link
	wait  time.Duration
	owner string // who we are in a lock
}

func (b *mbox) beside(ext string) string {
	return filepath.Join(filepath.Dir(b.path), "."+filepath.Base(b.path)+"."+ext)
}

// pending is a batch that is on its way into the mailbox.
type pending struct {
	refs   []lektordir.Ref
	ends   []int // of the messages in text
	offset int64 // in the mailbox
	text   []byte
}

const (
	pendingHead = "lektor-append 1"
	maxPending  = 1 << 30
)

// bytes is the file: a line with the offset, a line for each message with its entry
// and its length, an empty line, and the messages.
func (p *pending) bytes() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %d\n", pendingHead, p.offset)
	start := 0
	for i, ref := range p.refs {
		fmt.Fprintf(&b, "%s\t%d\n", mailKey(ref), p.ends[i]-start)
		start = p.ends[i]
	}
	b.WriteByte('\n')
	b.Write(p.text)
	return b.Bytes()
}

func (p *pending) parse(data []byte) error {
	head, text, ok := bytes.Cut(data, []byte("\n\n"))
	if !ok {
		return errors.New("it has no end")
	}
	p.text = text
	first, rest, _ := strings.Cut(string(head), "\n")
	offset, ok := strings.CutPrefix(first, pendingHead+" ")
	var err error
	if p.offset, err = strconv.ParseInt(offset, 10, 64); err != nil || !ok || p.offset < 0 {
		return fmt.Errorf("a line makes no sense: %q", first)
	}
	end := 0
	for line := range strings.Lines(rest) {
		key, length, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		ref, ok := mailRef(key)
		n, err := strconv.Atoi(length)
		if err != nil || !ok || n <= 0 {
			return fmt.Errorf("a line makes no sense: %q", line)
		}
		end += n
		p.refs, p.ends = append(p.refs, ref), append(p.ends, end)
	}
	if end != len(text) {
		return fmt.Errorf("it has %d bytes of messages, not %d", len(text), end)
	}
	return nil
}

// add adds a batch.
func (b *mbox) add(ctx context.Context, batch []*post) error {
	f, unlock, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	end, gap, err := endOf(f)
	if err != nil {
		return err
	}
	p := &pending{offset: end, text: []byte(gap)}
	for _, one := range batch {
		p.text = append(p.text, inMbox(one)...)
		p.refs, p.ends = append(p.refs, one.record.Ref), append(p.ends, len(p.text))
	}
	b.step()
	if err := atomicfile.WritePrivate(b.beside("lektor-append"), p.bytes()); err != nil {
		return err
	}
	if err := b.append(f, p); err != nil {
		return err
	}
	for _, one := range batch {
		if err := b.done(one, b.path); err != nil {
			return err
		}
	}
	return nil
}

// append adds the text of a batch whose file is there, at its offset, where the
// mailbox ends. After an error the mailbox is as it was, as far as that can be had.
func (b *mbox) append(f *os.File, p *pending) error {
	half := len(p.text) / 2
	b.step()
	_, err := f.WriteAt(p.text[:half], p.offset)
	if err == nil {
		b.step()
		_, err = f.WriteAt(p.text[half:], p.offset+int64(half))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		if f.Truncate(p.offset) == nil {
			_ = os.Remove(b.beside("lektor-append"))
		}
		return err
	}
	return b.finish(p)
}

// finish notes a batch that is in the mailbox.
func (b *mbox) finish(p *pending) error {
	b.step()
	for _, ref := range p.refs {
		b.ledger.add(ref)
	}
	if err := b.ledger.flush(); err != nil {
		return err
	}
	b.step()
	return os.Remove(b.beside("lektor-append"))
}

// recover ends what a kill has interrupted.
func (b *mbox) recover(ctx context.Context) error {
	path := b.beside("lektor-append")
	atomicfile.Sweep(path)
	data, err := atomicfile.Read(path, maxPending)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var p pending
	if err == nil {
		err = p.parse(data)
	}
	if err != nil {
		return command.Hint(fmt.Errorf("%s, which a run that was interrupted has left, cannot be read: %w", path, err), "look at the end of %s, and remove the file", b.path)
	}
	noted := true
	for _, ref := range p.refs {
		known, _ := b.ledger.knows(ref)
		noted = noted && known
	}
	if noted {
		return os.Remove(path)
	}
	f, unlock, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	there, err := common(f, p.offset, p.text)
	if err != nil {
		return err
	}
	fi, err := f.Stat()
	switch {
	case err != nil:
		return err
	case there == len(p.text):
		return b.finish(&p)
	case p.offset+int64(there) == fi.Size():
		return b.append(f, &p)
	}
	// Somebody has written to the mailbox since, so what is there stays. What is not
	// there as a whole is added again; for what has moved, its ID tells that it is.
	left, err := b.missing(f, &p, there)
	if err == nil {
		err = b.ledger.flush()
	}
	if err != nil {
		return err
	}
	if err := atomicfile.WritePrivate(path, left.bytes()); err != nil {
		return err
	}
	return b.append(f, left)
}

// learn makes the ledger know the messages that are in the mailbox, as it was lost.
func (b *mbox) learn() error {
	f, err := os.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	ids := spill.NewSet()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadSlice('\n')
		if id := messageID(line); id != "" {
			ids.Add(id)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			b.ledger.there = func(r lektordir.Ref) bool { return ids.Has((&letter.Entry{Ref: r}).ID()) }
			return eof(err)
		}
	}
}

// messageID gives the ID of a message from the line of its header that has it, else "".
func messageID(line []byte) string {
	name, value, _ := bytes.Cut(line, []byte(":"))
	if !bytes.EqualFold(name, []byte("Message-ID")) {
		return ""
	}
	return string(bytes.Trim(value, " <>\r\n"))
}

// eof makes the end of a file no error.
func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// missing is the part of a batch that is not in a mailbox that others have changed.
// The first so many bytes are where they should be.
func (b *mbox) missing(f *os.File, p *pending, there int) (*pending, error) {
	messages := make([][]byte, len(p.refs))
	ids, at := make([]string, len(p.refs)), 0
	found := map[string]bool{}
	for i := range p.refs {
		messages[i] = p.text[at:p.ends[i]]
		at = p.ends[i]
		for line := range bytes.Lines(messages[i]) {
			if ids[i] = messageID(line); ids[i] != "" {
				break
			}
		}
		found[ids[i]] = false
	}
	if err := mentioned(io.NewSectionReader(f, 0, math.MaxInt64), found); err != nil {
		return nil, err
	}
	end, gap, err := endOf(f)
	if err != nil {
		return nil, err
	}
	left := &pending{offset: end, text: []byte(gap)}
	start := 0
	for i, ref := range p.refs {
		whole := p.ends[i] <= there || start >= there && found[ids[i]]
		if start = p.ends[i]; whole {
			b.ledger.add(ref)
			continue
		}
		left.text = append(left.text, messages[i]...)
		left.refs, left.ends = append(left.refs, ref), append(left.ends, len(left.text))
	}
	return left, nil
}

// mentioned notes which of some IDs, each between angle brackets, are in a file.
func mentioned(r io.Reader, ids map[string]bool) error {
	const longest = 1 << 10 // more than a line has
	b := bufio.NewReaderSize(r, 1<<20)
	for {
		window, err := b.Peek(b.Size())
		if eof(err) != nil {
			return err
		}
		last := len(window)
		if err == nil {
			last -= longest // what begins after that is whole in the next window
		}
		for i := 0; i < last; i++ {
			n := bytes.IndexByte(window[i:last], '<')
			if n < 0 {
				break
			}
			i += n
			if end := bytes.IndexByte(window[i:min(i+longest, len(window))], '>'); end >= 0 {
				id := string(window[i+1 : i+end])
				if _, ok := ids[id]; ok {
					ids[id] = true
				}
			}
		}
		if err != nil {
			return nil
		}
		if _, err := b.Discard(last); err != nil {
			return err
		}
	}
}

// common tells how many bytes of a text are in a file from an offset on.
func common(f io.ReaderAt, offset int64, text []byte) (int, error) {
	buf := make([]byte, len(text))
	n, err := f.ReadAt(buf, offset)
	if eof(err) != nil {
		return 0, err
	}
	for i := range n {
		if buf[i] != text[i] {
			return i, nil
		}
	}
	return n, nil
}

// endOf tells where a mailbox ends, and what is to stand between that and the next
// message. What is no mailbox is refused.
func endOf(f *os.File) (end int64, gap string, err error) {
	fi, err := f.Stat()
	if err != nil || fi.Size() == 0 {
		return 0, "", err
	}
	head, tail := make([]byte, min(5, fi.Size())), make([]byte, min(2, fi.Size()))
	_, err = f.ReadAt(head, 0)
	if err == nil {
		_, err = f.ReadAt(tail, fi.Size()-int64(len(tail)))
	}
	switch {
	case err != nil:
		return 0, "", err
	case string(head) != "From ":
		return 0, "", command.Hint(fmt.Errorf("%s is no mailbox", f.Name()), "name a new file, or one that mail programs have as mbox")
	case string(tail) == "\n\n":
		return fi.Size(), "", nil
	case tail[len(tail)-1] == '\n':
		return fi.Size(), "\n", nil
	}
	return fi.Size(), "\n\n", nil
}

// open opens the mailbox and locks it as mail programs do: by fcntl, and by a file
// beside it with ".lock" at the end of its name.
func (b *mbox) open(ctx context.Context) (*os.File, func(), error) {
	enough := time.NewTimer(b.wait)
	defer enough.Stop()
	for told := b.wait == 0; ; told = true {
		f, unlock, err := lockMbox(b.path, b.owner)
		if !errors.Is(err, errLocked) {
			return f, unlock, err
		}
		if !told {
			b.S.Report.Info("%v; waiting for it", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-enough.C:
			return nil, nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
