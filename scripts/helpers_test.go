package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// bin is where programs makes the programs, once for all tests.
var bin string

var programs = sync.OnceValue(func() error {
	out, err := exec.Command("go", "build", "-o", bin+"/", "../cmd/...").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// build makes the programs, and gives their directory.
func build(t testing.TB) string {
	t.Helper()
	if err := programs(); err != nil {
		t.Fatal(err)
	}
	return bin
}

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "lektor-scripts"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(bin)
	os.Exit(code)
}
