package tui

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// variadic, as the number of words of an action, means one or more, and optional any number.
const variadic, optional = -1, -2

// action is something that a key can do.
type action struct {
	name  string
	words int // number of words it takes: 0, 1 (up to one), variadic or optional
	help  string
	// command is the arguments of lektor-view that do the same, for help.
	command string
	needs   need
	do      does
}

// need is what an action needs. The parent resolves it, or refuses, see [model.resolve].
type need uint

// The needs of actions.
const (
	anEntry    need = 1 << iota // the open entry, or the one under the cursor of the list
	maybeEntry                  // as anEntry, but it may be missing
	aPage                       // the text of the open entry
	aFeed                       // the feed under the cursor, or that of the entry or of the list
	current                     // not those of an earlier query: the entries of the list
	feeds                       // the feeds and counts
	entries                     // all entries
	complete                    // the whole list
	fetcher                     // lektor-fetch
	commands                    // commands in the file of keys, which the user must have written
)

// does does an action, by a function of one part.
type does func(g part.Given) part.Effects

// group is actions with their title in help.
type group struct {
	title   string
	actions []action
}

// by returns an action that goes forward (by 1) or backward (by -1).
func by(n int, f func(by int) part.Effects) does {
	return func(part.Given) part.Effects { return f(n) }
}

// times is by for an action that the count repeats.
func times(n int, f func(by int) part.Effects) does {
	return func(g part.Given) part.Effects { return f(n * max(g.Count, 1)) }
}

// groups returns all actions, in the order of the manual.
func (m *model) groups() []group {
	return slices.Concat(m.moves(), m.entryActions(), m.screenActions())
}

// moves returns the actions that go to an entry, and to a line.
func (m *model) moves() []group {
	b := &m.browser
	return []group{
		{title: "reading", actions: []action{
			{"open", 0, "open the line of the cursor; an entry is marked as read", "show --mark", 0, b.open},
			{"forward", 0, "a page of the entry, then the next unread one", "next", 0, b.forward},
			{"next-unread", 0,
				"to the next unread entry, also in the next feed; in a search in an entry: to the next match", "ls", 0,
				by(1, b.nextMatch)},
			{"previous-unread", 0, "to the previous unread entry, or match", "ls", 0, by(-1, b.nextMatch)},
			{"next", 0, "to the next entry", "", 0, times(1, b.nextEntry)},
			{"previous", 0, "to the previous entry", "", 0, times(-1, b.nextEntry)},
			{"next-feed", 0, "to the next feed with unread entries", "count --by feed", 0, by(1, b.nextFeed)},
			{"previous-feed", 0, "to the previous feed with unread entries", "count --by feed", 0,
				by(-1, b.nextFeed)},
			{"back", 0, "leave a search, an entry or the list", "", 0, b.back},
			{"quit", 0, "leave an entry or the list; in the feeds: end", "", 0, m.quit},
		}},
		{title: "moving", actions: []action{
			{"down", 0, "one line down", "", 0, times(1, b.move)},
			{"up", 0, "one line up", "", 0, times(-1, b.move)},
			{"half-down", 0, "half a page down", "", 0, times(1, b.halfPages)},
			{"half-up", 0, "half a page up", "", 0, times(-1, b.halfPages)},
			{"page-down", 0, "a page down", "", 0, times(1, b.pages)},
			{"page-up", 0, "a page up", "", 0, times(-1, b.pages)},
			{"scroll-down", 0, "the text one line down, from any pane", "", 0, times(1, b.scroll)},
			{"scroll-up", 0, "the text one line up", "", 0, times(-1, b.scroll)},
			{"top", 0, "to the first line, or to line N", "", 0, times(1, b.toLine)},
			{"bottom", 0, "to the last line, or to line N", "", 0, b.bottom},
			{"quit-now", 0, "end", "", 0, m.end},
			{"next-pane", 0, "to the next pane", "", 0, by(1, b.nextPane)},
			{"previous-pane", 0, "to the previous pane", "", 0, by(-1, b.nextPane)},
			{"zoom", 0, "show this pane alone, or all panes", "", 0, b.toggleZoom},
			{"fold", 0, "close or open a folder", "", 0, b.fold},
		}},
	}
}

// entryActions returns the actions on the chosen entry.
func (m *model) entryActions() []group {
	b, p, programs := &m.browser, &m.browser.page, m.browser.page.Programs
	return []group{
		{title: "the entry", actions: []action{
			{"toggle-read", 0, "read or unread", "mark --set S, --clear S", anEntry, b.toggling('S')},
			{"read", 0, "mark as read", "mark --set S", anEntry, b.marking("S", "")},
			{"unread", 0, "mark as unread", "mark --clear S", anEntry, b.marking("", "S")},
			{"toggle-flagged", 0, "flagged or not", "mark --set F, --clear F", anEntry, b.toggling('F')},
			{"flags", 1, "set and clear flags: +Fa-S", "mark --set Fa --clear S", anEntry, b.setFlags},
			{"read-all", 0, "mark all that is listed as read; in All and in folders after a question",
				"ls -o path QUERY | mark --set S -", complete, b.list.ReadAll},
			{"trash", 0, "mark as trashed", "rm", anEntry, b.trash},
			{"undo", 0, "take back the last command", "undo", 0, m.work.TakeBack},
			{"browser", 0, "open the entry in the browser; with N, its link N", "open --keep, open --keep --link N", 0,
				m.browse},
			{"link", 1, "open a link by its number", "open --keep --link N", aPage, p.OpenLink},
			{"play", 0, "play the enclosure; with N, number N", "play --keep --enclosure N", aPage, p.Play},
			{"picture", 0, "fetch a picture of the entry and show it; again: the next", "open --keep --link N", aPage,
				func(g part.Given) part.Effects { return m.pictures.Show(p, g) }},
			{"feed-text", 0, "switch between the page's article and the feed's own text", "show --feed-text", aPage,
				p.ToggleFeedText},
		}},
		{title: "the entry in other programs", actions: []action{
			{"links", 0, "list the links, enclosures and pictures of the entry", "open --keep --link N", aPage,
				p.ListLinks},
			{"yank", 1, "copy the URL, the title or the enclosure: yank url, title or enclosure",
				"ls -o url, title, enclosures", 0, m.yank},
			{"pipe", optional, "pipe the text, the HTML or the URL of the entry into a command: pipe text, html or url",
				"show, show --raw, ls -o url", anEntry, programs.Pipe},
			{"save", 1, "save the entry as text, HTML or a mail message",
				"show, lektor-pages digest --full, lektor-pages message", anEntry, programs.Save},
			{"download", 1, "download the enclosures of the entry; with N, number N", "save DIR", anEntry | aPage,
				p.Download},
			{"downloads", 0, "list the downloads", "", 0, m.work.Downloads.Show},
			{"bookmark", 0, "bookmark the entry, by the command in LEKTOR_BOOKMARK", "bookmark", anEntry,
				programs.Bookmark},
		}},
	}
}

// screenActions returns the actions on lists, the screen and feeds, and those that run commands.
func (m *model) screenActions() []group {
	b, l, a, fetching, programs := &m.browser, &m.browser.list, &m.appearance, &m.work.Fetching, m.browser.page.Programs
	chooseNode := func(title string, kind tree.Kind) does {
		return func(part.Given) part.Effects { return b.tree.Menu(title, kind, b.listNode) }
	}
	return []group{
		{title: "lists and the screen", actions: []action{
			{"search", 1, "search in the list while you type (lektor-query(7)); in an entry: for a text", "ls -a QUERY",
				0, b.search},
			{"save-query", 1, "save the search as a folder", "echo QUERY >etc/view/query/NAME", 0, l.Save},
			{"all", 0, "list read entries too, or unread entries only", "ls -a", 0, l.ToggleAll},
			{"reload", 0, "read everything anew", "", 0, m.reload},
			{"messages", 0, "all messages as a whole: of the last line, and of fetches", "lektor-fetch ls --broken", 0,
				m.prompt.ShowMessages},
			{"repeat", 0, "say the line of the cursor again", "", 0, m.repeat},
			{"redraw", 0, "draw the screen anew", "", 0, m.redraw},
			{"suspend", 0, "stop, until the shell's fg", "", 0, m.suspend},
			{"help", 0, "the keys", "", 0, m.help},
			{"sort", 1, "choose the order of the list, in the feeds that of the feeds; the present one again: reversed",
				"ls --sort title, ls --sort -date", feeds, b.sortBy},
			{"hide-read", 0, "hide feeds and folders with nothing unread, or show them, in the folder of the cursor",
				"count --by feed", feeds, b.tree.HideRead},
			{"wider", 0, "make this pane larger, by N steps", "", 0, times(1, a.resize)},
			{"narrower", 0, "make this pane smaller, by N steps", "", 0, times(-1, a.resize)},
			{"layout", 1, "the next layout: auto, two, three or stacked", "", 0, a.nextLayout},
			{"theme", 1, "the next theme: default, dark or light", "", 0, a.nextTheme},
			{"color", variadic, "set a color for now, as a line of etc/view/look", "", 0, a.typeLine},
			{"folders", 0, "choose a folder from a menu", "ls folder:NAME", 0,
				chooseNode("the folders", tree.FolderNode)},
			{"queries", 0, "choose a saved query from a menu", "ls query:NAME", 0,
				chooseNode("the saved queries", tree.SavedNode)},
		}},
		{title: "feeds", actions: []action{
			{"fetch", 0, "fetch this feed", "lektor-fetch update FEED", fetcher | aFeed, m.fetchFeed},
			{"fetch-folder", 0, "fetch the feeds of this folder", "lektor-fetch update FEED...", fetcher | current,
				m.fetchFolder},
			{"fetch-all", 0, "fetch all feeds", "lektor-fetch update -a", fetcher, fetching.All},
			{"fetch-every", 1, "fetch the feeds that are due every N minutes", "lektor-fetch update", fetcher,
				fetching.Every},
			{"subscribe", 1, "subscribe to a feed, by its URL or that of a page", "lektor-fetch add", fetcher,
				m.work.Subscribe},
			{"edit-feed", 0, "rename this feed, change its folders and settings, or unsubscribe",
				"lektor-fetch set, lektor-fetch rm", fetcher | aFeed, m.work.EditFeed},
			{"edit-feeds", 0, "edit the list of feeds in your editor", "lektor-fetch edit", fetcher, m.work.EditFeeds},
		}},
		{title: "commands, and many entries", actions: []action{
			{"command", 0, "type an action, a command of lektor-view, or the number of a line", "", 0, m.line.ask},
			{"read-above", 0, "mark all entries above the cursor as read", "mark --set S", complete, l.ReadAbove},
			{"read-node", 0, "mark all entries of the folder or feed as read, after a question",
				"ls -o path QUERY | mark --set S -", entries, l.ReadNode},
			{"random-unread", 0, "to an unread entry of the list, at random", "ls --sort random", 0, b.random},
			{"open-all", 0, "open the listed unread entries in the browser, after a question",
				"ls -o path QUERY | open --keep -", complete,
				func(part.Given) part.Effects { return l.OnUnread(len(l.Items), programs.BrowseAll) }},
			{"run", variadic, "run a command on the terminal", "", commands | maybeEntry, programs.Run},
			{"run-wait", variadic, "run a command, and wait for Enter", "", commands | maybeEntry, programs.Run},
			{"spawn", variadic, "run a command in the background", "", commands | maybeEntry, programs.Spawn},
		}},
	}
}

// action returns an action by its name.
func (m *model) action(name string) (a action, ok bool) {
	for _, g := range m.groups() {
		if i := slices.IndexFunc(g.actions, func(a action) bool { return a.name == name }); i >= 0 {
			return g.actions[i], true
		}
	}
	return action{}, false
}

// noReader returns a reader that has only the table of actions.
func noReader() *model { return &model{work: &work.Work{}} }

// actions returns all actions, which nobody can do.
func actions() (all []action) {
	for _, g := range noReader().groups() {
		all = append(all, g.actions...)
	}
	return all
}

// actionOf returns an action, which nobody can do, by its name.
func actionOf(name string) (action, bool) { return noReader().action(name) }

// with does an action with what it needs. If that is missing, it returns the message about that, or none if the
// action will be done when it is there.
func (m *model) with(needs need, c keys.Call, do does) part.Effects {
	b, has := &m.browser, func(n need) bool { return needs&n != 0 }
	switch {
	case has(fetcher) && m.o.NoFetcher != nil:
		return m.Fail(m.o.NoFetcher)
	case has(commands) && m.o.NoCommands != nil:
		return m.Fail(m.o.NoCommands)
	case has(feeds) && b.tree.Snapshot == nil, has(entries) && (b.tree.Snapshot == nil || b.tree.Snapshot.Partial):
		return m.Say("the entries are not read yet")
	case has(complete) && !b.list.Complete,
		has(anEntry|maybeEntry|aFeed|current) && b.Focus == keys.ListPane && b.list.Outdated():
		return b.list.Incomplete()
	case has(aPage) && (b.Focus != keys.PagePane || !b.page.Open() || b.page.Err != nil):
		return m.Say("open an entry first")
	case has(aPage) && b.page.Entry == nil:
		b.page.Await(c)
		return nil
	}
	ref, ok := b.chosen()
	feed := b.chosenFeed()
	switch {
	case has(anEntry) && !ok:
		return m.Say("choose an entry first")
	case has(aFeed) && feed == "":
		return m.Say("choose a feed first")
	}
	return do(part.Given{Call: c, Ref: ref, Feed: feed})
}

// do does an action.
func (m *model) do(c keys.Call) part.Effects {
	a, ok := m.action(c.Action)
	if !ok {
		return nil
	}
	return m.with(a.needs, c, a.do)
}

// parseFlags parses flags to set and to clear: +Fa-S sets F and a, and clears S. Words can
// replace the letters: +flagged-read.
func parseFlags(s string) (set, unset string, err error) {
	for _, some := range regexp.MustCompile(`[+-][^+-]*|[^+-]+`).FindAllString(strings.ReplaceAll(s, " ", ""), -1) {
		flags, err := query.ParseFlags(strings.TrimLeft(some, "+-"))
		if refused, ok := errors.AsType[*query.FlagError](err); ok {
			return "", "", fmt.Errorf("%w; %s", refused, refused.Hint)
		}
		if some[0] == '-' {
			unset += flags
		} else {
			set += flags
		}
	}
	if set+unset == "" {
		return "", "", errors.New("no flags: type F for flagged, S for read, T for trashed, or a to z for your own")
	}
	return set, unset, nil
}

// check returns an error if there is no such action or it does not take these words.
func check(c keys.Call) error {
	if c.Action == "none" {
		return nil
	}
	a, ok := actionOf(c.Action)
	switch {
	case !ok:
		return fmt.Errorf("there is no action %q", c.Action)
	case a.words == 0 && len(c.Words) > 0:
		return fmt.Errorf("%s takes no words", c.Action)
	case a.words == 1 && len(c.Words) > 1:
		return fmt.Errorf("%s takes one word", c.Action)
	case a.words == variadic && len(c.Words) == 0:
		return fmt.Errorf("%s takes a command", c.Action)
	}
	return nil
}

// ParseKeys parses a file of keys; name is its name in messages.
func ParseKeys(name string, text []byte) *keys.Keys { return keys.Parse(name, text, check) }

// RunsCommands reports whether a key runs a command.
func RunsCommands(k *keys.Keys) bool {
	for _, b := range k.Bound {
		for _, c := range b.Actions {
			_, piped := keys.PipeForm(c.Words)
			if a, _ := actionOf(c.Action); a.words == variadic || a.words == optional && len(piped) > 0 {
				return true
			}
		}
	}
	return false
}

// help shows the keys by groups, first those of the present pane.
func (m *model) help(part.Given) part.Effects {
	n := &part.Lines{Title: "the keys", Hint: "keys that move scroll, any other key closes this"}
	k := m.o.Keys
	here := k.Pane()
	for _, pane := range append([]string{here, ""},
		slices.DeleteFunc(slices.Clone(keys.Panes), func(s string) bool { return s == here })...) {
		for _, g := range m.groups() {
			title := m.Tr(g.title)
			if pane != "" {
				title = m.Trf("only in: %s", pane) + ", " + title
			}
			lines := []string{title + ":"}
			for _, at := range k.Bound {
				b := at.Actions
				i := slices.IndexFunc(g.actions, func(a action) bool { return a.name == b[0].Action })
				if at.Pane == pane && i >= 0 && (m.o.NoFetcher == nil || g.actions[i].needs&fetcher == 0) {
					lines = append(lines, beside(cells.Plain(at.Keys), cells.Plain(m.helpText(g.actions[i], b)),
						m.browser.Width-1)...)
				}
			}
			if len(lines) > 1 {
				n.Text = append(append(n.Text, lines...), "")
			}
		}
	}
	source := m.Trf("Keys of your own go into %s.", m.o.KeysFile)
	if m.o.KeysSet != "" {
		source = m.Trf("These are the keys of the set %s.", m.o.KeysSet)
	}
	n.Text = append(n.Text, cells.Plain(source))
	for _, err := range slices.Concat(k.Errs, m.o.Look.Errs) {
		n.Text = append(n.Text, cells.BreakLines(cells.Plain(err.Error()), max(10, m.browser.Width-2))...)
	}
	return part.Effects{part.Menu{Lines: n}}
}

// keyColumns are the columns of the keys in help.
const keyColumns = 12

// beside returns lines of at most width columns with keys, and a text to the right of them. A word
// may be wider.
func beside(keys, text string, width int) (lines []string) {
	text = htmltext.Render([]byte(text), "", htmltext.Options{Width: width - keyColumns - 1})
	for line := range strings.Lines(text) {
		lines = append(lines, termsafe.Pad(keys, keyColumns)+" "+strings.TrimRight(line, "\n"))
		keys = ""
	}
	return lines
}

// helpText returns what a binding of an action does.
func (m *model) helpText(a action, b keys.Binding) string {
	if len(b) > 1 || len(b[0].Words) > 0 {
		return b.String()
	}
	text := m.Tr(a.help)
	if a.command != "" {
		text += " (" + a.command + ")"
	}
	return text
}
