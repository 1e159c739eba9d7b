package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzRequest sends any request of a user who is logged in: it is answered or refused, never an
// error of the server, and changes nothing outside the lektor-dir.
func FuzzRequest(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"GET", "/reader/api/0/stream/items/ids?s=feed/http://a.example/&n=2&c=5&r=o&output=xml", ""},
		{"GET", "//reader/atom/feed%2Fhttp%3A%2F%2Fa.example%2F?n=20", ""},
		{"POST", "/api/greader.php/reader/api/0/edit-tag", "i=1&i=tag:google.com,2005:reader/item/../x&a=user/-/state/com.google/read&r=user/-/label/flag-x"},
		{"POST", "/reader/api/0/mark-all-as-read", "s=user/-/label/News&ts=5"},
		{"POST", "/reader/api/0/subscription/edit", "ac=subscribe&s=feed/http://c.example/&t=x&a=user/-/label/../../x"},
		{"POST", "/reader/api/0/subscription/edit", "ac=edit&s=feed/http://a.example/&a=user/-/label/a/b&r=user/-/label/News"},
		{"POST", "/reader/api/0/subscription/quickadd?quickadd=exec:date", ""},
		{"POST", "/reader/api/0/rename-tag", "s=user/-/label/News&dest=user/-/label/x%0Ay"},
		{"POST", "/reader/api/0/subscription/import", "<opml><body><outline xmlUrl='http://c.example/'/></body></opml>"},
		{"POST", "/accounts/ClientLogin", "Email=ann&Passwd=%zz;"},
	} {
		f.Add(seed.method, seed.target, seed.body)
	}
	fixture := newFixture(f)
	fixture.add(feedA, 100, "-")
	outside := filepath.Dir(fixture.Path)
	before, err := os.ReadDir(outside)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, target, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.Trim(method, "GETPOSHADLIN") != "" {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "http://server/", strings.NewReader(body))
		r.Method, r.URL = method, u
		r.Header.Set("Authorization", "GoogleLogin auth=good")
		if strings.HasPrefix(body, "<") {
			r.Header.Set("Content-Type", "text/xml")
		}
		w := httptest.NewRecorder()
		fixture.server.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s %q: status %d, %s", method, target, body, w.Code, &fixture.log)
		}
		if after, err := os.ReadDir(outside); err != nil || len(after) != len(before) {
			t.Errorf("%s %s %q: %d files beside the lektor-dir, want %d; %v", method, target, body, len(after), len(before), err)
		}
	})
}
