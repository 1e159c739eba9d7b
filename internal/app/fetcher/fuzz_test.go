package fetcher

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lektordir/lektor/lektordir"
)

// FuzzMarkers: whatever name somebody leaves in etc/fetch/due, only those of
// feeds that are there make anything due; others are removed, but for hidden
// ones, and nothing else is touched.
func FuzzMarkers(f *testing.F) {
	hash := lektordir.FeedHash("http://a.example/")
	for _, name := range []string{hash, hash + " ", strings.ToUpper(hash), hash[:8], ".hidden", "..x", "a\nb", "\xff\u202e\x1b[31m", "*", "-rf"} {
		f.Add(name, false)
		f.Add(name, true)
	}
	f.Fuzz(func(t *testing.T, name string, directory bool) {
		if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
			return // no file name
		}
		d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
		if err != nil {
			t.Fatal(err)
		}
		feed := d.Join("src", hash)
		marker := d.Join("etc/fetch/due", name)
		for _, dir := range []string{feed, d.Join("etc/fetch/due")} {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if directory {
			err = os.MkdirAll(filepath.Join(marker, "in", "it"), 0o777)
		} else {
			err = os.WriteFile(marker, nil, 0o666)
		}
		if err != nil {
			t.Skip(err) // the file system does not take the name
		}
		var report log
		r, err := New(d, &report, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		marked := r.marked()
		if len(marked) > 1 || marked[hash] != (name == hash) || len(marked) == 1 && name != hash {
			t.Errorf("%q marks %v", name, marked)
		}
		_, err = os.Lstat(marker)
		if stays := name == hash || name[0] == '.'; stays != (err == nil) {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := os.Stat(feed); err != nil {
			t.Error(err)
		}
	})
}
