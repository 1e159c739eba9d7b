package tui

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/command"
)

// The sets of keys that a file can begin with. The first one is where nothing is said.
//
//go:embed sets
var sets embed.FS

// DefaultSet is the set of keys of who has chosen none.
const DefaultSet = "default"

// Set gives the text of a set of keys that ships, in the form of the file.
func Set(name string) (string, bool) {
	data, err := sets.ReadFile("sets/" + name)
	return string(data), err == nil && !strings.ContainsAny(name, "/.")
}

// Sets gives the names of the sets that ship.
func Sets() []string {
	ents, _ := sets.ReadDir("sets") // it is in the program
	var names []string
	for _, e := range ents {
		names = append(names, e.Name())
	}
	return names
}

// Keys are what the keys do.
type Keys struct {
	bound map[string]binding // by keys in the form of the file
	order []string           // as they stand in the file, for help
	// Errs are the lines that make no sense, which do nothing.
	Errs []error
	// Commands tells whether a binding runs a command.
	Commands bool
}

// binding is what a key, or a sequence of keys, does: one thing after the other.
type binding struct{ steps []step }

// step is an action with its words.
type step struct {
	action string
	words  []string
}

func (b binding) String() string {
	var all []string
	for _, s := range b.steps {
		all = append(all, strings.Join(append([]string{s.action}, s.words...), " "))
	}
	return strings.Join(all, "; ")
}

// ParseKeys reads a file of keys, name its name for messages. What is wrong with a
// line is in Errs; the others count.
//
//	# comment
//	use NAME                    begin with that set, instead of the default
//	KEYS ACTION [WORD…] [; …]   what a key, or some in a row, do
//
// A key is a character, or a name in angle brackets: <space>, <C-d>, <A-x>, <f1>. Words
// are separated by spaces and can be quoted, see [command.Words].
func ParseKeys(name string, text []byte) *Keys {
	k := &Keys{bound: map[string]binding{}}
	k.begin(name, parseLines(name, text), DefaultSet, 0)
	return k
}

// begin takes the set that lines begin with, and then the lines. set is that of who
// names none.
func (k *Keys) begin(name string, lines []line, set string, depth int) {
	for _, l := range lines {
		if l.err == nil && l.keys == "use" {
			set = l.words[0]
		}
	}
	base, ok := Set(set)
	switch {
	case depth > len(Sets()): // sets that begin with each other; a test sees that none do
	case ok:
		k.begin("the set "+set, parseLines("the set "+set, []byte(base)), "", depth+1)
	case set != "":
		k.Errs = append(k.Errs, fmt.Errorf("%s: there is no set of keys %q; there are %s", name, set, strings.Join(Sets(), ", ")))
		k.begin(name, nil, DefaultSet, depth+1)
	}
	k.take(lines)
}

// line is a line of a file of keys.
type line struct {
	keys  string
	steps []step
	words []string // of use
	err   error
}

func parseLines(name string, text []byte) []line {
	var lines []line
	number := 0
	for raw := range bytes.Lines(text) {
		number++
		s := strings.TrimSpace(string(raw))
		if s == "" || s[0] == '#' {
			continue
		}
		l := parseLine(s)
		if l.err != nil {
			l.err = fmt.Errorf("%s, line %d: %w", name, number, l.err)
		}
		lines = append(lines, l)
	}
	return lines
}

func parseLine(s string) (l line) {
	if !utf8.ValidString(s) {
		l.err = fmt.Errorf("it is not UTF-8")
		return l
	}
	at := strings.IndexFunc(s, unicode.IsSpace)
	if at < 0 {
		l.err = fmt.Errorf("after %s there is no action", s)
		return l
	}
	steps, err := command.Commands(s[at:])
	if err != nil {
		l.err = err
		return l
	}
	if s[:at] == "use" {
		l.keys = "use"
		if l.words = steps[0]; len(steps) != 1 || len(l.words) != 1 {
			l.err = fmt.Errorf("use takes the name of one set")
		}
		return l
	}
	if l.keys, err = canonical(s[:at]); err != nil {
		l.err = err
		return l
	}
	for _, words := range steps {
		if len(words) == 0 {
			l.err = fmt.Errorf("an action is missing")
			return l
		}
		st := step{action: words[0], words: words[1:]}
		if l.err = st.check(); l.err != nil {
			return l
		}
		l.steps = append(l.steps, st)
	}
	return l
}

// check tells what is wrong with a step.
func (s step) check() error {
	if s.action == "none" {
		return nil
	}
	a, ok := actionOf(s.action)
	switch {
	case !ok:
		return fmt.Errorf("there is no action %q", s.action)
	case a.words == 0 && len(s.words) > 0:
		return fmt.Errorf("%s takes no words", s.action)
	case a.words == 1 && len(s.words) > 1:
		return fmt.Errorf("%s takes one word", s.action)
	case a.words == variadic && len(s.words) == 0:
		return fmt.Errorf("%s takes a command", s.action)
	}
	return nil
}

// take binds the keys of lines; later ones count.
func (k *Keys) take(lines []line) {
	for _, l := range lines {
		switch {
		case l.err != nil:
			k.Errs = append(k.Errs, l.err)
			continue
		case l.keys == "use":
			continue
		}
		k.order = slices.DeleteFunc(k.order, func(s string) bool { return s == l.keys })
		if l.steps[0].action == "none" {
			delete(k.bound, l.keys)
			continue
		}
		k.bound[l.keys] = binding{l.steps}
		k.order = append(k.order, l.keys)
		for _, s := range l.steps {
			if a, _ := actionOf(s.action); a.words == variadic {
				k.Commands = true
			}
		}
	}
}

// action returns the first action that a single key does, "" if it does none.
func (k *Keys) action(name string) string {
	if b, ok := k.bound[name]; ok {
		return b.steps[0].action
	}
	return ""
}

// of returns the keys of an action for a message, or its name if no keys do it.
func (k *Keys) of(action string) string {
	for _, keys := range k.order {
		if b := k.bound[keys]; len(b.steps) == 1 && b.steps[0].action == action {
			return keys
		}
	}
	return action
}

// begins reports whether more keys may follow.
func (k *Keys) begins(keys string) bool {
	for s := range k.bound {
		if len(s) > len(keys) && strings.HasPrefix(s, keys) {
			return true
		}
	}
	return false
}

// named are the keys that have names, in the words of the library and in those of
// the file.
var named = []struct{ library, file string }{
	{"space", "space"}, {"enter", "enter"}, {"esc", "esc"}, {"tab", "tab"}, {"backspace", "backspace"},
	{"up", "up"}, {"down", "down"}, {"left", "left"}, {"right", "right"},
	{"home", "home"}, {"end", "end"}, {"pgup", "pageup"}, {"pgdown", "pagedown"}, {"insert", "insert"}, {"delete", "delete"},
	{"<", "lt"}, {"#", "hash"}, {"f1", "f1"}, {"f2", "f2"}, {"f3", "f3"}, {"f4", "f4"}, {"f5", "f5"}, {"f6", "f6"},
	{"f7", "f7"}, {"f8", "f8"}, {"f9", "f9"}, {"f10", "f10"}, {"f11", "f11"}, {"f12", "f12"},
}

// keyName gives a key that was pressed in the form of the file.
func keyName(pressed string) string {
	mods := ""
	rest := pressed
	for {
		found := false
		for _, m := range []struct{ library, file string }{{"ctrl+", "C-"}, {"alt+", "A-"}, {"shift+", "S-"}} {
			// "+" with a modifier ends in it, too.
			if after, ok := strings.CutPrefix(rest, m.library); ok && after != "" {
				mods, rest, found = mods+m.file, after, true
			}
		}
		if !found {
			break
		}
	}
	for _, n := range named {
		if n.library == rest {
			return "<" + mods + n.file + ">"
		}
	}
	if mods != "" || utf8.RuneCountInString(rest) > 1 {
		return "<" + mods + rest + ">"
	}
	return rest
}

// canonical gives keys of a file in one form, whatever the case of their names.
func canonical(keys string) (string, error) {
	var b strings.Builder
	for rest := keys; rest != ""; {
		if rest[0] != '<' {
			r, n := utf8.DecodeRuneInString(rest)
			if r == '#' {
				b.WriteString("<hash>")
			} else {
				b.WriteString(rest[:n])
			}
			rest = rest[n:]
			continue
		}
		end := strings.IndexByte(rest, '>')
		if end < 0 {
			return "", fmt.Errorf("%s: a name of a key ends with >; the key itself is <lt>", keys)
		}
		name := rest[1:end]
		rest = rest[end+1:]
		mods := map[byte]bool{}
		for len(name) > 2 && name[1] == '-' && strings.ContainsRune("CcAaMmSs", rune(name[0])) {
			m := name[0] &^ 0x20
			if m == 'M' {
				m = 'A'
			}
			mods[m] = true
			name = name[2:]
		}
		known := slices.ContainsFunc(named, func(n struct{ library, file string }) bool { return n.file == strings.ToLower(name) })
		switch {
		case known:
			name = strings.ToLower(name)
		case utf8.RuneCountInString(name) != 1 || len(mods) == 0:
			return "", fmt.Errorf("<%s>: there is no such key", name)
		case mods['C']:
			name = strings.ToLower(name)
		}
		b.WriteByte('<')
		for _, m := range []byte("CAS") {
			if mods[m] {
				b.WriteByte(m)
				b.WriteByte('-')
			}
		}
		b.WriteString(name + ">")
	}
	return b.String(), nil
}
