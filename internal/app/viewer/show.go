package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/content"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/content/podcast"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// ShowOptions are the options of [Show] and [Next].
type ShowOptions struct {
	session.Common
	session.Names
	Query []string // for Next
	// Print is used instead of text if it has a format.
	Print cmdline.PrinterOptions
	// FeedText prints the feed's text also if there is an article of the page.
	FeedText bool
	Raw      bool  // print only the bytes of the content, unless Print has a format
	Mark     bool  // mark shown entries as read
	Width    int   // columns to wrap to; 80 if 0
	Pager    Pager // shows the text; unused if Print has a format
}

// Show prints entries as text, and marks them as read if o.Mark is set.
func Show(ctx context.Context, o ShowOptions, s *cmdline.Streams) error {
	v, err := openUndoable("show --mark", o.Common, nil, o.Print, s)
	if err != nil {
		return err
	}
	defer v.mover.Close()
	return v.show(ctx, o, v.Named(ctx, o.Names, s.Report.Print))
}

// show prints entries, and marks them as read if o.Mark is set.
func (v *viewer) show(ctx context.Context, o ShowOptions, list iter.Seq[*entrystore.Record]) error {
	var shown []*entrystore.Record
	if v.Printer != nil {
		o.Pager = Pager{}
	}
	err := o.Pager.show(v.S, func(w io.Writer) error {
		for r := range list {
			ok, err := v.showOne(w, r, o, len(shown) > 0)
			if err != nil {
				return err
			}
			if ok {
				shown = append(shown, r)
			}
		}
		return context.Cause(ctx)
	})
	if err == nil {
		v.wasShown(shown, o.Mark)
	}
	return err
}

// Next shows the next unread entry. With a query, this is the oldest entry that matches. Without
// a query, it is the first unread entry after the current one in the last list, or the oldest of
// all if the list has no unread entry left.
func Next(ctx context.Context, o ShowOptions, s *cmdline.Streams) error {
	v, err := openUndoable("next", o.Common, o.Query, o.Print, s)
	if err != nil {
		return err
	}
	defer v.mover.Close()
	var r *entrystore.Record
	for try := 0; ; try++ {
		if r, err = v.next(ctx); err != nil {
			return err
		}
		// If another viewer removes the entry at this moment, try the one after it.
		if r == nil || !errors.Is(r.Read(lektordir.AllFields), fs.ErrNotExist) || try == 3 {
			break
		}
	}
	if r == nil {
		what := "there is no unread entry"
		if !v.Query.Empty() {
			what += " that matches " + v.Query.String()
		}
		return errors.New(what)
	}
	return v.show(ctx, o, slices.Values([]*entrystore.Record{r}))
}

// next returns the entry for [Next], nil if there is none.
func (v *viewer) next(ctx context.Context) (*entrystore.Record, error) {
	if v.Query.Empty() {
		if r, err := v.nextListed(ctx); r != nil || err != nil {
			return r, err
		}
	}
	found, err := v.Select(ctx, entrystore.Selection{Query: v.Query, Want: lektordir.FieldPubDate})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, entrystore.ByDate)
	for _, r := range found {
		if r.Ref.Unread() && v.Usable(r.Check()) {
			// A new record, so that its files are read as they are now.
			return v.Record(r.Ref), nil
		}
	}
	return nil, nil
}

// nextListed returns the first unread entry after the current one in the last list, which it
// wraps around; nil if there is none.
func (v *viewer) nextListed(ctx context.Context) (*entrystore.Record, error) {
	list, err := v.LastList()
	if err != nil {
		return nil, err
	}
	found, err := v.Select(ctx, entrystore.Selection{Query: v.Query})
	if err != nil {
		return nil, err
	}
	// Entries are matched by feed and unique name, as they may have moved.
	unread := map[string]lektordir.Ref{}
	for _, r := range found {
		unread[r.Key()] = r.Ref
	}
	current := entrystore.Key(v.Current())
	at := 1 + slices.IndexFunc(list, func(path string) bool { return entrystore.Key(path) == current })
	for _, path := range slices.Concat(list[at:], list[:at]) {
		ref, ok := unread[entrystore.Key(path)]
		if !ok {
			continue
		}
		if r := v.Record(ref); v.Usable(r.Check()) {
			return v.Record(r.Ref), nil
		}
	}
	return nil, nil
}

// wasShown marks entries as read if mark is set, and makes the last one the current entry.
func (v *viewer) wasShown(shown []*entrystore.Record, mark bool) {
	for i, r := range shown {
		if mark {
			v.markRead(r)
		}
		if i == len(shown)-1 {
			if err := v.SetCurrent(r.Ref); err != nil {
				v.S.Report.Warn("cannot save the current entry, so %q does not name it: %v", ".", err)
			}
		}
	}
}

// markRead marks an entry as read.
func (v *viewer) markRead(r *entrystore.Record) {
	if !r.Ref.Unread() {
		return
	}
	ref, err := v.mover.SetFlags(r.Ref, "S", "")
	switch {
	case err == nil:
		r.Ref = ref
	case !undo.Removed(err):
		v.mover.Failed(err)
	}
}

// showOne prints one entry. It reports whether the entry could be read. The error is a write
// error.
func (v *viewer) showOne(w io.Writer, r *entrystore.Record, o ShowOptions, another bool) (bool, error) {
	want, err := lektordir.Fields(lektordir.AllFields), error(nil)
	switch {
	case v.Printer != nil:
		want = lektordir.Obligatory
	case o.Raw:
		want = lektordir.FieldContent
	}
	if o.FeedText {
		err = r.TakeFeedText()
	}
	if err = cmp.Or(err, r.Read(want)); err != nil {
		v.S.Report.Print(err)
		return false, nil
	}
	switch {
	case v.Printer != nil:
		err = cmp.Or(v.Printer.Print(r), v.Printer.Flush())
		r.Forget()
	case o.Raw:
		_, err = w.Write(r.Get(0).Content)
	default:
		width := cmp.Or(o.Width, DefaultText)
		text := Text(v.Store, r, width)
		if another {
			text = "\n" + strings.Repeat("=", min(width, 72)) + "\n\n" + text
		}
		_, err = io.WriteString(w, text)
	}
	return true, err
}

// Text returns an entry that was read as text: its fields, and its content wrapped to width
// columns.
func Text(s *entrystore.Store, r *entrystore.Record, width int) string {
	var b strings.Builder
	Header(&b, s, r)
	b.WriteString("\n")
	text := r.Content(width)
	if text == "" && r.Get(0).Summary != "" {
		text = termsafe.Clean(r.Get(0).Summary) + "\n"
	}
	text += Spoken(r, width)
	b.WriteString(strings.TrimPrefix(text, "\n"))
	return b.String()
}

// Spoken returns the chapters and a kept transcript of an entry that was read, wrapped to width columns; ""
// if there are none.
func Spoken(r *entrystore.Record, width int) string {
	var b strings.Builder
	if list := podcast.Chapters(r.Get(0), r.Kept); len(list) > 0 {
		b.WriteString("\nChapters:\n")
		for _, c := range list {
			fmt.Fprintf(&b, "%8s  %s\n", podcast.Clock(c.Start), termsafe.Line(c.Title))
		}
	}
	if text, mime := podcast.Transcript(r.Get(0), r.Kept); text != "" {
		b.WriteString("\nTranscript:\n\n")
		b.WriteString(htmltext.Render([]byte(text), mime, htmltext.Options{Width: width, Bare: true}))
	}
	return b.String()
}

// Header writes the fields of an entry except its content, a line for each.
func Header(b *strings.Builder, v *entrystore.Store, r *entrystore.Record) {
	e := r.Get(0)
	line := func(name, value string) {
		if value = strings.TrimSpace(termsafe.Line(value)); value != "" {
			fmt.Fprintf(b, "%s: %s\n", name, value)
		}
	}
	line("Title", e.Title)
	line("Feed", r.Feed().Title())
	line("Author", r.Author())
	const layout = "Mon, 2 Jan 2006 15:04 -0700"
	if !e.PubDate.IsZero() {
		line("Date", e.PubDate.In(v.Now.Location()).Format(layout))
	} else {
		line("Delivered", r.Ref.Delivered().In(v.Now.Location()).Format(layout))
		line("Date", e.PubDateRaw)
	}
	if !e.Updated.IsZero() && !e.Updated.Equal(e.PubDate) {
		line("Updated", e.Updated.In(v.Now.Location()).Format(layout))
	}
	line("Link", e.URL())
	if e.URL() == "" {
		line("Id", e.ID)
	}
	line("Categories", strings.Join(e.Categories, ", "))
	line("Comments", e.Comments)
	if e.FullText.URL != e.URL() {
		line("Full text", e.FullText.URL)
	}
	for _, enc := range e.Enclosures {
		_, about := content.About(enc)
		line("Enclosure", enc.URL+about)
	}
	for _, f := range podcast.Fields(e) {
		line(f.Name, f.Value())
	}
	line("Flags", r.Ref.Flags())
	line("Incomplete", r.Incomplete())
}
