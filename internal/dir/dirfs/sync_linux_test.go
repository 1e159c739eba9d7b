package dirfs

import "testing"

func TestVersionAtLeast(t *testing.T) {
	for release, want := range map[string]bool{"6.1.0-13": true, "5.8.0": true, "5.7.19": false, "4.19.0": false, "5.10": true, "x": false} {
		if got := versionAtLeast(release, 5, 8); got != want {
			t.Errorf("%s: %v", release, got)
		}
	}
}
