package cmdline

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                        nil,
		" \t\n":                   nil,
		"mpv":                     {"mpv"},
		"  mpv  --fs\t-v ":        {"mpv", "--fs", "-v"},
		`a 'b c' "d e"`:           {"a", "b c", "d e"},
		`a'b c'd"e f"g`:           {"ab cde fg"},
		`'' ""`:                   {"", ""},
		`"a\"b\\c\d" 'a\b'`:       {`a"b\c\d`, `a\b`},
		`a\ b \\ \'`:              {"a b", `\`, "'"},
		`$HOME *.txt ~ ; rm|x>y&`: {"$HOME", "*.txt", "~", ";", "rm|x>y&"},
		"größe 'ß ß'":             {"größe", "ß ß"},
	} {
		got, err := Words(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"'", `"`, `a "b`, `a 'b"`, `a\`, `"a\"`} {
		if got, err := Words(text); err == nil {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestCommands(t *testing.T) {
	for text, want := range map[string]string{
		"":                      `[[]]`,
		"a b":                   `[["a" "b"]]`,
		"a 'b c' ; d;e ;":       `[["a" "b c"] ["d;e"] []]`,
		`a ';' ; b \; ";" x";"`: `[["a" ";"] ["b" ";" ";" "x;"]]`,
		"a ; ; b":               `[["a"] [] ["b"]]`,
	} {
		if got, err := Commands(text); err != nil || fmt.Sprintf("%q", got) != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	if got, err := Commands("a ; 'b"); err == nil || got != nil {
		t.Errorf("%q", got)
	}
}

// FuzzWords compares Words with a shell, for text without expansions.
func FuzzWords(f *testing.F) {
	for _, s := range []string{`a 'b c' "d e"`, `a\ b ''`, `"a\"b\\c"`, "a\tb", `'`, `\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Words(text)
		// Skip text that has a special meaning for the shell.
		if err != nil || strings.ContainsAny(text, "$`*?[]~#;|&<>(){}!=^\n\r\x00") || strings.Contains(text, "\\\n") {
			return
		}
		for _, r := range text {
			if r < ' ' && r != '\t' || r > '~' {
				return
			}
		}
		out, err := exec.Command("sh", "-c", "set -- "+text+"\nfor w; do printf '%s\\n' \"$w\"; done").Output()
		if err != nil {
			t.Fatalf("%q: the shell: %v", text, err)
		}
		want := strings.Join(got, "\n")
		if len(got) > 0 {
			want += "\n"
		}
		if string(out) != want {
			t.Fatalf("%q: %q, and the shell %q", text, got, out)
		}
	})
}
