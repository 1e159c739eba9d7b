package tui

import (
	"slices"
	"strings"
	"testing"
)

// Wrong lines are reported, and the others are used.
func TestParseLook(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"# theme elm", ""},
		{"theme dark", ""},
		{"theme elm", `line 1: there is no theme "elm"; there are default, dark, light`},
		{"layout stacked", ""},
		{"layout sideways", `line 1: there is no layout "sideways"; there are auto, two, three, stacked`},
		{"color unread bold bright-white on #102030", ""},
		{"color unread", "line 1: a line is theme NAME"},
		{"color subject red", `line 1: there is no element "subject"; there are title, title-away, cursor,`},
		{"color unread 256", `line 1: "256" is neither a color`},
		{"color unread #12345", `line 1: "#12345" is neither`},
		{"color unread red on", "line 1: a color is missing after on"},
		{"color unread on bold", `line 1: "bold" is neither`},
		{"color text red", `line 1: there is no element "text"`},
		{"format entry {{.title}}", "line 1: a line is theme NAME"},
		{"colour unread red", "line 1: a line is theme NAME"},
		{"theme \xff", "line 1: the line is not UTF-8"},
	} {
		var errs string
		for _, err := range ParseLook("look", []byte(c.line+"\r\n")).Errs {
			errs += err.Error()
		}
		if c.want == "" && errs != "" || !strings.HasPrefix(strings.TrimPrefix(errs, "look, "), c.want) {
			t.Errorf("%q: %q, not %q", c.line, errs, c.want)
		}
	}
}

// A theme has a style for each element, and the user's colours go before those of each theme.
// Without colours, attributes stay, and each element that needs one has one.
func TestThemes(t *testing.T) {
	l := ParseLook("look", []byte("color unread 12\ncolor feed red on #102030 bold\ncolor link none\n"))
	seen := map[string]bool{}
	for _, theme := range themes {
		base := ParseLook("look", nil)
		base.use(theme, false)
		for i, sgr := range base.sgr {
			if sgr == "" && i > 0 {
				t.Errorf("%s: no style of %s", theme, elements[i])
			}
		}
		seen[base.sgr[cursorHere]+base.sgr[badText]] = true
		l.use(theme, false)
		if got := l.sgr[unreadText] + " " + l.sgr[feedStyle] + " " + l.sgr[linkText] + " " + l.sgr[cursorHere]; got != "38;5;12 1;31;48;2;16;32;48  "+base.sgr[cursorHere] {
			t.Errorf("%s: %s", theme, got)
		}
		l.use(theme, true)
		if got := l.sgr[unreadText] + " " + l.sgr[feedStyle] + " " + l.sgr[badText] + " " + l.sgr[cursorHere] + " " + l.sgr[flagText]; got != "1 1 1 7 " {
			t.Errorf("%s without colours: %s", theme, got)
		}
	}
	if len(seen) != len(themes) {
		t.Errorf("%d different themes", len(seen))
	}
}

// A theme from the key stays when the file of the look is read again.
func TestReload(t *testing.T) {
	d := newMemory(3)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 02")
	k.o.Look = ParseLook("look", []byte("color unread 12\n"))
	k.o.Look.use("", false)
	k.press("T")
	if k.o.Look.theme != "dark" || k.o.Screen.Get("theme") != "dark" || k.o.Look.sgr[unreadText] != "38;5;12" {
		t.Error(k.o.Look.theme)
	}
	k.press("R")
	k.until("the file of the look", func() bool { return k.o.Look.sgr[unreadText] != "38;5;12" })
	if k.o.Look.theme != "dark" {
		t.Error(k.o.Look.theme)
	}
}

func FuzzParseLook(f *testing.F) {
	for _, s := range []string{
		"theme dark\nlayout three\ncolor cursor black on 12 bold\n", "color link #00ff00 underline\n", "color text red", "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := ParseLook("look", text)
		for _, theme := range themes {
			l.use(theme, false)
			for _, sgr := range l.sgr {
				if strings.Trim(sgr, "0123456789;") != "" {
					t.Fatalf("%q", sgr)
				}
			}
		}
		if !slices.Contains(themes, l.theme) || l.layout != "" && !slices.Contains(layouts, l.layout) {
			t.Fatalf("%q %q", l.theme, l.layout)
		}
	})
}
