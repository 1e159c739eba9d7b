package tui

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/list"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/prompt"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/lektordir"
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
type does func(m *model, g part.Given) part.Effects

// The functions of actions are methods of these parts.
var (
	inBrowser  = in(func(m *model) *browser { return &m.browser })
	inList     = in(func(m *model) *list.List { return &m.browser.list })
	inPage     = in(func(m *model) *page.Page { return &m.browser.page })
	inPrograms = in(func(m *model) *page.Programs { return m.browser.page.Programs })
	inWork     = in(func(m *model) *work.Work { return m.work })
	inFetching = in(func(m *model) *work.Fetching { return &m.work.Fetching })
	inPrompt   = in(func(m *model) *prompt.Prompt { return &m.prompt })
	inLook     = in(func(m *model) *appearance { return &m.appearance })
)

// in returns a function that makes an action of a method of a part.
func in[P any](of func(*model) *P) func(func(*P, part.Given) part.Effects) does {
	return func(do func(*P, part.Given) part.Effects) does {
		return func(m *model, g part.Given) part.Effects { return do(of(m), g) }
	}
}

func inReader(f func(*model, part.Given) part.Effects) does { return f }

// times returns an action of the browser with the count, at least 1.
func times(f func(b *browser, n int) part.Effects) does {
	return func(m *model, g part.Given) part.Effects { return f(&m.browser, max(g.Count, 1)) }
}

// by returns an action of the browser that goes forward (by 1) or backward (by -1).
func by(n int, f func(b *browser, by int) part.Effects) does {
	return func(m *model, _ part.Given) part.Effects { return f(&m.browser, n) }
}

// mark returns an action that sets and clears flags of the chosen entry.
func mark(set, unset string) does {
	return func(m *model, g part.Given) part.Effects { return m.browser.mark(g, set, unset) }
}

// toggle returns an action that sets or clears a flag of the chosen entry.
func toggle(flag byte) does {
	return func(m *model, g part.Given) part.Effects { return m.browser.toggle(g, flag) }
}

// chooseNode returns an action that opens a menu of the nodes of a kind.
func chooseNode(title string, kind tree.Kind) does {
	return func(m *model, _ part.Given) part.Effects {
		return m.browser.tree.Menu(title, kind, m.browser.listNode)
	}
}

// actionOf returns an action by its name.
func actionOf(name string) (action, bool) {
	all := actions()
	i := slices.IndexFunc(all, func(a action) bool { return a.name == name })
	if i < 0 {
		return action{}, false
	}
	return all[i], true
}

// group is actions with their title in help.
type group struct {
	title   string
	actions []action
}

// groups returns all actions, in the order of the manual.
func groups() []group {
	return []group{
		{title: "reading", actions: readingActions()},
		{title: "moving", actions: moves()},
		{title: "the entry", actions: entryActions()},
		{title: "the entry in other programs", actions: exportActions()},
		{title: "lists and the screen", actions: slices.Concat(listActions(), lookActions())},
		{title: "feeds", actions: fetchActions()},
		{title: "commands, and many entries", actions: slices.Concat(lineActions(), commandActions())},
	}
}

// actions returns the actions of all groups.
func actions() (all []action) {
	for _, g := range groups() {
		all = append(all, g.actions...)
	}
	return all
}

// readingActions returns the actions that open entries, and leave them.
func readingActions() []action {
	return []action{
		{"open", 0, "open the line of the cursor; an entry is marked as read", "show --mark", 0,
			inBrowser((*browser).open)},
		{"forward", 0, "a page of the entry, then the next unread one", "next", 0, inBrowser((*browser).forward)},
		{"next-unread", 0,
			"to the next unread entry, also in the next feed; in a search in an entry: to the next match", "ls", 0,
			by(1, (*browser).nextMatch)},
		{"previous-unread", 0, "to the previous unread entry, or match", "ls", 0, by(-1, (*browser).nextMatch)},
		{"next", 0, "to the next entry", "", 0, times((*browser).nextEntry)},
		{"previous", 0, "to the previous entry", "", 0,
			times(func(b *browser, n int) part.Effects { return b.nextEntry(-n) })},
		{"next-feed", 0, "to the next feed with unread entries", "count --by feed", 0, by(1, (*browser).nextFeed)},
		{"previous-feed", 0, "to the previous feed with unread entries", "count --by feed", 0,
			by(-1, (*browser).nextFeed)},
		{"back", 0, "leave a search, an entry or the list", "", 0, inBrowser((*browser).back)},
		{"quit", 0, "leave an entry or the list; in the feeds: end", "", 0, inReader((*model).quit)},
	}
}

// moves returns the actions that move the cursor.
func moves() []action {
	return []action{
		{"down", 0, "one line down", "", 0, times((*browser).move)},
		{"up", 0, "one line up", "", 0, times(func(b *browser, n int) part.Effects { return b.move(-n) })},
		{"half-down", 0, "half a page down", "", 0,
			times(func(b *browser, n int) part.Effects { return b.move(n * b.halfPage()) })},
		{"half-up", 0, "half a page up", "", 0,
			times(func(b *browser, n int) part.Effects { return b.move(-n * b.halfPage()) })},
		{"page-down", 0, "a page down", "", 0,
			times(func(b *browser, n int) part.Effects { return b.move(n * b.fullPage()) })},
		{"page-up", 0, "a page up", "", 0,
			times(func(b *browser, n int) part.Effects { return b.move(-n * b.fullPage()) })},
		{"scroll-down", 0, "the text one line down, from any pane", "", 0, scroll(1)},
		{"scroll-up", 0, "the text one line up", "", 0, scroll(-1)},
		{"top", 0, "to the first line, or to line N", "", 0,
			times(func(b *browser, n int) part.Effects { return b.to(n - 1) })},
		{"bottom", 0, "to the last line, or to line N", "", 0, inBrowser((*browser).bottom)},
		{"quit-now", 0, "end", "", 0, inReader((*model).end)},
		{"next-pane", 0, "to the next pane", "", 0, by(1, (*browser).nextPane)},
		{"previous-pane", 0, "to the previous pane", "", 0, by(-1, (*browser).nextPane)},
		{"zoom", 0, "show this pane alone, or all panes", "", 0, inBrowser((*browser).toggleZoom)},
		{"fold", 0, "close or open a folder", "", 0, inBrowser((*browser).fold)},
	}
}

// scroll returns an action that scrolls the text.
func scroll(by int) does {
	return times(func(b *browser, n int) part.Effects {
		b.page.Scroll(n * by)
		return nil
	})
}

// entryActions returns the actions on the chosen entry.
func entryActions() []action {
	return []action{
		{"toggle-read", 0, "read or unread", "mark --set S, --clear S", anEntry, toggle('S')},
		{"read", 0, "mark as read", "mark --set S", anEntry, mark("S", "")},
		{"unread", 0, "mark as unread", "mark --clear S", anEntry, mark("", "S")},
		{"toggle-flagged", 0, "flagged or not", "mark --set F, --clear F", anEntry, toggle('F')},
		{"flags", 1, "set and clear flags: +Fa-S", "mark --set Fa --clear S", anEntry, inBrowser((*browser).setFlags)},
		{"read-all", 0, "mark all that is listed as read; in All and in folders after a question",
			"ls -o path QUERY | mark --set S -", complete, inList((*list.List).ReadAll)},
		{"trash", 0, "mark as trashed", "rm", anEntry, inBrowser((*browser).trash)},
		{"undo", 0, "take back the last command", "undo", 0, inWork((*work.Work).TakeBack)},
		{"browser", 0, "open the entry in the browser; with N, its link N", "open --keep, open --keep --link N", 0,
			inReader((*model).browse)},
		{"link", 1, "open a link by its number", "open --keep --link N", aPage, inPage((*page.Page).OpenLink)},
		{"play", 0, "play the enclosure; with N, number N", "play --keep --enclosure N", aPage,
			inPage((*page.Page).Play)},
		{"picture", 0, "fetch a picture of the entry and show it; again: the next", "open --keep --link N", aPage,
			func(m *model, g part.Given) part.Effects { return m.pictures.Show(&m.browser.page, g) }},
		{"feed-text", 0, "switch between the page's article and the feed's own text", "show --feed-text", aPage,
			inPage((*page.Page).ToggleFeedText)},
	}
}

// exportActions returns the actions that hand an entry to other programs.
func exportActions() []action {
	return []action{
		{"links", 0, "list the links, enclosures and pictures of the entry", "open --keep --link N", aPage,
			inPage((*page.Page).ListLinks)},
		{"yank", 1, "copy the URL, the title or the enclosure: yank url, title or enclosure",
			"ls -o url, title, enclosures", 0, inReader((*model).yank)},
		{"pipe", optional, "pipe the text, the HTML or the URL of the entry into a command: pipe text, html or url",
			"show, show --raw, ls -o url", anEntry, inPrograms((*page.Programs).Pipe)},
		{"save", 1, "save the entry as text, HTML or a mail message",
			"show, lektor-pages digest --full, lektor-pages message", anEntry, inPrograms((*page.Programs).Save)},
		{"download", 1, "download the enclosures of the entry; with N, number N", "save DIR", anEntry | aPage,
			inPage((*page.Page).Download)},
		{"downloads", 0, "list the downloads", "", 0,
			func(m *model, g part.Given) part.Effects { return m.work.Downloads.Show(g) }},
		{"bookmark", 0, "bookmark the entry, by the command in LEKTOR_BOOKMARK", "bookmark", anEntry,
			inPrograms((*page.Programs).Bookmark)},
	}
}

// listActions returns the actions on lists and on the screen.
func listActions() []action {
	return []action{
		{"search", 1, "search in the list while you type (lektor-query(7)); in an entry: for a text", "ls -a QUERY", 0,
			inBrowser((*browser).search)},
		{"save-query", 1, "save the search as a folder", "echo QUERY >etc/view/query/NAME", 0,
			inList((*list.List).Save)},
		{"all", 0, "list read entries too, or unread entries only", "ls -a", 0, inList((*list.List).ToggleAll)},
		{"reload", 0, "read everything anew", "", 0, inReader((*model).reload)},
		{"messages", 0, "all messages as a whole: of the last line, and of fetches", "lektor-fetch ls --broken", 0,
			inPrompt((*prompt.Prompt).ShowMessages)},
		{"repeat", 0, "say the line of the cursor again", "", 0, inReader((*model).repeat)},
		{"redraw", 0, "draw the screen anew", "", 0,
			func(*model, part.Given) part.Effects { return part.Effects{part.Run(tea.ClearScreen)} }},
		{"suspend", 0, "stop, until the shell's fg", "", 0, inReader((*model).suspend)},
		{"help", 0, "the keys", "", 0, inReader((*model).help)},
		{"sort", 1, "choose the order of the list, in the feeds that of the feeds; the present one again: reversed",
			"ls --sort title, ls --sort -date", feeds, inBrowser((*browser).sortBy)},
		{"hide-read", 0, "hide feeds and folders with nothing unread, or show them, in the folder of the cursor",
			"count --by feed", feeds,
			func(m *model, g part.Given) part.Effects { return m.browser.tree.HideRead(g) }},
	}
}

// lookActions returns the actions on the look of the screen, and the menus of folders and queries.
func lookActions() []action {
	return []action{
		{"wider", 0, "make this pane larger, by N steps", "", 0, inLook((*appearance).wider)},
		{"narrower", 0, "make this pane smaller, by N steps", "", 0, inLook((*appearance).narrower)},
		{"layout", 1, "the next layout: auto, two, three or stacked", "", 0, inLook((*appearance).nextLayout)},
		{"theme", 1, "the next theme: default, dark or light", "", 0, inLook((*appearance).nextTheme)},
		{"color", variadic, "set a color for now, as a line of etc/view/look", "", 0, inLook((*appearance).typeLine)},
		{"folders", 0, "choose a folder from a menu", "ls folder:NAME", 0, chooseNode("the folders", tree.FolderNode)},
		{"queries", 0, "choose a saved query from a menu", "ls query:NAME", 0,
			chooseNode("the saved queries", tree.SavedNode)},
	}
}

// fetchActions returns the actions that run lektor-fetch.
func fetchActions() []action {
	return []action{
		{"fetch", 0, "fetch this feed", "lektor-fetch update FEED", fetcher | aFeed, inFetching((*work.Fetching).Feed)},
		{"fetch-folder", 0, "fetch the feeds of this folder", "lektor-fetch update FEED...", fetcher | current,
			inBrowser((*browser).fetchFolder)},
		{"fetch-all", 0, "fetch all feeds", "lektor-fetch update -a", fetcher, inFetching((*work.Fetching).All)},
		{"fetch-every", 1, "fetch the feeds that are due every N minutes", "lektor-fetch update", fetcher,
			inFetching((*work.Fetching).Every)},
		{"subscribe", 1, "subscribe to a feed, by its URL or that of a page", "lektor-fetch add", fetcher,
			inWork((*work.Work).Subscribe)},
		{"edit-feed", 0, "rename this feed, change its folders and settings, or unsubscribe",
			"lektor-fetch set, lektor-fetch rm", fetcher | aFeed, inWork((*work.Work).EditFeed)},
		{"edit-feeds", 0, "edit the list of feeds in your editor", "lektor-fetch edit", fetcher,
			inWork((*work.Work).EditFeeds)},
	}
}

// lineActions returns the command line, and actions on many entries.
func lineActions() []action {
	return []action{
		{"command", 0, "type an action, a command of lektor-view, or the number of a line", "", 0,
			func(m *model, _ part.Given) part.Effects { return m.line.ask() }},
		{"read-above", 0, "mark all entries above the cursor as read", "mark --set S", complete,
			inList((*list.List).ReadAbove)},
		{"read-node", 0, "mark all entries of the folder or feed as read, after a question",
			"ls -o path QUERY | mark --set S -", entries, inList((*list.List).ReadNode)},
		{"random-unread", 0, "to an unread entry of the list, at random", "ls --sort random", 0,
			inBrowser((*browser).random)},
		{"open-all", 0, "open the listed unread entries in the browser, after a question",
			"ls -o path QUERY | open --keep -", complete, inReader((*model).openAll)},
	}
}

// commandActions returns the actions that run commands.
func commandActions() []action {
	return []action{
		{"run", variadic, "run a command on the terminal", "", commands | maybeEntry, inPrograms((*page.Programs).Run)},
		{"run-wait", variadic, "run a command, and wait for Enter", "", commands | maybeEntry,
			inPrograms((*page.Programs).Run)},
		{"spawn", variadic, "run a command in the background", "", commands | maybeEntry,
			inPrograms((*page.Programs).Spawn)},
	}
}

// resolve returns what an action needs. If it is missing, it returns the message about that, or none if the action
// will be done when it is there.
func (m *model) resolve(a action, c keys.Call) (g part.Given, ok bool, refusal part.Effects) {
	g.Call = c
	b, has := &m.browser, func(n need) bool { return a.needs&n != 0 }
	switch {
	case has(fetcher) && m.o.NoFetcher != nil:
		return g, false, m.Fail(m.o.NoFetcher)
	case has(commands) && m.o.NoCommands != nil:
		return g, false, m.Fail(m.o.NoCommands)
	case has(feeds) && b.tree.Snapshot == nil, has(entries) && (b.tree.Snapshot == nil || b.tree.Snapshot.Partial):
		return g, false, m.Say("the entries are not read yet")
	case has(complete) && !b.list.Complete,
		has(anEntry|maybeEntry|aFeed|current) && b.focus == keys.ListPane && b.list.Outdated():
		return g, false, b.list.Incomplete()
	case has(aPage) && (b.focus != keys.PagePane || !b.page.Open() || b.page.Err != nil):
		return g, false, m.Say("open an entry first")
	case has(aPage) && b.page.Entry == nil:
		b.page.Await(c)
		return g, false, nil
	}
	g.Ref, ok = b.chosen()
	if has(anEntry) && !ok {
		return g, false, m.Say("choose an entry first")
	}
	if !ok {
		g.Ref = lektordir.Ref{}
	}
	if g.Feed = b.chosenFeed(); has(aFeed) && g.Feed == "" {
		return g, false, m.Say("choose a feed first")
	}
	return g, true, nil
}

// do does an action.
func (m *model) do(c keys.Call) part.Effects {
	a, ok := actionOf(c.Action)
	if !ok {
		return nil
	}
	g, ok, refusal := m.resolve(a, c)
	if !ok {
		return refusal
	}
	return a.do(m, g)
}

// parseFlags parses flags to set and to clear: +Fa-S sets F and a, and clears S. Words can
// replace the letters: +flagged-read.
func parseFlags(s string) (set, unset string, err error) {
	s = strings.ReplaceAll(s, " ", "")
	for s != "" {
		to := &set
		if sign := s[0]; sign == '+' || sign == '-' {
			s = s[1:]
			if sign == '-' {
				to = &unset
			}
		}
		end := strings.IndexAny(s, "+-")
		if end < 0 {
			end = len(s)
		}
		flags, err := query.ParseFlags(s[:end])
		if refused, ok := errors.AsType[*query.FlagError](err); ok {
			return "", "", fmt.Errorf("%w; %s", refused, refused.Hint)
		}
		*to, s = *to+flags, s[end:]
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
		for _, c := range b {
			_, piped := keys.PipeForm(c.Words)
			if a, _ := actionOf(c.Action); a.words == variadic || a.words == optional && len(piped) > 0 {
				return true
			}
		}
	}
	return false
}

// needsFetcher reports whether an action runs lektor-fetch.
func needsFetcher(c keys.Call) bool {
	a, _ := actionOf(c.Action)
	return a.needs&fetcher != 0
}
