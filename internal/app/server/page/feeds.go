package page

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/server"
	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/content/htmlsafe"
	"github.com/lektordir/lektor/internal/protocol/query"
)

// feedRow is a feed of the list of feeds.
type feedRow struct {
	Title, URL, Icon, Lang string
	Unread, Shown          int
	Trouble                string
}

// folderRow is a folder with its feeds.
type folderRow struct {
	Title, URL string
	Unread     int
	Feeds      []feedRow
}

// feeds shows all feeds by folder, with counts and the errors of their last fetches.
func (c *visit) feeds() error {
	folders := map[string]*folderRow{}
	names := c.v.Folders()
	for _, f := range c.v.Feeds {
		line := feedRow{Title: server.Title(f), URL: scope{In: "unread", Feed: f.Hash}.URL(), Unread: f.Unread,
			Shown: f.Shown, Trouble: c.v.Trouble(f), Lang: content.Language(f.About.Language)}
		if f.Unread == 0 {
			line.URL = scope{In: "all", Feed: f.Hash}.URL()
		}
		if c.o.Images == "always" {
			line.Icon = htmlsafe.URL(f.About.Image)
		}
		in := c.v.FoldersOf(f, names)
		if len(in) == 0 {
			in = []string{""}
		}
		for _, name := range in {
			folder := folders[name]
			if folder == nil {
				folder = &folderRow{Title: name, URL: scope{In: "unread", Folder: name}.URL()}
				folders[name] = folder
			}
			folder.Unread += f.Unread
			folder.Feeds = append(folder.Feeds, line)
		}
	}
	var list []*folderRow
	for _, f := range folders {
		slices.SortFunc(f.Feeds, func(a, b feedRow) int { return byName(a.Title, b.Title) })
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *folderRow) int { // feeds without a folder are the last
		if (a.Title == "") != (b.Title == "") {
			return -cmp.Compare(a.Title, b.Title)
		}
		return byName(a.Title, b.Title)
	})
	return c.show(http.StatusOK, "feeds", frame{Title: "Feeds", In: "feeds", Main: list})
}

func byName(a, b string) int {
	return cmp.Or(cmp.Compare(query.Fold(a), query.Fold(b)), cmp.Compare(a, b))
}

// addedData is the data of the page about a feed that was added.
type addedData struct {
	URL, Error, Title, Trouble, List string
	Waiting                          bool
	Shown                            int
}

// add subscribes to a feed, or to that of a page, and leads to the page about it.
func (c *visit) add() error {
	d := addedData{URL: strings.TrimSpace(c.form.Get("url"))}
	hash, done, err := c.v.Subscribe(d.URL)
	if status, message := server.Refusal(err); err != nil && status < http.StatusInternalServerError {
		d.Error = message
		return c.show(http.StatusOK, "add", frame{Title: "Add a feed", In: "feeds", Main: d})
	}
	if err != nil {
		return err
	}
	c.form.Set("back", "add?feed="+hash)
	if done.Count == 0 {
		c.leave("add?feed=" + hash)
		return nil
	}
	return c.say("added", done)
}

// added shows the form for a new feed, and what came of one that was added.
func (c *visit) added() error {
	d := addedData{URL: c.form.Get("url")}
	if hash := c.form.Get("feed"); hash != "" {
		f := c.v.Successor(hash)
		if f == nil {
			d.Error = "There is no such feed any more."
		} else {
			d.Title, d.Trouble, d.Shown = server.Title(f), c.v.Trouble(f), f.Shown
			d.Waiting = f.Shown == 0 && d.Trouble == ""
			d.List = scope{In: "unread", Feed: f.Hash}.URL()
		}
	}
	return c.show(http.StatusOK, "add", frame{Title: "Add a feed", In: "feeds", Main: d})
}
