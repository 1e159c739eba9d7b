package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/app/viewer/tui/terminal"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// Program is which command of the user is run.
type Program uint8

// The programs.
const (
	OwnCommand Program = iota // the words
	Browser                   // opens a URL; "" means that of the entry
	URLPlayer                 // plays an enclosure, by its URL
	FilePlayer                // plays a file, by its path
	Clipboard                 // reads a text from its standard input
	Bookmarker
)

// Programs are the programs that get entries.
type Programs struct {
	*part.Env
	Disk   Disk
	Getenv func(string) string
	// Forbidden is the reason why keys must not run commands; nil means that they may.
	Forbidden error
	Plain     bool // the terminal understands no escape sequences
}

// Browse opens the entry in the user's browser.
func (p *Programs) Browse(g part.Given) part.Effects { return p.open(g.Ref, "") }

// open opens a URL in the user's browser; "" means the URL of the entry.
func (p *Programs) open(ref lektordir.Ref, url string) part.Effects {
	return append(p.Say("opening %s", cmp.Or(cells.Plain(url), p.Tr("the page of the entry"))),
		part.Background(func() part.Effects {
			err := p.browse(ref, url)
			if url == "" {
				text, _ := p.Disk.Content(p.Ctx, ref, "url")
				url = string(text)
			}
			return p.Result(p.Trf("opened %s", url), err)
		})...)
}

// browse runs the user's browser, which keeps running when the reader ends.
func (p *Programs) browse(ref lektordir.Ref, url string) error {
	argv, env, err := p.Disk.Command(p.Ctx, ref, Browser, []string{url})
	if err == nil {
		_, err = terminal.Background(env, argv)
	}
	return err
}

// BrowseAll opens entries in the user's browser, if the user confirms.
func (p *Programs) BrowseAll(refs []lektordir.Ref) part.Effects {
	open := func(ctx context.Context, progress func(string)) (string, error) {
		var errs []error
		for i, ref := range refs {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			progress(fmt.Sprintf("%d/%d", i+1, len(refs)))
			if err := p.browse(ref, ""); err != nil {
				errs = append(errs, err)
			}
		}
		if len(errs) > 0 {
			return "", errors.New(p.Trf("%d of %d entries were not opened: %s", len(errs), len(refs), errs[0].Error()))
		}
		return p.Trf("%d entries opened", len(refs)), nil
	}
	return part.Effects{part.Confirm{Text: p.Trf("open %d entries in the browser?", len(refs)),
		Yes: func() part.Effects { return part.Effects{part.Task{Name: p.Tr("opening"), Do: open}} }}}
}

// Play plays an enclosure by its URL, or a file; of is URLPlayer or FilePlayer. The player gets the terminal, because
// audio players show their position there.
func (p *Programs) Play(ref lektordir.Ref, of Program, what string) part.Effects {
	g := part.Given{Ref: ref, Call: keys.Call{Words: []string{what}}}
	return p.command(of, g, func(argv, env []string) part.Effects {
		return part.Effects{part.Exec{Cmd: terminal.Command(env, argv), Name: argv[0]}}
	})
}

// Run runs the command of a key on the terminal.
func (p *Programs) Run(g part.Given) part.Effects {
	return p.command(OwnCommand, g, func(argv, env []string) part.Effects {
		return part.Effects{part.Exec{Cmd: terminal.Command(env, argv), Name: argv[0], Wait: g.Action == "run-wait"}}
	})
}

// Spawn runs the command of a key in the background, and shows the first line that it prints.
func (p *Programs) Spawn(g part.Given) part.Effects {
	return p.command(OwnCommand, g, func(argv, env []string) part.Effects {
		return p.Result(terminal.Background(env, argv))
	})
}

// command fills in the templates in the words of a key for the chosen entry, if there is one, and calls do
// in a goroutine.
func (p *Programs) command(of Program, g part.Given, do func(argv, env []string) part.Effects) part.Effects {
	chosen := g.Ref.Unique != ""
	if !chosen && slices.ContainsFunc(g.Words, func(w string) bool { return strings.Contains(w, "{{") }) {
		return p.Say("choose an entry first")
	}
	return part.Background(func() part.Effects {
		if !chosen {
			return do(g.Words, nil)
		}
		argv, env, err := p.Disk.Command(p.Ctx, g.Ref, of, g.Words)
		if err != nil {
			return p.Fail(err)
		}
		return do(argv, env)
	})
}

// Yank copies the URL or the title of the entry.
func (p *Programs) Yank(g part.Given) part.Effects {
	form := cmp.Or(g.Word(), "url")
	what := map[string]string{"url": p.Tr("URL"), "title": p.Tr("title")}[form]
	if what == "" {
		return p.Say("there is no %s to copy: choose url, title or enclosure", form)
	}
	return part.Background(func() part.Effects {
		text, err := p.Disk.Content(p.Ctx, g.Ref, form)
		if err != nil {
			return p.Fail(err)
		}
		return p.copy(g.Ref, what, string(text))
	})
}

// clipboardVariable names the program that copies text; without it the terminal does.
const clipboardVariable = "LEKTOR_CLIPBOARD"

// copy copies a text by the user's program, or asks the terminal to. A terminal does not
// answer, so the message claims no more than the request.
func (p *Programs) copy(ref lektordir.Ref, what, text string) part.Effects {
	own := p.Getenv(clipboardVariable) != ""
	switch {
	case text == "":
		return p.Say("the entry has no %s", what)
	case !own && p.Plain:
		return p.Say("%s (nothing is copied without %s)", text, clipboardVariable)
	case !own:
		return append(p.Say("%s sent to the terminal's clipboard", what), part.Run(tea.SetClipboard(text)))
	}
	return append(p.Say("copying"), p.command(Clipboard, part.Given{Ref: ref}, func(argv, env []string) part.Effects {
		cmd := terminal.Command(env, argv)
		// Its output is not read: xclip and wl-copy leave a process behind that keeps it open.
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdin = strings.NewReader(text)
		if err := cmd.Run(); err != nil {
			return p.Fail(fmt.Errorf("%s: %w", argv[0], err))
		}
		return p.Say("%s copied", what)
	})...)
}

// Pipe pipes the text, the HTML or the URL of the entry into a command on the terminal. It asks
// for the command if the action has none.
func (p *Programs) Pipe(g part.Given) part.Effects {
	form, words := keys.PipeForm(g.Words)
	switch {
	case len(words) > 0 && p.Forbidden != nil:
		return p.Fail(p.Forbidden)
	case len(words) > 0:
		return p.pipe(g.Ref, form, words)
	}
	label := map[string]string{"text": p.Tr("pipe the text to: "), "html": p.Tr("pipe the HTML to: "),
		"url": p.Tr("pipe the URL to: ")}[form]
	return part.Effects{part.Ask{Label: label, Then: func(text string) part.Effects {
		words, err := cmdline.Words(text)
		if err != nil {
			return p.Fail(err)
		}
		if other, rest := keys.PipeForm(words); len(rest) > 0 && len(rest) < len(words) {
			form, words = other, rest
		}
		if len(words) == 0 {
			return nil
		}
		return p.pipe(g.Ref, form, words)
	}}}
}

// pipe runs a command on the terminal with an entry as its standard input.
func (p *Programs) pipe(ref lektordir.Ref, form string, words []string) part.Effects {
	g := part.Given{Ref: ref, Call: keys.Call{Words: words}}
	return p.command(OwnCommand, g, func(argv, env []string) part.Effects {
		text, err := p.Disk.Content(p.Ctx, ref, form)
		if err != nil {
			return p.Fail(err)
		}
		cmd := terminal.Command(env, argv)
		cmd.Stdin = strings.NewReader(string(text))
		return part.Effects{part.Exec{Cmd: cmd, Name: argv[0], Wait: true}}
	})
}

// Bookmark bookmarks the entry in the background, by the user's command.
func (p *Programs) Bookmark(g part.Given) part.Effects {
	return part.Effects{part.Task{Name: p.Tr("bookmarking"), Finish: true,
		Do: func(ctx context.Context, _ func(string)) (string, error) {
			argv, env, err := p.Disk.Command(ctx, g.Ref, Bookmarker, nil)
			if err != nil {
				return "", err
			}
			printed, err := terminal.Background(env, argv)
			return cmp.Or(printed, p.Tr("bookmarked")), err
		}}}
}

// Save saves the entry as a file. It asks for the name, unless the word of the action is the name of a
// file. A word that ends in a slash is a directory for the name that it offers.
func (p *Programs) Save(g part.Given) part.Effects {
	dir := cmp.Or(g.Word(), "~/")
	if !strings.HasSuffix(dir, "/") {
		return p.saveTo(g.Ref, dir, false)
	}
	return part.Background(func() part.Effects {
		name := p.Disk.SaveName(p.Ctx, g.Ref, dir)
		return part.Effects{part.Ask{Label: p.Tr("save entry as: "), Text: name, Late: true,
			Then: func(path string) part.Effects { return p.saveTo(g.Ref, path, false) }}}
	})
}

// saveTo saves an entry as a file. If the file exists, it asks whether to replace it.
func (p *Programs) saveTo(ref lektordir.Ref, path string, replace bool) part.Effects {
	if strings.TrimSpace(path) == "" {
		return nil
	}
	return part.Effects{part.Task{Name: p.Tr("saving"), Finish: true,
		Do: func(ctx context.Context, _ func(string)) (string, error) {
			return "", p.Disk.SaveEntry(ctx, ref, path, replace)
		},
		Then: func(err error) part.Effects {
			switch {
			case err == nil:
				return p.Say("saved as %s", path)
			case !errors.Is(err, fs.ErrExist) || replace:
				return p.Fail(err)
			}
			return part.Effects{part.Confirm{Text: p.Trf("%s exists already; replace it?", path), Late: true,
				Yes: func() part.Effects { return p.saveTo(ref, path, true) }}}
		}}}
}
