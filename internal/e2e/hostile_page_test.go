package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/app/server/page"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/browser"
)

// anybody are accounts that let everybody read one lektor-dir.
type anybody struct{ dir string }

func (a anybody) Login(context.Context, string, string, string, netip.Addr) (string, accounts.User, error) {
	return "token", accounts.User{Dir: a.dir}, nil
}
func (a anybody) Check(string) (accounts.User, error)  { return accounts.User{Dir: a.dir}, nil }
func (a anybody) Logout(context.Context, string) error { return nil }

// hostilePage opens the lists, and all entries, on the page of lektor-serve in a browser: without images, nothing
// asks the canary, and nothing runs, says anything, hides a control or looks like one.
func hostilePage(t *testing.T, dir, canary string, paths []string) {
	var log strings.Builder
	s := server.New(server.Options{BasePath: "/", Page: page.New(page.Options{Images: "ask", KeepUnread: true})}, anybody{dir},
		cmdline.NewStreams("lektor-serve", strings.NewReader(""), io.Discard, &log))
	defer s.Close()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.AddCookie(&http.Cookie{Name: "lektor", Value: "token"})
		s.ServeHTTP(w, r)
	}))
	defer ts.Close()
	b := browser.Start(t)
	b.Window(1000, 900, false, true)
	var links []string
	for next := ts.URL + "/all"; next != ""; {
		b.Open(next)
		if got := b.Eval("document.title"); got != "All entries · lektor" && !strings.HasPrefix(got, "All entries (") {
			t.Fatalf("the title of a list is %q", got)
		}
		for link := range strings.FieldsSeq(b.Eval("[...document.querySelectorAll('.entries a')].map(a => a.href).join(' ')")) {
			links = append(links, link)
		}
		next = b.Eval("document.querySelector('a[rel=next]')?.href ?? ''")
	}
	if len(links) != len(paths) {
		t.Errorf("%d links for %d entries", len(links), len(paths))
	}
	for _, link := range append(links, ts.URL+"/feeds") {
		b.Open(link)
		if got := b.Eval("document.title"); !strings.HasSuffix(got, " · lektor") {
			t.Errorf("%s: the title is %.100q", link, got)
		}
		// The first control is what one clicks at its place.
		if got := b.Eval("(() => { const a = document.querySelector('header a'), r = a.getBoundingClientRect(); return document.elementFromPoint(r.x + 5, r.y + 5)?.closest('a') === a })()"); got != "true" {
			t.Errorf("%s: the navigation is covered", link)
		}
		if got := b.Eval("[...document.querySelectorAll('.content *')].filter(e => e.id || e.name || e.style.length || e.closest('form') || /^(form|input|button|script|style|iframe|object)$/i.test(e.tagName) || [...e.attributes].some(a => /^on/i.test(a.name))).map(e => e.outerHTML.slice(0, 100))"); got != "" {
			t.Errorf("%s: content has %s", link, got)
		}
	}
	if console := b.Console(); console != "" {
		t.Errorf("the browser says: %.2000s", console)
	}
	for _, url := range b.Requests() {
		if !strings.HasPrefix(url, ts.URL) && !strings.HasPrefix(url, "data:") || strings.Contains(url, canary) {
			t.Errorf("a request for %.200s", url)
		}
	}
	if warned := regexp.MustCompile(`(?m)^lektor-serve: (?:error|panic).*`).FindAllString(log.String(), -1); len(warned) > 0 {
		t.Errorf("logged: %.1000q", slices.Compact(warned))
	}
	if strings.Contains(log.String(), "hunter2") {
		t.Error("the log has a password")
	}
}
