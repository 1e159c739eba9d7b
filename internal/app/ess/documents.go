package ess

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/discover"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// document is a complete document.
type document struct {
	name string
	// origin is the document in [subscriptions.Subscription.Origin]: its URL after redirects, or its
	// name. The user chose the document, but another may have written it.
	origin string
	body   []byte
}

// maxDocument is the size of the largest document that is read, in bytes.
const maxDocument = 64 << 20

// readDocument reads a document from a path or URL, or from stdin for "-".
func readDocument(ctx context.Context, client *fetch.Client, name string, s *cmdline.Streams) (*document, error) {
	d := &document{name: name, origin: name}
	var err error
	switch fi, serr := os.Stat(name); {
	case name == "-":
		d.name, d.origin = "standard input", "standard input"
		d.body, err = s.ReadFile(ctx, name, maxDocument)
	case feedurl.IsHTTP(name):
		var resp *httpmsg.Response
		if resp, err = client.Get(ctx, &httpmsg.Request{URL: name}); err == nil {
			d.body, d.origin = resp.Body, resp.FinalURL
		}
	case serr == nil && fi.Mode().IsRegular():
		d.body, err = atomicfile.ReadRaw(name, maxDocument) // quickly, as there may be 100,000 of them
	default:
		d.body, err = cmdline.Interruptible(ctx, func() ([]byte, error) { return s.ReadFile(ctx, name, maxDocument) })
	}
	return d, err
}

// inDocument adds a document's name to an error that does not contain it.
func inDocument(name string, err error) error {
	if err == nil || strings.Contains(err.Error(), name) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// DocumentOptions are the options of [Decode] and [Check].
type DocumentOptions struct {
	Common
	Documents []string // paths and URLs; "-" or none reads the document from stdin
	Print     cmdline.PrinterOptions
}

// each calls f for every document, and reports those that cannot be read.
func (o DocumentOptions) each(ctx context.Context, s *cmdline.Streams, f func(*document) error) error {
	names := o.Documents
	if len(names) == 0 {
		names = []string{"-"}
	}
	client := fetch.NewClient(o.Fetch)
	defer client.Close()
	for _, name := range names {
		d, err := readDocument(ctx, client, name, s)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.Report.Print(inDocument(d.name, err))
			continue
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

// Decode prints the entries of documents with absolute times.
func Decode(ctx context.Context, o DocumentOptions, s *cmdline.Streams) error {
	return cmdline.Records(s.Out, o.Print, "tsv", documentColumns, func(p *cmdline.Printer[documentRecord]) error {
		return o.decoded(ctx, s, func(doc *ess.Document, _ string) error {
			return p.PrintAll(recordsOf(doc.Entries, doc.Build))
		})
	})
}

// decoded calls f for each decoded document and its origin, and prints the warnings of the decoder.
func (o DocumentOptions) decoded(ctx context.Context, s *cmdline.Streams,
	f func(doc *ess.Document, origin string) error) error {
	return o.each(ctx, s, func(d *document) error {
		warnings := cmdline.Warnings{Report: s.Report}
		doc, err := ess.Decode(d.body, func(w ess.Warning) { warnings.Warn("%s: %v", d.name, w) })
		if err != nil {
			s.Report.Print(inDocument(d.name, err))
			return nil
		}
		return f(doc, d.origin)
	})
}

// problem is a defect of a document.
type problem struct {
	document string
	ess.Warning
}

var problemColumns = []cmdline.Column[problem]{
	{Name: "document", Verbatim: true, Get: func(p problem) any { return p.document }},
	{Name: "line", Get: func(p problem) any { return p.Line }},
	{Name: "field", Get: func(p problem) any { return p.Field }},
	{Name: "problem", Get: func(p problem) any { return p.Text }},
}

// Check prints the defects of documents, one a line: everything that a strict writer would
// not write. If there are any, it returns an error with status 1.
func Check(ctx context.Context, o DocumentOptions, s *cmdline.Streams) error {
	const line = "{{.document}}: line {{.line}}, field {{.field}}: {{.problem}}"
	found := false
	err := cmdline.Records(s.Out, o.Print, line, problemColumns, func(p *cmdline.Printer[problem]) error {
		return o.each(ctx, s, func(d *document) error {
			for _, w := range o.check(d, s) {
				found = true
				name := d.name
				if o.Print.Format == "" {
					name = termsafe.Line(name) // the line is for a person
				}
				if err := p.Print(problem{name, w}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err == nil && found {
		return errReported
	}
	return err
}

// check returns the defects of a document.
func (o DocumentOptions) check(d *document, s *cmdline.Streams) (problems []ess.Warning) {
	report := func(w ess.Warning) { problems = append(problems, w) }
	doc, err := ess.DecodeStrict(d.body, report)
	if build, ok := errors.AsType[*ess.BuildError](err); ok {
		text := "it does not begin with a build time"
		if build.Found == "" {
			text = "it is empty, and has no build time"
		}
		report(ess.Warning{Line: build.Line, Field: 1, Text: text})
	} else if len(doc.Entries) == 0 && doc.Kind == ess.ESS && doc.URL != "" {
		// The document is valid: its feed has no entries.
		s.Report.Warn("%s: no entry follows the URL", d.name)
	}
	return problems
}

// ChecksumOptions are the options of [Checksums].
type ChecksumOptions struct {
	Titles []string // "-" reads them from stdin, one a line
	Nul    bool     // titles on stdin are separated by NUL
	Print  cmdline.PrinterOptions
}

// Checksums prints the checksums of titles.
func Checksums(_ context.Context, o ChecksumOptions, s *cmdline.Streams) error {
	return cmdline.Records(s.Out, o.Print, "checksum", checksumColumns, func(p *cmdline.Printer[string]) error {
		for title, err := range cmdline.ReadArgs(o.Titles, s.In, o.Nul) {
			if err == nil {
				err = p.Print(title)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

var checksumColumns = []cmdline.Column[string]{
	{Name: "checksum", Get: func(title string) any { return int(ess.Checksum(title)) }},
	{Name: "loop", Get: func(title string) any { return ess.LoopChecksum(title) }},
	{Name: "title", Get: func(title string) any { return title }},
}

// DiscoverOptions are the options of [Discover].
type DiscoverOptions struct {
	Common
	URLs  []string // "-" reads them from stdin
	Nul   bool
	Print cmdline.PrinterOptions
}

// found is a link to a document.
type found struct {
	kind string
	discover.Link
}

var discoverColumns = []cmdline.Column[found]{
	{Name: "kind", Get: func(f found) any { return f.kind }},
	{Name: "url", Get: func(f found) any { return f.URL }},
	{Name: "title", Get: func(f found) any { return f.Title }},
}

// Discover prints the ESS and NNO documents that a page or a feed links to (section "ESS
// and NNO autodiscovery"). A URL without any is an error.
func Discover(ctx context.Context, o DiscoverOptions, s *cmdline.Streams) error {
	client := fetch.NewClient(o.Fetch)
	defer client.Close()
	return cmdline.Records(s.Out, o.Print, "tsv", discoverColumns, func(p *cmdline.Printer[found]) error {
		for url, err := range cmdline.ReadArgs(o.URLs, s.In, o.Nul) {
			var links []found
			if err == nil {
				if !feedurl.IsHTTP(url) {
					url = "https://" + url
				}
				var limit string
				if links, limit, err = discoverAt(ctx, client, url); limit != "" {
					s.Report.Warn("%s: only the first %s were read", url, limit)
				}
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
			if err := p.PrintAll(links); err != nil {
				return err
			}
		}
		return nil
	})
}

func discoverAt(ctx context.Context, client *fetch.Client, url string) (links []found, limit string, err error) {
	resp, err := client.Get(ctx, &httpmsg.Request{URL: url})
	if err != nil {
		return nil, "", err
	}
	contentType := resp.Header.Get("Content-Type")
	if doc, err := ess.Decode(resp.Body, nil); err == nil && (doc.URL != "" || len(doc.Entries) > 0) {
		return []found{{strings.ToLower(doc.Kind.String()), discover.Link{URL: lektordir.NormalizeID(url)}}}, "", nil
	}
	f, err := feedconv.ParseBytes(resp.Body, feedconv.Options{URL: resp.FinalURL, ContentType: contentType})
	named := discover.Result{}
	if err == nil {
		named = discover.InFeed(f.Links)
	} else {
		named = discover.Page(resp.Body, resp.FinalURL, contentType)
	}
	for _, l := range named.ESS {
		links = append(links, found{"ess", l})
	}
	for _, l := range named.NNO {
		links = append(links, found{"nno", l})
	}
	return links, named.Limit, nil
}
