package query

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/lektordir/lektor/lektordir"
)

// Subject is an entry to match against a query. It must not be used concurrently.
type Subject struct {
	Ref   lektordir.Ref
	Feed  *lektordir.Feed
	Entry *lektordir.Entry // with the fields passed to Match; nil if none are known
	// Text returns the content as text. It is called only if the query needs it.
	Text func() string
	// Folders returns the folders of the feed, each a path of names separated by '/'. Moved returns
	// the time at which the entry was moved last, the ctime of its directory, zero if unknown. Both
	// are called only if the query needs them, and may be nil.
	Folders func() []string
	Moved   func() time.Time
	// Withdrawn reports whether the feed's document is complete and no longer has the entry. It is
	// called only if the query needs it, and may be nil.
	Withdrawn func() bool
	// Repeat reports whether an entry of another feed has the same link and was delivered earlier. It is
	// called only if the query needs it, and may be nil.
	Repeat func() bool
	// Words reports from an index whether a folded text occurs in the title, the author or the text
	// of the content; nil without an index.
	Words func(folded string) Verdict
	// Unknown are the parts of Ref that are unknown. Terms that need them are Maybe.
	Unknown Unknown

	text   string // cached result of Text, which is then nil
	folded string // text, folded
}

// Unknown are parts of a [lektordir.Ref].
type Unknown uint8

// Parts of a Ref. The hash of the feed is always known.
const (
	UnknownName  Unknown = 1 << iota // the unique name, and with it the time of delivery
	UnknownState                     // new/ or cur/, and the flags
	UnknownFeed                      // the title and the author of the feed
)

// Verdict is the result of matching an entry.
type Verdict int8

// The verdicts.
const (
	No    Verdict = -1
	Maybe Verdict = 0 // the verdict needs more fields
	Yes   Verdict = 1
)

// Matcher is a query bound to a time and a time zone. It is safe for concurrent use.
type Matcher struct {
	root  node
	now   time.Time
	dates map[*term]span
}

// Bind binds the query to a time, to which since:2d refers, and to its location, the time zone of days.
func (q *Query) Bind(now time.Time) *Matcher {
	m := &Matcher{now: now, dates: map[*term]span{}}
	if q.Empty() {
		return m
	}
	m.root = q.root
	q.walk(func(t *term) {
		switch t.key {
		case keySince, keyBefore, keyDelivery, keyRead:
			m.dates[t] = span{from: t.date.at(now)}
		case keyOn:
			m.dates[t] = t.date.on(now)
		}
	})
	return m
}

// Match matches an entry of which the fields have are known. If these include [Query.Fields], the
// result is never Maybe.
func (m *Matcher) Match(s *Subject, have lektordir.Fields) Verdict {
	if m.root == nil {
		return Yes
	}
	return m.ask(m.root, s, have)
}

func (m *Matcher) ask(n node, s *Subject, have lektordir.Fields) Verdict {
	switch n := n.(type) {
	case allOf:
		v := Yes
		for _, c := range n {
			if v = min(v, m.ask(c, s, have)); v == No {
				break
			}
		}
		return v
	case anyOf:
		v := No
		for _, c := range n {
			if v = max(v, m.ask(c, s, have)); v == Yes {
				break
			}
		}
		return v
	case negation:
		return -m.ask(n.of, s, have)
	case *term:
		return m.term(n, s, have)
	}
	return No
}

// term matches one term. A Yes may need fewer fields than a No.
func (m *Matcher) term(t *term, s *Subject, have lektordir.Fields) Verdict {
	needs := t.fields()
	e := s.Entry
	if e == nil {
		e, have = &lektordir.Entry{}, 0
	}
	if s.Unknown&t.reliesOn() != 0 {
		return Maybe
	}
	complete := needs&^have == 0
	found := false
	if s.Words != nil && t.re == nil {
		if v := m.words(t, s, e, have); v != Maybe {
			return v
		}
	}
	switch {
	case t.key == keyAny:
		// Cheap fields come first.
		found = s.Feed != nil && (t.in(s.Feed.Name) || t.in(s.Feed.Alias)) ||
			have&lektordir.FieldTitle != 0 && t.in(e.Title) ||
			have&lektordir.FieldAuthor != 0 && t.in(e.Author) ||
			complete && s.inText(t)
	case complete && t.choice != nil:
		found = t.choice.holds(s, e)
	case complete:
		found = t.rule.holds(m, t, s, e)
	}
	switch {
	case found:
		return Yes
	case complete:
		return No
	}
	return Maybe
}

// reliesOn returns the parts of the Ref that a term needs.
func (t *term) reliesOn() Unknown {
	switch t.key {
	case keySince, keyBefore, keyOn, keyDelivery:
		return UnknownName
	case keyRead:
		return UnknownName | UnknownState
	case keyFlag:
		return UnknownState
	case keyAny, keyFeed, keyAuthor:
		return UnknownFeed
	case keyIs:
		if t.choice.fields == 0 {
			return UnknownState
		}
	}
	return 0
}

// words matches a term by the words of an index, which may be enough for a verdict.
func (m *Matcher) words(t *term, s *Subject, e *lektordir.Entry, have lektordir.Fields) Verdict {
	switch t.key {
	case keyAny:
		if s.Feed != nil && (t.in(s.Feed.Name) || t.in(s.Feed.Alias)) {
			return Yes
		}
		return s.Words(t.needle)
	case keyTitle:
		return min(Maybe, s.Words(t.needle))
	case keyAuthor:
		if s.Feed != nil && t.in(s.Feed.Author) {
			return Maybe
		}
		return min(Maybe, s.Words(t.needle))
	case keyText:
		const others = lektordir.FieldTitle | lektordir.FieldAuthor
		v := s.Words(t.needle)
		if v == Yes && (have&others != others || t.in(e.Title) || t.in(e.Author)) {
			return Maybe
		}
		return v
	}
	return Maybe
}

func (s *Subject) folders() []string {
	if s.Folders == nil {
		return nil
	}
	return s.Folders()
}

// inFolder reports whether a folder is that of the term or below it. A value without '/' matches a
// folder at any level.
func (t *term) inFolder(folder string) bool {
	if t.re != nil {
		return t.re.MatchString(folder)
	}
	return strings.Contains("/"+Fold(folder)+"/", "/"+strings.Trim(t.needle, "/")+"/")
}

// Date returns the time by which entries are sorted and selected: the pubdate, or the time of delivery
// if the pubdate is missing or in the future.
func Date(r lektordir.Ref, e *lektordir.Entry, now time.Time) time.Time {
	if e == nil || e.PubDate.IsZero() || e.PubDate.After(now) {
		return r.Delivered()
	}
	return e.PubDate
}

// inText reports whether a term matches the text of the content, which is cached.
func (s *Subject) inText(t *term) bool {
	if s.Text != nil {
		s.text = s.Text()
		s.folded, s.Text = Fold(s.text), nil
	}
	if t.re != nil {
		return t.re.MatchString(s.text)
	}
	return strings.Contains(s.folded, t.needle)
}

// in reports whether the term matches a text.
func (t *term) in(text string) bool {
	if t.re != nil {
		return t.re.MatchString(text)
	}
	return strings.Contains(Fold(text), t.needle)
}

// feed matches feed:, whose value identifies a feed or is a part of its title.
func (t *term) feed(s *Subject) bool {
	f := s.Feed
	if f == nil {
		f = &lektordir.Feed{}
	}
	if t.re != nil {
		return t.in(f.ID) || t.in(f.Name) || t.in(f.Alias)
	}
	v := t.value
	if strings.Contains(v, "://") {
		// A whole URL does not match longer URLs.
		id := lektordir.NormalizeID(v)
		return id == lektordir.NormalizeID(f.ID) || s.Ref.Feed == lektordir.FeedHash(id)
	}
	if i := strings.LastIndex(strings.TrimRight(v, "/"), "src/"); i == 0 || i > 0 && v[i-1] == '/' {
		v = strings.TrimRight(v[i+len("src/"):], "/")
		return v != "" && s.Ref.Feed == v
	}
	// A word of three letters a–f would fit too many hashes by accident.
	if len(v) >= 4 && strings.HasPrefix(s.Ref.Feed, strings.ToLower(v)) {
		return true
	}
	return t.in(f.Name) || t.in(f.Alias) || t.in(f.ID)
}

// Fold folds case, normalizes characters, and replaces white space by single spaces, so that texts can
// be compared.
func Fold(s string) string {
	ascii, clean := true, true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
		if c >= 'A' && c <= 'Z' || c < ' ' || c == ' ' && i+1 < len(s) && s[i+1] == ' ' {
			clean = false
		}
	}
	if ascii {
		if clean {
			return s
		}
		return oneSpace(strings.ToLower(s))
	}
	// Invalid UTF-8 would keep the characters beside it from being normalised.
	s = strings.ToValidUTF8(s, "\uFFFD")
	// Normalise again, since folding may decompose a character.
	s = norm.NFC.String(cases.Fold().String(norm.NFC.String(s)))
	return oneSpace(strings.Map(cherokee, s))
}

// StandsAlone reports whether piece occurs in text as whole words: without a letter or number beside
// it. Both must be folded.
func StandsAlone(text, piece string) bool {
	isPart := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) }
	for at := 0; ; {
		i := strings.Index(text[at:], piece)
		if i < 0 {
			return false
		}
		i += at
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(piece):])
		if !isPart(before) && !isPart(after) {
			return true
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		at = i + size
	}
}

// cherokee returns the capital of a small Cherokee letter. Unicode folds Cherokee to capitals, but
// [cases.Fold] exchanges small letters and capitals.
func cherokee(r rune) rune {
	switch {
	case r >= 0xAB70 && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case r >= 0x13F8 && r <= 0x13FD:
		return r - 8
	}
	return r
}

// oneSpace replaces every run of white space by one space.
func oneSpace(s string) string {
	gap := false
	return strings.Map(func(r rune) rune {
		was := gap
		gap = unicode.IsSpace(r)
		switch {
		case gap && was:
			return -1
		case gap:
			return ' '
		}
		return r
	}, s)
}
