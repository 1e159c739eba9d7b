package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/server"
)

// oddDir is a lektor-dir of two feeds with two entries each. The server has a third entry of
// each.
type oddDir struct {
	bin, dir string
	server   *server.Server
}

func newOddDir(t *testing.T, dir string) *oddDir {
	t.Helper()
	o := &oddDir{bin: build(t), dir: dir}
	s := server.Start(t, "127.0.0.1")
	o.server = s
	for _, n := range []int{2, 3} {
		for _, name := range []string{"/a", "/b", "/c"} {
			s.Handle(name, server.Doc("application/rss+xml", server.RSS(strings.Trim(name, "/"), 1, n)))
		}
		if n == 2 {
			if status, out := o.run(t, nil, "", "lektor-fetch", "add", "--gap", "0", s.URL("/a"), s.URL("/b")); status != 0 {
				t.Fatal(status, out)
			}
		}
	}
	return o
}

// run runs a program, with the words of before as a prefix, and returns its status and output.
func (o *oddDir) run(t *testing.T, before []string, stdin, program string, args ...string) (int, string) {
	t.Helper()
	argv := append(append(before, filepath.Join(o.bin, program)), args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+o.dir, "no_proxy=*")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// readOnly returns the prefix of a command that makes the lektor-dir read-only. root can write in
// spite of the mode, and gets a read-only mount instead.
func (o *oddDir) readOnly(t *testing.T) []string {
	t.Helper()
	if os.Getuid() != 0 {
		if out, err := exec.Command("chmod", "-R", "a-w", o.dir).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Cleanup(func() { exec.Command("chmod", "-R", "u+w", o.dir).Run() })
		return nil
	}
	before := []string{"unshare", "--mount", "sh", "-c", `mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"`, o.dir}
	if out, err := exec.Command(before[0], append(before[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("root writes anywhere, and there is no mount that cannot be written to: %v: %s", err, out)
	}
	return before
}

func (o *oddDir) tree(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("find", o.dir, "-ls").CombinedOutput()
	if err != nil {
		t.Fatalf("find: %v\n%s", err, out)
	}
	return string(out)
}

// TestReadOnly: in a read-only lektor-dir, commands that only read succeed. All others report the
// error and change nothing.
func TestReadOnly(t *testing.T) {
	o := newOddDir(t, filepath.Join(t.TempDir(), "feeds"))
	entry := glob(t, o.dir, "new/*/*")[0]
	before := o.readOnly(t)
	tree := o.tree(t)
	url := o.server.URL("/a")
	for _, c := range []struct {
		args   string
		status int
		says   string
	}{
		{"lektor-fetch ls", 0, url},
		{"lektor-fetch set " + url, 0, url},
		{"lektor-fetch export", 0, url},
		{"lektor-fetch check", 0, ""},
		{"lektor-fetch check --repair", 0, ""},
		{"lektor-fetch update -a --dry-run", 0, url},
		{"lektor-fetch update -a --gap 0", 1, "2 failed"},
		{"lektor-fetch watch", 1, "etc/fetch"},
		{"lektor-fetch deliver --id " + url, 1, "cannot"},
		{"lektor-fetch put --feed-id urn:x --id urn:x:1", 1, "cannot"},
		{"lektor-fetch add --gap 0 " + o.server.URL("/c"), 1, "cannot"},
		{"lektor-fetch rm " + url, 1, "cannot"},
		{"lektor-fetch rm --purge " + url, 1, "cannot"},
		{"lektor-fetch set " + url + " alias x", 1, "cannot"},
		{"lektor-view ls", 0, "a 1"},
		{"lektor-view show " + entry, 0, "Title: "},
		{"lektor-view count", 0, "4"},
		{"lektor-view digest --keep", 0, "a 1"},
		{"lektor-view publish", 0, ">a 1</title>"},
		{"lektor-view digest", 1, "a 1"},
		{"lektor-view next", 1, "Title: "},
		{"lektor-view mark --set S " + entry, 1, "cur/"},
		{"lektor-view rm " + entry, 1, ""},
	} {
		args := strings.Fields(c.args)
		status, out := o.run(t, before, server.RSS("a", 3, 3), args[0], args[1:]...)
		if c.status == 1 && !strings.Contains(out, "read-only file system") && !strings.Contains(out, "permission denied") {
			t.Errorf("%s: it does not say why: %s", c.args, out)
		}
		if n := strings.Count(out, "read-only file system"); strings.HasPrefix(c.args, "lektor-fetch update") && n > 1 {
			t.Errorf("%s: one cause is reported %d times: %s", c.args, n, out)
		}
		if c.says == "cannot" {
			c.says = args[0] + ": "
		}
		if status != c.status || !strings.Contains(out, c.says) {
			t.Errorf("%s: status %d, not %d with %q: %s", c.args, status, c.status, c.says, out)
		}
		t.Logf("%s: %d %.300s", c.args, status, out)
	}
	if after := o.tree(t); after != tree {
		t.Errorf("it was\n%s\nand is\n%s", tree, after)
	}
}

// otherDevice returns a directory on another file system than dir.
func otherDevice(t *testing.T, dir string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("there is no other file system at hand")
	}
	other, err := os.MkdirTemp("/dev/shm", "lektor-")
	if err != nil {
		t.Skip("there is no other file system at hand: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	// A hard link fails with a portable error.
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "x"), filepath.Join(other, "x")); err == nil {
		t.Skip("/dev/shm is on the same file system as ", dir)
	}
	return other
}

// TestOtherDevice: an entry cannot be renamed from tmp/ to another file system. If new/ or cur/
// is on one, the command fails before it makes a request. If the directory of one feed is, only
// that feed fails, and nothing is lost.
func TestOtherDevice(t *testing.T) {
	for _, place := range []string{"new", "cur"} {
		t.Run(place, func(t *testing.T) {
			o := newOddDir(t, filepath.Join(t.TempDir(), "feeds"))
			other := otherDevice(t, filepath.Dir(o.dir))
			path := filepath.Join(o.dir, place)
			if out, err := exec.Command("sh", "-euc", fmt.Sprintf("cp -R '%s' '%s'; rm -r '%s'; ln -s '%s/%s' '%s'", path, other, path, other, place, path)).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			tree := o.tree(t)
			o.server.Forget("/a")
			for _, args := range [][]string{{"update", "-a"}, {"deliver", "--id", o.server.URL("/a")}, {"put", "--feed-id", "urn:x", "--id", "urn:x:1"}, {"watch"}} {
				status, out := o.run(t, nil, server.RSS("a", 3, 3), "lektor-fetch", args...)
				if status != 1 || !strings.Contains(out, "must be on one file system") {
					t.Errorf("got %q: %d %s; want status == 1 and strings.Contains(out, \"must be on one file system\")", args, status, out)
				}
			}
			if n := len(o.server.Requests("/a")); n > 0 {
				t.Errorf("%d requests were made", n)
			}
			if after := o.tree(t); after != tree {
				t.Errorf("it was\n%s\nand is\n%s", tree, after)
			}
			entry := glob(t, o.dir, "new/*/*")[0]
			for _, args := range [][]string{{"mark", "--set", "S", entry}, {"rm", entry}} {
				if status, out := o.run(t, nil, "", "lektor-view", args...); status != 0 && (status != 1 || !strings.Contains(out, "cross-device link")) {
					t.Errorf("%q: %d %s", args, status, out)
				}
			}
			if status, out := o.run(t, nil, "", "lektor-view", "ls"); status != 0 || strings.Count(out, "\n") < 3 {
				t.Errorf("ls: %d %s", status, out)
			}
		})
	}
	t.Run("one feed", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("mounting needs root")
		}
		o := newOddDir(t, filepath.Join(t.TempDir(), "feeds"))
		fa := filepath.Base(filepath.Dir(glob(t, o.dir, "new/*/*")[0]))
		before := []string{"unshare", "--mount", "sh", "-c", `mount -t tmpfs none "$0" && exec "$@"`, filepath.Join(o.dir, "new", fa)}
		if out, err := exec.Command(before[0], append(before[1:], "true")...).CombinedOutput(); err != nil {
			t.Skipf("there can be no mount: %v: %s", err, out)
		}
		status, out := o.run(t, before, "", "lektor-fetch", "update", "-a", "--gap", "0")
		if status != 1 || !strings.Contains(out, "cross-device link") || !strings.Contains(out, "1 fetched, 1 failed; 1 new entry") {
			t.Errorf("%d %s", status, out)
		}
		// Without the mount, recovery finishes the delivery.
		if status, out := o.run(t, nil, "", "lektor-fetch", "update", "-a", "--gap", "0"); status != 0 {
			t.Errorf("got %d %s; want status == 0", status, out)
		}
		if got := glob(t, o.dir, "new/*/*"); len(got) != 6 {
			t.Errorf("%d entries: %q", len(got), got)
		}
		if left := glob(t, o.dir, "tmp/*/*"); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
		if status, out := o.run(t, nil, "", "lektor-fetch", "check"); status != 0 {
			t.Errorf("check: %s", out)
		}
	})
}
