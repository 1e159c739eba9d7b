package lektordir

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// SetFlags sets and unsets flags of an entry by one rename, and returns its new place. An entry
// in new/ moves to cur/; an entry in cur/ that has the flags already is not renamed. A flag that
// is in set and in unset is unset.
//
// Flags are ASCII letters: S (seen: the entry was read), F (flagged), T (trashed: viewers do not
// list it), and a to z, which have the meaning that the user chooses. Other letters have no
// meaning yet. A name in cur/ without ';', or with an info of another form, counts as having
// the flag S (see [Ref.Flags]); SetFlags replaces the info.
//
// If another viewer has moved or removed the entry, errors.Is(err, fs.ErrNotExist) is true.
// SetFlags never replaces another entry. An entry in the lower layer of an overlay file system
// cannot be renamed; that is an error.
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
	err = d.fs.Move(d.abs(r), d.abs(to))
	if isNotExist(err) && r.Place == New {
		// The feed may have no directory in cur/ yet.
		if _, lerr := dirfs.Lstat(d.abs(r)); lerr == nil {
			if err := os.Mkdir(d.Join("cur", r.Feed), 0o777); err != nil && !errors.Is(err, os.ErrExist) {
				return r, err
			}
			err = d.fs.Move(d.abs(r), d.abs(to))
		}
	}
	if err != nil {
		return r, err
	}
	return to, nil
}

// Remove deletes an entry. It first renames the entry to tmp/$feed/$unique;gone. If it is
// interrupted after that, the next [Dir.Recover] deletes the rest. If the entry does not exist,
// errors.Is(err, fs.ErrNotExist) is true.
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
	if err := d.fs.PutAside(d.abs(r), to); err != nil {
		return err
	}
	return os.RemoveAll(to)
}

// WithFlags returns the place to which [Dir.SetFlags] would move the entry. It moves nothing.
func (r Ref) WithFlags(set, unset string) (Ref, error) {
	for _, c := range set + unset {
		if !isFlag(c) {
			return r, fmt.Errorf("%q is not a flag: flags are ASCII letters", c)
		}
	}
	// Bytes, because the info of another program may not be UTF-8.
	flags := []byte(r.afterComma() + set)
	slices.Sort(flags)
	flags = slices.DeleteFunc(slices.Compact(flags), func(c byte) bool { return strings.IndexByte(unset, c) >= 0 })
	r.Place, r.Info, r.Bare = Cur, "2,"+string(flags), false
	return r, nil
}
