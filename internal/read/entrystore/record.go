package entrystore

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

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/content/htmltext"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// Record is an entry and its fields that have been read so far. It must not be used concurrently.
type Record struct {
	Ref    lektordir.Ref // its last known name
	Number int           // position in the list, from 1; 0 if it has none

	s    *Store
	feed *lektordir.Feed // the feed from an index, or nil
	have lektordir.Fields
	// The fields of brief that are in have. They are enough to sort and print a list.
	title, author string
	pubdate       time.Time
	inReplyTo     []lektordir.ReplyTo
	when          time.Time   // cached result of Date
	*details                  // nil if only fields of brief are known
	again         func() bool // whether it is a repeat, by an index; nil if unknown
	maybe         bool        // its files must be read to decide whether the query selects it
}

// brief is the fields that a record never forgets.
const brief = lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldPubDate | lektordir.FieldInReplyTo

// details holds the data that [Record.Forget] drops.
type details struct {
	entry lektordir.Entry
	text  *string // cached result of Text
	shown *string // cached result of rendered
	// words reports, by the index, which words the entry has; nil if no index was used.
	words func(folded string) query.Verdict
}

// Record returns the record of an entry. It reads nothing yet.
func (s *Store) Record(ref lektordir.Ref) *Record { return &Record{s: s, Ref: ref} }

// hit returns the record of an entry found in an index.
func (s *Store) hit(h Hit) *Record {
	r := &Record{s: s, Ref: h.Ref, feed: h.Feed, have: h.Have, again: h.Repeat}
	if h.Have != 0 || h.Words != nil {
		r.title, r.author, r.pubdate, r.inReplyTo = h.Entry.Title, h.Entry.Author, h.Entry.PubDate, h.Entry.InReplyTo
		r.details = &details{entry: h.Entry, words: h.Words}
	}
	return r
}

// take copies fields from e to the record.
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
	if fields&lektordir.FieldInReplyTo != 0 {
		r.inReplyTo = e.InReplyTo
	}
	r.have |= fields
	if r.details != nil || fields&^brief != 0 {
		r.full().entry.Merge(e, fields)
	}
}

// full returns the details, and makes them from the fields of brief if there are none.
func (r *Record) full() *details {
	if r.details == nil {
		r.details = &details{entry: lektordir.Entry{Title: r.title, Author: r.author, PubDate: r.pubdate,
			InReplyTo: r.inReplyTo}}
	}
	return r.details
}

// Read reads the fields of the entry that are not read yet. If a viewer has moved the entry, it is
// read under its new name. The error is that of [lektordir.Dir.ReadEntry]. Optional files that
// cannot be read are reported and taken as missing, unless the store is strict.
func (r *Record) Read(want lektordir.Fields) error {
	if want &^= r.have; want == 0 {
		return nil
	}
	if want&lektordir.FieldFeedContent != 0 {
		want |= lektordir.FieldFullText &^ r.have // to know whether there is an article
	}
	if want&lektordir.Extras != 0 {
		// These fields are in one file, so read all of them at once. Only the summary is left out,
		// as it may be long.
		want |= lektordir.Extras &^ lektordir.FieldSummary &^ r.have
	}
	e, err := r.s.Dir.ReadEntry(r.Ref, want)
	for try := 0; errors.Is(err, fs.ErrNotExist) && try < mostMoves; try++ {
		ref, found := r.s.Where(r.Ref)
		if !found || ref == r.Ref && try > 1 {
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

// mostMoves is the maximum number of times that a read is repeated because the entry was renamed.
const mostMoves = 20

// Where returns the new name of an entry that was renamed, or false if the entry was removed. It first tries the
// usual flags, because reading the directory for each takes long if another process renames all entries.
func (s *Store) Where(ref lektordir.Ref) (lektordir.Ref, bool) {
	if now, found := s.renamed(ref); found {
		return now, true
	}
	now, err := s.Dir.Resolve(ref.Path())
	return now, err == nil
}

// renamed looks for an entry under its old name, and under the names with other combinations of
// the flags F, S and T.
func (s *Store) renamed(ref lektordir.Ref) (now lektordir.Ref, found bool) {
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
	fresh := lektordir.Ref{Place: lektordir.New, Feed: ref.Feed, Unique: ref.Unique, Mtime: ref.Mtime}
	return fresh, exists(fresh)
}

// Check returns an error if an obligatory file is missing, or, in a strict store, if the feed
// cannot be read. It reads only the title, which most lists need.
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
			// Reading the file returns the right error, or finds the entry in its new place.
			return r.Read(f.field)
		}
	}
	return nil
}

// Get is like [Record.Read], but ignores errors: fields that cannot be read are empty. The result
// belongs to the record and is valid until [Record.Forget]. Only fields that were requested now or
// before are set.
func (r *Record) Get(want lektordir.Fields) *lektordir.Entry {
	_ = r.Read(want)
	return &r.full().entry
}

// Forget frees the memory of all fields except title, author, date and what the entry replies to. They
// are read again when
// they are needed.
func (r *Record) Forget() {
	r.details = nil
	r.have &= brief
}

// dropUnneeded drops all fields that a list does not need and that are not in want.
func (r *Record) dropUnneeded(want lektordir.Fields) {
	if want&^brief == 0 {
		r.Forget()
	}
	if r.details != nil {
		r.words = nil // not valid after the view of the index is closed
		r.dropContent()
	}
}

// dropContent drops the content and the texts made of it.
func (r *Record) dropContent() {
	r.entry.Content, r.entry.FeedContent, r.text, r.shown = nil, nil, nil, nil
	r.have &^= lektordir.FieldContent | lektordir.FieldFeedContent
}

// nothing is an entry of which no field was read.
var nothing lektordir.Entry

// Match matches the record against a query, without reading anything.
func (r *Record) Match(m *query.Matcher) query.Verdict {
	s := query.Subject{Ref: r.Ref, Feed: r.Feed(), Entry: &nothing, Text: r.Text, Folders: r.folders, Moved: r.Moved,
		Withdrawn: r.withdrawn, Repeat: r.repeat}
	if r.have != 0 || r.details != nil {
		s.Entry, s.Words = &r.full().entry, r.words
	}
	return m.Match(&s, r.have)
}

// Decide reports whether a query that needs fields selects the record. It reads only the fields
// that are needed to decide, the content last. The error is that of [Record.Read].
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

// Rank returns the position, from 1, of the entry in the document of a complete feed; 0 if the feed
// is not complete or the entry is not in the document.
func (r *Record) Rank() int { return r.s.ranks(r.Ref.Feed)[r.Ref.Identity()] }

func (r *Record) withdrawn() bool {
	id := r.Ref.Identity()
	ranks := r.s.ranks(r.Ref.Feed)
	return ranks != nil && id != "" && ranks[id] == 0
}

func (r *Record) repeat() bool {
	if r.again != nil {
		return r.again()
	}
	return r.s.repeats(context.Background())[r.Key()]
}

// Incomplete returns one line about missing entries of the feed and the reason, "" if none are
// known to be missing.
func (r *Record) Incomplete() string { return r.s.Incomplete(r.Ref.Feed) }

func (r *Record) folders() []string { return r.s.Folders(r.Ref.Feed) }

// Moved returns the time at which the entry was last moved, which is the ctime of its directory, or
// zero if that cannot be read. Other changes, for example a copy of the lektor-dir, update the ctime,
// too.
func (r *Record) Moved() time.Time {
	var st unix.Stat_t
	if err := unix.Stat(r.Path(), &st); err != nil {
		return time.Time{}
	}
	return time.Unix(st.Ctim.Unix())
}

// Feed returns the id, name, alias and author of the entry's feed. It is never nil.
func (r *Record) Feed() *lektordir.Feed {
	if r.feed != nil {
		return r.feed
	}
	return r.s.Dir.FeedOf(r.Ref)
}

// Path returns the absolute path of the entry.
func (r *Record) Path() string { return r.s.Dir.Path() + "/" + r.Ref.Path() }

// Key returns the key of the entry, see [Key].
func (r *Record) Key() string { return Key(r.Ref.Path()) }

// Key returns the part of an entry's path, relative to the lektor-dir, that stays the same when the
// entry is moved: FEED/UNIQUE.
func Key(path string) string {
	_, path, _ = strings.Cut(path, "/")
	path, _, _ = strings.Cut(path, ";")
	return path
}

// Date returns the time by which entries are sorted: the pubdate, or the time of delivery if the
// pubdate is missing or in the future.
func (r *Record) Date() time.Time {
	if r.when.IsZero() {
		_ = r.Read(lektordir.FieldPubDate)
		r.when = query.Date(r.Ref, &lektordir.Entry{PubDate: r.pubdate}, r.s.Now)
	}
	return r.when
}

// Published returns the pubdate, or the time of delivery if it is missing. It does not depend on
// the clock.
func (r *Record) Published() time.Time {
	_ = r.Read(lektordir.FieldPubDate)
	if r.pubdate.IsZero() {
		return r.Ref.Delivered()
	}
	return r.pubdate
}

// Text returns the content as plain text.
func (r *Record) Text() string {
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	if r.text == nil {
		text := htmltext.Text(e.Content, e.Type)
		r.text = &text
	}
	return *r.text
}

// excerptWidth is the maximum width, in columns, of the beginning of the content that replaces a
// missing title.
const excerptWidth = 200

// OwnTitle returns the title of the entry in the feed, "" if it has none.
func (r *Record) OwnTitle() string {
	_ = r.Read(lektordir.FieldTitle)
	return r.title
}

// Title returns the title of the entry, or the beginning of its content, or its URL. It reads no
// more fields than needed.
func (r *Record) Title() string {
	if t := r.OwnTitle(); strings.TrimSpace(t) != "" {
		return t
	}
	hadContent := r.have&lektordir.FieldContent != 0
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	text := htmltext.Excerpt(e.Content, e.Type, excerptWidth)
	if !hadContent && r.details != nil {
		r.dropContent()
	}
	return cmp.Or(text, r.URL(), r.Get(lektordir.FieldID).ID)
}

// TakeFeedText replaces the article of the entry's page by the feed's own text, if the content is
// such an article. The error is that of [Record.Read].
func (r *Record) TakeFeedText() error {
	err := r.Read(lektordir.FieldContent | lektordir.FieldType | lektordir.FieldFeedContent | lektordir.FieldFullText)
	if e := r.Get(0); err == nil && e.FullText.URL != "" {
		e.Content, e.Type = e.FeedContent, e.FullText.Type
		r.text, r.shown = nil, nil
	}
	return err
}

// URL returns the URL of the entry's page, "" if it is unknown.
func (r *Record) URL() string { return r.Get(lektordir.FieldLink | lektordir.FieldID).URL() }

// Author returns the author of the entry, or of the feed if the entry has none.
func (r *Record) Author() string {
	_ = r.Read(lektordir.FieldAuthor)
	return cmp.Or(r.author, r.Feed().Author)
}

// InReplyTo returns what the entry replies to.
func (r *Record) InReplyTo() []lektordir.ReplyTo {
	_ = r.Read(lektordir.FieldInReplyTo)
	return r.inReplyTo
}

// Content returns the content as text with footnotes, wrapped to width columns.
func (r *Record) Content(width int) string { return r.Document(width).Text }

// Document returns the content as text with footnotes, wrapped to width columns, and its links and
// pictures.
func (r *Record) Document(width int) htmltext.Document {
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	return htmltext.Lay(e.Content, e.Type, htmltext.Options{Width: width, Base: cmp.Or(r.URL(), r.Feed().ID)})
}

// rendered returns the value of the column content.
func (r *Record) rendered() string {
	if r.full().shown == nil {
		text := strings.TrimSuffix(r.Content(0), "\n")
		r.shown = &text
	}
	return *r.shown
}

// Lines returns the content as plain text, wrapped to width columns.
func (r *Record) Lines(width int) string {
	e := r.Get(lektordir.FieldContent | lektordir.FieldType)
	return htmltext.Render(e.Content, e.Type, htmltext.Options{Width: width, Bare: true})
}

// ByDate compares by date, oldest first, then by delivery, then by name.
func ByDate(a, b *Record) int {
	if c := a.Date().Compare(b.Date()); c != 0 {
		return c
	}
	return cmp.Or(a.Ref.Delivered().Compare(b.Ref.Delivered()),
		cmp.Compare(a.Ref.Feed, b.Ref.Feed), cmp.Compare(a.Ref.Unique, b.Ref.Unique))
}

// FlagOrder returns the text by which entries are sorted by flags, without S: flagged entries come
// first, then those with flags of the user in the order of the letters, then those without.
func FlagOrder(r lektordir.Ref) string {
	flags := strings.ReplaceAll(r.Flags(), "S", "")
	if own, flagged := strings.CutPrefix(flags, "F"); flagged {
		return " " + own
	}
	return cmp.Or(flags, "~")
}

// column is a column with the fields that are read ahead for it. A column also works, but slower, if
// need lacks a field.
type column struct {
	need lektordir.Fields
	cmdline.Column[*Record]
}

// columns lists the columns of the option -o; see lektor-view(1).
var columns = []column{
	{0, cmdline.Column[*Record]{Name: "path", Verbatim: true, Get: func(r *Record) any { return r.Path() }}},
	col("date", lektordir.FieldPubDate, func(r *Record) any { return r.Date() }),
	col("unread", 0, func(r *Record) any { return r.Ref.Unread() }),
	col("flags", 0, func(r *Record) any { return r.Ref.Flags() }),
	col("feed", 0, func(r *Record) any { return r.Feed().Title() }),
	col("title", lektordir.FieldTitle, func(r *Record) any { return r.Title() }),
	col("url", lektordir.FieldLink|lektordir.FieldID, func(r *Record) any { return r.URL() }),
	col("author", lektordir.FieldAuthor, func(r *Record) any { return r.Author() }),
	col("id", lektordir.FieldID, func(r *Record) any { return r.Get(lektordir.FieldID).ID }),
	col("type", lektordir.FieldType,
		func(r *Record) any { return cmp.Or(r.Get(lektordir.FieldType).Type, "text/plain") }),
	col("categories", lektordir.FieldCategories,
		func(r *Record) any { return r.Get(lektordir.FieldCategories).Categories }),
	col("enclosures", lektordir.FieldEnclosures, func(r *Record) any {
		list := make([]cmdline.Object, 0)
		for _, e := range r.Get(lektordir.FieldEnclosures).Enclosures {
			o := cmdline.Object{{Name: "url", Value: e.URL}, {Name: "type"}, {Name: "length"}}
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
	{0, cmdline.Column[*Record]{Name: "name", Extra: true, Full: true, Verbatim: true,
		Get: func(r *Record) any { return r.Ref.Unique }}},
	full("feedid", 0, func(r *Record) any { return feedurl.Public(r.Feed().ID) }),
	{0, cmdline.Column[*Record]{Name: "feedhash", Extra: true, Full: true, Verbatim: true,
		Get: func(r *Record) any { return r.Ref.Feed }}},
	full("folder", 0, func(r *Record) any { return r.folders() }),
	full("delivered", 0, func(r *Record) any { return r.Ref.Delivered() }),
	sparse("fulltext", lektordir.FieldFullText, func(e *lektordir.Entry) any { return e.FullText.URL }),
	sparse("updated", lektordir.FieldUpdated, func(e *lektordir.Entry) any { return e.Updated }),
	sparse("comments", lektordir.FieldComments, func(e *lektordir.Entry) any { return e.Comments }),
	sparse("image", lektordir.FieldImage, func(e *lektordir.Entry) any { return e.Image }),
	sparse("language", lektordir.FieldLanguage, func(e *lektordir.Entry) any { return e.Language }),
	sparse("contributors", lektordir.FieldContributors, func(e *lektordir.Entry) any { return e.Contributors }),
	sparse("source", lektordir.FieldSource, func(e *lektordir.Entry) any { return e.Source.Title }),
	sparse("duration", lektordir.FieldDuration, func(e *lektordir.Entry) any { return int(e.Duration.Seconds()) }),
	sparse("episode", lektordir.FieldEpisode, func(e *lektordir.Entry) any { return e.Episode }),
	sparse("season", lektordir.FieldSeason, func(e *lektordir.Entry) any { return e.Season }),
	sparse("transcript", lektordir.FieldElements,
		func(e *lektordir.Entry) any { return urls(e, lektordir.Transcript) }),
	sparse("chapters", lektordir.FieldElements, func(e *lektordir.Entry) any { return urls(e, lektordir.Chapters) }),
	sparse("inReplyTo", lektordir.FieldInReplyTo, func(e *lektordir.Entry) any {
		var refs []string
		for _, to := range e.InReplyTo {
			refs = append(refs, to.Ref)
		}
		return refs
	}),
	{lektordir.FieldSummary, cmdline.Column[*Record]{Name: "summary", Extra: true, Full: true, Text: true,
		Get: func(r *Record) any { return r.Get(lektordir.FieldSummary).Summary }}},
	{contentFields, cmdline.Column[*Record]{Name: "content", Extra: true, Full: true, Text: true,
		Get: func(r *Record) any { return r.rendered() }}},
}

// urls returns the URLs of the elements with a name.
func urls(e *lektordir.Entry, name string) (list []string) {
	for x := range e.Elements.Named(name) {
		list = append(list, x.Get("url"))
	}
	return list
}

// contentFields are the fields that the column content needs.
const contentFields = lektordir.FieldContent | lektordir.FieldType | lektordir.FieldLink | lektordir.FieldID

func col(name string, need lektordir.Fields, get func(*Record) any) column {
	return column{need, cmdline.Column[*Record]{Name: name, Get: get}}
}

func extra(name string, need lektordir.Fields, get func(*Record) any) column {
	return column{need, cmdline.Column[*Record]{Name: name, Extra: true, Get: get}}
}

// full returns an extra column that JSON includes by default, and sparse one of a field of the entry that JSON
// includes if it is not empty.
func full(name string, need lektordir.Fields, get func(*Record) any) column {
	c := extra(name, need, get)
	c.Full = true
	return c
}

func sparse(name string, need lektordir.Fields, get func(*lektordir.Entry) any) column {
	c := full(name, need, func(r *Record) any { return get(r.Get(need)) })
	c.Sparse = true
	return c
}

// Columns returns the columns with the given names, in that order, as those that are printed by
// default. Without names it returns all columns. Each name must be that of a column.
func Columns(names ...string) []cmdline.Column[*Record] {
	var out []cmdline.Column[*Record]
	if len(names) == 0 {
		for _, c := range columns {
			out = append(out, c.Column)
		}
	}
	for _, name := range names {
		c := columns[slices.IndexFunc(columns, func(c column) bool { return c.Name == name })].Column
		c.Extra = false
		out = append(out, c)
	}
	return out
}

// FormatFields returns the fields that an output format needs.
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

// The numbers of records to read ahead. fewAhead is for records with content, because all of them are
// in memory at the same time.
const manyAhead, fewAhead = 1024, 32

// Ahead returns how to read records ahead for an output format: n is the number of records to read at
// once. The caller calls prepare for each, concurrently for different records if it likes.
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
