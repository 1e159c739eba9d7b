package pages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/lektordir"
)

// MaildirOptions are the options of [Maildir].
type MaildirOptions struct {
	Common
	To     string // the maildir; created if it is missing
	Images bool   // messages show images
	Print  cmdline.PrinterOptions

	step func() // hook for tests, see [mailing]
}

// The files beside the messages of a maildir. Mail programs ignore a name that begins with a dot,
// unless it is a directory.
const (
	mailLedgerName = ".lektor-mail"
	stagedPrefix   = ".lektor-mail."
)

// Maildir delivers entries into a maildir, each once, even if its message is moved or deleted
// later.
//
// A message is first staged: written beside the directories new and cur, under a name that contains
// its later place. Other programs delete old files in tmp, unnoticed, so tmp is not used. Once
// a batch is on the disk, its lines are added to the ledger and synced; then each message is
// renamed to its place. After a kill, the next run renames the staged messages that the ledger has,
// and removes the others and makes them again. So a kill neither loses nor doubles a message, and
// mail readers see complete messages only.
func Maildir(ctx context.Context, o MaildirOptions, s *cmdline.Streams) error {
	m, err := newMailing(o.Common, o.Images, o.Print, o.step, s)
	if err != nil {
		return err
	}
	d := &maildir{m, o.To}
	if err := d.make(); err != nil {
		return err
	}
	if m.ledger, err = openMailLedger(d.join(mailLedgerName), o.To); err != nil {
		return err
	}
	defer m.ledger.close()
	if err := d.recover(); err != nil {
		return err
	}
	if err := m.inBatches(ctx, d.deliver); err != nil {
		return errors.Join(err, m.end(o.To))
	}
	return m.end(o.To)
}

type maildir struct {
	*mailing
	path string
}

func (d *maildir) join(name string) string { return filepath.Join(d.path, name) }

// make creates the maildir if it is missing, or completes one that a killed run has begun. It fails if
// the directory has other files but is not a maildir.
func (d *maildir) make() error {
	names, err := os.ReadDir(d.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	other := slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() != "tmp" })
	switch {
	case has("src"), atomicfile.Same(d.path, d.Dir.Path()):
		return cmdline.Hint(fmt.Errorf("%s is a lektor-dir, not a maildir", d.path), "name a new directory")
	case other && !has("cur") && !has("new") && !has(mailLedgerName):
		return cmdline.Hint(fmt.Errorf("%s is not a maildir, and not empty", d.path),
			"name a new directory, or make it a maildir: mkdir cur new tmp")
	}
	for _, sub := range []string{"tmp", "new", "cur"} {
		if err := os.MkdirAll(d.join(sub), 0o700); err != nil {
			return err
		}
	}
	return atomicfile.SyncDir(d.path)
}

// messageName returns the name of an entry's message without flags. The name is a function of the
// entry's feed and unique name, and so is unique without a host name. It begins with the time in the
// unique name, or with 0.
func messageName(r lektordir.Ref) string {
	seconds := "0"
	if entryname.Timed(r.Unique) {
		seconds, _, _ = strings.Cut(r.Unique, ".")
	}
	h := sha256.Sum256([]byte(mailKey(r)))
	return seconds + ".L" + hex.EncodeToString(h[:12]) + ".lektor"
}

// placeOf returns the path of a message in the maildir by the place and the flags of its entry: an
// entry in new/ has its message in new/.
func placeOf(r lektordir.Ref) string {
	name := messageName(r)
	if r.Place == lektordir.New {
		return "new/" + name
	}
	flags := ""
	for _, flag := range "FST" { // in the order of ASCII; the user's letters have no meaning in maildir
		if r.HasFlag(byte(flag)) {
			flags += string(flag)
		}
	}
	return "cur/" + name + ":2," + flags
}

// staged returns the name of a message before it is moved to its place. placed is the reverse; it
// returns false for other names.
func staged(place string) string { return stagedPrefix + strings.Replace(place, "/", ".", 1) }

func placed(name string) (string, bool) {
	name, ok := strings.CutPrefix(name, stagedPrefix)
	if !ok || !strings.HasPrefix(name, "new.") && !strings.HasPrefix(name, "cur.") {
		return "", false
	}
	return strings.Replace(name, ".", "/", 1), true
}

// base returns the name of a message without its flags.
func base(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ":")
	return name
}

// recover completes a delivery that a kill interrupted: it renames the staged messages that the
// ledger has, and removes the others. If lines of the ledger are lost, recover lists the maildir and
// sets ledger.there, by which [mailLedger.knows] later adds each entry whose message is there.
func (d *maildir) recover() error {
	names, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	var pending []string // places of the staged messages
	known := map[string]bool{}
	for _, e := range names {
		if place, ok := placed(e.Name()); ok && e.Type().IsRegular() {
			pending = append(pending, place)
			known[base(place)] = false
		}
	}
	if len(pending) > 0 {
		d.ledger.each(func(r lektordir.Ref) {
			if _, ok := known[messageName(r)]; ok {
				known[messageName(r)] = true
			}
		})
	}
	for _, place := range pending {
		d.step()
		if known[base(place)] {
			err = os.Rename(d.join(staged(place)), d.join(place))
		} else {
			err = os.Remove(d.join(staged(place)))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !d.ledger.lost {
		return nil
	}
	there := map[string]bool{}
	for _, sub := range []string{"new", "cur"} {
		names, err := os.ReadDir(d.join(sub))
		if err != nil {
			return err
		}
		for _, e := range names {
			there[base(e.Name())] = true
		}
	}
	d.ledger.there = func(r lektordir.Ref) bool { return there[messageName(r)] }
	return nil
}

// deliver stages messages and moves them to their places in the maildir.
func (d *maildir) deliver(batch []*post) error {
	g := workers.Limited(mailWriters)
	places := make([]string, len(batch))
	for i, p := range batch {
		places[i] = placeOf(p.record.Ref)
		g.Go(func() error { return d.stage(d.join(staged(places[i])), p.data, p.record.Ref.Delivered()) })
	}
	if err := cmp.Or(g.Wait(), atomicfile.SyncDir(d.path)); err != nil {
		for _, place := range places {
			_ = os.Remove(d.join(staged(place)))
		}
		return err
	}
	d.step()
	for _, p := range batch {
		d.ledger.add(p.record.Ref)
	}
	// After an error from here on, the next run moves the staged messages.
	if err := d.ledger.flush(); err != nil {
		return err
	}
	moved, err := 0, error(nil)
	for ; moved < len(batch); moved++ {
		d.step()
		if err = os.Rename(d.join(staged(places[moved])), d.join(places[moved])); err != nil {
			break
		}
	}
	d.step()
	// Paths are printed only when they survive a power cut.
	if serr := cmp.Or(atomicfile.SyncDir(d.join("new")), atomicfile.SyncDir(d.join("cur"))); serr != nil {
		return cmp.Or(err, serr)
	}
	for i, p := range batch[:moved] {
		if derr := d.done(p, d.join(places[i])); derr != nil {
			return cmp.Or(err, derr)
		}
	}
	return err
}

// stage writes and syncs a message. delivered is the time of delivery of its entry.
func (d *maildir) stage(path string, data []byte, delivered time.Time) error {
	d.step()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	d.step()
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Sync(), f.Close()); err == nil {
		// IMAP servers report the mtime as the time when the message arrived.
		err = os.Chtimes(path, time.Time{}, delivered)
	}
	return err
}
