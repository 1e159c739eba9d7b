// Package keys knows what the keys of the full-screen reader do: the sets of keys that ship, and the user's
// changes.
package keys

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// sets holds the sets of keys that ship, a file each.
//
//go:embed sets
var sets embed.FS

// DefaultSet is the set of keys for users who have not chosen one.
const DefaultSet = "default"

// Set returns the text of a set of keys that ships; ok is false if there is no such set.
func Set(name string) (text string, ok bool) {
	data, err := sets.ReadFile("sets/" + name)
	return string(data), err == nil && !strings.ContainsAny(name, "/.")
}

// Sets returns the names of the sets that ship.
func Sets() []string {
	ents, _ := sets.ReadDir("sets") // embedded, so it cannot fail
	var names []string
	for _, e := range ents {
		names = append(names, e.Name())
	}
	return names
}

// Keys are the bindings of keys.
type Keys struct {
	Bound []Bound // in the order of the file
	// Pane returns the pane that has the keys of the user; "" stands for all panes.
	Pane func() string
	// Errs are the errors of invalid lines, which are ignored.
	Errs  []error
	check func(c Call) error
}

// Pane is one of the three panes, or a menu, which has keys of its own and is never in the layout.
type Pane uint8

// The panes.
const (
	FeedsPane Pane = iota
	ListPane
	PagePane
	MenuPane
)

// Panes are the names of panes in the file of keys.
var Panes = []string{FeedsPane: "feeds", ListPane: "list", PagePane: "entry", MenuPane: "menu"}

// Call is an action with its count and words.
type Call struct {
	Action string
	Count  int // typed before the key; 0 if none
	Words  []string
}

// Place is keys in a pane.
type Place struct {
	Pane string // "" for all panes
	Keys string // in the form of the file
}

// Bound is keys with their actions.
type Bound struct {
	Place
	Actions Binding
}

// Binding is the actions of a key or a key sequence, in order.
type Binding []Call

func (b Binding) String() string {
	var all []string
	for _, s := range b {
		all = append(all, strings.Join(append([]string{s.Action}, s.Words...), " "))
	}
	return strings.Join(all, "; ")
}

// Parse parses a file of keys; name is its name in messages. Errors of lines are in Errs, and the other
// lines are used. An action is an error if check returns one.
//
//	# comment
//	use NAME                    begin with this set instead of the default
//	KEYS ACTION [WORD…] [; …]   bind a key or a key sequence
//	in PANE…                    the lines below are for these panes: feeds, list, entry, menu, or all
//
// A key is a character, or a name in angle brackets: <space>, <C-d>, <A-x>, <f1>. Words
// are separated by spaces and can be quoted, see [cmdline.Words].
func Parse(name string, text []byte, check func(c Call) error) *Keys {
	k := &Keys{Pane: func() string { return "" }, check: check}
	k.read(name, text, DefaultSet)
	return k
}

// read binds the keys of a set, "" for none, and then those of the lines. The lines may name
// another set.
func (k *Keys) read(name string, text []byte, set string) {
	var lines []Bound
	panes := []string{""}
	for i, raw := range strings.Split(string(text), "\n") {
		s := strings.TrimSpace(raw)
		if s == "" || s[0] == '#' {
			continue
		}
		first, steps, err := words(s)
		switch {
		case err != nil:
		case first == "use" && (len(steps) != 1 || len(steps[0]) != 1 || steps[0][0] == ""):
			err = errors.New("use takes the name of one set")
		case first == "use":
			set = steps[0][0]
		case first == "in":
			panes, err = parsePanes(steps)
		default:
			var l Bound
			if l.Keys, l.Actions, err = k.binding(first, steps); err != nil {
				break
			}
			for _, l.Pane = range panes {
				lines = append(lines, l)
			}
		}
		if err != nil {
			k.Errs = append(k.Errs, fmt.Errorf("%s, line %d: %w", name, i+1, err))
			if first == "in" {
				panes = nil // other panes must not get these keys
			}
		}
	}
	if set != "" {
		base, ok := Set(set)
		if !ok {
			k.Errs = append(k.Errs, fmt.Errorf("%s: there is no set of keys %q; there are %s", name, set,
				strings.Join(Sets(), ", ")))
			set = DefaultSet
			base, _ = Set(set)
		}
		k.read("the set "+set, []byte(base), "")
	}
	k.take(lines)
}

// words returns the first word of a line, and those of its actions.
func words(s string) (first string, steps [][]string, err error) {
	first = strings.Fields(s)[0]
	switch rest := s[len(first):]; {
	case !utf8.ValidString(s):
		err = errors.New("the line is not UTF-8")
	case rest == "":
		err = fmt.Errorf("no action after %s", s)
	default:
		steps, err = cmdline.Commands(rest)
	}
	return first, steps, err
}

// binding returns the keys and the actions of a line.
func (k *Keys) binding(first string, steps [][]string) (keys string, calls Binding, err error) {
	if keys, err = Canonical(first); err != nil {
		return "", nil, err
	}
	for _, words := range steps {
		if len(words) == 0 {
			return "", nil, errors.New("an action is missing")
		}
		c := Call{Action: words[0], Words: words[1:]}
		if err := k.check(c); err != nil {
			return "", nil, err
		}
		calls = append(calls, c)
	}
	return keys, calls, nil
}

// parsePanes parses the words of a line that begins with in.
func parsePanes(steps [][]string) (panes []string, err error) {
	for _, name := range steps[0] {
		switch {
		case name == "all":
			panes = append(panes, "")
		case slices.Contains(Panes, name):
			panes = append(panes, name)
		default:
			return nil, fmt.Errorf("there is no pane %q; there are %s and all. The lines below it are ignored", name,
				strings.Join(Panes, ", "))
		}
	}
	if len(steps) > 1 || len(panes) == 0 {
		return nil, errors.New("in takes the names of panes. The lines below it are ignored")
	}
	return panes, nil
}

// take binds the keys of lines. A later line replaces an earlier one. Lines for all panes replace
// also the bindings of single panes that were there before, so that a user's line holds in all of
// them, whichever set it changes. Longer sequences that were there before are removed, as the user's
// key would wait for them.
func (k *Keys) take(lines []Bound) {
	for _, l := range lines {
		none := l.Actions[0].Action == "none"
		k.Bound = slices.DeleteFunc(k.Bound, func(old Bound) bool {
			return l.Pane == "" && old.Keys == l.Keys || !none && (l.Pane == "" || old.Pane == l.Pane) &&
				len(old.Keys) > len(l.Keys) && strings.HasPrefix(old.Keys, l.Keys)
		})
	}
	for _, l := range lines {
		k.Bound = slices.DeleteFunc(k.Bound, func(old Bound) bool { return old.Place == l.Place })
		if l.Pane != "" || l.Actions[0].Action != "none" {
			k.Bound = append(k.Bound, l)
		}
	}
}

// At returns the binding of keys in a pane, nil if there is none.
func (k *Keys) At(at Place) Binding {
	if i := slices.IndexFunc(k.Bound, func(b Bound) bool { return b.Place == at }); i >= 0 {
		return k.Bound[i].Actions
	}
	return nil
}

// Get returns the binding of keys in the present pane. The pane's own binding goes before the one
// for all panes.
func (k *Keys) Get(keys string) (b Binding, ok bool) {
	if b = k.At(Place{k.Pane(), keys}); b == nil {
		b = k.At(Place{"", keys})
	}
	return b, b != nil && b[0].Action != "none"
}

// Of returns the keys of an action in the present pane for a message, or the action's name if it
// has no keys there.
func (k *Keys) Of(action string) string {
	is := func(b Binding, ok bool) bool { return ok && len(b) == 1 && b[0].Action == action }
	for _, pane := range []string{k.Pane(), ""} {
		for _, at := range k.Bound {
			if at.Pane == pane && is(at.Actions, true) && is(k.Get(at.Keys)) {
				return at.Keys
			}
		}
	}
	return action
}

// Begins reports whether keys are the beginning of a longer sequence. If they are bound in the
// present pane, longer sequences for all panes do not count.
func (k *Keys) Begins(keys string) bool {
	pane := k.Pane()
	own := k.At(Place{pane, keys})
	for _, at := range k.Bound {
		if len(at.Keys) > len(keys) && strings.HasPrefix(at.Keys, keys) &&
			(at.Pane == pane || at.Pane == "" && (own == nil || own[0].Action == "none")) {
			return true
		}
	}
	return false
}

// Named are the names of keys in the file of keys.
var Named = strings.Fields(`space enter esc tab backspace up down left right home end pageup pagedown insert delete
	lt hash f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11 f12`)

// inFile converts what the library calls keys and modifiers to the names of the file.
var inFile = strings.NewReplacer("ctrl+", "C-", "alt+", "A-", "shift+", "S-", "pgup", "pageup", "pgdown", "pagedown",
	"<", "lt", "#", "hash")

// KeyName converts the library's name of a key to the form of the file.
func KeyName(pressed string) string {
	key := inFile.Replace(pressed)
	if utf8.RuneCountInString(key) > 1 {
		return "<" + key + ">"
	}
	return key
}

// Canonical converts keys of a file to the form of [KeyName]: the case of names, and the order of
// modifiers, may differ in the file.
func Canonical(keys string) (string, error) {
	var b strings.Builder
	for rest := keys; rest != ""; {
		if rest[0] != '<' {
			_, n := utf8.DecodeRuneInString(rest)
			b.WriteString(KeyName(rest[:n]))
			rest = rest[n:]
			continue
		}
		name, after, ok := strings.Cut(rest[1:], ">")
		if !ok {
			return "", fmt.Errorf("%s: a > is missing after the name of a key; the key < itself is written <lt>", keys)
		}
		rest = after
		mods := ""
		for len(name) > 2 && name[1] == '-' && strings.Contains("CcAaMmSs", name[:1]) {
			mods += strings.ToUpper(name[:1])
			name = name[2:]
		}
		lower := strings.ToLower(name)
		switch named := slices.Contains(Named, lower); {
		case !named && (utf8.RuneCountInString(name) != 1 || mods == ""):
			return "", fmt.Errorf("<%s>: there is no such key", name)
		case named || strings.Contains(mods, "C"):
			name = lower
		}
		b.WriteByte('<')
		for _, m := range []string{"C", "AM", "S"} {
			if strings.ContainsAny(mods, m) {
				b.WriteString(m[:1] + "-")
			}
		}
		b.WriteString(name + ">")
	}
	return b.String(), nil
}

// PipeForm returns the form that words begin with (default "text"), and the other words.
func PipeForm(words []string) (form string, rest []string) {
	if len(words) > 0 && slices.Contains([]string{"text", "html", "url"}, words[0]) {
		return words[0], words[1:]
	}
	return "text", words
}

// Sequence is the beginning of a sequence of keys, and the digits that were typed before it.
type Sequence struct{ Keys, Count string }

// Pressed is what a key does after a sequence.
type Pressed struct {
	Binding Binding // nil if nothing is to be done
	Count   int     // for the actions of Binding
	Again   bool    // the binding is that of the sequence before the key, which is to be pressed again
	Unbound string  // the keys, if they do nothing
}

// Press returns what a key does. own are actions that have keys of their own, as in a menu.
func (s *Sequence) Press(k *Keys, own map[string]string, name string) (p Pressed) {
	if name == "<esc>" && *s != (Sequence{}) {
		*s = Sequence{}
		return p
	}
	if _, bound := k.Get(name); s.Keys == "" && !bound && len(name) == 1 && name[0] >= '0' && name[0] <= '9' &&
		(name != "0" || s.Count != "") {
		if s.Count += name; len(s.Count) > 6 {
			s.Count = s.Count[:6]
		}
		return p
	}
	pressed := s.Keys + name
	if own[pressed] != "" {
		p.Binding = Binding{{Action: own[pressed]}}
	} else if k.Begins(pressed) {
		s.Keys = pressed
		return p
	} else if b, ok := k.Get(pressed); ok {
		p.Binding = b
	} else if b, ok := k.Get(s.Keys); ok {
		p.Binding, p.Again = b, true // the user meant the shorter sequence, and then this key
	} else {
		p.Unbound = pressed
	}
	p.Count, _ = strconv.Atoi(s.Count)
	*s = Sequence{}
	return p
}
