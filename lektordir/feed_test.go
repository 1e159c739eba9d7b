package lektordir

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
)

// FeedOf caches a feed for a second; after that, it returns a changed title.
func TestFeedOfChanges(t *testing.T) {
	d, _ := newDir(t)
	r := deliver(t, d, sample("a", "A"))[0]
	now := time.Unix(1700000000, 0)
	d.fs.Now = func() time.Time { return now }
	base := d.Join("src", feedHash)
	title := func(want string) {
		t.Helper()
		if got := d.FeedOf(r).Title(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	replace := func(name, text string) {
		t.Helper()
		if err := atomicfile.WriteUnsynced(base+"/"+name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	title("Example")
	replace("name", "Second\n")
	title("Example")
	now = now.Add(feedAge)
	title("Second")
	write(t, base+"/name", "Third\n")
	now = now.Add(feedAge)
	title("Third")
	write(t, base+"/etc/view/alias", "Mine\n")
	now = now.Add(feedAge)
	title("Mine")
	replace("etc/view/alias", "Other\n")
	now = now.Add(feedAge)
	title("Other")
	if err := os.Remove(base + "/etc/view/alias"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(feedAge)
	title("Third")
}

// An id and a name that an editor wrote with CR LF are read without both.
func TestReadFeedCRLF(t *testing.T) {
	d, _ := newDir(t)
	deliver(t, d, sample("a", "A"))
	write(t, d.Join("src", feedHash, "id"), feedID+"\r\n")
	write(t, d.Join("src", feedHash, "name"), "Name\r\n")
	if f, err := d.ReadFeed(feedHash); err != nil || f.ID != feedID || f.Name != "Name" {
		t.Errorf("%+v, %v", f, err)
	}
	if ps, err := d.Check(ctx, true); err != nil || len(ps) > 0 {
		t.Errorf("%v, %v", ps, err)
	}
}

func BenchmarkFeedOf(b *testing.B) {
	d, err := Create(b.TempDir()+"/d", nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.MkdirAll(d.Join("src", feedHash), 0o777); err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"id", "name"} {
		if err := os.WriteFile(d.Join("src", feedHash, name), []byte(feedID+"\n"), 0o666); err != nil {
			b.Fatal(err)
		}
	}
	r := Ref{Feed: feedHash}
	for b.Loop() {
		d.FeedOf(r)
	}
}

// Check repairs a feed if the fetcher was killed while it made the feed.
func TestCheckKilledFeed(t *testing.T) {
	d, c := newDir(t)
	base := d.Join("src", feedHash)
	write(t, base+"/id", feedID+"\n")
	old := c.Now().Add(-2 * atomicfile.Abandoned)
	for _, name := range []string{"/.name1234567890123456", "/.id1234567890123456789"} {
		write(t, base+name, "half")
		os.Chtimes(base+name, old, old)
	}
	write(t, base+"/.mine", "kept\n")
	problems, err := d.Check(t.Context(), true)
	if err != nil || len(problems) != 3 {
		t.Error(problems, err)
	}
	if problems, err = d.Check(t.Context(), true); err != nil || len(problems) != 0 {
		t.Error(problems, err)
	}
	if got := tree(t, d, "src/"+feedHash); len(got) != 3 || read(t, base+"/name") != feedID+"\n" {
		t.Error(got)
	}
}

// Check finds temporary files in all directories in which files are replaced. It keeps young
// ones, and names that lektor does not write.
func TestCheckTemporary(t *testing.T) {
	d, c := newDir(t)
	deliver(t, d, sample("a", "A"))
	base := d.Join("src", feedHash)
	left := []string{"/etc/.interval1234567890123456", "/etc/fetch/.seen1234567890123456789", "/etc/view/.alias1234567890123456", "/etc/history/.next1234567890123456"}
	for _, name := range append(left, "/../../etc/fetch/pages/x/.p1234567890123456", "/../../etc/share/.last1234567890123456") {
		write(t, base+name, "half")
	}
	write(t, base+"/etc/.mine12", "kept\n")
	young, old := c.Now(), c.Now().Add(-atomicfile.Abandoned-time.Second)
	all := []string{d.Join("etc/fetch/pages/x/.p1234567890123456"), d.Join("etc/share/.last1234567890123456")}
	for _, name := range left {
		all = append(all, base+name)
	}
	for _, path := range all {
		os.Chtimes(path, old, old)
	}
	os.Chtimes(base+left[0], young, young)
	if problems, err := d.Check(t.Context(), false); err != nil || len(problems) != 5 {
		t.Error("old temporary files:", problems, err)
	}
	if problems, err := d.Check(t.Context(), true); err != nil || len(problems) != 5 {
		t.Error(problems, err)
	}
	os.Chtimes(base+left[0], old, old)
	if problems, err := d.Check(t.Context(), true); err != nil || len(problems) != 1 {
		t.Error(problems, err)
	}
	if problems, err := d.Check(t.Context(), true); err != nil || len(problems) != 0 {
		t.Error(problems, err)
	}
	if got := tree(t, d, "src/"+feedHash); len(got) != 8 || !slices.Contains(got, "etc/.mine12") {
		t.Error(got)
	}
}
