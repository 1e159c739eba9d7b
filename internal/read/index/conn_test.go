package index

import (
	"path/filepath"
	"testing"
)

// A statement that failed returns no rows, and the first error stays: a caller can read rows before
// it checks the error.
func TestFailedStatement(t *testing.T) {
	c, err := connect(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, text := range []string{"SELECT 1, 2 FROM nowhere", "SELECT 1, 2"} {
		r, ok := c.one(text)
		if ok || r.int(0) != 0 || r.blob(1) != nil || !r.null(0) || r.next() {
			t.Errorf("%s: got %t %v; want !ok and r.int(0) == 0 and r.blob(1) == nil and r.null(0) and !r.next()", text, ok, r.values)
		}
		if code(c.err) == 0 {
			t.Errorf("%s: got %v; want code(c.err) != 0", text, c.err)
		}
	}
}
