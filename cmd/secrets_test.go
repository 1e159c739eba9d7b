// Package cmd has the tests that are about all programs at once.
package cmd

import (
	"bufio"
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// mark is in everything that nobody else is to see.
const mark = "s3cret"

func TestMain(m *testing.M) { testdir.Main(m) }

// TestNoSecrets: no output that leaves the machine holds a user and password, a
// token, a command or a file's name, whichever feed they are of: a feed that has
// any is left out, and what else has a password in a URL is written without it.
func TestNoSecrets(t *testing.T) {
	bin := testdir.Bin(t)
	d := testdir.New(t)
	feed := func(id, name string, files ...string) {
		t.Helper()
		if _, err := d.Feed(id, name, files...); err != nil {
			t.Fatal(err)
		}
		const pw = "http://ann:" + mark + "@"
		if _, err := d.Entry(id, "new", testdir.Unique(1700000000, len(id)+len(name)),
			"title=Of "+name+" \u202e\u009b "+pw+"t.example/", "id="+pw+"i.example/"+name, "type=text/html",
			"content=<p>"+name+"\u2066 <a href=\""+pw+"c.example/\">x</a></p>", "author=Ann <"+pw+"a.example/>",
			"+link="+pw+"l.example/", "+comments="+pw+"m.example/", "+summary="+pw+"s.example/", "+category="+pw+"k.example/",
			"+enclosure="+pw+"e.example/x.mp3\taudio/mpeg\t7"); err != nil {
			t.Fatal(err)
		}
	}
	url := func(u string) string { return "etc/fetch/url=" + u }
	feed("http://open.example/", "Open", url("http://open.example/"), "etc/link=http://ann:"+mark+"@open.example/")
	feed("http://ann:"+mark+"@id.example/", "Id", url("http://id.example/"))
	feed("http://ann:"+mark+"@untitled.example/", "", url("http://ann:"+mark+"@untitled.example/"))
	feed("http://url.example/", "Url", url("http://ann:"+mark+"@url.example/"))
	feed("http://from.example/", "From", url("http://ann@from.example/"), "etc/fetch/from=0 http://ann:"+mark+"@from.example/", "etc/push/hub=http://ann:"+mark+"@hub.example/")
	feed("http://headers.example/", "Headers", url("http://headers.example/"), "etc/fetch/headers=Authorization: Bearer "+mark)
	feed("http://filter.example/", "Filter", url("http://filter.example/"), "etc/fetch/filter=sed s/"+mark+"//")
	feed("exec:cat "+mark, "Exec", url("exec:cat "+mark))
	feed("file:///home/"+mark+"/feed", "File", url("file:///home/"+mark+"/feed"))
	feed("http://private.example/"+mark, "Private", url("http://private.example/"+mark), "etc/fetch/private=")

	out := t.TempDir()
	www, doc := filepath.Join(out, "www"), filepath.Join(out, "doc")
	run := func(words ...string) string {
		t.Helper()
		c := exec.Command(filepath.Join(bin, words[0]), words[1:]...)
		c.Env = append(os.Environ(), "LEKTORDIR="+d.Path, "HOME="+out)
		c.Dir = out
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Run(); err != nil {
			t.Fatalf("%q: %v\n%s", words, err, &stderr)
		}
		return stdout.String()
	}
	private := regexp.MustCompile(`(?i)\b(id|untitled|url|from|headers|filter|private)\.example|Of (Id|Url|From|Headers|Filter|Exec|File|Private)\b`)
	check := func(what, text string, named bool) {
		t.Helper()
		if i := strings.Index(text, mark); i >= 0 {
			t.Errorf("%s: a secret: %.200q", what, text[max(i-80, 0):])
		}
		if m := private.FindString(text); m != "" && !named {
			t.Errorf("%s: %s is not for others", what, m)
		}
		if termsafe.Unsafe(text) {
			t.Errorf("%s: characters that a terminal acts on: %q", what, text)
		}
	}
	for _, words := range [][]string{
		{"lektor-view", "publish"},
		{"lektor-view", "publish", "--format", "rss", "--self", "http://me:" + mark + "@me.example/", "--hub", "http://me:" + mark + "@hub.example/"},
		{"lektor-view", "publish", "--format", "json"},
		{"lektor-ess", "build"},
		{"lektor-ess", "build", "--lines", "http://open.example/"},
		{"lektor-ess", "nno"},
		{"lektor-ess", "nno", "-o", "json"},
	} {
		text := run(words...)
		check(strings.Join(words, " "), text, false)
		if !strings.Contains(text, "open.example") {
			t.Errorf("%q: the open feed is left out: %s", words, text)
		}
	}
	// Feeds that are named are there, without secrets.
	for _, words := range [][]string{
		{"lektor-view", "publish", "--include", "http://url.example/"},
		{"lektor-view", "publish", "--format", "rss", "--include", "http://url.example/", "--include", "http://headers.example/"},
		{"lektor-view", "publish", "--format", "json", "--include", "http://url.example/"},
		{"lektor-ess", "build", "--lines", "http://url.example/"},
		{"lektor-ess", "nno", "--include", "http://url.example/"},
	} {
		text := run(words...)
		check(strings.Join(words, " "), text, true)
		if !strings.Contains(text, "url.example") {
			t.Errorf("%q: the feed that is named is left out: %s", words, text)
		}
	}
	// Mail is the user's own, and may be sent on: all feeds are in it, without what is secret.
	for _, feed := range []string{"open", "id", "url", "from", "headers", "filter"} {
		for _, words := range [][]string{
			{"lektor-view", "mbox", "--query", "feed:/" + feed + "/"},
			{"lektor-view", "digest", "--html", "--full", "--keep", "feed:/" + feed + "/"},
			{"lektor-view", "digest", "--html", "--keep", "--mail", "kim@example.org", "feed:/" + feed + "/"},
		} {
			text := strings.ReplaceAll(run(words...), "=\n", "")
			check(strings.Join(words, " "), text, true)
			if !strings.Contains(text, "l.example/") {
				t.Errorf("got %q: %s; want strings.Contains(text, \"l.example/\")", words, text)
			}
		}
	}
	check("lektor-view stats --html", run("lektor-view", "stats", "--html"), true)
	// Answers to a client are for the user, too, who may know the URL of a private feed, and
	// the path of a file.
	for path, text := range served(t, bin, d.Path) {
		text = strings.NewReplacer("http://private.example/"+mark, "", "file:///home/"+mark+"/feed", "").Replace(text)
		if i := strings.Index(text, mark); i >= 0 {
			t.Errorf("%s: a secret: %.200q", path, text[max(i-80, 0):])
		}
		if !strings.Contains(text, "open.example") {
			t.Errorf("%s: the open feed is left out: %s", path, text)
		}
	}
	// Files, and the document that is made of documents.
	run("lektor-view", "publish", "--output", doc)
	run("lektor-ess", "publish", www)
	names, err := filepath.Glob(filepath.Join(www, "*"))
	if err != nil || len(names) != 5 {
		t.Errorf("published %q, %v", names, err)
	}
	run("lektor-view", "html", filepath.Join(out, "site"))
	err = filepath.WalkDir(filepath.Join(out, "site"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			names = append(names, path)
		}
		return err
	})
	if err != nil || len(names) < 5+7 {
		t.Errorf("a site of %q, %v", names, err)
	}
	for _, name := range append(names, doc) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		check(name, string(text), false)
	}
	// A feed that has become private is taken from the page.
	if _, err := d.Feed("http://open.example/", "Open", "etc/fetch/private="); err != nil {
		t.Fatal(err)
	}
	run("lektor-ess", "publish", www)
	if names, _ := filepath.Glob(filepath.Join(www, "*.ess")); len(names) > 0 {
		t.Errorf("still there: %q", names)
	}
	// Requests contain no secrets either.
	asked := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b bytes.Buffer
		_ = r.Write(&b)
		asked <- b.String()
		_, _ = w.Write([]byte("1700000000,http://open.example/,1,2"))
	}))
	defer s.Close()
	run("lektor-ess", "top", s.URL+"/x.ess")
	check("a request", strings.ReplaceAll(<-asked, "\r", ""), false)
}

// served returns what lektor-serve answers to a client of a user who has a lektor-dir, by path.
func served(t *testing.T, bin, dir string) map[string]string {
	t.Helper()
	state := filepath.Join(t.TempDir(), "state")
	passwd := exec.Command(filepath.Join(bin, "lektor-serve"), "passwd", "--state", state, "--dir", dir, "ann")
	passwd.Stdin = strings.NewReader("correct horse battery\n")
	if out, err := passwd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	server := exec.CommandContext(t.Context(), filepath.Join(bin, "lektor-serve"), "--state", state, "--listen", "127.0.0.1:0")
	messages, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	base, lines := "", bufio.NewScanner(messages)
	for base == "" && lines.Scan() {
		_, base, _ = strings.Cut(lines.Text(), "listening on ")
	}
	if base == "" {
		t.Fatal("the server does not listen")
	}
	get := func(path, token string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "GoogleLogin auth="+token)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", path, answer.Status, err)
		}
		return string(text)
	}
	_, token, _ := strings.Cut(get("/accounts/ClientLogin?Email=ann&Passwd=correct+horse+battery", ""), "Auth=")
	answers := map[string]string{}
	for _, path := range []string{
		"/reader/api/0/subscription/list", "/reader/api/0/subscription/export", "/reader/api/0/stream/contents?n=100",
		"/reader/api/0/stream/contents?n=100&output=xml", "/reader/atom/user/-/state/com.google/reading-list?n=100",
	} {
		answers[path] = get(path, strings.TrimSpace(token))
	}
	return answers
}
