package greader

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/dir/entryname"
)

func idOf(unique string) ID { return IDOf(unique, entryname.Delivered(unique)) }

func TestIDOf(t *testing.T) {
	for _, tc := range []struct {
		unique string
		want   ID
	}{
		{"1795476725.M764697P5649Q9I0000000000000095.vm", 7181906903058789},
		{"1795476725.M764697P1Q1Ifedcba9876543295.other", 7181906903058789}, // the last 2 bits of the identity count
		{"1.M2P1Q1I0000000000000003.host", 4000011},
		{"0.M0P1Q1I0000000000000000.host", 1}, // never 0
		{"4294967295.M999999P1Q1Iffffffffffffffff.host", 17179869183999999},
		{"999999999999999999.M9999999999P1Q1Iffffffffffffffff.host", 17179869183999999},
	} {
		if got := idOf(tc.unique); got != tc.want {
			t.Errorf("%s: got %x, want %x", tc.unique, uint64(got), uint64(tc.want))
		}
	}
	a, b := idOf("7.a.host"), idOf("7.b.host")
	if a == b || a/4_000_000 != 7 || b/4_000_000 != 7 {
		t.Errorf("names of another form: %x and %x", uint64(a), uint64(b))
	}
	if FirstOf(7) > min(a, b) || FirstOf(8) <= max(a, b) {
		t.Errorf("second 7 is from %x up to %x", uint64(FirstOf(7)), uint64(FirstOf(8)))
	}
}

func TestParseID(t *testing.T) {
	const id = 0x06b04ccf5bab1995
	// Readrops 2.1.0 makes the long form so, and compares it with that of contents.
	short := idOf("1795476725.M764697P5649Q9I0000000000000095.vm").Short()
	if n, err := strconv.ParseUint(short, 10, 64); err != nil || fmt.Sprintf("%s%0*x", longPrefix, len(short), n) != ID(n).Long() {
		t.Errorf("%s: %v", short, err)
	}
	for _, tc := range []struct {
		text string
		want ID // 0: malformed
	}{
		{"tag:google.com,2005:reader/item/06b04ccf5bab1995", id},
		{"tag:google.com,2005:reader/item/06B04CCF5BAB1995", id},
		{"tag:google.com,2005:reader/item/6b04ccf5bab1995", id},
		{"tag:google.com,2005:reader/item/2f2", 0x2f2},
		{"tag:google.com,2005:reader/item/", 0},
		{"tag:google.com,2005:reader/item/00006b04ccf5bab1995", 0},
		{"tag:google.com,2005:reader/item/../../etc", 0},
		{"06b04ccf5bab1995", id},
		{" 06b04ccf5bab1995\n", id},
		{fmt.Sprint(id), id},
		{"1234567890123456", 1234567890123456}, // decimal, although it has 16 digits
		{"0234567890123456", 0x234567890123456},
		{"1", 1}, {"0", 0}, {"-1", 0}, {"", 0}, {"+1", 0}, {"0x1", 0}, {"1_000", 0},
		{"-000000000000001", 0},
		{fmt.Sprint(uint64(1<<60 - 1)), 1<<60 - 1}, {fmt.Sprint(uint64(1 << 60)), 0}, {"18446744073709551615", 0},
		{"ffffffffffffffff", 0}, {"99999999999999999999999", 0},
	} {
		got, ok := ParseID(tc.text)
		if ok != (tc.want != 0) || ok && got != tc.want {
			t.Errorf("%q: got %x, %v; want %x", tc.text, uint64(got), ok, uint64(tc.want))
		}
	}
	if got := ParseIDs([]string{"3", "x", "tag:google.com,2005:reader/item/3", "2"}); !slices.Equal(got, []ID{3, 2}) {
		t.Errorf("got %v, want [3 2]", got)
	}
}

func TestParseStream(t *testing.T) {
	for _, tc := range []struct {
		id   string
		want Stream
		bad  bool
	}{
		{id: "", want: Stream{State, ReadingList}},
		{id: "user/-/state/com.google/reading-list", want: Stream{State, ReadingList}},
		{id: "user/1/state/com.google/read", want: Stream{State, Read}},
		{id: "user/anybody/state/com.google/starred", want: Stream{State, Starred}},
		{id: "user/-/state/com.google/fresh", want: Stream{State, KeptUnread}},
		{id: "user/-/state/com.google/unread", want: Stream{State, KeptUnread}},
		{id: "user/-/state/com.google/broadcast", want: Stream{State, "broadcast"}},
		{id: "user/-/label/Ä/b c", want: Stream{Label, "Ä/b c"}},
		{id: "user/-/label/user/-/label/X", want: Stream{Label, "X"}},
		{id: "user/-/label/user/-/label/user/-/label/a/b", want: Stream{Label, "a/b"}},
		{id: "user/-/label/user/-/label/", bad: true},
		{id: "user/-/label/state/com.google/read", want: Stream{Label, "state/com.google/read"}},
		{id: "feed/0123", want: Stream{Feed, "0123"}},
		{id: "feed/http://a.example/x?y=1", want: Stream{Feed, "http://a.example/x?y=1"}},
		{id: "feed/http:/a.example/x", want: Stream{Feed, "http://a.example/x"}},
		{id: "feed/http%3A%2F%2Fa.example%2F", want: Stream{Feed, "http://a.example/"}},
		{id: "feed/https:/a.example/x", want: Stream{Feed, "https://a.example/x"}},
		{id: "feed/%", want: Stream{Feed, "%"}},
		{id: "feed/", bad: true}, {id: "user", bad: true}, {id: "user/", bad: true}, {id: "user//state/com.google/read", bad: true},
		{id: "user/-/state/com.google/", bad: true}, {id: "user/-/label/", bad: true}, {id: "../etc", bad: true},
		{id: "feed/" + strings.Repeat("x", MaxStream), bad: true},
	} {
		got, ok := ParseStream(tc.id)
		if ok == tc.bad || ok && got != tc.want {
			t.Errorf("%.60q: got %v, %v", tc.id, got, ok)
		}
	}
	if FlagOf("flag-x") != 'x' || FlagOf("flag-S") != 0 || FlagOf("flag-xy") != 0 || FlagOf("x") != 0 || FlagLabel('x') != "flag-x" {
		t.Error("flags are flag-a to flag-z")
	}
}

func TestSplitPath(t *testing.T) {
	const ids = "reader/api/0/stream/items/ids"
	for _, tc := range []struct{ path, base, call, stream string }{
		{path: "/", call: ""},
		{path: "/accounts/ClientLogin", call: "accounts/ClientLogin"},
		{path: "//accounts/ClientLogin", call: "accounts/ClientLogin"},
		{path: "/accounts//ClientLogin/", call: "accounts/ClientLogin"},
		{path: "/api/greader.php/" + ids, call: ids},
		{path: "/api/greader.php/api/greader.php//" + ids, call: ids},
		{path: "/api/greader.php", call: ""},
		{path: "/greader/" + ids, base: "/greader/", call: ids},
		{path: "//greader//api/greader.php/" + ids, base: "/greader", call: ids},
		{path: "/greader", base: "/greader", call: ""},
		{path: "/greaderx/" + ids, base: "/greader", call: "-"},
		{path: "/" + ids, base: "/greader", call: "-"},
		{path: "/reader/atom/feed%2F1", call: AtomPath, stream: "feed/1"},
		{path: "//reader//atom/feed%2Fhttp%3A%2F%2Fx%2F", call: AtomPath, stream: "feed/http://x/"},
		{path: "/reader/atom/feed/http://x/y//z", call: AtomPath, stream: "feed/http://x/y//z"},
		{path: "/reader/atom", call: AtomPath},
		{path: "/reader/atomx", call: "reader/atomx"},
		{path: "/reader/api/0/stream/contents/user%2F-%2Flabel%2Fa%20b", call: ContentsPath, stream: "user/-/label/a b"},
		{path: "/api/greader.php/reader/api/0/stream/contents/feed/https:/x/", call: ContentsPath, stream: "feed/https:/x/"},
		{path: "/reader/api/0/stream/contents", call: ContentsPath},
		{path: "/reader/api/0/stream/contents/feed%252F1", call: ContentsPath, stream: "feed%2F1"}, // unescaped once
	} {
		call, stream, ok := SplitPath(tc.path, tc.base)
		if ok == (tc.call == "-") || ok && (call != tc.call || stream != tc.stream) {
			t.Errorf("%s below %q: got %q, %q, %v", tc.path, tc.base, call, stream, ok)
		}
	}
}

func TestParseList(t *testing.T) {
	for _, tc := range []struct {
		query, want string
	}{
		{"", "{{0 reading-list} [] [] 20 false 0 0}"},
		{"s=feed/1&n=5&r=o", "{{2 1} [] [] 5 true 0 0}"},
		{"n=200000&r=n", "{{0 reading-list} [] [] 1000 false 0 0}"},
		{"n=99999999999999999999", "{{0 reading-list} [] [] 1000 false 0 0}"},
		{"n=-3", "{{0 reading-list} [] [] 20 false 0 0}"},
		{"n=x&ot=&nt=x", "{{0 reading-list} [] [] 20 false 0 0}"},
		{"ot=7&nt=8", fmt.Sprintf("{{0 reading-list} [] [] 20 false %d %d}", FirstOf(7), FirstOf(9))},
		{"ot=99999999999999999999", "{{0 reading-list} [] [] 20 false 0 0}"},
		{"xt=user/-/state/com.google/read&xt=x&xt=&it=feed/1", "{{0 reading-list} [{2 1}] [{0 read}] 20 false 0 0}"},
		{"c=55", "{{0 reading-list} [] [] 20 false 0 55}"},
		{"c=55&r=o", "{{0 reading-list} [] [] 20 true 56 0}"},
		{"c=55&nt=1", "{{0 reading-list} [] [] 20 false 0 55}"},
		{fmt.Sprint("nt=1&c=", uint64(FirstOf(9))), fmt.Sprintf("{{0 reading-list} [] [] 20 false 0 %d}", FirstOf(2))},
		{"c=x", `c: "x" is not a continuation of this server`},
		{"s=x", `s: "x" is not the id of a stream`},
	} {
		v := ParseValues(tc.query)
		l, err := ParseList(v.Get("s"), v, 1000)
		got := fmt.Sprint(l)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.query, got, tc.want)
		}
	}
}

func TestParseStamp(t *testing.T) {
	for _, tc := range []struct {
		ts   string
		want time.Time
	}{
		{"1795476725764697089", time.Unix(0, 1795476725764697089)}, // FreshRSS names it "nanoseconds"
		{"1795476725764697", time.UnixMicro(1795476725764697)},
		{"1795476725764", time.UnixMicro(1795476725764999)},
		{"1795476725", time.UnixMicro(1795476725999999)},
	} {
		if got, ok := ParseStamp(tc.ts); !ok || !got.Equal(tc.want) {
			t.Errorf("%s: got %v, %v; want %v", tc.ts, got, ok, tc.want)
		}
	}
	for _, bad := range []string{"", "x", "-1", "99999999999999999999999"} {
		if _, ok := ParseStamp(bad); ok {
			t.Errorf("%q is a time", bad)
		}
	}
}

func TestParseValues(t *testing.T) {
	v := ParseValues("a=1&a=%2B+%20&b&&=c&bad=%zz&semi=x;y&u=%C3%A4")
	for key, want := range map[string][]string{"a": {"1", "+  "}, "b": {""}, "": {"c"}, "bad": {"%zz"}, "semi": {"x;y"}, "u": {"ä"}} {
		if !slices.Equal(v[key], want) {
			t.Errorf("%s: got %q, want %q", key, v[key], want)
		}
	}
	many := ParseValues(strings.Repeat("i=1&", 20_000))
	if len(many["i"]) != 20_000 {
		t.Errorf("%d of 20,000 values", len(many["i"]))
	}
}

var sample = Item{
	ID: ID(3).Long(), CrawlTimeMsec: "1000", TimestampUsec: "1000000", Published: 1, Updated: 2, Title: "a < b & \x01", Author: "Ann",
	Canonical: []Link{{Href: "http://x/?a&b"}}, Alternate: []Link{{Href: "http://x/?a&b", Type: "text/html"}},
	Enclosure: []Link{{Href: "http://x/a.mp3", Type: "audio/mpeg", Length: 5}}, Categories: []string{StateID(ReadingList), StateID(Read), LabelID("read")},
	Origin: Origin{"feed/1", "Feed", "http://x/"}, Summary: Text{"<p>\u2028</p>"},
}

// Each form of the answers can be read back, and a continuation is missing on the last page.
func TestAnswers(t *testing.T) {
	var b bytes.Buffer
	refs := NewRefs(&b)
	refs.Add(3, "1", 1000000)
	refs.Streams = true
	refs.Add(2, "1", 5)
	if err := refs.End(2); err != nil || b.String() != `{"itemRefs":[{"id":"3"},{"id":"2","directStreamIds":["feed/1"],"timestampUsec":"5"}],"continuation":"2"}` {
		t.Errorf("%s, %v", &b, err)
	}
	b.Reset()
	if err := NewRefs(&b).End(0); err != nil || b.String() != `{"itemRefs":[]}` {
		t.Errorf("%s, %v", &b, err)
	}
	b.Reset()
	head, err := JSON(Head{ID: StateID(ReadingList), Self: []Link{}, Alternate: []Link{}})
	if err != nil {
		t.Fatal(err)
	}
	items := NewItems(&b, head)
	for range 2 {
		data, err := JSON(sample)
		if err != nil {
			t.Fatal(err)
		}
		items.Add(data)
	}
	if err := items.End(0); err != nil {
		t.Fatal(err)
	}
	var back struct {
		ID           string
		Updated      int
		Items        []Item
		Continuation *string
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil || len(back.Items) != 2 || back.ID != StateID(ReadingList) || back.Continuation != nil {
		t.Fatalf("%s: %v", &b, err)
	}
	if got := back.Items[1]; got.Title != sample.Title || got.Summary != sample.Summary || got.Enclosure[0] != sample.Enclosure[0] {
		t.Errorf("got %+v", got)
	}
	if !strings.Contains(b.String(), "<p>") {
		t.Error("HTML is escaped as for a page")
	}
}

func TestXML(t *testing.T) {
	var b bytes.Buffer
	err := XML(&b, strings.NewReader(`{"a<":"x & y","n":5,"t":true,"l":[{"e":"1"},"s",[]],"none":null}`))
	const want = xml.Header + `<object><string name="a&lt;">x &amp; y</string><number name="n">5</number><boolean name="t">true</boolean>` +
		`<list name="l"><object><string name="e">1</string></object><string>s</string><list></list></list><string name="none"></string></object>`
	if got := b.String(); err != nil || got != strings.Replace(want, "\n", "", 1) {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	for _, bad := range []string{"", "{", `{"a":1}{}`, `[1,]`, strings.Repeat("[", 200) + strings.Repeat("]", 200)} {
		if XML(io.Discard, strings.NewReader(bad)) == nil {
			t.Errorf("%.20s: no error", bad)
		}
	}
}

// newsboat reads the states of an item from the categories with the scheme, so a folder has none.
func TestAtom(t *testing.T) {
	var b bytes.Buffer
	if err := Atom(&b, Head{ID: "feed/1", Title: "F", Updated: 5}, []Item{sample}, 3); err != nil {
		t.Fatal(err)
	}
	var feed struct {
		XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
		Title   string   `xml:"title"`
		Entries []struct {
			ID    string `xml:"id"`
			Title string `xml:"title"`
			Links []struct {
				Rel  string `xml:"rel,attr"`
				Href string `xml:"href,attr"`
			} `xml:"link"`
			Categories []struct {
				Term   string `xml:"term,attr"`
				Scheme string `xml:"scheme,attr"`
				Label  string `xml:"label,attr"`
			} `xml:"category"`
			Content string `xml:"content"`
		} `xml:"entry"`
	}
	if err := xml.Unmarshal(b.Bytes(), &feed); err != nil || len(feed.Entries) != 1 {
		t.Fatalf("%s: %v", &b, err)
	}
	e := feed.Entries[0]
	if e.ID != sample.ID || e.Title != "a < b & \ufffd" || e.Content != sample.Summary.Content || len(e.Links) != 2 || e.Links[0].Href != "http://x/?a&b" || e.Links[1].Rel != "enclosure" {
		t.Errorf("got %+v", e)
	}
	states := []string{}
	for _, c := range e.Categories {
		if c.Scheme != "" {
			states = append(states, c.Label)
		}
	}
	if !slices.Equal(states, []string{ReadingList, Read}) || len(e.Categories) != 3 {
		t.Errorf("states %q in %+v", states, e.Categories)
	}
}

// FuzzParse reads anything as each part of a request: what is read can be read again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"tag:google.com,2005:reader/item/06b04ccf5bab1995", "482000000000000000", "feed/http:/x", "user/-/label/a%2Fb",
		"s=feed%2F1&n=20&c=5&xt=user/-/state/com.google/read&ot=1", "//api/greader.php/reader/atom/feed%2F1", "ts=1&i=%zz&&=",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, ok := ParseID(text); ok {
			for _, form := range []string{id.Short(), id.Long(), strings.TrimPrefix(id.Long(), longPrefix)} {
				if again, ok := ParseID(form); !ok || again != id {
					t.Errorf("%q is %x, but %q is %x", text, uint64(id), form, uint64(again))
				}
			}
		}
		if s, ok := ParseStream(text); ok && s.Name == "" {
			t.Errorf("%q: a stream without a name", text)
		}
		v := ParseValues(text)
		if l, err := ParseList(v.Get("s"), v, 100); err == nil && (l.Count < 1 || l.Count > 100 || l.From > maxID+1 || l.Before > maxID+1) {
			t.Errorf("%q: %+v", text, l)
		}
		if want, err := url.ParseQuery(text); err == nil && len(want) != len(v) {
			t.Errorf("%q: %d keys, want %d", text, len(v), len(want))
		}
		ParseStamp(text)
		for _, base := range []string{"", "/a/b"} {
			if call, _, ok := SplitPath(text, base); ok && strings.HasPrefix(call, "/") {
				t.Errorf("%q: call %q", text, call)
			}
		}
	})
}

// FuzzXML checks that any JSON is written as XML that can be read.
func FuzzXML(f *testing.F) {
	f.Add(`{"a":[1,"x",{"b":null}],"c":true}`)
	f.Add("[\"\x01<&\u2028\"]")
	f.Fuzz(func(t *testing.T, text string) {
		var b bytes.Buffer
		if XML(&b, strings.NewReader(text)) != nil {
			return
		}
		d := xml.NewDecoder(&b)
		for {
			if _, err := d.Token(); err == io.EOF {
				return
			} else if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}
