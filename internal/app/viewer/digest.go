package viewer

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// DigestOptions are the options of [Digest].
type DigestOptions struct {
	Common
	Query []string
	All   bool // read entries too
	Lines int  // of the content
	Keep  bool // move nothing
	Width int  // columns to wrap to; 80 if 0
}

// Digest is the specification's sample viewer: it prints the title and the
// first lines of every unread entry, feed by feed, and moves it to cur/ as
// seen. An entry is moved only after it was written; if stdout has no reader
// any more, what is left stays unread.
func Digest(ctx context.Context, o DigestOptions, s *command.Streams) error {
	q, err := parseQuery(o.Query)
	if err != nil {
		return err
	}
	v, err := o.open(s)
	if err != nil {
		return err
	}
	found, err := v.find(ctx, selection{query: q, all: o.All, dated: true})
	if err != nil {
		return err
	}
	titles := map[string]string{}
	for _, r := range found {
		if _, ok := titles[r.ref.Feed]; !ok {
			titles[r.ref.Feed] = query.Fold(r.feed().Title())
		}
	}
	slices.SortFunc(found, func(a, b *record) int {
		return cmp.Or(cmp.Compare(titles[a.ref.Feed], titles[b.ref.Feed]), cmp.Compare(a.ref.Feed, b.ref.Feed), byDate(a, b))
	})
	width := o.Width
	if width <= 0 {
		width = 80
	}
	feed := ""
	for _, r := range found {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !v.usable(r.read(lektordir.Obligatory | lektordir.FieldType | lektordir.FieldLink)) {
			continue
		}
		var b strings.Builder
		if r.ref.Feed != feed {
			if feed != "" {
				b.WriteByte('\n')
			}
			feed = r.ref.Feed
			b.WriteString("In feed " + termsafe.Line(r.feed().Title()) + ":\n")
		}
		b.WriteByte('\n')
		if title := strings.TrimSpace(termsafe.Line(r.entry.Title)); title != "" {
			b.WriteString(title + "\n")
		}
		b.WriteString(head(r, width-4, o.Lines))
		if _, err := io.WriteString(s.Out, b.String()); err != nil {
			return err
		}
		if !o.Keep && r.ref.Unread() {
			if _, err := v.setFlags(r.ref, "S", ""); err != nil && !removed(err) {
				s.Report.Print(err)
			}
		}
		r.forget()
	}
	return nil
}

// head gives the first lines of the content that have something on them,
// indented.
func head(r *record, width, lines int) string {
	var b strings.Builder
	for line := range strings.Lines(r.lines(max(width, 20))) {
		if lines <= 0 {
			break
		}
		if line = strings.TrimRight(line, " \n"); line == "" {
			continue
		}
		b.WriteString("    " + line + "\n")
		lines--
	}
	return b.String()
}
