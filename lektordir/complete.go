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

// Complete gives the entries of a feed's document, in its order, where that says
// that they are all entries of the feed; ok is false for other feeds. Each is the 16
// digits that all versions of it have in their unique names, see [Ref.Identity].
// A file that cannot be read, or in which not every line is one of an entry, says
// nothing: that is in the error.
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

// present leaves out of a feed's entries those that its document, if it is complete,
// has no more. An entry whose name tells no identity stays: nobody can say that the
// document does not have it.
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
