package ess

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// generated is the output of the author's generator for items titled "hello world", "foo" and
// "bar", which are 1, 3 and 4 minutes old.
const generated = "1503674400,http://example.com/rss.xml,\n1,92,\n3,68,\n4,53"

// The examples of the page.
const (
	pageESS = "1503411304088, http://example.com/rss.xml, 0,27, 3600,22, 7890,142, 23421,17"
	pageNNO = "1503411304088, http://example.com/rss.xml,223432,27, http://example2.com/rss.xml,453223,44, http://example3.com/rss.xml,5432242,125, http://example4.com/rss.xml,23143231,241"
)

const feedURL = "http://example.com/rss.xml"

func TestGeneratorOutput(t *testing.T) {
	build := time.Unix(1503674400, 0)
	at := func(minutes int, title string) Entry {
		return Entry{Minute(build.Add(-time.Duration(minutes) * time.Minute)), Checksum(title)}
	}
	// The order of the entries and the second of the build time make no difference.
	for _, at := range [][]Entry{
		{at(1, "hello world"), at(3, "foo"), at(4, "bar")},
		{at(4, "bar"), at(1, "hello world"), at(3, "foo")},
	} {
		if got := string(AppendESS(nil, build.Add(59*time.Second), feedURL, at)); got != generated {
			t.Errorf("got %q, want %q", got, generated)
		}
	}
}

func TestPageExamples(t *testing.T) {
	doc := decode(t, pageESS)
	if doc.Build.Unix() != 1503411300 || doc.Kind != ESS || doc.URL != feedURL {
		t.Errorf("got %+v; want doc.Build.Unix() == 1503411300 and doc.Kind == ESS and doc.URL == feedURL", doc)
	}
	base := int64(1503411300 / 60)
	wantEntries(t, doc, fe(feedURL, base, 27), fe(feedURL, base-3600, 22), fe(feedURL, base-7890, 142), fe(feedURL, base-23421, 17))
	doc = decode(t, pageNNO)
	if doc.Build.Unix() != 1503411300 || doc.Kind != NNO || doc.URL != "" {
		t.Errorf("got %+v; want doc.Build.Unix() == 1503411300 and doc.Kind == NNO and doc.URL == \"\"", doc)
	}
	wantEntries(t, doc, fe(feedURL, base-223432, 27), fe("http://example2.com/rss.xml", base-453223, 44),
		fe("http://example3.com/rss.xml", base-5432242, 125), fe("http://example4.com/rss.xml", base-23143231, 241))
}

func TestChecksum(t *testing.T) {
	for _, tc := range []struct {
		title  string
		sum    uint8
		loop   int
		accept []int
	}{
		{"hello world", 92, 92, []int{92}},
		{"Even Shorter Syndication [ess] and No Nonsense Outlines [nno]", 140, 140, []int{140}},
		{"\u0100", 0, 256, []int{0, 256}},
		{"a\u009f", 0, 256, []int{0, 256}},
		{"", 0, 0, []int{0, 256}},
		{"😁", 61, 62, []int{61, 62}},
		{"foo", 68, 68, []int{68}},
		{"\uffff\uffff", 254, 254, []int{254}},
	} {
		if got := Checksum(tc.title); got != tc.sum {
			t.Errorf("%q: %d, want %d", tc.title, got, tc.sum)
		}
		if got := LoopChecksum(tc.title); got != tc.loop {
			t.Errorf("%q: LoopChecksum is %d, want %d", tc.title, got, tc.loop)
		}
		for sum := range 257 {
			if got, want := Matches(tc.title, sum), slices.Contains(tc.accept, sum); got != want {
				t.Errorf("Matches(%q, %d) = %v", tc.title, sum, got)
			}
		}
	}
}

func TestMinute(t *testing.T) {
	for in, want := range map[int64]int64{0: 0, 59: 0, 60: 1, 119: 1, -1: -1, -60: -1, -61: -2} {
		if got := Minute(time.Unix(in, 999)); got != want {
			t.Errorf("%d: %d, want %d", in, got, want)
		}
	}
}

func TestNegativeMinutes(t *testing.T) {
	build := time.Unix(1503674400, 0)
	e := []Entry{{Minute(build) + 5, 1}, {Minute(build) - 2, 2}}
	got := AppendESS(nil, build, feedURL, e)
	if want := "1503674400,http://example.com/rss.xml,\n-5,1,\n2,2"; string(got) != want {
		t.Errorf("got %q; want string(got) == want", got)
	}
	wantEntries(t, decode(t, string(got)), fe(feedURL, e[0].Minute, 1), fe(feedURL, e[1].Minute, 2))
}

func TestEmptyESS(t *testing.T) {
	got := AppendESS(nil, time.Unix(1503674400, 0), feedURL, nil)
	if want := "1503674400,http://example.com/rss.xml"; string(got) != want {
		t.Errorf("got %q; want string(got) == want", got)
	}
	for _, in := range []string{string(got), string(got) + ",", string(got) + ",\n", " " + string(got) + " \r\n"} {
		if doc := decode(t, in); doc.Kind != ESS || doc.URL != feedURL || len(doc.Entries) != 0 {
			t.Errorf("got %q: %+v; want doc.Kind == ESS and doc.URL == feedURL and len(doc.Entries) == 0", in, doc)
		}
	}
}

func TestCommaInURL(t *testing.T) {
	const raw, escaped = "http://example.com/a,,b?c=1,x", "http://example.com/a%2C%2Cb?c=1%2Cx"
	build := time.Unix(1503674400, 0)
	got := string(AppendESS(nil, build, raw, []Entry{{Minute(build), 7}}))
	if want := "1503674400," + escaped + ",\n0,7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	wantEntries(t, decode(t, got), fe(escaped, Minute(build), 7))
	// Another writer may not have escaped the comma.
	wantEntries(t, decode(t, "1503674400,"+raw+",0,7"), fe(raw, Minute(build), 7))
	top := NewTop(5)
	for _, doc := range []string{got, "1503674400," + raw + ",0,7"} {
		if err := top.AddBytes([]byte(doc), nil); err != nil {
			t.Fatal(err)
		}
	}
	if e := top.Entries(); len(e) != 1 || e[0].Feed != escaped {
		t.Errorf("got %v; want len(e) == 1 and e[0].Feed == escaped", e)
	}
}

func TestEscapeURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://e.com/é?q=%2C#x":       "http://e.com/é?q=%2C#x",
		"http://e.com/a b\n\xff\u2028": "http://e.com/a%20b%0A%FF%E2%80%A8",
		"http://e.com/\ufffd,":         "http://e.com/\ufffd%2C",
	} {
		if got := EscapeURL(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestTolerantReader has documents with their decoded entries and their warnings.
func TestTolerantReader(t *testing.T) {
	const b = 1503674400 / 60
	const u, v = "http://e.com/a", "http://e.com/b"
	for name, tc := range map[string]struct {
		in   string
		want []FeedEntry
		warn []string
	}{
		"CRLF and BOM":      {"\xef\xbb\xbf1503674400,http://e.com/a,\r\n1,92,\r\n3,68\r\n", list(fe(u, b-1, 92), fe(u, b-3, 68)), nil},
		"lines, no commas":  {"1503674400\nhttp://e.com/a\n1,92\n3,68\n", list(fe(u, b-1, 92), fe(u, b-3, 68)), nil},
		"commas below":      {"1503674400\n,http://e.com/a\r\n ,1,92\n\n,3,68", list(fe(u, b-1, 92), fe(u, b-3, 68)), nil},
		"commas around":     {"1503674400,\n,http://e.com/a,1,92", list(fe(u, b-1, 92)), nil},
		"unsorted":          {"1503674400,http://e.com/a,9,1,2,2,5,3", list(fe(u, b-9, 1), fe(u, b-2, 2), fe(u, b-5, 3)), nil},
		"a dangling field":  {"1503674400,http://e.com/a,\n1,92,\n3", list(fe(u, b-1, 92)), []string{"line 3, field 5: no checksum"}},
		"dangling in NNO":   {"1503674400,http://e.com/a,1,\nhttp://e.com/b,2,3", list(fe(v, b-2, 3)), []string{"line 1, field 3: no checksum", "line 1, field 2: no entry"}},
		"URL without entry": {"1503674400,http://e.com/a,1,2,\nhttp://e.com/b", list(fe(u, b-1, 2)), []string{"line 2, field 5: no entry"}},
		"odd fields":        {"1503674400,http://e.com/a,1,92,\n oops,3,68,4.5,,5,6", list(fe(u, b-1, 92), fe(u, b-3, 68), fe(u, b-5, 6)), []string{"line 2, field 5: oops", "line 2, field 8: 4.5", "line 2, field 9: the field is empty"}},
		"an empty field":    {"1503674400,http://e.com/a,,1,92", list(fe(u, b-1, 92)), []string{"line 1, field 3: the field is empty"}},
		"numbers first":     {"1503674400,1,2,http://e.com/a,3,4", list(fe(u, b-3, 4)), []string{"line 1, field 2: 1 comes before", "line 1, field 3: 2 comes before"}},
		"sums":              {"1503674400,http://e.com/a,1,256,2,257,3,-1", list(fe(u, b-1, 0), fe(u, b-2, 1), fe(u, b-3, 255)), []string{"line 1, field 6: the checksum 257", "line 1, field 8: the checksum -1"}},
		"absurd minutes":    {"1503674400,http://e.com/a,99999999999999999999999,1,-9000000001,2,1000000000,3,-4190000000,6,+4,5", list(fe(u, b-1000000000, 3), fe(u, b+4190000000, 6), fe(u, b-4, 5)), []string{"line 1, field 3: the minutes", "line 1, field 5: the minutes"}},
		"text after them":   {"1503674400,http://e.com/a,99999999999999999999,5,bar,5,1", list(fe(u, b-5, 1)), []string{"line 1, field 3: the minutes", "line 1, field 5: bar is neither"}},
		"odd build":         {"1503674459,http://e.com/a,1,2", list(fe(u, b-1, 2)), nil},
		"schemes":           {"1503674400,Feed+x-1.0:a,1,2,urn:x,3,4", list(fe("Feed+x-1.0:a", b-1, 2), fe("urn:x", b-3, 4)), nil},
		"long field":        {"1503674400,http://e.com/a,1,2," + strings.Repeat("x", MaxField+1) + ",3,4", list(fe(u, b-1, 2), fe(u, b-3, 4)), []string{"line 1, field 5: the field is too long"}},
		"very long field":   {"1503674400,http://e.com/a,1,2,\n" + strings.Repeat("x", 1<<18) + "\n,3,4", list(fe(u, b-1, 2), fe(u, b-3, 4)), []string{"line 2, field 5: the field is too long"}},
		"long, with colon":  {"1503674400,http://e.com/a,1,2," + strings.Repeat("x", MaxField) + ":,3,4", list(fe(u, b-1, 2), fe(u, b-3, 4)), []string{"line 1, field 5: the field is too long"}},
		"long URL":          {"1503674400,\nhttp://e.com/a,1,2,\nhttp://" + strings.Repeat("x", MaxField) + ",3,4,\nhttp://e.com/b,5,6", list(fe(u, b-1, 2), fe(v, b-5, 6)), []string{"line 3, field 5: the URL is too long"}},
		"very long URL":     {"1503674400,\nhttp://e.com/a,1,2,\nhttp://" + strings.Repeat("x", 1<<20) + ",3,4,7,8,\nhttp://e.com/b,5,6", list(fe(u, b-1, 2), fe(v, b-5, 6)), []string{"line 3, field 5: the URL is too long"}},
		"long behind comma": {"1503674400,http://e.com/a," + strings.Repeat("x", MaxField) + ",y,3,4,http://e.com/b,5,6", list(fe(v, b-5, 6)), []string{"line 1, field 3: the URL is too long"}},
		"very long, comma":  {"1503674400,http://e.com/a," + strings.Repeat("x", 1<<20) + ",y,3,4,http://e.com/b,5,6", list(fe(v, b-5, 6)), []string{"line 1, field 3: the URL is too long"}},
	} {
		t.Run(name, func(t *testing.T) {
			var warned []string
			doc, err := Decode([]byte(tc.in), func(w Warning) { warned = append(warned, w.String()) })
			if err != nil {
				t.Fatal(err)
			}
			wantEntries(t, doc, tc.want...)
			ok := len(warned) == len(tc.warn)
			for i := range tc.warn {
				ok = ok && strings.HasPrefix(warned[i], tc.warn[i])
			}
			if !ok {
				t.Errorf("warnings %q", warned)
			}
		})
	}
}

func TestNoBuildTime(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "empty",
		" \r\n":                       "empty",
		"http://example.com/,1,2":     "line 1: it begins with \"http://example.com/\"",
		"\n<html>, 1":                 "line 2: it begins with \"<html>\"",
		"-60,http://example.com/,1,2": "begins with \"-60\"",
		"0,http://example.com/":       "begins with \"0\"",
		",1503674400,http://e.com/a":  "begins with \",\"",
		strings.Repeat("x", MaxField+1) + "\n1503674400,http://e.com/a,1,2": "line 1: it begins with \"xxx",
		"99999999999999999999,http://e.com/a":                               "begins with \"9999",
		"999999999999999,http://e.com/a":                                    "begins with \"9999",
	} {
		_, err := Decode([]byte(in), nil)
		var build *BuildError
		if !errors.As(err, &build) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %q: %v; want errors.As(err, &build) and strings.Contains(err.Error(), want)", in, err)
		}
	}
}

func TestStrict(t *testing.T) {
	for in, want := range map[string][]string{
		generated: nil,
		"1503674400,http://e.com/a,-5,255, 0,1,\r\n0,1\n": nil,
		"01503674400,http://e.com/a,1,256":                {"line 1, field 1: 01503674400", "line 1, field 4: the checksum 256"},
		"1503674400,http://e.com/a,1,92,\n1,91":           {"line 2, field 5: the entry comes before"},
		"1503674400,\nhttp://b/,1,9,\nhttp://a/,1,9":      {"line 3, field 6: the entry comes before"},
		pageESS:                            {"line 1, field 1: the build time is in milliseconds", "line 1, field 1: the build time is not a multiple of 60"},
		"\xef\xbb\xbf1503674401,ftp://e/a": {"line 1, field 1: a byte order mark", "line 1, field 1: the build time is not a multiple", "line 1, field 2: the URL is neither"},
		"1503674400,http://e.com/a,\n5,1,\n4,1,\n+6,02":                {"line 3, field 5: the entry is newer", "line 4, field 7: +6", "line 4, field 8: 02"},
		"1503674400,\nhttp://e.com/a,5,1,6,1,\nhttp://e.com/b,7,1,8,1": {"line 2, field 2: several entries", "line 3, field 10: the entry has no URL"},
		"1503674400,http://e.com/a,b c,5,1":                            {"line 1, field 3: the comma in the URL", "line 1, field 3: the URL has characters"},
	} {
		var got []string
		if _, err := DecodeStrict([]byte(in), func(w Warning) { got = append(got, w.String()) }); err != nil {
			t.Fatal(err)
		}
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%q:\n got %q\nwant %q", in, got, want)
				break
			}
		}
	}
}

func TestKinds(t *testing.T) {
	for in, want := range map[string]Kind{
		generated:                              ESS,
		pageNNO:                                NNO,
		"1503674400,http://e.com/a,http://b/c": NNO,
		// With one URL and one pair, the comma after the build time decides.
		"1503674400,http://e.com/a,1,2":            ESS,
		"1503674400 , http://e.com/a,\n1,2":        ESS,
		"1503674400\nhttp://e.com/a,1,2":           ESS,
		"1503674400,\nhttp://e.com/a,1,2":          NNO,
		"1503674400, \r\n http://e.com/a,1,2":      NNO,
		"1503674400,,http://e.com/a,1,2":           NNO,
		"1503674400,\nhttp://e.com/a,\n1,2,\n3,4":  ESS,
		"1503674400,,http://e.com/a,1,2,\nx:y,1,2": NNO,
		"1503674400":                ESS,
		"1503674400,":               NNO,
		"1503674400,http://e.com/a": ESS,
	} {
		if doc, err := Decode([]byte(in), nil); err != nil || doc.Kind != want {
			t.Errorf("got %q: %+v, %v; want err == nil and doc.Kind == want", in, doc, err)
		}
	}
}

// TestNNOLine checks that an NNO on one line is read as an NNO, even with few entries.
func TestNNOLine(t *testing.T) {
	for n := range 4 {
		entries := list(fe("http://e.com/a", 9, 1), fe("http://e.com/a", 9, 1), fe("http://e.com/b", 8, 3))[:min(n, 3)]
		line := AppendNNOLine(nil, Time(10), entries)
		doc, err := DecodeStrict(line, func(w Warning) { t.Errorf("%s: %v", line, w) })
		if err != nil || doc.Kind != NNO || !slices.Equal(doc.Entries, entries) || bytes.ContainsAny(line, "\r\n") {
			t.Errorf("%s: %+v, %v", line, doc, err)
		}
	}
}

func TestRebasingKeepsAbsoluteMinutes(t *testing.T) {
	doc := decode(t, pageNNO)
	build := time.Unix(1700000000, 0)
	again := decode(t, string(AppendNNO(nil, build, doc.Entries)))
	if again.Build.Unix() != 1699999980 {
		t.Errorf("got %v; want again.Build.Unix() == 1699999980", again.Build)
	}
	wantEntries(t, again, doc.Entries...)
}

func TestNNOReadBack(t *testing.T) {
	doc := decode(t, pageNNO)
	text := AppendNNO(nil, doc.Build, doc.Entries)
	if want := "1503411300,\n" + feedURL + ",223432,27,\nhttp://example2.com/rss.xml,453223,44,\nhttp://example3.com/rss.xml,5432242,125,\nhttp://example4.com/rss.xml,23143231,241"; string(text) != want {
		t.Errorf("got %q; want string(text) == want", text)
	}
	again := decode(t, string(text))
	if again.Kind != NNO || !again.Build.Equal(doc.Build) {
		t.Errorf("got %+v; want again.Kind == NNO and again.Build.Equal(doc.Build)", again)
	}
	wantEntries(t, again, doc.Entries...)
}

// TestIdentity checks that a document of either format is decoded as it was encoded.
func TestIdentity(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		build := Time(rng.Int64N(40_000_000) + 1)
		var ess []Entry
		var nno []FeedEntry
		for range rng.IntN(20) {
			e := Entry{Minute(build) - rng.Int64N(20000) + 100, uint8(rng.IntN(256))}
			ess = append(ess, e)
			nno = append(nno, FeedEntry{fmt.Sprintf("https://%d.example.com/é?x=%d", rng.IntN(5), rng.IntN(3)), e})
		}
		doc := decode(t, string(AppendESS(nil, build, feedURL, ess)))
		if !doc.Build.Equal(build) || doc.URL != feedURL || len(doc.Entries) != len(ess) {
			t.Fatalf("got %+v; want doc.Build.Equal(build) and doc.URL == feedURL and len(doc.Entries) == len(ess)", doc)
		}
		for i, e := range doc.Entries {
			if e.Entry != ess[i] || e.Feed != feedURL {
				t.Fatalf("got %+v, want %+v", e, ess[i])
			}
		}
		doc = decode(t, string(AppendNNO(nil, build, nno)))
		if !doc.Build.Equal(build) || !slices.Equal(doc.Entries, nno) {
			t.Fatalf("got %+v; want doc.Build.Equal(build) and slices.Equal(doc.Entries, nno)", doc)
		}
	}
}

// TestKilobyte checks that 100 entries within ten days fit into 1,024 bytes.
func TestKilobyte(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	build := time.Unix(1503674400, 0)
	for range 1000 {
		var entries []Entry
		for range 100 {
			entries = append(entries, Entry{Minute(build) - rng.Int64N(10*24*60), uint8(rng.IntN(256))})
		}
		if doc := AppendESS(nil, build, "https://www.example.com/feeds/all.xml", entries); len(doc) > MaxESS {
			t.Fatalf("%d bytes", len(doc))
		}
	}
}

func TestLineBreaks(t *testing.T) {
	build := time.Unix(1503674400, 0)
	var entries []Entry
	for i := range 200 {
		entries = append(entries, Entry{Minute(build) - 1000 - int64(i), 100})
		doc := AppendESS(nil, build, feedURL, entries)
		withBreaks := len(AppendESSLine(nil, build, feedURL, entries)) + len(entries)
		if got, want := bytes.Contains(doc, []byte("\n")), withBreaks <= MaxESS; got != want {
			t.Fatalf("%d entries: %d bytes, line breaks %v", i+1, len(doc), got)
		}
	}
}

func fe(feed string, minute int64, sum uint8) FeedEntry { return FeedEntry{feed, Entry{minute, sum}} }

func list(e ...FeedEntry) []FeedEntry { return e }

func decode(t testing.TB, in string) *Document {
	t.Helper()
	doc, err := Decode([]byte(in), func(w Warning) { t.Errorf("%.100q: %v", in, w) })
	if err != nil {
		t.Fatalf("%.100q: %v", in, err)
	}
	return doc
}

func wantEntries(t testing.TB, doc *Document, want ...FeedEntry) {
	t.Helper()
	if !slices.Equal(doc.Entries, want) {
		t.Errorf("entries %v, want %v", doc.Entries, want)
	}
}

// The time to read a URL with many commas is linear in its length.
func TestManyCommas(t *testing.T) {
	var b strings.Builder
	b.WriteString("1503674400,")
	for range 200 {
		b.WriteString("http://a/" + strings.Repeat("b", 2700) + strings.Repeat(",a", 1000) + ",1,2,\n")
	}
	doc := []byte(b.String())
	run := func() {
		if got, err := Decode(doc, nil); err != nil || len(got.Entries) != 200 {
			t.Fatalf("got %+v, %v; want err == nil and len(got.Entries) == 200", got, err)
		}
	}
	if n := testing.AllocsPerRun(2, run); n > 1000 {
		t.Errorf("%v allocations", n)
	}
}

// AddBytes adds a document; warn may be nil.
func (t *Top) AddBytes(b []byte, warn func(Warning)) error {
	doc, err := Decode(b, warn)
	if err == nil {
		t.Add(doc)
	}
	return err
}
