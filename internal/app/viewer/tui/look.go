package tui

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/entrystore"
)

// looks holds the themes that ship, a file each.
//
//go:embed looks
var looks embed.FS

// themes are the names of the themes that ship, in the order of the key.
var themes = []string{"default", "dark", "light"}

// style is how an element of the screen looks.
type style uint8

// The elements of the screen that have a style.
const (
	plainStyle style = iota
	titleStyle       // the title of the pane with the focus
	titleAway        // the titles of the other panes
	cursorHere       // the line of the cursor in the pane that has the focus
	cursorAway       // the line of the cursor in the other panes
	unreadText
	feedStyle
	flagText
	dimText
	badText
	linkText
	matchText // a match of a search in an entry
	matchHere // the match that the cursor of the search is on
	styleCount
)

// elements are the names of styles in the file. plainStyle has none of its own: it stands for the
// style of the line.
var elements = [styleCount]string{"text", "title", "title-away", "cursor", "cursor-away", "unread", "feed", "flags",
	"dim", "error", "link", "match", "match-here"}

// colours are the styles of elements.
type colours [styleCount]colour

// colour is a style as the parameters of the control sequence SGR.
type colour struct {
	set        bool
	attributes []string // bold and the like
	inks       []string // colours
}

// Look is the look of the screen: a theme with the user's changes, formats of lines, and a layout.
type Look struct {
	theme, layout string
	own           colours
	sgr           [styleCount]string // the parameters of SGR for the theme in use
	// Entry formats the line of an entry, feed that of a node, and titles the titles of panes; nil
	// for the usual text.
	Entry  func(*entrystore.Record) []Part
	feed   func(*node) []Part
	titles [len(leastColumns)]func(*painter) []Part // by pane
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
//	format LINE TEMPLATE           the lines of: entry, feed, feeds-title, list-title, entry-title
func ParseLook(name string, text []byte) *Look {
	l := &Look{theme: themes[0]}
	number := 0
	for raw := range bytes.Lines(text) {
		number++
		if err := l.line(strings.Trim(string(raw), "\r\n")); err != nil {
			l.Errs = append(l.Errs, fmt.Errorf("%s, line %d: %w", name, number, err))
		}
	}
	return l
}

// line parses a line.
func (l *Look) line(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("the line is not UTF-8")
	}
	words := strings.Fields(s)
	if len(words) == 0 || words[0][0] == '#' {
		return nil
	}
	switch {
	case words[0] == "theme" && len(words) == 2:
		if !slices.Contains(themes, words[1]) {
			return fmt.Errorf("there is no theme %q; there are %s", words[1], strings.Join(themes, ", "))
		}
		l.theme = words[1]
	case words[0] == "layout" && len(words) == 2:
		if !slices.Contains(layouts, words[1]) {
			return fmt.Errorf("there is no layout %q; there are %s", words[1], strings.Join(layouts, ", "))
		}
		l.layout = words[1]
	case words[0] == "color" && len(words) > 2:
		return l.own.parse(words[1:])
	case words[0] == "format" && len(words) > 2:
		_, rest, _ := strings.Cut(s, words[0])
		_, rest, _ = strings.Cut(rest, words[1])
		return l.format(words[1], strings.TrimSpace(rest))
	default:
		return errors.New("a line is theme NAME, layout NAME, color ELEMENT STYLE or format LINE TEMPLATE")
	}
	return nil
}

// parse sets the style of an element, as words of the file.
func (c *colours) parse(words []string) error {
	at := slices.Index(elements[1:], words[0]) + 1
	if at == 0 {
		return fmt.Errorf("there is no element %q; there are %s", words[0], strings.Join(elements[1:], ", "))
	}
	to, on := colour{set: true}, false
	for _, word := range words[1:] {
		attribute := slices.Index(attributes, word)
		ink, ok := inkOf(word, on)
		switch {
		case word == "none":
		case word == "on" && !on:
			on = true
			continue
		case ok:
			to.inks = append(to.inks, ink)
		case attribute > 0 && !on:
			to.attributes = append(to.attributes, strconv.Itoa(attribute))
		default:
			return fmt.Errorf("%q is neither a color (%s, bright-red and the like, 0 to 255, #rrggbb) nor one of bold, dim, italic, underline, reverse, none", word, strings.Join(inks, ", "))
		}
		on = false
	}
	if on {
		return errors.New("a color is missing after on")
	}
	c[at] = to
	return nil
}

// attributes are the names of attributes at their numbers in SGR.
var attributes = []string{1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse"}

// inks are the names of colours at their numbers in SGR.
var inks = []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// inkOf returns the parameters of SGR for a colour of the text, or of the background if on is set.
func inkOf(word string, on bool) (sgr string, ok bool) {
	base := 30
	if on {
		base = 40
	}
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

// use sets the styles of a theme, with the user's changes. Without colours, an element has the
// attributes of the user's style, or else those of the default theme.
func (l *Look) use(theme string, noColor bool) {
	if !slices.Contains(themes, theme) {
		theme = l.theme
	}
	l.theme = theme
	if noColor {
		theme = themes[0]
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
		l.sgr[i] = strings.Join(slices.Concat(c.attributes, c.inks), ";")
	}
}

// Part is a piece of a line with its style. Its text is safe for the screen.
type Part struct {
	style style
	right bool // this and the following parts are at the right end of the line
	text  string
}

// format parses the format of a kind of line.
func (l *Look) format(line, text string) (err error) {
	switch line {
	case "entry":
		// The screen knows the flags and the path before the disk does.
		columns := slices.DeleteFunc(entrystore.Columns(), func(c cmdline.Column[*entrystore.Record]) bool {
			return slices.Contains([]string{"path", "unread", "flags", "number"}, c.Name)
		})
		err = setFormat(&l.Entry, text, columns)
	case "feed":
		err = setFormat(&l.feed, text, []cmdline.Column[*node]{
			{Name: "title", Get: func(n *node) any { return n.title }},
			{Name: "site", Get: func(n *node) any { return n.site }},
			{Name: "unread", Get: func(n *node) any { return n.unread }},
			{Name: "flagged", Get: func(n *node) any { return n.flagged }},
			{Name: "error", Get: func(n *node) any { return n.err }},
		})
	case "feeds-title", "list-title", "entry-title":
		at := slices.Index(panes, strings.TrimSuffix(line, "-title"))
		err = setFormat(&l.titles[at], text, []cmdline.Column[*painter]{
			{Name: "name", Get: func(p *painter) any { return listName(p.m) }},
			{Name: "query", Get: func(p *painter) any { return p.list.query }},
			{Name: "line", Get: func(p *painter) any { return p.list.at + 1 }},
			{Name: "lines", Get: func(p *painter) any { return len(p.list.items) }},
			{Name: "unread", Get: func(p *painter) any { return p.allUnread() }},
			{Name: "flags",
				Get: func(p *painter) any { return strings.TrimSpace(flagLetters(p.marks.now(p.page.ref))) }},
			{Name: "title", Get: func(p *painter) any { return p.title(p.page.key) }},
		})
	default:
		err = fmt.Errorf("there is no line %q; there are entry, feed, feeds-title, list-title, entry-title", line)
	}
	return err
}

// template is a piece of a format.
type template[R any] struct {
	part    Part
	printer *cmdline.Printer[R] // nil for text without a template
	out     *bytes.Buffer
}

// setFormat sets a format, unless the text has an error.
func setFormat[R any](to *func(R) []Part, text string, columns []cmdline.Column[R]) error {
	f, err := formatter(text, columns)
	if err == nil {
		*to = f
	}
	return err
}

// formatter returns a function that formats records as parts. The function may be called concurrently.
func formatter[R any](text string, columns []cmdline.Column[R]) (func(R) []Part, error) {
	first, err := compile(text, columns)
	if err != nil {
		return nil, err
	}
	var pool sync.Pool // a printer is not safe for concurrent use
	pool.Put(&first)
	return func(r R) []Part {
		all, _ := pool.Get().(*[]template[R])
		if all == nil {
			another, _ := compile(text, columns) // as the first, which had no error
			all = &another
		}
		defer pool.Put(all)
		parts := make([]Part, len(*all))
		for i, t := range *all {
			parts[i] = t.part
			if t.printer == nil {
				continue
			}
			t.out.Reset()
			if err := cmp.Or(t.printer.Print(r), t.printer.Flush()); err != nil {
				return []Part{{style: badText, text: Plain(formatError(err).Error())}}
			}
			parts[i].text = linePart(strings.TrimSuffix(t.out.String(), "\x00"))
		}
		return parts
	}, nil
}

// maxPart is the length of the longest text of a part, in bytes.
const maxPart = 4000

// linePart returns untrusted text as a part of a line.
func linePart(s string) string { return Plain(s[:min(len(s), maxPart)]) }

// compile parses a format: templates, and the names of elements in angle brackets.
func compile[R any](text string, columns []cmdline.Column[R]) ([]template[R], error) {
	marks := regexp.MustCompile("<(" + strings.Join(elements[:], "|") + "|right)>")
	var all []template[R]
	in, right, from := plainStyle, false, 0
	for _, at := range append(marks.FindAllStringSubmatchIndex(text, -1), nil) {
		to := len(text)
		if at != nil {
			to = at[0]
		}
		if piece := text[from:to]; piece != "" {
			t := template[R]{part: Part{in, right, linePart(piece)}}
			if strings.Contains(piece, "{{") {
				t.out = &bytes.Buffer{}
				var err error
				if t.printer, err = cmdline.NewPrinter(t.out, cmdline.PrinterOptions{Format: piece, Nul: true},
					columns); err != nil {
					return nil, formatError(err)
				}
			}
			all = append(all, t)
		}
		if at == nil {
			break
		}
		if name := text[at[2]:at[3]]; name == "right" {
			right = true
		} else {
			in = style(slices.Index(elements[:], name))
		}
		from = at[1]
	}
	return all, nil
}

// formatError returns the error of a template, without the name of the option that has it otherwise.
func formatError(err error) error {
	message := strings.TrimLeft(strings.TrimPrefix(err.Error(), "-o"), ":0123456789 ")
	if usage, ok := errors.AsType[*cmdline.UsageError](err); ok {
		return fmt.Errorf("%s; %s", message, usage.Hint)
	}
	return errors.New(message)
}
