package index

import (
	"path/filepath"
	"testing"
)

// What a statement that failed gives is nothing, and the first error stays: whoever looks
// at rows need not look at it first.
func TestFailedStatement(t *testing.T) {
	c, err := connect(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, text := range []string{"SELECT 1, 2 FROM nowhere", "SELECT 1, 2"} {
		r, ok := c.one(text)
		if ok || r.int(0) != 0 || r.text(1) != "" || r.blob(1) != nil || !r.null(0) || r.next() {
			t.Errorf("%s: got %t %v; want !ok and r.int(0) == 0 and r.text(1) == \"\" and r.blob(1) == nil and r.null(0) and !r.next()", text, ok, r.values)
		}
		if code(c.err) == 0 {
			t.Errorf("%s: got %v; want code(c.err) != 0", text, c.err)
		}
	}
}
