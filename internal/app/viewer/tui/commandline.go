package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/page"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/prompt"
	"github.com/lektordir/lektor/internal/app/viewer/tui/terminal"
	"github.com/lektordir/lektor/internal/app/viewer/tui/tree"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// Commands parses command lines of the program, see [cmdline.Line].
type Commands interface {
	Complete(line string) []cmdline.Candidate
	Arguments(words []string) (args []int, next string, ok bool)
}

// commandLine does actions and commands that the user types.
type commandLine struct {
	*part.Env
	o       *Options
	browser *browser
	prompt  *prompt.Prompt
	with    func(n need, c keys.Call, do does) part.Effects // does an action with what it needs
}

// ask shows the command line.
func (l *commandLine) ask(part.Given) part.Effects {
	return part.Effects{part.Ask{Label: ":", Then: l.run, Words: actionLines, Commands: l.o.Commands.Complete}}
}

// folderLines returns the lines of folders that a line may become.
func (l *commandLine) folderLines(line string) (lines []string) {
	at := strings.LastIndex(line, "|") + 1
	at += len(line[at:]) - len(strings.TrimLeft(line[at:], " "))
	for _, f := range cmp.Or(l.browser.tree.Snapshot, &tree.Snapshot{}).Feeds {
		for _, name := range f.Folders {
			lines = append(lines, line[:at]+work.JoinWords([]string{name}))
		}
	}
	return lines
}

// actionLines returns the actions that a line may become, with their words.
func actionLines(line string) (lines []string) {
	for _, a := range actions() {
		if a.words != 0 {
			a.name += " "
		}
		lines = append(lines, a.name)
	}
	if action, _, ok := strings.Cut(line, " "); ok {
		for _, name := range map[string][]string{"theme": cells.Themes, "layout": cells.Layouts,
			"sort": slices.Concat(tree.EntryOrders, tree.FeedOrders)}[action] {
			if lines = append(lines, action+" "+name); action == "sort" {
				lines = append(lines, "sort -"+name)
			}
		}
	}
	return lines
}

// shortNames are names of actions that users of vim and newsboat know.
var shortNames = map[string]string{"q": "quit-now", "q!": "quit-now", "qa": "quit-now", "quit": "quit-now",
	"wq": "quit-now", "x": "quit-now", "w": "save-query", "h": "help"}

// run does the actions and commands of a line, which ; separates, one after the other.
func (l *commandLine) run(text string) part.Effects {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	l.prompt.Remember(text)
	if n, err := strconv.Atoi(text); err == nil {
		return l.browser.to(n - 1)
	}
	steps, err := cmdline.Commands(text)
	if err != nil {
		return l.Fail(err)
	}
	return l.steps(slices.DeleteFunc(steps, func(words []string) bool { return len(words) == 0 }))
}

// steps does actions and commands. Steps after a command wait for its end.
func (l *commandLine) steps(steps [][]string) (e part.Effects) {
	for i, words := range steps {
		c := keys.Call{Action: cmp.Or(shortNames[words[0]], words[0]), Words: words[1:]}
		err := check(c)
		if err == nil {
			e = append(e, part.Do{Call: c})
			continue
		}
		return append(e, l.command(words, err, func() part.Effects { return l.steps(steps[i+1:]) })...)
	}
	return e
}

// command runs a command of lektor-view, and then does the rest, unless it refuses the command. If it takes entries and
// words has none, it gets the chosen one. The error is the refusal if there is no such command.
func (l *commandLine) command(words []string, err error, rest func() part.Effects) part.Effects {
	args, next, ok := l.o.Commands.Arguments(words)
	if !ok {
		if _, ok := actionOf(words[0]); !ok {
			err = errors.New(l.unknown(words[0]))
		}
		return l.Fail(err)
	}
	words = slices.Clone(words)
	if words[0] == "tui" && l.o.Plain {
		words = append(words, "--plain")
	}
	if strings.HasPrefix(next, "ENTRY") {
		args, words = append(args, len(words)), append(words, "{{.path}}")
	}
	needs := anEntry
	// Values of flags may be templates of their own, as with -o.
	if args = slices.DeleteFunc(args, func(i int) bool { return !strings.Contains(words[i], "{{") }); len(args) == 0 {
		needs = 0
	}
	return l.with(needs, keys.Call{}, func(g part.Given) part.Effects {
		before := l.browser.marks.Earlier()
		return l.start(words, rest, func(ctx context.Context) ([]string, error) {
			before()
			return l.fill(ctx, g.Ref, words, args)
		})
	})
}

// start runs a command, and then does the rest. Its output is shown as a menu, or on the terminal if the command needs
// it. The arguments come from argv, which may take long.
func (l *commandLine) start(words []string, rest func() part.Effects,
	argv func(context.Context) ([]string, error)) part.Effects {
	name := ":" + words[0]
	if !slices.Contains(l.o.OnTerminal, words[0]) {
		return part.Effects{l.task(name, argv, rest)}
	}
	return part.Background(func() part.Effects {
		all, err := argv(l.Ctx)
		if err != nil {
			return append(l.Fail(err), part.Then(rest))
		}
		return part.Effects{part.Exec{Cmd: terminal.Command(nil, all), Name: name, Wait: true, Then: rest}}
	})
}

// fill returns the words of a command with those before them. The arguments are templates for an entry.
func (l *commandLine) fill(ctx context.Context, ref lektordir.Ref, words []string, args []int) ([]string, error) {
	if len(args) > 0 {
		templates := []string{words[0]}
		for _, i := range args {
			templates = append(templates, words[i])
		}
		filled, _, err := l.browser.page.Programs.Disk.Command(ctx, ref, page.OwnCommand, templates)
		if err != nil {
			return nil, err
		}
		for n, i := range args {
			words[i] = filled[n+1]
		}
	}
	return slices.Concat(l.o.Self, words), nil
}

// task returns the task that runs a command without a terminal, and shows its output: a line
// in the last line of the screen, and more as a menu.
func (l *commandLine) task(name string, argv func(context.Context) ([]string, error),
	rest func() part.Effects) part.Task {
	width := l.browser.Width
	var lines []string
	return part.Task{Name: name, Finish: true, // it may change entries
		Do: func(ctx context.Context, _ func(string)) (string, error) {
			all, err := argv(ctx)
			if err == nil {
				lines, err = terminal.Output(ctx, all, width)
			}
			if err != nil && len(lines) > 0 {
				err = errors.New(lines[0])
			}
			return "", err
		},
		Then: func(err error) (e part.Effects) {
			if len(lines) > 1 {
				l.prompt.ShowText(name, lines)
			}
			switch {
			case err != nil:
				e = l.Fail(fmt.Errorf("%s: %w", name, err))
			case len(lines) == 1:
				e = append(e, part.Say{Text: lines[0]})
			case len(lines) == 0:
				e = append(e, l.Say("%s: done", name)...)
			}
			return append(e, rest()...)
		}}
}

// unknown returns the message about a word that begins no line, with what is meant here by those of newsboat.
func (l *commandLine) unknown(word string) string {
	meant := map[string]string{
		"set":    l.Tr("type a line of etc/view/look, as theme dark"),
		"source": l.Tr("reload reads etc/view/look again"),
		"tag":    l.Tr("folders chooses a folder"),
		"goto":   l.Tr("search feed:NAME lists a feed"),
		"exec":   l.Tr("type the action without it"),
	}[word]
	if meant == "" {
		return l.Trf("there is no action or command %s", word)
	}
	return l.Trf("there is no command %s here: %s", word, meant)
}
