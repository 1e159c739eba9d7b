package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestMain runs the tests, or is the process that kills itself. The variable LEKTOR_TEST_KILL has
// the command, the step, the lektor-dir and the mailbox, one a line.
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
	err = runOf(f[0], f[2], f[3], cmdline.Env("lektor-pages"), func() {
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
func runOf(what, from, to string, s *cmdline.Streams, step func()) error {
	c := Common{Dir: from, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}
	if what == "maildir" {
		return Maildir(context.Background(), MaildirOptions{Common: c, To: to, step: step}, s)
	}
	return Mbox(context.Background(), MboxOptions{Common: c}, s)
}

// killed runs Maildir or Mbox in a process that is killed at a step, and reports whether it was.
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

// runMail runs Maildir or Mbox in this process, without a kill.
func runMail(t *testing.T, what, from, to string) {
	t.Helper()
	var out, messages bytes.Buffer
	if err := runOf(what, from, to, cmdline.NewStreams("lektor-pages", strings.NewReader(""), &out, &messages), nil); err != nil {
		t.Fatal(err)
	}
	if what != "mbox" && out.Len() > 0 || messages.Len() > 0 {
		t.Fatalf("printed %s%s", &out, &messages)
	}
}

// someMail returns a lektor-dir without entries, and a function that adds entries.
func someMail(t *testing.T) (d *testdir.Dir, add func(from, to int)) {
	t.Helper()
	d = testdir.New(t)
	if _, err := d.Feed("http://feed.example/", "Feed"); err != nil {
		t.Fatal(err)
	}
	return d, func(from, to int) {
		for n := from; n < to; n++ {
			if _, err := d.Entry("http://feed.example/", "new", testdir.Unique(1700000000+int64(n), n), fmt.Sprintf("title=Entry %d", n), fmt.Sprintf("content=text %d", n)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestMaildirKilled kills deliveries while a mail program moves new messages, deletes some of
// them, and cleans up tmp: each message is seen once.
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
		wasKilled := killed(t, "maildir", at, d.Path, to)
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
			t.Errorf("killed at %d: %v are left, %v were seen", at, left, seen)
		}
		if !wasKilled {
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

// TestMaildirPrintsWhatIsOnTheDisk: a batch is printed when its messages and their directories are
// synced.
func TestMaildirPrintsWhatIsOnTheDisk(t *testing.T) {
	d, add := someMail(t)
	add(0, 60)
	var out strings.Builder
	c := Common{Dir: d.Path, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}
	step := func() {
		if out.Len() > 0 {
			t.Errorf("%d bytes were printed before the last step", out.Len())
		}
	}
	o := MaildirOptions{Common: c, To: filepath.Join(t.TempDir(), "mail"), Print: cmdline.PrinterOptions{Format: "path"}, step: step}
	if err := Maildir(t.Context(), o, cmdline.NewStreams("lektor-pages", strings.NewReader(""), &out, io.Discard)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 60 {
		t.Errorf("%d messages were printed, want 60", n)
	}
}

// TestMessagesAreNotKept: after a message is written, only its ID stays in memory.
func TestMessagesAreNotKept(t *testing.T) {
	d, add := someMail(t)
	add(0, 2*mailBatch)
	c := Common{Dir: d.Path, Now: func() time.Time { return time.Unix(1700100000, 0).UTC() }}
	m, err := newMailing(c, false, cmdline.PrinterOptions{}, nil, cmdline.NewStreams("lektor-pages", strings.NewReader(""), io.Discard, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	var all []*post
	err = m.inBatches(t.Context(), func(batch []*post) error {
		for _, p := range all {
			if p.data != nil || p.message.Text+p.message.HTML != "" || p.message.ID == "" {
				t.Fatalf("after its batch, %s has %d bytes and the message %+v", p.record.Ref.Path(), len(p.data), p.message)
			}
		}
		all = append(all, batch...)
		return nil
	})
	if err != nil || len(all) != 2*mailBatch {
		t.Errorf("%d messages, %v", len(all), err)
	}
}
