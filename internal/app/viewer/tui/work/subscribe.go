package work

import (
	"context"
	"errors"
	"os/exec"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// addTask is the name of the task that subscribes to a feed.
const addTask = "changing a subscription"

// fetcher runs lektor-fetch. If it fails, the error has the messages.
func (w *Work) fetcher(in string, args ...string) (lines, messages []string, err error) {
	messages, err = w.Disk.Fetcher(w.Ctx, in, args, func(line string) { lines = append(lines, line) })
	if err != nil && len(messages) > 0 {
		err = errors.New(cells.Plain(strings.Join(messages, "; ")))
	}
	return lines, messages, err
}

// after returns the rest of the lines of progress that begin with a word.
func after(word string, lines []string) (rest []string) {
	for _, line := range lines {
		if text, ok := strings.CutPrefix(line, word+"\t"); ok {
			rest = append(rest, text)
		}
	}
	return rest
}

// queue queues a run of lektor-fetch that reads a subscription, or changes it, which undo takes back. If it does not
// fail, then is called with its lines.
func (w *Work) queue(then func(lines []string) part.Effects, in string, args ...string) part.Effects {
	var lines []string
	w.Add(func() (_ string, _ []lektordir.Ref, err error) {
		lines, _, err = w.fetcher(in, args...)
		return "", nil, err
	}, func([]lektordir.Ref) part.Effects { return then(lines) })
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

// JoinWords returns the line that splitWords splits into words.
func JoinWords(words []string) string {
	escaped := make([]string, len(words))
	for i, word := range words {
		escaped[i] = strings.ReplaceAll(word, "|", `\|`)
	}
	return strings.Join(escaped, " | ")
}

// Subscribe asks for a URL and for folders, and subscribes to the feed.
func (w *Work) Subscribe(g part.Given) part.Effects {
	if len(g.Words) > 0 {
		return w.askFolders(g.Words[0])
	}
	return part.Effects{part.Ask{Label: "subscribe to the URL: ", Then: w.askFolders}}
}

// askFolders asks for the folders of a new feed, and subscribes to it.
func (w *Work) askFolders(url string) part.Effects {
	if url = strings.TrimSpace(url); url == "" {
		return nil
	}
	return part.Effects{part.Ask{Label: "folders, with | between them: ", Words: w.Env.Folders,
		Then: func(text string) part.Effects {
			args := []string{"add", "--progress"}
			for _, folder := range splitWords(text) {
				args = append(args, "--category="+folder)
			}
			return w.subscribe(url, append(args, "-"))
		}}}
}

// subscribe runs lektor-fetch add, with the URL on its standard input, since it may have a
// password. If a page links to several feeds, the user chooses one.
func (w *Work) subscribe(url string, args []string) part.Effects {
	// It waits for a server, and marks do not wait for it.
	var lines, messages []string
	before := w.Earlier()
	return append(w.Say("looking for the feed"), part.Task{Name: addTask, Finish: true,
		Do: func(context.Context, func(string)) (_ string, err error) {
			before()
			lines, messages, err = w.fetcher(url+"\n", args...)
			return "", err
		},
		Then: func(err error) part.Effects {
			e := part.Effects{part.Rescan{Feeds: map[string]bool{"": true}}}
			if feeds := after("feed", lines); err != nil && len(feeds) > 0 {
				return append(e, w.choose(feeds, args)...)
			}
			if err != nil {
				return append(e, w.Fail(err)...)
			}
			// Warnings, which may fill the line, come after it.
			text := strings.Join(append(after("done", lines), messages...), "; ")
			return append(e, part.Say{Text: cells.Plain(text)})
		}})
}

// choose shows a menu of the feeds of a page, each a URL, a tab and a title, and subscribes to the chosen one.
func (w *Work) choose(feeds, args []string) part.Effects {
	var lines []string
	for _, feed := range feeds {
		url, title, _ := strings.Cut(feed, "\t")
		lines = append(lines, cells.Plain(strings.TrimSpace(url+"  "+title)))
	}
	return part.Effects{part.Menu{Lines: part.Choice("the page has several feeds",
		w.Trf("%s subscribes", w.KeyOf("open")), lines, func(at int) part.Effects {
			url, _, _ := strings.Cut(feeds[at], "\t")
			return w.subscribe(url, args)
		})}}
}

// feedSettings holds the settings of lektor-fetch set in the order of the menu, with the labels of their lines.
var feedSettings = []struct{ key, label string }{
	{key: "alias", label: "your name for the feed; empty for its own: "},
	{key: "categories", label: "folders, with | between them: "},
	{key: "interval", label: "least time between two fetches, as 2h; empty for the default: "},
	{key: "on-update", label: "changed entries: unread, deliver or ignore; empty for the default: "},
	{key: "keep", label: "rule of expire; empty for none: "},
	{key: "fulltext", label: "articles of the pages: on or off; empty for the default: "},
	{key: "history", label: "older documents: on or off; empty for the default: "},
	{key: "private", label: "private: yes or no; empty for the default: "},
	{key: "url", label: "URL of the feed: "},
	{key: "headers", label: "header fields, with | between them; empty for none: "},
	{key: "filter", label: "command that filters documents; empty for none: "},
	{key: "paused", label: "on, so that the feed is fetched only by its own key; empty for off: "},
}

// EditFeed shows a menu of the settings of the chosen feed.
func (w *Work) EditFeed(g part.Given) part.Effects {
	f := &feedMenu{w, g.Feed, map[string][]string{}}
	return w.queue(func(lines []string) part.Effects {
		for _, line := range lines {
			key, value, _ := strings.Cut(line, "\t")
			f.values[key] = append(f.values[key], value)
		}
		return f.show()
	}, "", "set", "--raw", g.Feed)
}

// feedMenu is the menu of the settings of a feed.
type feedMenu struct {
	*Work
	hash   string
	values map[string][]string
}

// several reports whether a setting can have several values.
func several(key string) bool { return key == "categories" || key == "headers" }

// text returns the values of a setting as a line that is safe for a terminal.
func (f *feedMenu) text(key string) string {
	text := strings.Join(f.values[key], " ")
	if several(key) {
		text = JoinWords(f.values[key])
	}
	return termsafe.Line(text)
}

// show shows the menu. The values of settings that can be secret are not in it.
func (f *feedMenu) show() part.Effects {
	var lines []string
	for _, s := range feedSettings {
		value := f.text(s.key)
		if value != "" && (s.key == "headers" || s.key == "filter" || s.key == "url" &&
			(strings.Contains(value, "@") || strings.HasPrefix(strings.ToLower(value), "exec:"))) {
			value = "(" + f.Tr("hidden") + ")"
		}
		lines = append(lines, cells.Plain(strings.TrimSpace(s.key+"  "+value)))
	}
	lines = append(lines, f.Tr("unsubscribe"))
	hint := f.Trf("%s changes", f.KeyOf("open"))
	n := part.Choice("the settings of the feed", hint, lines, func(at int) part.Effects {
		if at == len(feedSettings) {
			return part.Effects{part.Confirm{Text: "unsubscribe from this feed? Its entries stay", Yes: f.unsubscribe}}
		}
		s := feedSettings[at]
		ask := part.Ask{Label: s.label, Text: f.text(s.key),
			Then: func(text string) part.Effects { return f.set(s.key, text) }}
		if s.key == "categories" {
			ask.Words = f.Env.Folders
		}
		return part.Effects{ask}
	})
	return part.Effects{part.Menu{Lines: n}}
}

// unsubscribe ends the subscription.
func (f *feedMenu) unsubscribe() part.Effects {
	return f.queue(saying(f.Trf("unsubscribed; %s undoes it", f.KeyOf("undo"))), "", "rm", f.hash)
}

// set sets a setting; an empty text removes it. Values are passed on standard input, where no other
// user can see them.
func (f *feedMenu) set(key, text string) part.Effects {
	if text = strings.TrimSpace(text); text == strings.TrimSpace(f.text(key)) {
		return nil
	}
	values := []string{text}
	if several(key) {
		values = splitWords(text)
	}
	changed := saying(f.Trf("changed; %s undoes it", f.KeyOf("undo")))
	switch {
	case strings.TrimSpace(strings.Join(values, "")) != "":
		var lines strings.Builder
		for _, v := range values {
			lines.WriteString(key + "\t" + v + "\n")
		}
		return f.queue(changed, lines.String(), "set", f.hash, "-")
	case key == "url":
		return f.Fail(errors.New(f.Tr("a subscription needs a URL")))
	}
	return f.queue(changed, "", "set", "--unset", f.hash, key)
}

// saying returns a function that says what was done.
func saying(done string) func([]string) part.Effects {
	return func([]string) part.Effects { return part.Effects{part.Say{Text: done}} }
}

// EditFeeds opens the list of subscriptions in the user's editor, on the terminal.
func (w *Work) EditFeeds(part.Given) part.Effects {
	cmd := exec.Command(w.Env.Fetcher, "--dir", w.Env.Dir, "edit")
	return part.Effects{part.Exec{Cmd: cmd, Name: "lektor-fetch edit", Wait: true, Then: func() part.Effects {
		return part.Effects{part.Rescan{Feeds: map[string]bool{"": true}}}
	}}}
}
