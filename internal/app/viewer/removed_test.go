package viewer

import (
	"os"
	"strings"
	"testing"
)

// remover is a writer that removes an entry as soon as it was shown.
type remover struct {
	text  strings.Builder
	shows string
	path  string
	t     *testing.T
}

func (r *remover) Write(p []byte) (int, error) {
	if strings.Contains(string(p), r.shows) {
		if err := os.RemoveAll(r.path); err != nil {
			r.t.Error(err)
		}
	}
	return r.text.Write(p)
}

// TestRemovedWhileShown: if another viewer removes an entry while it is shown, digest and next do
// not fail.
func TestRemovedWhileShown(t *testing.T) {
	for _, command := range []string{"digest", "next"} {
		f := newFixture(t)
		path := f.Add("new", "1700000001.1.h", "title=One")
		other := f.Add("new", "1700000002.1.h", "title=Two")
		s := f.Streams("")
		out := &remover{shows: "One", path: path, t: t}
		s.Out = out
		var err error
		if command == "digest" {
			err = Digest(t.Context(), DigestOptions{Common: f.Common(), Lines: 1}, s)
		} else {
			err = Next(t.Context(), ShowOptions{Common: f.Common(), Mark: true}, s)
		}
		if err != nil || s.Report.Errors() > 0 || !strings.Contains(out.text.String(), "One") {
			t.Errorf("%s: %v, %d errors, %q, %s", command, err, s.Report.Errors(), out.text.String(), &f.Err)
		}
		if _, err := os.Stat(other); (err == nil) != (command == "next") {
			t.Errorf("%s: the other entry: %v", command, err)
		}
	}
}
