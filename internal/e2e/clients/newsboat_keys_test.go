package clients

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// The feeds of TestNewsboatKeys, in the order of newsboat's list. All entries are unread but
// beta-2 and those of Delta. An entry is named by its feed and its number; number 1 is the newest.
// alpha-1 has twelve links, alpha-2 a long text, and beta-1 an enclosure.
var keyFeeds = []struct {
	name, tag string
	titles    []string
}{
	{"Gamma", "tech", []string{"one gamma-1", "two gamma-2"}},
	{"Delta", "zeta", []string{"one delta-1"}},
	{"Alpha", "", []string{"kiwi alpha-1", "apple alpha-2", "mango alpha-3"}},
	{"Beta", "", []string{"one beta-1", "two beta-2", "needle beta-3"}},
}

// extraFeed is a feed that both programs have only after they read their lists of feeds again.
const extraFeed = "Epsilon"

var (
	entryName  = regexp.MustCompile(`\b(alpha|beta|gamma|delta|epsilon)-\d`)
	feedName   = regexp.MustCompile(`\b(Alpha|Beta|Gamma|Delta|Epsilon)\b`)
	readAtHome = []string{"beta-2", "delta-1"}
)

func feedURL(feed string) string { return "http://feeds.example/" + strings.ToLower(feed) }

// documentOf returns the RSS document of a feed.
func documentOf(feed string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>%s</title><link>http://site.example/%s</link><description>d</description>`, feed, feed)
	for _, f := range keyFeeds {
		for i, title := range f.titles {
			if f.name != feed {
				continue
			}
			name, links, more := entryName.FindString(title), 2, ""
			switch name {
			case "alpha-1":
				links = 12
			case "alpha-2":
				for n := range 40 {
					more += fmt.Sprintf("<p>Line %02d</p>", n+1)
				}
			case "beta-1":
				more = `]]></description><enclosure url="http://feeds.example/pod.mp3" type="audio/mpeg" length="3"/><description><![CDATA[`
			}
			fmt.Fprintf(&b, `<item><title>%s</title><link>http://page.example/%s</link><guid>%s</guid><pubDate>Mon, %02d Jan 2024 10:00:00 GMT</pubDate><description><![CDATA[<p>Text of %s:`, title, name, name, 20-i, name)
			for n := range links {
				fmt.Fprintf(&b, ` <a href="http://link.example/%s/%d">link</a>`, name, n+1)
			}
			if enclosure, ok := strings.CutPrefix(more, "]]></description>"); ok {
				enclosure, _, _ = strings.Cut(enclosure, "<description>")
				fmt.Fprintf(&b, "</p>]]></description>%s</item>", enclosure)
			} else {
				fmt.Fprintf(&b, "</p>%s]]></description></item>", more)
			}
		}
	}
	return b.String() + "</channel></rss>"
}

// keyHome is the directory of one program in one row, with the log of the commands that the
// program starts, and the proxy that serves its feeds and records its requests.
type keyHome struct {
	t     *testing.T
	path  string
	proxy *httptest.Server

	mu       sync.Mutex
	requests []string
}

// stubText is a program in place of the browser and so on. It logs its name and its arguments,
// and the entry of its standard input if its name is pipe.
const stubText = `#!/bin/sh
cd "${0%/*}" || exit
case $1 in
pipe) set -- pipe "$(grep -o '[a-z]*-[0-9]' | head -n 1)" ;;
bookmark) set -- bookmark "$2" "$3" ;;
editor) set -- editor ;;
esac
echo "$*" >>log
`

func newKeyHome(t *testing.T) *keyHome {
	t.Helper()
	path, err := os.MkdirTemp("", "keys") // the name of the test has characters that a shell would interpret
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A program that was just killed may still write.
		for end := time.Now().Add(10 * time.Second); os.RemoveAll(path) != nil && time.Now().Before(end); time.Sleep(pollEvery) {
		}
	})
	h := &keyHome{t: t, path: path}
	h.proxy = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.requests = append(h.requests, "GET "+r.URL.Path)
		h.mu.Unlock()
		name := strings.TrimPrefix(r.URL.Path, "/")
		for _, feed := range append([]string{extraFeed}, feedNames()...) {
			if strings.ToLower(feed) == name {
				w.Header().Set("Content-Type", "application/rss+xml")
				fmt.Fprint(w, documentOf(feed))
				return
			}
		}
		if name == "pod.mp3" {
			w.Header().Set("Content-Type", "audio/mpeg")
			fmt.Fprint(w, "pod")
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(h.proxy.Close)
	if err := os.WriteFile(h.at("stub"), []byte(stubText), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(h.at("saved"), 0o700); err != nil {
		t.Fatal(err)
	}
	return h
}

func feedNames() (names []string) {
	for _, f := range keyFeeds {
		names = append(names, f.name)
	}
	return names
}

func (h *keyHome) at(name string) string { return filepath.Join(h.path, name) }

func (h *keyHome) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(h.at(name), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// log returns what programs were started with, which files were saved or queued, and the requests.
func (h *keyHome) log() (lines []string) {
	if data, err := os.ReadFile(h.at("log")); err == nil {
		lines = strings.Split(strings.TrimSpace(string(data)), "\n")
	}
	files, _ := filepath.Glob(h.at("saved/*"))
	for _, name := range files {
		data, _ := os.ReadFile(name)
		lines = append(lines, "saved "+entryName.FindString(string(data)))
	}
	if data, err := os.ReadFile(h.at(".newsboat/queue")); err == nil {
		url, _, _ := strings.Cut(string(data), " ")
		lines = append(lines, "queued "+url)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	requests := slices.Clone(h.requests)
	slices.Sort(requests)
	return append(lines, slices.Compact(requests)...)
}

// seenState is what a user sees of a program, and has of it on the disk.
type seenState struct {
	pane   string // as in keyRow, or another name for another dialog
	at     string // the feed, entry, URL or folder of the cursor, or the open entry
	scroll string // of the open entry
	rows   []string
	marks  map[string]string // by entry: the letters u unread, d deleted, and flags
	log    []string
}

// effect describes the change from one state to another. It has the rows of another pane only if
// withRows is set.
func (s *seenState) effect(now *seenState, withRows bool) string {
	var all []string
	if now.pane != s.pane || now.at != s.at {
		all = append(all, strings.TrimSpace("at "+now.pane+" "+now.at))
	} else if now.scroll != s.scroll {
		all = append(all, "text "+now.scroll)
	}
	if !slices.Equal(now.rows, s.rows) && (withRows || now.pane == s.pane) {
		all = append(all, "rows "+strings.Join(now.rows, " "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.marks)) {
		if old, is := s.marks[name], now.marks[name]; old != is {
			all = append(all, fmt.Sprintf("%s %s→%s", name, cmp.Or(old, "-"), cmp.Or(is, "-")))
		}
	}
	for _, line := range now.log {
		if !slices.Contains(s.log, line) {
			all = append(all, line)
		}
	}
	return strings.Join(all, ", ")
}

// textAt describes the position of the text of alpha-2 on the screen. first is on its first line.
func textAt(screen, first string) string {
	switch {
	case strings.Contains(screen, first):
		return "top"
	case strings.Contains(screen, "Line 01"):
		return "near the top"
	case strings.Contains(screen, "Line 40"):
		return "end"
	case strings.Contains(screen, "Line"):
		return "middle"
	}
	return ""
}

// keyProgram is one of the two programs in a row of the table.
type keyProgram interface {
	// state reads the screen and the log. Marks are on the disk, and are read on request.
	state(marks bool) *seenState
	home() *keyHome
	screen() *terminal.Tmux
	// way returns the keys from a start to the cursor on a feed.
	way(feed string) string
	// more makes the program's list of feeds longer.
	more()
}

// fixtures are the directories that each row gets copies of.
type fixtures struct{ newsboat, lektor string }

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
}

// The screen has less than 60 columns and 20 lines, so that lektor shows one pane.
const keyColumns, keyLines = 58, 18

// newsboatKeys is newsboat in a row.
type newsboatKeys struct {
	*keyHome
	x *terminal.Tmux
}

func (n *newsboatKeys) home() *keyHome         { return n.keyHome }
func (n *newsboatKeys) screen() *terminal.Tmux { return n.x }

func (n *newsboatKeys) configure() []string {
	urls := ""
	for _, f := range keyFeeds {
		urls += strings.TrimSpace(feedURL(f.name)+" "+f.tag) + "\n"
	}
	n.write("urls", urls)
	n.write("config", fmt.Sprintf(`use-proxy yes
proxy "%s"
browser "%s browser %%u"
bookmark-cmd "%[2]s bookmark"
bookmark-autopilot yes
save-path "%s"
define-filter "needle" "title =~ \"needle\""
color listfocus black white
color listfocus_unread black white
download-retries 1
`, strings.TrimPrefix(n.proxy.URL, "http://"), n.at("stub"), n.at("saved")))
	return []string{"newsboat", "-C", n.at("config"), "-u", n.at("urls"), "-c", n.at("cache.db")}
}

func (n *newsboatKeys) start() {
	n.t.Helper()
	args := n.configure()
	n.x = terminal.NewTmux(n.t, keyColumns, keyLines, []string{"HOME=" + n.path, "TZ=UTC", "VISUAL=" + n.at("stub") + " editor"}, strings.Join(args, " ")+"; echo ENDED")
}

func (n *newsboatKeys) way(feed string) string {
	return strings.Repeat("<down> ", slices.Index(feedNames(), feed))
}

func (n *newsboatKeys) more() {
	data, err := os.ReadFile(n.at("urls"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.write("urls", string(data)+feedURL(extraFeed)+` "~`+extraFeed+`"`+"\n")
}

func (n *newsboatKeys) state(marks bool) *seenState {
	n.t.Helper()
	s := &seenState{marks: map[string]string{}, log: n.log()}
	lines := n.x.Styled()
	title, last := terminal.Plain(lines[0]), terminal.Plain(lines[len(lines)-1])
	for _, p := range []struct{ text, pane string }{
		{"eeds (", "feeds"}, {"Articles in feed", "list"}, {"Search result", "list"}, {"Article '", "entry"}, {"URLs", "links"},
		{"Select Tag", "folders"}, {"Select Filter", "queries"}, {"Help", "help"}, {"Save File", "save"}, {"Dialogs", "dialogs"},
	} {
		if strings.Contains(title, p.text) {
			s.pane = p.pane
			break
		}
	}
	if strings.Contains(strings.Join(lines, "\n"), "ENDED") {
		s.pane = "ended"
	}
	if regexp.MustCompile(`(:|\?)\s*$|^:`).MatchString(last) {
		s.pane = "prompt"
	}
	s.fill(lines, func(line string) bool { return strings.Contains(line, "47m") || strings.Contains(line, "47;") }, "Feed: ")
	if !marks {
		return s
	}
	for _, row := range n.items() {
		mark := ""
		if row[1] == "1" {
			mark += "u"
		}
		if row[2] == "1" {
			mark += "d"
		}
		s.marks[entryName.FindString(row[0])] = mark + row[3]
	}
	return s
}

// items returns the fields of the entries in newsboat's database. It reads a copy, since newsboat
// loses a change if another program has locked the database. A copy that was made during a change
// is made again.
func (n *newsboatKeys) items() (rows [][]string) {
	n.t.Helper()
	var out []byte
	for end := time.Now().Add(time.Minute); ; time.Sleep(pollEvery) {
		data, err := os.ReadFile(n.at("cache.db"))
		if err == nil {
			err = os.WriteFile(n.at("copy.db"), data, 0o600)
		}
		if err == nil {
			out, err = exec.Command("sqlite3", "-separator", "\x1f", n.at("copy.db"), "pragma quick_check; select title, unread, deleted, flags from rss_item").CombinedOutput()
		}
		if rest, ok := bytes.CutPrefix(out, []byte("ok\n")); ok && err == nil {
			for line := range strings.Lines(string(rest)) {
				rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\x1f"))
			}
			return rows
		}
		if time.Now().After(end) {
			n.t.Fatalf("newsboat's database: %v\n%s", err, out)
		}
	}
}

// pollEvery is the time between two looks at a program.
const pollEvery = 50 * time.Millisecond

// fill sets the rows and the cursor, or the open entry.
func (s *seenState) fill(lines []string, cursor func(line string) bool, first string) {
	plain := terminal.Plain(strings.Join(lines[1:], "\n"))
	switch s.pane {
	case "feeds", "list", "links", "folders", "queries":
	case "entry":
		s.at, s.scroll = entryName.FindString(terminal.Plain(lines[0])), textAt(plain, first)
		return
	default:
		return
	}
	for _, line := range lines[1 : len(lines)-2] {
		text := terminal.Plain(line)
		name := entryName.FindString(text)
		switch s.pane {
		case "feeds":
			if name = feedName.FindString(text); name == "" && cursor(line) {
				s.at = strings.Trim(text, ">+- 0123456789") // a line of lektor alone
			}
		case "links":
			name = regexp.MustCompile(`http://\S*`).FindString(text)
		case "folders", "queries":
			name = regexp.MustCompile(`\b(tech|zeta|needle)\b`).FindString(text)
		}
		if name == "" {
			continue
		}
		s.rows = append(s.rows, name)
		if cursor(line) {
			s.at = name
		}
	}
}

// lektorKeys is lektor-view in a row.
type lektorKeys struct {
	*keyHome
	bin string
	x   *terminal.Tmux
}

func (l *lektorKeys) home() *keyHome         { return l.keyHome }
func (l *lektorKeys) screen() *terminal.Tmux { return l.x }

func (l *lektorKeys) env() []string {
	return []string{
		"HOME=" + l.path, "TZ=UTC", "LC_ALL=C.UTF-8", "LEKTORDIR=" + l.at("lektor"), "XDG_CACHE_HOME=" + l.at("cache"), "PATH=" + l.bin + ":" + os.Getenv("PATH"),
		"HTTP_PROXY=" + l.proxy.URL, "http_proxy=" + l.proxy.URL, "NO_PROXY=", "no_proxy=", "GORACE=atexit_sleep_ms=0",
		"VISUAL=" + l.at("stub") + " editor", "LEKTOR_BROWSER=" + l.at("stub") + " browser", "LEKTOR_BOOKMARK=" + l.at("stub") + " bookmark", "LEKTOR_PLAYER=" + l.at("stub") + " player",
	}
}

func (l *lektorKeys) run(name string, args ...string) {
	l.t.Helper()
	cmd := exec.Command(filepath.Join(l.bin, name), args...)
	cmd.Env = append(os.Environ(), l.env()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		l.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

func (l *lektorKeys) start() {
	l.t.Helper()
	l.x = terminal.NewTmux(l.t, keyColumns, keyLines, l.env(), "lektor-view tui --keys newsboat; echo ENDED")
}

func (l *lektorKeys) way(feed string) string {
	return strings.Repeat("<down> ", map[string]int{"Gamma": 4, "Delta": 6, "Alpha": 7, "Beta": 8}[feed])
}

func (l *lektorKeys) more() {
	l.run("lektor-fetch", "add", "--as-is", "--no-fetch", "--title", extraFeed, feedURL(extraFeed))
}

func (l *lektorKeys) state(marks bool) *seenState {
	l.t.Helper()
	s := &seenState{marks: map[string]string{}, log: l.log()}
	lines := l.x.Screen()
	title, last := lines[0], lines[len(lines)-1]
	switch {
	case strings.Contains(strings.Join(lines, "\n"), "ENDED"):
		s.pane = "ended"
	case regexp.MustCompile(`^(/|:|flags, as|save entry as|pipe the text|link number|download to)|\(y/n\)`).MatchString(last):
		s.pane = "prompt"
	case strings.HasPrefix(title, " feeds"):
		s.pane = "feeds"
	case strings.HasPrefix(title, " links"):
		s.pane = "links"
	case strings.HasPrefix(title, " the folders"):
		s.pane = "folders"
	case strings.HasPrefix(title, " the saved"):
		s.pane = "queries"
	case strings.HasPrefix(title, " the keys"):
		s.pane = "help"
	case strings.HasPrefix(title, " sort "):
		s.pane = "orders"
	case strings.HasPrefix(title, " downloads"):
		s.pane = "downloads"
	case entryName.MatchString(title):
		s.pane = "entry"
	default:
		s.pane = "list"
	}
	s.fill(lines, func(line string) bool { return strings.HasPrefix(line, ">") }, " Title: ")
	if !marks {
		return s
	}
	names, _ := filepath.Glob(l.at("lektor/[nc][eu][wr]/*/*"))
	for _, path := range names {
		text, err := os.ReadFile(filepath.Join(path, "title"))
		if err != nil {
			continue // renamed meanwhile
		}
		_, flags, _ := strings.Cut(filepath.Base(path), ";2,")
		mark := ""
		if !strings.Contains(flags, "S") {
			mark = "u"
		}
		if strings.Contains(flags, "T") {
			mark += "d"
		}
		s.marks[entryName.FindString(string(text))] = mark + strings.NewReplacer("S", "", "T", "", "d", "").Replace(flags)
	}
	return s
}

// makeFixtures fetches the feeds once with each program.
func makeFixtures(t *testing.T) fixtures {
	t.Helper()
	n := &newsboatKeys{keyHome: newKeyHome(t)}
	args := n.configure()
	cmd := exec.Command(args[0], append(args[1:], "-x", "reload")...)
	cmd.Env = append(os.Environ(), "HOME="+n.path, "TZ=UTC", "LC_ALL=C.UTF-8", "TERM=xterm")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("newsboat: %v\n%s", err, out)
	}
	l := &lektorKeys{keyHome: newKeyHome(t), bin: testdir.Bin(t)}
	for _, f := range keyFeeds {
		args := []string{"add", "--as-is", "--gap", "0"}
		if f.tag != "" {
			args = append(args, "--category", f.tag)
		}
		l.run("lektor-fetch", append(args, feedURL(f.name))...)
	}
	titles, _ := filepath.Glob(l.at("lektor/new/*/*/title"))
	for _, path := range titles {
		if text, err := os.ReadFile(path); err == nil && slices.Contains(readAtHome, entryName.FindString(string(text))) {
			l.run("lektor-view", "mark", "--set", "S", filepath.Dir(path))
		}
	}
	for _, name := range readAtHome {
		if out, err := exec.Command("sqlite3", n.at("cache.db"), "update rss_item set unread = 0 where guid = '"+name+"'").CombinedOutput(); err != nil {
			t.Fatalf("sqlite3: %v\n%s", err, out)
		}
	}
	if err := os.MkdirAll(l.at("lektor/etc/view/query"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.write("lektor/etc/view/query/needle", "needle\n")
	for _, path := range []string{n.at("saved"), l.at("saved"), n.at("cache.db.lock")} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	return fixtures{n.path, l.path}
}

// keyToken is a key, a "text" to type, or a {text} to wait for.
var keyToken = regexp.MustCompile(`"[^"]*"|\{[^}]*\}|<[^>]+>|\S`)

// tmuxKeys are tmux's names of keys.
var tmuxKeys = map[string]string{
	"<space>": "Space", "<enter>": "Enter", "<esc>": "Escape", "<tab>": "Tab", "<S-tab>": "BTab", "<backspace>": "BSpace", "<pageup>": "PPage", "<pagedown>": "NPage",
	"<up>": "Up", "<down>": "Down", "<left>": "Left", "<right>": "Right", "<home>": "Home", "<end>": "End", "<lt>": "<", "<hash>": "#",
}

// press presses the keys of a row.
func press(p keyProgram, keys string) {
	p.home().t.Helper()
	for _, s := range keyToken.FindAllString(keys, -1) {
		switch {
		case s == "{more}":
			p.more()
		case s[0] == '{':
			p.screen().Await(strings.Trim(s, "{}"))
		case s[0] == '"' && len(s) > 1:
			p.screen().Type(strings.ReplaceAll(strings.Trim(s, `"`), "HOME", p.home().path))
		default:
			key := s
			if name, ok := tmuxKeys[s]; ok {
				key = name
			} else if len(s) > 1 {
				key = strings.Trim(s, "<>")
			}
			p.screen().Keys(key)
		}
	}
}

// awaitState polls the state until done is true for it; ok is false after the limit.
func awaitState(p keyProgram, limit time.Duration, marks bool, done func(s *seenState) bool) (s *seenState, ok bool) {
	for end := time.Now().Add(limit); ; time.Sleep(pollEvery) {
		if s = p.state(marks); done(s) || time.Now().After(end) {
			return s, done(s)
		}
	}
}

// keyRow is a row of the table of keys.
type keyRow struct {
	// pane is feeds, list, entry, links, folders or queries. An entry may follow, where the row
	// begins (default alpha-2).
	pane string
	// keys are pressed one after the other, and have an effect, see seenState.effect. Several
	// possible effects have " or " between them. Without lektorKeys or lektorEffect, lektor is the
	// same.
	keys, effect             string
	lektorKeys, lektorEffect string
	manual                   string // a part of the manual's text about the difference
	of                       string // the key that the row is about, if it is not the first one
}

// begin goes to the pane of a row, and returns the state there.
func begin(p keyProgram, start string) *seenState {
	t := p.home().t
	t.Helper()
	pane, entry, _ := strings.Cut(start, " ")
	entry = cmp.Or(entry, "alpha-2")
	feed := strings.ToUpper(entry[:1]) + entry[1:strings.IndexByte(entry, '-')]
	step := func(keys, pane, at string) {
		t.Helper()
		press(p, keys)
		if s, ok := awaitState(p, time.Minute, false, func(s *seenState) bool { return s.pane == pane && (at == "" || s.at == at) }); !ok {
			t.Fatalf("%T does not get to %s %s by %s; it is at %s %s\n%s", p, pane, at, keys, s.pane, s.at, strings.Join(p.screen().Screen(), "\n"))
		}
	}
	awaitState(p, time.Minute, false, func(s *seenState) bool { return s.pane == "feeds" && slices.Contains(s.rows, "Delta") })
	step(p.way(feed), "feeds", feed)
	switch pane {
	case "feeds":
	case "folders":
		step("t", pane, "tech")
	case "queries":
		step("f", pane, "needle")
	default:
		step("<enter>", "list", entry[:len(entry)-1]+"1")
		if n := int(entry[len(entry)-1] - '1'); n > 0 {
			step(strings.Repeat("<down> ", n), "list", entry)
		}
	}
	if pane == "entry" || pane == "links" {
		step("<enter>", "entry", entry)
		step("<home>", "entry", entry) // newsboat marks the entry as read with the next key
		awaitState(p, time.Minute, true, func(s *seenState) bool { return s.pane == "entry" && s.marks[entry] == "" && s.scroll == "top" })
	}
	if pane == "links" {
		step("u", pane, "http://link.example/"+entry+"/1")
	}
	return p.state(true)
}

// TestNewsboatKeys presses each key of the set newsboat in newsboat and in lektor-view, which have
// the same feeds, and compares the effects.
func TestNewsboatKeys(t *testing.T) {
	t.Parallel()
	needs(t, "newsboat", "tmux", "sqlite3")
	base := makeFixtures(t)
	rows := make(chan keyRow)
	var working sync.WaitGroup
	for range rowsAtOnce {
		working.Go(func() {
			for r := range rows {
				t.Run(r.pane+" "+strings.ReplaceAll(r.keys, "/", "slash"), func(t *testing.T) { r.try(t, base) })
			}
		})
	}
	for _, r := range keyRows {
		rows <- r
	}
	close(rows)
	working.Wait()
}

// rowsAtOnce is the number of rows that are tried at once, on any number of processors: they mostly
// wait for programs.
const rowsAtOnce = 6

// try presses the keys of a row in both programs.
func (r keyRow) try(t *testing.T, base fixtures) {
	n := &newsboatKeys{keyHome: newKeyHome(t)}
	copyTree(t, base.newsboat, n.path)
	n.start()
	l := &lektorKeys{keyHome: newKeyHome(t), bin: testdir.Bin(t)}
	copyTree(t, base.lektor, l.path)
	l.start()
	tryKeys(n, r.pane, r.keys, r.effect)
	tryKeys(l, r.pane, cmp.Or(r.lektorKeys, r.keys), cmp.Or(r.lektorEffect, r.effect))
}

// nothing is the effect of a key that does nothing. So that the test cannot look too early, it
// presses <down> after the key, which must move by one line and have no other effect.
const nothing = "nothing"

var downOnly = map[string]string{
	"feeds": "at feeds Beta", "feeds gamma-1": "at feeds Delta", "list": "at list alpha-3", "entry": "text near the top",
	"links": "at links http://link.example/alpha-2/2", "folders": "at folders zeta",
}

// keyLimit is the time that a key may take on a busy machine.
const keyLimit = time.Minute

// tryKeys presses keys in a pane, and waits for their effect.
func tryKeys(p keyProgram, start, keys, effect string) {
	t := p.home().t
	t.Helper()
	before := begin(p, start)
	if effect == nothing {
		keys, effect = keys+" <down>", downOnly[start]
	}
	press(p, keys)
	is := func(s *seenState) string { return before.effect(s, strings.Contains(effect, "rows ")) }
	if s, ok := awaitState(p, keyLimit, true, func(s *seenState) bool { return slices.Contains(strings.Split(effect, " or "), is(s)) }); !ok {
		t.Errorf("%T: %s in %s does\n\t%q, not\n\t%q; the screen is\n%s", p, keys, start, is(s), effect, strings.Join(p.screen().Screen(), "\n"))
	}
}

// newsboatManual returns the manual's section about newsboat's keys as plain text.
func newsboatManual(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../man/lektor-view-tui.1")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n.Ss The keys of newsboat\n")
	text, _, _ = strings.Cut(text, "\n.Ss ")
	text = regexp.MustCompile(`(?m)^\.(It Cm|Cm|Ql|Ic|Pa) `).ReplaceAllString(text, "")
	return strings.Join(strings.Fields(strings.ReplaceAll(text, `\&`, "")), " ")
}

// TestNewsboatKeysComplete: each key of the set newsboat has a row in each of its panes, and the
// manual has each difference. A key that newsboat does not have needs only one row. TestTUISignals
// presses ^Z.
func TestNewsboatKeysComplete(t *testing.T) {
	manual := newsboatManual(t)
	for _, r := range keyRows {
		if differs := r.lektorKeys+r.lektorEffect != ""; differs != (r.manual != "") || !strings.Contains(manual, r.manual) {
			t.Errorf("%s in %s: differs is %t, and the manual has to say %q", r.keys, r.pane, differs, r.manual)
		}
	}
	text, _ := keys.Set("newsboat")
	in := []string{"feeds", "list", "entry"}
	want := map[[2]string]bool{} // by pane and key
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case strings.Contains(line, "newsboat has no keys for these"):
			in = []string{"any"}
		case len(words) == 0 || words[0] == "#":
		case words[0] == "in":
			in = words[1:]
		default:
			for _, pane := range in {
				want[[2]string{pane, words[0]}] = true
			}
		}
	}
	for at := range want {
		if at[1] != "<C-z>" && !slices.ContainsFunc(keyRows, func(r keyRow) bool {
			pane, _, _ := strings.Cut(r.pane, " ")
			if pane == "links" || pane == "folders" || pane == "queries" {
				pane = "menu"
			}
			return (pane == at[0] || at[0] == "any") && cmp.Or(r.of, keyToken.FindString(r.keys)) == at[1]
		}) {
			t.Errorf("no row presses %s in the pane %s", at[1], at[0])
		}
	}
}
