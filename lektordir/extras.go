package lektordir

import (
	"bytes"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/text/textfile"
)

// extrasFile is the file extras. Each line is the name of an extra, a tab, and its fields with
// tabs between them, escaped by package textfile. An extra with several values has several lines.
// docs/weight.md explains why all extras are in one file.
var extrasFile = value{field: Extras, name: "extras"}

// extras lists the extras in the order in which they are written: short ones first. Lines with
// other names, and further fields of a line, are ignored.
var extras = []value{
	{field: FieldLink, name: "link", of: func(e *Entry) any { return &e.Link }, line: textfile.OneLine},
	{field: FieldUpdated, name: "updated", of: func(e *Entry) any { return &e.Updated }},
	{field: FieldCategories, name: "category", of: func(e *Entry) any { return &e.Categories }, line: textfile.OneLine},
	{field: FieldTerms, name: "category", of: func(e *Entry) any { return &e.Terms }, line: textfile.OneLine},
	{field: FieldEnclosures, name: "enclosure", of: func(e *Entry) any { return &e.Enclosures },
		line: textfile.OneField, least: 3},
	{field: FieldComments, name: "comments", of: func(e *Entry) any { return &e.Comments }, line: textfile.OneLine},
	{field: FieldPubDateRaw, name: "pubdate-raw", of: func(e *Entry) any { return &e.PubDateRaw },
		line: textfile.OneLine},
	{field: FieldReplaces, name: "replaces", of: func(e *Entry) any { return &e.Replaces }, line: textfile.OneLine},
	{field: FieldImage, name: "image", of: func(e *Entry) any { return &e.Image }, line: textfile.OneLine},
	{field: FieldLanguage, name: "language", of: func(e *Entry) any { return &e.Language }, line: textfile.OneLine},
	{field: FieldContributors, name: "contributor", of: func(e *Entry) any { return &e.Contributors },
		line: textfile.OneLine},
	{field: FieldPeople, name: "person", of: func(e *Entry) any { return &e.People },
		line: textfile.OneLine, least: 4},
	{field: FieldRelations, name: "relation", of: func(e *Entry) any { return &e.Relations },
		line: textfile.OneField, least: 4},
	{field: FieldInReplyTo, name: "in-reply-to", of: func(e *Entry) any { return &e.InReplyTo },
		line: textfile.OneLine},
	{field: FieldRights, name: "rights", of: func(e *Entry) any { return &e.Rights }, line: textfile.Clean},
	{field: FieldSource, name: "source", of: func(e *Entry) any { return &e.Source }, line: textfile.OneField,
		least: 4},
	{field: FieldDuration, name: "duration", of: func(e *Entry) any { return &e.Duration }},
	{field: FieldEpisode, name: "episode", of: func(e *Entry) any { return &e.Episode }},
	{field: FieldSeason, name: "season", of: func(e *Entry) any { return &e.Season }},
	{field: FieldElements, name: "element", of: func(e *Entry) any { return &e.Elements }, line: textfile.OneField},
	{field: FieldFullText, name: "fulltext", of: func(e *Entry) any { return &e.FullText },
		line: textfile.OneField, least: 2},
	{field: FieldSummary, name: "summary", of: func(e *Entry) any { return &e.Summary }, line: textfile.Clean},
}

// formatExtras returns the data of the file extras, or nil if none is written.
func (e *Entry) formatExtras(want Fields) []byte {
	var b []byte
	for i := range extras {
		if v := &extras[i]; want&v.field != 0 && v.field != FieldTerms { // which are in the lines of categories
			v.each(e, func(of reflect.Value) {
				if fields := v.fieldsOf(e, of); v.valid(fields) {
					b = v.appendLine(b, fields)
				}
			})
		}
	}
	return b
}

// each calls f for the field of e or, if that is a list, for each of its values.
func (v *value) each(e *Entry, f func(reflect.Value)) {
	of := reflect.ValueOf(v.of(e)).Elem()
	if of.Kind() != reflect.Slice {
		f(of)
		return
	}
	for i := range of.Len() {
		f(of.Index(i))
	}
}

// fieldsOf returns the fields of the line of a value: those of a struct in their order.
func (v *value) fieldsOf(e *Entry, of reflect.Value) []string {
	switch x := of.Addr().Interface().(type) {
	case *Element:
		fields := []string{v.line(x.Name), v.line(x.Text)}
		for _, a := range x.Attributes {
			fields = append(fields, v.line(a.Name)+"="+v.line(a.Value))
		}
		return fields
	case *string:
		if v.field != FieldCategories {
			break
		}
		if i := slices.IndexFunc(e.Terms, func(c Category) bool { return c.Name == *x }); i >= 0 {
			of = reflect.ValueOf(&e.Terms[i]).Elem()
		}
	}
	parts := partsOf(of)
	fields := make([]string, len(parts))
	for i, f := range parts {
		fields[i] = v.text(f.Addr().Interface())
	}
	return fields
}

// partsOf returns the fields of a struct, or the value itself if it is a text, a number or a time.
func partsOf(of reflect.Value) []reflect.Value {
	if of.Kind() != reflect.Struct || of.Type() == reflect.TypeFor[time.Time]() {
		return []reflect.Value{of}
	}
	parts := make([]reflect.Value, of.NumField())
	for i := range parts {
		parts[i] = of.Field(i)
	}
	return parts
}

// valid reports whether a line can have these fields.
func (v *value) valid(fields []string) bool {
	first, rest := fields[0], strings.Join(fields[1:], "")
	switch v.field {
	case FieldSource:
		return first+rest != ""
	case FieldPeople, FieldTerms:
		return first != "" && rest != ""
	case FieldRelations:
		return first != "" && fields[1] != ""
	}
	return first != ""
}

// appendLine appends a line, without the empty fields at its end but for the obligatory ones.
func (v *value) appendLine(b []byte, fields []string) []byte {
	for len(fields) > max(v.least, 1) && fields[len(fields)-1] == "" {
		fields = fields[:len(fields)-1]
	}
	b = append(b, v.name...)
	for _, f := range fields {
		b = textfile.AppendField(append(b, '\t'), f)
	}
	return append(b, '\n')
}

// text returns a value, given by a pointer, as a line or a field of a line.
func (v *value) text(of any) string {
	switch x := of.(type) {
	case *string:
		return v.line(*x)
	case *time.Time:
		return formatTime(*x)
	case *time.Duration:
		return positive(int(*x / time.Second))
	case *int:
		return positive(*x)
	case *int64:
		if *x >= 0 {
			return strconv.FormatInt(*x, 10)
		}
	}
	return ""
}

// parseExtras sets the wanted fields of e from the data of the file extras.
func (e *Entry) parseExtras(data []byte, want Fields) {
	for l := range bytes.Lines(data) {
		name, rest, ok := bytes.Cut(bytes.TrimSuffix(l, []byte{'\n'}), []byte{'\t'})
		if !ok {
			continue // no field
		}
		for i := range extras {
			if v := &extras[i]; v.name == string(name) {
				if want&v.field != 0 {
					v.take(e, rest)
				}
				if v.field != FieldCategories { // category lines also hold Terms
					break
				}
			}
		}
	}
}

// take sets the field of e from the fields of a line, or adds a value to a list. If the extra has only one value, the
// first line with a valid value counts, because grep -m 1 finds that one.
func (v *value) take(e *Entry, rest []byte) {
	to := reflect.ValueOf(v.of(e)).Elem()
	one, list := to, to.Kind() == reflect.Slice
	if list {
		one = reflect.New(to.Type().Elem()).Elem()
	} else if !to.IsZero() {
		return
	}
	parts := partsOf(one)
	fields := make([]string, 0, 2*len(parts))
	for f := range bytes.SplitSeq(rest, []byte{'\t'}) {
		fields = append(fields, textfile.Unescape(f))
	}
	element, _ := one.Addr().Interface().(*Element)
	if element == nil { // other values have no more fields
		fields = append(fields, make([]string, len(parts))...)[:len(parts)]
	}
	switch {
	case !v.valid(fields):
		return
	case element != nil:
		element.set(fields)
	default:
		for i, f := range parts {
			parseText(f.Addr().Interface(), fields[i])
		}
	}
	if list {
		to.Set(reflect.Append(to, one))
	}
}

// set sets the element to the fields of a line.
func (x *Element) set(fields []string) {
	x.Name = fields[0]
	for i, f := range fields[1:] {
		name, value, ok := strings.Cut(f, "=")
		switch {
		case i == 0:
			x.Text = f
		case f == "":
			return
		case ok:
			x.Attributes = append(x.Attributes, Attribute{name, value})
		}
	}
}

// parseText sets a value, given by a pointer, to a line or a field of a line.
func parseText(to any, text string) {
	switch x := to.(type) {
	case *string:
		*x = text
	case *time.Time:
		*x = parseTime(text)
	case *time.Duration:
		*x = time.Duration(number(text)) * time.Second
	case *int:
		*x = number(text)
	case *int64:
		*x = -1
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
			*x = n
		}
	}
}

// number parses a number that is not negative; it returns 0 for any other text.
func number(s string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// positive formats a positive number; it returns "" for any other.
func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
