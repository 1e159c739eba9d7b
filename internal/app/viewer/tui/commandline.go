package tui

import (
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
	o        *Options
	browser  *browser
	commands page.Commands
	queue    *work.Queue
	remember func(line string) // adds a line to the history
}

// ask shows the command line.
func (l *commandLine) ask() part.Effects {
	return part.Effects{part.Ask{Label: ":", Then: l.run, Completes: part.Commands}}
}

// Folders returns the names of folders, see [prompt.Completer].
func (l *commandLine) Folders() (words []string) {
	for _, name := range l.browser.tree.Folders() {
		words = append(words, work.JoinWords([]string{name}))
	}
	return words
}

// Actions returns the actions that a line may become, see [prompt.Completer].
func (l *commandLine) Actions(line string) (words []string) {
	for _, a := range actions() {
		word := a.name
		if a.words != 0 {
			word += " "
		}
		words = append(words, word)
	}
	for before, names := range map[string][]string{"sort ": slices.Concat(tree.EntryOrders, tree.FeedOrders),
		"theme ":  cells.Themes,
		"layout ": cells.Layouts} {
		for _, name := range names {
			if !strings.HasPrefix(line, before) {
				continue
			}
			if words = append(words, before+name); before == "sort " {
				words = append(words, before+"-"+name)
			}
		}
	}
	return words
}

// Complete completes a command, see [prompt.Completer].
func (l *commandLine) Complete(line string) []cmdline.Candidate {
	if l.o.Commands == nil {
		return nil
	}
	return l.o.Commands.Complete(line)
}

// shortNames are names of actions that users of vim and newsboat know.
func shortNames(name string) string {
	switch name {
	case "q", "q!", "qa", "quit", "wq", "x":
		return "quit-now"
	case "w":
		return "save-query"
	case "h":
		return "help"
	}
	return name
}

// run does the actions and commands of a line, which ; separates, one after the other.
func (l *commandLine) run(text string) part.Effects {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	l.remember(text)
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
		c := keys.Call{Action: shortNames(words[0]), Words: words[1:]}
		err := check(c)
		if err == nil {
			e = append(e, part.Do{Call: c})
			continue
		}
		rest := func() part.Effects { return l.steps(steps[i+1:]) }
		cmd, refusal := l.command(words, err, rest)
		if refusal != nil {
			return append(append(e, refusal...), part.Then(rest))
		}
		return append(e, cmd...)
	}
	return e
}

// command runs a command of lektor-view, and then does the rest. Its output is shown as a menu, or on the terminal if
// the command needs it. If it takes entries and words has none, it gets the chosen one. The error
// is the refusal if there is no such command.
func (l *commandLine) command(words []string, err error, rest func() part.Effects) (e, refusal part.Effects) {
	if l.o.Commands == nil {
		return nil, l.Fail(err)
	}
	args, next, ok := l.o.Commands.Arguments(words)
	if !ok {
		if _, ok := actionOf(words[0]); !ok {
			err = errors.New(l.unknown(words[0]))
		}
		return nil, l.Fail(err)
	}
	words = slices.Clone(words)
	if words[0] == "tui" && l.o.Plain {
		words = append(words, "--plain")
	}
	if strings.HasPrefix(next, "ENTRY") {
		args, words = append(args, len(words)), append(words, "{{.path}}")
	}
	// Values of flags may be templates of their own, as with -o.
	args = slices.DeleteFunc(args, func(i int) bool { return !strings.Contains(words[i], "{{") })
	var ref lektordir.Ref
	if b := l.browser; len(args) > 0 {
		if b.focus == keys.ListPane && b.list.Outdated() {
			return nil, b.list.Incomplete()
		}
		if ref, ok = b.chosen(); !ok {
			return nil, l.Say("choose an entry first")
		}
	}
	name, before := ":"+words[0], l.queue.Earlier()
	argv := func(ctx context.Context) ([]string, error) {
		before()
		return l.fill(ctx, ref, words, args)
	}
	if slices.Contains(l.o.OnTerminal, words[0]) {
		return part.Background(func() part.Effects {
			all, err := argv(l.Ctx)
			if err != nil {
				return append(l.Fail(err), part.Then(rest))
			}
			return part.Effects{part.Exec{Cmd: terminal.Command(nil, all), Name: name, Wait: true,
				Then: func(err error) (e part.Effects) {
					if err != nil {
						e = l.Fail(fmt.Errorf("%s: %w", name, err))
					}
					return append(e, rest()...)
				}}}
		}), nil
	}
	return part.Effects{l.task(name, argv, rest)}, nil
}

// fill returns the words of a command with those before them. The arguments are templates for an entry.
func (l *commandLine) fill(ctx context.Context, ref lektordir.Ref, words []string, args []int) ([]string, error) {
	if len(args) > 0 {
		templates := []string{words[0]}
		for _, i := range args {
			templates = append(templates, words[i])
		}
		filled, _, err := l.commands.Command(ctx, ref, templates)
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
	width := l.browser.width
	var lines []string
	return part.Task{Name: name, Finish: true, // it may change entries
		Do: func(ctx context.Context, _ func(string)) (string, error) {
			all, err := argv(ctx)
			if err != nil {
				return "", err
			}
			if lines, err = terminal.Output(ctx, all, width); err != nil && len(lines) > 0 {
				return "", errors.New(name + ": " + lines[0])
			} else if err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			return "", nil
		},
		Then: func(err error) (e part.Effects) {
			if len(lines) > 1 {
				e = part.Effects{part.ShowText{Title: name, Lines: lines}}
			}
			switch {
			case err != nil:
				e = append(e, part.Say{Text: err.Error(), Bad: true})
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
