package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/lektordir"
)

// TestMain is the process that is killed, too: with what, at which step, and where, in
// this variable.
func TestMain(m *testing.M) {
	f := strings.Split(os.Getenv("LEKTOR_TEST_KILL"), "\n")
	if len(f) != 4 {
		os.Exit(m.Run())
	}
	at, err := strconv.Atoi(f[1])
	if err != nil {
		panic(err)
	}
	var steps atomic.Int64
	err = runOf(f[0], f[2], f[3], command.Env("lektor-pages"), func() {
		if int(steps.Add(1)) == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runOf runs maildir or mbox.
func runOf(what, from, to string, s *command.Streams, step func()) error {
	c := Common{Dir: from, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}
	if what == "maildir" {
		return Maildir(context.Background(), MaildirOptions{Common: c, To: to, step: step}, s)
	}
	return Mbox(context.Background(), MboxOptions{Common: c, To: to, Host: "here.example", step: step}, s)
}

// killed runs it in a process that is killed at a step, and tells whether it was.
func killed(t *testing.T, what string, at int, from, to string) bool {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", fmt.Sprintf("LEKTOR_TEST_KILL=%s\n%d\n%s\n%s", what, at, from, to))
	out, err := cmd.CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return false
	case ok && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	t.Fatalf("%v: %s", err, out)
	return false
}

// run runs it in this process, to its end.
func runMail(t *testing.T, what, from, to string) {
	t.Helper()
	var out, said bytes.Buffer
	if err := runOf(what, from, to, command.NewStreams("lektor-pages", strings.NewReader(""), &out, &said), nil); err != nil {
		t.Fatal(err)
	}
	if what != "mbox" && out.Len() > 0 || said.Len() > 0 {
		t.Fatalf("said %s%s", &out, &said)
	}
}

// someMail is a lektor-dir with entries, of which add adds more.
func someMail(t *testing.T) (d *dir.Dir, add func(from, to int)) {
	t.Helper()
	d = dir.New(t)
	if _, err := d.Feed("http://feed.example/", "Feed"); err != nil {
		t.Fatal(err)
	}
	return d, func(from, to int) {
		for n := from; n < to; n++ {
			if _, err := d.Entry("http://feed.example/", "new", dir.Unique(1700000000+int64(n), n), fmt.Sprintf("title=Entry %d", n), fmt.Sprintf("content=text %d", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A maildir under kills, beside a mail program that takes what is new, deletes some of
// it, and cleans up in tmp: each message is seen once.
func TestMaildirKilled(t *testing.T) {
	d, add := someMail(t)
	add(0, 2)
	first := filepath.Join(t.TempDir(), "mail")
	runMail(t, "maildir", d.Path, first)
	add(2, 5)
	for at := 1; ; at++ {
		to := copyOf(t, first)
		seen := map[string]int{}
		reader := func(deletes bool) {
			names, err := filepath.Glob(filepath.Join(to, "new", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for n, name := range names {
				data, err := os.ReadFile(name)
				if err != nil || !bytes.HasSuffix(data, []byte("\n--=_lektor--\n")) {
					t.Errorf("killed at %d: %s is not whole", at, name)
				}
				seen[subject(data)]++
				if deletes && n%2 == 0 {
					err = os.Remove(name)
				} else {
					err = os.Rename(name, filepath.Join(to, "cur", filepath.Base(name)+":2,S"))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			old, _ := filepath.Glob(filepath.Join(to, "tmp", "*"))
			for _, name := range old {
				_ = os.Remove(name)
			}
		}
		was := killed(t, "maildir", at, d.Path, to)
		reader(at%2 == 0)
		again := killed(t, "maildir", 1+at%7, d.Path, to)
		reader(true)
		runMail(t, "maildir", d.Path, to)
		reader(false)
		for n := range 5 {
			if s := fmt.Sprintf("Entry %d", n); seen[s] != 1 {
				t.Errorf("killed at %d, and again %v: %s was seen %d times", at, again, s, seen[s])
			}
		}
		if left, _ := filepath.Glob(filepath.Join(to, stagedPrefix+"*")); len(left) > 0 || len(seen) != 5 {
			t.Errorf("killed at %d: %v is left, %v was seen", at, left, seen)
		}
		if !was {
			if at < 10 {
				t.Errorf("only %d steps", at)
			}
			return
		}
	}
}

func subject(data []byte) string {
	for line := range strings.Lines(string(data)) {
		if s, ok := strings.CutPrefix(line, "Subject: "); ok {
			return strings.TrimSpace(s)
		}
	}
	return ""
}

// A mailbox under kills, beside a program that adds to it: each message is there once,
// and what others put there stays.
func TestMboxKilled(t *testing.T) {
	d, add := someMail(t)
	add(0, 2)
	first := filepath.Join(t.TempDir(), "mail")
	if err := os.Mkdir(first, 0o777); err != nil {
		t.Fatal(err)
	}
	runMail(t, "mbox", d.Path, filepath.Join(first, "box"))
	add(2, 5)
	if _, err := d.Entry("http://feed.example/", "new", "1700000004.a b\tc\nd.h", "title=Entry 5"); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	runMail(t, "mbox", d.Path, whole)
	want, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	messages := strings.SplitAfter(strings.TrimSuffix(string(want), "\n\n"), "\n\nFrom ")
	if len(messages) != 6 {
		t.Fatalf("%d messages", len(messages))
	}
	const foreign = "From kim@example.org Thu Nov 16 10:00:00 2023\nSubject: Foreign %d\n\ntext\n\n"
	steps := 0
	for _, others := range []bool{false, true} {
		for at := 1; ; at++ {
			dir := copyOf(t, first)
			to := filepath.Join(dir, "box")
			was := killed(t, "mbox", at, d.Path, to)
			added := ""
			if others {
				added = fmt.Sprintf(foreign, at)
				appendTo(t, to, added)
			}
			again := killed(t, "mbox", 1+at%5, d.Path, to)
			runMail(t, "mbox", d.Path, to)
			data, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			for n, m := range messages {
				m = strings.TrimSuffix(m, "From ")
				if got := strings.Count(string(data), strings.TrimSpace(m)); got != 1 {
					t.Errorf("killed at %d, and again %v, others %v: message %d is there %d times", at, again, others, n, got)
				}
			}
			if !strings.Contains(string(data), added) {
				t.Errorf("killed at %d: what another program added is gone", at)
			}
			if !others && string(data) != string(want) {
				t.Errorf("killed at %d, and again %v: the mailbox is another", at, again)
			}
			if names, _ := os.ReadDir(dir); len(names) != 2 {
				t.Errorf("killed at %d: there are %v", at, names)
			}
			if !was {
				steps = at
				break
			}
		}
	}
	if steps < 5 {
		t.Errorf("only %d steps", steps)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// The other ends of a batch that was interrupted: what was rewritten is found by its
// ID, what is damaged is told of.
func TestMboxRewritten(t *testing.T) {
	d, add := someMail(t)
	add(0, 3)
	dir := t.TempDir()
	to := filepath.Join(dir, "box")
	at := 0
	for at = 1; killed(t, "mbox", at, d.Path, to) && !strings.Contains(content(t, to), "Entry 2"); at++ {
	}
	// In the mailbox, and not in the ledger. A mail program marks them.
	box := content(t, to)
	if strings.Count(box, "Subject: Entry") != 3 || strings.Count(content(t, filepath.Join(dir, ".box.lektor-mail")), "\n") > 1 {
		t.Fatalf("killed at %d, there is %s", at, box)
	}
	if err := os.WriteFile(to, []byte(strings.ReplaceAll(box, "Subject:", "Status: RO\nSubject:")), 0o600); err != nil {
		t.Fatal(err)
	}
	runMail(t, "mbox", d.Path, to)
	for n, want := range []int{2, 1, 1} { // of the first, nothing tells that it is whole
		if got := strings.Count(content(t, to), fmt.Sprintf("Subject: Entry %d", n)); got != want {
			t.Errorf("Entry %d is there %d times", n, got)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".box.lektor-append"), []byte("lektor-append 1 0\nx"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := runOf("mbox", d.Path, to, command.NewStreams("lektor-pages", strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}), nil)
	if err == nil || !strings.Contains(err.Error(), ".box.lektor-append, which a run that was interrupted has left, cannot be read") {
		t.Error(err)
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// A mailbox that a mail program has locked, by either lock, is left alone; a lock that
// a kill of ours has left is taken.
func TestMboxLocked(t *testing.T) {
	d, add := someMail(t)
	add(0, 1)
	to := filepath.Join(t.TempDir(), "box")
	for _, c := range []struct {
		content string
		busy    bool
	}{{"", true}, {"12345\n", true}, {"0", true}, {"4194305:elsewhere.example:lektor\n", true}, {"4194305:here.example:lektor\n", false}} {
		if err := os.WriteFile(to+".lock", []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := runOf("mbox", d.Path, to, command.NewStreams("lektor-pages", strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}), nil)
		if busy := errors.Is(err, errLocked); busy != c.busy || err != nil != c.busy {
			t.Errorf("%q: %v", c.content, err)
		}
		if fi, err := os.Stat(to); c.busy && err == nil && fi.Size() > 0 {
			t.Errorf("%q: it was written to", c.content)
		}
	}
	if _, err := os.Lstat(to + ".lock"); err == nil {
		t.Error("the lock is still there")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python to have the other lock")
	}
	add(1, 2)
	holder := exec.Command(python, "-c", "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,fcntl.LOCK_EX); print('locked',flush=True); sys.stdin.read()", to)
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 7)); err != nil {
		t.Fatal(err)
	}
	before := content(t, to)
	err = runOf("mbox", d.Path, to, command.NewStreams("lektor-pages", strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{}), nil)
	if !errors.Is(err, errLocked) || content(t, to) != before {
		t.Errorf("while Python has it locked: %v", err)
	}
	in.Close()
	if err := holder.Wait(); err != nil {
		t.Fatal(err)
	}
	runMail(t, "mbox", d.Path, to)
	if strings.Count(content(t, to), "\nSubject: Entry") != 2 {
		t.Error(content(t, to))
	}
}

// What is read of the file of a batch is all there, and what was written is read.
func FuzzPending(f *testing.F) {
	whole := &pending{offset: 7, refs: []lektordir.Ref{{Feed: "a", Unique: "1.b"}, {Feed: "a", Unique: "2.b\t\n c"}}, ends: []int{3, 8}, text: []byte("\n\nxyyyyy")}
	for _, seed := range []string{string(whole.bytes()), "", "lektor-append 1 0\n\n", "lektor-append 1 -1\n\n", "lektor-append 1 0\na/1.b\t9\n\nx", "lektor-append 1 0\na/1.b\t-1\n\n", "lektor-append 1 0\n\n\n\n", "lektor-append 1 99999999999999999999\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p pending
		if p.parse(data) != nil {
			return
		}
		start := 0
		for _, end := range p.ends {
			if end <= start || end > len(p.text) {
				t.Fatalf("%q has the ends %v", data, p.ends)
			}
			start = end
		}
		var again pending
		if err := again.parse(p.bytes()); err != nil || start != len(p.text) || p.offset < 0 || !bytes.Equal(p.bytes(), again.bytes()) {
			t.Fatalf("%q is %+v, and then %+v, %v", data, p, again, err)
		}
	})
}
