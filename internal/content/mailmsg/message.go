// Package mailmsg turns entries into mail messages (RFC 5322), and into the HTML of messages and digests.
// It uses neither the disk nor the clock: equal entries result in equal bytes.
//
// Untrusted text cannot end a header line, begin a part, or be decoded as an encoded word. No line is
// longer than mail allows or begins with "From ", and all text is ASCII, so that mail servers have no
// reason to change it.
package mailmsg

import (
	"bytes"
	"encoding/base64"
	"net/mail"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message"

	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Message is a message with a text and an HTML part, multipart/alternative (RFC 2046, 5.1.4).
type Message struct {
	From    mail.Address
	To      []*mail.Address // empty for a message that is not sent
	Subject string
	Date    time.Time
	ID      string // without the angle brackets
	// References are the IDs of the messages above it in its thread, the root first.
	References []string
	// Fields are additional header fields. Their values must be results of [Words], [Phrase] or
	// [Token]; empty ones are omitted.
	Fields     []Field
	Text, HTML string
}

// Field is a field of a header.
type Field struct{ Name, Value string }

// boundary cannot occur in a part, as "=_" is possible in neither encoding.
const boundary = "=_lektor"

// Bytes returns the message as stored on Unix: lines end in "\n".
func (m *Message) Bytes() ([]byte, error) {
	var h message.Header
	fields := slices.Concat([]Field{
		{"From", Phrase(m.From.Name) + " <" + Token(m.From.Address) + ">"},
		{"To", m.to()},
		{"Subject", Words(m.Subject)},
		{"Date", m.Date.Format(time.RFC1123Z)},
		{"Message-ID", ids(m.ID)},
	}, m.thread(), m.Fields, []Field{
		{"MIME-Version", "1.0"},
		{"Content-Type", `multipart/alternative; boundary="` + boundary + `"`},
	})
	for _, f := range slices.Backward(fields) {
		if f.Value != "" {
			h.Add(f.Name, f.Value) // before the others
		}
	}
	var b bytes.Buffer
	w, err := message.CreateWriter(&b, h)
	if err != nil {
		return nil, err
	}
	for _, p := range []struct{ kind, text string }{{"text/plain", m.Text}, {"text/html", m.HTML}} {
		if err := part(w, p.kind, p.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return protect(bytes.ReplaceAll(b.Bytes(), []byte("\r\n"), []byte("\n"))), nil
}

func (m *Message) to() string {
	var list []string
	for _, a := range m.To {
		if a.Name == "" {
			list = append(list, Token(a.Address))
		} else {
			list = append(list, Phrase(a.Name)+" <"+Token(a.Address)+">")
		}
	}
	return strings.Join(list, ", ")
}

func (m *Message) thread() []Field {
	if len(m.References) == 0 {
		return nil
	}
	return []Field{{"In-Reply-To", ids(m.References[len(m.References)-1])}, {"References", ids(m.References...)}}
}

// ids formats message IDs, or URLs, for a header.
func ids(list ...string) string {
	var b []string
	for _, id := range list {
		if id = Token(id); id != "" {
			b = append(b, "<"+id+">")
		}
	}
	return strings.Join(b, " ")
}

// part writes one of the two parts.
func part(w *message.Writer, kind, text string) error {
	var h message.Header
	h.Add("Content-Transfer-Encoding", encoding(text))
	h.Add("Content-Type", kind+"; charset=utf-8")
	p, err := w.CreatePart(h)
	if err != nil {
		return err
	}
	if _, err := p.Write([]byte(text)); err != nil {
		return err
	}
	return p.Close()
}

// encoding returns base64 if text would be unreadable as quoted-printable, else quoted-printable.
func encoding(text string) string {
	if mostlyOdd(text) {
		return "base64"
	}
	return "quoted-printable"
}

// mostlyOdd reports whether more than a quarter of a text is not ASCII, so that it would be
// unreadable as quoted-printable.
func mostlyOdd(text string) bool {
	odd := 0
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			odd++
		}
	}
	return odd > len(text)/4
}

// protect encodes lines of quoted-printable that some programs on the way would misread: "From "
// at the beginning, also after ">" of a mailbox, and a line that is only a dot. Other text of a
// message never has such lines.
func protect(b []byte) []byte {
	if !bytes.Contains(b, []byte("From ")) && !bytes.Contains(b, []byte("\n.\n")) { // as in most messages
		return b
	}
	return misread().ReplaceAllFunc(b, func(line []byte) []byte {
		if len(line) == 1 {
			return []byte("=2E")
		}
		quotes, rest, _ := bytes.Cut(line, []byte("F"))
		escape := "=46"
		if len(line)+2 > 76 {
			escape += "=\n"
		}
		return slices.Concat(quotes, []byte(escape), rest)
	})
}

// misread matches such a line.
var misread = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(?:>*From .*|\.)$`) })

// maxWords is the maximum number of bytes of untrusted text in a header field.
const maxWords = 240

// Brief cuts a line to maxWords bytes. It reports whether the line was short enough.
func Brief(s string) (string, bool) {
	s = termsafe.Squeeze(termsafe.Brief(s))
	if len(s) <= maxWords {
		return s, true
	}
	return strings.TrimRight(strings.ToValidUTF8(s[:maxWords-len("…")], ""), " ") + "…", false
}

// Words encodes text for an unstructured field (RFC 2047, 5 (1)).
func Words(s string) string {
	s, _ = Brief(s)
	if !isASCII(s) || strings.Contains(s, "=?") {
		return encoded(s)
	}
	return s
}

// Phrase encodes text as the display name of an address (RFC 5322, 3.2.5; RFC 2047, 5 (3)).
func Phrase(s string) string {
	s, _ = Brief(s)
	switch {
	case s == "":
		return ""
	case !isASCII(s) || strings.Contains(s, "=?"):
		return encoded(s)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// maxEncoded is the maximum number of bytes of text in an encoded word. With it, a line has at most 76
// characters, including the name of the field (RFC 2047, 2).
const maxEncoded = 39

// encoded encodes text as encoded words in base64 without splitting a character. These may stand in a
// phrase, too (RFC 2047, 5 (3)).
func encoded(s string) string {
	var words []string
	for s != "" {
		n := min(maxEncoded, len(s))
		for n > 1 && n < len(s) && !utf8.RuneStart(s[n]) {
			n--
		}
		words = append(words, "=?utf-8?B?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}

// maxToken leaves room for the name of the field on the longest line of mail, 998 characters (RFC
// 5322, 2.1.1).
const maxToken = 900

// Token returns a URL or an address for a header, "" if it is invalid or too long: it cannot be cut.
func Token(s string) string {
	if len(s) > maxToken || !isASCII(s) || strings.ContainsAny(s, ` <>"\`) {
		return ""
	}
	return s
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f })
}
