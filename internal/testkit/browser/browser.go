// Package browser opens pages for tests in a headless browser.
package browser

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Open opens a URL in Chromium, in a window of the given width in pixels. It returns the
// page as it is after its scripts, and the messages of the console, one per line. If no
// browser starts, the test is skipped.
func Open(t *testing.T, url string, width int) (page, console string) {
	t.Helper()
	browser := find(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu",
		"--user-data-dir="+t.TempDir(),
		fmt.Sprintf("--window-size=%d,900", width), "--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000",
		"--dump-dom", url)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("%s: %v\n%s", browser, err, said.String())
	}
	for line := range strings.Lines(said.String()) {
		if strings.Contains(line, "CONSOLE") {
			console += line
		}
	}
	return string(out), console
}

// find returns the path of Chromium. If there is none, it skips the test.
func find(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium")
	return ""
}
