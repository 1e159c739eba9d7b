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

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/journal"
	"github.com/lektordir/lektor/internal/servertime"
)

// foreignAge is how long an entry that another program writes, or another
// machine, stays in tmp/ after its last change, as in maildir.
const foreignAge = 36 * time.Hour

// recovery is the recovery of a feed whose lock the caller has.
type recovery struct {
	d       *dirfs.Dir
	feed    string
	journal *journal.Journal
	at      map[string]entryname.Name // the entries in new/ and cur/, by unique name
	before  time.Time                 // files of other programs changed since then stay
	bad     []error
}

// recoverLocked recovers a feed whose lock the caller has, and for which he has
// staged nothing yet.
func recoverLocked(d *dirfs.Dir, feed string) error {
	// Read again under the lock: another fetcher may just have finished.
	names, err := dirfs.Names(d.Join("tmp", feed))
	if isNotExist(err) {
		return nil
	}
	if err != nil || len(names) == 0 {
		return err
	}
	r, err := newRecovery(d, feed)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.Contains(name, dirfs.Moving) {
			r.note(d.FinishMove(feed, name, r.before))
		}
	}
	// Entries before removals: an old version that was put aside shows how far its
	// replacement came.
	if slices.Contains(names, dirfs.FirstEntries) {
		from := "tmp/" + feed + "/" + dirfs.FirstEntries
		first, err := dirfs.Names(d.Join(from))
		if err != nil && !isNotExist(err) {
			return errors.Join(append(r.bad, err)...)
		}
		r.staged(from, first)
		os.Remove(d.Join(from)) // if nothing is left in it
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

// newRecovery makes the journal durable, and learns what is in the feed.
func newRecovery(d *dirfs.Dir, feed string) (*recovery, error) {
	// Recovery acts on what the journal says, so that must not be undone.
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
	// Strictly: an entry that is overlooked in cur/ would come to new/ once more.
	there, err := d.List(context.Background(), feed, true)
	if err != nil {
		return nil, err
	}
	r := &recovery{d: d, feed: feed, journal: j, at: make(map[string]entryname.Name, len(there.Names))}
	for _, n := range there.Names {
		r.at[n.Unique] = n
	}
	r.before = certainTime(d, feed).Add(-foreignAge)
	return r, nil
}

func (r *recovery) note(err error) {
	if err != nil {
		r.bad = append(r.bad, err)
	}
}

// staged delivers the entries of a staging place that the journal names, and removes the
// others.
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
			_, err := Settle(r.d, r.feed, from, rec)
			r.note(err)
		case r.d.Ours(name):
			r.note(dirfs.RemoveAll(path))
		default:
			r.note(r.d.RemoveOld(path, r.before))
		}
	}
}

// finishReplacing goes on with a replacement of which there is a record, for a version
// that is no longer staged. A record of another's stays that changed lately.
func (r *recovery) finishReplacing(unique string) error {
	note := r.d.Join("tmp", r.feed, unique+Replacing)
	data, err := dirfs.ReadFile(note)
	if isNotExist(err) {
		return nil // it was finished with the staged version
	}
	if err != nil {
		return err
	}
	// A power cut may leave the file empty; then the journal has the name.
	rec, known := r.journal.Named(unique)
	_, there := r.at[unique]
	old := cmp.Or(rec.Replaces, string(bytes.TrimSuffix(data, []byte{'\n'})))
	switch {
	case old == "" || old[0] == '.' || strings.ContainsAny(old, "/;\x00"):
		return r.d.RemoveOld(note, r.before) // nobody of ours wrote it
	case !known && !there:
		// The journal was lost, and with it the version that was staged.
		return os.Remove(note)
	}
	_, err = replace(r.d, r.feed, "tmp/"+r.feed, unique, old)
	return err
}

// remove finishes removals, and removes what is old and unknown.
func (r *recovery) remove(names []string) {
	for _, name := range names {
		unique, info, ok := strings.Cut(name, ";")
		switch {
		case !ok, name == dirfs.FirstEntries, info == Replacing[1:], strings.HasPrefix(name, unique+dirfs.Moving):
		case strings.HasPrefix(name, unique+dirfs.Copying):
			if _, err := dirfs.Lstat(r.d.Join("tmp", r.feed, strings.Replace(name, dirfs.Copying, dirfs.Moving, 1))); isNotExist(err) {
				r.note(r.d.RemoveOld(r.d.Join("tmp", r.feed, name), r.before))
			}
		case info == dirfs.Gone[1:] || info == dirfs.GoneReplaced[1:]:
			// An entry put aside for a version that could not be renamed just
			// now must stay.
			if len(r.bad) == 0 || unique == "" {
				r.note(dirfs.RemoveAll(r.d.Join("tmp", r.feed, name)))
			}
		default:
			r.note(r.d.RemoveOld(r.d.Join("tmp", r.feed, name), r.before))
		}
	}
}

// certainTime returns a time that has come, even if the clock is far ahead: no later than
// the last Date of a server, and without one no later than the last change that the clock
// is not far ahead of. A file written a minute ago does not
// look old by it.
func certainTime(d *dirfs.Dir, feed string) time.Time {
	now := d.Now()
	if date := servertime.Last(d.Path); !date.IsZero() {
		if date.Before(now) {
			return date
		}
		return now
	}
	var last time.Time
	for _, path := range []string{d.Join(JournalPath(feed)), d.Join("new", feed), d.Join("cur", feed), d.Join("src", feed), d.Join("new"), d.Join("src")} {
		if fi, err := dirfs.Lstat(path); err == nil && fi.ModTime().After(last) {
			last = fi.ModTime()
		}
	}
	if now.Sub(last) > servertime.MaxGap {
		return last
	}
	return now
}
