package viewer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// DigestOptions are the options of [Digest].
type DigestOptions struct {
	session.Common
	Query []string
	All   bool // read entries too
	Lines int  // maximum lines of content for each entry
	Keep  bool // do not mark entries as read
	Width int  // columns to wrap to; 80 if 0
	// Number prints numbers, which other commands take.
	Number bool
	// HTML are the flags of lektor-pages digest, which then writes the digest; nil writes text.
	HTML []string
}

// Digest prints the title, the first lines and the link of every unread entry, feed by feed,
// and marks each as read after it was written. If writing fails, the remaining entries stay
// unread.
func Digest(ctx context.Context, o DigestOptions, s *cmdline.Streams) error {
	v, err := openUndoable("digest", o.Common, o.Query, cmdline.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	// Printed entries are marked as read, so an entry that cannot be read whole is skipped.
	v.Strict = true
	list, err := v.Select(ctx, entrystore.Selection{Query: v.Query, All: o.All, Want: lektordir.FieldPubDate})
	if err != nil {
		return err
	}
	// The digest counts only the entries that it prints.
	if list, err = entrystore.Filter(ctx, list,
		func(r *entrystore.Record) bool { return v.Usable(r.Check()) }); err != nil {
		return err
	}
	d := &digest{viewer: v, o: o, feeds: map[string]*counted{}}
	d.sort(list)
	defer v.mover.Close()
	if o.HTML != nil {
		return d.html(ctx, list)
	}
	if o.Number {
		defer func() { v.SaveList(d.shown) }()
	}
	for _, r := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !v.Usable(r.Read(lektordir.Obligatory | lektordir.FieldType | lektordir.FieldLink)) {
			continue
		}
		if _, err := io.WriteString(s.Out, d.text(r)); err != nil {
			return err
		}
		if !o.Keep {
			d.markRead(r)
		}
		r.Forget()
	}
	return nil
}

// digest is one run of [Digest].
type digest struct {
	*viewer
	o     DigestOptions
	feeds map[string]*counted // by hash
	shown []*entrystore.Record
}

// sort counts the entries of each feed, and sorts list by feed, then by date.
func (d *digest) sort(list []*entrystore.Record) {
	for _, r := range list {
		if d.feeds[r.Ref.Feed] == nil {
			d.feeds[r.Ref.Feed] = &counted{key: query.Fold(r.Feed().Title())}
		}
		d.feeds[r.Ref.Feed].Add(r.Ref)
	}
	slices.SortFunc(list, func(a, b *entrystore.Record) int {
		return cmp.Or(cmp.Compare(d.feeds[a.Ref.Feed].key, d.feeds[b.Ref.Feed].key),
			cmp.Compare(a.Ref.Feed, b.Ref.Feed), entrystore.ByDate(a, b))
	})
}

// text returns the text of the next entry, below a heading if it is the first of its feed.
func (d *digest) text(r *entrystore.Record) string {
	var b strings.Builder
	if n := len(d.shown); n == 0 || d.shown[n-1].Ref.Feed != r.Ref.Feed {
		if n > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("In feed " + termsafe.Line(r.Feed().Title()) + ": " + d.feeds[r.Ref.Feed].String() + "\n")
	}
	b.WriteByte('\n')
	d.shown = append(d.shown, r)
	if d.o.Number {
		fmt.Fprintf(&b, "%d ", len(d.shown))
	}
	if title := strings.TrimSpace(termsafe.Line(r.OwnTitle())); title != "" || d.o.Number {
		b.WriteString(title + "\n")
	}
	b.WriteString(head(r, cmp.Or(d.o.Width, DefaultText)-4, d.o.Lines))
	if url := termsafe.Line(feedurl.Public(r.URL())); url != "" {
		b.WriteString("    " + url + "\n")
	}
	return b.String()
}

// html runs lektor-pages to write the digest as HTML, and then marks the entries as read. The
// HTML sanitizer is not linked into this program because that would slow down every start.
func (d *digest) html(ctx context.Context, list []*entrystore.Record) error {
	var paths strings.Builder
	for _, r := range list {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if d.Usable(r.Read(lektordir.Obligatory)) {
			d.shown = append(d.shown, r)
			paths.WriteString(r.Path() + "\x00")
		}
		r.Forget()
	}
	// lektor-pages runs for an empty list too: it writes nothing then, but reports wrong flags now
	// rather than on the day when an entry arrives.
	args := slices.Concat([]string{"--dir", d.Dir.Path(), "digest", "--null"}, d.o.HTML, []string{"-"})
	if err := cmdline.RunBeside(ctx, "lektor-pages", args, strings.NewReader(paths.String()), d.S); err != nil {
		return err
	}
	for _, r := range d.shown {
		if ctx.Err() == nil && !d.o.Keep {
			d.markRead(r)
		}
	}
	return context.Cause(ctx)
}

// String returns the counts as text, for example "3 entries, 1 unread".
func (c *counted) String() string {
	if c.Unread == c.All {
		return humanize.Count(c.All, "entry")
	}
	return fmt.Sprintf("%s, %d unread", humanize.Count(c.All, "entry"), c.Unread)
}

// head returns the first lines of the content that are not blank, indented.
func head(r *entrystore.Record, width, lines int) string {
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
