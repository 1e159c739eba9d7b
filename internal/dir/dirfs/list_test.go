package dirfs

import (
	"os"
	"strings"
	"testing"
)

// If both directories of a feed cannot be read, the error names both, because the user must repair
// both.
func TestListNamesWhatItCannotRead(t *testing.T) {
	d := New(t.TempDir(), Options{})
	for _, place := range []string{"new", "cur"} {
		if err := os.Mkdir(d.Join(place), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(d.Join(place, "feed"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, strict := range []bool{false, true} {
		_, err := d.List(t.Context(), "feed", strict)
		if err == nil || !strings.Contains(err.Error(), "new/feed") || !strings.Contains(err.Error(), "cur/feed") {
			t.Errorf("strict %v: %v", strict, err)
		}
	}
}
