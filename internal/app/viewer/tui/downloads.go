package tui

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/work"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// downloads are the enclosures that the user wants to be saved, in the order of the keys.
type downloads struct{ list []*download }

// download is an enclosure to save.
type download struct {
	ref        lektordir.Ref
	url, title string
	dir        string // the directory to save below
	state      downloadState
	task       *work.Task         // nil unless it is running
	cancel     context.CancelFunc // of the running task
	path       string             // path of the saved file
	err        error              // why it failed
}

type downloadState uint8

const (
	downloadWaits downloadState = iota
	downloadRuns
	downloadSaved
	downloadFailed
	downloadCancelled
)

// maxDownloads is the number of downloads that run at a time, each from another host.
const maxDownloads = 2

// downloadsSetting is the name of the setting with the directory to save below.
const downloadsSetting = "downloads"

// next returns the first download that may begin now, nil if there is none.
func (ds *downloads) next() *download {
	busy := map[string]bool{}
	for _, d := range ds.list {
		if d.state == downloadRuns {
			busy[hostOf(d.url)] = true
		}
	}
	i := slices.IndexFunc(ds.list, func(d *download) bool { return d.state == downloadWaits && !busy[hostOf(d.url)] })
	if i < 0 || len(busy) >= maxDownloads {
		return nil
	}
	return ds.list[i]
}

// incomplete returns the number of downloads that run or wait.
func (ds *downloads) incomplete() (n int) {
	for _, d := range ds.list {
		if d.state == downloadWaits || d.state == downloadRuns {
			n++
		}
	}
	return n
}

func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Host)
}

// downloadEnclosures downloads the enclosures of the open entry, or the one of the count.
func downloadEnclosures(m *model, c keys.Call) tea.Cmd {
	url, ok := neededEnclosure(m, c)
	if !ok {
		return nil
	}
	urls, dir := []string{url}, ""
	ref, _ := m.browser.chosen()
	if c.Count == 0 {
		urls = m.browser.page.page.Enclosures
	}
	if len(c.Words) > 0 {
		dir = c.Words[0]
	}
	if ref.HasFlag('d') {
		m.input.confirm(m.Tr("the enclosures are saved already; download again?"),
			func() tea.Cmd { return addDownloads(m, ref, urls, dir) })
		return nil
	}
	return addDownloads(m, ref, urls, dir)
}

// addDownloads adds enclosures of an entry to the downloads. dir is the directory to save below;
// "" is the remembered one. If there is none, it asks for it.
func addDownloads(m *model, ref lektordir.Ref, urls []string, dir string) tea.Cmd {
	ds := &m.downloads
	if dir = cmp.Or(dir, m.o.Screen.Get(downloadsSetting)); dir == "" {
		return askDirectory(m, ref, urls)
	}
	title := urls[0]
	if row := m.rows[keyOf(ref)]; row != nil {
		title = row.Title
	}
	added := 0
	for _, url := range urls {
		if !slices.ContainsFunc(ds.list, func(d *download) bool {
			return d.url == url && d.ref.Unique == ref.Unique &&
				d.state <= downloadRuns
		}) {
			ds.list = append(ds.list, &download{ref: ref, url: url, title: title, dir: dir})
			added++
		}
	}
	m.say("%d downloads added; %s lists them", added, m.o.Keys.Of("downloads"))
	return beginDownloads(m)
}

// askDirectory asks for the directory of downloads, remembers it, and adds the downloads.
func askDirectory(m *model, ref lektordir.Ref, urls []string) tea.Cmd {
	if m.input.waits() {
		return nil
	}
	m.ask(m.Tr("download to: "), "~/Podcasts", "").then = func(m *model, dir string) tea.Cmd {
		if dir = strings.TrimSpace(dir); dir == "" {
			return nil
		}
		saveSetting(m, downloadsSetting, dir)
		return addDownloads(m, ref, urls, "")
	}
	return nil
}

// waits reports whether the reader waits for an answer of the user.
func (in *input) waits() bool { return in.prompt != nil || in.question != nil }

// beginDownloads begins the downloads that may begin now.
func beginDownloads(m *model) tea.Cmd {
	var cmds []tea.Cmd
	for d := m.downloads.next(); d != nil; d = m.downloads.next() {
		cmds = append(cmds, beginDownload(m, d))
	}
	return tea.Batch(cmds...)
}

func beginDownload(m *model, d *download) tea.Cmd {
	disk, send := m.disk, m.send
	saved, cancelled, of := m.Trf("%s saved", d.title), m.Trf("download of %s cancelled", d.title), m.Tr("of")
	ctx, cancel := context.WithCancel(m.ctx)
	t := m.tasks.Begin(cells.Ends(d.title, 24), func(_ context.Context, progress func(string)) (string, error) {
		defer cancel()
		path, err := disk.Download(ctx, d.ref, d.url, d.dir, func(have, total int64) {
			if total > 0 {
				progress(fmt.Sprintf("%d%% ", have*100/total) + of + " " + humanize.Bytes(total))
			} else {
				progress(humanize.Bytes(have))
			}
		})
		stopped := ctx.Err() != nil
		send(thenMsg(func(m *model) tea.Cmd { return endDownload(m, d, path, err, stopped) }))
		switch {
		case err == nil:
			return saved, nil
		case stopped:
			return cancelled, nil
		}
		return "", err
	})
	d.state, d.err, d.task, d.cancel = downloadRuns, nil, t, cancel
	return t.Await
}

// endDownload records the end of a download, and begins the next one.
func endDownload(m *model, d *download, path string, err error, stopped bool) tea.Cmd {
	d.task, d.path, d.err = nil, path, err
	switch {
	case err == nil:
		d.state = downloadSaved
	case stopped:
		d.state = downloadCancelled
	default:
		d.state = downloadFailed
	}
	return beginDownloads(m)
}

// text returns the line of a download in their list.
func (d *download) text(m *model) string {
	state := ""
	switch d.state {
	case downloadWaits:
		state = m.Tr("waiting")
	case downloadRuns:
		state = cmp.Or(d.task.Progress, m.Tr("starting"))
	case downloadSaved:
		return m.Tr("saved") + "  " + d.title + "  " + d.path
	case downloadFailed:
		return m.Tr("failed") + "  " + d.title + "  " + d.err.Error()
	case downloadCancelled:
		state = m.Tr("cancelled")
	}
	return state + "  " + d.title + "  " + d.url
}

// listDownloads shows the downloads.
func listDownloads(m *model, _ keys.Call) tea.Cmd {
	ds := &m.downloads
	if len(ds.list) == 0 {
		m.say("there are no downloads")
		return nil
	}
	m.input.menu = &menu{
		title: m.Tr("downloads"), hint: m.Trf("%s plays, d cancels or removes", m.o.Keys.Of("open")), wrap: true,
		keys: map[string]string{"d": "trash"},
		live: func() (lines []string) {
			for _, d := range ds.list {
				lines = append(lines, cells.Plain(d.text(m)))
			}
			return lines
		},
		choose: func(m *model, c keys.Call, at int) (tea.Cmd, bool) {
			if at >= len(ds.list) {
				// The next d must not close the menu, and trash the entry below it.
				return nil, c.Action == "trash"
			}
			d := ds.list[at]
			switch c.Action {
			case "trash":
				if d.state == downloadRuns {
					d.cancel()
				} else {
					ds.list = slices.Delete(ds.list, at, at+1)
				}
				return nil, true
			case "open", "play":
				return playDownload(m, d), true
			}
			return nil, false
		},
	}
	return nil
}

// playDownload plays a saved file, or begins a download that failed again.
func playDownload(m *model, d *download) tea.Cmd {
	switch d.state {
	case downloadSaved:
		ctx, disk, ref, path := m.ctx, m.disk, d.ref, d.path
		return func() tea.Msg {
			argv, err := disk.FilePlayer(path)
			if err != nil {
				return statusMsg{"", err}
			}
			return startMsg{newCommand(disk.Environ(ctx, ref), argv), argv[0], false}
		}
	case downloadFailed, downloadCancelled:
		d.state = downloadWaits
		return beginDownloads(m)
	}
	m.say("the file is not complete yet")
	return nil
}

// end ends the reader. If downloads are incomplete, it asks.
func end(m *model, _ keys.Call) tea.Cmd {
	n := m.downloads.incomplete()
	if n == 0 {
		return tea.Quit
	}
	m.input.confirm(m.Trf("%d downloads are not complete; end anyway?", n), func() tea.Cmd { return tea.Quit })
	return nil
}
