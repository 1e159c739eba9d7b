// Package e2e tests several programs together, and the samples of scripts/, as users run them.
package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// shells runs a test under every shell that is installed here.
func shells(t *testing.T, f func(t *testing.T, sh string)) {
	for _, sh := range []string{"sh", "dash", "bash"} {
		t.Run(sh, func(t *testing.T) {
			if _, err := exec.LookPath(sh); err != nil {
				t.Skip("not installed")
			}
			f(t, sh)
		})
	}
}

// run runs a script on dir and returns what it printed on stdout.
func run(t *testing.T, sh, dir, script string, args ...string) string {
	t.Helper()
	cmd := exec.Command(sh, append([]string{filepath.Join(samples, script)}, args...)...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Errorf("got %s: %v\n%s; want err == nil and stderr.Len() == 0", script, err, stderr.String())
	}
	return string(out)
}

func glob(t *testing.T, elem ...string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// entry makes an entry without a program of lektor.
func entry(t *testing.T, dir, title, content string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"title": title, "id": "urn:x\n", "content": content} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClock(t *testing.T) {
	shells(t, func(t *testing.T, sh string) {
		dir := filepath.Join(t.TempDir(), "a directory", "feeds")
		run(t, sh, dir, "lektor-clock", "-1")
		run(t, sh, dir, "lektor-clock", "-1")
		entries := glob(t, dir, "new", "*", "*")
		if len(entries) != 2 || len(glob(t, dir, "tmp", "*", "*")) != 0 {
			t.Fatalf("entries: %q", entries)
		}
		feed := filepath.Base(filepath.Dir(entries[0]))
		name := regexp.MustCompile(`^[0-9]+\.[^/:;]+\.[^/:;]+$`)
		for _, e := range entries {
			if !name.MatchString(filepath.Base(e)) {
				t.Errorf("the name %s", e)
			}
			if got := read(t, e, "title"); got != "Current Time\n" {
				t.Errorf("title %q", got)
			}
			if got := read(t, e, "feed", "name"); got != "Timekeeper\n" {
				t.Errorf("the feed's name by the link: %q", got)
			}
			if !strings.HasPrefix(read(t, e, "content"), strings.Split(filepath.Base(e), ".")[0]) {
				t.Errorf("the content is not the time")
			}
		}
		if !regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(feed) {
			t.Errorf("feed %s", feed)
		}
		if read(t, entries[0], "id") == read(t, entries[1], "id") {
			t.Error("two entries with one id")
		}
	})
}

func TestClockAtOnce(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { run(t, "sh", dir, "lektor-clock", "-1") })
	}
	wg.Wait()
	if n := len(glob(t, dir, "new", "*", "*", "content")); n != 8 {
		t.Errorf("%d entries of 8", n)
	}
}

func TestDigest(t *testing.T) {
	shells(t, func(t *testing.T, sh string) {
		dir := t.TempDir()
		entry(t, filepath.Join(dir, "new", "a feed", "1.x y.h"), "Title\x1b[2J\u009b\u202e\u2066é\n", "1\n2\n3\n4\n5\n")
		entry(t, filepath.Join(dir, "new", "-n", "2.x.h"), "No newline", "at the end")
		entry(t, filepath.Join(dir, "new", "-n", "*"), "A star", "")
		os.MkdirAll(filepath.Join(dir, "new", "empty"), 0o700)
		os.MkdirAll(filepath.Join(dir, "src", "a feed"), 0o700)
		os.WriteFile(filepath.Join(dir, "src", "a feed", "name"), []byte("The Feed\n"), 0o600)

		got := run(t, sh, dir, "lektor-digest")
		want := "In feed -n:\n\nA star\n\nNo newline\nat the end\n\nIn feed The Feed:\n\nTitle[2Jé\n1\n2\n3\n4\n\n"
		if got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
		if left := glob(t, dir, "new", "*", "*"); len(left) != 0 {
			t.Errorf("still new: %q", left)
		}
		if n := len(glob(t, dir, "cur", "*", "*;2,S", "title")); n != 3 {
			t.Errorf("%d entries in cur", n)
		}
		if got := run(t, sh, dir, "lektor-digest"); got != "" {
			t.Errorf("again: %q", got)
		}
	})
}

// TestDigestOfNothing: in a directory without entries, the digest is empty.
func TestDigestOfNothing(t *testing.T) {
	if got := run(t, "sh", t.TempDir(), "lektor-digest"); got != "" {
		t.Errorf("got %q", got)
	}
}

// TestDigestAtOnce: concurrent viewers move every entry once, without messages.
func TestDigestAtOnce(t *testing.T) {
	dir := t.TempDir()
	for _, feed := range []string{"a", "b"} {
		for _, name := range strings.Fields("1 2 3 4 5 6 7 8 9") {
			entry(t, filepath.Join(dir, "new", feed, name), "T\n", "c\n")
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { run(t, "sh", dir, "lektor-digest") })
	}
	wg.Wait()
	if n := len(glob(t, dir, "cur", "*", "*;2,S", "title")); n != 18 {
		t.Errorf("%d entries of 18 in cur", n)
	}
	if nested := glob(t, dir, "cur", "*", "*", "*", "title"); len(nested) != 0 {
		t.Errorf("moved into one another: %q", nested)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"lektor-clock", "-x"}, {"lektor-clock", "-i", "soon"}, {"lektor-clock", "x"}, {"lektor-digest", "x"}} {
		cmd := exec.Command("sh", args...)
		cmd.Env = append(os.Environ(), "LEKTORDIR="+filepath.Join(t.TempDir(), "none"))
		cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != 2 {
			t.Errorf("%q: status %d", args, got)
		}
	}
}
