package lektordir

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

// extras checks the extras of an entry. Unknown extras are not a problem.
func (c *checker) extras(r Ref) error {
	rel := r.Path() + "/" + extrasFile.name
	data, err := dirfs.ReadFile(c.d.Join(rel))
	if err != nil {
		if isNotExist(err) {
			return nil
		}
		return err
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return c.report(rel, "it is not valid UTF-8, or has a NUL", nil)
	}
	malformed := 0
	for l := range bytes.Lines(data) {
		if name, _, ok := bytes.Cut(l, []byte{'\t'}); !ok || len(name) == 0 {
			malformed++
		}
	}
	if malformed > 0 {
		return c.report(rel, fmt.Sprintf("%d of its lines are malformed: a line is a name, a tab and a value",
			malformed), nil)
	}
	return nil
}
