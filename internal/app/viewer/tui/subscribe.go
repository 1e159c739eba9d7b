package tui

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// feedUndo takes back a change of a subscription, by lektor-fetch. It is in memory only, since a
// setting can be a secret.
type feedUndo struct {
	args     []string
	in       string
	commands int64 // number of the last command before the change
	failed   bool  // it was tried, and failed
	passed   bool  // the next undo takes back the change before this one
}

// undos are the changes of subscriptions that can be taken back, in the order of the keys.
type undos struct {
	mu   sync.Mutex
	list []*feedUndo
}

func (us *undos) add(u *feedUndo) {
	us.mu.Lock()
	defer us.mu.Unlock()
	us.list = append(us.list, u)
}

// last returns the last change that can be taken back, nil if there is none.
func (us *undos) last() *feedUndo {
	us.mu.Lock()
	defer us.mu.Unlock()
	for _, u := range slices.Backward(us.list) {
		if !u.passed {
			return u
		}
		u.passed = false
	}
	return nil
}

// takeBack takes back the last command, or the last change of a subscription if that was later. If
// that fails, for example because the feed is being fetched, it can be tried again. From the second
// failure on, every other undo passes it.
func (us *undos) takeBack(w *world) (message string, moved []lektordir.Ref, err error) {
	u, after := us.last(), int64(0)
	if u != nil {
		after = u.commands
	}
	message, moved, err = w.disk.Undo(w.ctx, after)
	if u == nil || !errors.Is(err, ErrNoCommand) {
		return message, moved, err
	}
	if r := w.fetcher(u.in, u.args); r.err != nil {
		u.passed, u.failed = u.failed, true
		return "", nil, r.err
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	us.list = slices.DeleteFunc(us.list, func(v *feedUndo) bool { return v == u })
	return w.Tr("the last change of a subscription was taken back"), nil, nil
}

// addTask is the name of the task that subscribes to a feed.
const addTask = "changing a subscription"

// fetcherResult is the result of a run of lektor-fetch.
type fetcherResult struct {
	lines, messages []string
	failed          error // of the program
	err             error // the messages if it failed, for the user
}

// fetcher runs lektor-fetch.
func (w *world) fetcher(in string, args []string) *fetcherResult {
	r := &fetcherResult{}
	r.messages, r.failed = w.disk.Fetcher(w.ctx, in, args, func(line string) { r.lines = append(r.lines, line) })
	if r.err = r.failed; r.failed != nil && len(r.messages) > 0 {
		r.err = errors.New(r.text())
	}
	return r
}

// text returns the messages as a line.
func (r *fetcherResult) text() string { return Plain(strings.Join(r.messages, "; ")) }

// feedRun is a run of lektor-fetch that reads a subscription, or changes it.
type feedRun struct {
	hash string // "" for a new feed
	args []string
	in   string
	// back returns what takes back the change, nil if nothing does. It gets the lines that probe
	// prints before and after, the latter only after an error. It is nil if the run only reads.
	back func(before, after []string, r *fetcherResult) *feedUndo
}

// probe runs lektor-fetch to read the settings of the feed, or of a new one the list of feeds.
func (f *feedRun) probe(w *world) *fetcherResult {
	if f.hash == "" {
		return w.fetcher("", []string{"ls", "-o", "hash"})
	}
	return w.fetcher("", []string{"set", "--raw", f.hash})
}

// make runs lektor-fetch, and records what takes back its change. An error does not mean that it
// changed nothing, as it may have been killed. So the feed is read again, which fails after rm.
func (f *feedRun) make(w *world, us *undos) *fetcherResult {
	if f.back == nil {
		return w.fetcher(f.in, f.args)
	}
	commands, err := w.disk.Commands(w.ctx)
	if err != nil {
		commands = math.MaxInt64 // no command is known to be later
	}
	before := f.probe(w)
	if before.failed != nil && f.hash != "" {
		return before
	}
	r, after := w.fetcher(f.in, f.args), &fetcherResult{}
	if r.failed != nil {
		after = f.probe(w)
		if _, ran := errors.AsType[*exec.ExitError](after.failed); !ran &&
			(after.failed != nil || slices.Equal(before.lines, after.lines)) {
			return r
		}
	}
	if u := f.back(before.lines, after.lines, r); u != nil {
		u.commands = commands
		us.add(u)
	}
	return r
}

// runFetcher queues a run of lektor-fetch. If it does not fail, then is called.
func runFetcher(m *model, f *feedRun, then func(m *model, r *fetcherResult) tea.Cmd) tea.Cmd {
	m.marks.add(&change{kind: feedChange, fetcher: f,
		then: func(m *model, msg changeMsg) tea.Cmd { return then(m, msg.result) }})
	return nil
}

// splitWords splits a line of folders or headers at its bars. A bar after a backslash belongs to
// the word.
func splitWords(text string) (words []string) {
	const bar = "\x00" // no setting has it
	for word := range strings.SplitSeq(strings.ReplaceAll(text, `\|`, bar), "|") {
		if word = strings.TrimSpace(strings.ReplaceAll(word, bar, "|")); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// joinWords returns the line that splitWords splits into words.
func joinWords(words []string) string {
	escaped := make([]string, len(words))
	for i, word := range words {
		escaped[i] = strings.ReplaceAll(word, "|", `\|`)
	}
	return strings.Join(escaped, " | ")
}

// subscribe asks for a URL and for folders, and subscribes to the feed.
func subscribe(m *model, c call) tea.Cmd {
	if len(c.words) > 0 {
		return askFolders(m, c.words[0])
	}
	m.ask("subscribe to the URL: ", "", "").then = askFolders
	return nil
}

// askFolders asks for the folders of a new feed, and subscribes to it.
func askFolders(m *model, url string) tea.Cmd {
	if url = strings.TrimSpace(url); url == "" {
		return nil
	}
	p := m.ask("folders, with | between them: ", "", "")
	p.command = &commandLine{folders: true}
	p.then = func(m *model, text string) tea.Cmd {
		args := []string{"add", "--progress"}
		for _, folder := range splitWords(text) {
			args = append(args, "--category="+folder)
		}
		return addFeed(m, url, append(args, "-"))
	}
	return nil
}

// addFeed runs lektor-fetch add, with the URL on its standard input, since it may have a
// password. If a page links to several feeds, the user chooses one.
func addFeed(m *model, url string, args []string) tea.Cmd {
	m.say("looking for the feed")
	f := &feedRun{args: args, in: url + "\n", back: func(before, after []string, r *fetcherResult) *feedUndo {
		for _, line := range r.lines {
			if hash, ok := strings.CutPrefix(line, "subscribed\t"); ok {
				return &feedUndo{args: []string{"rm", hash}}
			}
		}
		fresh := slices.DeleteFunc(after, func(hash string) bool { return slices.Contains(before, hash) })
		if len(fresh) != 1 {
			return nil
		}
		return &feedUndo{args: []string{"rm", fresh[0]}}
	}}
	// It waits for a server, and marks do not wait for it.
	w, q, r, before := &m.world, &m.marks, &fetcherResult{}, m.marks.earlier()
	t := m.tasks.begin(w, addTask, func(context.Context, func(string)) (string, error) {
		before()
		r = f.make(w, &q.undos)
		return "", r.err
	})
	t.finish, t.then = true, func(m *model, err error) tea.Cmd {
		m.requestScan(anyFeed)
		if feeds := severalFeeds(r.messages); err != nil && len(feeds) > 0 {
			chooseFeed(m, feeds, args)
			return nil
		}
		if i := slices.IndexFunc(r.messages, func(s string) bool {
			return strings.Contains(s,
				": subscribed (")
		}); i > 0 {
			// It comes after warnings, which may fill the line.
			text := r.messages[i]
			r.messages = slices.Insert(slices.Delete(r.messages, i, i+1), 0, text)
		}
		m.status = status{r.text(), false}
		if err != nil {
			m.fail(err)
		}
		return nil
	}
	return t.run
}

// severalFeeds returns the feeds that lektor-fetch add lists if a page links to several.
func severalFeeds(messages []string) (feeds []string) {
	if len(messages) == 0 || !strings.HasSuffix(messages[0], ":") {
		return nil
	}
	for _, text := range messages[1:] {
		if strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://") {
			feeds = append(feeds, text)
		}
	}
	return feeds
}

// chooseFeed shows a menu of the feeds of a page, and subscribes to the chosen one.
func chooseFeed(m *model, feeds, args []string) {
	n := &menu{title: "the page has several feeds", hint: m.Trf("%s subscribes", m.o.Keys.of("open"))}
	for _, text := range feeds {
		n.lines = append(n.lines, Plain(text))
	}
	n.choose = onOpen(func(m *model, at int) tea.Cmd {
		url, _, _ := strings.Cut(feeds[at], " ")
		return addFeed(m, url, args)
	})
	m.input.menu, m.status = n, status{}
}

// feedSettings holds the settings of lektor-fetch set in the order of the menu, with their prompts.
var feedSettings = []struct{ key, prompt string }{
	{"alias", "your name for the feed; empty for its own: "},
	{"categories", "folders, with | between them: "},
	{"interval", "least time between two fetches, as 2h; empty for the default: "},
	{"on-update", "changed entries: unread, deliver or ignore; empty for the default: "},
	{"keep", "rule of expire; empty for none: "},
	{"fulltext", "articles of the pages: on or off; empty for the default: "},
	{"history", "older documents: on or off; empty for the default: "},
	{"private", "private: yes or no; empty for the default: "},
	{"url", "URL of the feed: "},
	{"headers", "header fields, with | between them; empty for none: "},
	{"filter", "command that filters documents; empty for none: "},
	{"paused", "on, so that the feed is fetched only by its own key; empty for off: "},
}

// editFeed shows a menu of the settings of the chosen feed.
func editFeed(m *model, _ call) tea.Cmd {
	hash, ok := neededFeed(m)
	if !ok {
		return nil
	}
	return runFetcher(m, &feedRun{args: []string{"set", "--raw", hash}}, func(m *model, r *fetcherResult) tea.Cmd {
		settingsOf(hash, r.lines).show(m)
		return nil
	})
}

// feedMenu is the menu of the settings of a feed.
type feedMenu struct {
	hash   string
	values map[string][]string
}

// settingsOf returns the settings of a feed from the lines that lektor-fetch set prints.
func settingsOf(hash string, lines []string) *feedMenu {
	f := &feedMenu{hash, map[string][]string{}}
	for _, line := range lines {
		key, value, _ := strings.Cut(line, "\t")
		f.values[key] = append(f.values[key], value)
	}
	return f
}

// several reports whether a setting can have several values.
func several(key string) bool { return key == "categories" || key == "headers" }

// text returns the values of a setting as a line that is safe for a terminal.
func (f *feedMenu) text(key string) string {
	text := strings.Join(f.values[key], " ")
	if several(key) {
		text = joinWords(f.values[key])
	}
	return termsafe.Line(text)
}

// show shows the menu. The values of settings that can be secret are not in it.
func (f *feedMenu) show(m *model) {
	n := &menu{title: "the settings of the feed", hint: m.Trf("%s changes", m.o.Keys.of("open"))}
	for _, s := range feedSettings {
		value := f.text(s.key)
		if value != "" && (s.key == "headers" || s.key == "filter" || s.key == "url" &&
			(strings.Contains(value, "@") || strings.HasPrefix(strings.ToLower(value), "exec:"))) {
			value = "(" + m.Tr("hidden") + ")"
		}
		n.lines = append(n.lines, Plain(strings.TrimSpace(s.key+"  "+value)))
	}
	n.lines = append(n.lines, m.Tr("unsubscribe"))
	n.choose = onOpen(func(m *model, at int) tea.Cmd {
		if at == len(feedSettings) {
			f.unsubscribe(m)
			return nil
		}
		s := feedSettings[at]
		p := m.ask(s.prompt, f.text(s.key), "")
		if s.key == "categories" {
			p.command = &commandLine{folders: true}
		}
		p.then = func(m *model, text string) tea.Cmd { return f.set(m, s.key, text) }
		return nil
	})
	m.input.menu = n
}

// unsubscribe asks whether to end the subscription, and ends it.
func (f *feedMenu) unsubscribe(m *model) {
	m.input.confirm("unsubscribe from this feed? Its entries stay", func() tea.Cmd {
		return runFetcher(m, &feedRun{hash: f.hash, args: []string{"rm", f.hash},
			back: func(before, _ []string, _ *fetcherResult) *feedUndo {
				return &feedUndo{args: []string{"set", "--force", f.hash, "-"}, in: strings.Join(before, "\n") + "\n"}
			}}, func(m *model, _ *fetcherResult) tea.Cmd {
			m.say("unsubscribed; %s undoes it", m.o.Keys.of("undo"))
			return nil
		})
	})
}

// set sets a setting; an empty text removes it. Values are passed on standard input, where no other
// user can see them.
func (f *feedMenu) set(m *model, key, text string) tea.Cmd {
	if text = strings.TrimSpace(text); text == strings.TrimSpace(f.text(key)) {
		return nil
	}
	values := []string{text}
	if several(key) {
		values = splitWords(text)
	}
	to := f.change(key, values, "set")
	if to.args == nil {
		m.fail(errors.New(m.Tr("a subscription needs a URL")))
		return nil
	}
	return runFetcher(m, &feedRun{hash: f.hash, args: to.args, in: to.in,
		back: func(before, _ []string, _ *fetcherResult) *feedUndo {
			f := settingsOf(f.hash, before)
			back := f.change(key, f.values[key], "set", "--force")
			if key == "url" {
				// A new url removes the origin of the old one.
				back.in += settingLines("origin", f.values["origin"])
			}
			return back
		}}, func(m *model, _ *fetcherResult) tea.Cmd {
		m.say("changed; %s undoes it", m.o.Keys.of("undo"))
		return nil
	})
}

// settingLines returns the values of a setting as lektor-fetch set reads them.
func settingLines(key string, values []string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(key + "\t" + v + "\n")
	}
	return b.String()
}

// change returns the run of lektor-fetch that sets a setting to values by a command, without args if
// that is impossible.
func (f *feedMenu) change(key string, values []string, command ...string) *feedUndo {
	u := &feedUndo{args: append(command, f.hash, "-"), in: settingLines(key, values)}
	switch {
	case strings.TrimSpace(strings.Join(values, "")) != "":
	case key == "url":
		u.args, u.in = nil, ""
	default:
		u.args, u.in = []string{"set", "--unset", f.hash, key}, ""
	}
	return u
}

// editFeeds opens the list of subscriptions in the user's editor, on the terminal.
func editFeeds(m *model, _ call) tea.Cmd {
	cmd := exec.Command(m.o.Fetcher, "--dir", m.o.Name, "edit")
	t, send := m.terminal, m.send
	return tea.Exec(&onTerminal{Cmd: cmd, wait: true, terminal: t}, func(err error) tea.Msg {
		go send(t.size()) // the size may have changed; in a goroutine, as the library waits for this callback
		return thenMsg(func(m *model) tea.Cmd {
			m.requestScan(anyFeed)
			if err != nil {
				m.say("lektor-fetch edit: %v", err)
			}
			return nil
		})
	})
}
