// Package charset decodes the text of documents of the web: what their bytes prove goes
// before what labels say, and that before what the bytes look like.
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

// Problem is what was not certain of a text, or could not be decoded. Line is counted
// from 1, 0 if the place is not known.
type Problem struct {
	Line int
	Text string
}

// Decode returns a text in UTF-8, without a byte order mark, whatever charset it is in.
// The charset of an HTTP Content-Type (empty if there is none) goes before that of an XML
// declaration in the text, and both before what the bytes look like: UTF-8 but for stray
// bytes, a charset of eastern Asia, Cyrillic, Greek, Hebrew, Arabic, Thai, central Europe,
// Turkish or Baltic, else windows-1252. Bytes that fit nowhere become U+FFFD. The result
// is valid UTF-8, may share memory with b, and has at most three times the size of b.
//
// newer is called if a charset is found that the first versions of this module did not
// look for, and reports whether it counts; nil means that it does.
func Decode(b []byte, contentType string, newer func() bool) (text []byte, problems []Problem) {
	if newer == nil {
		newer = func() bool { return true }
	}
	text, problems = decode(b, contentType, newer)
	for bytes.HasPrefix(text, byteOrderMark) {
		text = text[len(byteOrderMark):]
	}
	return text, problems
}

var byteOrderMark = []byte("\uFEFF")

func decode(b []byte, contentType string, newer func() bool) ([]byte, []Problem) {
	if enc, skip := byteOrder(b); enc != nil {
		out, bad := decodeWith(enc, b[skip:])
		return out, damaged(bad)
	}
	if rest, ok := bytes.CutPrefix(b, byteOrderMark); ok {
		return Mixed(rest)
	}
	ascii := isASCII(b)
	if ascii && bytes.IndexByte(b, 0x1b) < 0 && !bytes.Contains(b, []byte("~{")) {
		return b, nil // the same in every charset that is left
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
		if enc, name := detect(b, newer); enc != nil {
			if out, bad := decodeWith(enc, b); fits(out, bad) {
				return out, append(problems, Problem{Text: "the document says no charset that fits; by its looks it was read as " + name})
			}
		}
	}
	out, mended := u.read(b)
	return out, append(problems, mended...)
}

// byLabel decodes b by the first of its labels that may count and that fits, nil if none
// does.
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

// damaged is the problem of n characters that could not be decoded.
func damaged(n int) []Problem {
	if n == 0 {
		return nil
	}
	return []Problem{{Text: fmt.Sprintf("%d damaged characters were replaced", n)}}
}

// fits reports whether so many characters of a decoded text are bad that it is
// in another charset: more than one in twenty beyond ASCII.
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

// detectable are the charsets that are worth detecting, by the names of the
// library, and what stands for them here: those of feeds that say none, as a
// superset. [detectLatin] detects the charsets of Western alphabets. Nobody
// writes feeds in MacCyrillic; it is what Ukrainian in windows-1251 is taken for.
var detectable = sync.OnceValue(func() map[string]found {
	return map[string]found{
		"SHIFT_JIS": {"shift_jis", 0.5, false}, "CP932": {"shift_jis", 0.5, false}, "EUC-JP": {"euc-jp", 0.5, false},
		"GB2312": {"gb18030", 0.5, false}, "Big5": {"big5", 0.5, false}, "EUC-KR": {"euc-kr", 0.5, false}, "CP949": {"euc-kr", 0.5, false},
		"KOI8-R": {"koi8-u", 0.85, false}, "Windows-1251": {"windows-1251", 0.85, false}, "MacCyrillic": {"windows-1251", 0.85, false},
		"ISO-8859-5": {"iso-8859-5", 0.85, false}, "ISO-8859-7": {"iso-8859-7", 0.85, false}, "Windows-1253": {"windows-1253", 0.85, false},
		"IBM866": {"ibm866", 0.85, true}, "TIS-620": {"windows-874", 0.8, true}, "Windows-1255": {"windows-1255", 0.85, true}, "ISO-8859-8": {"windows-1255", 0.85, true},
	}
})

// found is a charset that was detected.
type found struct {
	name       string
	confidence float64 // the least; Western texts reach none for the first, and 0.73 at all
	newer      bool    // than the first versions of this package, which did not look for it
}

// maxDetect is how many bytes are looked at to find a charset.
const maxDetect = 16 << 10

// detect finds the charset of a text that says none by what its bytes look like,
// nil where nothing is likely enough.
func detect(b []byte, newer func() bool) (enc encoding.Encoding, name string) {
	// In every charset that is looked for a character begins with a byte beyond
	// ASCII, and the first one is a beginning.
	i := max(bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }), 0)
	from := b[i:]
	from = from[:min(len(from), maxDetect)]
	for _, result := range chardet.DetectAll(from) {
		d, ok := detectable()[result.Encoding]
		switch {
		case !ok || result.Confidence < d.confidence:
		case d.newer && !newer():
		case multibyte(d.name) && mostlyAlone(from) && newer():
		default:
			return lookup(d.name)
		}
	}
	i = max(i-1, 0) // the letter before it
	if name = detectLatin(b[i:min(i+maxDetect, len(b))]); name != "" && newer() {
		return lookup(name)
	}
	return nil, ""
}

// mostlyAlone reports whether most bytes beyond ASCII stand between two of ASCII, as
// the letters of the West do and the bytes of eastern Asia do not.
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

// byteOrder recognises UTF-32 and UTF-16 by a BOM, of which UTF-32's is tried
// first since it starts with UTF-16's, or by the zero bytes around the first
// character, which is in ASCII in everything that we read.
func byteOrder(b []byte) (enc encoding.Encoding, bom int) {
	orders := []struct {
		enc   encoding.Encoding
		bom   string
		ascii int    // the place of the first character
		zeros string // which of the first four bytes are zero
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

// decodeWith decodes b and counts what could not be. A character cut off by
// the end of the document is dropped and does not count.
func decodeWith(enc encoding.Encoding, b []byte) (out []byte, bad int) {
	out, err := enc.NewDecoder().Bytes(b)
	if err != nil {
		return nil, 1
	}
	out = bytes.TrimSuffix(out, []byte("\uFFFD"))
	return out, bytes.Count(out, []byte("\uFFFD"))
}

// charsetParam is more lenient than mime.ParseMediaType is.
var charsetParam = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)charset=["' ]*([^"'; ,]*)`) })

func contentTypeCharset(ct string) string {
	if m := charsetParam().FindStringSubmatch(ct); m != nil {
		return m[1]
	}
	return ""
}

// xmlEncoding matches the encoding of an XML declaration, also of one behind
// white space or junk, which XML does not allow.
var xmlEncoding = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`<\?(?:xml|XML)[^>]*?(?i:encoding)\s*=[\s"']*([^\s"'?>]*)`)
})

func declaredCharset(b []byte) string {
	if m := xmlEncoding().FindSubmatch(b[:min(len(b), 1024)]); m != nil {
		return string(m[1])
	}
	return ""
}

// charsetAliases are labels seen in feeds that no register has.
var charsetAliases = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"utf8mb4": "utf-8", "utf8mb3": "utf-8", "cp65001": "utf-8", "unicode": "utf-8",
		"cp932": "shift_jis", "cp936": "gb18030", "cp949": "euc-kr", "cp950": "big5",
		"cp1361": "johab", "macroman": "macintosh", "mac-roman": "macintosh",
		"latin-1": "windows-1252", "latin1": "windows-1252", "ansi": "windows-1252",
		"utf-7": "", "us-ascii": "windows-1252",
	}
})

// lookup finds a charset by its label. The name is in lower case; nil
// stands for an unknown one.
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

// multibyte reports whether a charset is one in which bytes that are valid UTF-8 by chance
// are likely enough for the label to be believed.
func multibyte(name string) bool {
	switch name {
	case "gb18030", "gbk", "big5", "euc-jp", "euc-kr", "shift_jis", "iso-2022-jp", "hz-gb-2312":
		return true
	}
	return false
}

// escapes reports whether all bytes of a charset are ASCII.
func escapes(name string) bool { return name == "iso-2022-jp" || name == "hz-gb-2312" }

// utf8Count is how much of a text is UTF-8.
type utf8Count struct {
	good, bad int // sequences beyond ASCII, and bytes of none
	first     int // the place of the first bad one
	end       int // end of the text without a character that is cut off
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

// allows reports whether the label of a charset may count. The label of a charset in
// which each byte is a character does not if the text looks like UTF-8, which is judged by its
// bytes alone; the texts in UTF-16 and UTF-32 are known by theirs.
func (u utf8Count) allows(name string) bool {
	switch {
	case name == "utf-8", strings.HasPrefix(name, "utf-16"), strings.HasPrefix(name, "utf-32"):
		return false
	}
	return !u.mostly() || multibyte(name)
}

// mostly reports whether a text is UTF-8 but for stray bytes. By chance a text of
// another charset has few sequences of UTF-8.
func (u utf8Count) mostly() bool { return u.good > 4*u.bad }

// Mixed reads bytes that no charset explains: UTF-8 with stray windows-1252 in it where
// most sequences are good, else windows-1252 altogether. Valid UTF-8 is returned as it is.
func Mixed(b []byte) ([]byte, []Problem) {
	if utf8.Valid(b) {
		return b, nil
	}
	return countUTF8(b).read(b)
}

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
		w.Text = "the document says no charset that fits; it was read as windows-1252"
	}
	return out, []Problem{w}
}
