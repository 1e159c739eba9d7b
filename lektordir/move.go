package lektordir

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dirfs"
)

// SetFlags sets and unsets flags of an entry by one rename, and returns its new
// place: an entry in new/ is taken to cur/. Flags are ASCII letters: S (seen: the entry
// was read), F (flagged), T (trashed: viewers no longer list it) and a to z, which are the
// user's own; others mean nothing yet. A flag that is both set and unset is unset. An entry
// in cur/ that has those flags already is not touched. Flags of a bare name or of an info of
// a form we do not know count as S, and the info is replaced.
//
// If the entry is gone, moved by another viewer or removed, the error is
// fs.ErrNotExist; no entry is ever replaced. An entry that cannot be renamed, in the
// lower layer of an overlay, is copied.
func (d *Dir) SetFlags(r Ref, set, unset string) (Ref, error) {
	if err := r.check(); err != nil {
		return r, err
	}
	to, err := r.WithFlags(set, unset)
	if err != nil {
		return r, err
	}
	if to == r {
		if _, err := dirfs.Lstat(d.abs(r)); err != nil {
			return r, err
		}
		return r, nil
	}
	for _, rel := range []string{r.Place.String() + "/" + r.Feed, "cur/" + r.Feed} {
		if err := d.fs.Inside(rel); err != nil && !isNotExist(err) {
			return r, err
		}
	}
	err = d.fs.Move(r.Feed, d.abs(r), d.abs(to))
	if isNotExist(err) && r.Place == New {
		// cur/$feed appears with its first entry.
		if _, lerr := dirfs.Lstat(d.abs(r)); lerr == nil {
			if err := os.Mkdir(d.Join("cur", r.Feed), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
				return r, err
			}
			err = d.fs.Move(r.Feed, d.abs(r), d.abs(to))
		}
	}
	if err != nil {
		return r, err
	}
	return to, nil
}

// Remove deletes an entry. It disappears at once, by a rename to
// tmp/$feed/$unique;gone; if deleting is interrupted there, the next run of a
// fetcher finishes it. If the entry does not exist, the error is
// fs.ErrNotExist.
func (d *Dir) Remove(r Ref) error {
	if err := r.check(); err != nil {
		return err
	}
	to := d.Join("tmp", r.Feed, r.Unique+dirfs.Gone)
	if err := d.fs.MkTmp(r.Feed); err != nil {
		return err
	}
	if err := d.fs.Inside(r.Place.String()+"/"+r.Feed, "tmp/"+r.Feed); err != nil {
		return err
	}
	if err := d.fs.PutAside(r.Feed, d.abs(r), to); err != nil {
		return err
	}
	return os.RemoveAll(to)
}

// WithFlags returns the place that [Dir.SetFlags] moves an entry to. It changes no file.
func (r Ref) WithFlags(set, unset string) (Ref, error) {
	for _, c := range set + unset {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return r, fmt.Errorf("%q is no flag: flags are ASCII letters", c)
		}
	}
	// Bytes, as the info of another program may not be UTF-8.
	flags := slices.DeleteFunc([]byte(sortFlags(r.Flags()+set)), func(c byte) bool {
		return strings.IndexByte(unset, c) >= 0
	})
	return Ref{Feed: r.Feed, Unique: r.Unique, Place: Cur, Info: "2," + string(flags)}, nil
}
