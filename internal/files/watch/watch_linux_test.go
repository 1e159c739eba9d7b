package watch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLimit runs the tests below in a user namespace in which the kernel's limit of watches is 0.
func TestLimit(t *testing.T) {
	for _, limit := range []string{"max_inotify_instances", "max_inotify_watches"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestInside$", "-test.v")
		cmd.Env = append(os.Environ(), "LEKTOR_TEST_LIMIT="+limit)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		switch {
		case strings.Contains(string(out), "--- SKIP"), err != nil && len(out) == 0:
			t.Skipf("no user namespace with limits of its own here: %v %s", err, out)
		case err != nil || !strings.Contains(string(out), "--- PASS: TestInside"):
			t.Errorf("%s: %v\n%s", limit, err, out)
		}
	}
}

func TestInside(t *testing.T) {
	limit := os.Getenv("LEKTOR_TEST_LIMIT")
	if limit == "" {
		t.Skip("run by TestLimit")
	}
	if err := os.WriteFile("/proc/sys/user/"+limit, []byte("0"), 0); err != nil {
		t.Skip(err)
	}
	ctx := timeout(t)
	dir := t.TempDir()
	notices := make(chan string, 9)
	w := New(ctx, time.Millisecond, func(s string) { notices <- s }, nil)
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(dir); err != nil {
		t.Fatal(err)
	}
	if !w.Polling() {
		t.Fatal("it does not poll")
	}
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	await(t, ctx, w, dir)
	if got := <-notices; !strings.Contains(got, "limit") || !strings.Contains(got, "max_user_watches") {
		t.Errorf("it says %q", got)
	}
	if len(notices) != 0 {
		t.Errorf("it says so again: %q", <-notices)
	}
}
