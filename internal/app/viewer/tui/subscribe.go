package tui

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/termsafe"
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

// begin returns the command that takes back the change. If that fails, for example because the feed
// is being fetched, it can be tried again. From the second failure on, every other undo passes it.
func (u *feedUndo) begin(m *model) tea.Cmd {
	return runFetcher(m, u.in, u.args, func(m *model, r *fetcherResult) tea.Cmd {
		if r.err != nil {
			r.show(m)
			u.passed, u.failed = u.failed, true
			return nil
		}
		m.marks.undos = slices.DeleteFunc(m.marks.undos, func(v *feedUndo) bool { return v == u })
		m.say("the last change of a subscription was taken back")
		return nil
	})
}

// changeTask is the name of the task that changes a subscription.
const changeTask = "changing a subscription"

// fetcherResult is the result of a run of lektor-fetch.
type fetcherResult struct {
	lines, messages []string
	commands        int64 // number of the last command that changed entries before
	err             error
}

// runFetcher returns the command that runs lektor-fetch and then calls done, and reads the feeds
// again. One such command runs at a time.
func runFetcher(m *model, in string, args []string, done func(*model, *fetcherResult) tea.Cmd) tea.Cmd {
	if m.tasks.of(changeTask) != nil {
		m.say("the last change of a subscription is still being made")
		return nil
	}
	r, d := &fetcherResult{}, m.disk
	return runTask(m, changeTask, func(ctx context.Context, _ func(string)) (err error) {
		if r.commands, err = d.Commands(ctx); err != nil {
			r.commands = math.MaxInt64 // no command is known to be later
		}
		r.messages, err = d.Fetcher(ctx, in, args, func(line string) { r.lines = append(r.lines, line) })
		return err
	}, func(m *model, err error) tea.Cmd {
		r.err = err
		m.requestScan(changedFeeds{"": atOnce})
		return done(m, r)
	})
}

// undoneBy records what takes back the change that lektor-fetch made.
func (r *fetcherResult) undoneBy(m *model, u *feedUndo) {
	u.commands = r.commands
	m.marks.undos = append(m.marks.undos, u)
}

// show shows the messages of lektor-fetch.
func (r *fetcherResult) show(m *model) {
	text := Plain(strings.Join(r.messages, "; "))
	if text == "" && r.err != nil {
		m.fail(r.err)
		return
	}
	m.status = status{text, r.err != nil}
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
		askFolders(m, strings.TrimSpace(c.words[0]))
		return nil
	}
	m.ask("subscribe to the URL: ", "", "").then = func(m *model, text string) tea.Cmd {
		askFolders(m, strings.TrimSpace(text))
		return nil
	}
	return nil
}

// askFolders asks for the folders of a new feed, and subscribes to it.
func askFolders(m *model, url string) {
	if url == "" {
		return
	}
	m.ask("folders, with | between them: ", "", "").then = func(m *model, text string) tea.Cmd {
		args := []string{"add", "--progress"}
		for _, folder := range splitWords(text) {
			args = append(args, "--category="+folder)
		}
		return addFeed(m, url, append(args, "-"))
	}
}

// addFeed runs lektor-fetch add, with the URL on its standard input, since it may have a
// password. If a page links to several feeds, the user chooses one.
func addFeed(m *model, url string, args []string) tea.Cmd {
	m.say("looking for the feed")
	return runFetcher(m, url+"\n", args, func(m *model, r *fetcherResult) tea.Cmd {
		if r.err != nil {
			if feeds := severalFeeds(r.messages); len(feeds) > 0 {
				chooseFeed(m, feeds, args)
				return nil
			}
		}
		for _, line := range r.lines {
			if hash, ok := strings.CutPrefix(line, "subscribed\t"); ok {
				r.undoneBy(m, &feedUndo{args: []string{"rm", hash}})
			}
		}
		if i := slices.IndexFunc(r.messages, func(s string) bool { return strings.Contains(s, ": subscribed (") }); i > 0 {
			// It comes after warnings, which may fill the line.
			text := r.messages[i]
			r.messages = slices.Insert(slices.Delete(r.messages, i, i+1), 0, text)
		}
		r.show(m)
		return nil
	})
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
	n := &menu{title: "the page has several feeds", hint: m.trf("%s subscribes", m.o.Keys.of("open"))}
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
}

// editFeed shows a menu of the settings of the chosen feed.
func editFeed(m *model, _ call) tea.Cmd {
	hash, ok := neededFeed(m)
	if !ok {
		return nil
	}
	return readFeedSettings(m, hash, func(f *feedMenu) tea.Cmd {
		f.show(m)
		return nil
	})
}

// readFeedSettings returns the command that reads the settings of a feed, and then calls done.
func readFeedSettings(m *model, hash string, done func(*feedMenu) tea.Cmd) tea.Cmd {
	return runFetcher(m, "", []string{"set", "--raw", hash}, func(m *model, r *fetcherResult) tea.Cmd {
		if r.err != nil {
			r.show(m)
			return nil
		}
		f := &feedMenu{hash: hash, kept: strings.Join(r.lines, "\n") + "\n", values: map[string][]string{}}
		for _, line := range r.lines {
			key, value, _ := strings.Cut(line, "\t")
			f.values[key] = append(f.values[key], value)
		}
		return done(f)
	})
}

// feedMenu is the menu of the settings of a feed.
type feedMenu struct {
	hash   string
	kept   string // all settings, as lektor-fetch set prints and reads them
	values map[string][]string
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
	n := &menu{title: "the settings of the feed", hint: m.trf("%s changes", m.o.Keys.of("open"))}
	for _, s := range feedSettings {
		value := f.text(s.key)
		if value != "" && (s.key == "headers" || s.key == "filter" || s.key == "url" && (strings.Contains(value, "@") || strings.HasPrefix(strings.ToLower(value), "exec:"))) {
			value = "(" + m.tr("hidden") + ")"
		}
		n.lines = append(n.lines, Plain(strings.TrimSpace(s.key+"  "+value)))
	}
	n.lines = append(n.lines, m.tr("unsubscribe"))
	n.choose = onOpen(func(m *model, at int) tea.Cmd {
		if at == len(feedSettings) {
			f.unsubscribe(m)
			return nil
		}
		s := feedSettings[at]
		m.ask(s.prompt, f.text(s.key), "").then = func(m *model, text string) tea.Cmd {
			return f.set(m, s.key, text)
		}
		return nil
	})
	m.input.menu = n
}

// unsubscribe asks whether to end the subscription, and ends it. It reads the settings again, since
// they may have changed while the menu was open.
func (f *feedMenu) unsubscribe(m *model) {
	m.input.confirm("unsubscribe from this feed? Its entries stay", func() tea.Cmd {
		return readFeedSettings(m, f.hash, func(f *feedMenu) tea.Cmd {
			return runFetcher(m, "", []string{"rm", f.hash}, func(m *model, r *fetcherResult) tea.Cmd {
				if r.err != nil {
					r.show(m)
					return nil
				}
				r.undoneBy(m, &feedUndo{args: []string{"set", "--force", f.hash, "-"}, in: f.kept})
				m.say("unsubscribed; %s undoes it", m.o.Keys.of("undo"))
				return nil
			})
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
	back := f.change(key, f.values[key], "set", "--force")
	if key == "url" {
		// A new url removes the origin of the old one.
		back.in += settingLines("origin", f.values["origin"])
	}
	to := f.change(key, values, "set")
	if to.args == nil {
		m.fail(errors.New(m.tr("a subscription needs a URL")))
		return nil
	}
	return runFetcher(m, to.in, to.args, func(m *model, r *fetcherResult) tea.Cmd {
		if r.err != nil {
			r.show(m)
			return nil
		}
		r.undoneBy(m, back)
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
			m.requestScan(changedFeeds{"": atOnce})
			if err != nil {
				m.say("lektor-fetch edit: %v", err)
			}
			return nil
		})
	})
}
