package importer

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/protocol/importfmt"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// move imports into a lektor-dir, and returns stdout and stderr.
func move(t *testing.T, o Options) (out, told string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.Now = func() time.Time { return noon }
	err = Import(context.Background(), o, cmdline.NewStreams("lektor-import", strings.NewReader(""), &stdout, &stderr))
	return stdout.String(), stderr.String(), err
}

// makeCache makes a database of testdata/NAME.sql.
func makeCache(t *testing.T, path, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(string(text)); err != nil {
		t.Fatal(err)
	}
}

// newsboatDir is a copy of testdata/newsboat with a cache.
func newsboatDir(t *testing.T) string {
	t.Helper()
	at := t.TempDir()
	if err := os.CopyFS(at, os.DirFS("testdata/newsboat")); err != nil {
		t.Fatal(err)
	}
	makeCache(t, filepath.Join(at, "cache.db"), "newsboat.sql")
	return at
}

// has fails the test unless told contains each text.
func has(t *testing.T, told string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(told, text) {
			t.Errorf("no %q in\n%s", text, told)
		}
	}
}

// want compares a file with its text.
func want(t *testing.T, path, text string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != text {
		t.Errorf("%s: %v\n%s\nnot\n%s", path, err, got, text)
	}
}

func src(at, url, name string) string {
	return filepath.Join(at, "src", lektordir.FeedHash(url), name)
}

func TestNewsboat(t *testing.T) {
	from := newsboatDir(t)
	before, err := testdir.Files(from)
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "feeds")
	out, told, err := move(t, Options{Dir: at, Reader: "newsboat", Paths: []string{from}, Yes: true})
	if err != nil {
		t.Fatal(err, told)
	}
	const a, b, c, x = "https://a.example/feed.xml", "https://user:secret@b.example/atom", "https://c.example/feed", "exec:~/bin/make-feed"
	for _, url := range []string{a, b, c, x} {
		if !strings.Contains(out, at+"/src/"+lektordir.FeedHash(url)+"\n") {
			t.Errorf("%s is not in %q", url, out)
		}
		want(t, src(at, url, "etc/fetch/url"), url+"\n")
	}
	want(t, src(at, a, "etc/view/alias"), "Kim's feed\n")
	want(t, src(at, a, "etc/categories"), "tech\ntwo words\n")
	want(t, src(at, c, "etc/fetch/filter"), "~/bin/clean -x\n")
	// The newest first; a URL that several have is none.
	want(t, src(at, a, "etc/fetch/marks"), "ST\turn:a:5\thttps://a.example/5\tFive\t1767323049\n"+
		"S\turn:a:1\thttps://a.example/1\tOne\t1767323045\nS\tSix\t\tSix\n")
	want(t, src(at, c, "etc/fetch/marks"), "S\turn:c:1\thttps://c.example/1\tOne\t1767323045\n")
	want(t, filepath.Join(at, "etc/view/query/Unread tech"), "is:unread folder:\"tech\"\n")
	if fi, err := os.Stat(src(at, b, "etc/fetch/url")); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("a URL with a password can be read by others: %v, %v", fi, err)
	}
	has(t, told, "javascript:alert(1): left out", "the query Busy cannot be translated: unread_count > 10", "flag 'A' is ignored", "5 feeds subscribed, 0 already; 1 query; 3 entries delivered; 2 entries marked; 5 marks waiting")
	if strings.Contains(told+out, "secret") {
		t.Errorf("the password is told:\n%s%s", told, out)
	}
	after, err := testdir.Files(from)
	if err != nil {
		t.Fatal(err)
	}
	for name := range after {
		if after[name] != before[name] {
			t.Errorf("%s of newsboat was written to", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("files of newsboat came or went: %d, %d", len(before), len(after))
	}

	// Once more, and nothing changes; what nobody has fetched yet is named again, and only that.
	files, _ := testdir.Files(at)
	named, told, err := move(t, Options{Dir: at, Reader: "newsboat", Paths: []string{from}, Yes: true})
	names := func(out string) []string { return slices.Sorted(strings.SplitSeq(out, "\n")) }
	if err != nil || !slices.Equal(names(named), names(out)) {
		t.Errorf("got %v %s %s; want err == nil and slices.Equal(names(named), names(out))", err, named, told)
	}
	has(t, told, "0 feeds subscribed, 5 already, of which 5 never fetched")
	again, _ := testdir.Files(at)
	for name := range again {
		if again[name] != files[name] && !strings.Contains(name, "lock") {
			t.Errorf("%s changed: %q", name, again[name])
		}
	}
}

// A dry run leaves nothing; without somebody to ask, commands are left out.
func TestAsks(t *testing.T) {
	from := newsboatDir(t)
	at := filepath.Join(t.TempDir(), "feeds")
	out, told, err := move(t, Options{Dir: at, Reader: "newsboat", Paths: []string{from}, DryRun: true})
	if err != nil || !strings.Contains(out, "https://c.example/feed\n") || strings.Contains(out, "secret") {
		t.Errorf("%v %s %s", err, out, told)
	}
	has(t, told, "~/bin/clean -x; you would be asked to confirm it", "query Unread tech: is:unread", "would be subscribed to")
	if _, err := os.Lstat(at); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
	if out, told, err = move(t, Options{Dir: at, Reader: "newsboat", Paths: []string{from}}); err != nil {
		t.Error(err)
	}
	has(t, told, "https://c.example/feed goes through a filter: ~/bin/clean -x; the feed is left out", "made by a command: ~/bin/make-feed; the feed is left out")
	if strings.Contains(out, lektordir.FeedHash("https://c.example/feed")) {
		t.Errorf("got %s; want !strings.Contains(out, lektordir.FeedHash(\"https://c.example/feed\"))", out)
	}
	if _, err := os.Lstat(src(at, "exec:~/bin/make-feed", "")); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}

// Somebody at a terminal is asked for each command, and takes over what he wants.
func TestAsksSomebody(t *testing.T) {
	at := filepath.Join(t.TempDir(), "feeds")
	term := terminal.Open(t, 80, 24)
	term.Type("yes\n\n")
	var stdout, stderr bytes.Buffer
	s := cmdline.NewStreams("lektor-import", term.TTY, &stdout, &stderr)
	if err := Import(t.Context(), Options{Dir: at, Reader: "newsboat", Paths: []string{newsboatDir(t)}, Now: func() time.Time { return noon }}, s); err != nil {
		t.Fatal(err)
	}
	has(t, stderr.String(), "through a filter: ~/bin/clean -x", "by a command: ~/bin/make-feed", "import it, to be run at each fetch? [y/N]", "4 feeds subscribed")
	want(t, src(at, "https://c.example/feed", "etc/fetch/filter"), "~/bin/clean -x\n")
	if _, err := os.Lstat(src(at, "exec:~/bin/make-feed", "")); !os.IsNotExist(err) {
		t.Errorf("it is there: %v", err)
	}
}

// Entries that exist are marked at once; a name of the user's stays.
func TestHereAlready(t *testing.T) {
	d := testdir.New(t)
	const a = "https://a.example/feed.xml"
	hash, err := d.Feed(a, "A", "etc/fetch/url="+a, "etc/view/alias=Mine", "etc/categories=old")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Create(); err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"urn:a:1", "urn:a:3", "urn:a:4"} {
		if _, err := d.Entry(a, "new", testdir.Unique(noon.Unix(), i), "id="+id); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(d.Path, "etc/view/query"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.Path, "etc/view/query/Unread tech"), []byte("mine\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, told, err := move(t, Options{Dir: d.Path, Reader: "newsboat", Paths: []string{newsboatDir(t)}, Yes: true})
	if err != nil {
		t.Fatal(err)
	}
	has(t, told, "4 feeds subscribed, 1 already, of which 1 never fetched; 1 entry delivered; 3 entries marked; 4 marks waiting", "the query Unread tech exists already")
	want(t, filepath.Join(d.Path, "etc/view/query/Unread tech"), "mine\n")
	want(t, src(d.Path, a, "etc/view/alias"), "Mine\n")
	want(t, src(d.Path, a, "etc/categories"), "old\ntech\ntwo words\n")
	for flags, n := range map[string]int{";2,S": 1, ";2,s": 1} {
		if got, _ := filepath.Glob(filepath.Join(d.Path, "cur", hash, "*"+flags)); len(got) != n {
			t.Errorf("got %s: %q; want len(got) == n", flags, got)
		}
	}
}

// A cache that newsboat was killed over is an error, and stays as it is; one of an older newsboat has
// fewer columns; what is no cache is an error.
func TestCache(t *testing.T) {
	at := t.TempDir()
	live := filepath.Join(at, "live.db")
	makeCache(t, live, "newsboat.sql")
	db, err := sql.Open("sqlite", live)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, s := range []string{"PRAGMA cache_size = 1", "BEGIN", "UPDATE rss_item SET unread = 0, content = hex(randomblob(100000))", "UPDATE rss_item SET title = 'x'"} {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	killed := filepath.Join(at, "killed.db")
	for _, end := range []string{"", "-journal"} {
		data, err := os.ReadFile(live + end)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(killed+end, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := testdir.Files(at)
	if items, _, err := readAll(t, killed); err == nil || !strings.Contains(err.Error(), killed) {
		t.Errorf("got %+v, %v; want an error that names the cache", items, err)
	}
	after, _ := testdir.Files(at)
	for _, end := range []string{"killed.db", "killed.db-journal"} {
		if before[end] != after[end] {
			t.Errorf("%s changed", end)
		}
	}

	old := filepath.Join(at, "old db?x#y")
	o, err := sql.Open("sqlite", filepath.Join(at, "o"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"CREATE TABLE rss_item (id INTEGER, guid TEXT, title TEXT, url TEXT, feedurl TEXT, pubDate INTEGER, unread INTEGER)",
		"INSERT INTO rss_item VALUES (1, 'g', x'54', NULL, 'f', 'soon', 0)",
	} {
		if _, err := o.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	o.Close()
	if err := os.Rename(filepath.Join(at, "o"), old); err != nil {
		t.Fatal(err)
	}
	if items, _, err := readAll(t, old); err != nil || len(items) != 1 || items[0].Title != "T" || !items[0].Read || !items[0].Date.IsZero() {
		t.Errorf("%+v, %v", items, err)
	}
	for name, data := range map[string]string{"text": "hello", "long": strings.Repeat("hello ", 1000)} {
		path := filepath.Join(at, name)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readAll(t, path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %s: %v; want err != nil and strings.Contains(err.Error(), path)", name, err)
		}
	}
	if _, _, err := readAll(t, at); err == nil {
		t.Error("a directory was read")
	}
}

// Newsboat's files are found where newsboat looks for them.
func TestWhereNewsboatIs(t *testing.T) {
	h := t.TempDir()
	for name, value := range map[string]string{"HOME": h, "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": "relative"} {
		t.Setenv(name, value)
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(h, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	list := func() string {
		t.Helper()
		out, told, err := move(t, Options{Dir: filepath.Join(h, "feeds"), Reader: "newsboat", DryRun: true})
		if err != nil {
			told += err.Error()
		}
		return out + told
	}
	has(t, list(), ".config/newsboat/urls", "no such file")
	put(".newsboat/urls", "https://old.example/\n")
	has(t, list(), "https://old.example/", ".newsboat/cache.db does not exist: entries that you read in newsboat will be unread")
	put(".config/newsboat/urls", "https://new.example/\n")
	put(".config/newsboat/config", "# c\ncache-file \"~/else where.db\"\nurls-source \"ttrss\"\nignore-article \"*\" \"title =~ \\\"x\\\"\"\nbind-key ^R reload\n")
	has(t, list(), "https://new.example/", h+"/else where.db does not exist", "from ttrss", "rule title:/x/i -> trash")
	makeCache(t, filepath.Join(h, "else where.db"), "newsboat.sql")
	if told := list(); strings.Contains(told, "does not exist") {
		t.Error(told)
	}
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(h, "xdg"))
	put("xdg/newsboat/urls", "https://xdg.example/\n")
	makeCacheAt := filepath.Join(h, ".local/share/newsboat/cache.db")
	if err := os.MkdirAll(filepath.Dir(makeCacheAt), 0o777); err != nil {
		t.Fatal(err)
	}
	makeCache(t, makeCacheAt, "newsboat.sql")
	if told := list(); !strings.Contains(told, "https://xdg.example/") || strings.Contains(told, "does not exist") {
		t.Error(told)
	}
}

// The exports of services: an entry is marked in the feed it is of, by the feed's URL or
// its page; commands and files of others are none of ours.
func TestService(t *testing.T) {
	at := t.TempDir()
	for name, text := range map[string]string{
		"list.opml": `<opml><body><outline text="Tech"><outline text="The A" xmlUrl="https://a.example/feed" htmlUrl="https://a.example/"/></outline>
			<outline text="https://b.example/feed" xmlUrl="https://b.example/feed"/><outline text="x" xmlUrl="exec:rm -rf ~"/><outline text="f" xmlUrl="file:///etc/passwd"/></body></opml>`,
		"starred.json": `{"id":"user/-/state/com.google/starred","items":[{"title":"T","canonical":[{"href":"https://a.example/1"}],"origin":{"streamId":"feed/https://a.example/feed"}},
			{"title":"U","canonical":[{"href":"https://a.example/2"}],"origin":{"streamId":"feed/7","htmlUrl":"https://a.example/"}},
			{"title":"V","canonical":[{"href":"https://z.example/2"}],"origin":{"streamId":"feed/https://z.example/feed"}}]}`,
		"bad.json": `{"x":1}`, "bad.txt": "hello",
	} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	feeds := filepath.Join(at, "feeds")
	out, told, err := move(t, Options{Dir: feeds, Reader: "inoreader", Paths: []string{filepath.Join(at, "starred.json"), filepath.Join(at, "list.opml")}, Yes: true})
	if err != nil || strings.Count(out, "\n") != 2 {
		t.Fatal(out, told, err)
	}
	has(t, told, "exec:rm -rf ~: left out", "file:///etc/passwd: left out", "2 feeds subscribed, 0 already; 3 entries delivered; 3 entries marked")
	for url, n := range map[string]int{"https://a.example/feed": 2, "https://z.example/feed": 1} {
		if got, _ := filepath.Glob(filepath.Join(feeds, "cur", lektordir.FeedHash(url), "*;2,F")); len(got) != n {
			t.Errorf("got %s: %q; want len(got) == n", url, got)
		}
	}
	if _, err := os.Stat(src(feeds, "https://z.example/feed", "etc/fetch/url")); !os.IsNotExist(err) {
		t.Errorf("a feed of which something was starred is subscribed to: %v", err)
	}
	want(t, src(feeds, "https://a.example/feed", "etc/view/alias"), "The A\n")
	want(t, src(feeds, "https://a.example/feed", "etc/categories"), "Tech\n")
	for _, bad := range []string{"bad.json", "bad.txt", "none"} {
		if _, _, err := move(t, Options{Dir: feeds, Reader: "feedly", Paths: []string{filepath.Join(at, bad)}}); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("got %s: %v; want err != nil and strings.Contains(err.Error(), bad)", bad, err)
		}
	}
	if _, _, err := move(t, Options{Dir: feeds, Reader: "miniflux"}); !errors.As(err, new(*cmdline.UsageError)) {
		t.Errorf("got %v; want a UsageError", err)
	}
	if _, _, err := move(t, Options{Dir: feeds, Reader: "emacs"}); !errors.As(err, new(*cmdline.UsageError)) {
		t.Errorf("got %v; want a UsageError", err)
	}
}

func TestSfeedAndR2E(t *testing.T) {
	h := t.TempDir()
	t.Setenv("HOME", h)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("SFEED_URL_FILE", "")
	for name, text := range map[string]string{
		".sfeed/sfeedrc":               "feeds() {\n\tfeed \"The A\" https://a.example/feed\n\tfeed \"b/c\" https://b.example/feed\n}\n",
		".sfeed/feeds/The A":           "1767323045\tOne\thttps://a.example/1\t\t\turn:1\t\t\t\n1767323046\tTwo\thttps://a.example/2\t\t\turn:2\t\t\t\n",
		".sfeed/urls":                  "https://a.example/2\nhttps://a.example/0\n",
		".config/rss2email.cfg":        "[feed.the-r]\nurl = https://r.example/feed\n[feed.off]\nurl = https://off.example/\nactive = False\n",
		".local/share/rss2email.json":  `{"version":2,"feeds":[{"name":"the-r","seen":{"urn:r:1":{"id":"x"}}}]}`,
		"elsewhere/rss2email.cfg":      "[feed.e]\nurl = https://e.example/feed\n",
		"elsewhere/not/rss2email.json": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(h, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(h, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	feeds := filepath.Join(h, "feeds")
	if _, told, err := move(t, Options{Dir: feeds, Reader: "sfeed"}); err != nil || strings.Contains(told, "marks") {
		t.Error(told, err)
	}
	want(t, src(feeds, "https://b.example/feed", "etc/view/alias"), "b/c\n")
	_, told, err := move(t, Options{Dir: feeds, Reader: "sfeed", Paths: []string{filepath.Join(h, ".sfeed"), filepath.Join(h, ".sfeed/urls")}})
	if err != nil {
		t.Fatal(err)
	}
	has(t, told, "b/c was never fetched by sfeed", "2 already, of which 2 never fetched; 1 entry delivered; 1 mark waiting")
	want(t, src(feeds, "https://a.example/feed", "etc/fetch/marks"), "S\turn:2\thttps://a.example/2\tTwo\t1767323046\n")

	if _, told, err = move(t, Options{Dir: feeds, Reader: "r2e"}); err != nil {
		t.Fatal(err)
	}
	has(t, told, "2 feeds subscribed, 0 already; 1 mark waiting")
	want(t, src(feeds, "https://off.example/", "etc/fetch/paused"), "on\n")
	want(t, src(feeds, "https://r.example/feed", "etc/fetch/marks"), "S\turn:r:1\t\t\n")
	want(t, src(feeds, "https://r.example/feed", "etc/view/alias"), "the-r\n")
	if err := os.Remove(filepath.Join(h, ".local/share/rss2email.json")); err != nil {
		t.Fatal(err)
	}
	_, told, err = move(t, Options{Dir: feeds, Reader: "r2e", Paths: []string{filepath.Join(h, "elsewhere")}})
	has(t, told, "does not exist: entries that rss2email mailed will be unread", "1 feed subscribed")
	if err != nil {
		t.Error(err)
	}
}

// A feed that a fetcher has is waited for.
func TestWaits(t *testing.T) {
	at := filepath.Join(t.TempDir(), "feeds")
	from := newsboatDir(t)
	if _, _, err := move(t, Options{Dir: at, Reader: "newsboat", Paths: []string{from}}); err != nil {
		t.Fatal(err)
	}
	d, err := lektordir.Open(at, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := feedfiles.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	hash := lektordir.FeedHash("https://a.example/feed.xml")
	txn, err := w.Begin(hash)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := &waiter{tell: "waiting for it", then: cancel}
	s := cmdline.NewStreams("lektor-import", strings.NewReader(""), &bytes.Buffer{}, told)
	err = Import(ctx, Options{Dir: at, Reader: "newsboat", Paths: []string{from}, Now: func() time.Time { return noon }}, s)
	if err == nil || ctx.Err() == nil {
		t.Errorf("got %v; want err != nil and ctx.Err() != nil", err)
	}
	told = &waiter{tell: "waiting for it", then: txn.Close}
	s = cmdline.NewStreams("lektor-import", strings.NewReader(""), &bytes.Buffer{}, told)
	if err := Import(t.Context(), Options{Dir: at, Reader: "newsboat", Paths: []string{from}, Now: func() time.Time { return noon }}, s); err != nil {
		t.Error(err)
	}
	if !feedfiles.Subscribed(d, hash) {
		t.Error("it is not subscribed to")
	}
}

// TestAfterAKill: a run finishes what a killed one has left in tmp/, so that check finds nothing.
func TestAfterAKill(t *testing.T) {
	d, err := lektordir.Create(filepath.Join(t.TempDir(), "feeds"), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := feedfiles.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"https://a.example/feed.xml", "https://c.example/feed"} {
		txn, err := w.Begin(lektordir.FeedHash(url))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := txn.Add(t.Context(), commit.Version{Files: maps.All(map[string][]byte{"title": []byte("One")})}); err != nil {
			t.Fatal(err)
		}
		txn.Abandon()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := d.Check(t.Context(), false)
	if len(found) == 0 || err != nil {
		t.Fatalf("a killed run left nothing: %v", err)
	}
	before, err := testdir.Files(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	from := newsboatDir(t)
	if _, told, err := move(t, Options{Dir: d.Path(), Reader: "newsboat", Paths: []string{from}, Yes: true, DryRun: true}); err != nil {
		t.Fatal(err, told)
	}
	if after, err := testdir.Files(d.Path()); err != nil || !maps.Equal(before, after) {
		t.Errorf("a dry run changes the lektor-dir: %v", err)
	}
	if _, told, err := move(t, Options{Dir: d.Path(), Reader: "newsboat", Paths: []string{from}, Yes: true}); err != nil {
		t.Fatal(err, told)
	}
	if found, err := d.Check(t.Context(), false); len(found) > 0 || err != nil {
		t.Errorf("check finds %v, %v", found, err)
	}
}

// waiter does something when a text was told.
type waiter struct {
	tell string
	then func()
}

func (w *waiter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.tell) {
		w.then()
	}
	return len(p), nil
}

// readAll reads a cache, and closes it.
func readAll(t *testing.T, path string) ([]importfmt.Item, []string, error) {
	c, err := openCache(t.Context(), path)
	if c == nil {
		return nil, nil, err
	}
	defer c.close()
	return c.items, c.notes, err
}

// The killfile becomes rules: those of the user's own stay, none is there twice, and
// a warning names each that cannot be translated.
func TestKillfile(t *testing.T) {
	from := newsboatDir(t)
	config := `ignore-article "*" "title =~ \"^Ad:\" or author = \"Bot -> x\""
ignore-article "https://a.example/feed.xml" "title = \"Sponsor\""
ignore-article "filter:~/bin/clean -x:https://c.example/feed" "content =~ \"x\""
ignore-article "https://a.example/feed.xml" "unread_count > 3"
ignore-article "regex:.*" "title =~ \"x\""
ignore-article "*"
`
	if err := os.WriteFile(filepath.Join(from, "config"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "feeds")
	rules := filepath.Join(at, entrystore.RulesFile)
	if err := os.MkdirAll(filepath.Dir(rules), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rules, []byte("is:unread -> flag x"), 0o666); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, told, err := move(t, Options{Dir: at, Reader: "newsboat", Paths: []string{from}})
		if err != nil {
			t.Fatal(err)
		}
		has(t, told, "unread_count > 3", "regular expression cannot select feeds: ignore-article", "it has no expression")
		want(t, rules, `is:unread -> flag x
title:/^Ad:/i or author:/^Bot -> x$/ -> trash
feed:"https://a.example/feed.xml" (title:/^Sponsor$/) -> trash
feed:"https://c.example/feed" (text:/x/i) -> trash
`)
	}
}
