package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/passwords"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// now is the time of all tests.
var now = time.Date(2026, 3, 15, 23, 0, 0, 0, time.UTC)

// oneUser are accounts with one user, whose tokens are "good" and "second", and one more.
type oneUser struct{ dir, other string }

func (o oneUser) Login(_ context.Context, name, password, client string, _ netip.Addr) (string, accounts.User, error) {
	switch {
	case password == "often":
		return "", accounts.User{}, &passwords.LimitedError{Wait: 1500 * time.Millisecond}
	case name == "ann" && password == "p+w &ä":
		return "good", accounts.User{Name: name, Dir: o.dir}, nil
	}
	return "", accounts.User{}, accounts.ErrDenied
}

func (o oneUser) Logout(context.Context, string) error { return nil }

func (o oneUser) Check(token string) (accounts.User, error) {
	switch token {
	case "good", "second":
		return accounts.User{Name: "ann", Dir: o.dir}, nil
	case "other":
		return accounts.User{Name: "bob", Dir: o.other}, nil
	}
	return accounts.User{}, accounts.ErrDenied
}

// fixture is a server with a lektor-dir of two feeds, A in the folder News and B in News and a/b.
type fixture struct {
	*testdir.Dir
	t      testing.TB
	server *Server
	log    bytes.Buffer
	a, b   string // hashes
}

const (
	feedA = "http://a.example/"
	feedB = "https://b.example/feed?x=1"
)

func newFixture(t testing.TB, change ...func(*Options)) *fixture {
	t.Helper()
	f := &fixture{Dir: testdir.New(t), t: t}
	f.a = f.feed(feedA, "Alpha", "etc/fetch/url="+feedA, "etc/categories=News", "etc/link=http://a.example/home")
	f.b = f.feed(feedB, "Beta", "etc/fetch/url="+feedB, "etc/categories=News\na/b")
	o := Options{BasePath: "/", AllCategories: true, Now: func() time.Time { return now }}
	for _, c := range change {
		c(&o)
	}
	s := cmdline.NewStreams("lektor-serve", strings.NewReader(""), io.Discard, &f.log)
	f.server = New(o, oneUser{f.Path, f.Path + "-other"}, s)
	t.Cleanup(f.server.Close)
	return f
}

func (f *fixture) feed(id, name string, files ...string) string {
	f.t.Helper()
	hash, err := f.Feed(id, name, files...)
	if err != nil {
		f.t.Fatal(err)
	}
	return hash
}

// idOf returns the id of an entry by its unique name.
func idOf(unique string) greader.ID {
	return greader.IDOf(unique, lektordir.Ref{Unique: unique}.Delivered())
}

// add makes an entry that was delivered at a second of Unix time, with flags in cur/, or in new/ if
// flags is "-". It returns the id.
func (f *fixture) add(feed string, second int64, flags string, files ...string) greader.ID {
	f.t.Helper()
	unique := testdir.Unique(second, int(second))
	where, name := "cur", unique+";2,"+flags
	if flags == "-" {
		where, name = "new", unique
	}
	if _, err := f.Entry(feed, where, name, files...); err != nil {
		f.t.Fatal(err)
	}
	return idOf(unique)
}

// do makes a request with a valid token, or without one if header has Authorization.
func (f *fixture) do(method, path, body string, header ...string) *http.Response {
	f.t.Helper()
	r := httptest.NewRequest(method, "http://server"+path, strings.NewReader(body))
	r.Header.Set("Authorization", "GoogleLogin auth=good")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	f.server.ServeHTTP(w, r)
	return w.Result()
}

// text returns the body of an answer with a status.
func (f *fixture) text(r *http.Response, status int) string {
	f.t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != status {
		f.t.Errorf("status %d, want %d: %s %v", r.StatusCode, status, b, err)
	}
	return string(b)
}

const api = "/reader/api/0/"

// get returns the body of a successful GET request below api.
func (f *fixture) get(path string) string {
	f.t.Helper()
	return f.text(f.do("GET", api+path, ""), 200)
}

// post makes an edit that must succeed.
func (f *fixture) post(path string, form ...string) {
	f.t.Helper()
	if got := f.text(f.do("POST", api+path, values(form...)), 200); got != "OK" {
		f.t.Errorf("%s: %q, want OK", path, got)
	}
}

// values returns a form.
func values(pairs ...string) string {
	var list []string
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, url.QueryEscape(pairs[i])+"="+url.QueryEscape(pairs[i+1]))
	}
	return strings.Join(list, "&")
}

// multipartType is the type of the forms that multipart returns.
const multipartType = `multipart/form-data; boundary="a b"`

// multipart returns a form as Readrops sends it.
func multipart(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		fmt.Fprintf(&b, "--a b\r\nContent-Disposition: form-data; name=%q\r\nContent-Length: %d\r\n\r\n%s\r\n", pairs[i], len(pairs[i+1]), pairs[i+1])
	}
	return b.String() + "--a b--\r\n"
}

// flags returns the places of all entries: by the second of delivery, new or the flags.
func (f *fixture) flags() string {
	f.t.Helper()
	places, err := testdir.Places(f.Path)
	if err != nil {
		f.t.Error(err)
	}
	return places
}

// file returns the text of a file of a feed, "" if there is none.
func (f *fixture) file(elem ...string) string {
	b, _ := os.ReadFile(filepath.Join(append([]string{f.Path, "src"}, elem...)...))
	return string(b)
}
