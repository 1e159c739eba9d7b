package mailmsg

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/lektordir"
)

// read is a message as the standard library parses it.
type read struct {
	header     mail.Header
	text, html string
}

// parse parses a message. It fails if mail does not allow the message: lines that are too long or
// begin with "From ", bytes beyond ASCII, or parts other than text and HTML.
func parse(t testing.TB, data []byte) read {
	t.Helper()
	for n, line := range bytes.Split(data, []byte("\n")) {
		if len(line) > 998 {
			t.Fatalf("line %d has %d bytes", n, len(line))
		}
		if len(line) > 76 && bytes.Contains(line, []byte("=?utf-8?")) {
			t.Fatalf("line %d has an encoded word and %d bytes: %q", n, len(line), line)
		}
		if bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From ")) || string(line) == "." {
			t.Fatalf("line %d is %q", n, line)
		}
		for _, c := range line {
			if c < ' ' && c != '\t' || c >= 0x7f {
				t.Fatalf("line %d has %#x in it: %q", n, c, line)
			}
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("got %s, %v; want err == nil and kind == \"multipart/alternative\"", kind, err)
	}
	var parts []string
	r := multipart.NewReader(m.Body, params["boundary"])
	for {
		p, err := r.NextRawPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var body io.Reader = quotedprintable.NewReader(p)
		if e := p.Header.Get("Content-Transfer-Encoding"); e == "base64" {
			body = base64.NewDecoder(base64.StdEncoding, p)
		} else if e != "quoted-printable" {
			t.Fatalf("encoding %q", e)
		}
		text, err := io.ReadAll(body)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p.Header.Get("Content-Type")+"\n"+strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	if len(parts) != 2 {
		t.Fatalf("%d parts", len(parts))
	}
	text, ok := strings.CutPrefix(parts[0], "text/plain; charset=utf-8\n")
	html, ok2 := strings.CutPrefix(parts[1], "text/html; charset=utf-8\n")
	if !ok || !ok2 {
		t.Fatalf("parts are %.40q and %.40q", parts[0], parts[1])
	}
	return read{m.Header, text, html}
}

// decoded returns a field as a mail program would show it.
func decoded(t testing.TB, value string) string {
	t.Helper()
	s, err := new(mime.WordDecoder).DecodeHeader(value)
	if err != nil {
		t.Fatalf("%q: %v", value, err)
	}
	return s
}

const hash = "da39a3ee5e6b4b0d3255bfef95601890afd80709"

func sample() *Entry {
	return &Entry{
		Ref:   lektordir.Ref{Feed: hash, Unique: "1700000000.M1P1Q1I00000000000000a1.h"},
		Feed:  &lektordir.Feed{ID: "http://feed.example/", Name: "Feed"},
		Entry: &lektordir.Entry{Title: "Title", ID: "http://feed.example/1", Content: []byte("text\n")},
		Date:  time.Date(2023, 11, 14, 10, 0, 0, 0, time.FixedZone("", 3600)),
	}
}

func made(t testing.TB, e *Entry) read {
	t.Helper()
	data, err := e.Message().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	again, _ := e.Message().Bytes()
	if !bytes.Equal(data, again) {
		t.Fatal("the same entry makes two messages")
	}
	return parse(t, data)
}

// fields are the only fields of a header.
var fields = []string{"From", "Subject", "Date", "Message-Id", "In-Reply-To", "References", "List-Id", "Archived-At", "X-Rss-Feed", "Keywords", "Content-Language", "Auto-Submitted", "Mime-Version", "Content-Type"}

// check checks the properties of all messages, for any entry.
func check(t testing.TB, e *Entry) {
	t.Helper()
	m := made(t, e)
	for name, values := range m.header {
		if len(values) != 1 || !slices.Contains(fields, name) {
			t.Fatalf("the header has %s: %q", name, values)
		}
	}
	from, err := m.header.AddressList("From")
	if err != nil || len(from) != 1 || !strings.HasSuffix(from[0].Address, "@lektor.invalid") {
		t.Fatalf("From: %q, %v, %v", m.header.Get("From"), from, err)
	}
	if date, err := m.header.Date(); err != nil || !date.Equal(e.Date.Truncate(time.Second)) {
		t.Fatalf("Date: %v, not %v: %v", date, e.Date, err)
	}
	subject := decoded(t, m.header.Get("Subject"))
	for _, s := range []string{subject, from[0].Name} {
		if s == "" || len(s) > maxWords || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e }) {
			t.Fatalf("a field is not clean: %q", s)
		}
	}
	if list := decoded(t, m.header.Get("Keywords")); list != "" {
		if _, err := mail.ParseAddressList(strings.ReplaceAll(m.header.Get("Keywords"), ", ", " <a@b.example>, ") + " <a@b.example>"); err != nil {
			t.Fatalf("Keywords: %q", m.header.Get("Keywords"))
		}
	}
	_, text, html := Digest([]*Entry{e, sample(), e}, DigestOptions{Full: true})
	_, short, brief := Digest([]*Entry{e, sample(), e}, DigestOptions{Lines: 3})
	data, err := (&Message{From: mail.Address{Address: "a@b.example"}, Subject: "s", Text: text, HTML: html}).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	harmless(t, m.text, m.html)
	harmless(t, text, html)
	harmless(t, short, brief)
	if digest := parse(t, data); digest.html != html {
		t.Fatalf("a digest came back as %q", digest.html)
	}
}

// harmless checks that a message runs nothing, loads nothing, does not break out of its document,
// and can be printed.
func harmless(t testing.TB, text, html string) {
	t.Helper()
	if strings.Count(html, "</body>") != 1 || !strings.HasSuffix(html, "</body>\n</html>\n") {
		t.Fatal("the document does not end where it should")
	}
	for _, s := range []string{text, html} {
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\x1b\x7f") {
			t.Fatalf("a body has control characters")
		}
	}
	for _, bad := range []string{"<script", "<style", "<svg", "<iframe", "<object", "<form", "<base", "<link", "<embed", "<video", "<audio", "javascript:alert", " onerror=", " onload=", `href="data:`, "refresh"} {
		if strings.Contains(strings.ToLower(inTags(html)), bad) {
			t.Fatalf("the HTML has %s: %s", bad, html)
		}
	}
}

// inTags returns the text between < and >. In our output it has only tags.
func inTags(html string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(html, "<") {
		tag, _, _ := strings.Cut(part, ">")
		b.WriteString("<" + tag + ">")
	}
	return b.String()
}

// hostile are texts that try to become a field, a part or a message, or to run.
var hostile = []string{
	"", " ", "\x00", "a\r\nBcc: victim@example.com", "a\nX-Evil: 1\n\nbody", "a\r\n\r\n--=_lektor\r\nContent-Type: text/html\r\n\r\n<script>alert(1)</script>",
	"=?utf-8?Q?=0D=0ABcc:_victim@example.com?=", "=?utf-8?B?DQpCY2M6IGE=?= \u202eevil", `"quoted" <evil@example.com>, b@c.example`, `back\slash "`, "(comment", "a;b:c,d@e",
	"From here\nFrom there\n>From that\n>>>From\n.\n", strings.Repeat("From x ", 1000), strings.Repeat("x", 10_000), strings.Repeat("Ж", 5000), strings.Repeat("e"+"\u0301", 5000),
	"<script>alert(1)</script><img src=x onerror=alert(1)>", `<a href="javascript:alert(1)">a</a><a href="data:text/html,x">b</a><meta http-equiv=refresh content="0;url=http://e.example/">`,
	`<svg onload=alert(1)><style>@import url(http://e.example/)</style></svg><base href="http://e.example/"><form action="http://e.example/">`,
	strings.Repeat("<div>", 1000) + "deep" + strings.Repeat("</div>", 900), strings.Repeat("<b><i>", 300), "</body></html><script>alert(1)</script><plaintext>",
	"\x1b]0;title\x07\x1b[2J\u0085\u2028x", "\xff\xfe\xfa", "\ufeffbom", "é\xcc", "=", "=_lektor", "--=_lektor--", strings.Repeat("> ", 5000) + "From me",
	"http://user:secret@feed.example/", "\t\t", "%0d%0aBcc: x", "<>", "a > b < c", strings.Repeat(`"`, 2000), strings.Repeat(`\`, 2000),
}

// TestHostile: with any text in any field of an entry, the result is one message with our fields
// only.
func TestHostile(t *testing.T) {
	for _, h := range hostile {
		e := sample()
		e.Entry.Title = h
		check(t, e)
		e = sample()
		e.Entry.Content, e.Entry.Type = []byte(h), "text/html"
		check(t, e)
		if len(h) > 100_000 {
			continue // the other checks are about fields of usual length
		}
		e.Entry.Type = ""
		check(t, e)
		e = sample()
		e.Feed = &lektordir.Feed{ID: h, Name: h, Author: h, Language: h, Alias: h}
		check(t, e)
		e = sample()
		e.Ref = lektordir.Ref{Feed: h, Unique: h}
		e.Version = h
		check(t, e)
		e = sample()
		e.Entry = &lektordir.Entry{
			Title: h, ID: h, Content: []byte(h), Author: h, Type: h, Link: h, Summary: h, Comments: h, Language: h, Image: h,
			Enclosures: []lektordir.Enclosure{{URL: h, Type: h, Length: 1}}, Categories: []string{h, h + "," + h},
		}
		e.Title = h
		check(t, e)
	}
}

// TestHuge: very long values are cut only where there is a limit.
func TestHuge(t *testing.T) {
	e := sample()
	e.Entry.Title = strings.Repeat("x", 1<<20)
	e.Entry.Content, e.Entry.Type = []byte(strings.Repeat("<div>", 10_000)+strings.Repeat("y", 1<<20)), "text/html"
	m := made(t, e)
	if !strings.Contains(m.text, e.Entry.Title) || !strings.Contains(m.text, strings.Repeat("y", 1<<20)) || len(m.header.Get("Subject")) > 2*maxWords {
		t.Errorf("a subject of %d bytes, a text of %d", len(m.header.Get("Subject")), len(m.text))
	}
	harmless(t, m.text, m.html)
}

func FuzzMessage(f *testing.F) {
	for i, h := range hostile {
		if len(h) < 2000 {
			f.Add(h, hostile[(i+1)%len(hostile)][:min(1000, len(hostile[(i+1)%len(hostile)]))], "text/html", "a, b <c@d.example>", "http://e.example/1")
		}
	}
	f.Fuzz(func(t *testing.T, title, content, kind, author, link string) {
		e := sample()
		e.Entry = &lektordir.Entry{Title: title, Content: []byte(content), Type: kind, Author: author, Link: link, Categories: []string{title, author}, Language: kind}
		e.Feed = &lektordir.Feed{Name: author, ID: link}
		check(t, e)
	})
}

// TestComesBack: text is decoded unchanged.
func TestComesBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []string{"a", "b ", "From ", "\n", "\n", ">", ".", "=", "é", "語", " \n", "\t", "\n.\n", "\nFrom ", "x", strings.Repeat("y", 40), "😀", "?=", "=?"}
	for n := range 300 {
		var b strings.Builder
		for range random.IntN(200) {
			b.WriteString(alphabet[random.IntN(len(alphabet))])
		}
		m := Message{From: mail.Address{Name: "a", Address: "a@b.example"}, Subject: "s", Text: b.String(), HTML: b.String()}
		data, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		if got := parse(t, data); got.text != b.String() || got.html != b.String() {
			t.Fatalf("%d: %q came back as %q", n, b.String(), got.text)
		}
		line := strings.Join(strings.Fields(b.String()), " ")
		if want, _ := Brief(line); decoded(t, Words(line)) != want {
			t.Fatalf("%d: %q came back as %q", n, want, decoded(t, Words(line)))
		}
		if want, _ := Brief("x" + line); true {
			a, err := mail.ParseAddress(Phrase("x"+line) + " <a@b.example>")
			if err != nil || a.Name != want {
				t.Fatalf("%d: %q came back as %v, %v", n, want, a, err)
			}
		}
	}
}

func TestMessage(t *testing.T) {
	e := sample()
	e.Entry.Author = "Kim Doe <kim@example.org>, pat@example.org, Lee (the other) <>"
	e.Entry.Categories = []string{"tea, cakes", "Čaj"}
	e.Entry.Language = "cs-CZ"
	m := made(t, e)
	for name, want := range map[string]string{
		"From":             `"Feed: Kim Doe, pat@example.org, Lee (the other)" <07e23ede2756aa3f@lektor.invalid>`,
		"Subject":          "Title",
		"Date":             "Tue, 14 Nov 2023 10:00:00 +0100",
		"Message-Id":       "<00000000000000a1." + hash + "@lektor.invalid>",
		"In-Reply-To":      "<" + hash + "@lektor.invalid>",
		"References":       "<" + hash + "@lektor.invalid>",
		"List-Id":          `"Feed" <` + hash + ".lektor.invalid>",
		"Archived-At":      "<http://feed.example/1>",
		"X-Rss-Feed":       "http://feed.example/",
		"Keywords":         `"tea, cakes", =?utf-8?B?xIxhag==?=`,
		"Content-Language": "cs-CZ",
	} {
		if got := m.header.Get(name); got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
	e.Version = "1700000001.M1P1Q1I00000000000000a1.h"
	later := made(t, e)
	if id := later.header.Get("Message-Id"); id == m.header.Get("Message-Id") || !strings.HasSuffix(id, ".00000000000000a1."+hash+"@lektor.invalid>") {
		t.Errorf("a later version has the ID %s", id)
	}
	if got, want := later.header.Get("References"), m.header.Get("References")+" "+m.header.Get("Message-Id"); got != want {
		t.Errorf("a later version refers to %s", got)
	}
	e = sample()
	e.Entry.Title = strings.Repeat("long ", 100)
	if m := made(t, e); !strings.HasPrefix(m.text, e.Entry.Title[:400]) || !strings.HasSuffix(decoded(t, m.header.Get("Subject")), "…") {
		t.Errorf("a long title is %q, and in the text %.50q", m.header.Get("Subject"), m.text)
	}
	e = sample()
	e.Entry.Title, e.Title = "", "The beginning"
	if m := made(t, e); m.header.Get("Subject") != "The beginning" {
		t.Errorf("without a title: %q", m.header.Get("Subject"))
	}
	e.Entry.Content, e.Entry.Type = []byte{0x89, 'P', 'N', 'G', 0}, "image/png"
	if m := made(t, e); !strings.Contains(m.text, "image/png, 5 bytes") || !strings.Contains(m.html, "image/png, 5 bytes") {
		t.Errorf("binary content is %q and %q", m.text, m.html)
	}
	e.Ref.Unique = "1700000000.abc.host"
	if a, b := e.ID(), (&Entry{Ref: lektordir.Ref{Feed: hash, Unique: "1700000000.abd.host"}}).ID(); a == b {
		t.Errorf("two entries have the ID %s", a)
	}
}

// TestImages: images are loaded only if the user asked for them.
func TestImages(t *testing.T) {
	e := sample()
	e.Entry.Content, e.Entry.Type = []byte(`<p><img src="pic.jpg" alt="A pic"></p>`), "text/html"
	if m := made(t, e); strings.Contains(m.html, "<img") || strings.Contains(m.html, "img-src") || !strings.Contains(m.html, `<a href="http://feed.example/pic.jpg"`) {
		t.Error(m.html)
	}
	e.Images = true
	if m := made(t, e); !strings.Contains(m.html, `<img src="http://feed.example/pic.jpg"`) || !strings.Contains(m.html, "img-src http: https:") {
		t.Error(m.html)
	}
	// A lazy image has its true source, once.
	e.Entry.Content = []byte(`<p><img src="data:image/gif;base64,AAAA" data-src="pic.jpg" alt="A pic"><noscript><img src="pic.jpg" alt="A pic"></noscript></p>`)
	if m := made(t, e); strings.Count(m.html, `<img src="http://feed.example/pic.jpg"`) != 1 || strings.Count(m.text, "A pic") != 1 || !strings.Contains(m.text, "[1] http://feed.example/pic.jpg") {
		t.Error(m.html, m.text)
	}
}

func ExampleMessage() {
	m := Message{
		From: mail.Address{Name: "Feed", Address: "feed@lektor.invalid"}, Subject: "Čaj", Date: time.Unix(1700000000, 0).UTC(), ID: "1@lektor.invalid",
		Text: "From here\n", HTML: "<p>From here</p>\n",
	}
	data, _ := m.Bytes()
	fmt.Printf("%s", data)
	// Output:
	// From: "Feed" <feed@lektor.invalid>
	// Subject: =?utf-8?B?xIxhag==?=
	// Date: Tue, 14 Nov 2023 22:13:20 +0000
	// Message-Id: <1@lektor.invalid>
	// Mime-Version: 1.0
	// Content-Type: multipart/alternative; boundary="=_lektor"
	//
	// --=_lektor
	// Content-Type: text/plain; charset=utf-8
	// Content-Transfer-Encoding: quoted-printable
	//
	// =46rom here
	//
	// --=_lektor
	// Content-Type: text/html; charset=utf-8
	// Content-Transfer-Encoding: quoted-printable
	//
	// <p>From here</p>
	//
	// --=_lektor--
}
