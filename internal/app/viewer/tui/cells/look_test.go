package cells

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
	for _, theme := range Themes {
		base := ParseLook("look", nil)
		base.Use(theme, false)
		for i, sgr := range base.Sgr {
			if sgr == "" && i > 0 {
				t.Errorf("%s: no style of %s", theme, elements[i])
			}
		}
		seen[base.Sgr[CursorHere]+base.Sgr[BadText]] = true
		l.Use(theme, false)
		if got := l.Sgr[UnreadText] + " " + l.Sgr[FeedStyle] + " " + l.Sgr[LinkText] + " " + l.Sgr[CursorHere]; got != "38;5;12 1;31;48;2;16;32;48  "+base.Sgr[CursorHere] {
			t.Errorf("%s: %s", theme, got)
		}
		l.Use(theme, true)
		if got := l.Sgr[UnreadText] + " " + l.Sgr[FeedStyle] + " " + l.Sgr[BadText] + " " + l.Sgr[CursorHere] + " " + l.Sgr[FlagText]; got != "1 1 1 7 " {
			t.Errorf("%s without colours: %s", theme, got)
		}
	}
	if len(seen) != len(Themes) {
		t.Errorf("%d different themes", len(seen))
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
		for _, theme := range Themes {
			l.Use(theme, false)
			for _, sgr := range l.Sgr {
				if strings.Trim(sgr, "0123456789;") != "" {
					t.Fatalf("%q", sgr)
				}
			}
		}
		if !slices.Contains(Themes, l.Theme) || l.Layout != "" && !slices.Contains(Layouts, l.Layout) {
			t.Fatalf("%q %q", l.Theme, l.Layout)
		}
	})
}
