package fetcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of every command. Each command is a function of
// options and streams that knows nothing of a command line.
type Common struct {
	Dir string // path of the lektor-dir
	// Options are for commands that fetch or deliver. Delivered and Progress
	// are the command's own business.
	Options
}

// open opens the lektor-dir, which must be there.
func (c Common) open() (*lektordir.Dir, error) {
	if c.Dir == "" {
		return nil, command.Hint(errors.New("there is no home directory to keep feeds in"), "give --dir or set $LEKTORDIR")
	}
	return command.OpenDir(c.Dir, &lektordir.Options{Now: c.Fetch.Now})
}

// create opens the lektor-dir, and makes it if it is not there.
func (c Common) create() (*lektordir.Dir, error) {
	d, err := c.open()
	var none *lektordir.NotLektorDirError
	if !errors.As(err, &none) {
		return d, err
	}
	// Nobody wants four directories strewn among other files because of a
	// mistyped path.
	if names, _ := os.ReadDir(c.Dir); len(names) > 0 && !begun(names) {
		return nil, command.Hint(fmt.Errorf("%s holds other files and is no lektor-dir", c.Dir), "choose another with --dir or $LEKTORDIR, or: mkdir %s/tmp %[1]s/new %[1]s/cur %[1]s/src", c.Dir)
	}
	return lektordir.Create(c.Dir, &lektordir.Options{Now: c.Fetch.Now})
}

// begun reports whether a directory has a part of a lektor-dir, or only hidden
// files.
func begun(names []fs.DirEntry) bool {
	hidden := true
	for _, n := range names {
		if slices.Contains([]string{"tmp", "new", "cur", "src", "etc"}, n.Name()) {
			return true
		}
		hidden = hidden && strings.HasPrefix(n.Name(), ".")
	}
	return hidden
}

// runner makes a runner on an open lektor-dir that prints the entries it
// delivers; p may be nil.
func (c Common) runner(s *command.Streams, d *lektordir.Dir, p *printer) (*Runner, error) {
	// Markers are moved and removed without a look at who left them.
	if err := d.Inside("etc/fetch", "etc/fetch/due", "etc/fetch/taken"); err != nil {
		return nil, err
	}
	if p != nil {
		c.Delivered = func(refs []lektordir.Ref) { p.entries(d, refs) }
	}
	c.Progress = func(total int) (func(), func()) {
		bar := s.Report.Progress(total, "fetching")
		return func() { bar.Add(1) }, bar.Done
	}
	return New(d, s.Report, c.Options)
}

// begin makes a runner on a lektor-dir that is made if it is not there, and
// finishes what others left half done. A dry run does neither: an empty
// directory elsewhere stands for one that is not there. end ends the runner.
func (c Common) begin(ctx context.Context, s *command.Streams, dryRun bool, p *printer) (r *Runner, end func(), err error) {
	remove := func() {}
	if _, missing := os.Lstat(c.Dir); dryRun && c.Dir != "" && errors.Is(missing, fs.ErrNotExist) {
		temp, err := os.MkdirTemp("", "lektor-dry-run-")
		if err != nil {
			return nil, nil, err
		}
		c.Dir = temp
		remove = func() { os.RemoveAll(temp) }
	}
	d, err := c.create()
	if err == nil {
		r, err = c.runner(s, d, p)
	}
	if err != nil {
		remove()
		return nil, nil, err
	}
	if !dryRun {
		r.Recover(ctx)
	}
	return r, func() { r.Close(); remove() }, nil
}

// printer prints entries that were delivered.
type printer struct {
	*command.Printer[*delivered]
	s      *command.Streams
	format string
}

// delivered is an entry that was delivered.
type delivered struct {
	d   *lektordir.Dir
	ref lektordir.Ref
	e   lektordir.Entry
}

var columns = []command.Column[*delivered]{
	{Name: "path", Verbatim: true, Get: func(r *delivered) any { return r.d.Abs(r.ref) }},
	{Name: "date", Get: func(r *delivered) any { return cmp.Or(r.e.PubDate, r.ref.Delivered()) }},
	{Name: "feed", Get: func(r *delivered) any { return r.d.FeedOf(r.ref).Title() }},
	{Name: "title", Get: func(r *delivered) any { return r.e.Title }},
	{Name: "url", Get: func(r *delivered) any { return r.e.URL() }},
	{Name: "id", Get: func(r *delivered) any { return r.e.ID }},
	{Name: "author", Get: func(r *delivered) any { return r.e.Author }},
}

// newPrinter prints in a format; nil for none.
func newPrinter(s *command.Streams, format string) (*printer, error) {
	if format == "" {
		return nil, nil
	}
	p, err := command.NewPrinter(s.Out, command.PrinterOptions{Format: format}, columns)
	return &printer{p, s, format}, err
}

func (p *printer) entries(d *lektordir.Dir, refs []lektordir.Ref) {
	for _, ref := range refs {
		r := &delivered{d: d, ref: ref}
		if p.format != "path" {
			if e, _ := d.ReadEntry(ref, lektordir.AllFields&^lektordir.FieldContent); e != nil {
				r.e = *e
			}
		}
		if err := p.Print(r); err != nil {
			p.s.Report.Error("%v", err)
			return
		}
	}
	// What cannot be written is noticed, and reported, by command.Main.
	_ = p.Flush()
}

// feeds gives the hashes of the feeds that the user names, each once. Those
// that are not there are reported.
func feeds(d *lektordir.Dir, args []string, nul bool, s *command.Streams) (hashes []string) {
	find := &feeddir.Finder{Dir: d}
	for name, err := range command.ReadArgs(args, s.In, nul) {
		var h string
		if err == nil {
			h, err = find.Find(name)
		}
		if err != nil {
			s.Report.Print(feedHint(err))
		} else if !slices.Contains(hashes, h) {
			hashes = append(hashes, h)
		}
	}
	return hashes
}

// feedHint adds to an error about a feed what can be done.
func feedHint(err error) error {
	var none *lektordir.NoFeedError
	var not *feeddir.NotSubscribedError
	var several *feeddir.SeveralError
	var inUse *lektordir.BusyError
	switch {
	case errors.As(err, &several):
		return command.Hint(err, "give the feed's hash or URL")
	case errors.As(err, &none) && len(none.Matches) > 1:
		return command.Hint(err, "give more of the hash, or the feed's URL")
	case errors.As(err, &none), errors.As(err, &not):
		return command.Hint(err, "lektor-fetch ls lists the feeds there are")
	case errors.As(err, &inUse):
		return command.Hint(err, "try again in a moment")
	}
	return err
}

// input reads a file, or standard input for "-", as far as one byte beyond a
// limit: a file may be a device without an end.
func input(s *command.Streams, file string, limit int64) ([]byte, error) {
	in, name := s.In, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in, name = f, file
	} else if s.InIsTerminal() {
		s.Report.Info("reading standard input; end it with ^D")
	}
	data, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// printLine prints text of strangers on a line.
func printLine(s *command.Streams, text string) { fmt.Fprintln(s.Out, termsafe.Line(text)) }
