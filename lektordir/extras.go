package lektordir

import (
	"bytes"
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
		line: textfile.OneField},
	{field: FieldComments, name: "comments", of: func(e *Entry) any { return &e.Comments }, line: textfile.OneLine},
	{field: FieldPubDateRaw, name: "pubdate-raw", of: func(e *Entry) any { return &e.PubDateRaw },
		line: textfile.OneLine},
	{field: FieldReplaces, name: "replaces", of: func(e *Entry) any { return &e.Replaces }, line: textfile.OneLine},
	{field: FieldImage, name: "image", of: func(e *Entry) any { return &e.Image }, line: textfile.OneLine},
	{field: FieldLanguage, name: "language", of: func(e *Entry) any { return &e.Language }, line: textfile.OneLine},
	{field: FieldContributors, name: "contributor", of: func(e *Entry) any { return &e.Contributors },
		line: textfile.OneLine},
	{field: FieldPeople, name: "person", of: func(e *Entry) any { return &e.People }, line: textfile.OneLine},
	{field: FieldRelations, name: "relation", of: func(e *Entry) any { return &e.Relations }, line: textfile.OneField},
	{field: FieldInReplyTo, name: "in-reply-to", of: func(e *Entry) any { return &e.InReplyTo },
		line: textfile.OneLine},
	{field: FieldRights, name: "rights", of: func(e *Entry) any { return &e.Rights }, line: textfile.Clean},
	{field: FieldSource, name: "source", of: func(e *Entry) any { return &e.Source }, line: textfile.OneField},
	{field: FieldDuration, name: "duration", of: func(e *Entry) any { return &e.Duration }},
	{field: FieldEpisode, name: "episode", of: func(e *Entry) any { return &e.Episode }},
	{field: FieldSeason, name: "season", of: func(e *Entry) any { return &e.Season }},
	{field: FieldElements, name: "element", of: func(e *Entry) any { return &e.Elements }, line: textfile.OneField},
	{field: FieldFullText, name: "fulltext", of: func(e *Entry) any { return &e.FullText }, line: textfile.OneField},
	{field: FieldSummary, name: "summary", of: func(e *Entry) any { return &e.Summary }, line: textfile.Clean},
}

// formatExtras returns the data of the file extras, or nil if none is written.
func (e *Entry) formatExtras(want Fields) []byte {
	var b []byte
	for i := range extras {
		if v := &extras[i]; want&v.field != 0 {
			b = v.appendLines(b, e)
		}
	}
	return b
}

// appendLines appends the lines of the field of e.
func (v *value) appendLines(b []byte, e *Entry) []byte {
	switch of := v.of(e).(type) {
	case *string:
		b = v.appendText(b, v.line(*of))
	case *time.Time:
		b = v.appendText(b, formatTime(*of))
	case *Source:
		if *of != (Source{}) {
			b = v.appendFields(b, v.line(of.ID), v.line(of.Title), v.line(of.Link), v.line(of.URL),
				formatTime(of.Updated), v.line(of.Copyright), v.line(of.Image), v.line(of.Description))
		}
	case *FullText:
		if of.URL != "" {
			b = v.appendLine(b, v.line(of.URL), v.line(of.Type))
		}
	case *time.Duration:
		b = v.appendText(b, positive(int(*of/time.Second)))
	case *int:
		b = v.appendText(b, positive(*of))
	default:
		b = v.appendMore(b, e)
	}
	return b
}

// appendMore is appendLines for extras with several values.
func (v *value) appendMore(b []byte, e *Entry) []byte {
	switch of := v.of(e).(type) {
	case *[]string:
		for _, s := range *of {
			if v.field == FieldCategories {
				b = v.appendCategory(b, s, e.Terms)
			} else {
				b = v.appendText(b, v.line(s))
			}
		}
	case *[]Enclosure:
		for _, enc := range *of {
			b = v.appendEnclosure(b, &enc)
		}
	case *[]Person:
		for _, p := range *of {
			if v.line(p.Role) != "" && v.line(p.Name)+v.line(p.Email)+v.line(p.URL) != "" {
				b = v.appendLine(b, v.line(p.Role), v.line(p.Name), v.line(p.Email), v.line(p.URL))
			}
		}
	case *[]Relation:
		for _, r := range *of {
			if v.line(r.Rel) != "" && v.line(r.URL) != "" {
				b = v.appendLine(b, v.line(r.Rel), v.line(r.URL), v.line(r.Type), v.line(r.Title))
			}
		}
	case *[]ReplyTo:
		for _, r := range *of {
			if v.line(r.Ref) != "" {
				b = v.appendFields(b, v.line(r.Ref), v.line(r.URL), v.line(r.Type), v.line(r.Source))
			}
		}
	case *Elements:
		for _, e := range *of {
			fields := []string{v.line(e.Name), v.line(e.Text)}
			for _, a := range e.Attributes {
				fields = append(fields, v.line(a.Name)+"="+v.line(a.Value))
			}
			b = v.appendFields(b, fields...)
		}
	}
	return b
}

// appendEnclosure appends the line of an enclosure, unless it has no URL.
func (v *value) appendEnclosure(b []byte, enc *Enclosure) []byte {
	if v.line(enc.URL) == "" {
		return b
	}
	length := ""
	if enc.Length >= 0 {
		length = strconv.FormatInt(enc.Length, 10)
	}
	return v.appendLine(b, v.line(enc.URL), v.line(enc.Type), length)
}

// appendCategory appends the line of a category, with its values in terms.
func (v *value) appendCategory(b []byte, name string, terms []Category) []byte {
	i := slices.IndexFunc(terms, func(c Category) bool { return c.Name == name })
	if i < 0 || v.line(name) == "" {
		return v.appendText(b, v.line(name))
	}
	c := terms[i]
	return v.appendFields(b, v.line(name), v.line(c.Scheme), v.line(c.Label), v.line(c.Term))
}

// appendFields appends a line, and omits empty fields at its end. A source always has its first
// four fields, as older versions wrote them.
func (v *value) appendFields(b []byte, fields ...string) []byte {
	least := 1
	if v.field == FieldSource {
		least = 4
	}
	for len(fields) > least && fields[len(fields)-1] == "" {
		fields = fields[:len(fields)-1]
	}
	return v.appendLine(b, fields...)
}

// appendText appends a line with one field, unless that is empty.
func (v *value) appendText(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	return v.appendLine(b, text)
}

func (v *value) appendLine(b []byte, fields ...string) []byte {
	b = append(b, v.name...)
	for _, f := range fields {
		b = textfile.AppendField(append(b, '\t'), f)
	}
	return append(b, '\n')
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

// take sets the field of e from the fields of a line. If the extra has only one value, the first
// line with a valid value counts, because grep -m 1 finds that one.
func (v *value) take(e *Entry, rest []byte) {
	next := func() string {
		var f []byte
		f, rest, _ = bytes.Cut(rest, []byte{'\t'})
		return textfile.Unescape(f)
	}
	switch to := v.of(e).(type) {
	case *string:
		if *to == "" {
			*to = next()
		}
	case *time.Time:
		if to.IsZero() {
			*to = parseTime(next())
		}
	case *time.Duration:
		if *to == 0 {
			*to = time.Duration(number(next())) * time.Second
		}
	case *int:
		if *to == 0 {
			*to = number(next())
		}
	case *Source:
		if *to == (Source{}) {
			*to = Source{
				ID: next(), Title: next(), Link: next(), URL: next(), Updated: parseTime(next()),
				Copyright: next(), Image: next(), Description: next(),
			}
		}
	case *FullText:
		if to.URL == "" {
			*to = FullText{URL: next(), Type: next()}
		}
	default:
		v.takeMore(e, next)
	}
}

// takeMore is take for extras with several values. next returns the next field of the line.
func (v *value) takeMore(e *Entry, next func() string) {
	switch to := v.of(e).(type) {
	case *[]string:
		if s := next(); s != "" {
			*to = append(*to, s)
		}
	case *[]Enclosure:
		enc := Enclosure{URL: next(), Type: next(), Length: -1}
		if n, err := strconv.ParseInt(next(), 10, 64); err == nil && n >= 0 {
			enc.Length = n
		}
		if enc.URL != "" {
			*to = append(*to, enc)
		}
	case *[]Person:
		if p := (Person{Role: next(), Name: next(), Email: next(), URL: next()}); p.Role != "" &&
			p.Name+p.Email+p.URL != "" {
			*to = append(*to, p)
		}
	case *[]Relation:
		if r := (Relation{Rel: next(), URL: next(), Type: next(), Title: next()}); r.Rel != "" && r.URL != "" {
			*to = append(*to, r)
		}
	case *[]ReplyTo:
		if r := (ReplyTo{Ref: next(), URL: next(), Type: next(), Source: next()}); r.Ref != "" {
			*to = append(*to, r)
		}
	case *Elements:
		e := Element{Name: next(), Text: next()}
		for field := next(); field != ""; field = next() {
			if name, value, ok := strings.Cut(field, "="); ok {
				e.Attributes = append(e.Attributes, Attribute{name, value})
			}
		}
		if e.Name != "" {
			*to = append(*to, e)
		}
	case *[]Category:
		if c := (Category{Name: next(), Scheme: next(), Label: next(), Term: next()}); c.Name != "" &&
			c.Scheme+c.Label+c.Term != "" {
			*to = append(*to, c)
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
