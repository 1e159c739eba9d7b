package work

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Downloads are the enclosures that the user wants to be saved, in the order of the keys.
type Downloads struct {
	*Work
	List []*Download
}

// Download is an enclosure to save.
type Download struct {
	ref        lektordir.Ref
	URL, title string
	dir        string // the directory to save below
	State      State
	task       *Task              // nil unless it is running
	cancel     context.CancelFunc // of the running task
	path       string             // path of the saved file
	err        error              // why it failed
}

// State is the state of a download.
type State uint8

// The states.

const (
	Waits State = iota
	Runs
	Saved
	Failed
	Cancelled
)

// maxDownloads is the number of downloads that run at a time, each from another host.
const maxDownloads = 2

// downloadsSetting is the name of the setting with the directory to save below.
const downloadsSetting = "downloads"

// Incomplete returns the number of downloads that run or wait.
func (ds *Downloads) Incomplete() (n int) {
	for _, d := range ds.List {
		if d.State == Waits || d.State == Runs {
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

// Add adds enclosures of an entry with a title to the downloads. If there is no directory to save below, it asks for
// it.
func (ds *Downloads) Add(d part.Download, title string) part.Effects {
	dir := cmp.Or(d.Dir, ds.Env.Screen.Get(downloadsSetting))
	if dir == "" {
		return part.Effects{part.Ask{Label: ds.Tr("download to: "), Text: "~/Podcasts",
			Then: func(dir string) part.Effects {
				if d.Dir = strings.TrimSpace(dir); d.Dir == "" {
					return nil
				}
				ds.Remember(downloadsSetting, d.Dir)
				return ds.Add(d, title)
			}}}
	}
	added := 0
	for _, url := range d.URLs {
		if !slices.ContainsFunc(ds.List, func(other *Download) bool {
			return other.URL == url && other.ref.Unique == d.Ref.Unique && other.State <= Runs
		}) {
			ds.List = append(ds.List, &Download{ref: d.Ref, URL: url, title: title, dir: dir})
			added++
		}
	}
	return append(ds.Say("%d downloads added; %s lists them", added, ds.KeyOf("downloads")), ds.begin()...)
}

// begin begins the downloads that may begin now.
func (ds *Downloads) begin() (e part.Effects) {
	busy := map[string]bool{}
	for _, d := range ds.List {
		if d.State == Runs {
			busy[hostOf(d.URL)] = true
		}
	}
	for _, d := range ds.List {
		if host := hostOf(d.URL); d.State == Waits && !busy[host] && len(busy) < maxDownloads {
			busy[host] = true
			e = append(e, ds.start(d)...)
		}
	}
	return e
}

// start begins a download.
func (ds *Downloads) start(d *Download) (begun part.Effects) {
	ctx, cancel := context.WithCancel(ds.Ctx)
	path, of := "", ds.Tr("of")
	d.State, d.cancel = Runs, cancel
	d.task, begun = ds.Tasks.Begin(part.Task{Name: cells.Ends(d.title, 24),
		Do: func(_ context.Context, progress func(string)) (_ string, err error) {
			path, err = ds.Disk.Download(ctx, d.ref, d.URL, d.dir, func(have, total int64) {
				if total > 0 {
					progress(fmt.Sprintf("%d%% ", have*100/total) + of + " " + humanize.Bytes(total))
				} else {
					progress(humanize.Bytes(have))
				}
			})
			return "", err
		},
		Then: func(err error) (e part.Effects) {
			stopped := ctx.Err() != nil
			cancel()
			d.path, d.err = path, err
			switch {
			case err == nil:
				d.State, e = Saved, ds.Say("%s saved", d.title)
			case stopped:
				d.State, e = Cancelled, ds.Say("download of %s cancelled", d.title)
			default:
				d.State, e = Failed, ds.Fail(err)
			}
			return append(e, ds.begin()...)
		}})
	return begun
}

// text returns the line of a download in their list.
func (ds *Downloads) text(d *Download) string {
	state, detail := [...]string{ds.Tr("waiting"), ds.Tr("starting"), ds.Tr("saved"), ds.Tr("failed"),
		ds.Tr("cancelled")}[d.State], d.URL
	switch d.State {
	case Runs:
		state = cmp.Or(d.task.Progress(), state)
	case Saved:
		detail = d.path
	case Failed:
		detail = d.err.Error()
	}
	return state + "  " + d.title + "  " + detail
}

// Show shows the downloads.
func (ds *Downloads) Show(part.Given) part.Effects {
	if len(ds.List) == 0 {
		return ds.Say("there are no downloads")
	}
	return part.Effects{part.Menu{Lines: &part.Lines{
		Title: ds.Tr("downloads"), Hint: ds.Trf("%s plays, d cancels or removes", ds.KeyOf("open")),
		Keys: map[string]string{"d": "trash"},
		Live: func() (lines []string) {
			for _, d := range ds.List {
				lines = append(lines, cells.Plain(ds.text(d)))
			}
			return lines
		},
		Choose: ds.choose,
	}}}
}

// choose does an action on a download in their list.
func (ds *Downloads) choose(c keys.Call, at int) (e part.Effects, ok bool) {
	if at >= len(ds.List) {
		// The next d must not close the menu, and trash the entry below it.
		return nil, c.Action == "trash"
	}
	d := ds.List[at]
	switch c.Action {
	case "trash":
		if d.State == Runs {
			d.cancel()
		} else {
			ds.List = slices.Delete(ds.List, at, at+1)
		}
		return nil, true
	case "open", "play":
		return ds.play(d), true
	}
	return nil, false
}

// play plays a saved file, or begins a download that failed again.
func (ds *Downloads) play(d *Download) part.Effects {
	switch d.State {
	case Saved:
		return ds.Env.Play(d.ref, d.path)
	case Failed, Cancelled:
		d.State = Waits
		return ds.begin()
	}
	return ds.Say("the file is not complete yet")
}
