package cmdline

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// completed returns the candidates for the last word of args.
func completed(args ...string) string {
	app := Completing(&cli.App{
		Name:  "prog",
		Flags: []cli.Flag{DirFlag()},
		Commands: []*cli.Command{
			{Name: "get", Usage: "get it", ArgsUsage: "FEED [check|apply] [QUERY]", Flags: []cli.Flag{
				&cli.StringFlag{Name: "format", Aliases: []string{"o"}, Usage: "print `FORMAT`: path, url (the default), r2e, 64k, another field or a template; and more: x"},
				&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "`all` of it"}, &cli.BoolFlag{Name: "secret", Hidden: true},
				RestFlag("run", "run `CMD`"), NumericArgs(),
			}},
			{Name: "hidden", Hidden: true}, {Name: "out", SkipFlagParsing: true, ArgsUsage: "FEED"},
		},
	}, func(k Kind) []Candidate {
		return []Candidate{{Word: k.Word + "." + k.Flag + "." + k.Name + "." + k.Dir}, {Word: "bad\nline"}, {Word: "b\x1bd"}, {Word: ""}}
	})
	Prepare(app)
	var out bytes.Buffer
	complete(app, append([]string{"words"}, args...), &out)
	return strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", "|")
}

func TestComplete(t *testing.T) {
	t.Setenv("LEKTORDIR", "D")
	for _, c := range []struct{ words, want string }{
		{"g", "get\tget it"},
		{"", "get\tget it|out\t"},
		{"--d", "--dir\twork on the lektor-dir DIR (default: $LEKTORDIR, else $XDG_DATA_HOME/lektor, else ~/.local/share/lektor)"},
		{"--dir E get ", "..FEED.E\t"},
		{"--dir=E get ", "..FEED.E\t"},
		{"get a", "a..FEED.D\t"},
		{"get a ", "check\t|apply\t"},
		{"get a apply q", "q..QUERY.D\t"},
		{"get a apply q r", "r..QUERY.D\t"},
		{"get --a", "--all\tall of it"},
		{"get --s", ""},
		{"get -a -o ", "path\t|url\t|r2e\t|.format.FORMAT.D\t"},
		{"get -ao u", "url\t|u.format.FORMAT.D\t"},
		{"get -opath a", "a..FEED.D\t"},
		{"get --format=p", "--format=path\t|--format=p.format.FORMAT.D\t"},
		{"get --format url a", "a..FEED.D\t"},
		{"get --unknown a", "a..FEED.D\t"},
		{"get -- --a", "--a..FEED.D\t"},
		{"get -5 a", "apply\t"},
		{"get --format", "--format\tprint FORMAT: path, url (the default), r2e, 64k, another field or a template; and more: x"},
		{"get nosuch -z a", "apply\t"},
		{"-- a", ""},
		{"get --run cmd a", ""},
		{"out a", ""},
		{"hid", ""},
	} {
		if got := completed(strings.Split(c.words, " ")...); got != c.want {
			t.Errorf("%q: %q, not %q", c.words, got, c.want)
		}
	}
}

func TestSplitLine(t *testing.T) {
	const breaks = " \t\n\"'><=;|&(:"
	for _, c := range []struct {
		line, word, before, open string
	}{
		{`p a`, "a", "", ""},
		{`p `, "", "", ""},
		{`p feed:ki`, "feed:ki", "feed:", ""},
		{`p --x=feed:ki`, "--x=feed:ki", "--x=feed:", ""},
		{`p Ki\'s\ f`, "Ki's f", "", ""},
		{`p a\:b`, "a:b", "", ""},
		{`p 'a b:c`, "a b:c", "", "'"},
		{`p x:"a $b\"\q`, `x:a $b"\q`, "x:", `"`},
		{`p 'a'"b`, "ab", "a", `"`},
		{`p a\`, `a\`, "", ""},
	} {
		l := splitLine(c.line, breaks, shellEscapes)
		open := ""
		if l.open != 0 {
			open = string(l.open)
		}
		if got := l.words[len(l.words)-1]; got != c.word || l.before != c.before || open != c.open || len(l.words) != 2 {
			t.Errorf("%s: %+v", c.line, l)
		}
	}
}

// FuzzShellQuote: a shell reads quoted text as the same text, in any quote in which the line
// ends.
func FuzzShellQuote(f *testing.F) {
	f.Add("Kim's $(x) \"feed\"", "", "p ")
	f.Add("~a`b`;c&d|e<f>g*?[h]{i}!#%\\", "'", "p x:")
	f.Add("é\u202e", "\"", "p --a=")
	f.Fuzz(func(t *testing.T, text, quote, line string) {
		if !utf8.ValidString(text) || !utf8.ValidString(line) || strings.ContainsAny(text, "\x00\n\r") || quote != "" && quote != "'" && quote != "\"" || strings.ContainsAny(line, "'\"\\") {
			return
		}
		for _, escapes := range []string{shellEscapes, ownEscapes} {
			l := splitLine(line+quote, ":=", escapes)
			end := ""
			if l.open != 0 {
				end = string(l.open)
			}
			got := splitLine(line+quote+l.quote(text)+end, ":=", escapes)
			want := slices.Clone(l.words)
			want[len(want)-1] += text
			if !slices.Equal(got.words, want) {
				t.Errorf("%q in %q: %q, not %q", text, line+quote, got.words, want)
			}
		}
	})
}
