package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// MergeOptions are the options of [Merge].
type MergeOptions struct {
	Local, Incoming string // file names; one of them may be "-"
	Strict          bool
}

// document reads a document from a file or pipe, or from standard input.
func document(ctx context.Context, s *cmdline.Streams, name string) (*feedsync.Document, error) {
	data, err := s.ReadFile(ctx, name, maxDocument)
	if err != nil {
		return nil, err
	}
	if name == "-" {
		name = "standard input"
	}
	doc, err := feedsync.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc, nil
}

// problems prints the problems of a document as warnings.
func problems(s *cmdline.Streams, name string, doc *feedsync.Document) {
	for _, p := range doc.Faults() {
		s.Report.Warn("%s: %s", name, termsafe.Brief(p.String()))
	}
	if doc.MoreProblems > 0 {
		s.Report.Warn("%s: and %d more like these", name, doc.MoreProblems)
	}
}

// Merge merges an incoming document into a local one, and prints the result.
func Merge(ctx context.Context, o MergeOptions, s *cmdline.Streams) error {
	if o.Local == "-" && o.Incoming == "-" {
		return cmdline.Usagef("merge: only one of the documents can be on standard input")
	}
	local, err := document(ctx, s, o.Local)
	if err != nil {
		return err
	}
	incoming, err := document(ctx, s, o.Incoming)
	if err != nil {
		return err
	}
	if local.Kind != incoming.Kind {
		return fmt.Errorf("%s and %s are documents of different kinds", o.Local, o.Incoming)
	}
	problems(s, o.Local, local)
	problems(s, o.Incoming, incoming)
	until := cmp.Or(incoming.Sharing, &feedsync.Sharing{}).Until
	if len(local.Merge(incoming, feedsync.Rules{Strict: o.Strict})) > 0 && local.Sharing != nil &&
		!local.Sharing.Until.IsZero() {
		// Until must grow with every change (section 2.1), by at least a second.
		sharing := *local.Sharing
		sharing.Until = latest(sharing.Until.Add(1e9), until)
		local.SetSharing(&sharing)
	}
	_, err = s.Out.Write(termsafe.XML(local.Bytes()))
	return err
}

// CheckOptions are the options of [Check].
type CheckOptions struct {
	Documents []string
	Strict    bool // warnings count as problems
}

// Check prints the problems of documents.
func Check(ctx context.Context, o CheckOptions, s *cmdline.Streams) error {
	bad := false
	for _, name := range o.Documents {
		doc, err := document(ctx, s, name)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var syntax *feedsync.SyntaxError
			if errors.As(err, &syntax) || !errors.Is(err, os.ErrNotExist) {
				err = fmt.Errorf("%w; none of its items are used", err)
			}
			s.Report.Print(err)
			bad = true
			continue
		}
		skipped := doc.MoreProblems
		for _, p := range doc.Faults() {
			if !p.Warning || o.Strict {
				skipped++
			}
		}
		problems(s, name, doc)
		deleted, conflicts := 0, 0
		for _, it := range doc.Items() {
			if it.Deleted {
				deleted++
			}
			if it.Conflict {
				conflicts++
			}
		}
		fmt.Fprintf(s.Out, "%s: %s, %d deleted, %s, %s\n", termsafe.Line(name), humanize.Count(doc.Len(), "item"),
			deleted,
			humanize.Count(conflicts, "conflict"), humanize.Count(skipped, "problem"))
		bad = bad || skipped > 0
	}
	if bad {
		return errReported
	}
	return nil
}
