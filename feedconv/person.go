package feedconv

import (
	"cmp"
	"net/mail"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/text/markup"
)

// parsePerson reads an author as RSS has them: "mail (Name)", "Name (mail)",
// "Name <mail>", "mailto:mail", either alone.
func parsePerson(s string) Person {
	s, _ = cutMailto(strings.TrimSpace(s))
	name, inside := s, ""
	for _, brackets := range []string{"()", "<>"} {
		open := strings.IndexByte(s, brackets[0])
		if end := strings.LastIndexByte(s, brackets[1]); open >= 0 && end > open {
			name, inside = s[:open]+" "+s[end+1:], s[open+1:end]
			break
		}
	}
	p := Person{}
	inside, _ = cutMailto(strings.TrimSpace(inside))
	switch name = strings.TrimSpace(name); {
	case isMail(name):
		p.Email, p.Name = name, inside
	case isMail(inside):
		p.Email, p.Name = inside, name
	default: // brackets that hold no address belong to the name
		p.Name, p.Email = splitMail(s)
	}
	p.Name = strings.Trim(oneLine(p.Name), `" `)
	if isMail(p.Name) && (p.Email == "" || p.Email == p.Name) {
		p.Name, p.Email = "", p.Name
	}
	if p.Email == "" && markup.IsWebURL(p.Name) {
		p.Name, p.URL = "", p.Name
	}
	return p
}

// splitMail finds an address that stands beside a name without brackets.
func splitMail(s string) (name, mail string) {
	fields := strings.Fields(s)
	for i, f := range fields {
		if isMail(strings.Trim(f, ",;")) {
			rest := append(append([]string{}, fields[:i]...), fields[i+1:]...)
			return strings.Trim(strings.Join(rest, " "), ",;- "), strings.Trim(f, ",;")
		}
	}
	return s, ""
}

// isMail reports whether s looks like an address; it need not be one.
func isMail(s string) bool {
	at := strings.IndexByte(s, '@')
	return at > 0 && at < len(s)-1 && strings.Count(s, "@") == 1 &&
		!strings.ContainsAny(s, " \t\r\n<>()[],;:\"/")
}

func cutMailto(s string) (string, bool) {
	const prefix = "mailto:"
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

// tidyPerson cleans a person whose parts a format keeps apart, and takes an
// address out of the name where it is all there is.
func tidyPerson(p Person) Person {
	p.Name = strings.TrimSpace(p.Name)
	if p.Email == "" && strings.Contains(p.Name, "@") {
		found := parsePerson(p.Name)
		p.Name, p.Email = found.Name, found.Email
	} else {
		p.Name = oneLine(p.Name)
	}
	p.Email, _ = cutMailto(markup.CleanLine(p.Email))
	p.URL = markup.CleanLine(p.URL)
	if mail, ok := cutMailto(p.URL); ok {
		p.URL = ""
		p.Email = cmp.Or(p.Email, mail)
	}
	if p.Name == p.Email || p.Name == p.URL { // a name that a format demanded
		p.Name = ""
	}
	return p
}

// uniquePersons drops empty persons, and those of whom another one of the list
// says as much or more.
func uniquePersons(list []Person) []Person {
	var out []Person
	seen := make(map[Person]bool, len(list))
	for _, p := range list {
		if p == (Person{}) || seen[p] || len(out) == maxList {
			continue
		}
		seen[p] = true
		if i := slices.IndexFunc(out, func(q Person) bool { return p.covers(q) || q.covers(p) }); i < 0 {
			out = append(out, p)
		} else if p.covers(out[i]) {
			out[i] = p
		}
	}
	return out
}

// covers reports whether p says all that q says.
func (p Person) covers(q Person) bool {
	same := func(a, b string) bool { return b == "" || a == b }
	return same(p.Name, q.Name) && same(p.Email, q.Email) && same(p.URL, q.URL)
}

// coverAll reports whether each person of list, whose name may have been read as
// markup, is one of fuller, which say as much or more.
func coverAll(fuller, list []Person) bool {
	if len(fuller) < len(list) || len(fuller) > maxList {
		return false
	}
	read := make([]Person, len(fuller))
	for i, p := range fuller {
		p.Name = titleText(p.Name)
		read[i] = p
	}
	return !slices.ContainsFunc(list, func(q Person) bool {
		return !slices.ContainsFunc(read, func(p Person) bool { return p.covers(q) })
	})
}

// parsePersons reads an author element that may name several persons: "mail (Name), mail (Name)". A
// list is one only if each of its parts has an address.
func parsePersons(s string, isMarkup bool) []Person {
	if isMarkup { // once, and before addresses are looked for: "Name &lt;mail&gt;"
		s = titleText(s)
	}
	if n := strings.Count(s, "@"); n > 1 && n <= maxList {
		if list, err := mail.ParseAddressList(strings.ReplaceAll(s, ";", ",")); err == nil && len(list) > 1 {
			var out []Person
			for _, a := range list {
				out = append(out, parsePerson(a.Name+" <"+a.Address+">"))
			}
			return out
		}
	}
	return []Person{parsePerson(s)}
}
