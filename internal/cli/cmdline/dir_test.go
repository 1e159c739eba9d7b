package cmdline

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A path that cannot be looked at is not made into a lektor-dir: the error says what it is.
func TestCreateDirInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateDir(path, nil); err == nil || !strings.Contains(err.Error(), "is not a lektor-dir") {
		t.Error(err)
	}
}
