package fetcher

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/schema"
	"github.com/lektordir/lektor/internal/testkit/terminal"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// Lines fit the terminal, with the most important columns first. In a pipe they are complete.
func TestListWidths(t *testing.T) {
	d := testdir.New(t)
	long := "http://long.example/" + strings.Repeat("a", 100)
	for _, f := range []struct{ url, name, failed string }{
		{"http://a.example/", "Alpha", ""},
		{"http://b.example/", "Broken", "http://b.example/: 410 Gone: it has\x1b[31m ended"},
		{"http://c.example/", "日本語のとても長い名前のフィード。日本語のとても長い名前のフィード", ""},
		{"http://d.example/", "De\u0301ja\u0300\x1b]0;x\x07\u202e vu\tand\nmore", "the file is malformed"},
		{long, strings.Repeat("Long ", 60), ""},
	} {
		files := []string{"etc/fetch/url=" + f.url}
		if f.failed != "" {
			files = append(files, "etc/fetch/error="+f.failed)
		}
		if _, err := d.Feed(f.url, f.name, files...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		if _, err := d.Entry("http://a.example/", "new", fmt.Sprintf("17000000%02d.1.h", i)); err != nil {
			t.Fatal(err)
		}
	}
	o := ListOptions{Common: Common{Dir: d.Path}}
	list := func(columns int) string {
		tty := terminal.Open(t, columns, 24)
		s := cmdline.NewStreams("lektor-fetch", nil, tty.TTY, &bytes.Buffer{})
		o.Screen = s.Screen()
		if err := List(t.Context(), o, s); err != nil {
			t.Fatal(err)
		}
		return tty.Output()
	}
	for _, term := range []string{"xterm", "dumb"} {
		t.Setenv("TERM", term)
		t.Setenv("NO_COLOR", "")
		for _, columns := range []int{1, 20, 40, 50, 59, 60, 80, 200} {
			out := list(columns)
			if colored := strings.Contains(out, "\x1b["); colored != (term == "xterm") && columns >= 20 {
				t.Errorf("TERM=%s: coloured is %v", term, colored)
			}
			plain := terminal.Plain(out)
			if strings.ContainsAny(plain, "\x1b\x07\t\r\u202e") {
				t.Errorf("control characters are printed: %q", plain)
			}
			if strings.Count(plain, "\n") != 5 {
				t.Errorf("not five lines:\n%s", plain)
			}
			for line := range strings.Lines(plain) {
				line = strings.TrimSuffix(line, "\n")
				if n := terminal.Columns(line); n > columns {
					t.Errorf("%d of %d columns: %s", n, columns, line)
				}
			}
			switch {
			case columns < 20:
			case columns < 60:
				for _, want := range []string{"12    Alpha\n", " 0  ! Broken\n", " 0  ! De"} {
					if !strings.Contains(plain, want) {
						t.Errorf("%q is not there at %d columns:\n%s", want, columns, plain)
					}
				}
			default:
				for _, want := range []string{"12  Alpha  ", "  http://a.example/\n", "  ! http://b.example/: 41", "  ! the file is malformed"} {
					if !strings.Contains(plain, want) {
						t.Errorf("%q is not there at %d columns:\n%s", want, columns, plain)
					}
				}
			}
		}
	}

	// In a pipe, lines are not cut and have no colours.
	o.Screen = cmdline.Screen{}
	var out bytes.Buffer
	s := cmdline.NewStreams("lektor-fetch", nil, &out, &bytes.Buffer{})
	if err := List(t.Context(), o, s); err != nil {
		t.Fatal(err)
	}
	want := "   12  Alpha                           http://a.example/\n" +
		"    0  Broken                          http://b.example/  ! http://b.example/: 410 Gone: it has[31m ended\n" +
		"    0  De\u0301ja\u0300]0;x vu and more            http://d.example/  ! the file is malformed\n" +
		"    0  " + strings.Repeat("Long ", 59) + "Long  " + long + "\n" +
		"    0  日本語のとても長い名前のフィード。日本語のとても長い名前のフィード  http://c.example/\n"
	if out.String() != want {
		t.Errorf("got\n%s\nnot\n%s", &out, want)
	}
	// Each record may end in NUL.
	out.Reset()
	o.Print.Nul = true
	if err := List(t.Context(), o, s); err != nil || out.String() != strings.ReplaceAll(want, "\n", "\x00") {
		t.Errorf("%v: %q", err, &out)
	}
}

// The schema in docs/ matches the output of -o json exactly.
func TestListSchema(t *testing.T) {
	d := testdir.New(t)
	for _, err := range []error{
		second(d.Feed("http://a.example/", "Alpha\x1b[1m", "etc/fetch/url=http://me:secret@a.example/feed", "etc/fetch/error=410 Gone", "etc/categories=Tech/Go\nNews")),
		second(d.Feed("urn:x:b", "", "etc/fetch/url=http://b.example/")),
		second(d.Entry("urn:x:b", "new", "1700000001.1.h")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := schema.Open(t, "lektor-fetch.schema.json")
	var names []string
	for _, c := range listColumns {
		if !c.Extra {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(want.Properties(), names) || !slices.Equal(want.Required(), names) {
		t.Errorf("the schema has %q, of which %q must be there, and -o json %q", want.Properties(), want.Required(), names)
	}
	var out bytes.Buffer
	s := cmdline.NewStreams("lektor-fetch", nil, &out, &bytes.Buffer{})
	if err := List(t.Context(), ListOptions{Common: Common{Dir: d.Path}, Print: cmdline.PrinterOptions{Format: "json"}}, s); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines", n)
	}
	for line := range strings.Lines(out.String()) {
		if err := want.Check([]byte(line)); err != nil {
			t.Errorf("%s%v", line, err)
		}
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		fails := func(what string) {
			if data, err := json.Marshal(record); err != nil || want.Check(data) == nil {
				t.Errorf("%s is not wrong: %s %v", what, data, err)
			}
		}
		record["unheard"] = 1
		fails("a field that is not documented")
		delete(record, "unheard")
		for _, name := range names {
			v := record[name]
			record[name] = map[string]any{}
			fails(name + " of another type")
			delete(record, name)
			fails("a record without " + name)
			record[name] = v
		}
		record["unread"] = -1
		fails("less than nothing")
	}
}

func second[T any](_ T, err error) error { return err }
