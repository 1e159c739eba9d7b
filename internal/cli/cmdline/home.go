package cmdline

import (
	"os"
	"path/filepath"
	"strings"
)

// ExpandHome replaces a leading "~/" by the user's home directory, as shells do. It is for paths that no
// shell has seen, from a prompt or a configuration file. If the user has none, it returns the path as
// it is with an error.
func ExpandHome(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path, err
	}
	return filepath.Join(home, rest), nil
}
