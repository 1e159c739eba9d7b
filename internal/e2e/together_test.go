package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/server"
)

// TestErrorsNameTheCommand: if lektor-view starts another program, errors, hints and help have
// the name of the command that the user typed.
func TestErrorsNameTheCommand(t *testing.T) {
	bin := build(t)
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"lektor-view", "--dir", t.TempDir(), "html", "/dev/null/site"}, 1, "lektor-view: "},
		{[]string{"lektor-view", "html"}, 2, "lektor-view: DIR is missing\nlektor-view: hint: see lektor-view html --help\n"},
		{[]string{"lektor-view", "mbox", "--nothing"}, 2, "lektor-view: "},
		{[]string{"lektor-view", "html", "--help"}, 0, "lektor-view html - "},
		{[]string{"lektor-pages", "html"}, 2, "lektor-pages: DIR is missing\nlektor-pages: hint: see lektor-pages html --help\n"},
	} {
		cmd := exec.Command(filepath.Join(bin, c.args[0]), c.args[1:]...)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.status || !strings.Contains(string(out), c.want) || c.args[0] == "lektor-view" && strings.Contains(string(out), "lektor-pages: ") {
			t.Errorf("%q: %v\n%s", c.args, cmd.ProcessState, out)
		}
	}
}

// TestAllFourTogether: the sample fetcher, the sample viewer, lektor-fetch and lektor-view work
// on one directory. Each sees the changes by the others, and no entry is shown twice or lost.
func TestAllFourTogether(t *testing.T) {
	bin := build(t)
	dir := filepath.Join(t.TempDir(), "the feeds")
	command := func(stdin, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+dir)
		cmd.Stdin = strings.NewReader(stdin)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, stderr.String())
		}
		return string(out)
	}
	list := func(args ...string) []string {
		t.Helper()
		out := strings.TrimSuffix(command("", "lektor-view", append([]string{"ls", "-o", "path"}, args...)...), "\n")
		if out == "" {
			return nil
		}
		paths := strings.Split(out, "\n")
		slices.Sort(paths)
		if once := slices.Compact(slices.Clone(paths)); len(once) != len(paths) {
			t.Errorf("listed twice: %q", paths)
		}
		return paths
	}

	feeds, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer feeds.Close()
	feeds.Handle("/", server.Doc("", `<rss version="2.0"><channel><title>Ours</title><link>http://x.example/</link><description>d</description>
<item><title>First</title><guid isPermaLink="false">1</guid><description>one</description></item>
<item><title>Second</title><guid isPermaLink="false">2</guid><description>two</description></item></channel></rss>`))

	run(t, "sh", dir, "lektor-clock", "-1")
	command("", "lektor-fetch", "add", feeds.URL("/"))
	if paths := list(); len(paths) != 3 {
		t.Fatalf("unread after two fetchers: %q", paths)
	}

	// lektor-view takes an entry of the sample fetcher, and the sample viewer takes the others.
	path, _, _ := strings.Cut(command("", "lektor-view", "ls", "-o", "path", "First"), "\n")
	command(path+"\n", "lektor-view", "mark", "--set", "S", "-")
	digest := run(t, "sh", dir, "lektor-digest")
	for text, want := range map[string]bool{"In feed Timekeeper:": true, "Current Time\n": true, "In feed Ours:": true, "Second\n": true, "First\n": false} {
		if strings.Contains(digest, text) != want {
			t.Errorf("the digest, with %q: %v\n%s", text, !want, digest)
		}
	}

	if paths := list(); len(paths) != 0 {
		t.Errorf("still unread: %q", paths)
	}
	all := list("-a")
	if len(all) != 3 {
		t.Errorf("all: %q", all)
	}
	for _, p := range all {
		if !strings.Contains(p, "cur/") || !strings.HasSuffix(p, ";2,S") {
			t.Errorf("not seen: %s", p)
		}
	}

	// Further fetches deliver no entry again.
	command("", "lektor-fetch", "update", "-a")
	run(t, "sh", dir, "lektor-clock", "-1")
	if paths := list(); len(paths) != 1 {
		t.Errorf("unread after two more fetches: %q", paths)
	}
	command("", "lektor-fetch", "check")
}
