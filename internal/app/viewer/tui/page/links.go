package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

// link is a line of the list of links.
type link struct {
	kind, url string
	number    int // among those of its kind, from 1
}

// all returns the links of an entry, then its enclosures and its pictures.
func (e *Entry) all() (list []link) {
	add := func(kind string, urls []string) {
		for i, url := range urls {
			list = append(list, link{kind, url, i + 1})
		}
	}
	add("link", e.Links)
	add("enclosure", e.Enclosures)
	add("picture", e.Pictures)
	return list
}

// ListLinks shows the links of the open entry. A count chooses a link by its number.
func (p *Page) ListLinks(part.Given) part.Effects {
	list := p.Entry.all()
	if len(list) == 0 {
		return p.Say("the entry has no links")
	}
	ref := p.Ref
	n := &part.Lines{Title: "links", Hint: p.Trf("%s opens, y copies the URL, %s downloads", p.KeyOf("open"),
		p.KeyOf("download")), Keys: map[string]string{"y": "yank", "w": "download", "D": "download"}}
	for _, l := range list {
		text := fmt.Sprintf("%3d ", l.number)
		if l.kind != "link" {
			text += p.Tr(l.kind) + " "
		}
		n.Text = append(n.Text, text+cells.Plain(l.url))
	}
	n.Choose = func(c keys.Call, at int) (part.Effects, bool) {
		if len(c.Words) > 0 && c.Action == "link" {
			c.Count, _ = strconv.Atoi(c.Words[0])
		}
		if !slices.Contains([]string{"open", "browser", "link", "download", "save", "yank"}, c.Action) {
			return nil, false
		}
		if c.Count > len(list) {
			return p.Say("there is no line %d", c.Count), true
		}
		if c.Count > 0 {
			at = c.Count - 1
		}
		if c.Action != "link" {
			n.At = at
		}
		l := list[at]
		switch {
		case c.Action == "yank":
			return p.Programs.copy(ref, p.Tr("URL"), l.url), true
		case c.Action != "download" && c.Action != "save":
			return p.Programs.open(ref, l.url), true
		case l.kind != "enclosure":
			return p.Say("this is no enclosure"), true
		}
		return part.Effects{part.Download{Ref: ref, URLs: []string{l.url}}}, true
	}
	return part.Effects{part.Menu{Lines: n}}
}

// complete reports whether typed digits can only be this number from 1 to total, or have as many
// digits as total.
func complete(digits string, total int) bool {
	n, err := strconv.Atoi(digits)
	return err == nil && (n*10 > total || len(digits) >= len(strconv.Itoa(total)))
}

// OpenLink opens a link by its number. Without a number it asks for one.
func (p *Page) OpenLink(g part.Given) part.Effects {
	n, total := g.Count, len(p.Entry.Links)
	switch {
	case total == 0:
		return p.Say("the entry has no links")
	case n == 0 && len(g.Words) == 0:
		return g.Ask(part.Ask{Label: "link number: ", Ready: func(text string) bool { return complete(text, total) }})
	case n == 0:
		var err error
		if n, err = strconv.Atoi(strings.TrimSpace(g.Words[0])); err != nil {
			return p.Say("%s is not the number of a link", g.Words[0])
		}
	}
	if n < 1 || n > total {
		return p.Say("there is no link %d", n)
	}
	return p.Programs.open(p.Ref, p.Entry.Links[n-1])
}

// enclosure does something with the URL of the enclosure of the count, else of the first, if there is one.
func (p *Page) enclosure(g part.Given, do func(url string) part.Effects) part.Effects {
	n, total := max(g.Count, 1), len(p.Entry.Enclosures)
	switch {
	case total == 0:
		return p.Say("the entry has no enclosures")
	case n > total:
		return p.Say("the entry has %d enclosures", total)
	}
	return do(p.Entry.Enclosures[n-1])
}

// Play plays an enclosure: the first, or the one of the count.
func (p *Page) Play(g part.Given) part.Effects {
	play := func(url string) part.Effects { return p.Programs.Play(p.Ref, URLPlayer, url) }
	if len(p.Entry.Enclosures) == 0 && feedurl.IsVideo(p.Entry.URL) {
		return play(p.Entry.URL)
	}
	return p.enclosure(g, play)
}

// YankEnclosure copies the URL of an enclosure: the first, or the one of the count.
func (p *Page) YankEnclosure(g part.Given) part.Effects {
	return p.enclosure(g, func(url string) part.Effects {
		return p.Programs.copy(p.Ref, p.Tr("URL of the enclosure"), url)
	})
}

// Download downloads the enclosures of the entry, or the one of the count.
func (p *Page) Download(g part.Given) part.Effects {
	return p.enclosure(g, func(url string) part.Effects {
		urls := []string{url}
		if g.Count == 0 {
			urls = p.Entry.Enclosures
		}
		d := part.Effects{part.Download{Ref: p.Ref, URLs: urls, Dir: g.Word()}}
		if g.Ref.HasFlag('d') {
			return part.Effects{part.Confirm{Text: "the enclosures are saved already; download again?",
				Yes: func() part.Effects { return d }}}
		}
		return d
	})
}
