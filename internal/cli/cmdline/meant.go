package cmdline

import (
	"slices"
	"strings"
)

// meant returns the command that a word means which is no command of app: other readers have other
// names, and lektor-fetch and lektor-view are often confused. It returns "" for other words and programs.
func meant(app, word string) string {
	if app != "lektor-fetch" && app != "lektor-view" {
		return ""
	}
	for _, row := range [][2]string{
		{"subscribe sub", "lektor-fetch add URL"},
		{"unsubscribe unsub", "lektor-fetch rm FEED"},
		{"delete del remove", "lektor-fetch rm FEED, or lektor-view rm ENTRY"},
		{"list", "lektor-fetch ls, or lektor-view ls"},
		{"feeds subscriptions", "lektor-fetch ls"},
		{"fetch refresh reload pull", "lektor-fetch update"},
		{"opml", "lektor-fetch import FILE, or lektor-fetch export"},
		{"sync", "lektor-share sync"},
		{"entries unread search find grep query", "lektor-view ls QUERY"},
		{"read", "lektor-view show ENTRY, or lektor-view mark --set read ENTRY"},
		{"star flag", "lektor-view mark --set F ENTRY"},
		{"add set edit update watch history deliver put import export check", "lektor-fetch " + word},
		{"show next open play bookmark digest follow count stats tui mark undo rules index save expire publish html maildir mbox", "lektor-view " + word},
	} {
		if slices.Contains(strings.Fields(row[0]), word) {
			return row[1]
		}
	}
	switch {
	case strings.HasSuffix(word, ".opml"):
		return "lektor-fetch import FILE"
	case strings.Trim(word, "0123456789") == "", word[0] == '/', strings.HasPrefix(word, "new/"),
		strings.HasPrefix(word, "cur/"):
		return "lektor-view show ENTRY"
	case strings.Contains(word, "://"), strings.Contains(word, "."):
		return "lektor-fetch add URL"
	}
	return ""
}
