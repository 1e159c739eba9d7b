package cells

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// looks holds the themes that ship, a file each.
//
//go:embed looks
var looks embed.FS

// Themes are the names of the themes that ship, in the order of the key.
var Themes = []string{"default", "dark", "light"}

// Layouts are the names of the arrangements of panes, in the order of the key.
var Layouts = []string{AutoLayout, "two", "three", StackedLayout}

// Layouts that are not only columns.
const (
	AutoLayout    = "auto"    // as many columns as there is room for
	StackedLayout = "stacked" // the list above the entry
)

// Style is how an element of the screen looks.
type Style uint8

// The elements of the screen that have a style.
const (
	PlainStyle Style = iota
	TitleStyle       // the title of the pane with the focus
	TitleAway        // the titles of the other panes
	CursorHere       // the line of the cursor in the pane that has the focus
	CursorAway       // the line of the cursor in the other panes
	UnreadText
	FeedStyle
	FlagText
	DimText
	BadText
	LinkText
	MatchText // a match of a search in an entry
	MatchHere // the match that the cursor of the search is on
	styleCount
)

// elements are the names of styles in the file. plainStyle has none.
var elements = [styleCount]string{"", "title", "title-away", "cursor", "cursor-away", "unread", "feed", "flags",
	"dim", "error", "link", "match", "match-here"}

// colours are the styles of elements.
type colours [styleCount]colour

// colour is a style as the parameters of the control sequence SGR.
type colour struct {
	set        bool
	attributes []string // bold and the like
	inks       []string // colours
}

// Look is the look of the screen: a theme with the user's changes, and a layout.
type Look struct {
	Theme, Layout string
	own           colours
	Sgr           [styleCount]string // the parameters of SGR for the theme in use
	// Errs are the errors of invalid lines, which are ignored.
	Errs []error
}

// ParseLook parses a file of the look; name is its name in messages. Errors of lines are in Errs,
// and the other lines are used.
//
//	# comment
//	theme NAME
//	layout auto|two|three|stacked
//	color ELEMENT STYLE…           for example: color unread bold bright-white on #202020
func ParseLook(name string, text []byte) *Look {
	l := &Look{Theme: Themes[0]}
	for i, line := range strings.Split(string(text), "\n") {
		if err := l.Line(strings.Trim(line, "\r")); err != nil {
			l.Errs = append(l.Errs, fmt.Errorf("%s, line %d: %w", name, i+1, err))
		}
	}
	return l
}

// Line parses a line.
func (l *Look) Line(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("the line is not UTF-8")
	}
	words := strings.Fields(s)
	if len(words) == 0 || words[0][0] == '#' {
		return nil
	}
	switch {
	case words[0] == "theme" && len(words) == 2:
		return choose(&l.Theme, words, Themes)
	case words[0] == "layout" && len(words) == 2:
		return choose(&l.Layout, words, Layouts)
	case words[0] == "color" && len(words) > 2:
		return l.own.parse(words[1:])
	}
	return errors.New("a line is theme NAME, layout NAME or color ELEMENT STYLE")
}

// choose sets a choice to the second word of a line, if that is one of names.
func choose(to *string, words, names []string) error {
	if !slices.Contains(names, words[1]) {
		return fmt.Errorf("there is no %s %q; there are %s", words[0], words[1], strings.Join(names, ", "))
	}
	*to = words[1]
	return nil
}

// parse sets the style of an element, as words of the file.
func (c *colours) parse(words []string) error {
	at := slices.Index(elements[1:], words[0]) + 1
	if at == 0 {
		return fmt.Errorf("there is no element %q; there are %s", words[0], strings.Join(elements[1:], ", "))
	}
	to, base := colour{set: true}, textInk
	for _, word := range words[1:] {
		attribute := slices.Index(attributes, word)
		ink, ok := inkOf(word, base)
		switch {
		case word == "none":
		case word == "on" && base == textInk:
			base = backgroundInk
			continue
		case ok:
			to.inks = append(to.inks, ink)
		case attribute > 0 && base == textInk:
			to.attributes = append(to.attributes, strconv.Itoa(attribute))
		default:
			return fmt.Errorf("%q is neither a color (%s, bright-red and the like, 0 to 255, #rrggbb) nor one of bold, dim, italic, underline, reverse, none", word, strings.Join(inks, ", "))
		}
		base = textInk
	}
	if base != textInk {
		return errors.New("a color is missing after on")
	}
	c[at] = to
	return nil
}

// attributes are the names of attributes at their numbers in SGR.
var attributes = []string{1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}

// inks are the names of colours at their numbers in SGR.
var inks = []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// textInk and backgroundInk are the numbers of black in SGR.
const textInk, backgroundInk = 30, 40

// inkOf returns the parameters of SGR for a colour; base is the number of black.
func inkOf(word string, base int) (sgr string, ok bool) {
	name, bright := strings.CutPrefix(word, "bright-")
	switch i := slices.Index(inks, name); {
	case i >= 0 && bright:
		return strconv.Itoa(base + 60 + i), true
	case i >= 0:
		return strconv.Itoa(base + i), true
	case word == "default":
		return strconv.Itoa(base + 9), true
	}
	if n, err := strconv.ParseUint(word, 10, 8); err == nil {
		return fmt.Sprintf("%d;5;%d", base+8, n), true
	}
	if hex, ok := strings.CutPrefix(word, "#"); ok && len(hex) == 6 {
		if n, err := strconv.ParseUint(hex, 16, 24); err == nil {
			return fmt.Sprintf("%d;2;%d;%d;%d", base+8, n>>16, n>>8&255, n&255), true
		}
	}
	return "", false
}

// Use sets the styles of a theme, with the user's changes. Without colours, an element has the
// attributes of the user's style, or else those of the default theme.
func (l *Look) Use(theme string, noColor bool) {
	if !slices.Contains(Themes, theme) {
		theme = l.Theme
	}
	l.Theme = theme
	if noColor {
		theme = Themes[0]
	}
	text, _ := looks.ReadFile("looks/" + theme) // embedded, so it cannot fail
	base := ParseLook("", text).own
	for i := range base {
		c := base[i]
		if own := l.own[i]; own.set && (!noColor || len(own.attributes) > 0) {
			c = own
		}
		if noColor {
			c.inks = nil
		}
		l.Sgr[i] = strings.Join(slices.Concat(c.attributes, c.inks), ";")
	}
}

// Paint returns text in a style.
func (l *Look) Paint(s Style, text string) string {
	if l.Sgr[s] == "" || text == "" {
		return text
	}
	return "\x1b[" + l.Sgr[s] + "m" + text + "\x1b[m"
}
