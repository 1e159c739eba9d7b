package feedconv

import (
	"cmp"
	"strings"
)

// parsePerson reads an author as RSS has them: "mail (Name)", "Name (mail)",
// "Name <mail>", "mailto:mail", either alone. Markup says whether entities
// are to be decoded.
func parsePerson(s string, markup bool) Person {
	s = strings.TrimSpace(s)
	if markup { // once, and before addresses are looked for: "Name &lt;mail&gt;"
		s = titleText(s, true)
	}
	s, _ = cutMailto(s)
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
	p.Name = strings.Trim(titleText(p.Name, false), `" `)
	if isMail(p.Name) && (p.Email == "" || p.Email == p.Name) {
		p.Name, p.Email = "", p.Name
	}
	if p.Email == "" && isWebURL(p.Name) {
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

// isMail tells what looks like an address; it need not be one.
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

// tidyPerson cleans a person whose parts a format gives apart, and takes an
// address out of the name where it is all there is.
func tidyPerson(p Person) Person {
	p.Name = strings.TrimSpace(p.Name)
	if p.Email == "" && strings.Contains(p.Name, "@") {
		found := parsePerson(p.Name, false)
		p.Name, p.Email = found.Name, found.Email
	} else {
		p.Name = titleText(p.Name, false)
	}
	p.Email, _ = cutMailto(cleanLine(p.Email))
	p.URL = cleanLine(p.URL)
	if mail, ok := cutMailto(p.URL); ok {
		p.URL = ""
		p.Email = cmp.Or(p.Email, mail)
	}
	if p.Name == p.Email || p.Name == p.URL { // a name that a format demanded
		p.Name = ""
	}
	return p
}

// uniquePersons drops empty persons and those that say nothing new.
func uniquePersons(list []Person) []Person {
	var out []Person
	seen := make(map[Person]bool, len(list))
	for _, p := range list {
		if p != (Person{}) && !seen[p] && len(out) < maxList {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}
