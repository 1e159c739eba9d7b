package query

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/lektordir"
)

var (
	berlin = time.FixedZone("CET", 3600)
	now    = time.Date(2026, 3, 15, 12, 0, 0, 0, berlin)
)

// hash has the form of a real one.
const hash = "80af8e84e5ef7ae6b68acb8d1987e58e3e5731dd"

func subject() *Subject {
	return &Subject{
		Ref: lektordir.Ref{Feed: hash, Unique: "1773500000.M1P2Q3I0123456789abcdef.host", Place: lektordir.Cur, Info: "2,Fa"},
		Feed: &lektordir.Feed{
			Hash: hash, ID: "http://example.com/rss.xml", Name: "Linux Weekly", Alias: "lwn", Author: "Editors",
		},
		Entry: &lektordir.Entry{
			Title: "Die STRASSE nach Süden", ID: "http://example.com/1", Author: "Ana  Núñez <ana@example.com>",
			Content: []byte("<p>The quick\nbrown fox, C++ and /etc/passwd</p>"), Type: "text/html",
			PubDate:    time.Date(2026, 3, 13, 23, 30, 0, 0, time.UTC), // the 14th in Berlin
			Categories: []string{"Kernel", "memory management"},
			Enclosures: []lektordir.Enclosure{{URL: "http://example.com/1.mp3", Type: "audio/mpeg"}},
		},
		Folders: func() []string { return []string{"Tech/Größe/Kernel news", "Daily"} },
		Moved:   func() time.Time { return now.AddDate(0, 0, -3) },
		Text:    func() string { return "The quick\nbrown fox, C++ and /etc/passwd" },
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		query string
		want  bool
	}{
		{"", true},
		{"quick", true},
		{"QUICK fox", true},
		{"quick wolf", false},
		{"quick or wolf", true},
		{"wolf or quick", true},
		{"wolf or bear", false},
		{"wolf or quick fox", true},
		{"quick (wolf or fox)", true},
		{"(wolf or quick) bear", false},
		{`"quick brown"`, true},
		{`"brown quick"`, false},
		{"linux", true},       // name of the feed
		{"straße", true},      // folds to ss
		{"su\u0308den", true}, // decomposed
		{"núñez", true},
		{`"ana núñez"`, true}, // one space for two
		{"c++", true},
		{"not:quick", false},
		{"not:wolf", true},
		{"not:(wolf or quick)", false},
		{"not:not:quick", true},
		{"quick and fox", true},
		{"/quick.brown/", false},
		{"/(?s)quick.brown/", true},
		{"/QUICK/", false},
		{"/QUICK/i", true},
		{`/\/etc\/pass/`, true},
		{`/^Die/`, true},
		{"title:strasse", true},
		{"title:quick", false},
		{"TITLE:strasse", true},
		{"title:/sü+den$/i", true},
		{"text:quick", true},
		{"text:strasse", false},
		{"author:ana@example.com", true},
		{"author:editors", false},
		{"category:kernel", true},
		{`category:"memory management"`, true},
		{"category:/^memory$/", false},
		{"type:html", true},
		{"type:plain", false},
		{"id:example.com/1", true},
		{"link:example.com/1", true},
		{"feed:80af8e84", true},
		{"feed:" + hash, true},
		{"feed:src/" + hash, true},
		{`feed:"/home/x/lektor/src/` + hash + `/"`, true},
		{"feed:af8e84", false},
		{"feed:http://example.com/rss.xml", true},
		{"feed:HTTP://EXAMPLE.com:80/rss.xml", true},
		{"feed:http://example.com/rss", false},
		{"feed:example.com", true},
		{"feed:weekly", true},
		{"feed:lwn", true},
		{"feed:/^Linux/", true},
		{"feed:other", false},
		{"is:unread", true}, // in cur without S
		{"is:read", false},
		{"is:seen", false},
		{"is:flagged", true},
		{"is:trashed", false},
		{"is:new", false},
		{"is:cur", true},
		{"is:updated", false},
		{"is:repeat", false},
		{"flag:F", true},
		{"flag:Fa", true},
		{"flag:Fb", false},
		{"flag:S", false},
		{"has:enclosure", true},
		{"has:enclosures", true},
		{"has:audio", true},
		{"has:video", false},
		{"has:summary", false},
		{"has:folder", true},
		{"has:title", true},
		{"since:2d", true}, // 13 March, noon: the entry is of 14 March 00:30
		{"since:1d", false},
		{"since:36h", true},
		{"since:1d12h", true},
		{"since:1w", true},
		{"since:1m", true},
		{"since:1y", true},
		{"before:1d", true},
		{"before:2d", false},
		{"before:now", true},
		{"on:yesterday", true},
		{"on:today", false},
		{"on:1d", true},
		{"on:2026-03-14", true},
		{"on:2026-03-13", false},
		{"on:2026-03", true},
		{"on:2026-02", false},
		{"on:2026", true},
		{"on:2025", false},
		{"since:yesterday", true},
		{"since:today", false},
		{"since:2026-03-14", true},
		{"before:2026-03-14", false},
		{"before:2026-03-15", true},
		{"since:2026-03-13T23:30:00Z", true},
		{"before:2026-03-13T23:30:00Z", false},
		{"since:2026-03-14T00:30", true},
		{"since:2026-03-14T00:31", false},
		{`since:"2026-03-14 00:30"`, true},
		{"folder:tech", true},
		{"folder:TECH/GRÖSSE", true},
		{"folder:größe", true},
		{`folder:"kernel news"`, true},
		{"folder:/kernel/", false},
		{"folder:/Kernel/", true},
		{"folder:tec", false},
		{"folder:kernel", false},
		{"folder:tech/daily", false},
		{"category:daily", true},
		{"category:kernel", true},
		{"category:x", false},
		{"delivered:2h", true}, // 2026-03-14 14:53 UTC, 20 hours ago
		{"delivered:1d", false},
		{"delivered:2026-03-14T10:00:00Z", false},
		{"delivered:2026-03-15T10:00:00Z", true},
		{"read:2d", false},            // it is unread
		{"http://example.com", false}, // a word, not a key; and not in the text
		{"is:unread feed:lwn not:title:strasse", false},
	} {
		q, err := Parse(tc.query)
		if err != nil {
			t.Errorf("%s: %v", tc.query, err)
			continue
		}
		m := q.Bind(now)
		if got := m.Match(subject(), lektordir.AllFields) == Yes; got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.query, got, tc.want)
		}
		// The query does not use fields that it does not report, and an early verdict stays.
		s := subject()
		want := m.Match(s, q.Fields())
		if want == Maybe {
			t.Errorf("%s: undecided with all its fields", tc.query)
		}
		for _, have := range []lektordir.Fields{0, lektordir.FieldTitle, q.Fields() &^ lektordir.FieldContent} {
			if v := m.Match(s, have); v != Maybe && v != want {
				t.Errorf("%s: %d with %b, then %d", tc.query, v, have, want)
			}
		}
	}
}

func TestAuthorOfFeed(t *testing.T) {
	s := subject()
	s.Entry.Author = ""
	q, _ := Parse("author:editors")
	if q.Bind(now).Match(s, q.Fields()) != Yes {
		t.Error("an entry without an author has the feed's")
	}
}

// TestRead: read: compares the time of the last move of read entries.
func TestRead(t *testing.T) {
	for text, want := range map[string]Verdict{
		"read:2d": Yes, "read:4d": No, "not:read:4d": Yes, "read:yesterday": Yes, "read:3w": No, "read:2026-03-12": No, "read:2026-03-13": Yes,
	} {
		s := subject()
		s.Ref.Info = "2,S"
		q, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Bind(now).Match(s, 0); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// An unread entry, or one whose time of reading is unknown, does not match read:; and without
// folders folder: does not match.
func TestUnknown(t *testing.T) {
	for _, change := range []func(*Subject){
		func(s *Subject) { s.Ref.Info = "2," },
		func(s *Subject) { s.Ref.Place, s.Ref.Info = lektordir.New, "" },
		func(s *Subject) { s.Moved = nil },
		func(s *Subject) { s.Moved = func() time.Time { return time.Time{} } },
	} {
		s := subject()
		s.Folders = nil
		change(s)
		for _, text := range []string{"read:1d", "folder:tech"} {
			q, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if q.Bind(now).Match(s, 0) != No {
				t.Errorf("%s: got %+v; want q.Bind(now).Match(s, 0) == No", text, s.Ref)
			}
		}
	}
}

// The name of an enclosure decides if its type does not.
func TestEnclosureNames(t *testing.T) {
	for _, tc := range []struct{ typ, url, is string }{
		{"", "http://a/b.MP3?x=1.jpg", "audio"},
		{"application/octet-stream", "http://a/b.m4v", "video"},
		{"", "http://a/b.webp#x", "image"},
		{"image/png", "http://a/b.mp3", "image"},
		{"", "http://a/b.torrent", ""},
		{"", "http://a/audio", ""},
		{"image/m4a", "http://a/b.m4a", "audio"},
		{"image/png", "http://a/b", "image"},
		{"video/mp4", "http://a/b.m4a", "video"},
		{"", "%zz.mp3", "audio"},
	} {
		for _, what := range []string{"audio", "video", "image"} {
			s := subject()
			s.Entry.Enclosures = []lektordir.Enclosure{{URL: tc.url, Type: tc.typ}}
			q, _ := Parse("has:" + what)
			if got := q.Bind(now).Match(s, q.Fields()) == Yes; got != (what == tc.is) {
				t.Errorf("%s %s: has:%s is %v", tc.typ, tc.url, what, got)
			}
		}
	}
}

// A pubdate that is missing or in the future counts as the time of delivery.
func TestDate(t *testing.T) {
	s := subject() // delivered 2026-03-14 14:53:20 UTC
	for _, pub := range []time.Time{{}, now.Add(time.Hour)} {
		s.Entry.PubDate = pub
		q, _ := Parse("since:2026-03-14T14:53:20Z before:2026-03-14T14:53:21Z")
		if q.Bind(now).Match(s, q.Fields()) != Yes {
			t.Errorf("%v: got %v; want q.Bind(now).Match(s, q.Fields()) == Yes", pub, Date(s.Ref, s.Entry, now))
		}
	}
}

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		query       string
		names, said bool
	}{
		{"", true, false},
		{"feed:lwn", true, false},
		{"is:read feed:lwn", true, true},
		{"not:is:unread", true, true},
		{"word or flag:x", false, true},
		{"is:updated", false, false},
		{"is:repeat", true, false},
		{"is:flagged", true, true},
		{"read:2d", true, true},
		{"folder:x delivered:2d", true, false},
		{"has:enclosure", false, false},
		{`"is:read"`, false, false},
	} {
		q, err := Parse(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		if (q.Fields() == 0) != tc.names || q.MentionsState() != tc.said {
			t.Errorf("%s: names %v, state %v", tc.query, (q.Fields() == 0), q.MentionsState())
		}
	}
	q, _ := Parse("title:x since:1d")
	if got := q.Fields(); got != lektordir.FieldTitle|lektordir.FieldPubDate {
		t.Errorf("fields %b", got)
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		query  string
		column int
		reason string // begins with
		hint   string // contains
	}{
		{"titel:foo", 1, "there is no key titel:", "title, category"},
		{"süß xyzzy:foo", 5, "there is no key xyzzy:", "the keys are feed, author"},
		{"a title:", 9, "a value is missing after title:", ""},
		{"title: foo", 7, "a value is missing after title:", "without a space"},
		{"title:(a b)", 7, "a value is missing after title:", "(title:a or title:b)"},
		{`a "b c`, 3, "this quote is not closed", ""},
		{`""`, 1, "the quotes are empty", ""},
		{"a (b", 3, "this ( is not closed", ""},
		{"a b)", 4, "this ) closes nothing", ""},
		{"a ()", 3, "there is nothing between", ""},
		{"a or", 5, "a term is missing at the end", ""},
		{"(a or)", 6, "a term is missing before this )", ""},
		{"or a", 1, `a term is missing before "or"`, `"or"`},
		{"a or or b", 6, `a term is missing before "or"`, ""},
		{"a or and b", 6, `a term is missing before "and"`, ""},
		{"not a", 1, `"not" by itself`, "not: before a term"},
		{"not: a", 5, "a term is missing after not:", ""},
		{"not:", 5, "a term is missing after not:", ""},
		{"a -b", 3, "a term does not begin with -: -b", "not:b"},
		{"/a(/", 2, "missing closing )", "RE2"},
		{"/abc", 1, "this regular expression is not closed", ""},
		{"/usr/bin", 6, "the only flag of a regular expression is i, not bin", "quotes"},
		{"//", 1, "the regular expression is empty", ""},
		{"is:rad", 4, "there is no is:rad", "unread, read"},
		{"has:x", 5, "there is no has:x", "enclosure"},
		{"flag:é", 6, `'é' is not a flag`, ""},
		{"since:tomorrow", 7, "tomorrow is not a date", "2026-01-31"},
		{"since:2026-02-30", 7, "2026-02-30 is not a date", ""},
		{"since:5", 7, "5 is not a date", ""},
		{"duration:30", 10, "duration: has no value 30", "write 30m, <30m or >30m"},
		{"duration:<", 10, "duration: has no value <", "30m"},
		{"duration:-5m", 10, "duration: has no value -5m", "30m"},
		{"season:two", 8, "season: has no value two", "write 2, <2 or >2"},
		{"episode:<<2", 9, "episode: has no value <<2", "2"},
		{"on:2h", 4, "on: needs a day", "since:"},
		{`a"b"`, 2, "a space is missing here", ""},
		{"a(b)", 2, "a space is missing here", ""},
		{"a \xff", 3, "this is not UTF-8", ""},
		{strings.Repeat("(", 5000), 102, "more than 100 levels", ""},
		{strings.Repeat("not:", 5000) + "a", 405, "more than 100 levels", ""},
	} {
		_, err := Parse(tc.query)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%.40s: %v", tc.query, err)
			continue
		}
		if e.Column != tc.column || !strings.HasPrefix(e.Reason, tc.reason) || !strings.Contains(e.Hint, tc.hint) {
			t.Errorf("%.40s: column %d: %s; hint: %s", tc.query, e.Column, e.Reason, e.Hint)
		}
	}
}

func TestString(t *testing.T) {
	for _, tc := range []struct{ query, want string }{
		{" a  b ", "a b"},
		{"a AND b", "a b"},
		{"a or b c", "a or b c"},
		{"(a or b) c", "(a or b) c"},
		{"a OR (b or c)", "a or (b or c)"},
		{"not:(a b)", "not:(a b)"},
		{"(((a)))", "a"},
		{`"a"`, "a"},
		{`"a b" "or" "-x" "/x" "is:x" "\\" "\""`, `"a b" "or" "-x" "/x" "is:x" \ "\""`},
		{`title:"or" title:-x`, "title:or title:-x"},
		{`Title:"x y"`, `title:"x y"`},
		{`/a\/b\\c/i`, `/a\/b\\c/i`},
		{"since:2D", "since:2D"},
	} {
		q, err := Parse(tc.query)
		if err != nil {
			t.Errorf("%s: %v", tc.query, err)
			continue
		}
		if got := plainest(q); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.query, got, tc.want)
		}
	}
}

// same compares parsed queries, except computed fields.
func same(a, b node) bool {
	switch a := a.(type) {
	case *term:
		b, ok := b.(*term)
		if !ok {
			return false
		}
		x, y := *a, *b
		if x.re != nil && y.re != nil && x.re.String() == y.re.String() {
			x.re, y.re = nil, nil
		}
		if p, q := x.date, y.date; p.at != nil && q.at != nil && p.at(now) == q.at(now) && (p.on == nil) == (q.on == nil) &&
			(p.on == nil || p.on(now) == q.on(now)) {
			x.date, y.date = date{}, date{}
		}
		return reflect.DeepEqual(x, y)
	case negation:
		b, ok := b.(negation)
		return ok && same(a.of, b.of)
	case allOf:
		b, ok := b.(allOf)
		return ok && sameList(a, b)
	case anyOf:
		b, ok := b.(anyOf)
		return ok && sameList(a, b)
	}
	return a == b
}

func sameList(a, b []node) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a b", `title:"x y" or not:(is:read feed:lwn)`, `/a\/(b)/i`, "since:2d before:2026-01-01 on:today",
		`"\\\""`, "has:enclosures flag:Fa", "a(b", "not:not:x", `\ "or" and "and"`, "since:1w2d3h4m5y", "ſtraße İ", "feed:http://a/",
		"folder:a/b delivered:1d", "read:/x/ read:2w", "or\"x\"", "(a or b c) (d or (e f))", "a-b c/d", "1:2 x://y", "\u2028", "is:UNREAD",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Column < 1 || e.Column > len(text)+1 || e.Reason == "" {
				t.Fatalf("%q: got %#v; want errors.As(err, &e) and e.Column >= 1 and e.Column <= len(text) + 1 and e.Reason != \"\"", text, err)
			}
			return
		}
		printed := plainest(q)
		again, err := Parse(printed)
		if err != nil {
			t.Fatalf("%q printed as %q: %v", text, printed, err)
		}
		if !same(q.root, again.root) {
			t.Fatalf("%q printed as %q, which is another", text, printed)
		}
		if plainest(again) != printed {
			t.Fatalf("%q printed as %q, then as %q", text, printed, plainest(again))
		}
		m := q.Bind(now)
		s := subject()
		v := m.Match(s, q.Fields())
		if v == Maybe {
			t.Fatalf("%q: undecided", text)
		}
		if early := m.Match(s, 0); early != Maybe && early != v {
			t.Fatalf("%q: %d without fields, %d with", text, early, v)
		}
	})
}

func FuzzFold(f *testing.F) {
	f.Add("A  b\tC")
	f.Add("Straße\u00a0 İ")
	f.Add("Ꮐ\uab90\u13f8")
	f.Fuzz(func(t *testing.T, s string) {
		once := Fold(s)
		if twice := Fold(once); twice != once {
			t.Errorf("%q: %q, then %q", s, once, twice)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	q, _ := Parse("quick not:wolf feed:lwn")
	m := q.Bind(now)
	s := subject()
	for b.Loop() {
		m.Match(s, lektordir.AllFields)
	}
}

// TestPodcasts: the numbers of an episode, and what it has. One without a number is never found.
func TestPodcasts(t *testing.T) {
	e := &lektordir.Entry{Duration: 30*time.Minute + 5*time.Second, Episode: 7, Season: 2,
		Elements: lektordir.Elements{{Name: "podcast:transcript"}, {Name: "psc:chapters"}}}
	for text, want := range map[string][2]bool{ // of e, and of an entry without any of that
		"duration:<30m": {}, "duration:<31m": {true}, "duration:>30m": {true}, "duration:>30m5s": {}, "duration:<30m6s": {true},
		"duration:30m": {true}, "duration:31m": {}, "duration:29m": {}, "duration:30m5s": {true}, "duration:30m4s": {}, "duration:>1h": {}, "duration:<1H": {true},
		"not:duration:<1h": {false, true}, "duration:0s": {}, "duration:<1ms": {},
		"season:2": {true}, "season:1": {}, "season:>1": {true}, "season:<2": {}, "season:0": {}, "season:\"2\"": {true},
		"episode:7": {true}, "episode:<8": {true}, "episode:>7": {},
		"has:transcript": {true}, "has:transcripts": {true}, "has:chapters": {true}, "not:has:chapters": {false, true},
	} {
		q, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for i, entry := range []*lektordir.Entry{e, {}} {
			m := q.Bind(time.Unix(1700000000, 0))
			if got := m.Match(&Subject{Entry: entry}, q.Fields()); (got == Yes) != want[i] {
				t.Errorf("%s: entry %d: %v", text, i, got)
			}
			if got := m.Match(&Subject{Entry: entry}, 0); got != Maybe {
				t.Errorf("%s: without fields: %v", text, got)
			}
		}
	}
}
