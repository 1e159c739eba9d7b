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
	if got := v.Int("n"); got != 7 {
		t.Errorf("Int = %d, want 7", got)
	}
	if got := v.Int("url"); got != 0 {
		t.Errorf("Int of a URL = %d, want 0", got)
	}
	v.Set("new", "two\nlines\x00")
	v.Set("cut", "")
	v.SetInt("n", 0)
	want := "url\thttp://b/\nodd\n\tnameless\nuser's own\t x \nn\t0\nnew\ttwo lines\n"
	if got := string(v.Text()); got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
}

func TestTime(t *testing.T) {
	v := New('\t')
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))
	v.SetTime("at", at)
	if got, want := string(v.Text()), "at\t2026-01-02T02:04:05Z\n"; got != want {
		t.Errorf("Text = %q, want %q", got, want)
	}
	if got := v.Time("at"); !got.Equal(at.Truncate(time.Second)) {
		t.Errorf("Time = %v, want %v", got, at)
	}
	v.SetTime("at", time.Time{})
	if got := v.Text(); len(got) != 0 || !v.Time("at").IsZero() {
		t.Errorf("after a zero time: %q", got)
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
