package feedconv

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/lektordir/lektor/internal/lazy"
)

// decodeBytes caps, gunzips and converts the document to UTF-8 without BOM.
// A document over the cap is a *LimitError, an empty one a *NotFeedError. The
// result is valid UTF-8; it may share memory with raw.
func decodeBytes(raw []byte, opts Options) (text []byte, warnings []Warning, err error) {
	limit := opts.maxBytes()
	if int64(len(raw)) > limit {
		return nil, nil, &LimitError{Limit: "bytes", Max: limit}
	}
	if len(raw) >= 3 && raw[0] == 0x1f && raw[1] == 0x8b && raw[2] == 8 {
		plain, err := gunzip(raw, limit)
		switch {
		case int64(len(plain)) > limit:
			return nil, nil, &LimitError{Limit: "bytes after decompression", Max: limit}
		case err != nil && len(plain) == 0:
			return nil, nil, &NotFeedError{What: "damaged gzip data"}
		case err != nil:
			warnings = append(warnings, Warning{Text: "the gzip data ends early or is damaged; what could be read is used"})
		}
		raw = plain
	}
	text, w := toUTF8(raw, opts.ContentType, opts.reading)
	text = cutBOM(text)
	warnings = append(warnings, w...)
	if blank(text) {
		return nil, warnings, &NotFeedError{What: "an empty document"}
	}
	return text, warnings, nil
}

// DecodeText gives a text in UTF-8, without a byte order mark, whatever charset
// it is in. What the bytes themselves prove goes before the charset of an HTTP
// Content-Type (empty when there is none), that before an XML declaration in the
// text, and that before what the bytes look like: UTF-8 but for stray bytes, a
// charset of eastern Asia, Cyrillic, Greek, Hebrew, Arabic, Thai, central Europe,
// Turkish or Baltic, else windows-1252. Bytes that fit
// nowhere become U+FFFD; warnings tell what was not certain. The result is valid
// UTF-8; it may share memory with b. There is no limit: the result has at most
// three times the size of b.
func DecodeText(b []byte, contentType string) (text []byte, warnings []Warning) {
	text, warnings = toUTF8(b, contentType, nil)
	return cutBOM(text), warnings
}

func cutBOM(text []byte) []byte {
	for bytes.HasPrefix(text, []byte("\uFEFF")) {
		text = text[3:]
	}
	return text
}

// blank reports whether nothing but white space and NULs is in b.
func blank(b []byte) bool {
	for i, c := range b {
		switch c {
		case ' ', '\t', '\n', '\r', 0, '\v', '\f':
		default:
			return len(bytes.TrimFunc(b[i:], func(r rune) bool {
				return unicode.IsSpace(r) || r == 0 || r == 0xFEFF
			})) == 0
		}
	}
	return true
}

// gunzip decompresses up to one byte more than the limit. It returns the bytes before an
// error along with it, so that the entries before a cut are not lost.
func gunzip(raw []byte, limit int64) ([]byte, error) {
	zr, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	// A member's declared size is not to be believed; grow with what comes.
	var buf bytes.Buffer
	_, err = io.Copy(&buf, io.LimitReader(zr, limit+1))
	return buf.Bytes(), err
}

// toUTF8 finds the document's charset. What the bytes themselves prove goes
// before what labels say, since labels are wrong more often than bytes are.
func toUTF8(b []byte, contentType string, r *reading) (text []byte, warnings []Warning) {
	if enc, skip := byteOrder(b); enc != nil {
		out, bad := decodeWith(enc, b[skip:])
		if bad > 0 {
			return out, []Warning{damaged(bad)}
		}
		return out, nil
	}
	if bytes.HasPrefix(b, []byte("\xEF\xBB\xBF")) {
		b = b[3:]
		if utf8.Valid(b) {
			return b, nil
		}
		return mixed(b)
	}
	valid, ascii := utf8.Valid(b), isASCII(b)
	if valid && ascii && bytes.IndexByte(b, 0x1b) < 0 && !bytes.Contains(b, []byte("~{")) {
		return b, nil // the same in every charset that is left
	}
	var u utf8Count
	if !valid {
		u = countUTF8(b)
	} else if !ascii {
		u.good = 1 // at least
	}
	for _, label := range []string{contentTypeCharset(contentType), declaredCharset(b)} {
		if label == "" {
			continue
		}
		enc, name := lookupCharset(label)
		switch {
		case enc == nil:
			if !valid {
				warnings = append(warnings, Warning{Text: fmt.Sprintf("the charset %.40q is unknown", label)})
			}
			continue
		case name == "utf-8", strings.HasPrefix(name, "utf-16"), strings.HasPrefix(name, "utf-32"):
			// UTF-8 is judged below; the others would have shown above.
			continue
		case u.mostly() && !multibyte(name):
			continue
		case valid && ascii && !escapes(name):
			continue
		}
		out, bad := decodeWith(enc, b)
		if bad == 0 {
			return out, warnings
		}
		if !u.mostly() && fits(out, bad) {
			return out, append(warnings, damaged(bad))
		}
	}
	if valid {
		return b, nil
	}
	if u.good > u.bad || u.bad == 0 {
		out, w := u.read(b)
		return out, append(warnings, w...)
	}
	if enc, name := r.detect(b); enc != nil {
		if out, bad := decodeWith(enc, b); fits(out, bad) {
			return out, append(warnings, Warning{Text: fmt.Sprintf("the document says no charset that fits; by its looks it was read as %s", name)})
		}
	}
	out, w := u.read(b)
	return out, append(warnings, w...)
}

// damaged is the warning for characters that could not be decoded.
func damaged(n int) Warning {
	return Warning{Text: fmt.Sprintf("%d damaged characters were replaced", n)}
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
// superset. Those of the alphabets of the West are told by [detectLatin]. Nobody
// writes feeds in MacCyrillic; it is what Ukrainian in windows-1251 is taken for.
var detectable = sync.OnceValue(func() map[string]charsetFound {
	return map[string]charsetFound{
		"SHIFT_JIS": {"shift_jis", 0.5, false}, "CP932": {"shift_jis", 0.5, false}, "EUC-JP": {"euc-jp", 0.5, false},
		"GB2312": {"gb18030", 0.5, false}, "Big5": {"big5", 0.5, false}, "EUC-KR": {"euc-kr", 0.5, false}, "CP949": {"euc-kr", 0.5, false},
		"KOI8-R": {"koi8-u", 0.85, false}, "Windows-1251": {"windows-1251", 0.85, false}, "MacCyrillic": {"windows-1251", 0.85, false},
		"ISO-8859-5": {"iso-8859-5", 0.85, false}, "ISO-8859-7": {"iso-8859-7", 0.85, false}, "Windows-1253": {"windows-1253", 0.85, false},
		"IBM866": {"ibm866", 0.85, true}, "TIS-620": {"windows-874", 0.8, true}, "Windows-1255": {"windows-1255", 0.85, true}, "ISO-8859-8": {"windows-1255", 0.85, true},
	}
})

// charsetFound is a charset that was detected.
type charsetFound struct {
	name       string
	confidence float64 // the least; Western texts reach none for the first, and 0.73 at all
	newer      bool    // than the first versions of this package, which did not look for it
}

// maxDetect is how many bytes are looked at to find a charset.
const maxDetect = 16 << 10

// detect finds the charset of a text that says none by what its bytes look like,
// nil where nothing is likely enough.
func (r *reading) detect(b []byte) (enc encoding.Encoding, name string) {
	// In every charset that is looked for a character begins with a byte beyond
	// ASCII, and the first one is a beginning.
	i := max(bytes.IndexFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }), 0)
	from := b[i:]
	from = from[:min(len(from), maxDetect)]
	for _, result := range chardet.DetectAll(from) {
		d, ok := detectable()[result.Encoding]
		switch {
		case !ok || result.Confidence < d.confidence:
		case d.newer && !r.newer():
		case multibyte(d.name) && mostlyAlone(from) && r.newer():
		default:
			return lookupCharset(d.name)
		}
	}
	i = max(i-1, 0) // the letter before it
	if name = detectLatin(b[i:min(i+maxDetect, len(b))]); name != "" && r.newer() {
		return lookupCharset(name)
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
		zeros string // of the first four bytes, those that are zero
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
var charsetParam = lazy.Regexp(`(?i)charset=["' ]*([^"'; ,]*)`)

func contentTypeCharset(ct string) string {
	if m := charsetParam().FindStringSubmatch(ct); m != nil {
		return m[1]
	}
	return ""
}

// xmlEncoding matches the encoding of an XML declaration, also of one behind
// white space or junk, which XML does not allow.
var xmlEncoding = lazy.Regexp(`<\?(?:xml|XML)[^>]*?(?i:encoding)\s*=[\s"']*([^\s"'?>]*)`)

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

// lookupCharset finds a charset by its label. The name is in lower case; nil
// stands for an unknown one.
func lookupCharset(label string) (enc encoding.Encoding, name string) {
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

// multibyte tells the charsets in which bytes that are valid UTF-8 by chance
// are likely enough for the label to be believed.
func multibyte(name string) bool {
	switch name {
	case "gb18030", "gbk", "big5", "euc-jp", "euc-kr", "shift_jis", "iso-2022-jp", "hz-gb-2312":
		return true
	}
	return false
}

// escapes tells the charsets that are all ASCII bytes.
func escapes(name string) bool { return name == "iso-2022-jp" || name == "hz-gb-2312" }

// utf8Count tells how much of a text is UTF-8.
type utf8Count struct {
	good, bad int // sequences beyond ASCII, and bytes of none
	first     int // the place of the first bad one
	end       int // of the text without a character that its end cuts off
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

// mostly reports whether a text is UTF-8 but for stray bytes. By chance a text of
// another charset has few sequences of UTF-8.
func (u utf8Count) mostly() bool { return u.good > 4*u.bad }

// mixed reads bytes that are not valid UTF-8 and that no charset explains: UTF-8
// with stray windows-1252 in it where most sequences are good, else windows-1252
// altogether.
func mixed(b []byte) ([]byte, []Warning) { return countUTF8(b).read(b) }

func (u utf8Count) read(b []byte) ([]byte, []Warning) {
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
	w := Warning{Line: 1 + bytes.Count(b[:u.first], []byte("\n"))}
	if asUTF8 {
		w.Text = fmt.Sprintf("%d bytes that are not UTF-8 were read as windows-1252", u.bad)
	} else {
		w.Text = "the document says no charset that fits; it was read as windows-1252"
	}
	return out, []Warning{w}
}
