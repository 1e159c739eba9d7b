package lektordir

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/dir/dirfs"
	"github.com/lektordir/lektor/internal/dir/entryname"
)

// FuzzReadEntry reads an entry with arbitrary files. Its values, written and read again, are the
// same.
func FuzzReadEntry(f *testing.F) {
	f.Add([]byte("Title\n"), []byte("urn:x\n"), []byte("<p>text</p>"), []byte("text/html\n"), []byte("2026-01-31T12:00:00Z\n"), []byte("link\thttp://a.example/\nenclosure\thttp://a.example/\ttext/plain\t12\ncategory\ta\\tb\n"))
	f.Add([]byte("two\nlines\n\n"), []byte("\n"), []byte("\xff\x00"), []byte("image/png"), []byte("yesterday"), []byte("\t\t-1\n\n\r\nx\ty\tz\tw\nenclosure\t\nlink\nlink\t\nlink\ta\nlink\tb\nsummary\tone\\ntwo\\"))
	f.Add([]byte("\xff\xfe\x00"), []byte("a\r\nb"), []byte(""), []byte("text/plain; charset=\"x\"\n"), []byte("0000-00-00T00:00:00Z"), []byte("episode\t99999999999999999999\nseason\t-1\nduration\t12.5\nupdated\tnow\nupdated\t2026-01-01"))
	f.Add([]byte("\u2028\u202e\x1b[31m"), []byte(""), []byte("\r"), []byte("/"), []byte("9999-12-31T23:59:59+23:59"), []byte("source\t\x00\t\x00\t0x1\nsource\turn:x\nlink\t\xff\n\xff\tlink\n"))
	f.Fuzz(func(t *testing.T, title, id, content, typ, date, extras []byte) {
		d := &Dir{fs: dirfs.New(t.TempDir(), dirfs.Options{})}
		ref := Ref{Feed: "feed", Unique: "1.a.b"}
		base := d.abs(ref)
		if err := os.MkdirAll(base, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{
			"title": title, "id": id, "content": content, "type": typ, "pubdate": date, "author": title, "feed": nil, "extras": extras,
		} {
			if err := os.WriteFile(base+"/"+name, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		read := func() *Entry {
			e, err := d.ReadEntry(ref, AllFields)
			if err != nil {
				t.Fatal(err)
			}
			texts := []string{e.Title, e.ID, e.Author, e.Type, e.Link, e.Summary, e.Comments, e.PubDateRaw, e.Replaces}
			texts = append(texts, e.Categories...)
			for _, enc := range e.Enclosures {
				if enc.Length < -1 {
					t.Errorf("length %d", enc.Length)
				}
				texts = append(texts, enc.URL, enc.Type)
			}
			for _, s := range texts {
				if !utf8.ValidString(s) {
					t.Errorf("%q", s)
				}
			}
			return e
		}
		put := func(e *Entry) (all []byte) {
			if err := os.RemoveAll(base); err != nil {
				t.Fatal(err)
			}
			if err := os.MkdirAll(base, 0o777); err != nil {
				t.Fatal(err)
			}
			for name, data := range e.Files() {
				write(t, base+"/"+name, string(data))
				all = append(append(all, name...), data...)
			}
			write(t, base+"/feed", "")
			return all
		}
		first := read()
		if !bytes.Equal(first.Content, content) {
			t.Errorf("the content %q is read as %q", content, first.Content)
		}
		files := put(first)
		second := read()
		if again := put(second); !bytes.Equal(again, files) {
			t.Fatalf("written %q, then %q", files, again)
		}
		if third := read(); !reflect.DeepEqual(second, third) {
			t.Fatalf("read %+v, then %+v", second, third)
		}
	})
}

// FuzzNormalizeID normalizes ids twice: the second time must not change them.
func FuzzNormalizeID(f *testing.F) {
	for _, s := range []string{"HTTP://Example.COM:80/A?b#c", " https://u:p@h:443:443/", "http://[::1]:80", "urn:x", "http://", "http:///a", "https://h:#", "feed:http://a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		once := NormalizeID(id)
		if twice := NormalizeID(once); twice != once {
			t.Errorf("%q becomes %q, then %q", id, once, twice)
		}
	})
}

// FuzzUniqueName makes unique names of arbitrary hosts. Each must be a file name in ASCII, and
// parsing it must return its parts.
func FuzzUniqueName(f *testing.F) {
	f.Add("host", int64(1700000000), int64(7))
	f.Add("a/b:c;d\\e", int64(0), int64(0))
	f.Add("", int64(1), int64(1<<62))
	f.Add("\xff\x00日本", int64(253402300799), int64(1))
	f.Fuzz(func(t *testing.T, host string, secs, seq int64) {
		if secs < 0 || secs > 1e17 || seq < 0 {
			return
		}
		name := entryname.Unique(time.Unix(secs, 0), 42, seq, "0123456789abcdef", entryname.EscapeHost(host))
		if len(name) > 255 || strings.ContainsAny(name, "/;\x00") || strings.Trim(name, " ") != name || name[0] == '.' {
			t.Fatalf("%q", name)
		}
		for i := range len(name) {
			if name[i] <= ' ' || name[i] >= 0x7f {
				t.Fatalf("%q", name)
			}
		}
		for _, place := range []Place{New, Cur} {
			r, err := parseRef(place, "feed", name)
			if err != nil {
				t.Fatal(err)
			}
			if r.Identity() != "0123456789abcdef" || r.Delivered().Unix() != secs || r.Name() != name {
				t.Fatalf("%q is read as %+v", name, r)
			}
		}
	})
}

// FuzzFlags sets and unsets flags of a name with arbitrary info. The new name has the flags, is
// parsed as it was written, and does not change if the same is done again.
func FuzzFlags(f *testing.F) {
	f.Add("2,FS", "S", "F")
	f.Add("", "", "")
	f.Add("1,x;2,S", "T", "")
	f.Add("2,SSaa\xff;", "ab", "b")
	f.Fuzz(func(t *testing.T, info, set, unset string) {
		if strings.ContainsAny(info, "/\x00") {
			return // not a file name
		}
		r, err := parseRef(Cur, "feed", "1700000000.a.b;"+info)
		if err != nil {
			t.Fatal(err)
		}
		to, err := r.WithFlags(set, unset)
		if err != nil {
			if to != r {
				t.Errorf("%v, and yet %+v", err, to)
			}
			return
		}
		for i := range len(set) {
			if got, want := to.HasFlag(set[i]), strings.IndexByte(unset, set[i]) < 0; got != want {
				t.Errorf("%q, set %q, unset %q: %q", info, set, unset, to.Flags())
			}
		}
		for i := range len(unset) {
			if to.HasFlag(unset[i]) {
				t.Errorf("%q, set %q, unset %q: %q", info, set, unset, to.Flags())
			}
		}
		if read, err := parseRef(Cur, "feed", to.Name()); err != nil || read != to {
			t.Errorf("%+v is read as %+v, %v", to, read, err)
		}
		if again, err := to.WithFlags(set, unset); err != nil || again != to {
			t.Errorf("%+v, again %+v, %v", to, again, err)
		}
	})
}
