package ess

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// TopOptions are the options of [Top].
type TopOptions struct {
	Common
	Documents []string // paths and URLs; "-" reads their names from stdin
	Nul       bool
	// Lines reads documents from files, one a line; "-" or no name reads them from stdin.
	// The NNO is written as one line.
	Lines  bool
	N      int
	Output string
	Print  cmdline.PrinterOptions
}

// Top writes the NNO of the newest N entries of documents. Documents that cannot be read
// are reported and skipped.
func Top(ctx context.Context, o TopOptions, s *cmdline.Streams) error {
	switch {
	case len(o.Documents) > 0:
	case o.Lines:
		o.Documents = []string{"-"}
	default:
		return &cmdline.UsageError{Message: "no DOCUMENT is given",
			Hint: "\"-\" reads their names from standard input, with --lines the documents"}
	}
	if o.Print.Format != "" {
		if _, err := cmdline.NewPrinter(io.Discard, o.Print, documentColumns); err != nil {
			return err
		}
	}
	top, err := cmdline.Interruptible(ctx, func() (*ess.Top, error) { return gather(ctx, o, s) })
	if err != nil {
		return err
	}
	entries := top.Entries()
	if top.Lost() {
		s.Report.Warn("the list ends after %s: later documents of feeds replaced entries, and older entries were already dropped", humanize.Count(len(entries), "entry"))
	}
	return writeNNO(s, entries, o.build(), o.Output, o.Lines, o.Print)
}

// gather adds the documents to an [ess.Top]. If entries were lost and all documents are
// files, it reads them again, now that all build times are known.
func gather(ctx context.Context, o TopOptions, s *cmdline.Streams) (*ess.Top, error) {
	client := fetch.NewClient(o.Fetch)
	defer client.Close()
	p := &topPass{s: s, client: client, lines: o.Lines, warnings: cmdline.Warnings{Report: s.Report},
		top: ess.NewTop(o.N)}
	names := o.Documents
	if !o.Lines {
		names = nil
		for name, err := range cmdline.ReadArgs(o.Documents, s.In, o.Nul) {
			if err != nil {
				s.Report.Print(err)
				continue
			}
			names = append(names, name)
		}
	}
	p.read(ctx, names)
	if ctx.Err() == nil && p.top.Lost() && rereadable(names) {
		p.top, p.second = p.top.Again(), true
		p.read(ctx, names)
	}
	return p.top, context.Cause(ctx)
}

// rereadable reports whether a second pass would read the same documents. A missing file
// was missing in the first pass, too.
func rereadable(names []string) bool {
	for _, name := range names {
		if fi, err := os.Stat(name); err == nil && !fi.Mode().IsRegular() || err != nil &&
			(name == "-" || feedurl.IsHTTP(name)) {
			return false
		}
	}
	return true
}

// topPass is a pass over the documents.
type topPass struct {
	s        *cmdline.Streams
	client   *fetch.Client
	lines    bool // each line of a file is a document
	warnings cmdline.Warnings
	top      *ess.Top
	second   bool // second pass: warnings were printed in the first
}

// read adds all documents.
func (p *topPass) read(ctx context.Context, names []string) {
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		if p.lines {
			p.file(ctx, name)
			continue
		}
		d, err := readDocument(ctx, p.client, name, p.s)
		if err == nil {
			err = p.add(name, 0, d.body)
		}
		p.report(ctx, d.name, 0, err)
	}
}

// file adds the documents of a file, one a line.
func (p *topPass) file(ctx context.Context, name string) {
	in := p.s.In
	if name == "-" {
		name = "standard input"
	} else {
		f, err := os.Open(name)
		if err != nil {
			p.report(ctx, name, 0, err)
			return
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 256<<10), maxDocument)
	n := 0
	for ctx.Err() == nil && lines.Scan() {
		if n++; len(bytes.TrimSpace(lines.Bytes())) > 0 {
			p.report(ctx, name, n, p.add(name, n, lines.Bytes()))
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		p.report(ctx, name, n+1, fmt.Errorf("it is larger than %d MiB; the file is read up to here", maxDocument>>20))
	} else {
		p.report(ctx, name, 0, err)
	}
}

// add adds a document, and reports its first defect.
func (p *topPass) add(name string, line int, b []byte) error {
	warned := p.second
	doc, err := ess.Decode(b, func(w ess.Warning) {
		if !warned {
			p.warnings.Warn("%s: %v", place(name, line), w)
		}
		warned = true
	})
	if err == nil {
		p.top.Add(doc)
	}
	return err
}

// report reports the error of a document; nil is allowed.
func (p *topPass) report(ctx context.Context, name string, line int, err error) {
	if err != nil && ctx.Err() == nil && !p.second {
		p.s.Report.Error("%v", inDocument(place(name, line), err))
	}
}

// place returns the name of a document, with a line number if line is not 0.
func place(name string, line int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}
