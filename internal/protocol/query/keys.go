package query

import (
	"cmp"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

// rule describes a key.
type rule struct {
	key    key
	text   bool // the value is searched for in text, and can be a regular expression
	fields lektordir.Fields
	// holds reports whether a term matches; all fields that it needs are known.
	holds func(m *Matcher, t *term, s *Subject, e *lektordir.Entry) bool
	// choices are the possible values of the key. Their fields and holds are used instead.
	choices []choice
}

// anyRule is the rule of a word without a key, which [Matcher.term] decides.
var anyRule = rule{key: keyAny, text: true,
	fields: lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldType | lektordir.FieldContent}

// rules are the rules of all keys, in the order of messages.
var rules = []rule{
	{key: keyFeed, text: true, holds: func(_ *Matcher, t *term, s *Subject,
		_ *lektordir.Entry) bool {
		return t.feed(s)
	}},
	{key: keyAuthor, text: true, fields: lektordir.FieldAuthor, holds: func(_ *Matcher, t *term, s *Subject,
		e *lektordir.Entry) bool {
		if e.Author == "" && s.Feed != nil {
			return t.in(s.Feed.Author)
		}
		return t.in(e.Author)
	}},
	{key: keyTitle, text: true, fields: lektordir.FieldTitle, holds: func(_ *Matcher, t *term, _ *Subject,
		e *lektordir.Entry) bool {
		return t.in(e.Title)
	}},
	{key: keyCategory, text: true, fields: lektordir.FieldCategories, holds: func(_ *Matcher, t *term, s *Subject,
		e *lektordir.Entry) bool {
		return slices.ContainsFunc(e.Categories, t.in) || slices.ContainsFunc(s.folders(), t.in)
	}},
	{key: keyType, text: true, fields: lektordir.FieldType, holds: func(_ *Matcher, t *term, _ *Subject,
		e *lektordir.Entry) bool {
		return t.in(cmp.Or(e.Type, "text/plain"))
	}},
	{key: keyText, text: true, fields: lektordir.FieldType | lektordir.FieldContent,
		holds: func(_ *Matcher, t *term, s *Subject, _ *lektordir.Entry) bool { return s.inText(t) }},
	{key: keyID, text: true, fields: lektordir.FieldID, holds: func(_ *Matcher, t *term, _ *Subject,
		e *lektordir.Entry) bool {
		return t.in(e.ID)
	}},
	{key: keyLink, text: true, fields: lektordir.FieldLink | lektordir.FieldID,
		holds: func(_ *Matcher, t *term, _ *Subject, e *lektordir.Entry) bool { return t.in(e.URL()) }},
	{key: keyFolder, text: true, holds: func(_ *Matcher, t *term, s *Subject, _ *lektordir.Entry) bool {
		return slices.ContainsFunc(s.folders(), t.inFolder)
	}},
	{key: keyIs, choices: states},
	{key: keyFlag, holds: func(_ *Matcher, t *term, s *Subject, _ *lektordir.Entry) bool {
		return !strings.ContainsFunc(t.value, func(flag rune) bool { return !s.Ref.HasFlag(byte(flag)) })
	}},
	{key: keyHas, choices: things},
	{key: keySince, fields: lektordir.FieldPubDate, holds: func(m *Matcher, t *term, s *Subject,
		e *lektordir.Entry) bool {
		return !Date(s.Ref, e, m.now).Before(m.dates[t].from)
	}},
	{key: keyBefore, fields: lektordir.FieldPubDate, holds: func(m *Matcher, t *term, s *Subject,
		e *lektordir.Entry) bool {
		return Date(s.Ref, e, m.now).Before(m.dates[t].from)
	}},
	{key: keyOn, fields: lektordir.FieldPubDate, holds: func(m *Matcher, t *term, s *Subject, e *lektordir.Entry) bool {
		when := Date(s.Ref, e, m.now)
		return !when.Before(m.dates[t].from) && when.Before(m.dates[t].to)
	}},
	{key: keyDelivery, holds: func(m *Matcher, t *term, s *Subject, _ *lektordir.Entry) bool {
		return s.Ref.Delivered().Before(m.dates[t].from)
	}},
	{key: keyRead, holds: func(m *Matcher, t *term, s *Subject, _ *lektordir.Entry) bool {
		if s.Ref.Unread() || s.Moved == nil {
			return false
		}
		moved := s.Moved()
		return !moved.IsZero() && moved.Before(m.dates[t].from)
	}},
	{key: keyDuration, fields: lektordir.FieldDuration, holds: func(_ *Matcher, t *term, _ *Subject,
		e *lektordir.Entry) bool {
		return t.sizes.hold(int(e.Duration / time.Second))
	}},
	{key: keyEpisode, fields: lektordir.FieldEpisode, holds: func(_ *Matcher, t *term, _ *Subject,
		e *lektordir.Entry) bool {
		return t.sizes.hold(e.Episode)
	}},
	{key: keySeason, fields: lektordir.FieldSeason, holds: func(_ *Matcher, t *term, _ *Subject,
		e *lektordir.Entry) bool {
		return t.sizes.hold(e.Season)
	}},
	{key: keyLabel}, // replaced by the term of a flag, see there
	{key: keySaved}, // replaced by the saved query, see [parser.include]
}

// choice is a possible value of a key.
type choice struct {
	name   string
	fields lektordir.Fields
	holds  func(s *Subject, e *lektordir.Entry) bool
	// state is true if the value is about flags or new/, so that viewers do not add is:unread.
	state bool
}

// withdrawn is the value of is: for entries that a complete feed no longer has.
const withdrawn = "withdrawn"

// repeat is the value of is: for entries whose link an earlier entry of another feed has.
const repeat = "repeat"

// states are the values of is:.
var states = []choice{
	{"unread", 0, func(s *Subject, _ *lektordir.Entry) bool { return s.Ref.Unread() }, true},
	{"read", 0, func(s *Subject, _ *lektordir.Entry) bool { return !s.Ref.Unread() }, true},
	{"seen", 0, func(s *Subject, _ *lektordir.Entry) bool { return !s.Ref.Unread() }, true},
	{"flagged", 0, func(s *Subject, _ *lektordir.Entry) bool { return s.Ref.HasFlag('F') }, true},
	{"trashed", 0, func(s *Subject, _ *lektordir.Entry) bool { return s.Ref.HasFlag('T') }, true},
	{"new", 0, func(s *Subject, _ *lektordir.Entry) bool { return s.Ref.Place == lektordir.New }, true},
	{"cur", 0, func(s *Subject, _ *lektordir.Entry) bool { return s.Ref.Place == lektordir.Cur }, true},
	{"updated", lektordir.FieldReplaces, func(_ *Subject, e *lektordir.Entry) bool { return e.Replaces != "" }, false},
	{repeat, 0, func(s *Subject, _ *lektordir.Entry) bool { return s.Repeat != nil && s.Repeat() }, false},
	{withdrawn, 0, func(s *Subject, _ *lektordir.Entry) bool { return s.Withdrawn != nil && s.Withdrawn() }, true},
}

// things are the values of has:.
var things = []choice{
	enclosing("enclosure", ""), enclosing("audio", "audio"), enclosing("video", "video"), enclosing("image", "image"),
	filled("title", lektordir.FieldTitle, func(e *lektordir.Entry) string { return e.Title }),
	filled("author", lektordir.FieldAuthor, func(e *lektordir.Entry) string { return e.Author }),
	{"date", lektordir.FieldPubDate, func(_ *Subject, e *lektordir.Entry) bool { return !e.PubDate.IsZero() }, false},
	filled("link", lektordir.FieldLink|lektordir.FieldID, (*lektordir.Entry).URL),
	{"category", lektordir.FieldCategories, func(_ *Subject, e *lektordir.Entry) bool { return len(e.Categories) > 0 },
		false},
	{"folder", 0, func(s *Subject, _ *lektordir.Entry) bool { return len(s.folders()) > 0 }, false},
	filled("summary", lektordir.FieldSummary, func(e *lektordir.Entry) string { return e.Summary }),
	filled("comments", lektordir.FieldComments, func(e *lektordir.Entry) string { return e.Comments }),
	filled("transcript", lektordir.FieldElements,
		func(e *lektordir.Entry) string { return e.Elements.First(lektordir.Transcript).Name }),
	filled("chapters", lektordir.FieldElements, func(e *lektordir.Entry) string {
		return e.Elements.First(lektordir.Chapters).Name + e.Elements.First(lektordir.ChapterList).Name
	}),
	filled("content", lektordir.FieldContent, func(e *lektordir.Entry) string { return string(e.Content) }),
}

// filled is the choice of entries of which a text is not blank.
func filled(name string, need lektordir.Fields, text func(*lektordir.Entry) string) choice {
	return choice{name, need,
		func(_ *Subject, e *lektordir.Entry) bool { return strings.TrimSpace(text(e)) != "" }, false}
}

// enclosing is the choice of entries that have an enclosure of a kind.
func enclosing(name, kind string) choice {
	return choice{name, lektordir.FieldEnclosures, func(_ *Subject, e *lektordir.Entry) bool {
		return slices.ContainsFunc(e.Enclosures,
			func(enc lektordir.Enclosure) bool { return strings.HasPrefix(EnclosureType(enc), kind) })
	}, false}
}

// sizes are the numbers from least to most.
type sizes struct{ least, most int }

// hold reports whether n is one of the numbers. 0 means that a number is unknown, and never is.
func (s sizes) hold(n int) bool { return n != 0 && n >= s.least && n <= s.most }

// parseSizes parses a number, or one behind < or >. A duration is in seconds, and one like 30m has also
// the seconds after it.
func parseSizes(k key, text string) (sizes, bool) {
	sign := text[:len(text)-len(strings.TrimLeft(text, "<>"))]
	text = strings.ToLower(text[len(sign):])
	n, err := strconv.Atoi(text)
	last := n // of those that are equal
	if k == keyDuration {
		var d time.Duration
		if d, err = time.ParseDuration(text); err == nil {
			unit, _ := time.ParseDuration("1" + text[len(text)-1:])
			n = int(d / time.Second)
			last = n + max(int(unit/time.Second), 1) - 1
		}
	}
	switch {
	case err != nil || n < 0:
	case sign == "<":
		return sizes{0, n - 1}, true
	case sign == ">":
		return sizes{n + 1, math.MaxInt}, true
	case sign == "":
		return sizes{n, last}, true
	}
	return sizes{}, false
}

// EnclosureType returns the type of an enclosure. If the feed does not state it, it is guessed from the
// file name extension of the URL, and so if the feed made it of that, as the npm package feed makes image/m4a.
func EnclosureType(e lektordir.Enclosure) string {
	typ, name := strings.ToLower(e.Type), e.URL
	if u, err := url.Parse(name); err == nil {
		name = u.Path
	}
	ext := strings.ToLower(path.Ext(name))
	if kind := extensions()[ext]; typ == "" || typ == "application/octet-stream" || kind != "" &&
		typ == "image/"+ext[1:] {
		return kind
	}
	return typ
}

// extensions are the file name extensions of audio, video and images.
var extensions = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for kind, names := range map[string]string{
		"audio": ".mp3 .m4a .m4b .aac .ogg .oga .opus .flac .wav .wma .aiff .mka",
		"video": ".mp4 .m4v .mov .webm .mkv .avi .ogv .mpg .mpeg .wmv .3gp",
		"image": ".jpg .jpeg .png .gif .webp .svg .avif .bmp .tif .tiff .heic .jxl",
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = kind
		}
	}
	return m
})
