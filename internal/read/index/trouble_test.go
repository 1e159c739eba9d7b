package index_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/index"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// filled returns a world of n entries.
func filled(t *testing.T, n int) *world {
	w := newWorld(t)
	for _, id := range []string{"http://a.example/", "http://b.example/"} {
		if _, err := w.dir.Feed(id, "Feed "+id); err != nil {
			t.Fatal(err)
		}
	}
	w.more(0, n)
	return w
}

// more delivers the entries from one number to another.
func (w *world) more(from, to int) {
	w.Helper()
	for i := from; i < to; i++ {
		place, name := "new", testdir.Unique(1700000000+int64(i), i+1)
		if i%3 == 0 {
			place, name = "cur", name+";2,S"
		}
		_, err := w.dir.Entry([]string{"http://a.example/", "http://b.example/"}[i%2], place, name, fmt.Sprintf("title=Title %d", i),
			fmt.Sprintf("content=text w%dx of kernel %d %s", i, i%7, strings.Repeat(fmt.Sprintf("z%dq ", i), 1)), "pubdate="+time.Unix(1600000000+int64(i)*86400, 0).UTC().Format(time.RFC3339))
		if err != nil {
			w.Fatal(err)
		}
	}
}

// questions are what is asked.
func questions() []question {
	return []question{
		{"", entrystore.Selection{All: true}}, {"w7x", entrystore.Selection{All: true}},
		{`"kernel 3"`, entrystore.Selection{All: true, Newest: 3, Want: lektordir.FieldPubDate}}, {"kernel is:unread", entrystore.Selection{Newest: 5}},
	}
}

type question struct {
	words string
	sel   entrystore.Selection
}

// right fails the test unless queries are answered as by the directory, with one
// warning at most each.
func (w *world) right() {
	w.Helper()
	for _, q := range questions() {
		w.said.Reset()
		w.same(q.words, q.sel)
		if n := strings.Count(w.said.String(), "\n"); n > 1 {
			w.Errorf("%q: %d warnings:\n%s", q.words, n, w.said.String())
		}
	}
}

// told returns all answers, with the index or without, and the warnings of an answer if it took
// several.
func (w *world) told(with bool) string {
	var b strings.Builder
	for _, q := range questions() {
		w.said.Reset()
		fmt.Fprintf(&b, "%q: %q\n", q.words, w.ask(with, q.words, q.sel))
		if n := strings.Count(w.said.String(), "\n"); n > 1 {
			fmt.Fprintf(&b, "%d warnings: %s\n", n, w.said.String())
		}
	}
	return b.String()
}

// again fails the test unless queries have the index once more, which is whole.
func (w *world) again() {
	w.Helper()
	// One query finds that there is none and begins one, the next one fills it.
	w.right()
	n := 0
	w.indexed = &n
	w.right()
	if n != len(questions()) {
		w.Errorf("%d of %d queries were answered by the index", n, len(questions()))
	}
	w.whole()
}

// whole fails the test if the index differs from the directory.
func (w *world) whole() {
	w.Helper()
	_, x := w.open()
	if _, err := x.Check(context.Background(), nil, func(problem string) { w.Error(problem) }); err != nil {
		w.Error(err)
	}
}

// file is where the index is.
func (w *world) file() string {
	_, x := w.open()
	return x.Path()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestDamagedFile(t *testing.T) {
	garbage := func(w *world, at, size int64) {
		f, err := os.OpenFile(w.file(), os.O_RDWR, 0)
		w.must(err)
		_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(size)), at)
		w.must(errors.Join(err, f.Close()))
	}
	for name, damage := range map[string]func(w *world, size int64){
		"truncated to nothing": func(w *world, size int64) { w.must(os.Truncate(w.file(), 0)) },
		"truncated":            func(w *world, size int64) { w.must(os.Truncate(w.file(), size/3)) },
		"truncated in a page":  func(w *world, size int64) { w.must(os.Truncate(w.file(), size-5000)) },
		"another header":       func(w *world, size int64) { garbage(w, 0, 16) },
		"garbage in front":     func(w *world, size int64) { garbage(w, 100, 8092) },
		"garbage in it":        func(w *world, size int64) { garbage(w, 16384, size-16384) },
		"text":                 func(w *world, size int64) { w.must(os.WriteFile(w.file(), []byte("this is no database\n"), 0o666)) },
		"of another version":   func(w *world, size int64) { garbage(w, 60, 4) },
		"of another program":   func(w *world, size int64) { garbage(w, 68, 4) },
		"a directory":          func(w *world, size int64) { w.must(os.Remove(w.file())); w.must(os.Mkdir(w.file(), 0o777)) },
		"a pipe": func(w *world, size int64) {
			w.must(os.Remove(w.file()))
			w.must(unix.Mkfifo(w.file(), 0o666))
		},
		"the journal of another": func(w *world, size int64) {
			w.must(os.WriteFile(w.file()+"-wal", bytes.Repeat([]byte("wal"), 20000), 0o666))
		},
		"removed": func(w *world, size int64) { w.must(os.Remove(w.file())) },
	} {
		t.Run(name, func(t *testing.T) {
			w := filled(t, 24)
			w.build()
			fi, err := os.Stat(w.file())
			w.must(err)
			damage(w, fi.Size())
			w.right()
			w.more(24, 30)
			w.again()
		})
	}
}

// An index of another version is removed, and not called damaged.
func TestAnotherVersion(t *testing.T) {
	w := filled(t, 24)
	w.build()
	data, err := os.ReadFile(w.file())
	w.must(err)
	data[63]--
	w.must(os.WriteFile(w.file(), data, 0o666))
	w.said.Reset()
	w.same("kernel", entrystore.Selection{All: true})
	if said := w.said.String(); !strings.Contains(said, "not a whole index of this version") || strings.Contains(said, "damaged") {
		t.Errorf("it says %q", said)
	}
	w.again()
}

// limited is a process for which no file may be larger, as on a disk that is full. It
// asks, or builds the index, see TestMain.
func (w *world) limited(size int, what string) (string, error) {
	cmd := w.child()
	cmd.Env = append(cmd.Env, "LEKTOR_INDEX_LIMIT="+strconv.Itoa(size), "LEKTOR_INDEX_DO="+what)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// limitFiles limits the size of files for this process.
func limitFiles(size uint64) error {
	signal.Ignore(unix.SIGXFSZ)
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	put(&l.Cur, size)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &l)
}

// put sets a number whose type is not the same on all systems.
func put[T int64 | uint64](to *T, n uint64) { *to = T(n) }

func TestFullDisk(t *testing.T) {
	failed := 0
	for _, size := range []int{0, 5000, 20000, 60000} {
		t.Run(strconv.Itoa(size), func(t *testing.T) {
			w := filled(t, 30)
			w.build()
			w.more(30, 45)
			try := func() {
				t.Helper()
				want := w.told(false)
				for _, what := range []string{"ask", "build", "ask"} {
					out, err := w.limited(size, what)
					if err != nil {
						t.Errorf("%s: %v\n%s", what, err, out)
					}
					switch {
					case what == "build":
						failed += min(1, len(out))
					case out != want:
						t.Errorf("answers:\n%snot\n%s", out, want)
					}
				}
				w.again()
			}
			try()
			// And one that is begun there.
			_, x := w.open()
			w.must(x.Drop())
			try()
		})
	}
	if failed < 4 {
		t.Errorf("only %d builds met the limit", failed)
	}
}

// TestFullFileSystem is the same on a file system that has no room left, where one can
// be made.
func TestFullFileSystem(t *testing.T) {
	w := filled(t, 80)
	w.must(os.MkdirAll(w.cache, 0o777))
	if err := mountSmall(w.cache, 400<<10); err != nil {
		t.Skip("no small file system can be made here: ", err)
	}
	defer func() { _ = unix.Unmount(w.cache, 0) }()
	filler := filepath.Join(w.cache, "filler")
	for _, left := range []int{0, 40, 200} {
		f, err := os.Create(filler)
		w.must(err)
		for _, err = f.Write(make([]byte, 4096)); err == nil; {
			_, err = f.Write(make([]byte, 4096))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		fi, err := f.Stat()
		w.must(err)
		w.must(errors.Join(f.Truncate(max(fi.Size()-int64(left)<<10, 0)), f.Close()))
		w.right()
		_, x := w.open()
		_ = x.Build(context.Background(), nil)
		w.right()
		w.must(os.Remove(filler))
	}
	_, x := w.open()
	w.must(x.Drop())
	w.again()
}

// readOnly calls f where nothing can be written below a directory.
func readOnly(t *testing.T, path string, f func()) {
	t.Helper()
	var all []string
	err := filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		all = append(all, p)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mode := func(bits fs.FileMode) {
		for _, p := range all {
			fi, err := os.Stat(p)
			if err != nil {
				continue
			}
			perm := fi.Mode().Perm() | bits
			if bits == 0 {
				perm &^= 0o222
			}
			if err := os.Chmod(p, perm|0o444); err != nil {
				t.Fatal(err)
			}
		}
	}
	mode(0)
	defer mode(0o200)
	// All may come this way.
	for p := filepath.Dir(path); len(p) > len(os.TempDir()); p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getuid() == 0 {
		// Root may write all the same; the index is opened by this thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if !asNobody() {
			t.Skip("root may write everywhere")
		}
		defer asRoot()
	}
	f()
}

func TestReadOnlyCache(t *testing.T) {
	w := filled(t, 30)
	w.must(os.MkdirAll(w.cache, 0o777))
	readOnly(t, w.cache, func() {
		if err := os.WriteFile(filepath.Join(w.cache, "x"), nil, 0o666); err == nil {
			t.Fatal("it can be written")
		}
		w.right()
		_, x := w.open()
		if x.Build(context.Background(), nil) == nil {
			t.Error("an index was made")
		}
	})
	w.build()
	w.more(30, 35)
	readOnly(t, w.cache, w.right)
	w.again()
}

func TestNoHome(t *testing.T) {
	w := filled(t, 10)
	w.cache = ""
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	w.right()
	_, x := w.open()
	if err := x.Build(context.Background(), nil); err == nil || x.Path() != "" || x.Exists() {
		t.Errorf("an index at %q: %v", x.Path(), err)
	}
	// The cache directory may not be a file, or a relative path.
	file := filepath.Join(t.TempDir(), "file")
	w.must(os.WriteFile(file, nil, 0o666))
	t.Setenv("XDG_CACHE_HOME", file)
	w.right()
	t.Setenv("XDG_CACHE_HOME", "relative")
	if _, x := w.open(); x.Path() != "" {
		t.Errorf("an index at %q", x.Path())
	}
}

func TestTwoWriters(t *testing.T) {
	w := filled(t, 60)
	for round := range 2 {
		from := 60 + 30*round
		w.more(from, from+30)
		if round == 1 {
			_, x := w.open()
			w.must(x.Drop())
		}
		var work sync.WaitGroup
		for range 3 {
			work.Go(func() {
				_, x := w.open()
				if err := x.Build(context.Background(), nil); err != nil && !errors.As(err, new(*index.BusyError)) && !strings.Contains(err.Error(), "locked") {
					t.Error(err)
				}
			})
		}
		cmd := w.child()
		w.must(cmd.Start())
		for range 3 {
			w.right()
		}
		work.Wait()
		w.must(cmd.Wait())
		w.again()
	}
}

// child is a process that builds the index.
func (w *world) child() *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEKTOR_INDEX_CHILD="+w.dir.Path, "LEKTOR_INDEX_CACHE="+w.cache, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// TestKilled kills a process that builds the index, or brings it up to date, at any
// moment. LEKTOR_INDEX_KILLS does it so many times.
func TestKilled(t *testing.T) {
	kills := 4
	if n, err := strconv.Atoi(os.Getenv("LEKTOR_INDEX_KILLS")); err == nil {
		kills = n
	}
	w := filled(t, 150)
	random := rand.New(rand.NewPCG(1, 2))
	begin := time.Now()
	w.must(w.child().Run())
	takes := time.Since(begin)
	killed := 0
	for i := 0; i < kills || killed < kills/4; i++ {
		if i > 10*kills {
			t.Fatalf("only %d of %d were killed", killed, i)
		}
		_, x := w.open()
		if i%2 == 0 {
			w.must(x.Drop())
		} else {
			w.more(150+20*i, 170+20*i)
		}
		cmd := w.child()
		w.must(cmd.Start())
		timer := time.AfterFunc(time.Duration(random.Int64N(int64(takes))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() != nil {
			killed++
		} else {
			takes = max(takes/2, time.Millisecond) // the machine is less busy now
		}
		timer.Stop()
		w.again()
	}
}
