// Package charset decodes documents of the web to UTF-8. Evidence in the bytes precedes labels,
// and labels precede guesses.
package charset

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// Problem is an uncertain decision, or a part that could not be decoded. Line is from 1, or 0 if
// unknown.
type Problem struct {
	Line int
	Text string
}

// Decode converts a text in any charset to UTF-8, without a byte order mark. The charset of an
// HTTP Content-Type (may be empty) precedes the charset of an XML declaration in the text. Both
// precede a guess from the bytes: UTF-8 with stray bytes, a charset of eastern Asia, Cyrillic,
// Greek, Hebrew, Arabic, Thai, central Europe, Turkish or Baltic, else windows-1252. Bytes
// without a meaning become U+FFFD. The result is valid UTF-8, may share memory with b, and has at
// most three times the size of b.
func Decode(b []byte, contentType string) (text []byte, problems []Problem) {
	text, problems = decode(b, contentType)
	for bytes.HasPrefix(text, byteOrderMark) {
		text = text[len(byteOrderMark):]
	}
	return text, problems
}

var byteOrderMark = []byte("\uFEFF")

func decode(b []byte, contentType string) ([]byte, []Problem) {
	if enc, skip := byteOrder(b); enc != nil {
		out, bad := decodeWith(enc, b[skip:])
		return out, damaged(bad)
	}
	if rest, ok := bytes.CutPrefix(b, byteOrderMark); ok {
		return countUTF8(rest).read(rest)
	}
	ascii := isASCII(b)
	if ascii && bytes.IndexByte(b, 0x1b) < 0 && !bytes.Contains(b, []byte("~{")) {
		return b, nil // the same in all remaining charsets
	}
	u := utf8Count{end: len(b)}
	if !utf8.Valid(b) {
		u = countUTF8(b)
	} else if !ascii {
		u.good = 1 // at least
	}
	out, problems := u.byLabel(b, ascii, contentTypeCharset(contentType), declaredCharset(b))
	if out != nil {
		return out, problems
	}
	if u.bad > 0 && u.good <= u.bad {
		if enc, name := detect(b); enc != nil {
			if out, bad := decodeWith(enc, b); fits(out, bad) {
				return out, append(problems,
					Problem{Text: "the document declares no charset that fits; from its bytes it was read as " + name})
			}
		}
	}
	out, mended := u.read(b)
	return out, append(problems, mended...)
}

// byLabel decodes b by the first label that is allowed and fits, or returns nil.
func (u utf8Count) byLabel(b []byte, ascii bool, labels ...string) (out []byte, problems []Problem) {
	for _, label := range labels {
		enc, name := lookup(label)
		if enc == nil && label != "" && (u.bad > 0 || u.end < len(b)) {
			problems = append(problems, Problem{Text: fmt.Sprintf("the charset %.40q is unknown", label)})
		}
		if enc == nil || !u.allows(name) || ascii && !escapes(name) {
			continue
		}
		if out, bad := decodeWith(enc, b); bad == 0 || !u.mostly() && fits(out, bad) {
			return out, append(problems, damaged(bad)...)
		}
	}
	return nil, problems
}

// damaged returns the problem that n characters could not be decoded.
func damaged(n int) []Problem {
	if n == 0 {
		return nil
	}
	return []Problem{{Text: fmt.Sprintf("%d damaged characters were replaced", n)}}
}

// fits reports whether a decoded text is plausible: at most one in twenty characters beyond ASCII
// is bad.
func fits(text []byte, bad int) bool {
	if bad == 0 {
		return true
	}
	foreign := 0
	for _, c := range text {
		if c >= 0xC0 { // begins a character
			foreign++
		}
	}
	return bad*20 <= foreign
}

// detectable maps the library's names of charsets to the charsets used here, mostly supersets:
// charsets of feeds without a label. [detectLatin] detects the charsets of Western alphabets.
// Nobody writes feeds in MacCyrillic, but Ukrainian in windows-1251 is detected as such.
var detectable = sync.OnceValue(func() map[string]found {
	return map[string]found{
		"SHIFT_JIS": {"shift_jis", 0.5}, "CP932": {"shift_jis", 0.5}, "EUC-JP": {"euc-jp", 0.5},
		"GB2312": {"gb18030", 0.5}, "Big5": {"big5", 0.5}, "EUC-KR": {"euc-kr", 0.5}, "CP949": {"euc-kr", 0.5},
		"KOI8-R": {"koi8-u", 0.85}, "Windows-1251": {"windows-1251", 0.85}, "MacCyrillic": {"windows-1251", 0.85},
		"ISO-8859-5": {"iso-8859-5", 0.85}, "ISO-8859-7": {"iso-8859-7", 0.85}, "Windows-1253": {"windows-1253", 0.85},
		"IBM866": {"ibm866", 0.85}, "TIS-620": {"windows-874", 0.8}, "Windows-1255": {"windows-1255", 0.85},
		"ISO-8859-8": {"windows-1255", 0.85},
	}
})

// found is a charset that can be detected.
type found struct {
	name       string
	confidence float64 // minimum; Western texts have none for the first ones, and at most 0.73
}

// maxDetect is the number of bytes used to detect a charset.
const maxDetect = 16 << 10

// detect detects the charset of a text without a label from its bytes. It returns nil if no
// charset is likely enough.
func detect(b []byte) (enc encoding.Encoding, name string) {
	// In all detected charsets, a character begins with a byte beyond ASCII, so the first such
	// byte begins one.
	i := max(bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }), 0)
	from := b[i:]
	from = from[:min(len(from), maxDetect)]
	for _, result := range chardet.DetectAll(from) {
		d, ok := detectable()[result.Encoding]
		switch {
		case !ok || result.Confidence < d.confidence:
		case multibyte(d.name) && mostlyAlone(from):
		default:
			return lookup(d.name)
		}
	}
	i = max(i-1, 0) // include the letter before it
	if latin := detectLatin(b[i:min(i+maxDetect, len(b))]); latin != nil {
		name, _ = htmlindex.Name(latin)
		return latin, name
	}
	return nil, ""
}

// mostlyAlone reports whether most bytes beyond ASCII stand between two ASCII bytes, like Western
// letters, and unlike the bytes of eastern Asia.
func mostlyAlone(b []byte) bool {
	high, alone := 0, 0
	for i, c := range b {
		if c < utf8.RuneSelf {
			continue
		}
		if high++; (i == 0 || b[i-1] < utf8.RuneSelf) && (i+1 == len(b) || b[i+1] < utf8.RuneSelf) {
			alone++
		}
	}
	return alone*2 > high
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// byteOrder recognises UTF-32 and UTF-16. It looks for a BOM, first that of UTF-32, which begins
// with UTF-16's. Without one, it looks for zero bytes around the first character, which is ASCII
// in all documents that are read.
func byteOrder(b []byte) (enc encoding.Encoding, bom int) {
	orders := []struct {
		enc   encoding.Encoding
		bom   string
		ascii int    // position of the first character
		zeros string // the zero bytes among the first four
	}{
		{utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), "\xFF\xFE\x00\x00", 0, "x000"},
		{utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), "\x00\x00\xFE\xFF", 3, "000x"},
		{xunicode.UTF16(xunicode.LittleEndian, xunicode.IgnoreBOM), "\xFF\xFE", 0, "x0x0"},
		{xunicode.UTF16(xunicode.BigEndian, xunicode.IgnoreBOM), "\xFE\xFF", 1, "0x0x"},
	}
	zeros := ""
	for _, c := range b[:min(len(b), 4)] {
		if c == 0 {
			zeros += "0"
		} else {
			zeros += "x"
		}
	}
	for _, o := range orders {
		switch {
		case bytes.HasPrefix(b, []byte(o.bom)):
			return o.enc, len(o.bom)
		case zeros == o.zeros && strings.IndexByte("<{ \t\r\n", b[o.ascii]) >= 0:
			return o.enc, 0
		}
	}
	return nil, 0
}

// decodeWith decodes b, and counts characters that cannot be decoded. A character that the end of
// the document cuts off is dropped and not counted.
func decodeWith(enc encoding.Encoding, b []byte) (out []byte, bad int) {
	out, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		return nil, 1
	}
	out = bytes.TrimSuffix(out, []byte("\uFFFD"))
	return out, bytes.Count(out, []byte("\uFFFD"))
}

// charsetParam is more lenient than mime.ParseMediaType.
var charsetParam = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)charset=["' ]*([^"'; ,]*)`) })

func contentTypeCharset(ct string) string {
	if m := charsetParam().FindStringSubmatch(ct); m != nil {
		return m[1]
	}
	return ""
}

// xmlEncoding matches the encoding of an XML declaration, also after white space or junk, which
// XML does not allow.
var xmlEncoding = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<\?(?:xml|XML)[^>]*?(?i:encoding)\s*=[\s"']*([^\s"'?>]*)`)
})

func declaredCharset(b []byte) string {
	if m := xmlEncoding().FindSubmatch(b[:min(len(b), 1024)]); m != nil {
		return string(m[1])
	}
	return ""
}

// charsetAliases are unregistered labels that feeds use.
var charsetAliases = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"utf8mb4": "utf-8", "utf8mb3": "utf-8", "cp65001": "utf-8", "unicode": "utf-8",
		"cp932": "shift_jis", "cp936": "gb18030", "cp949": "euc-kr", "cp950": "big5",
		"cp1361": "johab", "macroman": "macintosh", "mac-roman": "macintosh",
		"latin-1": "windows-1252", "latin1": "windows-1252", "ansi": "windows-1252",
		"utf-7": "", "us-ascii": "windows-1252",
	}
})

// lookup returns the charset of a label, and its name in lower case. enc is nil if the label is
// unknown.
func lookup(label string) (enc encoding.Encoding, name string) {
	label = strings.ToLower(strings.TrimSpace(label))
	if a, ok := charsetAliases()[label]; ok {
		label = a
	}
	if label == "" || len(label) > 40 {
		return nil, ""
	}
	candidates := []string{label}
	digits := strings.TrimLeft(strings.TrimPrefix(label, "cp"), "-_")
	if digits != label && digits != "" && strings.Trim(digits, "0123456789") == "" {
		candidates = append(candidates, "windows-"+digits, "ibm"+digits)
	}
	for _, c := range candidates {
		if strings.HasPrefix(c, "utf-32") {
			return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), c
		}
		if e, err := htmlindex.Get(c); err == nil {
			n, _ := htmlindex.Name(e)
			if n == "replacement" {
				continue
			}
			if n == "gbk" { // gb18030 is its superset
				return simplifiedchinese.GB18030, "gb18030"
			}
			return e, n
		}
		if e, err := ianaindex.IANA.Encoding(c); err == nil && e != nil {
			return e, c
		}
	}
	return nil, ""
}

// multibyte reports whether a charset has several bytes for some characters. Text in it may be
// valid UTF-8 by chance, so its label counts.
func multibyte(name string) bool {
	switch name {
	case "gb18030", "gbk", "big5", "euc-jp", "euc-kr", "shift_jis", "iso-2022-jp", "hz-gb-2312":
		return true
	}
	return false
}

// escapes reports whether all bytes of a charset are ASCII.
func escapes(name string) bool { return name == "iso-2022-jp" || name == "hz-gb-2312" }

// utf8Count counts the UTF-8 sequences of a text.
type utf8Count struct {
	good, bad int // valid sequences beyond ASCII, and other bytes
	first     int // position of the first bad byte
	end       int // end of the text without an incomplete last character
}

func countUTF8(b []byte) utf8Count {
	u := utf8Count{end: len(b)}
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r != utf8.RuneError || n > 1:
			u.good++
		case !utf8.FullRune(b[i:]):
			u.end = i
			return u
		default:
			if u.bad == 0 {
				u.first = i
			}
			u.bad++
		}
		i += n
	}
	return u
}

// allows reports whether the label of a charset may count. A single-byte charset does not count
// if the text looks like UTF-8, since such a label is often wrong. UTF-16 and UTF-32 do not
// count, and neither does UTF-8, since the bytes prove these.
func (u utf8Count) allows(name string) bool {
	switch {
	case name == "utf-8", strings.HasPrefix(name, "utf-16"), strings.HasPrefix(name, "utf-32"):
		return false
	}
	return !u.mostly() || multibyte(name)
}

// mostly reports whether a text is UTF-8 with stray bytes. A text in another charset has few
// UTF-8 sequences by chance.
func (u utf8Count) mostly() bool { return u.good > 4*u.bad }

// read decodes bytes that no charset explains. If most sequences are UTF-8, stray bytes are
// windows-1252. Otherwise all bytes are windows-1252. Valid UTF-8 is returned unchanged.
func (u utf8Count) read(b []byte) ([]byte, []Problem) {
	b = b[:u.end]
	if u.bad == 0 {
		return b, nil
	}
	asUTF8 := u.good > u.bad
	out := make([]byte, 0, len(b)+2*u.bad+len(b)/8)
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 || !asUTF8 {
			r, n = charmap.Windows1252.DecodeByte(b[i]), 1
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	w := Problem{Line: 1 + bytes.Count(b[:u.first], []byte("\n"))}
	if asUTF8 {
		w.Text = fmt.Sprintf("%d bytes that are not UTF-8 were read as windows-1252", u.bad)
	} else {
		w.Text = "the document declares no charset that fits; it was read as windows-1252"
	}
	return out, []Problem{w}
}
