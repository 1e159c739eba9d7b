package tui

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/lektordir"
)

// Exporter hands entries to other programs. It is a part of [Disk].
type Exporter interface {
	// Content returns an entry in a form: "text" as show prints it, "html" for the content as it is
	// kept, "url" or "title".
	Content(ctx context.Context, ref lektordir.Ref, form string) ([]byte, error)
	// Clip passes text to the user's clipboard program.
	Clip(ctx context.Context, text string) error
	// SaveName returns a file name for an entry in a directory.
	SaveName(ctx context.Context, ref lektordir.Ref, dir string) string
	// SaveEntry saves an entry as a file: .txt is text, .html HTML, .eml a mail message. If the file
	// exists and replace is false, the error is [fs.ErrExist].
	SaveEntry(ctx context.Context, ref lektordir.Ref, path string, replace bool) error
	// FilePlayer returns the command that plays a file.
	FilePlayer(path string) (argv []string, err error)
	// Bookmarker returns the command that bookmarks an entry.
	Bookmarker(ctx context.Context, ref lektordir.Ref) (argv []string, err error)
}

// exportActions returns the actions that hand an entry to other programs.
func exportActions() []action {
	return []action{
		{"links", 0, "list the links, enclosures and pictures of the entry", "open --keep --link N", listLinks},
		{"yank", 1, "copy the URL, the title or the enclosure: yank url, title or enclosure",
			"ls -o url, title, enclosures", yank},
		{"pipe", optional, "pipe the text, the HTML or the URL of the entry into a command: pipe text, html or url",
			"show, show --raw, ls -o url", pipe},
		{"save", 1, "save the entry as text, HTML or a mail message",
			"show, lektor-pages digest --full, lektor-pages message", saveEntry},
		{"download", 1, "download the enclosures of the entry; with N, number N", "save DIR", downloadEnclosures},
		{"downloads", 0, "list the downloads", "", listDownloads},
		{"bookmark", 0, "bookmark the entry, by the command in LEKTOR_BOOKMARK", "bookmark", bookmark},
	}
}

// linkOf is a line of the list of links.
type linkOf struct{ kind, url string }

// linksOf returns the links of a page, then its enclosures and its pictures.
func linksOf(p *Page) (list []linkOf) {
	for _, of := range []linkOf{{kind: "link"}, {kind: "enclosure"}, {kind: "picture"}} {
		for _, url := range map[string][]string{"link": p.Links, "enclosure": p.Enclosures,
			"picture": p.Pictures}[of.kind] {
			list = append(list, linkOf{of.kind, url})
		}
	}
	return list
}

// listLinks shows the links of the open entry. A count chooses a link by its number.
func listLinks(m *model, c keys.Call) tea.Cmd {
	page := m.needPage(c)
	if page == nil {
		return nil
	}
	list := linksOf(page)
	if len(list) == 0 {
		m.say("the entry has no links")
		return nil
	}
	ref := m.browser.page.ref
	n := &menu{title: "links", hint: m.Trf("%s opens, y copies the URL, %s downloads", m.o.Keys.Of("open"),
		m.o.Keys.Of("download")), wrap: true,
		keys: map[string]string{"y": "yank", "w": "download", "D": "download"}}
	number := 0
	for i, l := range list {
		if number++; i > 0 && list[i-1].kind != l.kind {
			number = 1
		}
		text := fmt.Sprintf("%3d ", number)
		if l.kind != "link" {
			text += m.Tr(l.kind) + " "
		}
		n.lines = append(n.lines, text+cells.Plain(l.url))
	}
	n.choose = func(m *model, c keys.Call, at int) (tea.Cmd, bool) {
		if len(c.Words) > 0 && c.Action == "link" {
			c.Count, _ = strconv.Atoi(c.Words[0])
		}
		if !slices.Contains([]string{"open", "browser", "link", "download", "save", "yank"}, c.Action) {
			return nil, false
		}
		if c.Count > len(list) {
			m.say("there is no line %d", c.Count)
			return nil, true
		}
		if c.Count > 0 {
			at = c.Count - 1
		}
		if c.Action != "link" {
			n.at = at
		}
		l := list[at]
		switch c.Action {
		case "open", "browser", "link":
			return openURL(m, ref, l.url), true
		case "download", "save":
			if l.kind == "enclosure" {
				return addDownloads(m, ref, []string{l.url}, ""), true
			}
			m.say("this is no enclosure")
			return nil, true
		}
		return m.copyText(m.Tr("URL"), l.url), true
	}
	m.input.menu = n
	return nil
}

// complete reports whether typed digits can only be this number from 1 to total, or have as many
// digits as total.
func complete(digits string, total int) bool {
	n, err := strconv.Atoi(digits)
	return err == nil && (n*10 > total || len(digits) >= len(strconv.Itoa(total)))
}

// yank copies the URL, the title or the enclosure of the entry; with a count, enclosure N.
func yank(m *model, c keys.Call) tea.Cmd {
	form := "url"
	if len(c.Words) > 0 {
		form = c.Words[0]
	}
	switch form {
	case "url", "title":
	case "enclosure":
		if url, ok := neededEnclosure(m, c); ok {
			return m.copyText(m.Tr("URL of the enclosure"), url)
		}
		return nil
	default:
		m.say("there is no %s to copy: choose url, title or enclosure", form)
		return nil
	}
	ref, ok := m.needEntry()
	if !ok {
		return nil
	}
	ctx, d := m.ctx, m.disk
	what := map[string]string{"url": m.Tr("URL"), "title": m.Tr("title")}[form]
	return func() tea.Msg {
		text, err := d.Content(ctx, ref, form)
		if err != nil {
			return statusMsg{"", err}
		}
		return thenMsg(func(m *model) tea.Cmd { return m.copyText(what, string(text)) })
	}
}

// neededEnclosure returns the URL of the enclosure of the count, else of the first. If there is
// none, it shows a message.
func neededEnclosure(m *model, c keys.Call) (url string, ok bool) {
	page, n := m.needPage(c), max(c.Count, 1)
	switch {
	case page == nil:
		return "", false
	case len(page.Enclosures) == 0:
		m.say("the entry has no enclosures")
		return "", false
	case n > len(page.Enclosures):
		m.say("the entry has %d enclosures", len(page.Enclosures))
		return "", false
	}
	return page.Enclosures[n-1], true
}

// clipboardVariable names the program that copies text; without it the terminal does.
const clipboardVariable = "LEKTOR_CLIPBOARD"

// copyText copies a text by the user's program, or asks the terminal to. A terminal does not
// answer, so the message claims no more than the request.
func (m *model) copyText(what, text string) tea.Cmd {
	switch {
	case text == "":
		m.say("the entry has no %s", what)
		return nil
	case m.o.Getenv(clipboardVariable) == "" && m.voice != nil:
		m.say("%s (nothing is copied without %s)", text, clipboardVariable)
		return nil
	case m.o.Getenv(clipboardVariable) == "":
		m.say("%s sent to the terminal's clipboard", what)
		return tea.SetClipboard(text)
	}
	ctx, d := m.ctx, m.disk
	m.say("copying")
	done := m.Trf("%s copied", what)
	return func() tea.Msg { return statusMsg{done, d.Clip(ctx, text)} }
}

// pipe pipes the text, the HTML or the URL of the entry into a command on the terminal. It asks
// for the command if c has none.
func pipe(m *model, c keys.Call) tea.Cmd {
	ref, ok := m.needEntry()
	if !ok {
		return nil
	}
	form, words := pipeForm(c.Words)
	if len(words) > 0 {
		if err := m.o.NoCommands; err != nil {
			m.fail(err)
			return nil
		}
		return pipeTo(m, ref, form, words)
	}
	label := map[string]string{"text": m.Tr("pipe the text to: "), "html": m.Tr("pipe the HTML to: "),
		"url": m.Tr("pipe the URL to: ")}[form]
	m.ask(label, "", "").then = func(m *model, text string) tea.Cmd {
		words, err := cmdline.Words(text)
		if err != nil {
			m.fail(err)
			return nil
		}
		if other, rest := pipeForm(words); len(rest) > 0 && len(rest) < len(words) {
			form, words = other, rest
		}
		if len(words) == 0 {
			return nil
		}
		return pipeTo(m, ref, form, words)
	}
	return nil
}

// pipeForm returns the form that words begin with (default "text"), and the other words.
func pipeForm(words []string) (form string, rest []string) {
	if len(words) > 0 {
		switch words[0] {
		case "text", "html", "url":
			return words[0], words[1:]
		}
	}
	return "text", words
}

// pipeTo runs a command on the terminal with an entry as its standard input.
func pipeTo(m *model, ref lektordir.Ref, form string, words []string) tea.Cmd {
	ctx, d := m.ctx, m.disk
	return func() tea.Msg {
		argv, err := d.Command(ctx, ref, words)
		if err != nil {
			return statusMsg{"", err}
		}
		text, err := d.Content(ctx, ref, form)
		if err != nil {
			return statusMsg{"", err}
		}
		cmd := newCommand(d.Environ(ctx, ref), argv)
		cmd.Stdin = strings.NewReader(string(text))
		return startMsg{cmd, argv[0], true}
	}
}

// bookmark bookmarks the entry in the background, by the user's command.
func bookmark(m *model, _ keys.Call) tea.Cmd {
	ref, ok := m.needEntry()
	if !ok {
		return nil
	}
	d, bookmarked := m.disk, m.Tr("bookmarked")
	t := m.tasks.Begin(m.Tr("bookmarking"), func(ctx context.Context, _ func(string)) (string, error) {
		argv, err := d.Bookmarker(ctx, ref)
		if err != nil {
			return "", err
		}
		msg := inBackground(d.Environ(ctx, ref), argv, bookmarked)
		return msg.text, msg.err
	})
	t.Finish = true
	return t.Await
}

// inBackground runs a command without the terminal, and returns the first line that it prints, or
// done if it prints nothing.
func inBackground(env, argv []string, done string) statusMsg {
	cmd := newCommand(env, argv)
	out := &limited{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // keep it off the terminal
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	printed, _, _ := strings.Cut(strings.TrimSpace(out.buf.String()), "\n")
	switch {
	case err == nil && printed == "":
		return statusMsg{done, nil}
	case err == nil:
		return statusMsg{printed, nil}
	case printed != "":
		err = fmt.Errorf("%w: %s", err, printed)
	}
	return statusMsg{"", fmt.Errorf("%s: %w", argv[0], err)}
}

// saveEntry saves the entry as a file. It asks for the name, unless the word of c is the name of a
// file. A word that ends in a slash is a directory for the name that it offers.
func saveEntry(m *model, c keys.Call) tea.Cmd {
	ref, ok := m.needEntry()
	if !ok {
		return nil
	}
	dir := "~/"
	if len(c.Words) > 0 {
		if dir = c.Words[0]; !strings.HasSuffix(dir, "/") {
			return saveTo(m, ref, dir, false)
		}
	}
	ctx, d := m.ctx, m.disk
	return func() tea.Msg {
		name := d.SaveName(ctx, ref, dir)
		return thenMsg(func(m *model) tea.Cmd {
			if !m.input.waits() {
				m.ask(m.Tr("save entry as: "), name, "").then = func(m *model,
					path string) tea.Cmd {
					return saveTo(m, ref, path, false)
				}
			}
			return nil
		})
	}
}

// saveTo saves an entry as a file. If the file exists, it asks whether to replace it.
func saveTo(m *model, ref lektordir.Ref, path string, replace bool) tea.Cmd {
	if strings.TrimSpace(path) == "" {
		return nil
	}
	d := m.disk
	t := m.tasks.Begin(m.Tr("saving"), func(ctx context.Context, _ func(string)) (string, error) {
		return "", d.SaveEntry(ctx, ref, path, replace)
	})
	t.Finish, t.Then = true, func(err error) tea.Cmd {
		switch {
		case err == nil:
			m.say("saved as %s", path)
		case !errors.Is(err, fs.ErrExist) || replace:
			m.fail(err)
		case !m.input.waits():
			m.status = status{}
			m.input.confirm(m.Trf("%s exists already; replace it?", path),
				func() tea.Cmd { return saveTo(m, ref, path, true) })
			return ignoreBurst(m) // it comes while the user may type
		}
		return nil
	}
	return t.Await
}
