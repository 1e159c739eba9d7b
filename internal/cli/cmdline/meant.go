package cmdline

import (
	"slices"
	"strings"
)

// meant returns the command that a word means which is no command of app: lektor-fetch and lektor-view are often
// confused, and a URL is to be added. It returns "" for other words and programs.
func meant(app, word string) string {
	for _, p := range [][3]string{
		{"lektor-fetch", "lektor-view", "add set edit update watch history deliver put import export check"},
		{"lektor-view", "lektor-fetch", "show next open play bookmark digest follow count stats tui mark undo rules index save expire publish html maildir mbox"},
	} {
		switch {
		case app != p[0] && app != p[1]:
		case strings.Contains(word, "://"):
			return "lektor-fetch add URL"
		case app == p[1] && slices.Contains(strings.Fields(p[2]), word):
			return p[0] + " " + word
		}
	}
	return ""
}
