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
	"github.com/lektordir/lektor/internal/feedurl"
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
	d := &digest{viewer: v, o: o, feeds: map[string]*digestFeed{}}
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
		d.mark(r.Ref)
		r.Forget()
	}
	return nil
}

// digest is a run of [Digest].
type digest struct {
	*viewer
	o     DigestOptions
	feeds map[string]*digestFeed // by hash
	shown []*entries.Record
}

// sort counts the entries of each feed, and sorts them by feeds, and then by date.
func (d *digest) sort(list []*entries.Record) {
	for _, r := range list {
		if d.feeds[r.Ref.Feed] == nil {
			d.feeds[r.Ref.Feed] = &digestFeed{title: query.Fold(r.Feed().Title())}
		}
		d.feeds[r.Ref.Feed].Add(r.Ref)
	}
	slices.SortFunc(list, func(a, b *entries.Record) int {
		return cmp.Or(cmp.Compare(d.feeds[a.Ref.Feed].title, d.feeds[b.Ref.Feed].title), cmp.Compare(a.Ref.Feed, b.Ref.Feed), entries.ByDate(a, b))
	})
}

// text returns what is printed of the next entry, below a line for its feed if it is the
// first of that.
func (d *digest) text(r *entries.Record) string {
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
	width := d.o.Width
	if width <= 0 {
		width = DefaultText
	}
	b.WriteString(head(r, width-4, d.o.Lines))
	if url := termsafe.Line(feedurl.Public(r.URL())); url != "" {
		b.WriteString("    " + url + "\n")
	}
	return b.String()
}

// digestFeed is what is told of a feed, and by what feeds are ordered.
type digestFeed struct {
	counted
	title string // folded
}

// mark marks an entry that was written as read.
func (d *digest) mark(ref lektordir.Ref) {
	if d.o.Keep || !ref.Unread() {
		return
	}
	if _, err := d.mover.SetFlags(ref, "S", ""); err != nil && !undo.Removed(err) {
		d.mover.Failed(err)
	}
}

// html has another program write the digest, as what makes HTML harmless would
// make every start of this one slower. Entries are marked when all was written.
func (d *digest) html(ctx context.Context, list []*entries.Record) error {
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
	// Of no entries it writes nothing, and yet says what is wrong with an address: better
	// today than on the day when something arrives.
	args := slices.Concat([]string{"--dir", d.Dir.Path(), "digest", "--null"}, d.o.HTML, []string{"-"})
	if err := command.RunBeside(ctx, "lektor-pages", args, strings.NewReader(paths.String()), d.S); err != nil {
		return err
	}
	for _, r := range d.shown {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.mark(r.Ref)
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
