package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// many stands for any number of words, and at least one.
const many = -1

// action is what a key can do.
type action struct {
	name  string
	words int // that it takes: 0, up to 1, or many
	help  string
	// command is the command that does the same, for help.
	command string
	do      func(m *model, count int, words []string) tea.Cmd
}

// actionOf gives an action by its name.
func actionOf(name string) (action, bool) {
	all := actions()
	i := slices.IndexFunc(all, func(a action) bool { return a.name == name })
	if i < 0 {
		return action{}, false
	}
	return all[i], true
}

// actions are all that keys can do. count is what was typed before the key, 0 for
// nothing.
func actions() []action {
	times := func(f func(m *model, n int) tea.Cmd) func(*model, int, []string) tea.Cmd {
		return func(m *model, count int, _ []string) tea.Cmd { return f(m, max(count, 1)) }
	}
	plain := func(f func(m *model) tea.Cmd) func(*model, int, []string) tea.Cmd {
		return func(m *model, _ int, _ []string) tea.Cmd { return f(m) }
	}
	return []action{
		{"down", 0, "one line down", "", times(func(m *model, n int) tea.Cmd { return m.move(n) })},
		{"up", 0, "one line up", "", times(func(m *model, n int) tea.Cmd { return m.move(-n) })},
		{"half-down", 0, "half a page down", "", times(func(m *model, n int) tea.Cmd { return m.move(n * max(1, m.room()/2)) })},
		{"half-up", 0, "half a page up", "", times(func(m *model, n int) tea.Cmd { return m.move(-n * max(1, m.room()/2)) })},
		{"page-down", 0, "a page down", "", times(func(m *model, n int) tea.Cmd { return m.move(n * max(1, m.room()-1)) })},
		{"page-up", 0, "a page up", "", times(func(m *model, n int) tea.Cmd { return m.move(-n * max(1, m.room()-1)) })},
		{"scroll-down", 0, "the text one line down, wherever one is", "", times(func(m *model, n int) tea.Cmd { return m.scroll(n) })},
		{"scroll-up", 0, "the text one line up", "", times(func(m *model, n int) tea.Cmd { return m.scroll(-n) })},
		{"top", 0, "to the first line, or to line N", "", func(m *model, n int, _ []string) tea.Cmd { return m.to(max(n-1, 0)) }},
		{"bottom", 0, "to the last line, or to line N", "", func(m *model, n int, _ []string) tea.Cmd {
			if n > 0 {
				return m.to(n - 1)
			}
			return m.to(1 << 30)
		}},
		{"open", 0, "into what the cursor is on; an entry is marked as read", "show --mark", plain((*model).open)},
		{"back", 0, "out of it, or of a search", "", plain((*model).back)},
		{"quit", 0, "out of it; of the feeds: end", "", plain((*model).quit)},
		{"quit-now", 0, "end", "", plain(func(m *model) tea.Cmd { return tea.Quit })},
		{"next-pane", 0, "to the next pane", "", plain(func(m *model) tea.Cmd { return m.pane(1) })},
		{"previous-pane", 0, "to the pane before", "", plain(func(m *model) tea.Cmd { return m.pane(-1) })},
		{"zoom", 0, "this pane alone, or all again", "", plain((*model).zoomIt)},
		{"fold", 0, "close a folder, or open it", "", plain((*model).fold)},
		{"forward", 0, "a page of the entry, then the next unread one", "next", plain((*model).forward)},
		{"next-unread", 0, "to the next unread entry, of the next feed if need be", "ls", plain(func(m *model) tea.Cmd { return m.nextUnread(1) })},
		{"previous-unread", 0, "to the unread entry before", "ls", plain(func(m *model) tea.Cmd { return m.nextUnread(-1) })},
		{"next", 0, "to the next entry", "", times(func(m *model, n int) tea.Cmd { return m.nextEntry(n) })},
		{"previous", 0, "to the entry before", "", times(func(m *model, n int) tea.Cmd { return m.nextEntry(-n) })},
		{"next-feed", 0, "to the next feed with unread entries", "count --by feed", plain(func(m *model) tea.Cmd { return m.nextFeed(1) })},
		{"previous-feed", 0, "to the one before", "count --by feed", plain(func(m *model) tea.Cmd { return m.nextFeed(-1) })},
		{"toggle-read", 0, "read or unread", "mark --set S, --clear S", plain(func(m *model) tea.Cmd { return m.toggle('S') })},
		{"read", 0, "mark as read", "mark --set S", plain(func(m *model) tea.Cmd { return m.mark("S", "") })},
		{"unread", 0, "mark as unread", "mark --clear S", plain(func(m *model) tea.Cmd { return m.mark("", "S") })},
		{"toggle-flagged", 0, "flagged or not", "mark --set F, --clear F", plain(func(m *model) tea.Cmd { return m.toggle('F') })},
		{"flags", 1, "set and clear flags: +Fa-S", "mark --set Fa --clear S", func(m *model, _ int, words []string) tea.Cmd { return m.flags(words) }},
		{"read-all", 0, "mark all that is listed as read", "ls -o path QUERY | mark --set S -", plain((*model).readAll)},
		{"trash", 0, "mark as trashed", "rm", plain((*model).trash)},
		{"undo", 0, "take back the last mark", "undo", plain((*model).undo)},
		{"browser", 0, "open the entry in the browser; with N, its link N", "open --keep, open --keep --link N", func(m *model, n int, _ []string) tea.Cmd { return m.browser(n) }},
		{"link", 1, "open a link by its number", "open --keep --link N", func(m *model, n int, words []string) tea.Cmd { return m.link(n, words) }},
		{"play", 0, "play the enclosure; with N, number N", "play --keep --enclosure N", func(m *model, n int, _ []string) tea.Cmd { return m.play(max(n, 1)) }},
		{"picture", 0, "fetch a picture of the entry and show it; again: the next", "open --keep --link N", func(m *model, n int, _ []string) tea.Cmd { return m.picture(n) }},
		{"feed-text", 0, "the feed's own text in the place of the page's article, or that again", "show --feed-text", plain((*model).feedText)},
		{"search", 0, "search in what is listed, as one types (lektor-query(7))", "ls -a QUERY", plain((*model).search)},
		{"save-query", 1, "save the search as a folder", "echo QUERY >etc/view/query/NAME", func(m *model, _ int, words []string) tea.Cmd { return m.saveQuery(words) }},
		{"all", 0, "list read entries too, or not", "ls -a", plain((*model).toggleAll)},
		{"sort", 0, "newest or oldest first", "ls --sort date, ls --sort -date", plain((*model).toggleSort)},
		{"reload", 0, "read everything anew", "", plain((*model).reload)},
		{"redraw", 0, "draw the screen anew", "", plain(func(m *model) tea.Cmd { return tea.ClearScreen })},
		{"suspend", 0, "stop, until the shell's fg", "", plain((*model).suspend)},
		{"help", 0, "the keys", "", plain((*model).help)},
		{"run", many, "run a command on the terminal", "", func(m *model, _ int, words []string) tea.Cmd { return m.run(words, false) }},
		{"run-wait", many, "run a command, and wait for Enter", "", func(m *model, _ int, words []string) tea.Cmd { return m.run(words, true) }},
		{"spawn", many, "run a command in the background", "", func(m *model, _ int, words []string) tea.Cmd { return m.spawn(words) }},
	}
}
