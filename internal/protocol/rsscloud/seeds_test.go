package rsscloud

import (
	"os"
	"path/filepath"
	"testing"
)

// Each fuzz target has seeds in testdata.
func TestFuzzSeedsAreThere(t *testing.T) {
	for _, target := range []string{"FuzzDecode", "FuzzReadNotification", "FuzzChallenge", "FuzzReadRequest"} {
		if seeds, _ := filepath.Glob(filepath.Join("testdata", "fuzz", target, "*")); len(seeds) < 3 {
			t.Errorf("%s has %d seeds", target, len(seeds))
		}
	}
	if _, err := os.Stat("testdata"); err != nil {
		t.Error(err)
	}
}
