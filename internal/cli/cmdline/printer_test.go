package cmdline

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/terminal"
)

type record struct {
	path, title, content string
	tags                 []string
	published            time.Time
	unread               bool
}

var recordColumns = []Column[record]{
	{Name: "path", Get: func(r record) any { return r.path }, Verbatim: true},
	{Name: "title", Get: func(r record) any { return r.title }},
	{Name: "published", Get: func(r record) any { return r.published }},
	{Name: "tags", Get: func(r record) any { return r.tags }},
	{Name: "unread", Get: func(r record) any { return r.unread }},
	{Name: "content", Get: func(r record) any { return r.content }, Extra: true, Text: true},
}

func TestPrinter(t *testing.T) {
	local := time.Local
	time.Local = time.UTC
	defer func() { time.Local = local }()

	evil := record{
		path:      "new/a b",
		title:     "a\x1b[2J\u009b\u202e\tb\nc\\d<&>",
		tags:      []string{"x", "y\tz"},
		published: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
		unread:    true,
		content:   "one\ntwo\x1b",
	}
	for _, tc := range []struct {
		opts PrinterOptions
		want string
	}{
		{PrinterOptions{Format: "path"}, "new/a b\n"},
		{PrinterOptions{Format: "path", Nul: true}, "new/a b\x00"},
		{PrinterOptions{Format: "title"}, "a[2J b c\\d<&>\n"},
		{PrinterOptions{Format: "title", Raw: true}, evil.title + "\n"},
		{PrinterOptions{Format: "content"}, "one\ntwo\n"},
		{PrinterOptions{Format: "tsv"}, "new/a b\ta[2J\\tb\\nc\\\\d<&>\t2026-01-02T02:04:05Z\tx, y\\tz\ttrue\n"},
		{PrinterOptions{Format: "json"}, `{"path":"new/a b","title":"a[2J b c\\d<&>","published":"2026-01-02T02:04:05Z","tags":["x","y z"],"unread":true}` + "\n"},
		{PrinterOptions{Format: "json", Raw: true}, `{"path":"new/a b","title":"a\u001b[2J\u009b\u202e\tb\nc\\d<&>","published":"2026-01-02T02:04:05Z","tags":["x","y\tz"],"unread":true}` + "\n"},
		{PrinterOptions{Format: "{{.title}}|{{.content}}"}, "a[2J b c\\d<&>|one\ntwo\n"},
		{PrinterOptions{Format: "{{.title | trunc 4}}|{{.title | pad 3}}|{{pad 4 `x`}}|"}, "a[2…|a[…|x   |\n"},
		{PrinterOptions{Format: `{{.published | date "2 Jan 2006"}} {{.tags | join "+"}}{{"\n"}}`}, "2 Jan 2026 x+y z\n"},
		{PrinterOptions{Format: `{{.content | line}} {{.content | tsv}} {{.tags | json}} {{.tags | text}} {{"" | default "none"}}`}, "one two one\\ntwo [\"x\",\"y z\"] x, y z none\n"},
		{PrinterOptions{Format: `{{if .unread}}N{{end}}`}, "N\n"},
		{PrinterOptions{Format: `{{.published}}\t{{.unread}}\n`}, "2026-01-02T02:04:05Z\ttrue\n"},
		{PrinterOptions{Format: `a\\n{{"\t"}}\tb`}, "a\\n\t\tb\n"},
		{PrinterOptions{Format: "title,content,path"}, "a[2J\\tb\\nc\\\\d<&>\tone\\ntwo\tnew/a b\n"},
	} {
		var b bytes.Buffer
		p, err := NewPrinter(&b, tc.opts, recordColumns)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(evil); err != nil {
			t.Errorf("%+v: %v", tc.opts, err)
		}
		if b.Len() > 0 {
			t.Errorf("%+v: not buffered", tc.opts)
		}
		p.Flush()
		if b.String() != tc.want {
			t.Errorf("%+v:\n got %q\nwant %q", tc.opts, b.String(), tc.want)
		}
	}
}

func TestPrinterOfNothing(t *testing.T) {
	for format, want := range map[string]string{
		"tsv":                          "\t\t\t\tfalse\n",
		"json":                         `{"path":"","title":"","tags":[],"unread":false}` + "\n",
		"title":                        "\n",
		"{{.published | date `2006`}}": "\n",
		"{{.published}}":               "\n",
		"{{if .published}}x{{end}}":    "\n",
		"title,published":              "\t\n",
	} {
		var b bytes.Buffer
		p, err := NewPrinter(&b, PrinterOptions{Format: format}, recordColumns)
		if err != nil {
			t.Fatal(err)
		}
		p.Print(record{})
		p.Flush()
		if b.String() != want {
			t.Errorf("%s: got %q", format, &b)
		}
	}
}

func TestPrinterMistakes(t *testing.T) {
	for _, format := range []string{"", "xml", "title,", "title,xml", "{{.title", "{{nonsense .title}}"} {
		if _, err := NewPrinter(&bytes.Buffer{}, PrinterOptions{Format: format}, recordColumns); !errors.As(err, new(*UsageError)) {
			t.Errorf("%s: %v", format, err)
		}
	}
	for _, format := range []string{
		"{{.titel}}", "{{if .title}}{{else}}{{.titel}}{{end}}", "{{range .title}}{{$.titel}}{{end}}", "{{with .title}}{{else}}{{.titel | pad 3}}{{end}}",
	} {
		_, err := NewPrinter(&bytes.Buffer{}, PrinterOptions{Format: format}, recordColumns)
		if !errors.As(err, new(*UsageError)) || !strings.Contains(hintOf(err), "title, published") || !strings.Contains(err.Error(), `"titel"`) {
			t.Errorf("%s: %v, hint %q", format, err, hintOf(err))
		}
	}
	// Other errors are found by a trial run, except those that depend on the record.
	for format, want := range map[string]bool{"{{.title | trunc}}": false, "{{slice .title 3}}": true, "{{with .title}}{{.x}}{{end}}": true} {
		p, err := NewPrinter(&bytes.Buffer{}, PrinterOptions{Format: format}, recordColumns)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(record{}); (err == nil) != want || err != nil && !errors.As(err, new(*UsageError)) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

// TestPrinterIsLazy: a column that the format does not print is not computed.
func TestPrinterIsLazy(t *testing.T) {
	columns := append([]Column[record]{{Name: "costly", Extra: true, Get: func(record) any {
		t.Error("the column was computed")
		return nil
	}}}, recordColumns...)
	for _, format := range []string{"path", "json", "tsv", "{{.path}}", "{{json .}}"} {
		p, err := NewPrinter(&bytes.Buffer{}, PrinterOptions{Format: format}, columns)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Print(record{}); err != nil {
			t.Error(err)
		}
	}
}

// FuzzPrinter: for any text, the output is valid, one line, and safe for a terminal.
func FuzzPrinter(f *testing.F) {
	for _, s := range []string{"plain", "a\x1b\u009b\u202e", "a\tb\nc\r\\", "\xff\u2028\"", "{{.path}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, opts := range []PrinterOptions{{Format: "tsv"}, {Format: "json"}, {Format: "json", Raw: true}, {Format: "{{.title}}"}} {
			var b bytes.Buffer
			p, err := NewPrinter(&b, opts, recordColumns[1:])
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Print(record{title: s, tags: []string{s}}); err != nil {
				t.Fatal(err)
			}
			p.Flush()
			line, ok := strings.CutSuffix(b.String(), "\n")
			if !ok || strings.ContainsAny(line, "\n\r\x1b\u009b\u202e\u2028") {
				t.Errorf("%s: %q", opts.Format, line)
			}
			switch opts.Format {
			case "tsv":
				if n := strings.Count(line, "\t"); n != 3 {
					t.Errorf("%d tabs: %q", n, line)
				}
			case "json":
				if !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %q", line)
				}
			}
		}
	})
}

// TestPrinterOnATerminal: a name that could act on a terminal, or split a line, is quoted there. Other
// programs get it unchanged.
func TestPrinterOnATerminal(t *testing.T) {
	const evil, quoted = "new/a\x1b]0;x\a\n\x9b\u202eb", `"new/a\x1b]0;x\a\n\x9b\u202eb"`
	for format, want := range map[string]string{
		"path": quoted, "path,title": strings.ReplaceAll(quoted, `\`, `\\`) + "\t", "{{.path}}": quoted,
		"json": `{"path":"new/a\u001b]0;x\u0007\n\ufffd\u202eb","title":"","tags":[],"unread":false}`,
	} {
		term := terminal.Open(t, 200, 10)
		var piped bytes.Buffer
		for _, w := range []io.Writer{term.TTY, &piped} {
			p, err := NewPrinter(w, PrinterOptions{Format: format}, recordColumns)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(p.Print(record{path: evil}), p.Print(record{path: "new/b"}), p.Flush()); err != nil {
				t.Fatal(err)
			}
		}
		if seen := term.Output(); !strings.HasPrefix(seen, want+"\n") || !strings.Contains(seen, "new/b") {
			t.Errorf("%s: %q on a terminal, want %q", format, seen, want)
		}
		if text := piped.String(); format != "json" && strings.HasPrefix(text, `"`) {
			t.Errorf("%s: %q in a pipe", format, text)
		}
	}
}
