package ess

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
)

// TopOptions are the options of [Top].
type TopOptions struct {
	Common
	Documents []string // paths and URLs; "-" for those on stdin
	Nul       bool
	// Lines reads documents one a line, from the files named, "-" and none for
	// stdin, and writes the NNO as one line.
	Lines  bool
	N      int
	Output string
	Print  command.PrinterOptions
}

// Top writes the NNO of the newest N entries of any number of documents. A
// document that cannot be read is reported, and the others count.
func Top(ctx context.Context, o TopOptions, s *command.Streams) error {
	switch {
	case len(o.Documents) > 0:
	case o.Lines:
		o.Documents = []string{"-"}
	default:
		return &command.UsageError{Message: "a DOCUMENT is missing", Hint: "\"-\" reads their names from standard input, with --lines the documents"}
	}
	if o.Print.Format != "" {
		if _, err := command.NewPrinter(io.Discard, o.Print, documentColumns); err != nil {
			return err
		}
	}
	top, err := command.Interruptible(ctx, func() (*ess.Top, error) { return gather(ctx, o, s) })
	if err != nil {
		return err
	}
	entries := top.Entries()
	if top.Lost() {
		s.Report.Warn("feeds that were given again took back newer entries: the list ends after %s, before what is not known any more", units.Count(len(entries), "entry"))
	}
	return writeNNO(s, entries, o.build(), nnoOutput{o.Output, o.Lines, o.Print})
}

// gather adds the documents to a [ess.Top]. If it lost entries, and all documents
// are files, they are read once more, now that the build times are known.
func gather(ctx context.Context, o TopOptions, s *command.Streams) (*ess.Top, error) {
	client := fetch.NewClient(o.Fetch)
	defer client.Close()
	p := &topPass{s: s, client: client, lines: o.Lines, warnings: command.Warnings{Report: s.Report}, top: ess.NewTop(o.N)}
	names := o.Documents
	if !o.Lines {
		names = nil
		for name, err := range command.ReadArgs(o.Documents, s.In, o.Nul) {
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

// rereadable reports whether a second pass finds what the first has found. A file
// that is missing was so in the first.
func rereadable(names []string) bool {
	for _, name := range names {
		if fi, err := os.Stat(name); err == nil && !fi.Mode().IsRegular() || err != nil && (name == "-" || feedurl.IsHTTP(name)) {
			return false
		}
	}
	return true
}

// topPass is a pass over the documents.
type topPass struct {
	s        *command.Streams
	client   *fetch.Client
	lines    bool // the documents are lines of files
	warnings command.Warnings
	top      *ess.Top
	second   bool // pass; the first has reported what is wrong
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
		d, err := readDocument(ctx, p.client, name, p.s.In)
		if err == nil {
			err = p.add(name, 0, d.body)
		}
		p.report(ctx, name, 0, err)
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
		p.report(ctx, name, n+1, fmt.Errorf("%w; the file is read up to here", errTooLarge))
	} else {
		p.report(ctx, name, 0, err)
	}
}

// add adds a document. It reports the first of the defects in it.
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

// report reports why a document could not be read, unless err is nil.
func (p *topPass) report(ctx context.Context, name string, line int, err error) {
	if err != nil && ctx.Err() == nil && !p.second {
		p.s.Report.Error("%v", inDocument(place(name, line), err))
	}
}

// place names a document: a file, or a line of it that is not 0.
func place(name string, line int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}
