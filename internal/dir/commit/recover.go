package commit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// foreignAge is the time for which an entry of another program or machine stays in tmp/ after its
// last change, as in maildir.
const foreignAge = 36 * time.Hour

// recovery recovers a feed whose lock the caller holds.
type recovery struct {
	d       *dirfs.Dir
	feed    string
	journal *journal.Journal
	at      map[string]entryname.Name // the entries in new/ and cur/, by unique name
	before  time.Time                 // files of other programs that changed later stay
	bad     []error
}

// recoverLocked recovers a feed. The caller holds its lock and has not staged anything.
func recoverLocked(d *dirfs.Dir, feed string) error {
	// The names are read under the lock, because another fetcher may just have finished.
	names, err := atomicfile.Optional(dirfs.Names(d.Join("tmp", feed)))
	if err != nil || len(names) == 0 {
		return err
	}
	r, err := newRecovery(d, feed)
	if err != nil {
		return err
	}
	// Entries come before removals, because an old version that was put aside shows how far its
	// replacement has come.
	if slices.Contains(names, dirfs.FirstEntries) {
		from := "tmp/" + feed + "/" + dirfs.FirstEntries
		first, err := dirfs.Names(d.Join(from))
		if err != nil && !isNotExist(err) {
			return errors.Join(append(r.bad, err)...)
		}
		r.staged(from, first)
		os.Remove(d.Join(from)) // fails unless it is empty
	}
	r.staged("tmp/"+feed, names)
	for _, name := range names {
		if unique, ok := strings.CutSuffix(name, Replacing); ok {
			r.note(r.finishReplacing(unique))
		}
	}
	r.remove(names)
	return errors.Join(r.bad...)
}

// newRecovery syncs the journal, reads it, and lists the feed.
func newRecovery(d *dirfs.Dir, feed string) (*recovery, error) {
	// Recovery relies on the lines of the journal, so a power cut must not undo them.
	seen := d.Join(JournalPath(feed))
	for _, p := range []string{seen, filepath.Dir(seen)} {
		if err := dirfs.SyncPath(p); err != nil && !isNotExist(err) {
			return nil, err
		}
	}
	if err := d.Inside("new/" + feed); err != nil && !isNotExist(err) {
		return nil, err
	}
	j, err := freshJournal(d, feed)
	if err != nil {
		return nil, err
	}
	// Strict, because an entry in cur/ that was skipped would be renamed to new/ again.
	listing, err := d.List(context.Background(), feed, true)
	if err != nil {
		return nil, err
	}
	return &recovery{d: d, feed: feed, journal: j, at: listing.ByUnique(),
		before: certainTime(d, feed).Add(-foreignAge)}, nil
}

// note records an error.
func (r *recovery) note(err error) {
	if err != nil {
		r.bad = append(r.bad, err)
	}
}

// staged delivers the staged entries in a directory that the journal names, and removes the others.
func (r *recovery) staged(from string, names []string) {
	for _, name := range names {
		if strings.Contains(name, ";") {
			continue
		}
		path := r.d.Join(from, name)
		rec, known := r.journal.Named(name)
		switch {
		case known && r.at[name].Cur:
			r.note(r.d.Drop(r.feed, path))
		case known:
			_, err := MoveToNew(r.d, r.feed, from, rec)
			r.note(err)
		case r.d.Ours(name):
			r.note(dirfs.RemoveAll(path))
		default:
			r.note(r.d.RemoveOld(path, r.before))
		}
	}
}

// finishReplacing finishes a replacement by a version that is no longer staged, from its record in
// tmp/. It keeps a record by another program that has changed lately.
func (r *recovery) finishReplacing(unique string) error {
	note := r.d.Join("tmp", r.feed, unique+Replacing)
	data, err := atomicfile.Optional(dirfs.ReadFile(note))
	if data == nil {
		return err // nil if the replacement is finished
	}
	// A power cut may leave the file empty; then the journal has the name.
	rec, known := r.journal.Named(unique)
	_, listed := r.at[unique]
	old := cmp.Or(rec.Replaces, string(bytes.TrimSuffix(data, []byte{'\n'})))
	switch {
	case old == "" || old[0] == '.' || strings.ContainsAny(old, "/;\x00"):
		return r.d.RemoveOld(note, r.before) // another program wrote it
	case !known && !listed:
		// The journal was lost, so the new version was not delivered.
		return os.Remove(note)
	}
	_, err = replace(r.d, r.feed, "tmp/"+r.feed, unique, old)
	return err
}

// remove finishes removals, and removes old files of other programs.
func (r *recovery) remove(names []string) {
	for _, name := range names {
		unique, info, ok := strings.Cut(name, ";")
		switch {
		case !ok, name == dirfs.FirstEntries, info == Replacing[1:]:
		case info == dirfs.Gone[1:] || info == dirfs.GoneReplaced[1:]:
			// If a version could not be renamed, the one that was put aside for it must
			// stay.
			if len(r.bad) == 0 || unique == "" {
				r.note(dirfs.RemoveAll(r.d.Join("tmp", r.feed, name)))
			}
		default:
			r.note(r.d.RemoveOld(r.d.Join("tmp", r.feed, name), r.before))
		}
	}
}

// certainTime returns a time that is not in the future, even if the clock is far ahead: the greatest
// Date that a server has sent, if the clock is ahead of that. If no Date is known and the clock is
// more than [MaxClockGap] ahead of the last change of the feed's files, it returns the time
// of that change. Otherwise it returns the time of the clock.
func certainTime(d *dirfs.Dir, feed string) time.Time {
	now := d.Now()
	if date := ServerTime(d.Path); !date.IsZero() {
		if date.Before(now) {
			return date
		}
		return now
	}
	var last time.Time
	for _, path := range []string{d.Join(JournalPath(feed)), d.Join("new", feed), d.Join("cur", feed),
		d.Join("src", feed), d.Join("new"), d.Join("src")} {
		if fi, err := dirfs.Lstat(path); err == nil && fi.ModTime().After(last) {
			last = fi.ModTime()
		}
	}
	if now.Sub(last) > MaxClockGap {
		return last
	}
	return now
}
