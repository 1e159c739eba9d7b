package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTrustedState: a state that others may have written is not used.
func TestTrustedState(t *testing.T) {
	const stranger = 12345
	for name, row := range map[string]struct {
		prepare func(dir string) error
		want    string // of the error, "" for none
	}{
		"private":                {func(dir string) error { return os.Chmod(dir, 0o700) }, ""},
		"read by others":         {func(dir string) error { return os.Chmod(dir, 0o755) }, ""},
		"of everybody":           {func(dir string) error { return os.Chmod(dir, 0o777|os.ModeSticky) }, "can be written by others; the state is not used (repair with: chmod go-w "},
		"of a group":             {func(dir string) error { return os.Chmod(dir, 0o770) }, "can be written by others"},
		"a file of everybody":    {func(dir string) error { return os.Chmod(filepath.Join(dir, "users"), 0o666) }, "users can be written by others"},
		"a link to a own file":   {func(dir string) error { return os.Symlink("users", filepath.Join(dir, "tokens")) }, ""},
		"a link to nowhere":      {func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "tokens")) }, ""},
		"a directory of another": {func(dir string) error { return os.Chown(dir, stranger, stranger) }, "belongs to another user; the state is not used"},
		"a file of another":      {func(dir string) error { return os.Chown(filepath.Join(dir, "users"), stranger, stranger) }, "users belongs to another user"},
		"a link of another": {func(dir string) error {
			link := filepath.Join(dir, "tokens")
			return errors.Join(os.Symlink("users", link), os.Lchown(link, stranger, stranger))
		}, "tokens belongs to another user"},
	} {
		dir := t.TempDir()
		if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "users"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := row.prepare(dir); err != nil {
			if os.Geteuid() != 0 && strings.Contains(row.want, "another") {
				continue // only root changes owners
			}
			t.Fatal(err)
		}
		err := TrustedState(dir, "users", "tokens")
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", name, err, row.want)
		}
	}
	if err := TrustedState(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a directory that is missing is trusted")
	}
}
