package tui

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/text/termsafe"
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
		{"format entry {{.date}} {{.title}}", ""},
		{"format entry {{.flags}}", `line 1: there is no field "flags"; fields are date, feed, title, url,`},
		{"format entry {{.title", "line 1: unclosed action; a template looks like"},
		{"format feed {{.unread}} {{.title | trunc 10}}", ""},
		{"format subject {{.title}}", `line 1: there is no line "subject"`},
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

// Lines with a format are as wide as without, and no escape of a feed gets to the screen.
func TestFormats(t *testing.T) {
	d := newMemory(30)
	close(d.gate)
	k := newDesk(t, d, 80, 24)
	k.await("Title 29")
	text := "format feed <dim>({{.title}})<right><feed>{{.unread}}!\nformat list-title {{.name}}: {{.line}} of {{.lines}}\nformat feeds-title {{.unread}} new\nformat entry-title {{.title}}: {{.flags}}\n"
	k.o.Look = ParseLook("look", []byte(text))
	k.o.Look.use("", false)
	for _, n := range k.browser.snapshot.nodes {
		n.title = "\x1b[31mred\x9b1m\n\u202eline"
		for _, part := range k.o.Look.feed(&n) {
			if termsafe.Unsafe(part.text) || strings.Contains(part.text, "\n") {
				t.Errorf("%q", part.text)
			}
		}
	}
	for k1, row := range k.rows {
		row.Parts = []Part{{style: dimText, text: "date "}, {text: row.Title}, {style: feedStyle, right: true, text: "right"}}
		k.rows[k1] = row
	}
	k.press("l")
	screen := k.View().Content
	for _, want := range []string{"\x1b[2m(Flagged)\x1b[m", "\x1b[36m0!\x1b[m"} {
		if !strings.Contains(screen, want) {
			t.Errorf("no %q in\n%s", want, screen)
		}
	}
	k.press("enter")
	k.await("Title 29: ")
	for range layouts {
		for _, focus := range []paneKind{feedsPane, listPane, pagePane} {
			k.browser.focus = focus
			drawn(t, k)
		}
		k.press("v")
	}
	k.browser.focus = listPane
	if s := k.shows(); !strings.Contains(s, "All: 1 of 30") || !strings.Contains(s, "29 new") && !strings.Contains(s, "30 new") || !regexp.MustCompile(`(?m)N +date Title 2\d +right$`).MatchString(s) {
		t.Errorf("%s", s)
	}
	k.press("T")
	if k.o.Look.theme != "dark" || k.o.Screen.Get("theme") != "dark" {
		t.Error(k.o.Look.theme)
	}
	k.press("R")
	k.until("the file of the look", func() bool { return k.o.Look.feed == nil })
	if k.o.Look.theme != "dark" {
		t.Error(k.o.Look.theme)
	}
}

func FuzzParseLook(f *testing.F) {
	for _, s := range []string{
		"theme dark\nlayout three\ncolor cursor black on 12 bold\nformat entry <feed>{{.feed | pad 9}}<right>{{.date}}\n",
		"color link #00ff00 underline\nformat feed {{range .title}}{{.}}{{end}}\n", "format list-title {{.name}} {{with .query}}/{{.}}{{end}}", "format feed <", "\xff",
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
		if l.feed != nil && !strings.Contains(string(text), "printf") && len(text) < 1000 {
			for _, part := range l.feed(&node{title: "\x1b[31m\u202e\n", unread: 3}) {
				if termsafe.Unsafe(part.text) || strings.ContainsAny(part.text, "\n\t") {
					t.Fatalf("%q", part.text)
				}
			}
		}
	})
}

// A wrong line leaves the format of an earlier one. A template that fails for one line says so in
// that line only.
func TestFormatFails(t *testing.T) {
	l := ParseLook("look", []byte("format feed {{slice .title 2}}\nformat feed {{.nosuch}}\n"))
	if len(l.Errs) != 1 || l.feed == nil {
		t.Fatalf("%v", l.Errs)
	}
	for _, c := range []struct{ title, want string }{
		{"abc", "c"}, {"a", "executing"}, {"abcd", "cd"}, {"", "executing"}, {"xyz", "z"},
	} {
		if parts := l.feed(&node{title: c.title}); !strings.HasPrefix(parts[0].text, c.want) {
			t.Errorf("%q: %q", c.title, parts[0].text)
		}
	}
}
