package e2e

import (
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// installed is a copy of the files that make install needs, with stand-ins for the programs, and
// the place of the installation.
type installed struct {
	t              *testing.T
	make, from, at string
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	path, err := exec.LookPath("make")
	if err != nil {
		t.Skip("make is not installed")
	}
	if out, _ := exec.Command(path, "--version").Output(); !strings.Contains(string(out), "GNU Make") {
		t.Skip("it is not that of GNU")
	}
	i := &installed{t: t, from: t.TempDir(), at: t.TempDir(), make: path}
	for _, dir := range []string{"man", "docs", "scripts", "scripts/systemd", "scripts/completion"} {
		i.copy(dir)
	}
	for _, name := range []string{"Makefile", "README.md", "CHANGELOG.md", "LICENSE"} {
		text := read(t, root, name)
		if err := os.WriteFile(filepath.Join(i.from, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	programs, err := filepath.Glob(root + "/cmd/lektor-*")
	if err != nil || len(programs) < 7 {
		t.Fatal(programs, err)
	}
	for _, p := range programs {
		for _, dir := range []string{"cmd", "bin"} {
			if err := os.MkdirAll(filepath.Join(i.from, dir), 0o777); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Join(i.from, "cmd", filepath.Base(p)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(i.from, "bin", filepath.Base(p)), []byte("#!/bin/sh\necho $0\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// copy copies the files of a directory of the project.
func (i *installed) copy(dir string) {
	i.t.Helper()
	ents, err := os.ReadDir(filepath.Join(root, dir))
	if err != nil {
		i.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(i.from, dir), 0o777); err != nil {
		i.t.Fatal(err)
	}
	for _, e := range ents {
		if e.Type().IsRegular() {
			if err := os.WriteFile(filepath.Join(i.from, dir, e.Name()), []byte(read(i.t, root, dir, e.Name())), 0o666); err != nil {
				i.t.Fatal(err)
			}
		}
	}
}

// run makes a target without the Go tool.
func (i *installed) run(args ...string) {
	i.t.Helper()
	cmd := exec.Command(i.make, append([]string{"GO=true"}, args...)...)
	cmd.Dir = i.from
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=")
	if out, err := cmd.CombinedOutput(); err != nil {
		i.t.Fatalf("make %q: %v\n%s", args, err, out)
	}
}

// files returns the installed files with their permissions.
func (i *installed) files() map[string]fs.FileMode {
	i.t.Helper()
	all := map[string]fs.FileMode{}
	err := filepath.WalkDir(i.at, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		rel, _ := filepath.Rel(i.at, path)
		all[rel] = fi.Mode()
		return err
	})
	if err != nil {
		i.t.Fatal(err)
	}
	return all
}

// TestInstall: all files are where Debian expects them, and uninstall removes everything except
// files of others.
func TestInstall(t *testing.T) {
	i := newInstalled(t)
	other := filepath.Join(i.at, "usr/share/man/man1/other.1")
	if err := os.MkdirAll(filepath.Dir(other), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, prefix := range []string{"/usr", "/opt/lektor", "/home/me/.local"} {
		i.run("install", "DESTDIR="+i.at, "PREFIX="+prefix)
		got := i.files()
		p := prefix[1:]
		zsh := "site-functions"
		if prefix == "/usr" {
			zsh = "vendor-completions"
		}
		units := "lib"
		if prefix == "/home/me/.local" {
			units = "share"
		}
		for name, mode := range map[string]fs.FileMode{
			"bin/lektor-view": 0o755, "bin/lektor-import": 0o755, "share/man/man1/lektor-view.1": 0o644, "share/man/man1/lektor-view-tui.1": 0o644, "share/man/man5/lektor-dir.5": 0o644, "share/man/man7/lektor.7": 0o644,
			"share/doc/lektor/README.md": 0o644, "share/doc/lektor/LICENSE": 0o644, "share/doc/lektor/deviations.md": 0o644, "share/doc/lektor/lektor-view.schema.json": 0o644,
			"share/doc/lektor/scripts/lektor-fzf": 0o755, "share/doc/lektor/scripts/lektor-clock": 0o755,
			"share/bash-completion/completions/lektor-view": 0o644, "share/fish/vendor_completions.d/lektor-view.fish": 0o644, "share/zsh/" + zsh + "/_lektor": 0o644,
			units + "/systemd/user/lektor-fetch.timer": 0o644, units + "/systemd/user/lektor-fetch.path": 0o644, units + "/systemd/user/lektor-cloudd.socket": 0o644, units + "/systemd/user/lektor-expire.timer": 0o644,
			units + "/systemd/user/lektor-share.timer": 0o644, units + "/systemd/user/lektor-serve.socket": 0o644, units + "/systemd/user/lektor-serve.service": 0o644, units + "/systemd/system/lektor-hub.service": 0o644,
		} {
			if got[filepath.Join(p, name)] != mode {
				t.Errorf("got %s/%s: %v; want got[filepath.Join(p, name)] == mode", p, name, got[filepath.Join(p, name)])
			}
		}
		for name := range got {
			if strings.Contains(name, "_test") || strings.Contains(name, "completion/lektor.") {
				t.Errorf("%s was installed", name)
			}
			if strings.Contains(name, "/systemd/") && strings.HasSuffix(name, ".service") {
				for line := range strings.Lines(read(t, i.at, name)) {
					if strings.HasPrefix(line, "ExecStart=") && !strings.HasPrefix(line, "ExecStart="+prefix+"/bin/lektor-") {
						t.Errorf("%s: %s", name, line)
					}
				}
			}
		}
		i.run("uninstall", "DESTDIR="+i.at, "PREFIX="+prefix)
		left := i.files()
		delete(left, "usr/share/man/man1/other.1")
		if len(left) > 0 {
			t.Errorf("uninstall leaves %v", left)
		}
		for _, dir := range []string{"share/doc/lektor/scripts", "share/doc/lektor"} {
			if _, err := os.Stat(filepath.Join(i.at, p, dir)); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// TestUnitsVerify: systemd accepts the installed units.
func TestUnitsVerify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	i := newInstalled(t)
	i.run("install", "PREFIX="+i.at)
	for _, kind := range []string{"user", "system"} {
		units, err := filepath.Glob(filepath.Join(i.at, "lib/systemd", kind, "*.*"))
		if err != nil || len(units) < 2 {
			t.Fatal(units, err)
		}
		for _, unit := range units {
			args := []string{"verify", "--man=no", unit}
			if kind == "user" {
				args = slices.Insert(args, 0, "--user")
			}
			cmd := exec.Command(analyze, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "SYSTEMD_UNIT_PATH="+filepath.Dir(unit)+":")
			out, err := cmd.CombinedOutput()
			for line := range strings.Lines(string(out)) {
				// Ignore messages about other units of the machine, and about %D, which systemd
				// before 256 does not know.
				if strings.Contains(line, "lektor") && !strings.Contains(line, "Failed to resolve unit specifiers in %D/") {
					t.Errorf("%s: %s", filepath.Base(unit), line)
				}
			}
			if err != nil && !t.Failed() {
				t.Skipf("systemd-analyze cannot verify here: %v: %s", err, out)
			}
		}
	}
}

// TestUnitsAreFound: systemd finds the units that a user installs below $HOME/.local.
func TestUnitsAreFound(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	i := newInstalled(t)
	i.run("install", "PREFIX="+filepath.Join(i.at, ".local"))
	cmd := exec.Command(analyze, "--user", "unit-paths")
	cmd.Env = append(os.Environ(), "HOME="+i.at, "XDG_RUNTIME_DIR="+t.TempDir(), "XDG_DATA_HOME="+filepath.Join(i.at, ".local/share"))
	paths, err := cmd.Output()
	if err != nil {
		t.Skip(err)
	}
	for dir := range strings.Lines(string(paths)) {
		if _, err := os.Stat(filepath.Join(strings.TrimSpace(dir), "lektor-fetch.timer")); err == nil && strings.HasPrefix(dir, i.at) {
			return
		}
	}
	t.Errorf("no unit is in\n%s", paths)
}

// TestUnitsKnowTheirStatus: a run with only remote failures does not make the unit fail.
func TestUnitsKnowTheirStatus(t *testing.T) {
	for _, unit := range glob(t, samples, "systemd", "*.service") {
		text := read(t, unit)
		if strings.Contains(text, "Type=oneshot") && !strings.Contains(text, "\nSuccessExitStatus=75\n") {
			t.Errorf("%s fails where nothing did here", unit)
		}
		if timer := strings.TrimSuffix(unit, ".service") + ".timer"; strings.Contains(text, "Type=oneshot") && len(glob(t, timer)) == 0 {
			t.Errorf("%s has no timer", unit)
		}
	}
}

// TestUninstallSparesLektorDir: a lektor-dir in the default place survives install and uninstall
// into $HOME/.local and into /usr.
func TestUninstallSparesLektorDir(t *testing.T) {
	programs := build(t)
	for _, c := range []struct {
		name, prefix string
		destdir      bool
	}{
		{name: "home", prefix: ".local"},
		{name: "usr", prefix: "/usr", destdir: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := newInstalled(t)
			for _, p := range []string{"lektor-fetch", "lektor-view"} {
				b, err := os.ReadFile(filepath.Join(programs, p))
				if err == nil {
					err = os.WriteFile(filepath.Join(i.from, "bin", p), b, 0o777)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			home := i.at
			prefix, bin := c.prefix, filepath.Join(home, c.prefix, "bin")
			args := []string{"PREFIX=" + filepath.Join(home, c.prefix)}
			if c.destdir {
				root := t.TempDir()
				bin = filepath.Join(root, c.prefix, "bin")
				args = []string{"PREFIX=" + prefix, "DESTDIR=" + root}
			}
			lektor := filepath.Join(home, ".local/share/lektor")
			i.run(slices.Concat([]string{"install"}, args)...)
			run := func(program string, args ...string) string {
				t.Helper()
				cmd := exec.Command(filepath.Join(bin, program), args...)
				cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME=", "LEKTORDIR=")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s %q: %v\n%s", program, args, err, out)
				}
				return string(out)
			}
			feed := filepath.Join(t.TempDir(), "feed.xml")
			writeFile(t, feed, `<rss version="2.0"><channel><title>T</title><link>http://example.org/</link><item><guid>1</guid><title>One</title></item><item><guid>2</guid><title>Two</title></item></channel></rss>`)
			run("lektor-fetch", "add", "file://"+feed)
			first, _, _ := strings.Cut(run("lektor-view", "ls", "-o", "path"), "\n")
			run("lektor-view", "mark", "--set", "S", first)
			// A file of the user is beside the files of the lektor-dir.
			writeFile(t, filepath.Join(lektor, "scripts/mine"), "mine\n")
			before := tree(t, lektor)
			i.run(slices.Concat([]string{"uninstall"}, args)...)
			if got := tree(t, lektor); !maps.Equal(got, before) {
				t.Errorf("uninstall changed the lektor-dir\nfrom %q\nto   %q", before, got)
			}
			left := i.files()
			maps.DeleteFunc(left, func(name string, _ fs.FileMode) bool { return strings.HasPrefix(name, ".local/share/lektor/") })
			if len(left) > 0 {
				t.Errorf("uninstall leaves %v", left)
			}
		})
	}
}

// writeFile writes a file and the directories above it.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o777)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// tree returns the contents of the files and links below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if e.Type()&fs.ModeSymlink != 0 {
			all[rel], err = os.Readlink(path)
			return err
		}
		b, err := os.ReadFile(path)
		all[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPathUnitHeedsDataHome: the unit that reacts to due markers watches the directory that
// lektor-fetch uses.
func TestPathUnitHeedsDataHome(t *testing.T) {
	text := read(t, samples, "systemd", "lektor-fetch.path")
	for _, want := range []string{"\nDirectoryNotEmpty=%D/lektor/etc/fetch/due\n", "\nDirectoryNotEmpty=%h/.local/share/lektor/etc/fetch/due\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("lektor-fetch.path lacks %q", want)
		}
	}
}
