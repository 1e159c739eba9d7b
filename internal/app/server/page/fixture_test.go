package page

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/passwords"
	"github.com/lektordir/lektor/internal/protocol/greader"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// users are the users of a fixture, with the password "right", and their lektor-dirs. The token of a user is the name.
type users map[string]string

func (u users) Login(_ context.Context, name, password, _ string, _ netip.Addr) (string, accounts.User, error) {
	if password == "often" {
		return "", accounts.User{}, &passwords.LimitedError{Wait: 1500 * time.Millisecond}
	}
	if u[name] == "" || password != "right" {
		return "", accounts.User{}, accounts.ErrDenied
	}
	return name, accounts.User{Name: name, Dir: u[name]}, nil
}

func (u users) Check(token string) (accounts.User, error) {
	if u[token] == "" {
		return accounts.User{}, accounts.ErrDenied
	}
	return accounts.User{Name: token, Dir: u[token]}, nil
}

func (u users) Logout(_ context.Context, token string) error {
	delete(u, token)
	return nil
}

// fixture is a server with a page, and a browser of ann, who has two feeds: A in the folder News, and B.
type fixture struct {
	*testdir.Dir
	t     testing.TB
	base  string // URL of the page
	user  *http.Client
	users users
	now   time.Time
	log   bytes.Buffer
	a, b  string // hashes
	seen  *http.Response
}

const feedA, feedB = "http://a.example/", "https://b.example/feed?x=1"

func newFixture(t testing.TB, change ...func(*server.Options, *Options)) *fixture {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	f := &fixture{Dir: testdir.New(t), t: t, now: time.Now()}
	f.a = f.feed(feedA, "Alpha", "etc/fetch/url="+feedA, "etc/categories=News", "etc/link=http://a.example/home")
	f.b = f.feed(feedB, "Beta", "etc/fetch/url="+feedB)
	f.users = users{"ann": f.Path}
	o, po := server.Options{BasePath: "/", Now: func() time.Time { return f.now }}, Options{Images: "ask"}
	for _, c := range change {
		c(&o, &po)
	}
	o.Page = New(po)
	s := server.New(o, f.users, cmdline.NewStreams("lektor-serve", strings.NewReader(""), io.Discard, &f.log))
	t.Cleanup(s.Close)
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	f.base = ts.URL + strings.TrimSuffix(o.BasePath, "/") + "/"
	f.user = f.browser("ann")
	return f
}

// browser returns a client with the cookie of a user, or without one for "".
func (f *fixture) browser(name string) *http.Client {
	jar, _ := cookiejar.New(nil)
	if u, err := url.Parse(f.base); err == nil && name != "" {
		jar.SetCookies(u, []*http.Cookie{{Name: cookieName, Value: name, Path: u.Path}})
	}
	return &http.Client{Jar: jar}
}

func (f *fixture) feed(id, name string, files ...string) string {
	f.t.Helper()
	hash, err := f.Feed(id, name, files...)
	if err != nil {
		f.t.Fatal(err)
	}
	return hash
}

// add makes an entry that was delivered at a second of Unix time, with flags in cur/, or in new/ if
// flags is "-". It returns the key.
func (f *fixture) add(feed string, second int64, flags string, files ...string) string {
	f.t.Helper()
	unique := testdir.Unique(second, int(second))
	where, name := "cur", unique+";2,"+flags
	if flags == "-" {
		where, name = "new", unique
	}
	if _, err := f.Entry(feed, where, name, files...); err != nil {
		f.t.Fatal(err)
	}
	return showKey(greader.IDOf(unique, lektordir.Ref{Unique: unique}.Delivered()))
}

// do sends a request and returns the page to which it leads.
func (f *fixture) do(r *http.Request) string {
	f.t.Helper()
	resp, err := f.user.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	f.seen = resp
	return string(b)
}

// get returns the page at a path, which must exist.
func (f *fixture) get(path string) string {
	f.t.Helper()
	r, err := http.NewRequest("GET", f.base+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	text := f.do(r)
	if f.seen.StatusCode != 200 {
		f.t.Errorf("%s: %s\n%s", path, f.seen.Status, text)
	}
	return text
}

// post sends a form, and returns the page to which it leads.
func (f *fixture) post(path string, fields ...string) string {
	f.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r, err := http.NewRequest("POST", f.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return f.do(r)
}

// at is where the browser is: path and query.
func (f *fixture) at() string { return strings.TrimPrefix(f.seen.Request.URL.String(), f.base) }

// flags returns the places of all entries: by the second of delivery, new or the flags.
func (f *fixture) flags() string {
	f.t.Helper()
	places, err := testdir.Places(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return "an entry is being renamed"
	}
	if err != nil {
		f.t.Error(err)
	}
	return places
}

// field returns the value of the first field of a form, or of an attribute, that a page has with a name.
func field(page, name string) string {
	for _, expr := range []string{`name="` + name + `" value="([^"]*)"`, name + `="([^"]*)"`} {
		if m := regexp.MustCompile(expr).FindStringSubmatch(page); m != nil {
			return strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(m[1])
		}
	}
	return ""
}

// titles returns the titles in a list, with a hyphen before those that are greyed.
func titles(page string) string {
	var list []string
	for _, m := range regexp.MustCompile(`<li( class="read")?><label>.*?<span[^>]*>(.*?)</span>`).FindAllStringSubmatch(page, -1) {
		title := m[2]
		if m[1] != "" {
			title = "-" + title
		}
		list = append(list, title)
	}
	return strings.Join(list, " ")
}
