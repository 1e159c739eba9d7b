package clients

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// world is a lektor-dir in a directory with other files, of which no client may read or
// change any.
func world(t *testing.T, args ...string) (c *checks, unchanged func()) {
	t.Helper()
	w := fill(t)
	outside := filepath.Dir(w.dir.Path)
	for name, text := range map[string]string{"secret": "secret of this machine\n", "entry/title": "secret title\n", "entry/id": "x\n", "entry/content": "secret of this machine\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outside, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := serveDir(t, w.dir.Path, args...)
	c = &checks{s, oracle{t, w.dir.Path, false}, t, w}
	files := func() map[string]string {
		all, err := testdir.Files(outside)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := files()
	return c, func() {
		t.Helper()
		for _, line := range changes(before, files()) {
			t.Errorf("changed: %s", line)
		}
	}
}

// nastyValues are put wherever a value may be.
var nastyValues = []string{
	"", "../../secret", "..%2f..%2fsecret", "/etc/passwd", "feed/../../secret", "feed/..", "feed/.", "feed/", "feed//", "user/-/label/../../secret", "user/-/label/", "user/-/state/com.google/",
	"user//state", "user", "splice/feed/a|feed/b", "\x00", "feed/\x00", "a\nb", "a\r\nX-Injected: yes", "\xff\xfe", "%", "%zz", "%00", "%u0041", "💣", "<script>", `"><x`, "${jndi:ldap://x}", "'; drop table x; --",
	"-1", "0", "1e9", "0x10", "18446744073709551615", "18446744073709551616", "9223372036854775808", "-9223372036854775808", "NaN", "tag:google.com,2005:reader/item/", "tag:google.com,2005:reader/item/zzzz",
	"tag:google.com,2005:reader/item/ffffffffffffffff", "tag:google.com,2005:reader/item/-0000000000000001", "tag:google.com,2005:reader/item/00000000000000000000000000001", "0000000000000000", "١٢٣",
	strings.Repeat("a", 5000), strings.Repeat("feed/", 2000), strings.Repeat("%2e", 3000), "feed/" + strings.Repeat("0", 40), "feed/" + strings.Repeat("g", 40), "feed/exec:id", "feed/file:///etc/passwd",
}

var parameters = []string{"s", "i", "a", "r", "n", "c", "ot", "nt", "it", "xt", "ts", "T", "ac", "t", "dest", "quickadd", "output", "ck", "client", "merge", "Email", "Passwd", "%zz", "", "s[]"}

// malformed is a request that no client sends, as it is on the wire.
func malformed(r *rand.Rand, auth string) string {
	pick := func(list []string) string { return list[r.IntN(len(list))] }
	value := func() string {
		if r.IntN(2) == 0 {
			return url.QueryEscape(pick(nastyValues))
		}
		v := strings.NewReplacer(" ", "+", "\n", "%0a", "\r", "%0d", "\x00", "%00").Replace(pick(nastyValues))
		return v
	}
	form := func() string {
		var parts []string
		for range r.IntN(6) {
			parts = append(parts, pick(parameters)+pick([]string{"=", "", "=="})+value())
		}
		return strings.Join(parts, pick([]string{"&", "&&", ";", "&"}))
	}
	path := pick([]string{
		"/reader/api/0/stream/items/ids", "/reader/api/0/stream/items/contents", "/reader/api/0/stream/contents/" + value(), "/reader/atom/" + value(), "/reader/api/0/edit-tag",
		"/reader/api/0/mark-all-as-read", "/reader/api/0/subscription/edit", "/reader/api/0/rename-tag", "/reader/api/0/disable-tag", "/reader/api/0/tag/list", "/reader/api/0/subscription/list",
		"/reader/api/0/" + value(), "/" + value(), "/accounts/ClientLogin", "/reader/api/0/../../../secret", "/api/greader.php/../../secret", "/%2e%2e/%2e%2e/secret", "//", "/reader/api/0//stream//items//ids", "/reader/api/0/token",
		"/reader/api/0/subscription/import", "/reader/api/0/subscription/export", "/reader/api/0/unread-count", "/reader/api/0/user-info", "*", "", "reader", "http://elsewhere.example/reader/api/0/token",
	})
	path = strings.Map(func(c rune) rune { // a blank would end the target
		if c <= ' ' {
			return 'x'
		}
		return c
	}, path)
	body := pick([]string{form(), form(), form(), `{"s":"x"}`, "<opml", "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><opml><body>&e;</body></opml>", strings.Repeat("i=1&", 4000), "\x00\x01\x02", ""})
	header := "Authorization: GoogleLogin auth=" + auth
	if r.IntN(8) == 0 {
		header = pick([]string{"Authorization: GoogleLogin", "Authorization: Basic " + auth, "Authorization: GoogleLogin auth=" + auth + "\r\nAuthorization: x", "Authorization:" + strings.Repeat(" x", 500), "X: y"})
	}
	kind := pick([]string{"application/x-www-form-urlencoded", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "multipart/form-data", "application/json", "text/xml", "\x7f", ""})
	length := fmt.Sprintf("Content-Length: %d", len(body))
	switch r.IntN(12) {
	case 0:
		length = "Transfer-Encoding: chunked"
		body = pick([]string{"zz\r\n" + body, "5\r\nabc", "0\r\n\r\n", "ffffffffffffffff\r\n"})
	case 1:
		length = "Content-Length: -1"
	case 2:
		length = "Content-Length: 5\r\nTransfer-Encoding: chunked"
	}
	return fmt.Sprintf("%s %s?%s %s\r\nHost: localhost\r\n%s\r\nContent-Type: %s\r\n%s\r\nConnection: close\r\n\r\n%s",
		pick([]string{"GET", "POST", "POST", "POST", "HEAD", "PUT", "OPTIONS", "G T", "CONNECT", "POST"}), path, form(), pick([]string{"HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/9", ""}), header, kind, length, body)
}

// exchange sends bytes and returns all that is answered.
func (s *service) exchange(wire string) string {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, wire) // it may be refused before it is read
	_ = conn.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(conn)
	return string(b)
}

// TestHostileRequests: no request that is malformed is answered with an error of the server,
// reads a file outside of the lektor-dir, or changes anything.
func TestHostileRequests(t *testing.T) {
	t.Parallel()
	c, unchanged := world(t)
	r := rand.New(rand.NewPCG(1, 27))
	statuses := map[string]int{}
	for range 600 {
		wire := malformed(r, c.auth)
		got := c.exchange(wire)
		status, _, _ := strings.Cut(got, "\r\n")
		status = strings.TrimPrefix(strings.TrimPrefix(status, "HTTP/1.1 "), "HTTP/1.0 ")
		statuses[status]++
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if strings.HasPrefix(status, "5") && !strings.HasPrefix(status, "501") && !strings.HasPrefix(status, "505") || strings.Contains(body, "secret of") || strings.Contains(body, "root:") || strings.Contains(head, "X-Injected: yes") {
			t.Errorf("%.2000q\nis answered with\n%.1000q", wire, got)
		}
	}
	t.Logf("%v", statuses)
	unchanged()
	if a := c.get(api + "user-info"); a.status != http.StatusOK {
		t.Errorf("%s", a)
	}
	// Marks whose ids are paths and whose tags mean nothing.
	for _, v := range nastyValues {
		for _, f := range []string{form("i", v, "a", state+"read"), form("i", long(1), "a", v, "r", v), form("s", v, "dest", "user/-/label/x", "ac", "edit", "t", "x", "a", v)} {
			for _, path := range []string{edit, api + "subscription/edit", api + "rename-tag", api + "disable-tag", contents} {
				if a := c.post(path, f); strings.Contains(a.body, "secret") {
					t.Errorf("%s", a)
				}
			}
		}
	}
	// One of them is a label, which became a folder.
	if got := c.text("etc/view/labels"); got != "\tx" {
		t.Errorf("the labels are %q", got)
	}
	if err := os.Remove(filepath.Join(c.dir(), "etc/view/labels")); err != nil {
		t.Error(err)
	}
	unchanged()
}

// TestHostileNames: titles and folders of clients stay one line in their file, and within the feed.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	c, _ := world(t)
	f := c.feed(alpha)
	before := c.snapshot()
	outside := filepath.Dir(c.dir())
	others, err := testdir.Files(filepath.Join(outside, "entry"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(slices.Clone(nastyValues), "a\tb", "\u202eevil", "\x1b[31mred", "a/../../../b", "/", "..", ".", " ") {
		for _, form := range []string{form("ac", "edit", "s", "feed/"+f.hash, "t", v), form("ac", "edit", "s", "feed/"+f.hash, "a", "user/-/label/"+v)} {
			c.post(api+"subscription/edit", form)
		}
		c.post(api+"rename-tag", "s=user/-/label/News&dest="+url.QueryEscape("user/-/label/"+v))
		c.post(api+"rename-tag", "dest=user/-/label/News&s="+url.QueryEscape("user/-/label/"+v))
		c.post(edit, form("a", "user/-/label/"+v))
		c.post(edit, form("a", "user/-/label/"+v, "i", long(1)))
		for line := range strings.Lines(c.text("etc/view/labels")) {
			if strings.Count(line, "\t") != 1 || strings.ContainsAny(line, "\x00\r") {
				t.Errorf("with %q, a label is %q", v, line)
			}
		}
		for name, most := range map[string]int{"etc/view/alias": 1, "etc/categories": 300} {
			b, err := os.ReadFile(filepath.Join(c.dir(), "src", f.hash, name))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if strings.Count(string(b), "\n") > most || bytes.ContainsAny(b, "\x00\r") {
				t.Errorf("with %q, %s has %q", v, name, b)
			}
		}
	}
	c.untouched(before, "/etc/categories", "/etc/view/alias")
	if after, err := testdir.Files(filepath.Join(outside, "entry")); err != nil || !maps.Equal(others, after) {
		t.Errorf("changed outside: %v, %v", after, err)
	}
	c.run("", "lektor-fetch", "check")
	// Lists are still read by strict clients.
	c.sub(t).subscribed()
	c.sub(t).tagsOnly()
}

// tagsOnly reads tag/list by its types.
func (c *checks) tagsOnly() {
	c.t.Helper()
	var got struct {
		Tags []struct {
			ID   string
			Type *string
		}
	}
	decode(c.t, c.get(api+"tag/list?output=json"), &got)
}

// TestGuessing: tokens that are guessed are refused, as are passwords after a while; a client
// with a token goes on.
func TestGuessing(t *testing.T) {
	t.Parallel()
	c, unchanged := world(t)
	for n := range 400 {
		guess := c.auth
		switch k := n % len(c.auth); n % 7 {
		case 0:
			guess = c.auth[:k]
		case 1:
			guess = c.auth[:k] + string(c.auth[k]^1) + c.auth[k+1:]
		case 2:
			guess = c.auth + fmt.Sprint(n)
		case 3:
			if guess = strings.ToUpper(c.auth); guess == c.auth {
				guess = strings.ToLower(c.auth)
			}
		case 4:
			guess = user + "/" + c.auth
		case 5:
			guess = strings.Repeat("a", n)
		case 6:
			guess = "../" + c.auth[:k]
		}
		if guess == c.auth {
			continue
		}
		a := c.do("GET", idsPath+readingList, "", "Authorization: GoogleLogin auth="+guess)
		b := c.do("POST", contents, form("i", "1", "T", guess))
		if a.status != http.StatusUnauthorized || b.status != http.StatusUnauthorized {
			t.Errorf("%q: %s\n%s", guess, a, b)
		}
	}
	limited := false
	for n := range 60 {
		began := time.Now()
		a := c.do("POST", "/accounts/ClientLogin", form("Email", user, "Passwd", fmt.Sprint("guess", n)))
		if a.status < 400 || a.status >= 500 || strings.Contains(a.body, "Auth=") {
			t.Fatalf("%s", a)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Fatalf("an answer took %s", took)
		}
		if limited = a.status == http.StatusTooManyRequests || a.header.Get("Retry-After") != ""; limited {
			break
		}
	}
	if !limited {
		t.Error("60 wrong passwords were not limited")
	}
	if a := c.do("POST", "/accounts/ClientLogin", form("Email", user, "Passwd", password)); strings.Contains(a.body, "Auth=") {
		t.Errorf("while it is limited: %s", a)
	}
	if a := c.get(api + "user-info"); a.status != http.StatusOK {
		t.Errorf("%s", a)
	}
	unchanged()
	c.secrets()
}

// secrets: the state is for its owner alone, and has neither tokens nor passwords.
func (c *checks) secrets() {
	err := filepath.WalkDir(c.state, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			c.t.Errorf("%s has the mode %v", path, info.Mode())
		}
		if e.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(c.auth)) || bytes.Contains(b, []byte(password)) {
			c.t.Errorf("%s has a token or a password: %s", path, b)
		}
		return err
	})
	if err != nil {
		c.t.Error(err)
	}
}

// TestTokens: a token outlives a kill of the server, and ends at once when it is revoked or
// the password changes.
func TestTokens(t *testing.T) {
	t.Parallel()
	c, _ := world(t)
	works := func(auth string) bool {
		t.Helper()
		a := c.do("GET", api+"user-info", "", "Authorization: GoogleLogin auth="+auth)
		if a.status != http.StatusOK && a.status != http.StatusUnauthorized {
			t.Errorf("%s", a)
		}
		return a.status == http.StatusOK
	}
	second := c.login(user, password)
	c.kill()
	c.start()
	if !works(c.auth) || !works(second) {
		t.Fatal("a token did not outlive a kill")
	}
	ids := strings.Fields(c.run("", "lektor-serve", "tokens", "--state", c.state, "-o", "id"))
	if len(ids) != 2 {
		t.Fatalf("tokens: %q", ids)
	}
	c.run("", "lektor-serve", "tokens", "--state", c.state, "revoke", ids[0])
	if works(c.auth) == works(second) {
		t.Errorf("one of two is revoked, and they work: %v, %v", works(c.auth), works(second))
	}
	c.addUser(user, "another password", c.dir())
	if works(c.auth) || works(second) {
		t.Error("a token works after the password was changed")
	}
	third := c.login(user, "another password")
	c.run("", "lektor-serve", "passwd", "--state", c.state, "--remove", user)
	if works(third) {
		t.Error("a token of a user who was removed works")
	}
}

// TestSlowClients: clients that send or read a byte now and then do not keep others waiting.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	c, unchanged := world(t)
	at := strings.TrimPrefix(c.url, "http://")
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	for n := range 120 {
		conn, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		switch n % 4 {
		case 0:
			_, err = io.WriteString(conn, "POST /reader/api/0/edit-tag HTTP/1.1\r\nHost: x\r\n"+c.header()+"\r\nContent-Length: 1000000\r\n\r\ni=")
		case 1:
			_, err = io.WriteString(conn, "GET /reader/api/0/stream/contents?n=1000 HTTP/1.1\r\nHost: x\r\n"+c.header()+"\r\n")
		case 2:
			_, err = io.WriteString(conn, strings.Repeat("GET /reader/api/0/stream/contents?n=1000 HTTP/1.1\r\nHost: x\r\n"+c.header()+"\r\n\r\n", 50)) // and reads nothing
		case 3:
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		began := time.Now()
		if c.whole(readingList+"&n=1000", c.items()); time.Since(began) > 5*time.Second {
			t.Errorf("an answer took %s", time.Since(began))
		}
	}
	unchanged()
}

// TestPrivateHosts: without --allow, a client cannot make a fetcher ask a private network, by
// an address or by a name.
func TestPrivateHosts(t *testing.T) {
	t.Parallel()
	c, _ := world(t)
	origin, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer origin.Close()
	origin.Handle("/", server.Doc("", server.RSS("Origin", 0, 3)))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(origin.URL(""), "http://"))
	names := []string{"localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0", "[::ffff:127.0.0.1]", "LOCALHOST", "localhost.", "x.localhost", "127.0.0.1.", "0177.0.0.1", "①②⑦.0.0.1"}
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	for _, name := range names {
		u := "http://" + name + ":" + port + "/"
		c.post(api+"subscription/edit", form("ac", "subscribe", "s", "feed/"+u))
		c.post(api+"subscription/quickadd", form("quickadd", u))
	}
	var added []string
	for _, f := range c.feeds() {
		if strings.Contains(f.url, port) {
			added = append(added, f.url)
		}
	}
	for _, u := range added {
		cmd := c.command("lektor-fetch", "update", "--gap", "1ms", u)
		out, _ := cmd.CombinedOutput()
		t.Logf("%s was added; %s", u, out)
	}
	if n := len(origin.Requests("")); n > 0 {
		t.Errorf("%d requests; added were %q", n, added)
	}
}

// TestClientsBesideFetcher: fifty clients mark entries while a fetcher delivers. Every mark
// that was answered with OK is there, every entry is there once and whole, and no id changes.
func TestClientsBesideFetcher(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	const feeds, each, people = 10, 40, 50
	for n := range feeds {
		id := fmt.Sprintf("http://f%d.example/", n)
		w.feed(id, fmt.Sprint("Feed ", n), "etc/fetch/url="+id)
		for range each {
			w.entry(id, "new", "")
		}
	}
	s := serveDir(t, w.dir.Path)
	c := &checks{s, oracle{t, w.dir.Path, false}, t, w}
	ids := map[string]int64{} // by title
	list := c.items()
	for n, id := range c.idsOf(list...) {
		ids[list[n].title] = id
	}
	over := make(chan struct{})
	var fetcher sync.WaitGroup
	delivered := 0
	fetcher.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			document := server.RSS(fmt.Sprint("Delivered ", delivered%7), delivered, 5)
			cmd := c.command("lektor-fetch", "deliver", "--id", fmt.Sprintf("http://f%d.example/", delivered%feeds))
			cmd.Stdin = strings.NewReader(document)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("lektor-fetch deliver: %v\n%s", err, out)
				return
			}
			delivered++
		}
	})
	var clients sync.WaitGroup
	for p := range people {
		clients.Go(func() {
			for round := range 4 {
				mine := ids[list[(p*4+round)*len(list)/(people*4)].title]
				for _, step := range []struct{ method, target, form string }{
					{"GET", api + "subscription/list?output=json", ""}, {"GET", idsPath + readingList + unreadOnly + "&n=1000", ""}, {"POST", contents, form("i", short(mine))},
					{"POST", edit, form("i", long(mine), "a", state+"read")}, {"POST", edit, form("i", short(mine), "a", state+"starred")}, {"GET", api + "unread-count?output=json", ""},
				} {
					a, err := c.try(step.method, step.target, step.form, c.header())
					if err != nil || a.status != http.StatusOK || step.target == edit && a.body != "OK" {
						t.Errorf("%s %v", a, err)
					}
				}
			}
		})
	}
	clients.Wait()
	close(over)
	fetcher.Wait()
	if delivered == 0 {
		t.Error("nothing was delivered")
	}
	after := c.items()
	marked, there := 0, map[string]int{}
	for _, i := range after {
		if there[i.title]++; i.read && i.starred() {
			marked++
		}
	}
	if want := people * 4; marked != want {
		t.Errorf("%d entries are read and starred, want %d", marked, want)
	}
	for _, i := range list {
		if there[i.title] != 1 {
			t.Errorf("%s is there %d times", i.title, there[i.title])
		}
	}
	for n, id := range c.idsOf(after...) {
		if old, ok := ids[after[n].title]; ok && old != id {
			t.Errorf("%s had the id %d and has %d", after[n].title, old, id)
		}
	}
	c.run("", "lektor-fetch", "check")
	t.Logf("%d deliveries", delivered)
}

// TestKilledMarks: when the server is killed while it marks, each entry is there once, in the
// place where it was or where it was to be, and the next server goes on.
func TestKilledMarks(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	id, hash := "http://k.example/", testdir.Hash("http://k.example/")
	w.feed(id, "Killed", "etc/fetch/url="+id)
	for range 1000 {
		w.entry(id, "new", "")
	}
	s := serveDir(t, w.dir.Path)
	c := &checks{s, oracle{t, w.dir.Path, false}, t, w}
	all := c.items()
	first := c.idsOf(all...)
	for round := range 4 {
		tag, sign := state+"read", []string{"a", "r"}[round%2]
		f := url.Values{sign: {tag}, "i": {}}
		for _, id := range first {
			f.Add("i", short(id))
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = c.try("POST", edit, f.Encode(), c.header()) // the kill ends it
		}()
		want := round%2 == 0
		// The entries are listed by their names alone, which is as fast as the marks are.
		for late := deadline(); !late(); {
			names := append(c.names("new/"+hash), c.names("cur/"+hash)...)
			if n := len(slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, ";2,S") != want })); n > 50 {
				break
			}
		}
		c.kill()
		<-ended
		if now := c.items(); len(now) != len(all) {
			t.Fatalf("round %d: %d entries, want %d", round, len(now), len(all))
		}
		c.start()
		if ids := c.idsOf(all...); !slices.Equal(ids, first) {
			t.Errorf("round %d: ids have changed", round)
		}
		c.edit(edit, f.Encode())
		for _, i := range c.items() {
			if i.read != want {
				t.Fatalf("round %d: %s is read: %v", round, i.title, i.read)
			}
		}
	}
	c.run("", "lektor-fetch", "check")
	// Whatever the kills left of the journals, the last mark is undone as one.
	c.run("", "lektor-view", "undo")
	for _, i := range c.items() {
		if !i.read && i.flags != "" {
			t.Fatalf("after undo %s has %q", i.title, i.flags)
		}
	}
}

// TestVerboseLog: the log of all requests has no password, token or user, wherever a client
// puts them.
func TestVerboseLog(t *testing.T) {
	t.Parallel()
	c, _ := world(t, "--verbose")
	c.do("GET", "/accounts/ClientLogin?"+form("Email", user, "Passwd", password), "")
	c.do("POST", "/accounts/ClientLogin?"+form("Email", user, "Passwd", "wrong-secret"), "")
	c.do("POST", contents+"&T="+c.auth, form("i", "1"))
	c.do("GET", idsPath+readingList+"&T="+c.auth+"&auth="+c.auth, "", "Cookie: SID="+c.auth)
	c.do("GET", "/reader/api/0/stream/items/ids/"+c.auth, "", c.header())
	c.do("GET", "/"+url.PathEscape(password)+"/"+user, "")
	c.get(api + "stream/contents/feed/http://ann:s3cret@a.example/?n=1")
	c.post(api+"subscription/quickadd?quickadd="+url.QueryEscape("http://ann:s3cret@a.example/"), "")
	for _, secret := range []string{"wrong-secret", "s3cret", url.QueryEscape(password), url.PathEscape(password)} {
		if strings.Contains(c.log.String(), secret) {
			t.Errorf("%q is in the log:\n%s", secret, c.log)
		}
	}
	if !strings.Contains(c.log.String(), "ClientLogin") {
		t.Errorf("no request is in the log:\n%s", c.log)
	}
}

// TestSameEntries: clients and lektor-view that mark the same entries at the same moment do
// not undo each other's flags.
func TestSameEntries(t *testing.T) {
	t.Parallel()
	w := newWriter(t)
	id := "http://same.example/"
	w.feed(id, "Same", "etc/fetch/url="+id)
	for range 60 {
		w.entry(id, "new", "")
	}
	s := serveDir(t, w.dir.Path)
	c := &checks{s, oracle{t, w.dir.Path, false}, t, w}
	all := c.items()
	marks := map[string]url.Values{}
	for _, tag := range []string{state + "read", state + "starred", "user/-/label/flag-a", "user/-/label/flag-b"} {
		marks[tag] = url.Values{"a": {tag}}
		for _, id := range c.idsOf(all...) {
			marks[tag].Add("i", long(id))
		}
	}
	paths := ""
	for _, i := range all {
		paths += i.path + "\n"
	}
	var wait sync.WaitGroup
	for tag, f := range marks {
		wait.Go(func() {
			if a, err := c.try("POST", edit, f.Encode(), c.header()); err != nil || a.body != "OK" {
				t.Errorf("%s: %s %v", tag, a, err)
			}
		})
	}
	wait.Go(func() {
		cmd := c.command("lektor-view", "mark", "--set", "c", "-")
		cmd.Stdin = strings.NewReader(paths)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("lektor-view mark: %v\n%s", err, out)
		}
	})
	wait.Wait()
	for _, i := range c.items() {
		if i.flags != "FSabc" {
			t.Errorf("%s has the flags %q", i.title, i.flags)
		}
	}
	if n := len(c.items()); n != len(all) {
		t.Errorf("%d entries, want %d", n, len(all))
	}
}
