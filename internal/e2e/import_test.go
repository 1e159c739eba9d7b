package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/server"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// newsboat is a user's newsboat, with its files.
type newsboat struct {
	t    *testing.T
	home string
	path string // path of the program
}

// run runs newsboat with files of its own unless args say otherwise.
func (n *newsboat) run(args ...string) string {
	n.t.Helper()
	cmd := exec.Command(n.path, args...)
	cmd.Dir = n.home
	cmd.Env = append(os.Environ(), "HOME="+n.home, "XDG_CONFIG_HOME="+n.home+"/none", "XDG_DATA_HOME="+n.home+"/none", "TERM=dumb", "no_proxy=*", "http_proxy=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		n.t.Fatalf("newsboat %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// write writes a file in newsboat's directory.
func (n *newsboat) write(name, text string) string {
	n.t.Helper()
	path := filepath.Join(n.home, ".newsboat", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		n.t.Fatal(err)
	}
	return path
}

// unread returns the number of unread entries that newsboat shows for one line of urls.
// newsboat runs on a copy of its cache, as it removes the entries of other lines there.
func (n *newsboat) unread(line string) int {
	n.t.Helper()
	cache, err := os.ReadFile(filepath.Join(n.home, ".newsboat/cache.db"))
	if err != nil {
		n.t.Fatal(err)
	}
	at := n.t.TempDir()
	urls, db := filepath.Join(at, "urls"), filepath.Join(at, "cache.db")
	if err := os.WriteFile(db, cache, 0o666); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(urls, []byte(line+"\n"), 0o666); err != nil {
		n.t.Fatal(err)
	}
	out := n.run("-u", urls, "-c", db, "-x", "print-unread")
	m := regexp.MustCompile(`(\d+) unread`).FindStringSubmatch(out)
	if m == nil {
		n.t.Fatalf("newsboat says %q", out)
	}
	count, _ := strconv.Atoi(m[1])
	return count
}

// found returns what newsboat's list of feeds shows for each query: the number of unread
// entries that match, and of all.
func (n *newsboat) found(queries map[string]string) map[string]string {
	n.t.Helper()
	n.write("config", "cleanup-on-quit no\nprepopulate-query-feeds yes\nshow-read-feeds yes\nfeedlist-format \"%t=%U/%c.\"\n")
	tmux := terminal.NewTmux(n.t, 100, 60, []string{"HOME=" + n.home, "XDG_CONFIG_HOME=" + n.home + "/none", "XDG_DATA_HOME=" + n.home + "/none"}, n.path+"\necho END")
	all := map[string]string{}
	for name := range queries {
		line := regexp.MustCompile(`(?m)^ *` + regexp.QuoteMeta(name) + `=(\d+/\d+)\.`)
		lines := tmux.Until("the query "+name, func(lines []string) bool { return line.MatchString(strings.Join(lines, "\n")) })
		all[name] = line.FindStringSubmatch(strings.Join(lines, "\n"))[1]
	}
	tmux.Keys("q")
	tmux.Await("END")
	return all
}

// rssItem returns an item. An empty guid or link is omitted.
func rssItem(i int, guid, link string) string {
	item := fmt.Sprintf("<item><title>Title %d</title><description>text %d &lt;b&gt;x&lt;/b&gt;</description>", i, i)
	if guid != "" {
		item += `<guid isPermaLink="false">` + guid + `</guid>`
	}
	if link != "" {
		item += "<link>" + link + "</link>"
	}
	if i%3 > 0 { // a third of the items has no date
		item += fmt.Sprintf("<pubDate>Mon, %02d Nov 2025 10:00:00 +0100</pubDate>", i%28+1)
	}
	return item + "</item>\n"
}

// TestNewsboatMoves: a user of newsboat moves by one command. Folders, names and the unread
// entries of each feed are the same, and newsboat's files are unchanged. newsboat itself makes
// the cache and the marks in it.
func TestNewsboatMoves(t *testing.T) {
	path, err := exec.LookPath("newsboat")
	if err != nil {
		t.Skip("newsboat is not installed")
	}
	bin := build(t)
	s, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rss := func(title, items string) string {
		return `<?xml version="1.0"?><rss version="2.0"><channel><title>` + title + "</title><link>" + s.URL("/") + "</link><description>d</description>\n" + items + "</channel></rss>"
	}
	var guids, made, upper, links, bare, home, left string
	for i := range 12 {
		// newsboat keeps one entry for a guid, in the feed where it first found it.
		link := fmt.Sprintf("http://127.0.0.1/item/%d?a=1&amp;b=2", i)
		guids += rssItem(i, fmt.Sprint("  urn:guid:", i, "\n"), link)
		made += rssItem(i, fmt.Sprint("urn:made:", i), link)
		upper += rssItem(i, fmt.Sprint("urn:upper:", i), link)
		links += rssItem(i, "", link)
		bare += rssItem(i, "", "")
		home += rssItem(i, fmt.Sprint("home-", i), "http://127.0.0.1/")
		left += rssItem(i, fmt.Sprint("left-", i), fmt.Sprintf("http://127.0.0.1/left/%d", i))
	}
	// When the user moves, their dates are some days later, and half of them have other guids.
	shifted, later := "", ""
	for i := range 6 {
		item := func(day int) string {
			guid := ""
			if i%2 == 0 {
				guid = fmt.Sprintf("<guid isPermaLink=\"false\">shifted-%d-%d</guid>", i, day)
			}
			return fmt.Sprintf("<item><title>Shifted %d</title>%[2]s<link>http://127.0.0.1/shifted/%[1]d</link><pubDate>Mon, %02[3]d Nov 2025 10:00:00 +0100</pubDate><description>d</description></item>\n", i, guid, day)
		}
		shifted, later = shifted+item(3), later+item(10)
	}
	var aged string
	for i, days := range []int{1, 29, 30, 31, 32, 400} {
		date := time.Now().Add(-time.Duration(days)*24*time.Hour - 6*time.Hour).UTC().Format(time.RFC1123Z)
		aged += fmt.Sprintf("<item><title>Aged %d</title><guid isPermaLink=\"false\">aged-%[1]d</guid><link>http://127.0.0.1/aged/%[1]d</link><pubDate>%s</pubDate><description>d</description></item>\n", i, date)
	}
	// newsboat keeps only one of these.
	twice := rssItem(20, "urn:twice", "http://127.0.0.1/twice") + rssItem(21, "urn:twice", "http://127.0.0.1/twice") + rssItem(22, "urn:once", "http://127.0.0.1/once")
	atom := `<feed xmlns="http://www.w3.org/2005/Atom"><title>Atom &amp; co</title><id>urn:f</id><updated>2025-11-01T00:00:00Z</updated>`
	for i := range 6 {
		atom += fmt.Sprintf(`<entry><title>A %d</title><id>urn:a:%d</id><link href="/a/%d"/><updated>2025-11-0%dT00:00:00Z</updated><content type="html">c</content></entry>`, i, i, i, i+1)
	}
	for name, doc := range map[string]string{
		"guids": rss("Guids", guids), "links": rss("Links", links), "bare": rss("Bare", bare), "home": rss("Home", home), "atom": atom + "</feed>", "upper": rss("UPPER", upper),
		"left": rss("Left", left), "shifted": rss("Shifted", shifted), "aged": rss("Aged", aged), "twice": rss("Twice", twice),
	} {
		s.Handle("/"+name, server.Doc("application/xml", doc))
	}
	n := &newsboat{t: t, home: t.TempDir(), path: path}
	script := n.write("bin/make", "#!/bin/sh\ncat <<'EOF'\n"+rss("Made", made)+"\nEOF\n")
	if err := os.Chmod(script, 0o777); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{ // by title
		"Guids":     s.URL("/guids") + ` tech news`,
		"My links":  s.URL("/links") + ` "~My links" "two words"`,
		"Bare":      s.URL("/bare"),
		"Home":      s.URL("/home") + ` tech`,
		"Atom & co": s.URL("/atom") + ` "~Atom & co" "a/b"`,
		"Made":      "exec:" + script + " scripts",
		"upper":     `"filter:tr U u:` + s.URL("/upper") + `" "~upper"`,
		"Left":      s.URL("/left"),
		"Twice":     s.URL("/twice"),
		"Shifted":   s.URL("/shifted") + ` "science/plants"`,
		"Aged":      s.URL("/aged") + ` science/plants tech`,
	}
	urls := "# feeds\n"
	for _, title := range slices.Sorted(maps.Keys(lines)) {
		urls += lines[title] + "\n"
	}
	urls += `"query:Unread tech:unread = \"yes\" and tags # \"tech\""` + "\n" + `"query:Sevens:title =~ \"\\<7$\""` + "\n" + `"query:Busy:unread_count > 3"` + "\n"
	queries := map[string]string{ // that newsboat and lektor evaluate alike
		"Plants": `unread = \"yes\" and tags # \"science/plants\"`, "Flagged": `flags =~ \"F\"`, "Letters": `flags =~ \"k\" or flags =~ \"F\"`, "Not flagged": `tags # \"science/plants\" and flags !~ \"F\"`,
		"Old": `age > 30 and tags # \"science/plants\"`, "Young": `age <= 30 and title =~ \"Aged\"`, "Between": `age between 29:31`, "Word": `title # \"Aged\"`,
	}
	for _, name := range slices.Sorted(maps.Keys(queries)) {
		urls += fmt.Sprintf("\"query:%s:%s\"\n", name, queries[name])
	}
	n.write("urls", urls)
	n.write("config", "cleanup-on-quit no\nreload-threads 1\n")
	n.run("-x", "reload")
	// newsboat imports read entries of another reader by guid.
	read := "urn:a:0\nurn:a:1\nhome-3\nhome-4\naged-1\nTitle 1\nTitle 2\nTitle 5\nleft-0\nleft-11\n"
	for i := range 12 {
		if i%2 == 0 {
			read += fmt.Sprintf("urn:made:%d\nurn:upper:%[1]d\n", i)
		}
	}
	list := n.write("read", read)
	n.run("-I", list)
	flagged := map[string]string{} // by title, for flags that a test cannot set by newsboat's keys
	if sqlite, err := exec.LookPath("sqlite3"); err == nil {
		// Entries with a line break in their guid cannot stand in its list.
		db := filepath.Join(n.home, ".newsboat/cache.db")
		if out, err := exec.Command(sqlite, db, "UPDATE rss_item SET unread = 0 WHERE title IN ('Title 4', 'Title 9') AND feedurl NOT LIKE '%/home' AND feedurl NOT LIKE '%/left'; UPDATE rss_item SET flags = 'k', deleted = 0 WHERE title = 'A 5'; UPDATE rss_item SET deleted = 1 WHERE title = 'A 4'; UPDATE rss_item SET unread = 0 WHERE title IN ('Shifted 0', 'Shifted 1', 'Shifted 2'); UPDATE rss_item SET flags = 'Fk' WHERE title IN ('Shifted 1', 'Aged 5'); UPDATE rss_item SET flags = 'FX' WHERE title = 'Shifted 4'; UPDATE rss_item SET flags = 'X' WHERE title = 'Aged 1'").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		flagged = map[string]string{"A 5": "k", "Shifted 1": "FSk", "Aged 5": "Fk", "Shifted 4": "F", "Aged 1": "S"}
	}
	found := n.found(queries)
	want := map[string]int{}
	total := 0
	for title, line := range lines {
		want[title] = n.unread(line)
		total += want[title]
	}
	if all := n.unread(strings.Join(slices.Collect(maps.Values(lines)), "\n")); all != total || total < 20 || total > 90 {
		t.Fatalf("newsboat has %d unread, and by feed %v", all, want)
	}
	before, err := testdir.Files(filepath.Join(n.home, ".newsboat"))
	if err != nil {
		t.Fatal(err)
	}
	if want["Left"] != 10 || want["Twice"] != 2 {
		t.Fatalf("newsboat has %v", want)
	}
	want["Twice"]++
	// Ten entries have disappeared from the feed since; one of them was read.
	s.Handle("/shifted", server.Doc("application/xml", rss("Shifted", later)))
	s.Handle("/left", server.Doc("application/xml", rss("Left", left[strings.Index(left, "<item><title>Title 10<"):])))

	feeds := filepath.Join(n.home, "feeds")
	run := func(program string, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, program), args...)
		cmd.Env = append(os.Environ(), "HOME="+n.home, "LEKTORDIR="+feeds, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME="+n.home+"/cache", "no_proxy=*")
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", program, args, err, stderr.String())
		}
		return string(out) + stderr.String()
	}
	output := run("lektor-fetch", "import", "--from", "newsboat", "--yes", "--gap", "0")
	if !strings.Contains(output, "Busy cannot be translated: unread_count > 3") {
		t.Errorf("got %s; want strings.Contains(output, \"Busy cannot be translated: unread_count > 3\")", output)
	}
	check := func() {
		t.Helper()
		got := map[string]int{}
		for line := range strings.Lines(run("lektor-view", "count", "--by", "feed", "-o", "json")) {
			var c struct {
				Feed   string
				Unread int
			}
			if err := json.Unmarshal([]byte(line), &c); err != nil {
				t.Fatal(err)
			}
			got[c.Feed] = c.Unread
		}
		if !maps.Equal(got, want) {
			t.Errorf("unread: %v, in newsboat %v", got, want)
		}
	}
	check()
	folders := map[string]string{}
	for line := range strings.Lines(run("lektor-fetch", "ls", "-o", `{{.title}}|{{.categories | join ","}}`)) {
		title, list, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		folders[title] = list
	}
	if w := map[string]string{"Guids": "tech,news", "My links": "two words", "Bare": "", "Home": "tech", "Atom & co": `a/b`, "Made": "scripts", "upper": "", "Left": "", "Twice": "", "Shifted": "science/plants", "Aged": "science/plants,tech"}; !maps.Equal(folders, w) {
		t.Errorf("folders: %v, not %v", folders, w)
	}
	if got, w := strings.TrimSpace(run("lektor-view", "count", "-o", "unread", `query:"Unread tech"`)), fmt.Sprint(want["Guids"]+want["Home"]+want["Aged"]); got != w {
		t.Errorf("the query has %s entries, not %s", got, w)
	}
	if got := strings.TrimSpace(run("lektor-view", "count", "-o", "all", "query:Sevens")); got != "7" { // without the entries of Atom
		t.Errorf("the other has %s", got)
	}
	flags := map[string]string{}
	for line := range strings.Lines(run("lektor-view", "ls", "-a", "-o", "{{.title}}|{{.flags}}")) {
		title, letters, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "|")
		flags[title] = letters
	}
	for title, w := range flagged {
		if got := flags[title]; got != w {
			t.Errorf("%s has the flags %q, want %q", title, got, w)
		}
	}
	for name, w := range found {
		q := "query:" + strconv.Quote(name)
		if got := strings.TrimSpace(run("lektor-view", "count", "-o", "{{.unread}}/{{.all}}", q)); got != w {
			t.Errorf("the query %s (%s) finds %s, newsboat %s", name, queries[name], got, w)
		}
	}
	if !strings.Contains(output, `the flag 'X' is ignored`) || !strings.Contains(output, `"Aged 1"`) {
		t.Errorf("output lacks the flag X: %s", output)
	}
	after, err := testdir.Files(filepath.Join(n.home, ".newsboat"))
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(before, after) {
		t.Error("newsboat's files were written to")
	}

	// Import again: new entries are unread, and read entries stay read.
	s.Handle("/home", server.Doc("application/xml", rss("Home", rssItem(99, "home-99", "http://127.0.0.1/")+home)))
	want["Home"]++
	run("lektor-fetch", "import", "--from", "newsboat", "--yes", "--gap", "0")
	run("lektor-fetch", "update", "-a", "--gap", "0")
	check()
}

// TestMarksWaitForTheirEntries: an entry that does not exist at the import is marked when it is
// delivered, also after a run that was killed after the delivery, and if the feed could not be
// fetched at first.
func TestMarksWaitForTheirEntries(t *testing.T) {
	bin := build(t)
	s, err := server.New("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Handle("/feed", server.Answer(http.StatusServiceUnavailable, ""), server.Doc("application/xml", server.RSS("Feed", 1, 2)),
		server.Doc("application/xml", server.RSS("Feed", 1, 2)), server.Doc("application/xml", server.RSS("Feed", 1, 4)))
	at := t.TempDir()
	feeds := filepath.Join(at, "feeds")
	sfeed := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(at, "feeds of sfeed"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	run := func(status int, args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
		cmd.Env = append(os.Environ(), "HOME="+at, "LEKTORDIR="+feeds, "SFEED_URL_FILE="+filepath.Join(at, "read"), "XDG_CACHE_HOME="+at+"/cache", "no_proxy=*")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
			t.Fatalf("got %q: %v\n%s; want cmd.ProcessState != nil and cmd.ProcessState.ExitCode() == status", args, err, out)
		}
		return string(out)
	}
	// The links of the entries, as the feed has them.
	links := regexp.MustCompile(`<link>([^<]*)</link>`).FindAllStringSubmatch(server.RSS("Feed", 1, 4), -1)[1:] // without the link of the feed
	var read, tsv string
	for _, l := range links {
		if strings.HasSuffix(l[1], "/1") || strings.HasSuffix(l[1], "/3") {
			read += l[1] + "\n"
		}
		tsv += "\tT\t" + l[1] + "\t\t\t\t\t\t\n"
	}
	if strings.Count(read, "\n") != 2 {
		t.Fatalf("%q of %q", read, links)
	}
	sfeed("sfeedrc", "sfeedpath='"+at+"/feeds of sfeed'\nfeeds() {\n\tfeed F "+s.URL("/feed")+"\n}\n")
	sfeed("feeds of sfeed/F", tsv)
	sfeed("read", read)

	run(75, "lektor-fetch", "import", "--from", "sfeed", "--gap", "0", at)
	run(0, "lektor-fetch", "update", "--gap", "0", s.URL("/feed"))
	// These are the second entry, and the fourth, which the feed does not have yet.
	if got := run(0, "lektor-view", "count"); !strings.Contains(got, "2 unread of 3") {
		t.Errorf("got %s; want strings.Contains(got, \"2 unread of 3\")", got)
	}
	// Killed between delivery and mark: the entry is in new/, and its mark waits.
	taken, err := filepath.Glob(filepath.Join(feeds, "cur/*/*;2,S"))
	if err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	back := strings.TrimSuffix(strings.Replace(taken[0], "/cur/", "/new/", 1), ";2,S")
	if err := os.Rename(taken[0], back); err != nil {
		t.Fatal(err)
	}
	marks, err := filepath.Glob(filepath.Join(feeds, "src/*/etc/fetch/marks"))
	if err != nil || len(marks) != 1 {
		t.Fatal(marks, err)
	}
	text, err := os.ReadFile(marks[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(marks[0], append([]byte("S\t\t"+strings.Fields(read)[0]+"\t\n"), text...), 0o666); err != nil {
		t.Fatal(err)
	}
	run(0, "lektor-fetch", "update", "--gap", "0", s.URL("/feed")) // the same document
	if got := run(0, "lektor-view", "count"); !strings.Contains(got, "2 unread of 3") {
		t.Errorf("got %s; want strings.Contains(got, \"2 unread of 3\")", got)
	}
	out := run(0, "lektor-fetch", "update", "--gap", "0", "-o", "path", s.URL("/feed"))
	if strings.Count(out, "/new/") != 1 || strings.Count(out, "/cur/") != 1 {
		t.Errorf("the delivered entries are elsewhere than\n%s", out)
	}
	if got := run(0, "lektor-view", "count"); !strings.Contains(got, "2 unread of 4") {
		t.Errorf("got %s; want strings.Contains(got, \"2 unread of 4\")", got)
	}
	if _, err := os.Stat(marks[0]); !os.IsNotExist(err) {
		t.Errorf("marks are left: %v", err)
	}
}

// TestImportNothing: an import that finds no file fails with a message.
func TestImportNothing(t *testing.T) {
	at := t.TempDir()
	cmd := exec.Command(filepath.Join(build(t), "lektor-fetch"), "import", "--from", "newsboat")
	cmd.Env = append(os.Environ(), "HOME="+at, "LEKTORDIR="+filepath.Join(at, "feeds"), "XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "PATH="+build(t)+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("got %v\n%s; want err != nil and cmd.ProcessState.ExitCode() == 1", err, out)
	}
	if want := "lektor-fetch: import --from newsboat: something was not moved\n"; !strings.Contains(string(out), "no such file") || !strings.HasSuffix(string(out), want) {
		t.Errorf("it says\n%s", out)
	}
}
