package hub

import (
	"net/http"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/browser"
)

// In a browser, if one is installed, the page prints nothing on the console, and texts of
// strangers are not executed.
func TestPageInABrowser(t *testing.T) {
	w := newWorld(t, nil)
	feed := w.feed("/feed", "one")
	w.register("/cb", feed)
	for _, u := range []string{`http://a.example/"><img src=x onerror="document.title='OWNED'">`, "javascript:document.title='OWNED'", `http://127.0.0.1:1/<script>document.title='OWNED'</script>`} {
		w.ping(u)
	}
	w.answer("/cb", http.NotFound)
	w.feed("/feed", "two")
	w.ping(feed)
	page, console := browser.Open(t, w.server.URL+"/", 1000)
	if console != "" || strings.Contains(page, "<title>OWNED") || strings.Contains(page, "<img") || !strings.Contains(page, feed) {
		t.Errorf("%s\n%s", console, page)
	}
}
