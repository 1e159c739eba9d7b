package cmd

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// TestProposals: a word of other readers, a command of the other program, a URL, or an entry in the
// place of a command is answered with the command that is meant, and that command exists.
func TestProposals(t *testing.T) {
	bin := testdir.Bin(t)
	run := func(args ...string) (status int, stderr string) {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		var b strings.Builder
		cmd.Stderr = &b
		_ = cmd.Run() // the status is compared
		return cmd.ProcessState.ExitCode(), b.String()
	}
	want := map[string]string{
		"lektor-fetch https://example.org/feed": "lektor-fetch add URL",
		"lektor-fetch example.org":              "lektor-fetch add URL",
		"lektor-fetch Subs.opml":                "lektor-fetch import FILE",
		"lektor-fetch subscribe":                "lektor-fetch add URL",
		"lektor-fetch unsubscribe":              "lektor-fetch rm FEED",
		"lektor-fetch read":                     "lektor-view show ENTRY, or lektor-view mark --set read ENTRY",
		"lektor-fetch delete":                   "lektor-fetch rm FEED, or lektor-view rm ENTRY",
		"lektor-fetch search":                   "lektor-view ls QUERY",
		"lektor-fetch list":                     "lektor-fetch ls, or lektor-view ls",
		"lektor-fetch fetch":                    "lektor-fetch update",
		"lektor-fetch sync":                     "lektor-share sync",
		"lektor-view https://example.org/feed":  "lektor-fetch add URL",
		"lektor-view 3":                         "lektor-view show ENTRY",
		"lektor-view cur/f/1.2.h;2,S":           "lektor-view show ENTRY",
		"lektor-view subscribe":                 "lektor-fetch add URL",
		"lektor-view unsubscribe":               "lektor-fetch rm FEED",
		"lektor-view read":                      "lektor-view show ENTRY, or lektor-view mark --set read ENTRY",
		"lektor-view delete":                    "lektor-fetch rm FEED, or lektor-view rm ENTRY",
		"lektor-view search":                    "lektor-view ls QUERY",
		"lektor-view list":                      "lektor-fetch ls, or lektor-view ls",
		"lektor-view fetch":                     "lektor-fetch update",
		"lektor-view export":                    "lektor-fetch export",
		"lektor-view star":                      "lektor-view mark --set F ENTRY",
	}
	// Commands of one program that the other does not have.
	for _, pair := range [][2]string{{"lektor-fetch", "lektor-view"}, {"lektor-view", "lektor-fetch"}} {
		own, _ := exec.Command(filepath.Join(bin, pair[0]), "__complete", "words", "").Output()
		other, _ := exec.Command(filepath.Join(bin, pair[1]), "__complete", "words", "").Output()
		for line := range strings.Lines(string(other)) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			if !strings.HasPrefix(name, "-") && !strings.Contains("\n"+string(own), "\n"+name+"\t") && want[pair[0]+" "+name] == "" {
				want[pair[0]+" "+name] = pair[1] + " " + name
			}
		}
	}
	if len(want) < 50 {
		t.Fatalf("%d words: completion lists no commands", len(want))
	}
	command := regexp.MustCompile(`lektor-\w+ \w+`)
	for line, means := range want {
		status, stderr := run(strings.Fields(line)...)
		if hint := ": hint: did you mean " + means + "? see "; status != 2 || !strings.Contains(stderr, hint) {
			t.Errorf("%s: status %d, %s; want %q", line, status, stderr, hint)
		}
		for _, c := range command.FindAllString(means, -1) {
			if status, stderr := run(append(strings.Fields(c), "--help")...); status != 0 {
				t.Errorf("%s proposes %s: status %d, %s", line, c, status, stderr)
			}
		}
	}
}
