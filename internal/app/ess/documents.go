package ess

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/discover"
	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// kindOf tells what is known of a document by its name and MIME type.
func kindOf(name, contentType string) ess.Kind {
	contentType, _, _ = strings.Cut(contentType, ";")
	switch strings.ToLower(strings.TrimSpace(contentType)) {
	case "application/ess":
		return ess.ESS
	case "application/nno":
		return ess.NNO
	}
	switch strings.ToLower(filepath.Ext(name)) {
	case ".ess":
		return ess.ESS
	case ".nno":
		return ess.NNO
	}
	return ess.Unknown
}

// document is a document that was read whole.
type document struct {
	name string
	kind ess.Kind
	body []byte
}

// maxDocument is the largest document that is read whole.
const maxDocument = 64 << 20

// readDocument reads a document that is named by a path or URL, "-" for stdin.
func readDocument(ctx context.Context, client *fetch.Client, name string, in io.Reader) (*document, error) {
	d := &document{name: name, kind: kindOf(name, "")}
	var err error
	switch {
	case name == "-":
		d.name = "standard input"
		d.body, err = readAll(in)
	case fetch.IsHTTP(name):
		var resp *fetch.Response
		if resp, err = client.Get(ctx, &fetch.Request{URL: name}); err == nil {
			d.body = resp.Body
			d.kind = kindOf(pathOf(resp.FinalURL), resp.Header.Get("Content-Type"))
		}
	default:
		d.body, err = command.Interruptible(ctx, func() ([]byte, error) {
			f, err := os.Open(name)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return readAll(f)
		})
	}
	return d, err
}

func pathOf(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}

func readAll(r io.Reader) ([]byte, error) {
	b, err := command.ReadAll(r, maxDocument)
	var size *command.SizeError
	if errors.As(err, &size) {
		return nil, fmt.Errorf("it is larger than %d MiB", maxDocument>>20)
	}
	return b, err
}

// inDocument puts a document's name in front of an error that does not name it.
func inDocument(name string, err error) error {
	if err == nil || strings.Contains(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// TopOptions are the options of [Top].
type TopOptions struct {
	Common
	Documents []string // paths and URLs; "-" for those on stdin
	Nul       bool
	N         int
	Output    string
	Print     command.PrinterOptions
	Workers   int // 0 for one a core
}

// Top writes the NNO of the newest N entries of any number of documents, in
// memory bounded by N. A document that cannot be read is reported, and the
// others count.
func Top(ctx context.Context, o TopOptions, s *command.Streams) error {
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
	return writeNNO(s, top.Entries(), o.build(), o.Output, o.Print)
}

// gather aggregates the documents.
func gather(ctx context.Context, o TopOptions, s *command.Streams) (*ess.Top, error) {
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	run := &topRun{s: s, warnings: command.Warnings{Report: s.Report}, client: sync.OnceValue(func() *fetch.Client { return fetch.NewClient(o.Fetch) })}
	tops := make([]*ess.Top, workers)
	queues := make([]chan []string, workers)
	var wg sync.WaitGroup
	for i := range workers {
		queues[i] = make(chan []string, 4)
		tops[i] = ess.NewTop(o.N)
		w := &topWorker{run: run, top: tops[i]}
		wg.Go(func() {
			for batch := range queues[i] {
				for _, name := range batch {
					if ctx.Err() == nil {
						w.add(ctx, name)
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
	for name, err := range command.ReadArgs(o.Documents, s.In, o.Nul) {
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			s.Report.Print(err)
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

// topRun is what the workers of Top share.
type topRun struct {
	s        *command.Streams
	client   func() *fetch.Client
	warnings command.Warnings
}

// topWorker aggregates a part of the documents.
type topWorker struct {
	run  *topRun
	top  *ess.Top
	dec  ess.Decoder
	buf  []byte
	warn func(ess.Warning)
	name string // of the document
	n    int    // warnings about it
}

// add takes one document.
func (w *topWorker) add(ctx context.Context, name string) {
	if w.buf == nil {
		w.buf = make([]byte, 64<<10)
		// Once, not for every document.
		w.warn = func(warning ess.Warning) {
			if w.n++; w.n == 1 {
				w.run.warnings.Warn("%s: %v", w.name, warning)
			}
		}
	}
	w.name, w.n = name, 0
	w.dec.Warn = w.warn
	if err := w.document(ctx, name); err != nil && ctx.Err() == nil {
		w.run.s.Report.Error("%v", inDocument(name, err))
	}
}

func (w *topWorker) document(ctx context.Context, name string) error {
	if fetch.IsHTTP(name) {
		d, err := readDocument(ctx, w.run.client(), name, nil)
		if err != nil {
			return err
		}
		w.dec.ResetBytes(d.body)
		return w.top.Add(&w.dec, d.kind)
	}
	// Not os.Open: for a million documents of a kilobyte what that does beyond
	// the system call is most of the time.
	fd, err := openFile(name)
	if err != nil {
		return err
	}
	r := fdReader(fd)
	defer unix.Close(fd)
	n := 0
	for n < len(w.buf) {
		m, err := r.Read(w.buf[n:])
		if err == io.EOF {
			w.dec.ResetBytes(w.buf[:n])
			return w.top.Add(&w.dec, kindOf(name, ""))
		}
		if err != nil {
			return err
		}
		n += m
	}
	w.dec.Reset(io.MultiReader(bytes.NewReader(w.buf), r))
	return w.top.Add(&w.dec, kindOf(name, ""))
}

func openFile(name string) (int, error) {
	for {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return 0, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
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

// DocumentOptions are the options of [Decode] and [Check].
type DocumentOptions struct {
	Common
	Documents []string // paths and URLs; "-" is the document on stdin; none is that, too
	Print     command.PrinterOptions
}

// each calls f for every document that can be read; others are reported.
func (o DocumentOptions) each(ctx context.Context, s *command.Streams, f func(*document) error) error {
	if len(o.Documents) == 0 {
		o.Documents = []string{"-"}
	}
	client := fetch.NewClient(o.Fetch)
	defer client.Close()
	for _, name := range o.Documents {
		d, err := readDocument(ctx, client, name, s.In)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.Report.Print(inDocument(name, err))
			continue
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

// Decode prints the entries of documents with absolute times.
func Decode(ctx context.Context, o DocumentOptions, s *command.Streams) error {
	if o.Print.Format == "" {
		o.Print.Format = "tsv"
	}
	p, err := command.NewPrinter(s.Out, o.Print, documentColumns)
	if err != nil {
		return err
	}
	err = o.each(ctx, s, func(d *document) error {
		doc, err := decode(d, s)
		if err != nil {
			s.Report.Print(inDocument(d.name, err))
			return nil
		}
		for _, e := range doc.Entries {
			if err := p.Print(documentRecord{e, ess.Minute(doc.Build)}); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, p.Flush())
}

// decode reads a document and passes on its warnings.
func decode(d *document, s *command.Streams) (*ess.Document, error) {
	warnings := command.Warnings{Report: s.Report}
	return ess.Decode(d.body, d.kind, func(w ess.Warning) { warnings.Warn("%s: %v", d.name, w) })
}

// problem is a defect of a document.
type problem struct {
	document string
	ess.Warning
}

var problemColumns = []command.Column[problem]{
	{Name: "document", Verbatim: true, Get: func(p problem) any { return p.document }},
	{Name: "line", Get: func(p problem) any { return p.Line }},
	{Name: "field", Get: func(p problem) any { return p.Field }},
	{Name: "problem", Get: func(p problem) any { return p.Text }},
}

// Check prints what is wrong in documents, a line each, strictly: everything
// that a strict writer would not have written. If there is anything it ends
// with status 1.
func Check(ctx context.Context, o DocumentOptions, s *command.Streams) error {
	if o.Print.Format == "" {
		o.Print.Format = "{{.document}}: line {{.line}}, field {{.field}}: {{.problem}}"
	}
	p, err := command.NewPrinter(s.Out, o.Print, problemColumns)
	if err != nil {
		return err
	}
	found := false
	err = o.each(ctx, s, func(d *document) error {
		var failed error
		report := func(w ess.Warning) {
			found = true
			if failed == nil {
				failed = p.Print(problem{d.name, w})
			}
		}
		dec := &ess.Decoder{Strict: true, Warn: report}
		dec.ResetBytes(d.body)
		_, err := dec.Decode(d.kind)
		var build *ess.BuildError
		switch {
		case errors.As(err, &build):
			text := "it does not begin with a build time"
			if build.Found == "" {
				text = "it is empty, and has no build time"
			}
			report(ess.Warning{Line: build.Line, Field: 1, Text: text})
		case err == nil && dec.URLs() == 0 && d.kind != ess.NNO:
			report(ess.Warning{Line: 1, Field: 2, Text: "there is no URL"})
		}
		return failed
	})
	if err = errors.Join(err, p.Flush()); err != nil {
		return err
	}
	if found {
		return said
	}
	return nil
}

// ChecksumOptions are the options of [Checksums].
type ChecksumOptions struct {
	Titles []string // "-" for those on stdin, one a line
	Nul    bool     // or separated by NUL
	Print  command.PrinterOptions
}

// Checksums prints the checksum of titles.
func Checksums(_ context.Context, o ChecksumOptions, s *command.Streams) error {
	o.Print.Format = cmp.Or(o.Print.Format, "checksum")
	p, err := command.NewPrinter(s.Out, o.Print, checksumColumns)
	if err != nil {
		return err
	}
	for title, err := range command.ReadArgs(o.Titles, s.In, o.Nul) {
		if err != nil {
			return err
		}
		if err := p.Print(title); err != nil {
			return err
		}
	}
	return p.Flush()
}

var checksumColumns = []command.Column[string]{
	{Name: "checksum", Get: func(title string) any { return int(ess.Checksum(title)) }},
	{Name: "loop", Get: func(title string) any { return ess.LoopChecksum(title) }},
	{Name: "title", Get: func(title string) any { return title }},
}

// DiscoverOptions are the options of [Discover].
type DiscoverOptions struct {
	Common
	URLs  []string // "-" for those on stdin
	Nul   bool
	Print command.PrinterOptions
}

// found is a link to a document.
type found struct {
	kind string
	discover.Link
}

var discoverColumns = []command.Column[found]{
	{Name: "kind", Get: func(f found) any { return f.kind }},
	{Name: "url", Get: func(f found) any { return f.URL }},
	{Name: "title", Get: func(f found) any { return f.Title }},
}

// Discover prints the ESS and NNO documents that a page or a feed links to
// (section "ESS and NNO autodiscovery"). A URL with none is a failure.
func Discover(ctx context.Context, o DiscoverOptions, s *command.Streams) error {
	if o.Print.Format == "" {
		o.Print.Format = "tsv"
	}
	p, err := command.NewPrinter(s.Out, o.Print, discoverColumns)
	if err != nil {
		return err
	}
	client := fetch.NewClient(o.Fetch)
	defer client.Close()
	for url, err := range command.ReadArgs(o.URLs, s.In, o.Nul) {
		var links []found
		if err == nil {
			if !fetch.IsHTTP(url) {
				url = "https://" + url
			}
			links, err = discoverAt(ctx, client, url)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.Report.Print(err)
			continue
		}
		if len(links) == 0 {
			s.Report.Error("%s: it links to no ESS and no NNO", url)
		}
		for _, l := range links {
			if err := p.Print(l); err != nil {
				return err
			}
		}
	}
	return p.Flush()
}

func discoverAt(ctx context.Context, client *fetch.Client, url string) ([]found, error) {
	resp, err := client.Get(ctx, &fetch.Request{URL: url})
	if err != nil {
		return nil, err
	}
	contentType := resp.Header.Get("Content-Type")
	if doc, err := ess.Decode(resp.Body, kindOf(pathOf(resp.FinalURL), contentType), nil); err == nil && (doc.URL != "" || len(doc.Entries) > 0) {
		return []found{{strings.ToLower(doc.Kind.String()), discover.Link{URL: lektordir.NormalizeID(url)}}}, nil
	}
	page := discover.Page(resp.Body, resp.FinalURL, contentType)
	if f, err := feedconv.ParseBytes(resp.Body, feedconv.Options{URL: resp.FinalURL, ContentType: contentType}); err == nil {
		page = discover.Result{}
		for _, l := range f.Links {
			if !fetch.IsHTTP(l.Href) {
				continue // as those of a page
			}
			switch link := (discover.Link{URL: l.Href, Title: l.Title}); kindOf("", l.Type) {
			case ess.ESS:
				page.ESS = append(page.ESS, link)
			case ess.NNO:
				page.NNO = append(page.NNO, link)
			}
		}
	}
	var links []found
	for _, l := range page.ESS {
		links = append(links, found{"ess", l})
	}
	for _, l := range page.NNO {
		links = append(links, found{"nno", l})
	}
	return links, nil
}
