package viewer

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/htmltext"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// record is an entry and what was read of it so far. It is used by one
// goroutine at a time.
type record struct {
	v      *viewer
	ref    lektordir.Ref
	number int // in the list, from 1; 0 without one
	open   bool

	entry lektordir.Entry
	have  lektordir.Fields
	when  time.Time // what date gave; sorting asks often
	text  string    // the content as text, once it was asked for
	texts bool
}

// read makes sure that fields are known. The error is that of
// [lektordir.Dir.ReadEntry].
func (r *record) read(want lektordir.Fields) error {
	want &^= r.have
	if want == 0 {
		return nil
	}
	e, err := r.v.dir.ReadEntry(r.ref, want)
	if errors.Is(err, fs.ErrNotExist) {
		// Another viewer may have moved it meanwhile.
		ref, rerr := r.v.dir.Resolve(r.ref.Path())
		if rerr != nil || ref == r.ref {
			return err
		}
		r.ref = ref
		e, err = r.v.dir.ReadEntry(ref, want)
	}
	if err != nil {
		return err
	}
	r.have |= want
	r.entry.Merge(e, want)
	return nil
}

// check makes sure that the entry has its obligatory files. Only the title is
// read, as that is what most will be shown of.
func (r *record) check() error {
	if err := r.read(lektordir.FieldTitle); err != nil {
		return err
	}
	path := r.path()
	for _, f := range []struct {
		name  string
		field lektordir.Fields
	}{
		{"/id", lektordir.FieldID}, {"/content", lektordir.FieldContent}, {"/feed", lektordir.FieldFeed},
	} {
		if r.have&f.field != 0 {
			continue
		}
		if _, err := os.Lstat(path + f.name); err != nil {
			// To read it says what is wrong; or finds the entry moved.
			return r.read(f.field)
		}
	}
	return nil
}

// get is read where an error was reported before: what cannot be read is empty.
func (r *record) get(want lektordir.Fields) *lektordir.Entry {
	r.read(want)
	return &r.entry
}

// forget drops what is large and can be read again.
func (r *record) forget() {
	r.entry.Content, r.text, r.texts = nil, "", false
	r.have &^= lektordir.FieldContent
}

// match asks a query, with what is known.
func (r *record) match(m *query.Matcher) query.Verdict {
	return m.Match(&query.Subject{Ref: r.ref, Feed: r.feed(), Entry: &r.entry, Text: r.plain}, r.have)
}

func (r *record) feed() *lektordir.Feed { return r.v.feed(r.ref) }

func (r *record) path() string { return r.v.dir.Abs(r.ref) }

// date is the time by which entries are ordered.
func (r *record) date() time.Time {
	if r.when.IsZero() {
		r.when = query.Date(r.ref, r.get(lektordir.FieldPubDate), r.v.now)
	}
	return r.when
}

// plain is the content as bare text.
func (r *record) plain() string {
	if !r.texts {
		e := r.get(lektordir.FieldContent | lektordir.FieldType)
		r.text, r.texts = htmltext.Text(e.Content, e.Type), true
	}
	return r.text
}

// excerptWidth is how much of its content stands for the title of an entry.
const excerptWidth = 200

// title is what is shown as the title: without one the beginning of the
// content, else where the entry is found. It is never read more than needed.
func (r *record) title() string {
	if t := r.get(lektordir.FieldTitle).Title; strings.TrimSpace(t) != "" {
		return t
	}
	had := r.have&lektordir.FieldContent != 0
	e := r.get(lektordir.FieldContent | lektordir.FieldType)
	text := htmltext.Excerpt(e.Content, e.Type, excerptWidth)
	if !had {
		r.forget()
	}
	if text != "" {
		return text
	}
	e = r.get(lektordir.FieldLink | lektordir.FieldID)
	return cmp.Or(e.URL(), e.ID)
}

// author is the entry's, or the feed's where it has none.
func (r *record) author() string {
	return cmp.Or(r.get(lektordir.FieldAuthor).Author, r.feed().Author)
}

// content is the content as text with footnotes, wrapped to width columns.
func (r *record) content(width int) string {
	e := r.get(lektordir.FieldContent | lektordir.FieldType | lektordir.FieldLink | lektordir.FieldID)
	return htmltext.Render(e.Content, e.Type, htmltext.Options{Width: width, Base: cmp.Or(e.URL(), r.feed().ID)})
}

// byDate orders from old to new; entries of one moment by delivery, then name.
func byDate(a, b *record) int {
	if c := a.date().Compare(b.date()); c != 0 {
		return c
	}
	return cmp.Or(a.ref.Delivered().Compare(b.ref.Delivered()),
		cmp.Compare(a.ref.Feed, b.ref.Feed), cmp.Compare(a.ref.Unique, b.ref.Unique))
}

// columns are what -o can print of an entry; lektor-view(1) lists them.
func columns() []command.Column[*record] {
	type R = *record
	return []command.Column[R]{
		{Name: "path", Verbatim: true, Get: func(r R) any { return r.path() }},
		{Name: "date", Get: func(r R) any { return r.date() }},
		{Name: "unread", Get: func(r R) any { return r.ref.Unread() }},
		{Name: "flags", Get: func(r R) any { return r.ref.Flags() }},
		{Name: "feed", Get: func(r R) any { return r.feed().Title() }},
		{Name: "title", Get: func(r R) any { return r.title() }},
		{Name: "url", Get: func(r R) any { return r.get(lektordir.FieldLink | lektordir.FieldID).URL() }},
		{Name: "author", Get: func(r R) any { return r.author() }},
		{Name: "id", Get: func(r R) any { return r.get(lektordir.FieldID).ID }},
		{Name: "type", Get: func(r R) any { return cmp.Or(r.get(lektordir.FieldType).Type, "text/plain") }},
		{Name: "categories", Get: func(r R) any { return r.get(lektordir.FieldCategories).Categories }},
		{Name: "enclosures", Get: func(r R) any {
			var urls []string
			for _, e := range r.get(lektordir.FieldEnclosures).Enclosures {
				urls = append(urls, e.URL)
			}
			return urls
		}},
		{Name: "number", Extra: true, Get: func(r R) any { return r.number }},
		{Name: "name", Extra: true, Verbatim: true, Get: func(r R) any { return r.ref.Unique }},
		{Name: "feedid", Extra: true, Get: func(r R) any { return r.feed().ID }},
		{Name: "feedhash", Extra: true, Verbatim: true, Get: func(r R) any { return r.ref.Feed }},
		{Name: "delivered", Extra: true, Get: func(r R) any { return r.ref.Delivered() }},
		{Name: "updated", Extra: true, Get: func(r R) any { return r.get(lektordir.FieldUpdated).Updated }},
		{Name: "comments", Extra: true, Get: func(r R) any { return r.get(lektordir.FieldComments).Comments }},
		{Name: "summary", Extra: true, Text: true, Get: func(r R) any { return r.get(lektordir.FieldSummary).Summary }},
		{Name: "content", Extra: true, Text: true, Get: func(r R) any { return strings.TrimSuffix(r.content(0), "\n") }},
	}
}

// columnFields are the files that columns are made of, for reading ahead. A
// column that is missing here is right all the same, and slower.
var columnFields = map[string]lektordir.Fields{
	"date": lektordir.FieldPubDate, "title": lektordir.FieldTitle, "url": lektordir.FieldLink | lektordir.FieldID,
	"author": lektordir.FieldAuthor, "id": lektordir.FieldID, "type": lektordir.FieldType,
	"categories": lektordir.FieldCategories, "enclosures": lektordir.FieldEnclosures,
	"updated": lektordir.FieldUpdated, "comments": lektordir.FieldComments, "summary": lektordir.FieldSummary,
	"content": lektordir.FieldContent | lektordir.FieldType | lektordir.FieldLink | lektordir.FieldID,
}

// formatFields are the files that an output format will want.
func formatFields(format string) lektordir.Fields {
	var f lektordir.Fields
	for _, c := range columns() {
		switch {
		case format == c.Name,
			!c.Extra && (format == "tsv" || format == "json"),
			strings.Contains(format, "{{") && strings.Contains(format, c.Name):
			f |= columnFields[c.Name]
		}
	}
	return f
}

// lines is the content as bare text, wrapped to width columns.
func (r *record) lines(width int) string {
	e := r.get(lektordir.FieldContent | lektordir.FieldType)
	return htmltext.Render(e.Content, e.Type, htmltext.Options{Width: width, Bare: true})
}
