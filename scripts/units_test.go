package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestUnitsAreHardened: the units have few privileges, as measured by systemd.
func TestUnitsAreHardened(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	units, err := filepath.Glob("systemd/*.service")
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
