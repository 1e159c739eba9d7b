// Package page is the open entry: its text, a search in it, its links and pictures, and the programs that get it.
package page

import (
	"context"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
	"github.com/lektordir/lektor/internal/app/viewer/tui/part"
	"github.com/lektordir/lektor/lektordir"
)

// Entry is an entry as text.
type Entry struct {
	Header     []string // a line for each field
	Text       string   // wrapped, with links as footnotes
	URL        string   // address of the entry's web page, or ""
	Links      []string // URLs in the order of their numbers, which begin at 1
	Pictures   []string // URLs
	Enclosures []string // URLs
	// HasArticle is true if Text is the article of the web page, and the feed has a text of its own.
	HasArticle bool
}

// Disk is what the page needs of the lektor-dir. Its methods may take long.
type Disk interface {
	// Page returns an entry as text wrapped to width columns: the article of its web page if
	// there is one and feedText is false, else the text of the feed.
	Page(ctx context.Context, ref lektordir.Ref, width int, feedText bool) (*Entry, error)
	// Picture fetches a picture of an entry.
	Picture(ctx context.Context, ref lektordir.Ref, url string) ([]byte, error)
	// Content returns an entry in a form: "text" as show prints it, "html" for the content as it is
	// kept, "url" or "title".
	Content(ctx context.Context, ref lektordir.Ref, form string) ([]byte, error)
	// SaveName returns a file name for an entry in a directory.
	SaveName(ctx context.Context, ref lektordir.Ref, dir string) string
	// SaveEntry saves an entry as a file: .txt is text, .html HTML, .eml a mail message. If the file
	// exists and replace is false, the error is [fs.ErrExist].
	SaveEntry(ctx context.Context, ref lektordir.Ref, path string, replace bool) error
	// Command returns the arguments of a program of the user for an entry, and environment variables that describe
	// the entry. Templates in the words of OwnCommand are filled in.
	Command(ctx context.Context, ref lektordir.Ref, of Program, words []string) (argv, env []string, err error)
}

// Page is the pane of the open entry.
type Page struct {
	*part.Env
	Disk     Disk
	Programs *Programs
	// Size returns the columns of the text, 0 if it is not visible, and the lines of the pane.
	Size func() (width, height int)

	Ref      lektordir.Ref // its name, also after a change renames it
	Key      part.Key      // key of Ref; 0 if no entry is open
	Entry    *Entry        // nil until it is read
	Lines    []string
	Y        int
	FeedText bool // show the feed's text, not the article of the page
	Err      error

	width   int       // columns for which the text was requested; 0 to read it again
	pending keys.Call // action to do when the entry is read
	find    finder
	Job     part.Job[int]
}

// Open reports whether an entry is open.
func (p *Page) Open() bool { return p.Key != 0 }

// Show opens an entry.
func (p *Page) Show(ref lektordir.Ref) {
	p.Close()
	p.Ref, p.Key = ref, part.KeyOf(ref)
}

// Close closes the entry.
func (p *Page) Close() {
	*p = Page{Env: p.Env, Disk: p.Disk, Programs: p.Programs, Size: p.Size, Job: p.Job}
}

// Await lets an action wait until the entry is read.
func (p *Page) Await(c keys.Call) { p.pending = c }

// Reread lets the entry be read again.
func (p *Page) Reread() { p.width = 0 }

// Scroll moves the text by n lines.
func (p *Page) Scroll(n int) {
	_, height := p.Size()
	p.Y = max(0, min(p.Y+n, len(p.Lines)-height))
}

// AtEnd reports whether the last line is visible.
func (p *Page) AtEnd() bool {
	_, height := p.Size()
	return p.Y+height >= len(p.Lines)
}

// Begin returns the command that reads the open entry and wraps its text for the width of
// the pane, nil if that is done or no text is shown.
func (p *Page) Begin() tea.Cmd {
	width, _ := p.Size()
	if !p.Open() || width <= 0 || p.width == width {
		return nil
	}
	// Cancel the read of another entry: a slow one must not delay this one.
	p.Job.End()
	p.width, p.Job.Next = width, &width
	ctx, _ := p.Job.Begin(p.Ctx)
	d, ref, feedText := p.Disk, p.Ref, p.FeedText
	return func() tea.Msg {
		entry, err := d.Page(ctx, ref, width, feedText)
		var lines []string
		if err == nil {
			for _, h := range entry.Header {
				lines = append(lines, cells.BreakLines(h, width)...)
			}
			lines = append(append(lines, ""), cells.BreakLines(entry.Text, width)...)
		}
		return part.Then(func() part.Effects {
			if ctx.Err() != nil {
				return nil
			}
			p.Job.End()
			return p.take(entry, lines, err)
		})
	}
}

// take shows the text of the open entry, and does the action that waited for it.
func (p *Page) take(entry *Entry, lines []string, err error) part.Effects {
	if p.Err = err; err == nil {
		// Text that is wrapped again stays at the same relative position.
		if old := len(p.Lines); old > 0 {
			p.Y = p.Y * len(lines) / old
		}
		p.Entry, p.Lines = entry, lines
		p.find.find(lines)
		p.Scroll(0)
	}
	pending := p.pending
	p.pending = keys.Call{}
	return part.Effects{part.Do{Call: pending}}
}

// ToggleFeedText switches between the text of the feed and the article of the page.
func (p *Page) ToggleFeedText(part.Given) part.Effects {
	if !p.Entry.HasArticle {
		return p.Say("the entry has only the text of its feed")
	}
	p.FeedText = !p.FeedText
	p.width, p.Y = 0, 0
	if p.FeedText {
		return p.Say("the text of the feed; %s shows the article of the page", p.KeyOf("feed-text"))
	}
	return p.Say("the article of the page")
}

// Place returns where the pane is in the text, for the last line.
func (p *Page) Place(pictures bool) string {
	place := p.Tr("all")
	_, height := p.Size()
	if n := len(p.Lines) - height; n > 0 {
		place = fmt.Sprintf("%d%%", p.Y*100/n)
	}
	if n := len(p.Entry.Enclosures); n > 0 {
		place += ", " + p.Trf("%d enclosures", n)
	}
	if n := len(p.Entry.Pictures); n > 0 && pictures {
		place += ", " + p.Trf("%d pictures", n)
	}
	return place
}

// IsNote reports whether a line is a footnote with a link.
func IsNote(line string) bool {
	n, rest, ok := strings.Cut(strings.TrimPrefix(line, "["), "] ")
	return ok && line[0] == '[' && strings.Trim(n, "0123456789") == "" && n != "" && strings.Contains(rest, ":")
}
