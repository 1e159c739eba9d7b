package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestUnitsAreHardened: the units have few privileges, as measured by systemd.
func TestUnitsAreHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	units, err := filepath.Glob(samples + "/systemd/*.service")
	if err != nil || len(units) < 6 {
		t.Fatal(units, err)
	}
	exposure := regexp.MustCompile(`exposure level for \S+: ([0-9.]+)`)
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		// Like make install, set the path of an existing program.
		path := filepath.Join(t.TempDir(), filepath.Base(unit))
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), "ExecStart=", "ExecStart=/usr/bin/env ", 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", path).CombinedOutput()
		m := exposure.FindSubmatch(out)
		if m == nil {
			t.Skipf("%v: %s", err, out) // an older one
		}
		if level, err := strconv.ParseFloat(string(m[1]), 64); err != nil || level > 3 {
			t.Errorf("got %s: %s\n%s; want err == nil and level <= 3", unit, m[1], out)
		}
	}
}

// TestUnitsOfAnotherDir: the lines at the top of a unit for another lektor-dir are enough. The program
// runs where all but the home and the paths of ReadWritePaths can only be read, as with
// ProtectSystem=strict.
func TestUnitsOfAnotherDir(t *testing.T) {
	bin := testdir.Bin(t)
	feed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<rss version="2.0"><channel><title>F</title><item><title>Two</title><guid>2</guid></item></channel></rss>`)
	}))
	t.Cleanup(feed.Close)
	strict := "mount --make-rprivate /; for d in %s; do mount --bind $d $d; done; mount -o remount,bind,ro / && mount -o remount,bind,ro %s || exit 99; cd /; exec %s"
	if out, err := exec.Command("unshare", "-rm", "true").CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	units, err := filepath.Glob(samples + "/systemd/*.service")
	if err != nil {
		t.Fatal(err)
	}
	dir, paths := regexp.MustCompile(`(?m)^#\s+Environment=LEKTORDIR=(\S+)$`), regexp.MustCompile(`(?m)^#\s+ReadWritePaths=(.+)$`)
	start := regexp.MustCompile(`(?m)^ExecStart=(\S+.*)$`)
	tried := 0
	for _, unit := range units {
		text, err := os.ReadFile(unit)
		if err != nil {
			t.Fatal(err)
		}
		named := dir.FindSubmatch(text)
		if named == nil {
			continue
		}
		writable := paths.FindSubmatch(text)
		if writable == nil || !strings.Contains(" "+string(writable[1])+" ", " "+string(named[1])+" ") {
			t.Errorf("%s: no ReadWritePaths=%s after Environment=LEKTORDIR=%[2]s", unit, named[1])
			continue
		}
		command := string(start.FindSubmatch(text)[1])
		if strings.Contains(command, "listen") {
			continue // it stays
		}
		tried++
		root := t.TempDir()
		home, srv := filepath.Join(root, "home"), filepath.Join(root, "srv")
		env := append(os.Environ(), "HOME="+home, "LEKTORDIR="+srv, "PATH="+bin+":"+os.Getenv("PATH"), "XDG_CACHE_HOME=", "XDG_DATA_HOME=")
		run := func(script string) (int, string) {
			cmd := exec.Command("sh", "-euc", script)
			cmd.Env = env
			out, _ := cmd.CombinedOutput() // the status is compared
			return cmd.ProcessState.ExitCode(), string(out)
		}
		if status, out := run(`umask 022; mkdir -p ~/sync; echo x | lektor-fetch put --feed-id urn:x:f --id urn:x:1 --title One
lektor-fetch add --no-fetch --as-is ` + feed.URL + `; mkdir -p "$LEKTORDIR/etc/view"; echo 'is:unread -> read' >"$LEKTORDIR/etc/view/rules"
lektor-share init ~/sync`); status != 0 {
			t.Fatal(status, out)
		}
		for _, tc := range []struct {
			writable string
			ok       bool
		}{{home, false}, {home + " " + srv, true}} {
			script := fmt.Sprintf("unshare -rm sh -c '"+strict+"'", tc.writable, root, command)
			// The mount of the temporary directory may not be that of the root.
			script = strings.Replace(script, "mount --make-rprivate /;", "mount --make-rprivate /; mount --bind "+root+" "+root+";", 1)
			if status, out := run(script); status == 99 || (status == 0) != tc.ok || strings.Contains(out, "read-only file system") == tc.ok {
				t.Errorf("%s with %s writable: status %d, %s", unit, tc.writable, status, out)
			}
		}
	}
	if tried != 4 {
		t.Errorf("%d units were tried", tried)
	}
}
