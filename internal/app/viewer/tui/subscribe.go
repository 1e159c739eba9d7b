package tui

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

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
func (r *fetcherResult) text() string { return cells.Plain(strings.Join(r.messages, "; ")) }

// feedRun is a run of lektor-fetch that reads a subscription, or changes it, which undo takes back.
type feedRun struct {
	args []string
	in   string
}

// runFetcher queues a run of lektor-fetch. If it does not fail, then is called.
func runFetcher(m *model, f *feedRun, then func(m *model, r *fetcherResult) tea.Cmd) tea.Cmd {
	var r *fetcherResult
	m.marks.Add(func() work.Result {
		r = m.fetcher(f.in, f.args)
		return work.Result{Everything: true, Err: r.err}
	}, func(work.Result) tea.Cmd { return then(m, r) })
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
func subscribe(m *model, c keys.Call) tea.Cmd {
	if len(c.Words) > 0 {
		return askFolders(m, c.Words[0])
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
	// It waits for a server, and marks do not wait for it.
	w, r, before := &m.world, &fetcherResult{}, m.marks.Earlier()
	t := m.tasks.Begin(addTask, func(context.Context, func(string)) (string, error) {
		before()
		r = w.fetcher(url+"\n", args)
		return "", r.err
	})
	t.Finish, t.Then = true, func(err error) tea.Cmd {
		m.requestScan(anyFeed)
		if feeds := r.after("feed"); err != nil && len(feeds) > 0 {
			chooseFeed(m, feeds, args)
			return nil
		}
		// Warnings, which may fill the line, come after it.
		m.status = status{cells.Plain(strings.Join(append(r.after("done"), r.messages...), "; ")), false}
		if err != nil {
			m.fail(err)
		}
		return nil
	}
	return t.Await
}

// after returns the rest of the lines of progress that begin with a word.
func (r *fetcherResult) after(word string) (rest []string) {
	for _, line := range r.lines {
		if text, ok := strings.CutPrefix(line, word+"\t"); ok {
			rest = append(rest, text)
		}
	}
	return rest
}

// chooseFeed shows a menu of the feeds of a page, each a URL, a tab and a title, and subscribes to the chosen one.
func chooseFeed(m *model, feeds, args []string) {
	n := &menu{title: "the page has several feeds", hint: m.Trf("%s subscribes", m.o.Keys.Of("open"))}
	for _, feed := range feeds {
		url, title, _ := strings.Cut(feed, "\t")
		n.lines = append(n.lines, cells.Plain(strings.TrimSpace(url+"  "+title)))
	}
	n.choose = onOpen(func(m *model, at int) tea.Cmd {
		url, _, _ := strings.Cut(feeds[at], "\t")
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
func editFeed(m *model, _ keys.Call) tea.Cmd {
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
	n := &menu{title: "the settings of the feed", hint: m.Trf("%s changes", m.o.Keys.Of("open"))}
	for _, s := range feedSettings {
		value := f.text(s.key)
		if value != "" && (s.key == "headers" || s.key == "filter" || s.key == "url" &&
			(strings.Contains(value, "@") || strings.HasPrefix(strings.ToLower(value), "exec:"))) {
			value = "(" + m.Tr("hidden") + ")"
		}
		n.lines = append(n.lines, cells.Plain(strings.TrimSpace(s.key+"  "+value)))
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
		return runFetcher(m, &feedRun{args: []string{"rm", f.hash}}, func(m *model, _ *fetcherResult) tea.Cmd {
			m.say("unsubscribed; %s undoes it", m.o.Keys.Of("undo"))
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
	to := f.change(key, values)
	if to == nil {
		m.fail(errors.New(m.Tr("a subscription needs a URL")))
		return nil
	}
	return runFetcher(m, to, func(m *model, _ *fetcherResult) tea.Cmd {
		m.say("changed; %s undoes it", m.o.Keys.Of("undo"))
		return nil
	})
}

// change returns the run of lektor-fetch that sets a setting to values, nil if that is impossible.
func (f *feedMenu) change(key string, values []string) *feedRun {
	switch {
	case strings.TrimSpace(strings.Join(values, "")) != "":
		var lines strings.Builder
		for _, v := range values {
			lines.WriteString(key + "\t" + v + "\n")
		}
		return &feedRun{[]string{"set", f.hash, "-"}, lines.String()}
	case key == "url":
		return nil
	}
	return &feedRun{args: []string{"set", "--unset", f.hash, key}}
}

// editFeeds opens the list of subscriptions in the user's editor, on the terminal.
func editFeeds(m *model, _ keys.Call) tea.Cmd {
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
