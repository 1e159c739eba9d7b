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
	holds func(m *Matcher, t *term, s *Subject, e *entry) bool
	// choices are the possible values of the key. Their fields and holds are used instead.
	choices []choice
}

// anyRule is the rule of a word without a key, which [Matcher.term] decides.
var anyRule = rule{key: keyAny, text: true,
	fields: lektordir.FieldTitle | lektordir.FieldAuthor | lektordir.FieldType | lektordir.FieldContent}

// entry is what a rule reads of an entry.
type entry = lektordir.Entry

// texts returns the rule of a key whose value is searched for in some texts.
func texts(k key, fields lektordir.Fields, of func(s *Subject, e *entry) []string) rule {
	return rule{key: k, text: true, fields: fields, holds: func(_ *Matcher, t *term, s *Subject, e *entry) bool {
		return slices.ContainsFunc(of(s, e), t.in)
	}}
}

// number returns the rule of a key whose value is a number or more.
func number(k key, fields lektordir.Fields, of func(e *entry) int) rule {
	return rule{key: k, fields: fields, holds: func(_ *Matcher, t *term, _ *Subject, e *entry) bool {
		return t.sizes.hold(of(e))
	}}
}

// dated returns the rule of a key whose value is a date, with which that of the entry is compared.
func dated(k key, holds func(at time.Time, date span) bool) rule {
	return rule{key: k, fields: lektordir.FieldPubDate, holds: func(m *Matcher, t *term, s *Subject, e *entry) bool {
		return holds(Date(s.Ref, e, m.now), m.dates[t])
	}}
}

// rules are the rules of all keys, in the order of messages.
var rules = []rule{
	{key: keyFeed, text: true, holds: func(_ *Matcher, t *term, s *Subject, _ *entry) bool { return t.feed(s) }},
	texts(keyAuthor, lektordir.FieldAuthor, func(s *Subject, e *entry) []string {
		if e.Author == "" && s.Feed != nil {
			return []string{s.Feed.Author}
		}
		return []string{e.Author}
	}),
	texts(keyTitle, lektordir.FieldTitle, func(_ *Subject, e *entry) []string { return []string{e.Title} }),
	texts(keyCategory, lektordir.FieldCategories, func(s *Subject, e *entry) []string {
		return slices.Concat(e.Categories, s.folders())
	}),
	texts(keyType, lektordir.FieldType, func(_ *Subject, e *entry) []string {
		return []string{cmp.Or(e.Type, "text/plain")}
	}),
	{key: keyText, text: true, fields: lektordir.FieldType | lektordir.FieldContent,
		holds: func(_ *Matcher, t *term, s *Subject, _ *entry) bool { return s.inText(t) }},
	texts(keyID, lektordir.FieldID, func(_ *Subject, e *entry) []string { return []string{e.ID} }),
	texts(keyLink, lektordir.FieldLink|lektordir.FieldID,
		func(_ *Subject, e *entry) []string { return []string{e.URL()} }),
	{key: keyFolder, text: true, holds: func(_ *Matcher, t *term, s *Subject, _ *entry) bool {
		return slices.ContainsFunc(s.folders(), t.inFolder)
	}},
	{key: keyIs, choices: states},
	{key: keyFlag, holds: func(_ *Matcher, t *term, s *Subject, _ *entry) bool {
		return !strings.ContainsFunc(t.value, func(flag rune) bool { return !s.Ref.HasFlag(byte(flag)) })
	}},
	{key: keyHas, choices: things},
	dated(keySince, func(at time.Time, date span) bool { return !at.Before(date.from) }),
	dated(keyBefore, func(at time.Time, date span) bool { return at.Before(date.from) }),
	dated(keyOn, func(at time.Time, date span) bool { return !at.Before(date.from) && at.Before(date.to) }),
	{key: keyDelivery, holds: func(m *Matcher, t *term, s *Subject, _ *entry) bool {
		return s.Ref.Delivered().Before(m.dates[t].from)
	}},
	{key: keyRead, holds: func(m *Matcher, t *term, s *Subject, _ *entry) bool {
		if s.Ref.Unread() || s.Moved == nil {
			return false
		}
		moved := s.Moved()
		return !moved.IsZero() && moved.Before(m.dates[t].from)
	}},
	number(keyDuration, lektordir.FieldDuration, func(e *entry) int { return int(e.Duration / time.Second) }),
	number(keyEpisode, lektordir.FieldEpisode, func(e *entry) int { return e.Episode }),
	number(keySeason, lektordir.FieldSeason, func(e *entry) int { return e.Season }),
	{key: keyLabel}, // replaced by the term of a flag, see there
	{key: keySaved}, // replaced by the saved query, see [parser.include]
}

// choice is a possible value of a key.
type choice struct {
	name   string
	fields lektordir.Fields
	holds  func(s *Subject, e *entry) bool
	// state is true if the value is about flags or new/, so that viewers do not add is:unread.
	state bool
}

// withdrawn is the value of is: for entries that a complete feed no longer has.
const withdrawn = "withdrawn"

// repeat is the value of is: for entries whose link an earlier entry of another feed has.
const repeat = "repeat"

// states are the values of is:.
var states = []choice{
	{"unread", 0, func(s *Subject, _ *entry) bool { return s.Ref.Unread() }, true},
	{"read", 0, func(s *Subject, _ *entry) bool { return !s.Ref.Unread() }, true},
	{"seen", 0, func(s *Subject, _ *entry) bool { return !s.Ref.Unread() }, true},
	{"flagged", 0, func(s *Subject, _ *entry) bool { return s.Ref.HasFlag('F') }, true},
	{"trashed", 0, func(s *Subject, _ *entry) bool { return s.Ref.HasFlag('T') }, true},
	{"new", 0, func(s *Subject, _ *entry) bool { return s.Ref.Place == lektordir.New }, true},
	{"cur", 0, func(s *Subject, _ *entry) bool { return s.Ref.Place == lektordir.Cur }, true},
	{"updated", lektordir.FieldReplaces, func(_ *Subject, e *entry) bool { return e.Replaces != "" }, false},
	{repeat, 0, func(s *Subject, _ *entry) bool { return s.Repeat != nil && s.Repeat() }, false},
	{withdrawn, 0, func(s *Subject, _ *entry) bool { return s.Withdrawn != nil && s.Withdrawn() }, true},
}

// said returns the choice of entries of which a text is not blank.
func said(name string, fields lektordir.Fields, text func(e *entry) string) choice {
	return choice{name, fields, func(_ *Subject, e *entry) bool { return strings.TrimSpace(text(e)) != "" }, false}
}

// encloses returns the choice of entries with an enclosure of a kind, "" for any.
func encloses(name, kind string) choice {
	return choice{name, lektordir.FieldEnclosures, func(_ *Subject, e *entry) bool {
		return slices.ContainsFunc(e.Enclosures,
			func(enc lektordir.Enclosure) bool { return strings.HasPrefix(EnclosureType(enc), kind) })
	}, false}
}

// things are the values of has:.
var things = []choice{
	encloses("enclosure", ""), encloses("audio", "audio"), encloses("video", "video"), encloses("image", "image"),
	said("title", lektordir.FieldTitle, func(e *entry) string { return e.Title }),
	said("author", lektordir.FieldAuthor, func(e *entry) string { return e.Author }),
	{"date", lektordir.FieldPubDate, func(_ *Subject, e *entry) bool { return !e.PubDate.IsZero() }, false},
	said("link", lektordir.FieldLink|lektordir.FieldID, (*entry).URL),
	{"category", lektordir.FieldCategories, func(_ *Subject, e *entry) bool { return len(e.Categories) > 0 }, false},
	{"folder", 0, func(s *Subject, _ *entry) bool { return len(s.folders()) > 0 }, false},
	said("summary", lektordir.FieldSummary, func(e *entry) string { return e.Summary }),
	said("comments", lektordir.FieldComments, func(e *entry) string { return e.Comments }),
	said("transcript", lektordir.FieldElements, func(e *entry) string {
		return e.Elements.First(lektordir.Transcript).Name
	}),
	said("chapters", lektordir.FieldElements, func(e *entry) string {
		return e.Elements.First(lektordir.Chapters).Name + e.Elements.First(lektordir.ChapterList).Name
	}),
	said("content", lektordir.FieldContent, func(e *entry) string { return string(e.Content) }),
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
