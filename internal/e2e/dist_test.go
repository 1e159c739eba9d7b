package e2e

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDist: the source archive has all files of the checkout, and builds without git. Another
// build, in another place and with another umask, makes the same archive and Debian package. The
// package is installed, used and removed below a root directory of its own, and no lektor-dir
// changes.
func TestDist(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds all programs")
	}
	for _, program := range []string{"make", "tar", "dpkg-deb", "dpkg"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if out, _ := exec.Command("tar", "--version").Output(); !bytes.Contains(out, []byte("GNU tar")) {
		t.Skip("tar is not that of GNU")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimSpace(read(t, root, "internal/cli/cmdline/VERSION"))
	// run runs a command, and returns what it prints.
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=", "GOFLAGS=-buildvcs=false", "DPKG_DEB_COMPRESSOR_TYPE=gzip", "DPKG_DEB_COMPRESSOR_LEVEL=1")
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s%s", name, args, err, &said, out)
		}
		return string(out)
	}
	first, second, sources := t.TempDir(), t.TempDir(), t.TempDir()
	paths := strings.Fields(run("sh", filepath.Join(root, "scripts/dev/dist"), first))
	archive := filepath.Join(first, "lektor-"+version+".tar.gz")
	if len(paths) != 2 || paths[0] != archive {
		t.Fatalf("got %q; want %s and a package", paths, archive)
	}
	run("tar", "-xzf", archive, "-C", sources)
	unpacked := filepath.Join(sources, "lektor-"+version)
	if _, err := os.Stat(filepath.Join(root, ".git")); err == nil {
		if got, want := tree(t, unpacked), strings.Split(strings.TrimSuffix(run("git", "-C", root, "ls-files", "-z"), "\x00"), "\x00"); len(got) != len(want) {
			t.Errorf("the archive has %d files, want %d", len(got), len(want))
		}
	}
	run("sh", "-c", `umask 077 && TZ=Asia/Tokyo exec sh "$1/scripts/dev/dist" "$2"`, "sh", unpacked, second)
	for _, path := range paths {
		a, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(second, filepath.Base(path))); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not the same the second time (%v)", filepath.Base(path), err)
		}
	}

	if os.Geteuid() != 0 {
		t.Skip("dpkg installs as root only")
	}
	at := t.TempDir()
	writeFile(t, filepath.Join(at, "var/lib/dpkg/status"), "")
	for _, dir := range []string{"info", "updates"} {
		if err := os.Mkdir(filepath.Join(at, "var/lib/dpkg", dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(at, "home")
	feed := filepath.Join(home, "feed.xml")
	writeFile(t, feed, `<rss version="2.0"><channel><title>T</title><link>http://example.org/</link><item><guid>1</guid><title>One</title></item><item><guid>2</guid><title>Two</title></item></channel></rss>`)
	dpkg := func(args ...string) {
		t.Helper()
		run("dpkg", append([]string{"--root=" + at, "--log=" + os.DevNull}, args...)...)
	}
	installed := func(program string, args ...string) string {
		t.Helper()
		path := filepath.Join(at, "usr/bin")
		return run("env", append([]string{"HOME=" + home, "XDG_DATA_HOME=", "XDG_CACHE_HOME=", "LEKTORDIR=", "PATH=" + path + ":" + os.Getenv("PATH"), program}, args...)...)
	}
	dpkg("--install", paths[1])
	if got := installed("lektor-view", "--version"); !strings.Contains(got, version) {
		t.Errorf("lektor-view --version: got %q, want %s", got, version)
	}
	installed("lektor-fetch", "add", "file://"+feed)
	path, _, _ := strings.Cut(installed("lektor-view", "ls", "-o", "path"), "\n")
	installed("lektor-view", "mark", "--set", "S", path)
	for _, name := range []string{"usr/share/man/man5/lektor-dir.5.gz", "usr/lib/systemd/user/lektor-fetch.timer", "usr/share/bash-completion/completions/lektor-view", "usr/share/doc/lektor/copyright"} {
		if _, err := os.Stat(filepath.Join(at, name)); err != nil {
			t.Error(err)
		}
	}
	before := tree(t, home)
	dpkg("--install", paths[1]) // a second time
	dpkg("--purge", "lektor")
	if got := tree(t, home); !maps.Equal(got, before) {
		t.Errorf("the home directory changed\nfrom %q\nto   %q", before, got)
	}
	if _, err := os.Lstat(filepath.Join(at, "usr")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the package leaves something behind (%v)", err)
	}
}
