package lektordir

import (
	"bytes"
	"fmt"
	"path/filepath"

	"github.com/lektordir/lektor/internal/dirfs"
	"github.com/lektordir/lektor/internal/entryname"
)

// completeFile is what a fetcher keeps of the document of a feed that says of itself
// that it is complete (RFC 5005, section 2), relative to src/$feed.
const completeFile = "etc/history/complete"

// Complete returns the identities of the entries of a feed's document, in its order, if the
// document says that it has all entries of the feed; ok is false for other feeds. An
// identity is the 16 digits in the unique names of all versions of an entry, see
// [Ref.Identity]. If the file cannot be read or has a malformed line, Complete returns an
// error and no identities.
func (d *Dir) Complete(feed string) (identities []string, ok bool, err error) {
	path := filepath.Join(d.Join("src", feed), completeFile)
	data, err := dirfs.ReadFile(path)
	if isNotExist(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	for line := range bytes.Lines(data) {
		id := string(bytes.TrimSuffix(line, []byte{'\n'}))
		if !entryname.IsIdentity(id) {
			return nil, false, &MalformedError{Path: "src/" + feed + "/" + completeFile, Reason: fmt.Sprintf("%.20q is no entry's 16 digits", id)}
		}
		identities = append(identities, id)
	}
	return identities, true, nil
}

// present returns the entries of a feed without those that are no longer in its document, if
// that is complete. An entry whose name has no identity stays, as the document may have it.
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
