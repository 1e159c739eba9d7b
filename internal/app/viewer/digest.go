package viewer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/lektordir"
)

// DigestOptions are the options of [Digest].
type DigestOptions struct {
	session.Common
	Query []string
	All   bool // read entries too
	Lines int  // of the content
	Keep  bool // move nothing
	Width int  // columns to wrap to; 80 if 0
	// Number prints numbers, which other commands take.
	Number bool
	// HTML has lektor-pages write the digest, with flags of its command of that name;
	// nil writes text.
	HTML []string
}

// Digest is the specification's sample viewer: it prints the title, the first lines
// and the link of every unread entry, feed by feed, and moves it to cur/ as seen. An entry is moved only after it was written; if stdout has no reader
// any more, what is left stays unread.
func Digest(ctx context.Context, o DigestOptions, s *command.Streams) error {
	v, err := moving("digest", o.Common, o.Query, command.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	// An entry is marked as read when it was printed, so it is printed whole.
	v.Strict = true
	list, err := v.Select(ctx, entries.Selection{Query: v.Query, All: o.All, Want: lektordir.FieldPubDate})
	if err != nil {
		return err
	}
	// The digest counts only the entries that it prints.
	if list, err = entries.Filter(ctx, list, func(r *entries.Record) bool { return v.Usable(r.Check()) }); err != nil {
		return err
	}
	feeds := map[string]*digestFeed{}
	for _, r := range list {
		if feeds[r.Ref.Feed] == nil {
			feeds[r.Ref.Feed] = &digestFeed{title: query.Fold(r.Feed().Title())}
		}
		feeds[r.Ref.Feed].Add(r.Ref)
	}
	slices.SortFunc(list, func(a, b *entries.Record) int {
		return cmp.Or(cmp.Compare(feeds[a.Ref.Feed].title, feeds[b.Ref.Feed].title), cmp.Compare(a.Ref.Feed, b.Ref.Feed), entries.ByDate(a, b))
	})
	defer v.mover.Close()
	if o.HTML != nil {
		return v.htmlDigest(ctx, list, o)
	}
	width := o.Width
	if width <= 0 {
		width = 80
	}
	feed := ""
	var shown []*entries.Record
	if o.Number {
		defer func() { v.SaveList(shown) }()
	}
	for _, r := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !v.Usable(r.Read(lektordir.Obligatory | lektordir.FieldType | lektordir.FieldLink)) {
			continue
		}
		var b strings.Builder
		if r.Ref.Feed != feed {
			if feed != "" {
				b.WriteByte('\n')
			}
			feed = r.Ref.Feed
			b.WriteString("In feed " + termsafe.Line(r.Feed().Title()) + ": " + feeds[feed].String() + "\n")
		}
		b.WriteByte('\n')
		shown = append(shown, r)
		if o.Number {
			fmt.Fprintf(&b, "%d ", len(shown))
		}
		if title := strings.TrimSpace(termsafe.Line(r.OwnTitle())); title != "" || o.Number {
			b.WriteString(title + "\n")
		}
		b.WriteString(head(r, width-4, o.Lines))
		if url := termsafe.Line(fetch.Public(r.URL())); url != "" {
			b.WriteString("    " + url + "\n")
		}
		if _, err := io.WriteString(s.Out, b.String()); err != nil {
			return err
		}
		v.digested(r.Ref, o)
		r.Forget()
	}
	return nil
}

// digestFeed is what is told of a feed, and by what feeds are ordered.
type digestFeed struct {
	counted
	title string // folded
}

// digested marks an entry that was written as read.
func (v *viewer) digested(ref lektordir.Ref, o DigestOptions) {
	if o.Keep || !ref.Unread() {
		return
	}
	if _, err := v.mover.SetFlags(ref, "S", ""); err != nil && !undo.Removed(err) {
		v.mover.Failed(err)
	}
}

// htmlDigest has another program write the digest, as what makes HTML harmless would
// make every start of this one slower. Entries are marked when all was written.
func (v *viewer) htmlDigest(ctx context.Context, list []*entries.Record, o DigestOptions) error {
	var shown []*entries.Record
	var paths strings.Builder
	for _, r := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if v.Usable(r.Read(lektordir.Obligatory)) {
			shown = append(shown, r)
			paths.WriteString(r.Path() + "\x00")
		}
		r.Forget()
	}
	// Of no entries it writes nothing, and yet says what is wrong with an address: better
	// today than on the day when something arrives.
	args := slices.Concat([]string{"--dir", v.Dir.Path(), "digest", "--null"}, o.HTML, []string{"-"})
	if err := command.RunBeside(ctx, "lektor-pages", args, strings.NewReader(paths.String()), v.S); err != nil {
		return err
	}
	for _, r := range shown {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		v.digested(r.Ref, o)
	}
	return nil
}

// String tells how many entries a digest has of a feed.
func (c *counted) String() string {
	if c.Unread == c.All {
		return units.Count(c.All, "entry")
	}
	return fmt.Sprintf("%s, %d unread", units.Count(c.All, "entry"), c.Unread)
}

// head gives the first lines of the content that have something on them,
// indented.
func head(r *entries.Record, width, lines int) string {
	var b strings.Builder
	for line := range strings.Lines(r.Lines(max(width, 20))) {
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
