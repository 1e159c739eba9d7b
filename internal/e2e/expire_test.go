package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExpiredStaysAway: an expired entry is not delivered again by the next fetch, after a change
// of the entry, or by a recovery. Unread and flagged entries never expire.
func TestExpiredStaysAway(t *testing.T) {
	bin := build(t)
	dir := filepath.Join(t.TempDir(), "feeds")
	command := func(stdin, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+dir)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	document := func(body string) string {
		var b strings.Builder
		b.WriteString(`<rss version="2.0"><channel><title>Ours</title><link>http://x.example/</link><description>d</description>`)
		for i := range 9 {
			fmt.Fprintf(&b, `<item><title>Number %d</title><guid isPermaLink="false">%d</guid><description>%s</description></item>`, i, i, body)
		}
		return b.String() + `</channel></rss>`
	}
	deliver := func(body string) {
		t.Helper()
		command(document(body), "lektor-fetch", "deliver", "--id", "http://x.example/feed")
	}
	const stay = "Number 1\nNumber 2\nNumber 7\n"
	deliver("one")
	command(command("", "lektor-view", "ls", "-o", "path", "not:/[12]/"), "lektor-view", "mark", "-s", "S", "-")
	command(command("", "lektor-view", "ls", "-a", "-o", "path", "title:7"), "lektor-view", "mark", "-s", "F", "-")
	command("", "lektor-view", "expire", "--read", "now")
	for _, body := range []string{"one", "another", "one"} {
		if got := command("", "lektor-view", "ls", "-a", "--sort", "title", "-o", "title"); got != stay {
			t.Errorf("before %s: there is %s", body, got)
		}
		command("", "lektor-fetch", "check", "--repair")
		deliver(body)
	}
	if got := command("", "lektor-view", "ls", "-a", "--sort", "title", "-o", "title"); got != stay {
		t.Errorf("in the end: there is %s", got)
	}
}
