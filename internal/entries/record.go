package entries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedurl"
	"github.com/lektordir/lektor/internal/htmltext"
	"github.com/lektordir/lektor/internal/query"
	"github.com/lektordir/lektor/lektordir"
)

// Record is an entry and what was read of it so far. It is used by one
// goroutine at a time.
type Record struct {
	Ref    lektordir.Ref // where it was seen last
	Number int           // in the list, from 1; 0 without one

	s    *Store
	feed *lektordir.Feed // what an index knows of the feed, or nil
	have lektordir.Fields
	// These have the fields of brief, as far as they are in have: what lists are ordered
	// by and show. A list holds no more of an entry.
	title, author string
	pubdate       time.Time
	when          time.Time // the result of Date; sorting asks often
	*details                // nil while nothing else is known
	maybe         bool      // only its files tell whether a query wants it
}

// brief are the fields that a record holds for as long as it lives.
const brief = lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldPubDate

// details are what a record holds until it forgets.
type details struct {
	entry lektordir.Entry
	text  *string // the content as text, once it was asked for
	shown *string // the content as the column has it, once it was asked for
	// words reports which words the entry has without reading it, nil outside of an index.
	words func(folded string) query.Verdict
}

// Record returns the record of an entry, of which nothing is read yet.
func (s *Store) Record(ref lektordir.Ref) *Record { return &Record{s: s, Ref: ref} }

// hit returns the record of an entry that an index knows.
func (s *Store) hit(h Hit) *Record {
	r := &Record{s: s, Ref: h.Ref, feed: h.Feed, have: h.Have}
	if h.Have != 0 || h.Words != nil {
		r.title, r.author, r.pubdate = h.Entry.Title, h.Entry.Author, h.Entry.PubDate
		r.details = &details{entry: h.Entry, words: h.Words}
	}
	return r
}

// take takes fields of an entry.
func (r *Record) take(e *lektordir.Entry, fields lektordir.Fields) {
	if fields&lektordir.FieldTitle != 0 {
		r.title = e.Title
	}
	if fields&lektordir.FieldAuthor != 0 {
		r.author = e.Author
	}
	if fields&lektordir.FieldPubDate != 0 {
		r.pubdate, r.when = e.PubDate, time.Time{}
	}
	r.have |= fields
	if r.details != nil || fields&^brief != 0 {
		r.full().entry.Merge(e, fields)
	}
}

// full returns the details, which begin with the fields of brief.
func (r *Record) full() *details {
	if r.details == nil {
		r.details = &details{entry: lektordir.Entry{Title: r.title, Author: r.author, PubDate: r.pubdate}}
	}
	return r.details
}

// Read makes sure that fields are known. An entry that a viewer has moved
// meanwhile is followed. The error is that of [lektordir.Dir.ReadEntry]; where an entry
// is sound without the files that cannot be read, that is reported, and they are taken
// for none, unless the store is strict.
func (r *Record) Read(want lektordir.Fields) error {
	if want &^= r.have; want == 0 {
		return nil
	}
	if want&lektordir.FieldFeedContent != 0 {
		want |= lektordir.FieldFullText &^ r.have // what says that there is one
	}
	if want&lektordir.Extras != 0 {
		// They are in one file, which is not to be read for each of them; but a
		// summary may be long, and there may be many records.
		want |= lektordir.Extras &^ lektordir.FieldSummary &^ r.have
	}
	e, err := r.s.Dir.ReadEntry(r.Ref, want)
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < mostMoves; try++ {
		ref, there := r.s.where(r.Ref)
		if !there || ref == r.Ref && try > 1 {
			return err
		}
		r.Ref = ref
		e, err = r.s.Dir.ReadEntry(ref, want)
	}
	if err = r.s.dropOptional(err, r.Key()); err != nil {
		return err
	}
	r.take(e, want)
	return nil
}

// mostMoves is how often an entry is followed that others rename while it is read.
const mostMoves = 20

// where returns the place of an entry that was not at ref a moment ago, and false if it
// is gone. The names that viewers give are tried first, since a listing beside a process
// that renames all entries without pause is out of date after a few of them. One listing
// of the feed serves all its entries until it proves wrong.
func (s *Store) where(ref lektordir.Ref) (lektordir.Ref, bool) {
	if now, there := s.renamed(ref); there {
		return now, true
	}
	s.moved.Lock()
	defer s.moved.Unlock()
	known := s.places[ref.Feed]
	now, there := known.of[ref.Unique]
	if there && now != ref {
		return now, true
	}
	if there || time.Since(known.listed) >= listingAge {
		known = places{listed: time.Now(), of: map[string]lektordir.Ref{}}
		// Malformed names were reported when the entries were selected.
		refs, _ := s.Dir.List(context.Background(), lektordir.ListOptions{Feeds: []string{ref.Feed}, AllVersions: true, Withdrawn: true})
		for _, r := range refs {
			known.of[r.Unique] = r
		}
		if s.places == nil {
			s.places = map[string]places{}
		}
		s.places[ref.Feed] = known
		if now, there = known.of[ref.Unique]; there {
			return now, true
		}
	}
	// A listing may lack an entry that was renamed meanwhile.
	return s.renamed(ref)
}

// renamed looks for an entry where it was, and under the names that it gets if viewers set
// and clear the flags that other programs know.
func (s *Store) renamed(ref lektordir.Ref) (now lektordir.Ref, there bool) {
	exists := func(r lektordir.Ref) bool {
		_, err := os.Lstat(s.Dir.Path() + "/" + r.Path())
		return err == nil
	}
	if exists(ref) {
		return ref, true
	}
	if bare, err := ref.WithFlags("", "FST"); err == nil {
		for _, flags := range []string{"", "S", "F", "FS", "T", "ST", "FT", "FST"} {
			if to, err := bare.WithFlags(flags, ""); err == nil && exists(to) {
				return to, true
			}
		}
	}
	fresh := lektordir.Ref{Place: lektordir.New, Feed: ref.Feed, Unique: ref.Unique}
	return fresh, exists(fresh)
}

// places are where the entries of a feed were, by unique name, when they were listed.
type places struct {
	listed time.Time
	of     map[string]lektordir.Ref
}

// listingAge is for how long an entry that a listing lacks is gone without another look:
// of many that are removed while they are read, each would need a listing.
const listingAge = 100 * time.Millisecond

// Check makes sure that the entry has its obligatory files, and, for a strict store, that
// its feed can be read. Only the title is read, as that is what most will be shown of.
func (r *Record) Check() error {
	if r.s.Strict {
		if err := r.s.FeedError(r.Ref.Feed); err != nil {
			return fmt.Errorf("%s: %w", r.Ref.Path(), err)
		}
	}
	if err := r.Read(lektordir.FieldTitle); err != nil {
		return err
	}
	path := r.Path()
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
			return r.Read(f.field)
		}
	}
	return nil
}

// Get is [Record.Read] where an error was reported before: what cannot be read
// is empty. The result is the record's own until [Record.Forget], and only those fields
// of it are right that were asked for now or before.
func (r *Record) Get(want lektordir.Fields) *lektordir.Entry {
	_ = r.Read(want)
	return &r.full().entry
}

// Forget drops what can be read again, but for title, author and date.
func (r *Record) Forget() {
	r.details = nil
	r.have &= brief
}

// settle drops what a list does not need, unless some of it was asked for.
func (r *Record) settle(want lektordir.Fields) {
	if want&^brief == 0 {
		r.Forget()
	}
	if r.details != nil {
		r.words = nil // which ends with the view of the index
		r.dropContent()
	}
}

// dropContent drops what is large.
func (r *Record) dropContent() {
	r.entry.Content, r.entry.FeedContent, r.text, r.shown = nil, nil, nil, nil
	r.have &^= lektordir.FieldContent | lektordir.FieldFeedContent
}

// nothing stands for an entry of which nothing is known.
var nothing lektordir.Entry

// Match asks a query, with what is known.
func (r *Record) Match(m *query.Matcher) query.Verdict {
	s := query.Subject{Ref: r.Ref, Feed: r.Feed(), Entry: &nothing, Text: r.Text, Folders: r.folders, Moved: r.Moved, Withdrawn: r.withdrawn}
	if r.have != 0 || r.details != nil {
		s.Entry, s.Words = &r.full().entry, r.words
	}
	return m.Match(&s, r.have)
}

// Decide asks a query that needs fields, and reads of these what it takes to tell: the
// content last. The error is that of [Record.Read].
func (r *Record) Decide(m *query.Matcher, fields lektordir.Fields) (bool, error) {
	verdict := r.Match(m)
	for _, want := range []lektordir.Fields{fields &^ lektordir.FieldContent, fields} {
		if verdict != query.Maybe {
			break
		}
		if err := r.Read(want); err != nil {
			return false, err
		}
		verdict = r.Match(m)
	}
	return verdict == query.Yes, nil
}

// Rank is the place of the entry in the document of its feed, from 1, where that is
// complete; 0 elsewhere, and for what is not in it.
func (r *Record) Rank() int { return r.s.ranks(r.Ref.Feed)[r.Ref.Identity()] }

func (r *Record) withdrawn() bool {
	id := r.Ref.Identity()
	ranks := r.s.ranks(r.Ref.Feed)
	return ranks != nil && id != "" && ranks[id] == 0
}

// Incomplete tells what is known to be missing of the feed, and why, in a line; ""
// for nothing.
func (r *Record) Incomplete() string { return r.s.Incomplete(r.Ref.Feed) }

func (r *Record) folders() []string { return r.s.Folders(r.Ref.Feed) }

// Moved is when the entry was moved last, the ctime of its directory; zero when that
// cannot be told. Whatever else changes that time, a copy say, makes it later.
func (r *Record) Moved() time.Time {
	var st unix.Stat_t
	if err := unix.Stat(r.Path(), &st); err != nil {
		return time.Time{}
	}
	return time.Unix(st.Ctim.Unix())
}

// Feed is the entry's feed, never nil: its id, name, alias and author.
func (r *Record) Feed() *lektordir.Feed {
	if r.feed != nil {
		return r.feed
	}
	return r.s.Dir.FeedOf(r.Ref)
}

// Path is absolute.
func (r *Record) Path() string { return r.s.Dir.Path() + "/" + r.Ref.Path() }

// Key is what stays of an entry's place when it moves, see [Key].
func (r *Record) Key() string { return Key(r.Ref.Path()) }

// Key is the part of an entry's path, relative to the lektor-dir, that stays
// when it moves: feed and unique name.
func Key(path string) string {
	_, path, _ = strings.Cut(path, "/")
	path, _, _ = strings.Cut(path, ";")
	return path
}

// Date is the time by which entries are ordered: the pubdate, or where that is
// missing or in the future that of the delivery.
func (r *Record) Date() time.Time {
	if r.when.IsZero() {
		_ = r.Read(lektordir.FieldPubDate)
		r.when = query.Date(r.Ref, &lektordir.Entry{PubDate: r.pubdate}, r.s.Now)
	}
	return r.when
}

// Published is the date that the entry has for everybody, whatever the clock
// says: the pubdate, or where that is missing the time of delivery.
func (r *Record) Published() time.Time {
	_ = r.Read(lektordir.FieldPubDate)
	if r.pubdate.IsZero() {
		return r.Ref.Delivered()
	}
	return r.pubdate
}

// Text is the content as bare text.
func (r *Record) Text() string {
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	if r.text == nil {
		text := htmltext.Text(e.Content, e.Type)
		r.text = &text
	}
	return *r.text
}

// excerptWidth is how much of its content stands for the title of an entry.
const excerptWidth = 200

// OwnTitle is the title that the feed has given the entry, "" for none.
func (r *Record) OwnTitle() string {
	_ = r.Read(lektordir.FieldTitle)
	return r.title
}

// Title is what is shown as the title: without one the beginning of the
// content, else where the entry is found. It is never read more than needed.
func (r *Record) Title() string {
	if t := r.OwnTitle(); strings.TrimSpace(t) != "" {
		return t
	}
	had := r.have&lektordir.FieldContent != 0
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	text := htmltext.Excerpt(e.Content, e.Type, excerptWidth)
	if !had && r.details != nil {
		r.dropContent()
	}
	return cmp.Or(text, r.URL(), r.Get(lektordir.FieldID).ID)
}

// TakeFeedText makes what the feed has the content of the record, from here on, where that
// is the article of the entry's page. The error is that of [Record.Read].
func (r *Record) TakeFeedText() error {
	err := r.Read(lektordir.FieldContent | lektordir.FieldType | lektordir.FieldFeedContent | lektordir.FieldFullText)
	if e := r.Get(0); err == nil && e.FullText.URL != "" {
		e.Content, e.Type = e.FeedContent, e.FullText.Type
		r.text, r.shown = nil, nil
	}
	return err
}

// URL is where the entry can be read, "" if nobody says.
func (r *Record) URL() string { return r.Get(lektordir.FieldLink | lektordir.FieldID).URL() }

// Author is the entry's, or the feed's where it has none.
func (r *Record) Author() string {
	_ = r.Read(lektordir.FieldAuthor)
	return cmp.Or(r.author, r.Feed().Author)
}

// Content is the content as text with footnotes, wrapped to width columns.
func (r *Record) Content(width int) string { return r.Document(width).Text }

// Document is the content as text with footnotes, wrapped to width columns, with what
// they lead to.
func (r *Record) Document(width int) htmltext.Document {
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	return htmltext.Lay(e.Content, e.Type, htmltext.Options{Width: width, Base: cmp.Or(r.URL(), r.Feed().ID)})
}

// rendered is the content for the column of that name.
func (r *Record) rendered() string {
	if r.full().shown == nil {
		text := strings.TrimSuffix(r.Content(0), "\n")
		r.shown = &text
	}
	return *r.shown
}

// Lines is the content as bare text, wrapped to width columns.
func (r *Record) Lines(width int) string {
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	return htmltext.Render(e.Content, e.Type, htmltext.Options{Width: width, Bare: true})
}

// ByDate orders from old to new; entries of one moment by delivery, then name.
func ByDate(a, b *Record) int {
	if c := a.Date().Compare(b.Date()); c != 0 {
		return c
	}
	return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()),
		cmp.Compare(a.Ref.Feed, b.Ref.Feed), cmp.Compare(a.Ref.Unique, b.Ref.Unique))
}

// column is a column and the files it is made of, for reading ahead. Were one
// missing, the column would be right all the same, and slower.
type column struct {
	need lektordir.Fields
	command.Column[*Record]
}

// columns are what -o can print of an entry; lektor-view(1) lists them.
var columns = []column{
	{0, command.Column[*Record]{Name: "path", Verbatim: true, Get: func(r *Record) any { return r.Path() }}},
	col("date", lektordir.FieldPubDate, func(r *Record) any { return r.Date() }),
	col("unread", 0, func(r *Record) any { return r.Ref.Unread() }),
	col("flags", 0, func(r *Record) any { return r.Ref.Flags() }),
	col("feed", 0, func(r *Record) any { return r.Feed().Title() }),
	col("title", lektordir.FieldTitle, func(r *Record) any { return r.Title() }),
	col("url", lektordir.FieldLink|lektordir.FieldID, func(r *Record) any { return r.URL() }),
	col("author", lektordir.FieldAuthor, func(r *Record) any { return r.Author() }),
	col("id", lektordir.FieldID, func(r *Record) any { return r.Get(lektordir.FieldID).ID }),
	col("type", lektordir.FieldType, func(r *Record) any { return cmp.Or(r.Get(lektordir.FieldType).Type, "text/plain") }),
	col("categories", lektordir.FieldCategories, func(r *Record) any { return r.Get(lektordir.FieldCategories).Categories }),
	col("enclosures", lektordir.FieldEnclosures, func(r *Record) any {
		list := make([]command.Object, 0)
		for _, e := range r.Get(lektordir.FieldEnclosures).Enclosures {
			o := command.Object{{Name: "url", Value: e.URL}, {Name: "type"}, {Name: "length"}}
			if e.Type != "" {
				o[1].Value = e.Type
			}
			if e.Length >= 0 {
				o[2].Value = e.Length
			}
			list = append(list, o)
		}
		return list
	}),
	extra("rank", 0, func(r *Record) any { return r.Rank() }),
	extra("incomplete", 0, func(r *Record) any { return r.Incomplete() }),
	extra("number", 0, func(r *Record) any { return r.Number }),
	{0, command.Column[*Record]{Name: "name", Extra: true, Full: true, Verbatim: true, Get: func(r *Record) any { return r.Ref.Unique }}},
	full("feedid", 0, func(r *Record) any { return feedurl.Public(r.Feed().ID) }),
	{0, command.Column[*Record]{Name: "feedhash", Extra: true, Full: true, Verbatim: true, Get: func(r *Record) any { return r.Ref.Feed }}},
	full("folder", 0, func(r *Record) any { return r.folders() }),
	full("delivered", 0, func(r *Record) any { return r.Ref.Delivered() }),
	sparse("fulltext", lektordir.FieldFullText, func(r *Record) any { return r.Get(lektordir.FieldFullText).FullText.URL }),
	sparse("updated", lektordir.FieldUpdated, func(r *Record) any { return r.Get(lektordir.FieldUpdated).Updated }),
	sparse("comments", lektordir.FieldComments, func(r *Record) any { return r.Get(lektordir.FieldComments).Comments }),
	sparse("image", lektordir.FieldImage, func(r *Record) any { return r.Get(lektordir.FieldImage).Image }),
	sparse("language", lektordir.FieldLanguage, func(r *Record) any { return r.Get(lektordir.FieldLanguage).Language }),
	sparse("contributors", lektordir.FieldContributors, func(r *Record) any { return r.Get(lektordir.FieldContributors).Contributors }),
	sparse("source", lektordir.FieldSource, func(r *Record) any { return r.Get(lektordir.FieldSource).Source.Title }),
	sparse("duration", lektordir.FieldDuration, func(r *Record) any { return int(r.Get(lektordir.FieldDuration).Duration.Seconds()) }),
	sparse("episode", lektordir.FieldEpisode, func(r *Record) any { return r.Get(lektordir.FieldEpisode).Episode }),
	sparse("season", lektordir.FieldSeason, func(r *Record) any { return r.Get(lektordir.FieldSeason).Season }),
	{lektordir.FieldSummary, command.Column[*Record]{Name: "summary", Extra: true, Full: true, Text: true, Get: func(r *Record) any { return r.Get(lektordir.FieldSummary).Summary }}},
	{contentFields, command.Column[*Record]{Name: "content", Extra: true, Full: true, Text: true, Get: func(r *Record) any { return r.rendered() }}},
}

// contentFields are the files that the column content is made of.
const contentFields = lektordir.FieldContent | lektordir.FieldType | lektordir.FieldLink | lektordir.FieldID

func col(name string, need lektordir.Fields, get func(*Record) any) column {
	return column{need, command.Column[*Record]{Name: name, Get: get}}
}

func extra(name string, need lektordir.Fields, get func(*Record) any) column {
	return column{need, command.Column[*Record]{Name: name, Extra: true, Get: get}}
}

// full is an extra column that JSON has unasked, and sparse one that it has where
// there is something in it.
func full(name string, need lektordir.Fields, get func(*Record) any) column {
	c := extra(name, need, get)
	c.Full = true
	return c
}

func sparse(name string, need lektordir.Fields, get func(*Record) any) column {
	c := full(name, need, get)
	c.Sparse = true
	return c
}

// Columns gives the columns of records: those of these names, which are printed
// unasked in this order, or without names all there are.
func Columns(names ...string) []command.Column[*Record] {
	var out []command.Column[*Record]
	for _, c := range columns {
		if len(names) == 0 {
			out = append(out, c.Column)
		} else if slices.Contains(names, c.Name) {
			c.Extra = false
			out = append(out, c.Column)
		}
	}
	if len(names) > 0 {
		slices.SortFunc(out, func(a, b command.Column[*Record]) int {
			return cmp.Compare(slices.Index(names, a.Name), slices.Index(names, b.Name))
		})
	}
	return out
}

// FormatFields are the files that an output format will want.
func FormatFields(format string) lektordir.Fields {
	var f lektordir.Fields
	for _, c := range columns {
		switch {
		case slices.Contains(strings.Split(format, ","), c.Name),
			!c.Extra && (format == "tsv" || format == "json"),
			c.Full && format == "json",
			strings.Contains(format, "{{") && strings.Contains(format, c.Name):
			f |= c.need
		}
	}
	return f
}

// A piece of a list is read ahead before it is printed: of large files less, as
// all of it is in memory at once.
const manyAhead, fewAhead = 1024, 32

// Ahead tells how to read ahead of printing in an output format: of how many
// records at once, and what is done with each, in parallel with others.
func Ahead(format string) (n int, prepare func(*Record)) {
	switch need := FormatFields(format); {
	case need&lektordir.FieldContent != 0:
		return fewAhead, func(r *Record) {
			r.Get(need)
			r.rendered()
		}
	case need != 0:
		return manyAhead, func(r *Record) { r.Get(need) }
	}
	return manyAhead, func(*Record) {}
}
