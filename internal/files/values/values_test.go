package values

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	v := Parse([]byte("url\thttp://a/\ttab\r\nodd\n\tnameless\nuser's own\t x \nurl\thttp://b/\nn\t7\ncut\to"), '\t')
	for name, want := range map[string]string{"url": "http://b/", "user's own": " x ", "odd": "", "": "", "cut": "o"} {
		if got := v.Get(name); got != want {
			t.Errorf("Get(%q) = %q, want %q", name, got, want)
		}
	}
	n, not := 0, 1
	if v.Read([]Field{{"n", &n}, {"url", &not}}); n != 7 || not != 0 {
		t.Errorf("%d, want 7; a URL is %d", n, not)
	}
	v.Set("new", "two\nlines\x00")
	v.Set("cut", "")
	yes := true
	n++
	v.Write([]Field{{"n", &n}, {"gone", new(int)}, {"on", &yes}, {"off", new(bool)}})
	want := "url\thttp://b/\nodd\n\tnameless\nuser's own\t x \nn\t8\nnew\ttwo lines\non\tyes\n"
	if got := string(v.Text()); got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
}

// A number that is too large is not valid: it is not the largest one.
func TestTooLarge(t *testing.T) {
	n := 1
	if (Field{Var: &n}).Parse("99999999999999999999"); n != 0 {
		t.Errorf("%d, want 0", n)
	}
}

func TestTime(t *testing.T) {
	v := New('\t')
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	fields := []Field{{"at", &at}}
	v.Write(fields)
	if got, want := string(v.Text()), "at\t2026-01-02T02:04:05Z\n"; got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
	before := at.Truncate(time.Second)
	if v.Read(fields); !at.Equal(before) {
		t.Errorf("%v, want %v", at, before)
	}
	at = time.Time{}
	if v.Write(fields); len(v.Text()) != 0 {
		t.Errorf("after a zero time: %q", v.Text())
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a\tb\nc\n\td\na\te"))
	f.Fuzz(func(t *testing.T, text []byte) {
		once := Parse(text, '\t').Text()
		if again := Parse(once, '\t').Text(); string(again) != string(once) {
			t.Errorf("%q is read and written as %q, and then as %q", text, once, again)
		}
	})
}
