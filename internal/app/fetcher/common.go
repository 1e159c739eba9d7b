package fetcher

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/schedule"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// Common holds the options of every command. Each command is a function of options and streams; it
// does not see a command line.
type Common struct {
	Dir string // path of the lektor-dir
	// Options are for commands that fetch or deliver. The command itself sets Delivered and
	// Progress.
	Options
}

// open opens the lektor-dir, which must exist.
func (c Common) open() (*lektordir.Dir, error) {
	return cmdline.OpenDir(c.Dir, &lektordir.Options{Now: c.Fetch.Now})
}

// runner returns a runner on an open lektor-dir. It prints delivered entries with p, which may be
// nil.
func (c Common) runner(s *cmdline.Streams, d *lektordir.Dir, p *printer) (*Runner, error) {
	// Markers are moved and removed without a check of their owner.
	if err := schedule.CheckMarkers(d); err != nil {
		return nil, err
	}
	if p != nil {
		store := entrystore.New(d, time.Now(), s)
		if err := p.Check(store.Record(lektordir.Ref{})); err != nil {
			return nil, err
		}
		c.Delivered = func(refs []lektordir.Ref) {
			for _, ref := range refs {
				if err := p.Print(store.Record(ref)); err != nil {
					s.Report.Error("%v", err)
					return
				}
			}
			// cmdline.Main notices and reports write errors.
			_ = p.Flush()
		}
	}
	c.Progress = func(what string, total int) (func(), func()) {
		bar := s.Report.Progress(total, what)
		if total == 0 {
			bar = s.Report.Counter(what)
		}
		return func() { bar.Add(1) }, bar.Done
	}
	if c.Steps {
		c.Progress = steps(s.Out)
	}
	return New(d, s.Report, c.Options)
}

// steps returns a progress that writes a line for each step: a description, the number of steps
// that are done, and their total, 0 if it is unknown, with tabs between them.
func steps(w io.Writer) func(what string, total int) (step, end func()) {
	return func(what string, total int) (func(), func()) {
		var mu sync.Mutex
		done := 0
		return func() {
			mu.Lock()
			defer mu.Unlock()
			done++
			fmt.Fprintf(w, "%s\t%d\t%d\n", what, done, total)
		}, func() {}
	}
}

// begin returns a runner on a lektor-dir, which it creates if necessary, and recovers interrupted
// work. A dry run does neither, see [cmdline.CreateDirUnless]. The caller must call end.
func (c Common) begin(ctx context.Context, s *cmdline.Streams, dryRun bool, p *printer) (r *Runner, end func(),
	err error) {
	d, remove, err := cmdline.CreateDirUnless(dryRun, c.Dir, &lektordir.Options{Now: c.Fetch.Now})
	if err != nil {
		return nil, nil, err
	}
	if r, err = c.runner(s, d, p); err != nil {
		remove()
		return nil, nil, err
	}
	if !dryRun {
		r.Recover(ctx)
	}
	return r, func() { r.Close(); remove() }, nil
}

// printer prints delivered entries.
type printer = cmdline.Printer[*entrystore.Record]

// newPrinter returns a printer for a format; nil if format is empty.
func newPrinter(s *cmdline.Streams, format string) (*printer, error) {
	if format == "" {
		return nil, nil
	}
	return cmdline.NewPrinter(s.Out, cmdline.PrinterOptions{Format: format},
		entrystore.Columns("path", "date", "feed", "title", "url", "id", "author"))
}

// printLine prints untrusted text on one line, made safe for a terminal.
func printLine(s *cmdline.Streams, text string) { fmt.Fprintln(s.Out, termsafe.Line(text)) }
