package index_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// TestMain is also a process that brings an index up to date, to be killed meanwhile, or
// that asks where files may not be large.
func TestMain(m *testing.M) {
	if path := os.Getenv("LEKTOR_INDEX_CHILD"); path != "" {
		if size, err := strconv.ParseUint(os.Getenv("LEKTOR_INDEX_LIMIT"), 10, 64); err == nil {
			w := &world{dir: &testdir.Dir{Path: path}, cache: os.Getenv("LEKTOR_INDEX_CACHE"), clock: time.Now}
			if err = limitFiles(size); err == nil && os.Getenv("LEKTOR_INDEX_DO") == "ask" {
				fmt.Print(w.told(true))
			} else if _, x := w.open(); err == nil {
				err = x.Build(context.Background(), nil)
			}
			if err != nil {
				fmt.Println(err)
			}
			return
		}
		if do := os.Getenv("LEKTOR_INDEX_DO"); do == "brief" || do == "brief once" {
			w := &world{dir: &testdir.Dir{Path: path}, cache: os.Getenv("LEKTOR_INDEX_CACHE"), clock: time.Now, brief: true}
			fmt.Println("begun")
			for n := 0; n == 0 || n < 20 && do == "brief"; n++ {
				w.told(true)
			}
			return
		}
		d, err := lektordir.Open(path, nil)
		if err == nil {
			x := index.New(d, index.Options{Cache: os.Getenv("LEKTOR_INDEX_CACHE"), Host: "here"})
			fmt.Println("begun")
			err = x.Build(context.Background(), nil)
		}
		if err != nil {
			fmt.Println(err)
		}
		return
	}
	os.Exit(m.Run())
}

// history is a lektor-dir at which several programs work at random.
type history struct {
	*world
	random *rand.Rand
	feeds  []string // ids
	number int
	copies string // a copy of an earlier state, "" for none
	skew   time.Duration
	// written are the paths of entries that are where they were written file by file.
	written map[string]bool
}

var vocabulary = strings.Fields("alpha beta gamma delta über straße naïve 東京都庁 日本語 kernel kernels microkernel release notes machine learning the of and")

func (h *history) words(n int) string {
	var b strings.Builder
	for range n {
		b.WriteString(vocabulary[min(h.random.IntN(len(vocabulary)), h.random.IntN(len(vocabulary)+4))])
		b.WriteString([]string{" ", " ", ", ", "-", "\n", ""}[h.random.IntN(6)])
	}
	return b.String()
}

func (h *history) must(err error) {
	h.Helper()
	if err != nil && !os.IsNotExist(err) && !os.IsExist(err) {
		h.Fatal(err)
	}
}

// entries returns the paths of the entries in new, in cur, or in both ("*").
func (h *history) entries(place string) []string {
	list, err := filepath.Glob(filepath.Join(h.dir.Path, place, "*", "[0-9]*"))
	h.must(err)
	return list
}

// one returns a random element of list, "" if it is empty.
func (h *history) one(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[h.random.IntN(len(list))]
}

func (h *history) files() []string {
	date := time.Unix(1500000000+h.random.Int64N(300000000), 0).UTC().Format(time.RFC3339)
	files := []string{"title=" + h.words(3), "content=<p>" + h.words(1+h.random.IntN(12)) + "</p>", "type=text/html", "pubdate=" + date, "author=" + h.words(1)}
	if h.random.IntN(2) == 0 { // some links are equal
		link := h.one([]string{"http://", "https://www."}) + "x.example/" + strconv.Itoa(h.random.IntN(6)) + h.one([]string{"", "/", "?utm_source=f", "#part"})
		files = append(files, "extras=link\t"+link+h.one([]string{"\n", "\nreplaces\t1500000000.x.shell\n"}))
	}
	switch h.random.IntN(12) {
	case 0:
		files = append(files, "title")
	case 1:
		files = append(files, "pubdate")
	case 3, 4:
		files = append(files, "author") // that of the feed counts
	case 2:
		files = append(files, "extras=category\t"+h.words(1)+"\nenclosure\thttp://x.example/a.mp3\taudio/mpeg\t7\nin-reply-to\turn:x:"+h.words(1)+"\t\ttext/html\n")
	}
	return files
}

// deliver puts an entry into new/ or cur/: by a rename, as one should, or file by file.
func (h *history) deliver() {
	h.number++
	feed := h.one(h.feeds)
	// Some are versions of others.
	name := testdir.Unique(1600000000+h.random.Int64N(200000000), h.random.IntN(40)+1)
	if h.random.IntN(6) == 0 {
		name = fmt.Sprintf("%d.x%d.shell", 1600000000+h.number, h.number)
	}
	place := "new"
	if h.random.IntN(4) == 0 {
		place, name = "cur", name+[]string{";2,", ";2,S", "", ";2,FS"}[h.random.IntN(4)]
	}
	if h.random.IntN(3) > 0 {
		path, err := h.dir.Entry(feed, "tmp", name, h.files()...)
		h.must(err)
		to := filepath.Join(h.dir.Path, place, testdir.Hash(feed))
		h.must(os.MkdirAll(to, 0o777))
		h.must(os.Rename(path, filepath.Join(to, name)))
		return
	}
	files := h.files()
	path, err := h.dir.Entry(feed, place, name, files...)
	h.must(err)
	h.written[path] = true
}

// finish writes a missing file of an entry, like a program that copies file by file. Once the
// entry is moved, that program no longer finds it; but an entry without a title may be mended at
// any time.
func (h *history) finish() {
	if path := h.one(append(h.entries("new"), h.entries("cur")...)); path != "" {
		name := h.one([]string{"title", "author"})
		if name != "title" && !h.written[path] {
			return
		}
		if _, err := os.Lstat(filepath.Join(path, name)); os.IsNotExist(err) {
			h.must(os.WriteFile(filepath.Join(path, name), []byte(h.words(1)+"\n"), 0o666))
		}
	}
}

func (h *history) move() {
	path := h.one(append(h.entries("new"), h.entries("cur")...))
	if path == "" {
		return
	}
	unique, _, _ := strings.Cut(filepath.Base(path), ";")
	feed := filepath.Base(filepath.Dir(path))
	to := filepath.Join(h.dir.Path, "cur", feed, unique+[]string{";2,", ";2,S", ";2,F", ";2,ST", ";2,a", ""}[h.random.IntN(6)])
	if h.random.IntN(5) == 0 {
		to = filepath.Join(h.dir.Path, "new", feed, unique)
	}
	h.must(os.MkdirAll(filepath.Dir(to), 0o777))
	if _, err := os.Lstat(to); os.IsNotExist(err) {
		h.must(os.Rename(path, to))
		delete(h.written, path)
	}
}

func (h *history) remove() {
	if path := h.one(append(h.entries("new"), h.entries("cur")...)); path != "" {
		h.must(os.RemoveAll(path))
	}
}

func (h *history) run(name string, args ...string) {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		h.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
}

// restore brings an earlier state back, with its times: all of it anew, or over what is
// there.
func (h *history) restore() {
	if h.copies == "" {
		h.copies = filepath.Join(h.TempDir(), "copy")
		h.run("cp", "-a", h.dir.Path, h.copies)
		return
	}
	clear(h.written)
	switch h.random.IntN(3) {
	case 0:
		h.must(os.RemoveAll(h.dir.Path))
		h.run("cp", "-a", h.copies, h.dir.Path)
	case 1:
		for _, place := range []string{"new", "cur"} {
			h.must(os.RemoveAll(filepath.Join(h.dir.Path, place)))
			h.run("cp", "-a", filepath.Join(h.copies, place), filepath.Join(h.dir.Path, place))
		}
	default:
		h.over()
	}
	h.must(os.RemoveAll(h.copies))
	h.copies = ""
}

// over does what rsync -a --delete does: what is there stays, what is missing comes,
// and directories get the times that they had.
func (h *history) over() {
	var times []func()
	set := func(path string, fi fs.FileInfo) {
		times = append(times, func() { h.must(os.Chtimes(path, fi.ModTime(), fi.ModTime())) })
	}
	for _, place := range []string{"new", "cur"} {
		for _, path := range h.entries(place) {
			rel, err := filepath.Rel(h.dir.Path, path)
			h.must(err)
			if _, err := os.Lstat(filepath.Join(h.copies, rel)); err != nil {
				h.must(os.RemoveAll(path))
			}
		}
		h.must(filepath.WalkDir(filepath.Join(h.copies, place), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(h.copies, path)
			if err != nil {
				return err
			}
			to := filepath.Join(h.dir.Path, rel)
			fi, err := e.Info()
			if err != nil {
				return err
			}
			switch {
			case e.IsDir():
				set(to, fi)
				if err := os.Mkdir(to, 0o777); err != nil && !os.IsExist(err) {
					return err
				}
				return nil
			case e.Type()&fs.ModeSymlink != 0:
				link, _ := os.Readlink(path)
				_ = os.Symlink(link, to)
				return nil
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(to, data, 0o666)
		}))
	}
	for _, f := range times {
		f()
	}
}

// backdate sets the mtime of a directory to a whole hour before or after now.
func (h *history) backdate() {
	list, err := filepath.Glob(filepath.Join(h.dir.Path, h.one([]string{"new", "cur"}), "*"))
	h.must(err)
	if path := h.one(append(list, filepath.Join(h.dir.Path, "new"), filepath.Join(h.dir.Path, "cur"))); path != "" {
		when := time.Now().Add(time.Duration(h.random.IntN(7)-3) * time.Hour).Truncate(time.Second)
		h.must(os.Chtimes(path, when, when))
	}
}

// settings changes what is said of a feed.
func (h *history) settings() {
	feed := h.one(h.feeds)
	src := filepath.Join(h.dir.Path, "src", testdir.Hash(feed))
	write := func(name, text string) {
		h.must(os.MkdirAll(filepath.Dir(filepath.Join(src, name)), 0o777))
		h.must(os.WriteFile(filepath.Join(src, name), []byte(text), 0o666))
	}
	switch h.random.IntN(9) {
	case 0:
		write("etc/view/alias", h.words(1)+"\n")
	case 1:
		write("etc/categories", h.words(1)+"/"+h.words(1)+"\n")
	case 2:
		write("name", h.words(2)+"\n")
	case 3:
		var b strings.Builder
		for range 20 {
			fmt.Fprintf(&b, "%016x\n", h.random.IntN(40)+1)
		}
		if h.random.IntN(6) == 0 {
			b.WriteString("nonsense\n")
		}
		write("etc/history/complete", b.String())
	case 4:
		h.must(os.Remove(filepath.Join(src, "etc/history/complete")))
	case 5:
		write("author", h.words(1)+"\n")
	case 6:
		h.must(os.RemoveAll(filepath.Join(src, "etc", h.one([]string{"view", "history"}))))
	case 7: // all settings go away together, and come back
		for _, names := range [][2]string{{"etc", "away"}, {"was", "etc"}, {"away", "was"}} {
			h.must(os.Rename(filepath.Join(src, names[0]), filepath.Join(src, names[1])))
		}
	case 8:
		when := time.Now().Add(time.Duration(h.random.IntN(7)-3) * time.Hour).Truncate(time.Second)
		h.must(os.Chtimes(filepath.Join(src, "etc"), when, when))
	}
}

// asking is a process that asks, and does so again.
func (h *history) asking() *exec.Cmd {
	cmd := h.child()
	cmd.Env = append(cmd.Env, "LEKTOR_INDEX_DO=brief")
	cmd.Stderr = &bytes.Buffer{}
	return cmd
}

// beside lets another process ask while this one does, and things come meanwhile.
func (h *history) beside() {
	cmd := h.asking()
	out, err := cmd.StdoutPipe()
	h.must(err)
	h.must(cmd.Start())
	_, _ = out.Read(make([]byte, 6))
	for range 3 {
		h.deliver()
		h.compare()
	}
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		h.Fatalf("%v: %s", err, cmd.Stderr)
	}
}

// kill kills a process that works on the index, at any moment: one that builds it, or
// one that asks and leaves work for later.
func (h *history) kill() {
	cmd := h.child()
	if h.random.IntN(2) == 0 {
		cmd = h.asking()
	}
	out, err := cmd.StdoutPipe()
	h.must(err)
	h.must(cmd.Start())
	_, _ = out.Read(make([]byte, 6))
	timer := time.AfterFunc(time.Duration(h.random.IntN(20000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
}

// damage does to the file of the index what happens to files.
func (h *history) damage() {
	files, err := filepath.Glob(filepath.Join(h.cache, "index-*.sqlite"))
	h.must(err)
	if len(files) == 0 {
		return
	}
	path := files[0]
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() {
		return
	}
	switch h.random.IntN(4) {
	case 0:
		h.must(os.Truncate(path, h.random.Int64N(fi.Size()+1)))
	case 1:
		h.must(os.WriteFile(path, []byte("this is no database\n"), 0o666))
	case 2:
		h.must(os.Remove(path))
	case 3:
		// A journal of another file.
		h.must(os.WriteFile(path+"-wal", bytes.Repeat([]byte("wal"), 1000), 0o666))
	}
}

func (h *history) query() string {
	part := func() string {
		w := []rune(strings.TrimRight(h.words(1), " ,-\n"))
		if len(w) == 0 {
			return "alpha"
		}
		from := h.random.IntN(len(w))
		return fmt.Sprintf("%q", string(w[from:from+1+h.random.IntN(len(w)-from)]))
	}
	term := func() string {
		switch h.random.IntN(14) {
		case 0:
			return "title:" + part()
		case 1:
			return "text:" + part()
		case 2:
			return "author:" + part()
		case 3:
			return "folder:" + part()
		case 4:
			return "is:" + h.one([]string{"unread", "read", "flagged", "trashed", "new", "cur", "withdrawn", "updated", "repeat", "repeat"})
		case 5:
			return "since:20" + strconv.Itoa(17+h.random.IntN(9))
		case 6:
			return "before:20" + strconv.Itoa(17+h.random.IntN(9))
		case 7:
			return "feed:" + part()
		case 8:
			return fmt.Sprintf("%q", strings.TrimSpace(h.words(2)))
		case 9:
			return "category:" + part()
		case 10:
			return "has:" + h.one([]string{"enclosure", "category", "author", "date", "audio"})
		case 11:
			return "on:20" + strconv.Itoa(17+h.random.IntN(9))
		}
		return part()
	}
	q := term()
	for h.random.IntN(3) == 0 {
		q += h.one([]string{" ", " or ", " not:"}) + term()
	}
	if h.random.IntN(12) == 0 {
		q = "not:(" + q + ")"
	}
	return q
}

// compare asks both ways.
func (h *history) compare() {
	sel := entrystore.Selection{All: h.random.IntN(3) > 0, Hidden: h.random.IntN(10) == 0}
	if h.random.IntN(2) == 0 {
		sel.Newest = 1 + h.random.IntN(6)
	}
	if h.random.IntN(2) == 0 {
		sel.Want = lektordir.FieldPubDate
	}
	h.same(h.query(), sel)
	h.overview()
}

// TestHistories: whatever happens to a lektor-dir and to the index, the answers are
// those of the directory. LEKTOR_INDEX_HISTORIES tries so many, LEKTOR_INDEX_SEED from
// that one on.
func TestHistories(t *testing.T) {
	histories, first := 3, 1
	if n, err := strconv.Atoi(os.Getenv("LEKTOR_INDEX_HISTORIES")); err == nil {
		histories = n
	}
	if n, err := strconv.Atoi(os.Getenv("LEKTOR_INDEX_SEED")); err == nil {
		first = n
	}
	indexed := 0
	for seed := first; seed < first+histories; seed++ {
		t.Run(strconv.Itoa(seed), func(t *testing.T) { indexed += runHistory(t, uint64(seed)) })
	}
	if indexed < histories*5 {
		t.Errorf("only %d answers were the index's", indexed)
	}
}

func runHistory(t *testing.T, seed uint64) (indexed int) {
	h := &history{world: newWorld(t), random: rand.New(rand.NewPCG(seed, 7)), written: map[string]bool{},
		feeds: []string{"http://a.example/", "http://b.example/", "urn:c"}}
	h.clock = func() time.Time { return time.Now().Add(h.skew) }
	h.indexed = &indexed
	for _, id := range h.feeds {
		_, err := h.dir.Feed(id, h.words(2))
		h.must(err)
	}
	for range h.random.IntN(60) {
		h.deliver()
	}
	h.build()
	steps := []func(){
		h.deliver, h.deliver, h.deliver, h.deliver, h.move, h.move, h.move, h.move, h.move, h.remove, h.finish, h.restore, h.backdate, h.settings, h.settings,
		func() { h.skew = time.Duration(h.random.IntN(5)-2) * time.Hour }, func() { h.skew = 0 },
		func() { h.shared = !h.shared },
	}
	for range 30 {
		for range 1 + h.random.IntN(4) {
			steps[h.random.IntN(len(steps))]()
		}
		switch h.random.IntN(40) {
		case 0, 1:
			h.kill()
		case 2:
			h.damage()
		case 4, 5, 6:
			h.beside()
		case 3:
			if _, x := h.open(); x.Build(context.Background(), nil) != nil {
				continue
			}
		}
		h.compare()
	}
	h.compare()
	return indexed
}
