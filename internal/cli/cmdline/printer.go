package cmdline

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// Column is a named value of the records that a command prints, for all formats of -o: a column of
// TSV, a key of JSON, a field of a template.
type Column[R any] struct {
	// Name consists of lower-case letters and digits, as in {{.name}}.
	Name string
	// Get returns the value: a string, []string, []Object, number, bool or time.Time. It is called
	// only if the format prints the column.
	Get func(R) any
	// Extra columns are printed only on request, by name or in a template, as they are long or take
	// time.
	Extra bool
	// Full columns are extra ones that JSON prints nevertheless, as JSON is the whole record.
	Full bool
	// Sparse columns are omitted from JSON if they are empty.
	Sparse bool
	// Text columns may have several lines; the others are printed on one line.
	Text bool
	// Verbatim columns are names, such as paths. They are printed unchanged, as input for other
	// programs. On a terminal, one that could act on it is quoted as in Go.
	Verbatim bool
}

// PrinterOptions are the options of [NewPrinter].
type PrinterOptions struct {
	// Format is tsv, json, the name of a column, several names separated by commas, for TSV, or a
	// template with {{.
	Format string
	Nul    bool // records end in NUL instead of a newline
	Raw    bool // print untrusted text unchanged
}

// Printer prints records, one per line, in the format of -o. It is buffered: call [Printer.Flush]
// at the end, and whenever a reader waits for the line. It is not safe for concurrent use.
type Printer[R any] struct {
	w       *bufio.Writer
	screen  bool // the output is a terminal
	opts    PrinterOptions
	columns []Column[R]
	print   func(R) error
	buf     bytes.Buffer
}

// OutputFlag returns the flag -o (--format) of commands that print records. usage must describe the
// default output.
func OutputFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "format", Aliases: []string{"o"}, Usage: usage}
}

// OutputFormat returns the value of [OutputFlag], empty if it was not given.
func OutputFormat(c *cli.Context) string { return c.String("format") }

// NewPrinter returns a printer of the columns of R. For an invalid format it returns a
// [UsageError].
func NewPrinter[R any](w io.Writer, opts PrinterOptions, columns []Column[R]) (*Printer[R], error) {
	p := &Printer[R]{w: bufio.NewWriter(w), screen: isTerminal(w), opts: opts, columns: columns}
	format := opts.Format
	switch {
	case format == "tsv":
		p.columns = p.usual()
		p.print = p.tsv
	case format == "json":
		p.columns = p.full()
		p.print = p.json
		p.screen = false // JSON has escapes of its own
	case strings.Contains(format, "{{"):
		return p, p.template(format)
	default:
		list, err := p.named(strings.Split(format, ","))
		several := strings.Contains(format, ",")
		if err != nil && !several {
			names := p.names()
			return nil, &UsageError{
				Message: fmt.Sprintf("-o %s: no such format", format),
				Hint: "formats are tsv, json, names with commas between, a template such as '{{." + names[0] +
					"}}', or one of " + strings.Join(names, ", "),
			}
		}
		p.columns, p.print = list, p.column
		if several {
			p.print = p.tsv
		}
		return p, err
	}
	return p, nil
}

// Records makes a printer, calls each with it, and flushes it. If opts has no format, it uses
// otherwise.
func Records[R any](w io.Writer, opts PrinterOptions, otherwise string, columns []Column[R],
	each func(*Printer[R]) error) error {
	opts.Format = cmp.Or(opts.Format, otherwise)
	p, err := NewPrinter(w, opts, columns)
	if err != nil {
		return err
	}
	return errors.Join(each(p), p.Flush())
}

// usual returns the columns that are printed by default.
func (p *Printer[R]) usual() []Column[R] {
	return slices.DeleteFunc(slices.Clone(p.columns), func(c Column[R]) bool { return c.Extra })
}

// full returns the columns of a whole record.
func (p *Printer[R]) full() []Column[R] {
	return slices.DeleteFunc(slices.Clone(p.columns), func(c Column[R]) bool { return c.Extra && !c.Full })
}

// named returns the columns with these names.
func (p *Printer[R]) named(names []string) ([]Column[R], error) {
	var out []Column[R]
	for _, name := range names {
		i := slices.IndexFunc(p.columns, func(c Column[R]) bool { return c.Name == name })
		if i < 0 {
			return nil, p.noField(fmt.Sprintf("-o: there is no field %q", name))
		}
		out = append(out, p.columns[i])
	}
	return out, nil
}

// PrintAll prints records.
func (p *Printer[R]) PrintAll(records []R) error {
	for _, r := range records {
		if err := p.Print(r); err != nil {
			return err
		}
	}
	return nil
}

// Print prints one record.
func (p *Printer[R]) Print(record R) error {
	p.buf.Reset()
	if err := p.print(record); err != nil {
		return err
	}
	switch {
	case p.opts.Nul:
		p.buf.WriteByte(0)
	case !bytes.HasSuffix(p.buf.Bytes(), []byte("\n")):
		p.buf.WriteByte('\n')
	}
	_, err := p.w.Write(p.buf.Bytes())
	return err
}

// Check formats a record without printing it, for commands that print after their work, so that a
// template that cannot be executed fails before. It ignores errors of template functions, which may
// be due to this record.
func (p *Printer[R]) Check(record R) error {
	p.buf.Reset()
	err := p.print(record)
	p.buf.Reset()
	if err != nil && strings.Contains(err.Error(), "error calling ") {
		return nil
	}
	return err
}

// Flush writes what was printed so far.
func (p *Printer[R]) Flush() error { return p.w.Flush() }

// safe returns a string of a column, made safe for a terminal.
func (p *Printer[R]) safe(c Column[R], s string) string {
	switch {
	case c.Verbatim && p.screen && !p.opts.Raw && termsafe.Line(s) != s:
		return strconv.Quote(s)
	case p.opts.Raw || c.Verbatim:
		return s
	case c.Text:
		return termsafe.Clean(s)
	default:
		return termsafe.Line(s)
	}
}

// value returns a column's value with its strings made safe.
func (p *Printer[R]) value(c Column[R], record R) any {
	switch v := c.Get(record).(type) {
	case string:
		return p.safe(c, v)
	case []string:
		out := make([]string, len(v))
		for i := range v {
			out[i] = p.safe(c, v[i])
		}
		return out
	case []Object:
		out := make([]Object, len(v))
		for i := range v {
			out[i] = slices.Clone(v[i])
			for j, m := range v[i] {
				if text, ok := m.Value.(string); ok {
					out[i][j].Value = p.safe(c, text)
				}
			}
		}
		return out
	default:
		return v
	}
}

// text returns a value as text for a person or a shell. A zero time is empty.
func text(v any) string { return joined(", ", v) }

// joined is text with a separator for a list.
func joined(sep string, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339)
	}
	list := reflect.ValueOf(v)
	if _, one := v.(fmt.Stringer); one || list.Kind() != reflect.Slice {
		return fmt.Sprint(v)
	}
	texts := make([]string, list.Len())
	for i := range texts {
		texts[i] = fmt.Sprint(list.Index(i))
	}
	return strings.Join(texts, sep)
}

func (p *Printer[R]) column(record R) error {
	p.buf.WriteString(text(p.value(p.columns[0], record)))
	return nil
}

func (p *Printer[R]) tsv(record R) error {
	for i, c := range p.columns {
		if i > 0 {
			p.buf.WriteByte('\t')
		}
		// Escaped, not folded into one line, so that the reader can restore the newlines.
		s := text(c.Get(record))
		if c.Verbatim {
			s = p.safe(c, s)
		} else if !p.opts.Raw {
			s = termsafe.Clean(s)
		}
		p.buf.WriteString(textfile.Escape(s))
	}
	return nil
}

func (p *Printer[R]) json(record R) error {
	whole := make(Object, 0, len(p.columns))
	for _, c := range p.columns {
		v := p.value(c, record)
		t, isTime := v.(time.Time)
		if isTime {
			v = text(t)
		}
		if !empty(v) || !isTime && !c.Sparse {
			whole = append(whole, Member{c.Name, v})
		}
	}
	return whole.write(&p.buf)
}

// empty reports whether a value is empty.
func empty(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.IsZero() || r.Kind() == reflect.Slice && r.Len() == 0
}

// marshal is json.Marshal without the escapes for HTML, but with escapes of everything that is
// unsafe on a terminal.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if !termsafe.Unsafe(string(out)) {
		return out, nil
	}
	var escaped bytes.Buffer
	for _, r := range string(out) {
		if s := string(r); termsafe.Unsafe(s) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteString(s)
		}
	}
	return escaped.Bytes(), nil
}

// escapes returns a template in which \t and \n outside of {{ }} are replaced by tab and newline.
func escapes(format string) string {
	return actionOrEscape().ReplaceAllStringFunc(format, func(s string) string {
		if s[0] == '{' {
			return s
		}
		return escaper.Replace(s)
	})
}

var actionOrEscape = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)\{\{.*?\}\}|\\[\\tn]`) })

var escaper = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")

// template parses a Go template over a map of the columns.
func (p *Printer[R]) template(format string) error {
	t, err := template.New("-o").Option("missingkey=error").Funcs(templateFuncs).Parse(escapes(format))
	if err != nil {
		return &UsageError{
			Message: strings.TrimPrefix(err.Error(), "template: "),
			Hint:    "a template looks like '{{.title}}'; see Go's text/template",
		}
	}
	// A trial run does not execute every branch.
	if name := unknownField(t.Root, func(name string) bool {
		return slices.ContainsFunc(p.columns, func(c Column[R]) bool { return c.Name == name })
	}, true); name != "" {
		return p.noField(fmt.Sprintf("-o: there is no field %q", name))
	}
	// Read only the columns that the template may use. The test may find too many. A template that
	// uses the whole record has the usual columns.
	whole := wholeRecord().MatchString(format)
	used := slices.DeleteFunc(slices.Clone(p.columns), func(c Column[R]) bool {
		return !strings.Contains(format, c.Name) && (!whole || c.Extra)
	})
	p.print = func(record R) error {
		data := make(map[string]any, len(used))
		for _, c := range used {
			v := p.value(c, record)
			switch t := v.(type) {
			case nil:
				v = ""
			case time.Time: // as in the other formats; "" if zero
				v = text(t)
			case []Object:
				v = objects(t)
			}
			data[c.Name] = v
		}
		if err := t.Execute(&p.buf, data); err != nil {
			return p.noField(strings.TrimPrefix(err.Error(), "template: "))
		}
		return nil
	}
	return nil
}

// noField returns the error for an unknown field in a template.
func (p *Printer[R]) noField(message string) error {
	return &UsageError{Message: message, Hint: "fields are " + strings.Join(p.names(), ", ")}
}

func (p *Printer[R]) names() (names []string) {
	for _, c := range p.columns {
		names = append(names, c.Name)
	}
	return names
}

// unknownField returns the first unknown field of the record in a template, "" if there is none.
// dot reports whether fields without a variable are those of the record.
func unknownField(n parse.Node, known func(string) bool, dot bool) string {
	name := ""
	visit := func(dot bool, nodes ...parse.Node) string {
		for _, n := range nodes {
			if name == "" && n != nil && !reflect.ValueOf(n).IsNil() {
				name = unknownField(n, known, dot)
			}
		}
		return name
	}
	switch n := n.(type) {
	case *parse.ListNode:
		return visit(dot, n.Nodes...)
	case *parse.ActionNode:
		return visit(dot, n.Pipe)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			visit(dot, c)
		}
	case *parse.CommandNode:
		return visit(dot, n.Args...)
	case *parse.IfNode:
		return visit(dot, n.Pipe, n.List, n.ElseList)
	case *parse.RangeNode:
		visit(dot, n.Pipe, n.ElseList)
		return visit(false, n.List)
	case *parse.WithNode:
		visit(dot, n.Pipe, n.ElseList)
		return visit(false, n.List)
	case *parse.FieldNode:
		if dot && !known(n.Ident[0]) {
			return n.Ident[0]
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 && !known(n.Ident[1]) {
			return n.Ident[1]
		}
	}
	return name
}

// templateFuncs are the functions of templates. The value is the last parameter, so that it can be
// piped: {{.title | trunc 40}}.
var templateFuncs = template.FuncMap{
	// date formats a time by a Go layout, in the local time zone.
	"date": func(layout string, v any) string {
		t, ok := v.(time.Time)
		if s, isString := v.(string); isString {
			parsed, err := time.Parse(time.RFC3339, s)
			t, ok = parsed, err == nil
		}
		if !ok || t.IsZero() {
			return ""
		}
		return t.Local().Format(layout)
	},
	// trunc truncates to a number of columns.
	"trunc": func(width int, v any) string { return termsafe.Truncate(text(v), width) },
	// pad truncates or fills to a number of columns.
	"pad": func(width int, v any) string { return termsafe.Pad(text(v), width) },
	// join joins a list.
	"join": joined,
	// json writes a value, or with {{json .}} the record, as JSON.
	"json": func(v any) (string, error) {
		b, err := marshal(v)
		return string(b), err
	},
	// text writes a value as the other formats do.
	"text": text,
	// line puts text on one line.
	"line": func(v any) string { return termsafe.Line(text(v)) },
	// tsv escapes a value as -o tsv does.
	"tsv": func(v any) string { return textfile.Escape(text(v)) },
	// default replaces an empty value.
	"default": func(def string, v any) any {
		if v == nil || reflect.ValueOf(v).IsZero() {
			return def
		}
		return v
	},
}

// wholeRecord matches a template that uses the record as a whole: {{json .}}.
var wholeRecord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\s({]\.[\s)}|]|\$[\s)}|]`) })
