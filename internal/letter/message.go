// Package letter makes letters: an entry as a message of RFC 5322 that mail programs
// keep and show, and the HTML that such a message, or a digest, consists of. It knows
// no disk and no clock: of equal entries it makes equal bytes.
//
// What a stranger wrote ends no line of a header, begins no part, and is never read as
// an encoded word that he made himself. No line is longer than mail allows, none
// begins with "From ", and the text is ASCII throughout, so that nothing on its way
// has a reason to change it.
package letter

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message"

	"github.com/lektordir/lektor/internal/termsafe"
)

// Message is a letter in two forms, of which mail programs show the one that they can:
// multipart/alternative (RFC 2046, 5.1.4).
type Message struct {
	From    mail.Address
	To      []*mail.Address // nobody, for what is not sent
	Subject string
	Date    time.Time
	ID      string // without the angle brackets
	// References are the IDs of what stands above it in its thread, the first one
	// first.
	References []string
	// Fields are more of the header. Their values are as [Words], [Phrase] or [Token]
	// gives them; empty ones are left out.
	Fields     []Field
	Text, HTML string
}

// Field is a field of a header.
type Field struct{ Name, Value string }

// boundary cannot stand in what it separates: neither encoding has "=_".
const boundary = "=_lektor"

// Bytes gives the message as mail programs of Unix have it: lines end in "\n".
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

// ids gives message IDs as a header has them.
func ids(list ...string) string {
	var b []string
	for _, id := range list {
		if id = Token(id); id != "" {
			b = append(b, "<"+id+">")
		}
	}
	return strings.Join(b, " ")
}

// part writes one of the two forms.
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

// encoding is the one that makes a text shorter, and if it may be read as it is that
// one.
func encoding(text string) string {
	if mostlyOdd(text) {
		return "base64"
	}
	return "quoted-printable"
}

// mostlyOdd tells whether so much of a text is no ASCII that nobody would read it with
// that encoded by itself.
func mostlyOdd(text string) bool {
	odd := 0
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			odd++
		}
	}
	return odd > len(text)/4
}

// protect encodes in lines of quoted-printable what some programs on the way take for
// something else: "From " at the beginning, also after what mailboxes put before it,
// and a dot that is all there is. Nothing else in a message has such lines.
func protect(b []byte) []byte {
	var out []byte
	done := 0
	for at := 0; at < len(b); {
		end := at + len(b[at:])
		if n := bytes.IndexByte(b[at:], '\n'); n >= 0 {
			end = at + n
		}
		line := b[at:end]
		quotes := len(line) - len(bytes.TrimLeft(line, ">"))
		switch {
		case bytes.HasPrefix(line[quotes:], []byte("From ")):
			out = append(append(append(out, b[done:at]...), line[:quotes]...), "=46"...)
			if len(line)+2 > 76 {
				out = append(out, "=\n"...)
			}
			done = at + quotes + 1
		case string(line) == ".":
			out = append(append(out, b[done:at]...), "=2E"...)
			done = end
		}
		at = end + 1
	}
	if out == nil {
		return b
	}
	return append(out, b[done:]...)
}

// maxWords is how many bytes of a stranger's text a header has at most.
const maxWords = 240

// Brief is so much of a line as a header has of it, and whether that is all.
func Brief(s string) (string, bool) {
	s = termsafe.Squeeze(termsafe.Brief(s))
	if len(s) <= maxWords {
		return s, true
	}
	n := maxWords - len("…")
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.TrimRight(s[:n], " ") + "…", false
}

// Words gives text as a field has it that is for people (RFC 2047, 5 (1)).
func Words(s string) string {
	s, _ = Brief(s)
	if !isASCII(s) || strings.Contains(s, "=?") {
		return encoded(s)
	}
	return s
}

// Phrase gives text as it stands before an address (RFC 5322, 3.2.5; RFC 2047, 5 (3)).
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

// maxEncoded is how much of an encoded word stands between "=?utf-8?Q?" and "?=": so
// that the line is no longer than 76 with the name of the field before it (RFC 2047, 2).
const maxEncoded = 52

// encoded gives text as encoded words, each with whole characters, whatever is in it.
// Only what may stand in a phrase, too, is left as it is (RFC 2047, 5 (3)).
func encoded(s string) string {
	var words []string
	open, kind := "", "Q"
	if mostlyOdd(s) {
		kind = "B"
	}
	flush := func() {
		if open != "" {
			words = append(words, "=?utf-8?"+kind+"?"+open+"?=")
		}
		open = ""
	}
	raw := "" // of the word that is open, in B
	for _, r := range s {
		c := string(r)
		switch {
		case kind == "B":
			if base64.StdEncoding.EncodedLen(len(raw)+len(c)) > maxEncoded {
				flush()
				raw = ""
			}
			raw += c
			open = base64.StdEncoding.EncodeToString([]byte(raw))
			continue
		case r == ' ':
			c = "_"
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("!*+-/", r):
		default:
			c = ""
			for _, b := range []byte(string(r)) {
				c += fmt.Sprintf("=%02X", b)
			}
		}
		if len(open)+len(c) > maxEncoded {
			flush()
		}
		open += c
	}
	flush()
	return strings.Join(words, " ")
}

// maxToken leaves room for a name on the longest line that mail allows, 998 characters
// (RFC 5322, 2.1.1).
const maxToken = 900

// Token gives a URL or an address as a header has it, and "" for what is none or is
// too long: it cannot be cut.
func Token(s string) string {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '<' || s[i] == '>' || s[i] == '"' || s[i] == '\\' {
			return ""
		}
	}
	if len(s) > maxToken {
		return ""
	}
	return s
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
