package viewer

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entries"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/internal/spill"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
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
	v, err := o.open(o.Query, command.PrinterOptions{}, s)
	if err != nil {
		return err
	}
	// An entry is marked as read when it was printed, so it is printed whole.
	v.Strict = true
	feeds := map[string]*digestFeed{}
	found, err := v.Collect(ctx, entries.Selection{Query: v.query, All: o.All, Want: lektordir.FieldPubDate}, entries.Collecting{
		// What is counted is printed.
		Keep: func(r *entries.Record) bool { return v.Usable(r.Check()) },
		Note: func(r *entries.Record) {
			if feeds[r.Ref.Feed] == nil {
				feeds[r.Ref.Feed] = &digestFeed{title: query.Fold(r.Feed().Title())}
			}
			feeds[r.Ref.Feed].Add(r.Ref)
		},
		Again: func() { clear(feeds) },
		Order: func(a, b *entries.Record) int {
			return cmp.Or(cmp.Compare(feeds[a.Ref.Feed].title, feeds[b.Ref.Feed].title), cmp.Compare(a.Ref.Feed, b.Ref.Feed), entries.ByDate(a, b))
		},
	})
	if err != nil {
		return err
	}
	defer found.Close()
	defer v.moves("digest").close()
	if o.HTML != nil {
		return v.htmlDigest(ctx, found, o)
	}
	width := o.Width
	if width <= 0 {
		width = 80
	}
	feed := ""
	shown, n := spill.NewPile(v.Most), 0
	defer shown.Close()
	if o.Number {
		defer func() { v.savePaths(shown.Texts()) }()
	}
	for r, err := range entries.While(ctx, found.All()) {
		if err != nil {
			return err
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
		if n++; o.Number {
			shown.Add([]byte(r.Ref.Path()))
			fmt.Fprintf(&b, "%d ", n)
		}
		if title := strings.TrimSpace(termsafe.Line(r.Get(0).Title)); title != "" || o.Number {
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
	if _, err := v.setFlags(ref, "S", ""); err != nil && !removed(err) {
		v.failed(err)
	}
}

// htmlDigest has another program write the digest, as what makes HTML harmless would
// make every start of this one slower. Entries are marked when all was written.
func (v *viewer) htmlDigest(ctx context.Context, found *entries.Collection, o DigestOptions) error {
	shown := spill.NewPile(v.Most) // paths, each with a NUL
	defer shown.Close()
	dir := v.Dir.Path() + string(filepath.Separator)
	for r, err := range entries.While(ctx, found.All()) {
		if err != nil {
			return err
		}
		if v.Usable(r.Read(lektordir.Obligatory)) {
			shown.Add([]byte(dir + r.Ref.Path() + "\x00"))
		}
		r.Forget()
	}
	// Of no entries it writes nothing, and yet says what is wrong with an address: better
	// today than on the day when something arrives.
	args := slices.Concat([]string{"--dir", v.Dir.Path(), "digest", "--null"}, o.HTML, []string{"-"})
	if err := command.RunBeside(ctx, "lektor-pages", args, shown.Reader(), v.S); err != nil {
		return err
	}
	for path, err := range entries.While(ctx, shown.Texts()) {
		if err != nil {
			return err
		}
		ref, err := lektordir.ParsePath(strings.TrimSuffix(strings.TrimPrefix(path, dir), "\x00"))
		if err != nil {
			return err
		}
		v.digested(ref, o)
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
