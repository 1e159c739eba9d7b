package hub

import (
	"context"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The page in a browser, where one is installed: nothing is said on its console, and
// what strangers wrote does nothing.
func TestPageInABrowser(t *testing.T) {
	var browser string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skip("there is no Chromium")
	}
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	for _, u := range []string{`http://a.example/"><img src=x onerror="document.title='OWNED'">`, "javascript:document.title='OWNED'", `http://127.0.0.1:1/<script>document.title='OWNED'</script>`} {
		w.ping(u)
	}
	w.answer("/cb", http.NotFound)
	w.feed("/feed", "two")
	w.ping(feed)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--enable-logging=stderr", "--v=0", "--virtual-time-budget=2000", "--dump-dom", w.server.URL+"/")
	var said strings.Builder
	cmd.Stderr = &said
	page, err := cmd.Output()
	if err != nil {
		t.Skipf("%s: %v\n%s", browser, err, said.String())
	}
	if strings.Contains(said.String(), "CONSOLE") || strings.Contains(string(page), "<title>OWNED") || strings.Contains(string(page), "<img") ||
		!strings.Contains(string(page), feed) {
		t.Errorf("%s\n%s", said.String(), page)
	}
}
