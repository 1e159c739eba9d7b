package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

func load(t testing.TB, dir string) *State {
	t.Helper()
	s, err := LoadFrom(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.Schedule.Rand = func() float64 { return 0 }
	return s
}

func save(t testing.TB, s *State) {
	t.Helper()
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
}

func doc(body string, pairs ...string) *httpmsg.Response {
	h := header(pairs...)
	return &httpmsg.Response{Status: 200, Header: h, Body: []byte(body), ETag: h.Get("Etag"), LastModified: h.Get("Last-Modified"), Received: noon}
}

func same(pairs ...string) *httpmsg.Response {
	r := doc("", pairs...)
	r.Status, r.NotModified = 304, true
	return r
}

// files lists the state directory: name, content, modification time and inode.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	es, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range es {
		fi, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = fmt.Sprintf("%q, %v, %d", value(t, dir, e.Name()), fi.ModTime(), fi.Sys().(*syscall.Stat_t).Ino)
	}
	return out
}

func TestStateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc", "fetch")
	s := load(t, dir)
	if _, err := s.Request(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a request without url: %v", err)
	}
	if !s.Schedule.Due(noon) || !dueAt(dir, noon) || s.Settings.OnUpdate() != "unread" || s.Settings.Interval() != DefaultInterval {
		t.Error("an empty state is not the default")
	}
	if err := s.Change("url", "http://example.com/feed"); err != nil {
		t.Fatal(err)
	}
	s.Succeeded(noon, doc(rss, "ETag", "W/\"\xff\"", "Last-Modified", "x", "Cache-Control", "max-age=7200"),
		Hints{TTL: 90 * time.Minute, UpdateInterval: time.Hour, SkipHours: []int{3, 4}, SkipDays: []time.Weekday{time.Sunday}, Live: []time.Time{noon.Add(-time.Hour), noon.Add(48 * time.Hour)}})
	save(t, s)
	for name, want := range map[string]string{
		"url": "http://example.com/feed\n", "etag": "W/\"\xff\"\n", "modified": "x\n", "from": "http://example.com/feed\n", "status": "200\n",
		"max-age": "7200\n", "ttl": "1h30m\n", "update-interval": "1h\n", "skip-hours": "3 4\n", "skip-days": "Sunday\n", "live": "2026-03-02T11:00:00Z 2026-03-04T12:00:00Z\n",
		"checked": "", "next": "", "error": "-", "failures": "-", "gone": "-", "moved": "-", "body": doc(rss).Digest() + "\n",
	} {
		if got := value(t, dir, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	s = load(t, dir)
	if !s.Schedule.Checked().Equal(noon) || !s.Schedule.Next().Equal(noon.Add(2*time.Hour)) {
		t.Errorf("checked %v, next %v", s.Schedule.Checked(), s.Schedule.Next())
	}
	r, err := s.Request()
	if err != nil || !reflect.DeepEqual(r, &httpmsg.Request{URL: "http://example.com/feed", ETag: "W/\"\xff\"", LastModified: "x"}) {
		t.Errorf("%+v, %v", r, err)
	}
	if !s.Document.SameBody(doc(rss)) || s.Document.SameBody(doc(rss+" ")) {
		t.Error("the body is not recognised")
	}
	// A document without validators and hints removes the old ones.
	s.Succeeded(noon, doc("other"), Hints{})
	save(t, s)
	for _, name := range []string{"etag", "modified", "max-age", "ttl", "update-interval", "skip-hours", "skip-days", "live"} {
		if got := value(t, dir, name); got != "-" {
			t.Errorf("%s is still %q", name, got)
		}
	}
}

// TestStateAfterAPowerCut: a value that was not synced may be empty or NULs. Then it counts as missing, so
// that the next request has valid headers and its result replaces it.
func TestStateAfterAPowerCut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc", "fetch")
	s := load(t, dir)
	if err := s.Change("url", "http://example.com/feed"); err != nil {
		t.Fatal(err)
	}
	s.Succeeded(noon, doc(rss, "ETag", "x", "Last-Modified", "x", "Cache-Control", "max-age=7200"),
		Hints{TTL: 90 * time.Minute, UpdateInterval: time.Hour, SkipHours: []int{3, 4}, SkipDays: []time.Weekday{time.Sunday}})
	save(t, s)
	for _, name := range []string{"etag", "modified", "final", "from", "body", "status", "error", "failures", "gone", "moved", "max-age", "ttl", "update-interval", "skip-hours", "skip-days", "live"} {
		for _, left := range []string{"", "\x00\x00\x00"} {
			old := value(t, dir, name)
			write(t, dir, name, left)
			s := load(t, dir)
			r, err := s.Request()
			if err != nil || strings.ContainsRune(r.ETag+r.LastModified+r.Validated, 0) {
				t.Errorf("%s is %q: %+v, %v", name, left, r, err)
			}
			s.Schedule.Status()
			s.Schedule.Failures()
			s.NotModified(noon, doc(""))
			if w := s.Warnings(); len(w) > 0 || s.Schedule.Gone() || s.Schedule.LastError() != "" {
				t.Errorf("%s is %q: %q, %v, %q", name, left, w, s.Schedule.Gone(), s.Schedule.LastError())
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if old != "-" {
				write(t, dir, name, old)
			}
		}
	}
}

// A 304 response changes only checked and next.
func TestNotModifiedTouches(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://example.com/\n")
	write(t, dir, "mine", "kept")
	s := load(t, dir)
	s.Succeeded(noon, doc(rss, "Etag", "a", "Cache-Control", "max-age=7200"), Hints{TTL: time.Hour})
	save(t, s)
	before := files(t, dir)
	later := noon.Add(3 * time.Hour)
	s = load(t, dir)
	s.NotModified(later, same("Etag", "a", "Cache-Control", "max-age=7200"))
	save(t, s)
	after := files(t, dir)
	for _, name := range []string{"checked", "next"} {
		if before[name] == after[name] {
			t.Errorf("%s was not touched", name)
		}
		delete(before, name)
		delete(after, name)
	}
	if !reflect.DeepEqual(before, after) {
		t.Errorf("files were rewritten: %v, were %v", after, before)
	}
	if s := load(t, dir); !s.Schedule.Checked().Equal(later) || !s.Schedule.Next().Equal(later.Add(2*time.Hour)) {
		t.Errorf("checked %v, next %v", s.Schedule.Checked(), s.Schedule.Next())
	}
	// Each validator is replaced separately.
	s = load(t, dir)
	s.NotModified(later, same("Last-Modified", "m"))
	save(t, s)
	if value(t, dir, "etag") != "a\n" || value(t, dir, "modified") != "m\n" {
		t.Error("a validator was not replaced, or was lost")
	}
}

func TestDue(t *testing.T) {
	for _, c := range []struct {
		what          string
		checked, next time.Duration // 0: no file
		want          bool
	}{
		{"nothing known", 0, 0, true},
		{"no next", -time.Hour, 0, true},
		{"passed", -2 * time.Hour, -time.Hour, true},
		{"passed by a moment", -time.Hour, -1, true},
		{"not yet", -time.Hour, time.Minute, false},
		{"not yet, never checked", 0, time.Minute, false},
		{"checked by a machine whose clock is ahead", time.Minute, time.Hour, false},
		{"the clock was set back", 2 * feedfiles.ClockSkew, time.Hour, true},
		{"the clock was set back far", 100 * 24 * time.Hour, 101 * 24 * time.Hour, true},
	} {
		dir := t.TempDir()
		for name, d := range map[string]time.Duration{"checked": c.checked, "next": c.next} {
			if d != 0 {
				write(t, dir, name, "")
				if err := os.Chtimes(filepath.Join(dir, name), noon.Add(d), noon.Add(d)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := load(t, dir).Schedule.Due(noon); got != c.want {
			t.Errorf("%s: due %v", c.what, got)
		}
		if got := dueAt(dir, noon); got != c.want {
			t.Errorf("%s: Due %v", c.what, got)
		}
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://example.com/\n")
	s := load(t, dir)
	s.Succeeded(noon, doc(rss, "Etag", "a"), Hints{})
	save(t, s)
	// An error is stored as one line without control characters; the data about the document stays.
	s = load(t, dir)
	s.Schedule.Failed(noon, errors.New("bad\n\x1b[31mthing\u202e"))
	save(t, s)
	if got := value(t, dir, "error"); got != "bad [31mthing\n" {
		t.Errorf("error is %q", got)
	}
	if value(t, dir, "failures") != "1\n" || value(t, dir, "etag") != "a\n" || value(t, dir, "status") != "200\n" || load(t, dir).Schedule.LastError() != "bad [31mthing" {
		t.Error("failures, etag or status is wrong")
	}
	// Saving keeps the number of failures. The delays grow, with jitter, up to the limit.
	for n := 2; n < 100; n++ {
		s = load(t, dir)
		s.Schedule.Rand = func() float64 { return 0.999 }
		s.Schedule.Failed(noon, &httpmsg.StatusError{URL: "u", Status: 404})
		save(t, s)
		got := s.Schedule.Next().Sub(noon)
		low := time.Hour << min(n-1, 10)
		if got <= min(low, MaxDelay*4/5) || got > MaxDelay || n < 5 && got > low*5/4 {
			t.Fatalf("after %d failures %v", n, got)
		}
	}
	if value(t, dir, "failures") != "99\n" || value(t, dir, "status") != "404\n" {
		t.Error("failures or status is wrong")
	}
	s = load(t, dir)
	s.NotModified(noon, same())
	save(t, s)
	if value(t, dir, "failures") != "-" || value(t, dir, "error") != "-" || value(t, dir, "status") != "304\n" || !s.Schedule.Next().Equal(noon.Add(time.Hour)) {
		t.Error("a success did not end the failures")
	}
}

// An interrupted fetch, an offline machine and a delayed host do not count as failures of the feed.
func TestNotCounted(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://example.com/\n")
	s := load(t, dir)
	s.Schedule.Failed(noon, fmt.Errorf("x: %w", context.Canceled))
	save(t, s)
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("after ^C: %v", got)
	}
	// Network timeouts look like the end of ctx, but count as failures.
	s = load(t, t.TempDir())
	s.Schedule.Failed(noon, &httpmsg.NetError{URL: "u", Kind: httpmsg.KindDNS, Err: context.DeadlineExceeded})
	if s.Schedule.Failures() != 1 || s.Schedule.Next().IsZero() {
		t.Error("a network timeout was not counted")
	}
	for range 5 {
		s = load(t, dir)
		s.Schedule.Failed(noon, &httpmsg.NetError{URL: "u", Kind: httpmsg.KindDNS, Offline: true, Err: errors.New("x")})
		save(t, s)
	}
	if value(t, dir, "failures") != "-" || value(t, dir, "error") == "-" || !s.Schedule.Next().Equal(noon.Add(time.Hour)) {
		t.Errorf("offline: next %v", s.Schedule.Next())
	}
	s = load(t, dir)
	before := s.Schedule.LastError()
	s.Schedule.Failed(noon.Add(time.Minute), &httpmsg.HostDelayError{URL: "u", Until: noon.Add(5 * time.Hour)})
	save(t, s)
	if s = load(t, dir); !s.Schedule.Next().Equal(noon.Add(5*time.Hour)) || !s.Schedule.Checked().Equal(noon) || s.Schedule.Failures() != 0 || s.Schedule.LastError() != before {
		t.Errorf("host delayed: next %v, checked %v, failures %d", s.Schedule.Next(), s.Schedule.Checked(), s.Schedule.Failures())
	}
	s.Schedule.Failed(noon, &httpmsg.HostDelayError{URL: "u", Until: noon.Add(2 * time.Hour)})
	if !s.Schedule.Next().Equal(noon.Add(5 * time.Hour)) {
		t.Error("an earlier HostDelayError changed next")
	}
}

func TestGone(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://example.com/\n")
	s := load(t, dir)
	s.Schedule.Failed(noon, &httpmsg.StatusError{Status: 410})
	save(t, s)
	if s = load(t, dir); !s.Schedule.Gone() || value(t, dir, "gone") != "2026-03-02T12:00:00Z\n" || !s.Schedule.Next().Equal(noon.Add(GoneDelay)) {
		t.Errorf("gone %v, next %v", s.Schedule.Gone(), s.Schedule.Next())
	}
	s.Schedule.Failed(noon.Add(GoneDelay), &httpmsg.StatusError{Status: 410})
	save(t, s)
	if value(t, dir, "gone") != "2026-03-02T12:00:00Z\n" {
		t.Error("the time was overwritten")
	}
	s = load(t, dir)
	s.Succeeded(noon, doc(rss), Hints{})
	save(t, s)
	if load(t, dir).Schedule.Gone() {
		t.Error("still gone")
	}
}

// If a document exceeded a limit, its validators are sent only under the same limit, because the rest must
// be read under a higher one.
func TestShortIsKeptUnderItsLimits(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://example.com/\n")
	write(t, dir, "filter", "cat\n")
	under := func(limits string) *State {
		s := load(t, dir)
		s.Document.Limits = limits
		return s
	}
	known := func(limits string, want bool) {
		t.Helper()
		s := under(limits)
		if r, err := s.Request(); err != nil || (r.ETag == "a") != want || s.Document.SameBody(doc(rss)) != want {
			t.Errorf("%s: %+v, %v", limits, r, err)
		}
	}
	res := doc(rss, "Etag", "a")
	res.Short = true
	s := under("entries=5")
	s.Succeeded(noon, res, Hints{})
	save(t, s)
	known("entries=5", true)
	known("entries=9", false)
	known("", false)
	// The document stays short if the same one is received again.
	s = under("entries=5")
	s.Unchanged(noon, doc(rss, "Etag", "a"))
	save(t, s)
	s = under("entries=5")
	s.NotModified(noon, &httpmsg.Response{Status: 304, Header: textproto.MIMEHeader{}, ETag: "a", Received: noon})
	save(t, s)
	known("entries=5", true)
	known("entries=9", false)
	// A document that was read in full is known under any limit.
	s = under("entries=9")
	s.Succeeded(noon, doc(rss, "Etag", "a"), Hints{})
	save(t, s)
	known("entries=5", true)
	known("", true)
}

// After a truncated document, the next request has no validators.
func TestTruncatedIsNotKept(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://example.com/\n")
	s := load(t, dir)
	s.Succeeded(noon, doc(rss, "Etag", "a"), Hints{})
	save(t, s)
	s = load(t, dir)
	res := doc(rss, "Etag", "b")
	res.Truncated = true
	if s.Document.SameBody(res) {
		t.Error("a truncated body is recognised as the whole")
	}
	s.Succeeded(noon, res, Hints{})
	save(t, s)
	s = load(t, dir)
	if r, err := s.Request(); err != nil || r.ETag != "" || s.Document.SameBody(doc(rss)) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Validators are valid only for their url and filter, even if these are edited by hand.
func TestValidatorsBelong(t *testing.T) {
	for _, name := range []string{"url", "filter"} {
		dir := t.TempDir()
		write(t, dir, "url", "http://example.com/\n")
		s := load(t, dir)
		s.Succeeded(noon, doc(rss, "Etag", "a"), Hints{})
		save(t, s)
		write(t, dir, name, "http://example.com/other\n")
		s = load(t, dir)
		if r, err := s.Request(); err != nil || r.ETag != "" || s.Document.SameBody(doc(rss)) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		s.Succeeded(noon, doc(rss, "Etag", "a"), Hints{})
		save(t, s)
		s = load(t, dir)
		if r, err := s.Request(); err != nil || r.ETag != "a" || !s.Document.SameBody(doc(rss)) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestMoved(t *testing.T) {
	for _, c := range []struct {
		what, from string
		targets    []string
		want       string
	}{
		{"three times", "http://a/", []string{"http://b/", "http://b/", "http://b/"}, "http://b/"},
		{"twice", "http://a/", []string{"http://b/", "http://b/"}, "http://a/"},
		{"interrupted", "http://a/", []string{"http://b/", "http://b/", "", "http://b/", "http://b/"}, "http://a/"},
		{"another target", "http://a/", []string{"http://b/", "http://b/", "http://c/", "http://b/"}, "http://a/"},
		{"a failure between", "http://a/", []string{"http://b/", "http://b/", "fail", "http://b/"}, "http://b/"},
		{"to https", "http://a/", []string{"https://b/", "https://b/", "https://b/"}, "https://b/"},
		{"from https", "https://a/", []string{"http://b/", "http://b/", "http://b/"}, "https://a/"},
		{"to a file", "http://a/", []string{"file:///x", "file:///x", "file:///x"}, "http://a/"},
		{"to a command", "http://a/", []string{"exec:x", "exec:x", "exec:x"}, "http://a/"},
		{"the password is not sent to another host", "http://u:p@a/", []string{"http://b/", "http://b/", "http://b/"}, "http://b/"},
		{"the password is kept for the same host", "http://u:p@a/", []string{"https://a/x", "https://a/x", "https://a/x"}, "https://u:p@a/x"},
		{"a password in the target is ignored", "http://a/", []string{"http://e:v@a/x", "http://e:v@a/x", "http://e:v@a/x"}, "http://a/x"},
	} {
		dir := t.TempDir()
		write(t, dir, "url", c.from+"\n")
		moved := ""
		for _, target := range c.targets {
			s := load(t, dir)
			if target == "fail" {
				s.Schedule.Failed(noon, &httpmsg.StatusError{Status: 500})
			} else {
				res := doc(rss, "Etag", "a")
				res.Moved.To = target
				s.Succeeded(noon, res, Hints{})
				moved = s.MovedTo()
			}
			save(t, s)
		}
		if got := value(t, dir, "url"); got != c.want+"\n" {
			t.Errorf("%s: url is %q", c.what, got)
		}
		if c.want != c.from && moved != c.want || c.want == c.from && moved != "" {
			t.Errorf("%s: MovedTo is %q", c.what, moved)
		}
		// The validators are those of the old URL.
		if r, err := load(t, dir).Request(); err != nil || (r.ETag == "a") != (c.want == c.from) {
			t.Errorf("%s: %+v, %v", c.what, r, err)
		}
	}
}

// Headers are sent to the feed's own server only: no redirect changes the url to another server.
func TestMovedWithHeaders(t *testing.T) {
	for target, want := range map[string]string{
		"http://b/":    "http://a/",
		"http://a:81/": "http://a/",
		"http://a/x":   "http://a/x",
		"https://a/":   "https://a/",
	} {
		dir := t.TempDir()
		write(t, dir, "url", "http://a/\n")
		write(t, dir, "headers", "Authorization: Bearer secret\n")
		for range 4 {
			s := load(t, dir)
			res := doc(rss)
			if s.Settings.URL() != target {
				res.Moved.To = target
			}
			s.Succeeded(noon, res, Hints{})
			save(t, s)
		}
		if got := value(t, dir, "url"); got != want+"\n" {
			t.Errorf("moved to %s: url is %q", target, got)
		}
	}
}

// A url to which a public server redirects is not the user's own, unless it has the same host.
func TestMovedByPublicServer(t *testing.T) {
	for _, c := range []struct {
		target      string
		public      bool
		url, origin string
	}{
		{"http://b/x", true, "http://b/x", "http://a/\n"},
		{"http://b/x", false, "http://b/x", ""},
		{"https://A/x", true, "https://u:p@a/x", ""},
	} {
		for _, full := range []bool{false, true} { // a directory in the place of the origin is as a full disk
			dir := t.TempDir()
			write(t, dir, "url", "http://u:p@a/secret\n")
			write(t, dir, "moved", "2\t"+c.target+"\n")
			s := load(t, dir)
			res := doc(rss)
			res.Moved = httpmsg.Move{To: c.target, Public: c.public}
			s.Succeeded(noon, res, Hints{})
			want := c.url
			if full {
				write(t, filepath.Join(dir, "origin"), "file", "")
				if c.origin != "" {
					want = "http://u:p@a/secret"
				}
			}
			if err := s.Save(); (err != nil) != (full && c.origin != "") {
				t.Errorf("%+v, full %v: %v", c, full, err)
			}
			if got := value(t, dir, "url"); got != want+"\n" {
				t.Errorf("%+v, full %v: url is %q", c, full, got)
			}
			if b, _ := os.ReadFile(filepath.Join(dir, "origin")); !full && string(b) != c.origin {
				t.Errorf("%+v: origin is %q", c, b)
			}
		}
	}
}

// A URL that the user sets during a fetch is not overwritten.
func TestMovedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://a/\n")
	write(t, dir, "moved", "2\thttp://b/\n")
	s := load(t, dir)
	res := doc(rss)
	res.Moved = httpmsg.Move{To: "http://b/", Public: true}
	s.Succeeded(noon, res, Hints{})
	write(t, dir, "url", "http://user/\n")
	save(t, s)
	if _, err := os.Stat(filepath.Join(dir, "origin")); err == nil {
		t.Error("the url of the user has an origin")
	}
	// The next request of the same visit is for the user's url, which may be that of a private address.
	if r, err := s.Request(); err != nil || r.URL != "http://user/" || r.Origin != "" {
		t.Errorf("the next request is %+v, %v", r, err)
	}
	if got := value(t, dir, "url"); got != "http://user/\n" {
		t.Errorf("url is %q", got)
	}
}

func TestChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "f", "etc", "fetch")
	s := load(t, dir)
	for _, c := range [][2]string{
		{"url", "exec:echo"}, {"url", "file:///x"}, {"url", "http://a/"}, {"interval", "2h"}, {"on-update", "deliver"},
		{"headers", "A: b\nC: d"}, {"filter", "cat"},
	} {
		if err := s.Change(c[0], c[1]); err != nil {
			t.Error(err)
		}
		if got := value(t, dir, c[0]); got != c[1]+"\n" {
			t.Errorf("%s is %q", c[0], got)
		}
	}
	if fi, err := os.Stat(filepath.Join(dir, "headers")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the mode of headers: %v, %v", fi.Mode(), err)
	}
	for _, s := range []*State{s, load(t, dir)} {
		r, err := s.Request()
		if err != nil || r.URL != "http://a/" || len(r.Header) != 2 || s.Settings.Interval() != 2*time.Hour || s.Settings.OnUpdate() != "deliver" || s.Settings.Filter() != "cat" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	// A new interval changes next; a new url removes the data about the last document.
	s = load(t, dir)
	s.Succeeded(noon, doc(rss, "Etag", "a", "Cache-Control", "max-age=3600"), Hints{})
	save(t, s)
	if err := s.Change("interval", "5m"); err != nil {
		t.Fatal(err)
	}
	if got := load(t, dir).Schedule.Next(); !got.Equal(noon.Add(time.Hour)) {
		t.Errorf("next is %v", got)
	}
	if err := s.Change("url", "http://a/"); err != nil || value(t, dir, "etag") != "a\n" {
		t.Errorf("the same url: %v", err)
	}
	if err := s.Change("url", "http://b/"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*State{s, load(t, dir)} {
		if r, err := s.Request(); err != nil || r.URL != "http://b/" || r.ETag != "" || !s.Schedule.Due(noon) {
			t.Errorf("%+v, %v, due %v", r, err, s.Schedule.Due(noon))
		}
	}
	for range 2 {
		if err := s.Change("interval", ""); err != nil {
			t.Error(err)
		}
	}
	if s.Settings.Interval() != DefaultInterval || value(t, dir, "interval") != "-" {
		t.Error("the interval is still set")
	}
}

// Malformed values are ignored with a warning, and their files stay.
func TestMalformed(t *testing.T) {
	dir := t.TempDir()
	for name, v := range map[string]string{
		"url": "http://a/\n", "interval": "often\n", "on-update": "x\n", "headers": "good: 1\nbad\n", "failures": "many\n",
		"status": "\x1b[m\n", "ttl": "x\n", "skip-hours": "a 99 -1\n", "skip-days": "Caturday\n", "moved": "x\n",
	} {
		write(t, dir, name, v)
	}
	if err := os.Mkdir(filepath.Join(dir, "filter"), 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "etag", strings.Repeat("x", feedfiles.MaxSize+2))
	s := load(t, dir)
	r, err := s.Request()
	if err != nil || len(r.Header) != 1 || s.Settings.Interval() != DefaultInterval || s.Settings.OnUpdate() != "unread" || s.Schedule.Failures() != 0 || s.Schedule.Status() != 0 || s.Settings.Filter() != "" {
		t.Errorf("%+v, %v", r, err)
	}
	s.NotModified(noon, same())
	if !s.Schedule.Next().Equal(noon.Add(DefaultInterval)) {
		t.Errorf("next is %v", s.Schedule.Next())
	}
	for _, name := range []string{"interval", "on-update", "headers", "failures", "status", "ttl", "filter"} {
		if !slices.ContainsFunc(s.Warnings(), func(w string) bool { return strings.Contains(w, filepath.Join(dir, name)+" is ignored") }) {
			t.Errorf("no warning about %s in %q", name, s.Warnings())
		}
	}
	for _, w := range s.Warnings() {
		if strings.ContainsAny(w, "\n\x1b") {
			t.Errorf("the warning %q", w)
		}
	}
	save(t, s)
	for name, want := range map[string]string{"interval": "often\n", "on-update": "x\n", "headers": "good: 1\nbad\n", "ttl": "x\n"} {
		if got := value(t, dir, name); got != want {
			t.Errorf("%s became %q", name, got)
		}
	}
}

// Save returns all errors, and saves the other files.
func TestSaveErrors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://a/\n")
	for _, name := range []string{"status", "body"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "x"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	s := load(t, dir)
	s.Succeeded(noon, doc(rss, "Etag", "a"), Hints{})
	err := s.Save()
	if err == nil || !strings.Contains(err.Error(), "status") || !strings.Contains(err.Error(), "body") {
		t.Errorf("%v", err)
	}
	s = load(t, dir)
	if !s.Schedule.Next().Equal(noon.Add(time.Hour)) {
		t.Error("the other files were not saved")
	}
	// The data about the document was not saved, so the next request has no validator.
	if r, err := s.Request(); err != nil || r.ETag != "" {
		t.Errorf("etag %q, %v", r.ETag, err)
	}
}

// If a setting that affects the delivery of entries cannot be read, Request fails. The error is not
// fs.ErrNotExist, which would mean that the feed is not subscribed to.
func TestUnreadableSetting(t *testing.T) {
	for _, name := range []string{"url", "on-update", "headers", "filter"} {
		dir := t.TempDir()
		write(t, dir, "url", "http://a/\n")
		os.Remove(filepath.Join(dir, name))
		if err := os.Symlink(name, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, err := load(t, dir).Request()
		if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir, name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRemote(t *testing.T) {
	for _, err := range []error{errors.New("x"), &feedurl.Error{}, context.Canceled, fs.ErrPermission, nil} {
		if httpmsg.Remote(err) {
			t.Errorf("%v is remote", err)
		}
	}
	if !httpmsg.Remote(fmt.Errorf("x: %w", &httpmsg.StatusError{Status: http.StatusGone})) {
		t.Error("a wrapped status is not remote")
	}
}

func BenchmarkNotModified(b *testing.B) {
	dir := b.TempDir()
	write(b, dir, "url", "http://example.com/\n")
	s := load(b, dir)
	s.Succeeded(noon, doc(rss, "Etag", "a", "Last-Modified", "b"), Hints{TTL: time.Hour})
	save(b, s)
	b.ReportAllocs()
	for b.Loop() {
		s := load(b, dir)
		if !s.Schedule.Due(noon.Add(24 * time.Hour)) {
			b.Fatal("not due")
		}
		if _, err := s.Request(); err != nil {
			b.Fatal(err)
		}
		s.NotModified(noon, same("Etag", "a"))
		save(b, s)
	}
}

// If the directory was replaced after the state was loaded, Save writes to the new one.
func TestStateReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fetch")
	s := load(t, dir)
	if err := s.Change("url", "http://example.com/feed"); err != nil {
		t.Fatal(err)
	}
	s = load(t, dir)
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	s.NotModified(noon, same())
	save(t, s)
	if s := load(t, dir); !s.Schedule.Checked().Equal(noon) || s.Schedule.Next().Before(noon) {
		t.Errorf("checked %v, next %v", s.Schedule.Checked(), s.Schedule.Next())
	}
}

// The next response repairs a status file that a kill left damaged.
func TestStatusRepaired(t *testing.T) {
	for _, left := range []string{"", "2", "\x00\x00\x00\x00"} {
		dir := filepath.Join(t.TempDir(), "fetch")
		if err := load(t, dir).Change("url", "http://example.com/feed"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "status"), []byte(left), 0o666); err != nil {
			t.Fatal(err)
		}
		s := load(t, dir)
		s.NotModified(noon, same())
		save(t, s)
		if got := load(t, dir).Schedule.Status(); got != 304 {
			t.Errorf("%q became %d", left, got)
		}
	}
}

// Save removes the validators before it writes the URL to which they belong, so a kill cannot leave them
// with another URL.
func TestValidatorsRemovedFirst(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "url", "http://a.example/\n")
	answer := func(final string) *httpmsg.Response {
		resp := doc(rss, "Etag", `"1"`)
		resp.FinalURL = final
		return resp
	}
	s := load(t, dir)
	s.Succeeded(noon, answer("http://a.example/"), Hints{})
	save(t, s)
	if value(t, dir, "etag") != "\"1\"\n" || value(t, dir, "final") != "-" {
		t.Fatal("the validator was not saved")
	}
	// Writing the new URL fails.
	if err := os.MkdirAll(filepath.Join(dir, "final", "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	s = load(t, dir)
	s.Succeeded(noon, answer("http://b.example/"), Hints{})
	if err := s.Save(); err == nil || value(t, dir, "etag") != "-" || value(t, dir, "body") == "-" {
		t.Errorf("%v: etag %q", err, value(t, dir, "etag"))
	}
	if err := os.RemoveAll(filepath.Join(dir, "final")); err != nil {
		t.Fatal(err)
	}
	save(t, s)
	r, err := load(t, dir).Request()
	if err != nil || r.ETag != `"1"` || r.Validated != "http://b.example/" || r.URL != "http://a.example/" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestLive: the feed is due when a live broadcast begins and when it ends, once each, but at most once a
// minute. Skipped hours and the interval do not delay it.
func TestLive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etc", "fetch")
	s := load(t, dir)
	if err := s.Change("url", "http://example.com/feed"); err != nil {
		t.Fatal(err)
	}
	hints := Hints{SkipHours: []int{12}, Live: []time.Time{noon.Add(40 * time.Minute), noon.Add(20*time.Minute + 900*time.Millisecond), noon.Add(20*time.Minute + 30*time.Second), noon.Add(-time.Hour)}}
	s.Succeeded(noon, doc(rss), hints)
	var at []time.Duration
	for range 5 {
		save(t, s)
		s = load(t, dir)
		next := s.Schedule.Next()
		at = append(at, next.Sub(noon))
		s.Succeeded(next, &httpmsg.Response{Status: 304}, hints)
	}
	if got := fmt.Sprint(at); got != "[20m0s 21m0s 40m0s 1h40m0s 2h40m0s]" {
		t.Errorf("due after %s", got)
	}
	many := Hints{}
	for i := range 100 {
		many.Live = append(many.Live, noon.Add(time.Duration(i)*time.Minute))
	}
	s.Succeeded(noon, doc(rss), many)
	save(t, s)
	if got := strings.Count(value(t, dir, "live"), ":00Z"); got != maxLive {
		t.Errorf("%d times are kept", got)
	}
}
