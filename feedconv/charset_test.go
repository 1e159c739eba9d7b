package feedconv

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	xunicode "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

func gz(t testing.TB, b []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestTidyRule1Bytes(t *testing.T) {
	doc := []byte(item("<title>x</title>"))
	var limit *LimitError
	if _, _, err := decodeBytes(doc, Options{MaxBytes: int64(len(doc)) - 1}); !errors.As(err, &limit) || limit.Limit != "bytes" || limit.Max != int64(len(doc))-1 {
		t.Errorf("over the cap: %v", err)
	}
	if got, _, err := decodeBytes(doc, Options{MaxBytes: int64(len(doc))}); err != nil || !bytes.Equal(got, doc) {
		t.Errorf("at the cap: %v", err)
	}
	if _, _, err := decodeBytes(make([]byte, DefaultMaxBytes+1), Options{}); !errors.As(err, &limit) || limit.Max != DefaultMaxBytes {
		t.Errorf("the default cap: %v", err)
	}
	packed := gz(t, doc)
	if got, w, err := decodeBytes(packed, Options{}); err != nil || !bytes.Equal(got, doc) || len(w) > 0 {
		t.Errorf("gzip: %q %v %v", got, w, err)
	}
	if _, _, err := decodeBytes(gz(t, make([]byte, 1<<20)), Options{MaxBytes: 1 << 16}); !errors.As(err, &limit) || limit.Limit != "bytes after decompression" {
		t.Errorf("gzip bomb: %v", err)
	}
	long := []byte(item(strings.Repeat("<title>abc "+strings.Repeat("def", 9)+"</title>\n", 2000)))
	packed = gz(t, long)
	if got, w, err := decodeBytes(packed[:len(packed)-20], Options{}); err != nil || !bytes.HasPrefix(long, got) || len(got) == 0 || len(w) != 1 {
		t.Errorf("truncated gzip: %d bytes, %v %v", len(got), w, err)
	}
	var nf *NotFeedError
	for _, b := range [][]byte{nil, {}, []byte(" \n\t"), []byte("\xEF\xBB\xBF\n"), {0, 0}, gz(t, nil), []byte("\xFF\xFE"), []byte("\x1f\x8b\x08xx")} {
		if _, _, err := decodeBytes(b, Options{}); !errors.As(err, &nf) || !strings.Contains(nf.What, "empty") && !strings.Contains(nf.What, "gzip") {
			t.Errorf("%q: %v", b, err)
		}
	}
}

func TestTidyRule2Charset(t *testing.T) {
	const latin, cyr, cjk, kor = "Käse für “drei” €", "Привет, мир", "你好，世界。这是中文", "안녕하세요 세계"
	const jap = "日本語のフィードです"
	decl := func(label, s string) string {
		if label == "" {
			return "<rss>" + s + "</rss>"
		}
		return `<?xml version="1.0" encoding="` + label + `"?><rss>` + s + "</rss>"
	}
	with := func(e encoding.Encoding, s string) []byte {
		b, err := e.NewEncoder().Bytes([]byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	u16 := func(e xunicode.Endianness, p xunicode.BOMPolicy) encoding.Encoding { return xunicode.UTF16(e, p) }
	w1252, w1251, gbk := charmap.Windows1252, charmap.Windows1251, simplifiedchinese.GBK
	for _, c := range []struct {
		name string
		raw  []byte
		ct   string
		want string
	}{
		{"utf-8", []byte(decl("utf-8", latin)), "", latin},
		{"BOM", []byte("\uFEFF" + decl("utf-8", latin)), "", latin},
		{"BOM against labels", []byte("\uFEFF" + decl("iso-8859-1", latin)), "text/xml; charset=gbk", latin},
		{"two BOMs", []byte("\uFEFF\uFEFF" + decl("", latin)), "", latin},
		{"utf-8, labelled latin-1", []byte(decl("iso-8859-1", latin)), "text/xml; charset=us-ascii", latin},
		{"utf-8, unknown label", []byte(decl("x-none", latin)), "", latin},
		{"utf-8, labelled utf-16", []byte(decl("utf-16", latin)), "", latin},
		{"ascii, labelled utf-16", []byte(decl("utf-16", "abc")), "text/xml; charset=utf-16le", "abc"},
		{"ascii, labelled gbk", []byte(decl("gbk", "abc")), "", "abc"},
		{"utf-16le BOM", with(u16(xunicode.LittleEndian, xunicode.UseBOM), decl("utf-16", cjk)), "", cjk},
		{"utf-16be BOM", with(u16(xunicode.BigEndian, xunicode.UseBOM), decl("utf-16", cjk)), "text/xml; charset=utf-8", cjk},
		{"utf-16le", with(u16(xunicode.LittleEndian, xunicode.IgnoreBOM), decl("utf-16", cjk)), "", cjk},
		{"utf-16be", with(u16(xunicode.BigEndian, xunicode.IgnoreBOM), decl("", cjk)), "", cjk},
		{"utf-32le BOM", with(utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), decl("", cjk)), "", cjk},
		{"utf-32be BOM", with(utf32.UTF32(utf32.BigEndian, utf32.UseBOM), decl("", cjk)), "", cjk},
		{"utf-32le", with(utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), decl("", cjk)), "", cjk},
		{"utf-32be", with(utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), decl("", cjk)), "", cjk},
		{"windows-1251 header", with(w1251, decl("", cyr)), "text/xml; charset=windows-1251", cyr},
		{"windows-1251 declared", with(w1251, decl("windows-1251", cyr)), "", cyr},
		{"header before declaration", with(w1251, decl("iso-8859-1", cyr)), "text/xml;charset=cp1251", cyr},
		{"cp1251", with(w1251, decl("CP1251", cyr)), "", cyr},
		{"cp-1251", with(w1251, decl("cp-1251", cyr)), "", cyr},
		{"koi8-r", with(charmap.KOI8R, decl("koi8-r", cyr)), "", cyr},
		{"cp866", with(charmap.CodePage866, decl("cp866", cyr)), "", cyr},
		{"cp850", with(charmap.CodePage850, decl("cp850", "Käse für")), "", "Käse für"},
		{"latin-1 is windows-1252", with(w1252, decl("iso-8859-1", latin)), "", latin},
		{"latin-1, undeclared", with(w1252, decl("", latin)), "", latin},
		{"windows-1252, declared as utf-8", with(w1252, decl("utf-8", latin)), "text/xml; charset=utf-8", latin},
		{"windows-1252, unknown label", with(w1252, decl("x-none", latin)), "", latin},
		{"gbk", with(gbk, decl("gbk", cjk)), "", cjk},
		{"gb2312 is gb18030", with(simplifiedchinese.GB18030, decl("gb2312", cjk+"㐀€")), "", cjk + "㐀€"},
		{"cp936", with(gbk, decl("cp936", cjk)), "", cjk},
		{"big5", with(traditionalchinese.Big5, decl("", "你好世界中文")), "text/xml; charset=big5", "你好世界中文"},
		{"shift_jis", with(japanese.ShiftJIS, decl("Shift_JIS", jap)), "", jap},
		{"cp932", with(japanese.ShiftJIS, decl("cp932", jap)), "", jap},
		{"euc-jp", with(japanese.EUCJP, decl("euc-jp", jap)), "", jap},
		{"iso-2022-jp", with(japanese.ISO2022JP, decl("iso-2022-jp", jap)), "", jap},
		{"euc-kr", with(korean.EUCKR, decl("euc-kr", kor)), "", kor},
		{"utf-8, labelled gbk, that it cannot be", []byte(decl("gbk", "你好世")), "", "你好世"},
		{"utf8mb4", []byte(decl("utf8mb4", cjk)), "", cjk},
		{"quoted header", with(w1251, decl("", cyr)), `text/xml; charset="windows-1251"`, cyr},
		{"broken header", with(w1251, decl("", cyr)), `text/xml; foo; charset='windows-1251'; ;`, cyr},
		{"mixed", []byte(decl("utf-8", cyr+" K\xe4se \x93x\x94")), "", cyr + " Käse “x”"},
		{"truncated utf-8", []byte("<rss>" + cyr + "\xd0"), "", ""},
		{"truncated gbk", append(with(gbk, decl("gbk", cjk)), 0xc4), "", cjk},
		{"a lone good sequence among bad ones", []byte("<rss>K\xe4se f\xfcr \xfcbl\xf6d \xc3\xa9</rss>"), "", "Käse für üblöd Ã©"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := decodeBytes(c.raw, Options{ContentType: c.ct})
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.Valid(got) || !strings.Contains(string(got), "<rss>"+c.want) || strings.Contains(string(got), "\uFEFF") {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	_, w, err := decodeBytes([]byte("<rss>\n"+cyr+" \xe4</rss>"), Options{})
	if err != nil || len(w) != 1 || w[0].Line != 2 || !strings.Contains(w[0].Text, "windows-1252") {
		t.Errorf("mixed: %v %v", w, err)
	}
	if _, w, _ = decodeBytes([]byte(decl("utf-8", cjk)), Options{}); len(w) > 0 {
		t.Errorf("clean: %v", w)
	}
}

func FuzzDecodeBytes(f *testing.F) {
	f.Add([]byte("<rss>\xe9</rss>"), "")
	for _, name := range []string{"windows1250", "iso8859-2", "windows1254", "windows1256", "windows1257", "iso8859-15", "tis620", "cp866"} {
		b, err := os.ReadFile(filepath.Join("testdata", "golden", name+".xml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "")
	}
	f.Fuzz(func(t *testing.T, raw []byte, ct string) {
		const limit = 1 << 16
		got, _, err := decodeBytes(raw, Options{ContentType: ct, MaxBytes: limit})
		if err != nil {
			var nf *NotFeedError
			var tooLarge *LimitError
			if !errors.As(err, &tooLarge) && !errors.As(err, &nf) {
				t.Fatal(err)
			}
			return
		}
		if !utf8.Valid(got) || bytes.HasPrefix(got, []byte("\uFEFF")) || len(got) == 0 || len(got) > 4*limit {
			t.Fatalf("%d bytes of bad text: %.100q", len(got), got)
		}
	})
}
