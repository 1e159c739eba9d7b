package ess

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/ess"
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
	Lines   bool
	N       int
	Output  string
	Print   command.PrinterOptions
	Workers int // 0 for one a core
}

// Top writes the NNO of the newest N entries of any number of documents, in
// memory bounded by N and a little for each feed. A document that cannot be read
// is reported, and the others count.
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
	if top.Lost() {
		s.Report.Warn("feeds that were given again took back newer entries: the list ends after %s, before what is not known any more", units.Count(top.Len(), "entry"))
	}
	return writeNNO(s, top.Entries(), o.build(), nnoOutput{o.Output, o.Lines, o.Print})
}

// gather aggregates the documents. If something was lost it does so once more,
// now that the build times are known, where that is possible.
func gather(ctx context.Context, o TopOptions, s *command.Streams) (*ess.Top, error) {
	run := &topRun{o: o, s: s, warnings: command.Warnings{Report: s.Report}, client: sync.OnceValue(func() *fetch.Client { return fetch.NewClient(o.Fetch) })}
	pass := run.documents
	if o.Lines {
		pass = run.lines
	}
	top, err := pass(ctx, ess.NewTop(o.N))
	if err == nil && top.Lost() && run.again() {
		top, err = pass(ctx, top.Again())
	}
	return top, err
}

// topRun is what the workers of Top share.
type topRun struct {
	o        TopOptions
	s        *command.Streams
	client   func() *fetch.Client
	warnings command.Warnings
	second   bool // pass, of which nothing is said that was said before
	// names are those of the documents, maxNames at most.
	names []string
}

// maxNames is how many names are kept for reading the documents once more.
const maxNames = 100_000

// again prepares for a second pass, and reports whether there can be one: what is
// no file is gone.
func (run *topRun) again() bool {
	if len(run.names) > maxNames {
		return false
	}
	for _, name := range run.names {
		if fi, err := os.Stat(name); err == nil && !fi.Mode().IsRegular() || err != nil && (name == "-" || fetch.IsHTTP(name)) {
			return false
		}
	}
	run.o.Documents, run.second = run.names, true
	return true
}

// note remembers the name of a document.
func (run *topRun) note(name string) {
	if len(run.names) <= maxNames {
		run.names = append(run.names, name)
	}
}

// documents aggregates documents that are named, on all cores.
func (run *topRun) documents(ctx context.Context, top *ess.Top) (*ess.Top, error) {
	workers := cmp.Or(run.o.Workers, runtime.GOMAXPROCS(0))
	tops := make([]*ess.Top, workers)
	queues := make([]chan []string, workers)
	var wg sync.WaitGroup
	for i := range workers {
		queues[i] = make(chan []string, 4)
		tops[i] = top.Again()
		w := run.worker(tops[i])
		wg.Go(func() {
			for batch := range queues[i] {
				for _, name := range batch {
					if ctx.Err() == nil {
						w.line = 0
						w.report(ctx, name, w.document(ctx, name))
					}
				}
			}
		})
	}
	// Documents go to the workers in turn, not to whoever is free: what feeds
	// that are given again leave behind must not depend on who was faster.
	turn := 0
	var batch []string
	flush := func() {
		queues[turn%workers] <- batch
		turn++
		batch = nil
	}
	for name, err := range run.args() {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			run.s.Report.Print(err)
			continue
		}
		if batch = append(batch, name); len(batch) == 64 {
			flush()
		}
	}
	flush()
	for _, q := range queues {
		close(q)
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, other := range tops[1:] {
		tops[0].Merge(other)
	}
	return tops[0], nil
}

// args yields the names of the documents, and notes them.
func (run *topRun) args() iter.Seq2[string, error] {
	args := command.ReadArgs(run.o.Documents, run.s.In, run.o.Nul)
	if run.second {
		return args
	}
	return func(yield func(string, error) bool) {
		for name, err := range args {
			if err == nil {
				run.note(name)
			}
			if !yield(name, err) {
				return
			}
		}
	}
}

// lines aggregates documents that stand one a line in files.
func (run *topRun) lines(ctx context.Context, top *ess.Top) (*ess.Top, error) {
	w := run.worker(top)
	for _, name := range run.o.Documents {
		if !run.second {
			run.note(name)
		}
		in, err := run.s.In, error(nil)
		if name != "-" {
			var f *os.File
			if f, err = os.Open(name); err == nil {
				defer f.Close()
				in = f
			}
		}
		if err == nil {
			err = w.lines(ctx, name, in)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		w.line = 0
		w.report(ctx, name, err)
	}
	return top, nil
}

// topWorker aggregates a part of the documents.
type topWorker struct {
	run  *topRun
	top  *ess.Top
	dec  ess.Decoder
	buf  []byte
	name string // of the document
	line int    // of the file, 0 for all of it
	n    int    // warnings about the document
}

func (run *topRun) worker(top *ess.Top) *topWorker {
	w := &topWorker{run: run, top: top, buf: make([]byte, 64<<10)}
	w.dec.Warn = func(warning ess.Warning) {
		if w.n++; w.n == 1 && !run.second {
			run.warnings.Warn("%s: %v", w.where(), warning)
		}
	}
	return w
}

// where names the document.
func (w *topWorker) where() string {
	name := w.name
	if name == "-" {
		name = "standard input"
	}
	if w.line > 0 {
		name = fmt.Sprintf("%s:%d", name, w.line)
	}
	return name
}

// report tells why a document could not be read.
func (w *topWorker) report(ctx context.Context, name string, err error) {
	if err != nil && ctx.Err() == nil && !w.run.second {
		w.name = name
		w.run.s.Report.Error("%v", inDocument(w.where(), err))
	}
}

// lines takes the documents of a file, one a line of any length. The error is
// that of reading.
func (w *topWorker) lines(ctx context.Context, name string, r io.Reader) error {
	in := bufio.NewReaderSize(r, 256<<10)
	w.name = name
	for w.line = 1; ctx.Err() == nil; w.line++ {
		line, err := in.ReadSlice('\n')
		if err != nil && err != io.EOF && err != bufio.ErrBufferFull {
			return err
		}
		w.n = 0
		switch rest := (&restOfLine{in: in}); {
		case err == bufio.ErrBufferFull:
			w.dec.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(line)), rest))
			w.report(ctx, name, w.top.Add(&w.dec))
			if _, err := io.Copy(io.Discard, rest); err != nil {
				return err
			}
		case len(bytes.TrimSpace(line)) > 0:
			w.dec.ResetBytes(line)
			w.report(ctx, name, w.top.Add(&w.dec))
		}
		if err == io.EOF {
			return nil
		}
	}
	return nil
}

// restOfLine reads up to the end of a line.
type restOfLine struct {
	in   *bufio.Reader
	done bool
}

func (r *restOfLine) Read(p []byte) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	// What is buffered, or after it the next byte and what comes with it.
	if _, err := r.in.Peek(1); err != nil {
		return 0, err
	}
	b, _ := r.in.Peek(min(len(p), r.in.Buffered()))
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b, r.done = b[:i+1], true
	}
	return r.in.Read(p[:len(b)])
}

// document takes a document that is a file, or at a URL.
func (w *topWorker) document(ctx context.Context, name string) error {
	w.name, w.n = name, 0
	if fetch.IsHTTP(name) {
		d, err := readDocument(ctx, w.run.client(), name, nil)
		if err != nil {
			return err
		}
		w.dec.ResetBytes(d.body)
		return w.top.Add(&w.dec)
	}
	// Not os.Open: for a million documents of a kilobyte what that does beyond
	// the system call is most of the time.
	fd, err := atomicfile.Open(name, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		return &os.PathError{Op: "open", Path: name, Err: err}
	}
	r := fdReader(fd)
	defer unix.Close(fd)
	n := 0
	for n < len(w.buf) {
		m, err := r.Read(w.buf[n:])
		if err == io.EOF {
			w.dec.ResetBytes(w.buf[:n])
			return w.top.Add(&w.dec)
		}
		if err != nil {
			return err
		}
		n += m
	}
	w.dec.Reset(io.MultiReader(bytes.NewReader(w.buf), r))
	return w.top.Add(&w.dec)
}

// fdReader reads a file descriptor.
type fdReader int

func (fd fdReader) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(fd), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
