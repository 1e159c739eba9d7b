package lektordir

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/dirfs"
)

func TestOpenMissing(t *testing.T) {
	var e *NotLektorDirError
	if _, err := Open(filepath.Join(t.TempDir(), "no"), nil); !errors.As(err, &e) || len(e.Missing) != 4 {
		t.Error(err)
	}
	dir := t.TempDir()
	for _, n := range []string{"tmp", "new", "src"} {
		os.Mkdir(filepath.Join(dir, n), 0o777)
	}
	if _, err := Open(dir, nil); !errors.As(err, &e) || len(e.Missing) != 1 || !strings.Contains(err.Error(), "cur") {
		t.Error(err)
	}
	// A missing tmp is created; a dangling link is not replaced.
	os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, "cur"))
	os.Symlink("gone", filepath.Join(dir, "tmp"))
	if _, err := Open(dir, nil); !errors.As(err, &e) || len(e.Missing) != 1 || e.Missing[0] != "tmp" {
		t.Error(err)
	}
	os.Remove(filepath.Join(dir, "tmp"))
	d, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, d, sample("urn:x:1", "text"))
	write(t, filepath.Join(dir, "notes"), "mine")
	if _, err := Create(dir, nil); err != nil {
		t.Error(err)
	}
	if got := read(t, filepath.Join(dir, "notes")); got != "mine" {
		t.Error("Create touched an unknown file")
	}
}

// A lektor-dir of another user may be one; only its owner can know.
func TestOpenForbidden(t *testing.T) {
	dir := t.TempDir()
	if _, err := Create(dir, nil); err != nil {
		t.Fatal(err)
	}
	err := error(&NotLektorDirError{Path: dir, Err: &os.PathError{Op: "stat", Path: dir + "/src", Err: syscall.EACCES}})
	if os.Getuid() != 0 { // root may read everything
		os.Chmod(dir, 0)
		defer os.Chmod(dir, 0o700)
		_, err = Open(dir, nil)
	}
	if text := err.Error(); !strings.HasPrefix(text, "you may not read "+dir+":") || strings.Contains(text, "not a lektor-dir") {
		t.Error(text)
	}
}

func TestEntryRoundTrip(t *testing.T) {
	d, _ := newDir(t)
	v := sample("http://example.com/1", "two\nlines, no newline at the end")
	v.Entry = Entry{
		Title: "Title", ID: "http://example.com/1", Content: []byte("<p>two\nlines</p>\n\n"),
		Author: "A <a@example.com>, B", PubDate: time.Date(2015, 6, 23, 13, 6, 22, 0, time.UTC), Type: "text/html",
		Link: "http://example.com/page", Updated: time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC), Summary: "short\n",
		Enclosures: []Enclosure{{"http://example.com/a.mp3", "audio/mpeg", 12}, {"http://example.com/b", "", -1}},
		Categories: []string{"one", "two words"}, Comments: "http://example.com/c", PubDateRaw: "yesterday",
		Image: "http://example.com/i", Language: "de-AT", Contributors: []string{"C <c@example.com>", "D"}, Duration: 90 * time.Second, Episode: 3, Season: 1,
		Source: Source{ID: "urn:s", Title: "S", URL: "http://example.com/s", Updated: time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC),
			Image: "http://example.com/logo"},
		Terms:     []Category{{"two words", "http://example.com/scheme", "", "term"}, {"of no category", "s", "", ""}},
		People:    []Person{{RoleAuthor, "A", "a@example.com", ""}, {RoleAuthor, "B", "", "http://example.com/b"}, {RoleContributor, "D", "", ""}, {RoleAuthor, "", "", ""}, {"", "E", "", ""}},
		Relations: []Relation{{"via", "http://example.com/v", "text/html", "V"}, {"license", "http://example.com/l", "", ""}, {"", "http://example.com/", "", ""}}, Rights: "all\nreserved",
		InReplyTo: []ReplyTo{{"urn:one", "http://example.com/1", "text/html", "http://example.com/f"}, {"two\ttabs", "", "", ""}, {"", "http://example.com/", "", ""}},
	}
	refs := deliver(t, d, v)
	got, err := d.ReadEntry(refs[0], AllFields)
	if err != nil {
		t.Fatal(err)
	}
	if want := v.Entry; got.Title != want.Title || got.ID != want.ID || string(got.Content) != string(want.Content) ||
		got.Author != want.Author || !got.PubDate.Equal(want.PubDate) || got.Type != want.Type || got.Link != want.Link ||
		!got.Updated.Equal(want.Updated) || got.Summary != want.Summary || !slices.Equal(got.Enclosures, want.Enclosures) ||
		!slices.Equal(got.Categories, want.Categories) || got.Comments != want.Comments || got.PubDateRaw != want.PubDateRaw ||
		got.Image != want.Image || got.Language != want.Language || !slices.Equal(got.Contributors, want.Contributors) ||
		got.Duration != want.Duration || got.Episode != want.Episode || got.Season != want.Season || got.Source != want.Source || !slices.Equal(got.People, want.People[:3]) ||
		!slices.Equal(got.Terms, want.Terms[:1]) || !slices.Equal(got.Relations, want.Relations[:2]) || got.Rights != want.Rights || !slices.Equal(got.InReplyTo, want.InReplyTo[:2]) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	base := d.abs(refs[0])
	for name, want := range map[string]string{
		"title": "Title\n", "pubdate": "2015-06-23T13:06:22Z\n", "type": "text/html\n", "content": "<p>two\nlines</p>\n\n",
		"extras": "link\thttp://example.com/page\nupdated\t2016-01-01T00:00:00Z\ncategory\tone\ncategory\ttwo words\thttp://example.com/scheme\t\tterm\n" +
			"enclosure\thttp://example.com/a.mp3\taudio/mpeg\t12\nenclosure\thttp://example.com/b\t\t\ncomments\thttp://example.com/c\n" +
			"pubdate-raw\tyesterday\nimage\thttp://example.com/i\nlanguage\tde-AT\ncontributor\tC <c@example.com>\ncontributor\tD\n" +
			"person\tauthor\tA\ta@example.com\t\nperson\tauthor\tB\t\thttp://example.com/b\nperson\tcontributor\tD\t\t\n" +
			"relation\tvia\thttp://example.com/v\ttext/html\tV\nrelation\tlicense\thttp://example.com/l\t\t\nin-reply-to\turn:one\thttp://example.com/1\ttext/html\thttp://example.com/f\nin-reply-to\ttwo\\ttabs\nrights\tall\\nreserved\n" +
			"source\turn:s\tS\t\thttp://example.com/s\t2017-01-01T00:00:00Z\t\thttp://example.com/logo\nduration\t90\nepisode\t3\nseason\t1\nsummary\tshort\\n\n",
	} {
		if got := read(t, filepath.Join(base, name)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if link, err := os.Readlink(base + "/feed"); err != nil || link != "../../../src/"+feedHash {
		t.Error(link, err)
	}
	if got := read(t, base+"/feed/id"); got != feedID+"\n" {
		t.Error(got)
	}
}

// Delivery writes no files for values that are empty or defaults.
func TestMinimalEntry(t *testing.T) {
	d, _ := newDir(t)
	v := sample("tag:x", "text")
	v.Entry.Type, v.Entry.Link = "text/plain", "tag:x"
	r := deliver(t, d, v)[0]
	if got, want := tree(t, d, r.Path()), []string{"content", "feed", "id", "title"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	empty := sample("tag:y", "")
	empty.Entry.Title = ""
	r = deliver(t, d, empty)[0]
	if got := read(t, d.abs(r)+"/title"); got != "\n" {
		t.Errorf("an empty title is %q", got)
	}
	if e, err := d.ReadEntry(r, AllFields); err != nil || e.Title != "" {
		t.Error(e, err)
	}
}

func TestTextIsCleaned(t *testing.T) {
	d, _ := newDir(t)
	v := sample("a\nb", "x\x00y\xff")
	v.Entry.Title = "one\r\ntwo\x00\xff"
	v.Entry.Enclosures = []Enclosure{{"http://x/\t\n", "a\tb", 1}}
	r := deliver(t, d, v)[0]
	e, err := d.ReadEntry(r, AllFields)
	if err != nil {
		t.Fatal(err)
	}
	if e.Title != "one two\uFFFD" || e.ID != "a b" || string(e.Content) != "xy\uFFFD" {
		t.Errorf("%q %q %q", e.Title, e.ID, e.Content)
	}
	if len(e.Enclosures) != 1 || e.Enclosures[0].Type != "a b" || e.Enclosures[0].Length != 1 {
		t.Errorf("%v", e.Enclosures)
	}
}

// Entries as other programs write them: feed is an absolute link or a directory, there is no
// type, and content ends with a newline.
const shellEntries = `
mkdir -p "src/$HASH" "new/$HASH" "cur/$HASH"
echo 'http://example.com/rss.xml' >"src/$HASH/id"
echo 'Example Feed' >"src/$HASH/name"
entry() {
	mkdir -p "$1"
	echo 'Example Entry' >"$1/title"
	echo 'http://example.com/1' >"$1/id"
	echo 'A sample entry.' >"$1/content"
}
entry "new/$HASH/1500000000.P1.host"
ln -s "$LEKTORDIR/src/$HASH" "new/$HASH/1500000000.P1.host/feed"
entry "cur/$HASH/1500000001.P1.host"
ln -s "$LEKTORDIR/src/$HASH" "cur/$HASH/1500000001.P1.host/feed"
entry "new/$HASH/1500000002.P1.host"
mkdir "new/$HASH/1500000002.P1.host/feed"
cp "src/$HASH/id" "src/$HASH/name" "new/$HASH/1500000002.P1.host/feed"
echo '2015-06-23T13:06:22Z' >"new/$HASH/1500000002.P1.host/pubdate"
echo 'keep me' >"new/$HASH/1500000002.P1.host/note"
`

func TestShellEntries(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, shellEntries)
	refs := list(t, d, ListOptions{})
	want := []string{"new/" + feedHash + "/1500000000.P1.host", "cur/" + feedHash + "/1500000001.P1.host", "new/" + feedHash + "/1500000002.P1.host"}
	if !slices.Equal(paths(refs), want) {
		t.Fatalf("%v, want %v", paths(refs), want)
	}
	for i, unread := range []bool{true, false, true} {
		if refs[i].Unread() != unread {
			t.Errorf("%s unread: %v", refs[i].Path(), refs[i].Unread())
		}
		e, err := d.ReadEntry(refs[i], AllFields)
		if err != nil || string(e.Content) != "A sample entry.\n" || e.Type != "" || e.Title != "Example Entry" {
			t.Errorf("%+v %v", e, err)
		}
		if f := d.FeedOf(refs[i]); f.ID != feedID || f.Name != "Example Feed" {
			t.Errorf("feed of %s: %+v", refs[i].Path(), f)
		}
	}
	// SetFlags works on names that the shell made.
	to, err := d.SetFlags(refs[1], "F", "")
	if err != nil || to.Name() != "1500000001.P1.host;2,FS" {
		t.Error(to, err)
	}
	to, err = d.SetFlags(refs[2], "", "")
	if err != nil || to.Path() != "cur/"+feedHash+"/1500000002.P1.host;2," || !to.Unread() {
		t.Error(to, err)
	}
	if got := read(t, d.abs(to)+"/note"); got != "keep me\n" {
		t.Errorf("an unknown file became %q", got)
	}
}

// If src/$feed is missing, FeedOf reads the entry's own directory feed.
func TestFeedOnlyInEntry(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, shellEntries+`rm -r "src/$HASH"`)
	refs := list(t, d, ListOptions{})
	if f := d.FeedOf(refs[2]); f.ID != feedID {
		t.Errorf("%+v", f)
	}
	if f := d.FeedOf(refs[0]); f.Hash != feedHash || f.Title() != feedHash {
		t.Errorf("%+v", f)
	}
}

func TestFeedsWithoutName(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, shellEntries+`mkdir src/0000; echo x >src/0000/id; mkdir src/1111; echo y >src/1111/id; echo Y >src/1111/name; touch src/file`)
	feeds, err := d.Feeds()
	var bad *MalformedError
	if !errors.As(err, &bad) || bad.Path != "src/0000" || !strings.Contains(err.Error(), "name") {
		t.Error(err)
	}
	if len(feeds) != 2 || feeds[0].Name != "Y" {
		t.Errorf("%+v", feeds)
	}
}

func TestListSkipsMalformed(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, shellEntries+`mkdir "new/$HASH/;what" "new/$HASH/.hidden" "new/$HASH/1500000000.x;2,S"; touch "cur/$HASH/1500000009.P1.host" new/file`)
	refs, err := d.List(context.Background(), ListOptions{})
	if len(refs) != 3 {
		t.Errorf("%v", paths(refs))
	}
	for _, name := range []string{"what", "1500000000.x;2,S", "1500000009.P1.host"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
	if strings.Contains(err.Error(), "hidden") {
		t.Error(err)
	}
}

func TestMalformedEntry(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, shellEntries+`rm "new/$HASH/1500000000.P1.host/id" "new/$HASH/1500000002.P1.host/content"; mkfifo "cur/$HASH/1500000001.P1.host/type"`)
	refs := list(t, d, ListOptions{})
	var bad *MalformedError
	for _, i := range []int{0, 2} {
		if e, err := d.ReadEntry(refs[i], AllFields); !errors.As(err, &bad) || e == nil || e.Title != "Example Entry" {
			t.Errorf("%v %v", e, err)
		}
	}
	// Reading a FIFO fails and does not block.
	if _, err := d.ReadEntry(refs[1], AllFields); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Error(err)
	}
	if _, err := d.ReadEntry(Ref{Feed: feedHash, Unique: "1.1.1"}, AllFields); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestOneEntryInTwoPlaces(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, shellEntries+`cp -R "new/$HASH/1500000000.P1.host" "cur/$HASH/1500000000.P1.host;2,S"`)
	refs := list(t, d, ListOptions{})
	if len(refs) != 3 || refs[0].Place != Cur {
		t.Errorf("%v", paths(refs))
	}
}

func TestNewestVersionStandsForAll(t *testing.T) {
	d, c := newDir(t)
	a := deliver(t, d, sample("1", "A"))[0]
	c.Sleep(context.Background(), time.Minute)
	v := sample("1", "B")
	b := deliver(t, d, v)[0]
	if got := list(t, d, ListOptions{}); len(got) != 1 || got[0] != b {
		t.Errorf("%v", paths(got))
	}
	if got := list(t, d, ListOptions{AllVersions: true}); len(got) != 2 || got[0] != a {
		t.Errorf("%v", paths(got))
	}
	// If the newest version was read, the older one in new/ is not listed.
	if _, err := d.SetFlags(b, "S", ""); err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{Places: []Place{New}}); len(got) != 0 {
		t.Errorf("%v", paths(got))
	}
	// If the newest version is trashed, the older one is not listed either.
	r, err := d.Resolve(b.Path())
	if err == nil {
		_, err = d.SetFlags(r, "T", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := list(t, d, ListOptions{}); len(got) != 1 || !got[0].Trashed() {
		t.Errorf("%v", paths(got))
	}
	if got := list(t, d, ListOptions{SkipTrashed: true}); len(got) != 0 {
		t.Errorf("%v", paths(got))
	}
	if got := list(t, d, ListOptions{SkipTrashed: true, AllVersions: true}); len(got) != 1 || got[0] != a {
		t.Errorf("%v", paths(got))
	}
}

func TestSetFlags(t *testing.T) {
	d, _ := newDir(t)
	r := deliver(t, d, sample("1", "A"))[0]
	stale := r
	for _, c := range []struct{ set, clear, info string }{
		{"S", "", "2,S"}, {"Fa", "", "2,FSa"}, {"S", "", "2,FSa"}, {"", "S", "2,Fa"}, {"T", "T", "2,Fa"}, {"SS", "Fa", "2,S"},
	} {
		to, err := d.SetFlags(r, c.set, c.clear)
		if err != nil || to.Info != c.info {
			t.Fatalf("set %q clear %q: %v %v, want %s", c.set, c.clear, to, err, c.info)
		}
		r = to
	}
	if _, err := d.SetFlags(stale, "S", ""); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, bad := range []string{"é", "1", ";", "/"} {
		if _, err := d.SetFlags(r, bad, ""); err == nil {
			t.Errorf("flag %q is accepted", bad)
		}
	}
	if got := len(list(t, d, ListOptions{})); got != 1 {
		t.Error(got)
	}
}

func TestRenameNeverReplaces(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, shellEntries+`cp -R "new/$HASH/1500000000.P1.host" "cur/$HASH/1500000000.P1.host;2,S"; echo mine >"cur/$HASH/1500000000.P1.host;2,S/note"`)
	r := Ref{Feed: feedHash, Unique: "1500000000.P1.host", Place: New}
	if _, err := d.SetFlags(r, "S", ""); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	if got := read(t, d.Join("cur", feedHash, "1500000000.P1.host;2,S", "note")); got != "mine\n" {
		t.Error(got)
	}
	if err := dirfs.PlainRename(d.abs(r), d.Join("cur", feedHash, "1500000000.P1.host;2,S")); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	d, _ := newDir(t)
	r := deliver(t, d, sample("1", "A"))[0]
	// The rest of an interrupted removal.
	write(t, d.Join("tmp", feedHash, r.Unique+";gone", "title"), "old")
	if err := d.Remove(r); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, d, "tmp"); !slices.Equal(got, []string{feedHash}) {
		t.Error(got)
	}
	if got := list(t, d, ListOptions{}); len(got) != 0 {
		t.Error(got)
	}
	if err := d.Remove(r); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestResolve(t *testing.T) {
	d, c := newDir(t)
	r := deliver(t, d, sample("1", "A"))[0]
	cur, err := d.SetFlags(r, "S", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{r.Path(), cur.Path(), d.abs(cur), d.abs(r), r.Unique, cur.Name(), cur.Path() + "/", r.Unique + ";2,FS"} {
		if got, err := d.Resolve(name); err != nil || got != cur {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	var none *NotFoundError
	for _, name := range []string{"nobody", "/etc/passwd", "/x/new/y/1700000000.1.h", t.TempDir() + "/" + cur.Path(), "src/" + feedHash} {
		want := "no entry " + name
		if strings.Contains(name, "/") {
			want = name + " is not the path of an entry of this lektor-dir"
		}
		if got, err := d.Resolve(name); !errors.As(err, &none) || none.Feed || none.Newer != nil || none.NoPath != (name != "nobody") || err.Error() != want {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
	c.Sleep(context.Background(), time.Minute)
	newer := deliver(t, d, sample("1", "B"))[0]
	if err := d.Remove(cur); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resolve(r.Path()); !errors.As(err, &none) || none.Feed || none.Newer == nil || *none.Newer != newer ||
		err.Error() != r.Path()+" was replaced by a newer version, "+newer.Path() {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	os.Symlink(d.Path(), link)
	if got, err := d.Resolve(filepath.Join(link, newer.Path())); err != nil || got != newer {
		t.Error(got, err)
	}
}

func TestFindFeed(t *testing.T) {
	d, _ := newDir(t)
	shell(t, d, `for i in abcd1 abcd2 ffff; do mkdir src/$i; echo $i >src/$i/id; echo $i >src/$i/name; done; mkdir "src/$HASH"`)
	for _, name := range []string{feedID, "HTTP://EXAMPLE.com:80/rss.xml#x", feedHash, "80af", "80AF8e", "src/" + feedHash, d.Join("src", feedHash) + "/"} {
		if got, err := d.FindFeed(name); err != nil || got != feedHash {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
	var none *NotFoundError
	if _, err := d.FindFeed("abcd"); !errors.As(err, &none) || !none.Feed || len(none.Matches) != 2 ||
		err.Error() != "abcd is the beginning of 2 feeds' hashes: abcd1 abcd2" {
		t.Error(err)
	}
	for _, name := range []string{"", "http://other/", "../../etc", "zzz"} {
		want := "no feed " + cmp.Or(name, `""`)
		if got, err := d.FindFeed(name); !errors.As(err, &none) || !none.Feed || len(none.Matches) > 0 || err.Error() != want {
			t.Errorf("%q: %s %v", name, got, err)
		}
	}
}

// Simple viewers move entries to cur/ without adding flags.
func TestSampleViewer(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("no sh")
	}
	d, _ := newDir(t)
	r := deliver(t, d, sample("1", "A"))[0]
	shell(t, d, `for FEED in $(ls new); do mkdir -p cur/$FEED; for ENTRY in $(ls new/$FEED); do mv new/$FEED/$ENTRY cur/$FEED/$ENTRY; done; done`)
	got := list(t, d, ListOptions{})
	if len(got) != 1 || !got[0].Bare || got[0].Unread() || got[0].Unique != r.Unique {
		t.Errorf("%+v", got)
	}
	if f := d.FeedOf(got[0]); f.Name != "Example" {
		t.Errorf("%+v", f)
	}
	if _, err := os.Stat(d.abs(got[0]) + "/feed/id"); err != nil {
		t.Errorf("the link feed is broken: %v", err)
	}
}
