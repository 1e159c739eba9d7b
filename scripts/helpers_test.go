package scripts

import (
	"os/exec"
	"testing"
)

// build makes the programs, and gives their directory.
func build(t testing.TB) string {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin+"/", "../cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}
