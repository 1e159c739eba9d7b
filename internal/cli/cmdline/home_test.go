package cmdline

import "testing"

func TestExpandHome(t *testing.T) {
	for _, c := range []struct {
		home, path, want string
		fails            bool
	}{
		{"/home/ann", "~/Podcasts/x", "/home/ann/Podcasts/x", false},
		{"/home/ann", "~/", "/home/ann", false},
		{"/home/ann", "/a/~/b", "/a/~/b", false},
		{"/home/ann", "~bob/x", "~bob/x", false},
		{"/home/ann", "", "", false},
		{"", "/x", "/x", false},
		{"", "~/x", "~/x", true},
	} {
		t.Setenv("HOME", c.home)
		if got, err := ExpandHome(c.path); got != c.want || (err != nil) != c.fails {
			t.Errorf("HOME=%q: %q becomes %q, %v; want %q", c.home, c.path, got, err, c.want)
		}
	}
}
