package tui

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/read/entrystore"
)

// fetching is the state of the fetches, of which one runs at a time.
type fetching struct {
	every time.Duration // fetch the feeds that are due so long after the last fetch; 0 never does
	timer int           // number of the timer that counts; others are stale
}

// everySetting is the name of the setting with the minutes between two fetches.
const everySetting = "fetch-every"

// fetchActions returns the actions that run lektor-fetch.
func fetchActions() []action {
	return []action{
		{"fetch", 0, "fetch this feed", "lektor-fetch update FEED", withFetcher(fetchFeed)},
		{"fetch-folder", 0, "fetch the feeds of this folder", "lektor-fetch update FEED...", withFetcher(fetchFolder)},
		{"fetch-all", 0, "fetch all feeds", "lektor-fetch update -a", withFetcher(fetchAll)},
		{"fetch-every", 1, "fetch the feeds that are due every N minutes", "lektor-fetch update",
			withFetcher(fetchEvery)},
		{"subscribe", 1, "subscribe to a feed, by its URL or that of a page", "lektor-fetch add",
			withFetcher(subscribe)},
		{"edit-feed", 0, "rename this feed, change its folders and settings, or unsubscribe",
			"lektor-fetch set, lektor-fetch rm", withFetcher(editFeed)},
		{"edit-feeds", 0, "edit the list of feeds in your editor", "lektor-fetch edit", withFetcher(editFeeds)},
	}
}

// withFetcher returns an action that says so if there is no lektor-fetch.
func withFetcher(do func(*model, keys.Call) tea.Cmd) func(*model, keys.Call) tea.Cmd {
	return func(m *model, c keys.Call) tea.Cmd {
		if err := m.o.NoFetcher; err != nil {
			m.fail(err)
			return nil
		}
		return do(m, c)
	}
}

// needsFetcher reports whether an action runs lektor-fetch.
func needsFetcher(name string) bool {
	return slices.ContainsFunc(fetchActions(), func(a action) bool { return a.name == name })
}

// chosenFeed returns the hash of the feed that a key works on, "" if there is none: the feed under the
// cursor, or the one of the chosen entry or list.
func chosenFeed(b *browser) string {
	if ref, ok := b.chosen(); ok {
		return ref.Feed
	}
	if of := chosenNode(b); of.kind == feedNode {
		return of.name
	}
	return ""
}

// neededFeed returns the hash of the chosen feed. If there is none, it shows a message and ok is
// false.
func neededFeed(m *model) (hash string, ok bool) {
	if tooEarly(m) {
		return "", false
	}
	if hash = chosenFeed(&m.browser); hash == "" {
		m.say("choose a feed first")
	}
	return hash, hash != ""
}

// chosenNode returns the node under the cursor of the tree, or in the other panes the listed one.
func chosenNode(b *browser) id {
	if t := &b.tree; b.focus == keys.FeedsPane && t.at < len(t.nodes) {
		return t.nodes[t.at].id
	}
	return b.list.of
}

// chosenFolder returns the folder that a key works on: the one under the cursor, or one with the
// feed under the cursor. ok is false if there is none.
func chosenFolder(b *browser) (folder id, ok bool) {
	of := chosenNode(b)
	switch {
	case of.kind == folderNode:
		return of, true
	case of.kind == feedNode && of.in != "":
		return id{kind: folderNode, name: of.in}, true
	case b.snapshot == nil:
		return id{}, false
	}
	if f := b.snapshot.feeds[chosenFeed(b)]; f != nil && len(f.Folders) > 0 {
		path := entrystore.FolderPath(f.Folders[0])
		return id{kind: folderNode, name: path[len(path)-1].Key}, true
	}
	return id{}, false
}

// fetchFeed fetches the chosen feed.
func fetchFeed(m *model, _ keys.Call) tea.Cmd {
	hash, ok := neededFeed(m)
	if !ok {
		return nil
	}
	return m.fetching.begin(m, &fetch{feeds: []string{hash}})
}

// fetchFolder fetches the feeds of the chosen folder.
func fetchFolder(m *model, _ keys.Call) tea.Cmd {
	if tooEarly(m) {
		return nil
	}
	folder, ok := chosenFolder(&m.browser)
	if !ok {
		m.say("choose a folder first")
		return nil
	}
	f := &fetch{}
	for hash, feed := range m.browser.snapshot.feeds {
		if folder.holds(feed) && !feed.Paused {
			f.feeds = append(f.feeds, hash)
		}
	}
	if f.feeds == nil {
		m.say("all feeds of the folder are paused")
		return nil
	}
	return m.fetching.begin(m, f)
}

// fetchAll fetches all feeds.
func fetchAll(m *model, _ keys.Call) tea.Cmd {
	return m.fetching.begin(m, &fetch{args: []string{"-a"}})
}

// maxEvery is the maximum number of minutes between two fetches, a week.
const maxEvery = 7 * 24 * 60

// fetchEvery sets the minutes between two fetches to the word of c, or asks for them.
func fetchEvery(m *model, c keys.Call) tea.Cmd {
	s := &m.fetching
	if len(c.Words) == 0 {
		m.ask("fetch what is due every how many minutes (0: never): ", strconv.Itoa(int(s.every/time.Minute)),
			"fetch-every")
		return nil
	}
	minutes, err := strconv.Atoi(strings.TrimSpace(c.Words[0]))
	if err != nil || minutes < 0 || minutes > maxEvery {
		m.say("%s is not a number of minutes from 0 to %d", c.Words[0], maxEvery)
		return nil
	}
	s.every = time.Duration(minutes) * time.Minute
	value := strconv.Itoa(minutes)
	if minutes == 0 {
		value = ""
		m.say("feeds are fetched when you press a key")
	} else {
		m.say("fetching what is due every %d minutes", minutes)
	}
	saveSetting(m, everySetting, value)
	return s.wind(m, s.every)
}

// firstFetch is the time from the start of the reader to the first fetch by its timer.
const firstFetch = 3 * time.Second

// settings takes the setting that was remembered.
func (s *fetching) settings(m *model) tea.Cmd {
	minutes := m.o.Screen.Int(everySetting)
	if minutes <= 0 || minutes > maxEvery || m.o.NoFetcher != nil {
		return nil
	}
	s.every = time.Duration(minutes) * time.Minute
	return s.wind(m, firstFetch)
}

// wind starts the timer of the next fetch, and makes others stale.
func (s *fetching) wind(m *model, d time.Duration) tea.Cmd {
	s.timer++
	if s.every == 0 {
		return nil
	}
	timer := s.timer
	return m.after(d, thenMsg(func(m *model) tea.Cmd {
		if timer != s.timer || len(m.tasks.Of(fetchTask)) > 0 {
			return nil // the end of that fetch winds the timer
		}
		return s.begin(m, &fetch{timed: true})
	}))
}

// fetchTask is the name of the task of a fetch.
const fetchTask = "fetching"

// fetch is a run of lektor-fetch update.
type fetch struct {
	feeds []string // hashes; nil if args select the feeds
	args  []string
	timed bool // begun by the timer

	steps    int // number of lines of progress
	summary  string
	messages []string
}

// begin returns the command that makes a fetch, unless one is running.
func (s *fetching) begin(m *model, f *fetch) tea.Cmd {
	if len(m.tasks.Of(fetchTask)) > 0 {
		m.say("a fetch is running already")
		return nil
	}
	d := m.disk
	t := m.tasks.Begin(fetchTask, func(ctx context.Context, progress func(string)) (string, error) {
		return "", f.run(ctx, d, progress)
	})
	t.Then = func(err error) tea.Cmd { return s.ended(m, f, err) }
	return t.Await
}

// run runs lektor-fetch. It leaves out feeds without a subscription.
func (f *fetch) run(ctx context.Context, d Disk, progress func(string)) (err error) {
	if f.feeds != nil {
		subscribed := map[string]bool{}
		f.messages, err = d.Fetcher(ctx, "", []string{"ls", "-o", "hash"},
			func(hash string) { subscribed[hash] = true })
		f.feeds = slices.DeleteFunc(f.feeds, func(hash string) bool { return !subscribed[hash] })
		if err != nil || len(f.feeds) == 0 {
			return err
		}
	}
	args, in := append([]string{"update", "--progress"}, f.args...), ""
	if len(f.feeds) > 0 {
		args, in = append(args, "-"), strings.Join(f.feeds, "\n")+"\n"
	}
	f.messages, err = d.Fetcher(ctx, in, args, func(line string) {
		what, rest, _ := strings.Cut(line, "\t")
		done, total, _ := strings.Cut(rest, "\t")
		switch {
		case what == "done":
			f.summary = rest
			return
		case total == "0":
			progress(what + " " + done)
		default:
			progress(done + "/" + total)
		}
		f.steps++
	})
	return err
}

// ended shows the result of a fetch, and winds the timer.
func (s *fetching) ended(m *model, f *fetch, err error) tea.Cmd {
	messages := make([]string, len(f.messages))
	for i, text := range f.messages {
		messages[i] = cells.Plain(text)
	}
	m.input.keep(messages...)
	_, started := errors.AsType[*exec.ExitError](err)
	switch {
	case err != nil && !started && s.every > 0:
		s.timer++
		m.fail(fmt.Errorf("%s: %w",
			m.Tr("lektor-fetch does not start, and nothing is fetched until you press a key for it"), err))
		return nil
	case err != nil && len(messages) == 0:
		m.fail(fmt.Errorf("lektor-fetch: %w", err))
	case len(messages) > 0:
		text := strings.TrimPrefix(cells.Plain(f.summary)+"; "+messages[0], "; ")
		m.status = status{m.Trf("%s (%s: all messages)", text, m.o.Keys.Of("messages")), err != nil}
	case f.feeds != nil && len(f.feeds) == 0:
		m.say("you are subscribed to none of these feeds")
	case !f.timed || f.steps > 0:
		m.status = status{cells.Plain(f.summary), false}
	}
	return s.wind(m, s.every)
}
