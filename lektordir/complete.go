package lektordir

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// completeFile is the path, relative to src/$feed, of the file in which a fetcher lists the
// entries of a complete feed document (RFC 5005, section 2).
const completeFile = "etc/history/complete"

// Complete returns the identities (see [Ref.Identity]) of the entries of a feed's document, in
// the order of the document, if that is complete: if it says that it has all entries of the
// feed. For other feeds, ok is false. If the file that lists the entries cannot be read or has
// a malformed line, Complete returns an error and no identities.
func (d *Dir) Complete(feed string) (identities []string, ok bool, err error) {
	path := filepath.Join(d.Join("src", feed), completeFile)
	data, err := atomicfile.Optional(dirfs.ReadFile(path))
	if data == nil {
		return nil, false, err
	}
	for line := range bytes.Lines(data) {
		id := string(bytes.TrimSuffix(line, []byte{'\n'}))
		if !entryname.IsIdentity(id) {
			return nil, false, &MalformedError{Path: "src/" + feed + "/" + completeFile,
				Reason: fmt.Sprintf("%.20q is not an identity of 16 digits", id)}
		}
		identities = append(identities, id)
	}
	return identities, true, nil
}

// present returns the entries of a feed that are in its document. If that is not complete, it
// returns all of them. An entry without an identity is kept, because it may be in the document.
func (d *Dir) present(feed string, refs []Ref) ([]Ref, error) {
	list, ok, err := d.Complete(feed)
	if !ok || err != nil {
		return refs, err
	}
	in := make(map[string]bool, len(list))
	for _, id := range list {
		in[id] = true
	}
	out := refs[:0]
	for _, r := range refs {
		if id := r.Identity(); id == "" || in[id] {
			out = append(out, r)
		}
	}
	return out, nil
}
