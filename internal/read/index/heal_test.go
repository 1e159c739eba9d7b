package index_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/entrystore"
)

// TestChangedInPlace replaces a file of entries that the index has read, one of which was
// moved before: lektor-view index reads them again.
func TestChangedInPlace(t *testing.T) {
	w := filled(t, 60)
	list, err := filepath.Glob(filepath.Join(w.dir.Path, "cur", "*", "[0-9]*"))
	w.must(err)
	for _, path := range list {
		w.must(os.Chtimes(path, time.Unix(1700000000, 0), time.Unix(1700000000, 0)))
	}
	w.clock = func() time.Time { return time.Now().Add(time.Hour) } // nothing is young
	w.build()
	replace := func(path, title string) {
		w.must(os.WriteFile(path+"/.t", []byte(title+"\n"), 0o666))
		w.must(os.Rename(path+"/.t", path+"/title"))
	}
	replace(list[0], "Mended")
	w.must(os.Rename(list[1], list[1]+"F"))
	replace(list[1]+"F", "Moved and mended")
	w.must(os.Rename(list[2], list[2]+"F"))
	w.build()
	for _, words := range []string{"mended", "title:mended", "\"moved and\"", "title"} {
		w.same(words, entrystore.Selection{All: true})
	}
	if n := len(w.same("mended", entrystore.Selection{All: true})); n != 2 {
		t.Errorf("%d entries are mended", n)
	}
	w.whole()
}
