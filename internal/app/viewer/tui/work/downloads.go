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
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/lektordir"
)

// Downloads are the enclosures that the user wants to be saved, in the order of the keys.
type Downloads struct {
	*Env
	tasks  *Tasks
	screen *values.Values
	List   []*Download
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

// next returns the first download that may begin now, nil if there is none.
func (ds *Downloads) next() *Download {
	busy := map[string]bool{}
	for _, d := range ds.List {
		if d.State == Runs {
			busy[hostOf(d.URL)] = true
		}
	}
	i := slices.IndexFunc(ds.List, func(d *Download) bool { return d.State == Waits && !busy[hostOf(d.URL)] })
	if i < 0 || len(busy) >= maxDownloads {
		return nil
	}
	return ds.List[i]
}

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
	dir := cmp.Or(d.Dir, ds.screen.Get(downloadsSetting))
	if dir == "" {
		return part.Effects{part.Ask{Label: ds.Tr("download to: "), Text: "~/Podcasts",
			Then: func(dir string) part.Effects {
				if d.Dir = strings.TrimSpace(dir); d.Dir == "" {
					return nil
				}
				return append(part.Effects{part.Remember{Name: downloadsSetting, Value: d.Dir}}, ds.Add(d, title)...)
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
	for d := ds.next(); d != nil; d = ds.next() {
		e = append(e, part.Run(ds.start(d).Await))
	}
	return e
}

// start begins a download.
func (ds *Downloads) start(d *Download) *Task {
	saved, cancelled, of := ds.Trf("%s saved", d.title), ds.Trf("download of %s cancelled", d.title), ds.Tr("of")
	ctx, cancel := context.WithCancel(ds.Ctx)
	t := ds.tasks.Begin(cells.Ends(d.title, 24), func(_ context.Context, progress func(string)) (string, error) {
		defer cancel()
		path, err := ds.Disk.Download(ctx, d.ref, d.URL, d.dir, func(have, total int64) {
			if total > 0 {
				progress(fmt.Sprintf("%d%% ", have*100/total) + of + " " + humanize.Bytes(total))
			} else {
				progress(humanize.Bytes(have))
			}
		})
		stopped := ctx.Err() != nil
		ds.Send(part.Then(func() part.Effects { return ds.ended(d, path, err, stopped) }))
		switch {
		case err == nil:
			return saved, nil
		case stopped:
			return cancelled, nil
		}
		return "", err
	})
	d.State, d.err, d.task, d.cancel = Runs, nil, t, cancel
	return t
}

// ended records the end of a download, and begins the next one.
func (ds *Downloads) ended(d *Download, path string, err error, stopped bool) part.Effects {
	d.task, d.path, d.err = nil, path, err
	switch {
	case err == nil:
		d.State = Saved
	case stopped:
		d.State = Cancelled
	default:
		d.State = Failed
	}
	return ds.begin()
}

// text returns the line of a download in their list.
func (ds *Downloads) text(d *Download) string {
	state := ""
	switch d.State {
	case Waits:
		state = ds.Tr("waiting")
	case Runs:
		state = cmp.Or(d.task.Progress, ds.Tr("starting"))
	case Saved:
		return ds.Tr("saved") + "  " + d.title + "  " + d.path
	case Failed:
		return ds.Tr("failed") + "  " + d.title + "  " + d.err.Error()
	case Cancelled:
		state = ds.Tr("cancelled")
	}
	return state + "  " + d.title + "  " + d.URL
}

// Show shows the downloads.
func (ds *Downloads) Show(part.Given) part.Effects {
	if len(ds.List) == 0 {
		return ds.Say("there are no downloads")
	}
	return part.Effects{part.Menu{Lines: &part.Lines{
		Title: ds.Tr("downloads"), Hint: ds.Trf("%s plays, d cancels or removes", ds.KeyOf("open")), Wrap: true,
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
		return part.Effects{part.Play{Ref: d.ref, Path: d.path}}
	case Failed, Cancelled:
		d.State = Waits
		return ds.begin()
	}
	return ds.Say("the file is not complete yet")
}
