package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/protocol/query"
	"github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
)

func TestParseRules(t *testing.T) {
	type want struct {
		query, flags string
		stop         bool
		run          []string
	}
	for line, w := range map[string]want{
		"feed:lwn -> read":                         {query: "feed:lwn", flags: "S"},
		"a b or c→read":                            {}, // no space before it
		"a b or c → flag":                          {query: "a b or c", flags: "F"},
		"  x\t->\tflag ab,read , trash,stop":       {query: "x", flags: "abST", stop: true},
		`"a -> b" -> read`:                         {query: `"a -> b"`, flags: "S"},
		`title:/a -> b/i -> read`:                  {query: `title:/a -> b/i`, flags: "S"},
		"x -> read -> trash":                       {}, // read takes nothing
		`x -> flag d, run get "a b" -> c, 'd,e' x`: {query: "x", flags: "d", run: []string{"get", "a b", "->", "c,", "d,e", "x"}},
		"x -> run\tmpv {{.url}}":                   {query: "x", run: []string{"mpv", "{{.url}}"}},
		"query:good -> flag":                       {query: "query:good", flags: "F"},
	} {
		rules, bad := parse(line, parseTest)
		if w.query == "" {
			if len(bad) != 1 || len(rules) > 0 {
				t.Errorf("%s: %v", line, rules)
			}
			continue
		}
		if len(bad) > 0 || len(rules) != 1 {
			t.Errorf("%s: %v", line, bad)
			continue
		}
		got := want{rules[0].query.String(), rules[0].flags, rules[0].stop, nil}
		if rules[0].run != nil {
			got.run = rules[0].run.Words()
		}
		if got.query != w.query || got.flags != w.flags || got.stop != w.stop || !slices.Equal(got.run, w.run) {
			t.Errorf("%s: %+v, not %+v", line, got, w)
		}
	}
}

func parseTest(text string) (*query.Query, error) {
	return query.ParseWith(text, func(name string) (string, error) {
		if name == "bad" {
			return "x (", nil
		}
		return "is:flagged", nil
	})
}

// TestParseRulesErrors: every mistake is reported with its line and, if possible, its column. The
// other rules are read.
func TestParseRulesErrors(t *testing.T) {
	var text strings.Builder
	var wants []string
	for i, c := range []struct{ line, want string }{
		{"x", "there is no ->"},
		{"x - > read", "there is no ->"},
		{"-> read", "column 1: a query is missing before ->"},
		{"titel:x -> read", "column 1: there is no key titel:"},
		{"x (y -> read", "column 3: this ( is not closed"},
		{`ß "a -> read`, "column 3: this quote is not closed"},
		{`"a -> b"c -> read`, "column 9: a space is missing here"},
		{"x ->", "column 5: an action is missing"},
		{"x -> read,", "column 11: an action is missing"},
		{"ß → raed", "column 5: there is no action raed"},
		{"x -> read now", "column 6: read takes nothing: now"},
		{"x -> flag é", "column 6: flag: "},
		{"x -> flag 1", "column 6: flag: "},
		{"x -> run", "column 6: run: the command is missing"},
		{"x -> run 'mpv", "column 6: run: a ' is not closed"},
		{"x -> run mpv {{.ulr}}", `column 6: run: -o: there is no field "ulr"`},
		{"x -> run {{.url}}", "the name of a command cannot be a template"},
		{"query:bad -> read", "saved query bad, column 4: a term is missing at the end"},
		{"caf\xe9 -> read", "the line is not UTF-8"},
	} {
		fmt.Fprintf(&text, "# a comment -> x\n\n%s\r\nx -> read\n", c.line)
		wants = append(wants, fmt.Sprintf("etc/view/rules, line %d", 4*i+3), c.want)
	}
	rules, bad := parse(text.String(), parseTest)
	if len(bad) != len(wants)/2 || len(rules) != len(bad) {
		t.Fatalf("%d rules, %d bad: %v", len(rules), len(bad), bad)
	}
	for i, err := range bad {
		if !strings.HasPrefix(err.Error(), wants[2*i]) || !strings.Contains(err.Error(), wants[2*i+1]) {
			t.Errorf("%v, not %s: %s", err, wants[2*i], wants[2*i+1])
		}
	}
	if rules[0].line != 4 {
		t.Error(rules[0].line)
	}
}

func FuzzRules(f *testing.F) {
	for _, s := range []string{"x -> read", `"a -> b" → run a 'b' {{.url}}`, "x -> flag F,stop\n#\ny->", "-> \n→", "/->/ -> trash"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules, bad := parse(text, parseTest)
		lines := 0
		for line := range strings.Lines(text) {
			if s := strings.TrimSpace(line); s != "" && s[0] != '#' {
				lines++
			}
		}
		if len(rules)+len(bad) != lines {
			t.Fatalf("%d rules and %d mistakes of %d lines", len(rules), len(bad), lines)
		}
		for _, r := range rules {
			if r.query.Empty() || r.flags == "" && !r.stop && r.run == nil {
				t.Fatalf("%q: a rule without an effect: %+v", text, r)
			}
		}
	})
}

// rules writes the file of rules.
func (f *fixture) rules(lines ...string) {
	f.T.Helper()
	path := filepath.Join(f.Path, entrystore.RulesFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.T.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		f.T.Fatal(err)
	}
}

// apply applies the rules, and returns the names that it printed, and the messages.
func (f *fixture) apply() (names, messages string) {
	f.T.Helper()
	o := Options{Common: f.Common()}
	o.Print.Format = "name"
	s := f.Streams("")
	if err := Apply(f.T.Context(), o, s); err != nil {
		f.T.Fatal(err)
	}
	return strings.Join(strings.Fields(f.Out.String()), " "), f.Err.String()
}

// flags returns, of each entry, the last digit of its time, the first letter of its place and its
// flags.
func (f *fixture) flags() string {
	f.T.Helper()
	all, err := testdir.Entries(f.Path)
	if err != nil {
		f.T.Fatal(err)
	}
	var out []string
	for _, e := range all {
		name, _, _ := strings.Cut(e.Unique, ".")
		out = append(out, name[len(name)-1:]+e.Place[:1]+e.Flags)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestRulesOnce: rules are applied once to each arrival, so later changes by a viewer stay.
func TestRulesOnce(t *testing.T) {
	f := newFixture(t)
	log := filepath.Join(t.TempDir(), "log")
	f.Add("new", "1700000001.1.h", "title=Tea")
	f.Add("new", "1700000002.1.h", "title=Ad")
	f.Add("new", "1700000003.1.h", "title=Other")
	f.Add("cur", "1700000004.1.h;2,", "title=Tea") // moved by a viewer
	f.rules("title:tea -> flag F, run sh -c 'echo $LEKTOR_TITLE $1 >>"+log+"' x {{.name}}", "title:ad -> trash", "title:tea -> flag a")
	names, messages := f.apply()
	if names != "1700000001.1.h 1700000002.1.h" || messages != "" {
		t.Errorf("%s, %s", names, messages)
	}
	if got := f.flags(); got != "1c2,Fa 2c2,T 3n 4c2," {
		t.Error(got)
	}
	// The user changes flags, and adds a rule.
	for _, name := range []string{"1700000001.1.h", "1700000002.1.h"} {
		v, err := f.Common().Open(nil, cmdline.PrinterOptions{}, f.Streams(""))
		if err != nil {
			t.Fatal(err)
		}
		ref, err := v.Resolve(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.Dir.SetFlags(ref, "", "FTa"); err != nil {
			t.Fatal(err)
		}
	}
	f.rules("is:unread -> flag z, run sh -c 'echo $LEKTOR_TITLE >>"+log+"'", "is:unread -> read")
	f.Add("new", "1700000005.1.h", "title=Late")
	f.Add("new", "1600000006.1.h", "title=By a slow clock")
	for range 3 {
		f.apply()
	}
	if got := f.flags(); got != "1c2, 2c2, 3n 4c2, 5c2,Sz 6c2,Sz" {
		t.Error(got)
	}
	data, err := os.ReadFile(log)
	if err != nil || string(data) != "Tea 1700000001.1.h\nBy a slow clock\nLate\n" {
		t.Errorf("%s, %v", data, err)
	}
	// Again applies the rules to entries that they have seen.
	o := Options{Common: f.Common(), Again: []string{"title:other"}}
	if err := Apply(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	if got := f.flags(); got != "1c2, 2c2, 3c2,Sz 4c2, 5c2,Sz 6c2,Sz" {
		t.Error(got)
	}
}

// TestRulesAfterAKill: the next run completes a killed one, and runs no command twice.
func TestRulesAfterAKill(t *testing.T) {
	key := testdir.Hash(viewdir.FeedID) + "/1700000001.1.h"
	for _, tc := range []struct {
		where, left, flags, ran, messages string
	}{
		{"new/", "", "1c2,F", "one two", ""},
		{"new/", "todo\t" + key + "\n", "1c2,F", "one two", ""},
		// Flags were set, and the line about the command was not written.
		{"cur/;2,F", "todo\t" + key + "\n", "1c2,F", "one two", ""},
		{"cur/;2,F", "todo\t" + key + "\nrun\t" + key, "1c2,F", "one two", ""},
		{"cur/;2,F", "todo\t" + key + "\nrun\t" + key + "\t0\n", "1c2,F", "two", "may have been interrupted"},
		{"cur/;2,F", "run\t" + key + "\t1\n", "1c2,F", "", "may have been interrupted"},
		{"cur/;2,F", "run\t" + key + "\t1\nseen\t" + key + "\n", "1c2,F", "", ""},
		// A viewer came between: its flags stay.
		{"cur/;2,S", "run\t" + key + "\t0\n", "1c2,S", "two", "may have been interrupted"},
		{"cur/;2,S", "later\t" + key + "\t1\n", "1c2,S", "two", ""},
		{"cur/;2,S", "later\t" + key + "\t0\n", "1c2,S", "one two", ""},
		{"cur/;2,S", "", "1c2,S", "", ""},
		// A power cut undid the move.
		{"new/", "run\t" + key + "\t0\n", "1c2,F", "two", "may have been interrupted"},
		{"new/", "run\t" + key + "\t1\ndone\t" + key + "\n", "1c2,F", "", ""},
		{"cur/;2,S", "run\t" + key + "\t1\ndone\t" + key + "\n", "1c2,S", "", ""},
		{"new/", "seen\t" + key + "\n", "1n", "", ""},
		// Invalid lines are ignored.
		{"new/", "\n\t\nrun\nseen\t\nrun\t" + key + "\tx\nsee", "1c2,F", "one two", ""},
		{"", "todo\t" + key + "\n", "", "", ""},
	} {
		f := newFixture(t)
		log := filepath.Join(t.TempDir(), "log")
		if place, info, ok := strings.Cut(tc.where, "/"); ok {
			f.Add(place, "1700000001.1.h"+info, "title=Tea")
		}
		f.rules("title:tea -> flag F, run sh -c 'echo one >>"+log+"'", "title:tea -> run sh -c 'echo two >>"+log+"'")
		if err := os.WriteFile(filepath.Join(f.Path, ruledFile), []byte(tc.left), 0o644); err != nil {
			t.Fatal(err)
		}
		_, messages := f.apply()
		_, again := f.apply()
		data, _ := os.ReadFile(log)
		if got := f.flags(); got != tc.flags || strings.Join(strings.Fields(string(data)), " ") != tc.ran {
			t.Errorf("%+v: %s, ran %q", tc, got, data)
		}
		if (tc.messages == "") != (messages == "") || !strings.Contains(messages, tc.messages) || again != "" {
			t.Errorf("%+v: %s, then %s", tc, messages, again)
		}
	}
}

// TestRulesCommandFails: a command that fails is reported and not run again, unless it asks for
// that.
func TestRulesCommandFails(t *testing.T) {
	f := newFixture(t)
	log := filepath.Join(t.TempDir(), "log")
	f.Add("new", "1700000001.1.h", "title=Tea")
	f.rules("tea -> run sh -c 'echo one >>"+log+"; exit 3'", "tea -> run no-such-command-here", "tea -> run sh -c 'echo two >>"+log+"; test -e "+log+".ok || exit 75'", "tea -> flag F")
	_, messages := f.apply()
	if !strings.Contains(messages, "sh for cur/") || !strings.Contains(messages, "exit status 3") || !strings.Contains(messages, "no-such-command-here") || !strings.Contains(messages, "exit status 75; it will be run again the next time") {
		t.Error(messages)
	}
	f.apply()
	if err := os.WriteFile(log+".ok", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, messages = f.apply(); messages != "" {
		t.Error(messages)
	}
	f.apply()
	data, err := os.ReadFile(log)
	if err != nil || string(data) != "one\ntwo\ntwo\ntwo\n" || f.flags() != "1c2,F" {
		t.Errorf("%q, %v, %s", data, err, f.flags())
	}
}

// TestRulesForget: entries that no longer exist are dropped from the file of progress.
func TestRulesForget(t *testing.T) {
	f := newFixture(t)
	f.rules("title:never -> read")
	for i := range 1300 {
		f.Add("new", fmt.Sprintf("17%08d.1.h", i))
	}
	f.apply()
	size := func() int64 {
		fi, err := os.Stat(filepath.Join(f.Path, ruledFile))
		if err != nil {
			t.Fatal(err)
		}
		return fi.Size()
	}
	before := size()
	if err := os.RemoveAll(filepath.Join(f.Path, "new", testdir.Hash(viewdir.FeedID))); err != nil {
		t.Fatal(err)
	}
	f.Add("new", "1800000000.1.h")
	f.apply()
	if after := size(); after > before/1000*2 {
		t.Errorf("%d bytes, before %d", after, before)
	}
	f.rules("is:unread -> read")
	if names, _ := f.apply(); names != "" {
		t.Errorf("seen, and applied to: %s", names)
	}
}

// TestCommandsOfEntries: untrusted text in arguments and variables is short enough for the
// system, and is never an option.
func TestCommandsOfEntries(t *testing.T) {
	f := newFixture(t)
	out := filepath.Join(t.TempDir(), "out")
	long := strings.Repeat("ä", 200_000)
	f.Add("new", "1700000001.1.h", "title=--title=$(id) `id`; \x1b[2J", "+link=http://x.example/?a&b", "author="+long, "+enclosure=http://x.example/1.mp3\taudio/mpeg\t1")
	f.rules(`is:unread -> run sh -c 'printf "%s|" "$LEKTOR_TITLE" "$LEKTOR_URL" "$LEKTOR_FEED" "$LEKTOR_ENCLOSURE" "$LEKTOR_ID" ${#LEKTOR_AUTHOR} "$@" >` + out + `' sh {{.title}} --x={{.url}} '{{.author}}'`)
	if _, messages := f.apply(); messages != "" {
		t.Fatal(messages)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(string(data), "|")
	want := []string{"--title=$(id) `id`; [2J", "http://x.example/?a&b", "Alpha", "http://x.example/1.mp3", "urn:x:1700000001.1.h", "", " --title=$(id) `id`; [2J", "--x=http://x.example/?a&b"}
	for i, w := range want {
		if got[i] != w && w != "" {
			t.Errorf("%d: %q, not %q", i, got[i], w)
		}
	}
	if n := len(got[8]); n == 0 || n > 64<<10 || strings.Trim(got[8], "ä") != "" {
		t.Errorf("the author has %d bytes", n)
	}
}
