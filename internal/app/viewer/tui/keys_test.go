package tui

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/lektordir/lektor/internal/app/viewer/tui/keys"
)

// The sets that ship have no mistakes, and each has keys to open, to quit and for help.
func TestSets(t *testing.T) {
	if want := []string{"default", "newsboat", "vim"}; !slices.Equal(keys.Sets(), want) {
		t.Fatalf("%q", keys.Sets())
	}
	for _, name := range keys.Sets() {
		k := ParseKeys("test", []byte("use "+name+"\n"))
		if len(k.Errs) > 0 {
			t.Errorf("%s: %v", name, k.Errs)
		}
		if RunsCommands(k) {
			t.Errorf("%s runs commands", name)
		}
		does := map[string]bool{}
		for _, b := range k.Bound {
			for _, s := range b.Actions {
				does[s.Action] = true
			}
		}
		for _, need := range []string{
			"down", "up", "open", "back", "quit-now", "help", "next-unread", "forward", "toggle-read", "browser", "undo", "search", "read-all", "all",
		} {
			if !does[need] {
				t.Errorf("%s: no key does %s", name, need)
			}
		}
	}
	// Keys that users of similar programs expect.
	for set, keys := range map[string]map[string]string{
		"default":  {"j": "down", "k": "up", "<space>": "forward", "n": "next-unread", "N": "previous-unread", "r": "toggle-read", "m": "toggle-flagged", "o": "browser", "/": "search", "u": "undo", "?": "help"},
		"vim":      {"j": "down", "gg": "top", "G": "bottom", "<C-d>": "half-down", "<C-w>w": "next-pane", "ZZ": "quit-now", "dd": "trash", "za": "fold", "/": "search", "u": "undo"},
		"newsboat": {"n": "next-unread", "p": "previous-unread", "N": "toggle-read; quit", "o": "browser", "D": "trash", "q": "quit", "<enter>": "open", "1": "link 1", "?": "help"},
	} {
		k := ParseKeys("test", []byte("use "+set))
		k.Pane = func() string { return "entry" }
		for key, want := range keys {
			if b, _ := k.Get(key); b.String() != want {
				got := b.String()
				t.Errorf("%s: %s does %q, not %s", set, key, got, want)
			}
		}
	}
}

func TestParseKeys(t *testing.T) {
	for _, tc := range []struct{ line, keys, want string }{
		{"x trash", "x", "trash"},
		{"  x\ttrash  ", "x", "trash"},
		{"gs read ; next-unread", "gs", "read; next-unread"},
		{"gs read;next-unread", "", "line 1: there is no action \"read;next-unread\""},
		{"<c-N> next", "<C-n>", "next"},
		{"<M-x> next", "<A-x>", "next"},
		{"<Space> next", "<space>", "next"},
		{"<C-A-x>q next", "<C-A-x>q", "next"},
		{"<hash> next", "<hash>", "next"},
		{"# next", "", ""},
		{"< next", "", "line 1: <: a > is missing"},
		{"<nokey> next", "", "line 1: <nokey>: there is no such key"},
		{"<f13> next", "", "line 1: <f13>: there is no such key"}, // tests press it as an unbound key
		{"x", "", "line 1: no action after x"},
		{"x nothing-such", "", "line 1: there is no action \"nothing-such\""},
		{"x down 3", "", "line 1: down takes no words"},
		{"x link 3", "x", "link 3"},
		{"x link 3 4", "", "line 1: link takes one word"},
		{"x run", "", "line 1: run takes a command"},
		{"x run a 'b c' \"d;e\" f\\ g ';' ; down", "x", "run a b c d;e f g ;; down"},
		{"x run 'a", "", "line 1: a ' is not closed"},
		{"x run a\\", "", "line 1: there is nothing after the last"},
		{"x ; down", "", "line 1: an action is missing"},
		{"x down ;", "", "line 1: an action is missing"},
		{"use newsboat", "p", "previous-unread"},
		{"use elm", "j", "down"}, // an unknown set is replaced by the default
		{"use", "", "line 1: no action after use"},
		{"use ''", "", "line 1: use takes the name of one set"},
		{"x\xff down", "", "line 1: the line is not UTF-8"},
		{"j none", "j", ""},
		{"日 down", "日", "down"},
	} {
		k := ParseKeys("keys", []byte(tc.line+"\r\n"))
		errs := ""
		for _, err := range k.Errs {
			errs += err.Error() + "\n"
		}
		if tc.keys == "" {
			if tc.want != "" && !strings.HasPrefix(errs, "keys, "+tc.want) || tc.want == "" && errs != "" {
				t.Errorf("%q: %q, not %q", tc.line, errs, tc.want)
			}
			continue
		}
		if got := k.At(keys.Place{Pane: "", Keys: tc.keys}).String(); got != tc.want || errs != "" && !strings.HasPrefix(tc.line, "use elm") {
			t.Errorf("%q: %s does %q, not %q; %s", tc.line, tc.keys, got, tc.want, errs)
		}
	}
	k := ParseKeys("keys", []byte("x trash\nbad\ny run ls\n"))
	if len(k.Errs) != 1 || !RunsCommands(k) || k.At(keys.Place{Pane: "", Keys: "x"}).String() != "trash" || k.At(keys.Place{Pane: "", Keys: "j"}).String() != "down" {
		t.Errorf("%v %v %v", k.Errs, RunsCommands(k), k.Bound)
	}
	k = ParseKeys("keys", []byte("y trash\ng top\ngz read\nZ none\n"))
	for pressed, want := range map[string]string{"y": "trash", "yy": "", "gg": "", "g": "top", "gz": "read"} {
		if got := k.At(keys.Place{Pane: "", Keys: pressed}).String(); got != want || k.Begins(pressed) != (pressed == "g") {
			t.Errorf("%s does %q, not %q; begins %v", pressed, got, want, k.Begins(pressed))
		}
	}
	if k := ParseKeys("keys", []byte("use elm")); len(k.Errs) != 1 || !strings.Contains(k.Errs[0].Error(), "default, newsboat, vim") {
		t.Errorf("%v", k.Errs)
	}
}

// A binding of a pane goes before one for all panes, and a user's line for all panes before those
// of the set.
func TestKeysByPane(t *testing.T) {
	text := "use newsboat\nin list\nx trash\ny read\nin menu feeds\nx open\nin all\nx down\ny\tup\nxy top\n,a top\nin entry\ny none\n, read\nin elm\nQ none\nin list\nz none"
	k := ParseKeys("keys", []byte(text))
	if len(k.Errs) != 1 || !strings.Contains(k.Errs[0].Error(), "line 15: there is no pane \"elm\"; there are feeds, list, entry, menu and all") {
		t.Errorf("%v", k.Errs)
	}
	for _, bad := range []string{"in", "in ;", "in list ; feeds", "in 'list"} {
		if k := ParseKeys("keys", []byte("in entry\n"+bad+"\nx trash")); len(k.Errs) != 1 || k.At(keys.Place{Pane: "entry", Keys: "x"}) != nil {
			t.Errorf("%q: %v, %v", bad, k.Errs, k.Bound)
		}
	}
	for _, tc := range []struct {
		pane, keys, want string
		begins           bool
	}{
		{"list", "x", "trash", false}, {"feeds", "x", "open", false}, {"menu", "x", "open", false}, {"entry", "x", "down", true},
		{"list", "y", "read", false}, {"entry", "y", "", false}, {"feeds", "y", "up", false}, {"", "x", "down", true},
		{"entry", ",", "read", false}, {"list", ",", "", true}, {"list", "z", "", false}, {"feeds", "z", "zoom", false}, {"feeds", "Q", "quit-now", false},
	} {
		k.Pane = func() string { return tc.pane }
		got := ""
		if b, ok := k.Get(tc.keys); ok {
			got = b[0].Action
		}
		if got != tc.want || k.Begins(tc.keys) != tc.begins {
			t.Errorf("in %q %s does %q, not %q; begins %v", tc.pane, tc.keys, got, tc.want, k.Begins(tc.keys))
		}
	}
	k.Pane = func() string { return "list" }
	if got := k.Of("trash") + k.Of("down") + k.Of("zoom"); got != "Djzoom" {
		t.Errorf("keys %s", got)
	}
}

// The set newsboat has an action for each key of newsboat 2.21 in the same pane, or the manual says
// that the key does nothing.
func TestNewsboat(t *testing.T) {
	page, err := os.ReadFile("../../../../man/lektor-view-tui.1")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n.Ss The keys of newsboat\n")
	text, _, _ = strings.Cut(text, "\n.Ss ")
	documented := strings.Fields(strings.ReplaceAll(text, "^", "C-"))
	k := ParseKeys("test", []byte("use newsboat"))
	const everywhere = "q Q J K n p <C-k> o ? / : , v <C-v> <C-g> <C-l> <up> <down> <pageup> <pagedown> <home> <end> "
	for pane, keys := range map[string]string{
		"feeds": everywhere + "<enter> r R A C l <C-t> t <C-r> F f <C-f> E g G",
		"list":  everywhere + "<enter> r A s O N l u F f <C-f> <C-b> <C-e> j k <C-n> <C-p> D <C-d> $ E | g G",
		"entry": everywhere + "s O <C-u> N u <hash> e <C-b> <C-e> D | 0 1 2 3 4 5 6 7 8 9 b <space>",
		"menu":  "q Q <enter> <up> <down> <pageup> <pagedown> <home> <end>",
	} {
		k.Pane = func() string { return pane }
		for key := range strings.FieldsSeq(keys) {
			name := strings.ToUpper(strings.Trim(key, "<>"))
			if !strings.HasPrefix(key, "<") {
				name = key
			}
			if _, ok := k.Get(key); !ok && !slices.Contains(documented, name) && !slices.Contains(documented, `\&`+name) {
				t.Errorf("%s: %s has no action, and the manual does not say so", pane, key)
			}
		}
	}
}

// Pressed keys have the same names as in the file.
func TestKeyNames(t *testing.T) {
	for want, k := range map[string]tea.Key{
		"j": {Code: 'j', Text: "j"}, "J": {Code: 'j', Text: "J", Mod: tea.ModShift}, "<space>": {Code: tea.KeySpace, Text: " "},
		"<C-d>": {Code: 'd', Mod: tea.ModCtrl}, "<A-x>": {Code: 'x', Mod: tea.ModAlt}, "<S-tab>": {Code: tea.KeyTab, Mod: tea.ModShift},
		"<enter>": {Code: tea.KeyEnter}, "<esc>": {Code: tea.KeyEscape}, "<pagedown>": {Code: tea.KeyPgDown}, "<lt>": {Code: '<', Text: "<"},
		"<hash>": {Code: '#', Text: "#"}, "+": {Code: '+', Text: "+"}, "<C-+>": {Code: '+', Mod: tea.ModCtrl}, "ü": {Code: 'ü', Text: "ü"}, "<f1>": {Code: tea.KeyF1},
	} {
		got := keys.KeyName(tea.KeyPressMsg(k).String())
		if got != want {
			t.Errorf("%+v is %s, not %s", k, got, want)
		}
		if canon, err := keys.Canonical(got); err != nil || canon != got {
			t.Errorf("%s in the file is %s, %v", got, canon, err)
		}
	}
}

// The manual has every action, and no other.
func TestManual(t *testing.T) {
	page, err := os.ReadFile("../../../../man/lektor-view-tui.1")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n.Sh KEYS\n")
	text, _, _ = strings.Cut(text, "\n.Sh ")
	documented := map[string]bool{"none": true}
	for _, l := range regexp.MustCompile(`(?m)^\.It Ic (.*)$`).FindAllStringSubmatch(text, -1) {
		names, _, _ := strings.Cut(strings.Split(l[1], " Op ")[0], " Ar ")
		for name := range strings.FieldsSeq(strings.ReplaceAll(names, ",", " ")) {
			documented[name] = true
			if _, ok := actionOf(name); !ok && name != "none" {
				t.Errorf("the manual has %s, which is no action", name)
			}
		}
	}
	for _, a := range actions() {
		if !documented[a.name] {
			t.Errorf("the manual does not have %s", a.name)
		}
		if a.help == "" {
			t.Errorf("%s: no help", a.name)
		}
	}
	for _, k := range keys.Named {
		if !strings.Contains(text, "<"+k+">") && k[0] != 'f' {
			t.Errorf("the manual does not have <%s>", k)
		}
	}
}

// The tables of docs/tui.md have each action with a command, and the keys of the sets default and
// newsboat.
func TestTables(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/tui.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n## Keys and commands\n")
	text, _, _ = strings.Cut(text, "\n## ")
	rows := map[string]bool{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), "|")
		if len(cells) != 6 || strings.HasPrefix(cells[1], "-") || cells[1] == " action " {
			continue
		}
		action := strings.TrimSpace(cells[1])
		rows[action] = true
		if _, ok := actionOf(action); !ok {
			t.Errorf("there is no action %s", action)
		}
		for i, set := range []string{"default", "newsboat"} {
			k := ParseKeys("test", []byte("use "+set))
			for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2+i], -1) {
				name := strings.NewReplacer("\x00", "|", "#", "<hash>").Replace(key[1])
				if !slices.ContainsFunc(k.Bound, func(at keys.Bound) bool {
					return at.Keys == name && slices.ContainsFunc(at.Actions, func(c keys.Call) bool { return c.Action == action })
				}) {
					t.Errorf("%s: in the set %s %s does something else", action, set, name)
				}
			}
		}
	}
	for _, a := range actions() {
		if a.command != "" && !rows[a.name] {
			t.Errorf("no row has %s, which is %s", a.name, a.command)
		}
	}
}

// The manual has the default keys and the command of each action.
func TestManualKeys(t *testing.T) {
	page, err := os.ReadFile("../../../../man/lektor-view-tui.1")
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ := strings.Cut(string(page), "\n.Ss Default keys and their commands\n")
	_, got, _ = strings.Cut(got, "\n.Bd -literal\n")
	got, _, _ = strings.Cut(got, ".Ed\n")
	var want strings.Builder
	k := ParseKeys("test", nil)
	for _, a := range actions() {
		var pressed []string
		for _, at := range k.Bound {
			if slices.ContainsFunc(at.Actions, func(c keys.Call) bool { return c.Action == a.name }) {
				pressed = append(pressed, at.Keys)
			}
		}
		if len(pressed) == 0 {
			continue
		}
		line := fmt.Sprintf("%-15s %-15s ", strings.Join(pressed, " "), a.name)
		if len(line+a.command) > 72 {
			line = strings.TrimRight(line, " ") + "\n    "
		}
		if line[0] == '.' {
			line = `\&` + line // else mdoc takes it for a macro
		}
		want.WriteString(strings.TrimRight(line+a.command, " ") + "\n")
	}
	if got != want.String() {
		t.Errorf("the keys in the manual should be\n%s", want.String())
	}
}

// A user's key does not wait for longer sequences of the set, but for the user's own.
func TestKeyBeginsSequences(t *testing.T) {
	for _, tc := range []struct {
		text, pane string
		begins     bool
	}{
		{"y down", "list", false}, {"y down\nyx up", "list", true}, {"yx up\ny down", "list", true}, {"y none", "list", true},
		{"in list\ny down", "list", false}, {"in list\ny down", "entry", true},
	} {
		k := ParseKeys("keys", []byte(tc.text))
		k.Pane = func() string { return tc.pane }
		if k.Begins("y") != tc.begins {
			t.Errorf("%q in %s: y begins a sequence: %t", tc.text, tc.pane, !tc.begins)
		}
	}
}

func FuzzParseKeys(f *testing.F) {
	for _, s := range []string{"use vim\nx run 'a b' ; down\n", "<C-x>gg top\n# c\n", "x \"", "<\n", "\xff", "in list menu\nx trash\nj none\nin all\nxy down\nin elm\nz top", "use ''"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		k := ParseKeys("keys", text)
		for _, at := range k.Bound {
			if len(at.Actions) == 0 {
				t.Fatalf("%v is bound to nothing", at)
			}
			if again, err := keys.Canonical(at.Keys); err != nil || again != at.Keys {
				t.Fatalf("%q: %q %v", at, again, err)
			}
			if at.Pane != "" && !slices.Contains(keys.Panes, at.Pane) {
				t.Fatalf("%q: no such pane", at)
			}
		}
		for i, b := range k.Bound {
			if slices.ContainsFunc(k.Bound[:i], func(other keys.Bound) bool { return other.Place == b.Place }) {
				t.Fatalf("%v is bound twice", b)
			}
		}
	})
}
