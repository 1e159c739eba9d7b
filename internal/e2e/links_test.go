package e2e

import (
	"debug/buildinfo"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
)

// TestOnlyViewersHaveTheIndex: programs that fetch, listen and share do not link the database.
func TestOnlyViewersHaveTheIndex(t *testing.T) {
	bin := build(t)
	for name, want := range map[string]bool{
		"lektor-fetch": false, "lektor-ess": false, "lektor-cloudd": false, "lektor-share": false, "lektor-view": true, "lektor-pages": true, "lektor-serve": true,
	} {
		info, err := buildinfo.ReadFile(filepath.Join(bin, name))
		if err != nil {
			t.Fatal(err)
		}
		has := slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Path == "modernc.org/sqlite" })
		if has != want {
			t.Errorf("%s is made with SQLite: %v", name, has)
		}
	}
}
