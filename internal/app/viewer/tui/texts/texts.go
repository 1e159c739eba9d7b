// Package texts has the texts of the full-screen reader in the languages of its users.
package texts

import (
	"cmp"
	"embed"
	"fmt"
	"strings"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

// translations holds the texts of the reader in other languages, a file each. A line is
//
//	ENGLISH = TRANSLATION
//
// If the text has a number, "%d", its translation can have two forms with " | " between them: for
// one, and for other numbers. The number is the first argument. The file en has only such texts.
//
//go:embed [a-z][a-z]
var translations embed.FS

// Printer has the texts in a language.
type Printer struct{ *message.Printer }

// New returns the texts in the user's language, as LC_ALL, LC_MESSAGES or LANG says: English if there is
// no translation.
func New(getenv func(string) string) *Printer {
	tag := userLanguage(getenv)
	base, _ := tag.Base()
	file, err := translations.ReadFile(base.String())
	if err != nil {
		tag = language.English
		file, _ = translations.ReadFile("en") // embedded, so it cannot fail
	}
	all := catalog.NewBuilder()
	for english, translation := range readTexts(string(file)) {
		text := catalog.String(translation)
		if one, other, ok := strings.Cut(translation, " | "); ok && strings.Contains(english, "%d") {
			text = plural.Selectf(1, "%d", plural.One, one, plural.Other, other)
		}
		if err := all.Set(tag, english, text); err != nil {
			panic(fmt.Sprintf("texts/%s: %q: %v", base, english, err)) // a test reads each file
		}
	}
	return &Printer{message.NewPrinter(tag, message.Catalog(all))}
}

// userLanguage returns the language of the environment, English if it names none.
func userLanguage(getenv func(string) string) language.Tag {
	locale, _, _ := strings.Cut(cmp.Or(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")), ".")
	locale, _, _ = strings.Cut(locale, "@")
	if tag, err := language.Parse(locale); err == nil {
		return tag
	}
	return language.English
}

// readTexts returns the translations in a file by their English texts.
func readTexts(file string) map[string]string {
	texts := map[string]string{}
	for line := range strings.Lines(file) {
		if english, translation, ok := strings.Cut(strings.TrimSpace(line), " = "); ok && english[0] != '#' {
			texts[english] = translation
		}
	}
	return texts
}

// Tr returns a text for the user in the user's language. All texts of the reader pass through Tr, Trf,
// Say, or a field of an effect; they are written in English. Text that is not a text of the reader, for
// example because it is formatted already, stays as it is.
func (p *Printer) Tr(text string) string {
	if strings.Contains(text, "%") {
		return text
	}
	return p.Sprintf(text)
}

// Trf formats a text in the user's language. If the text needs a plural, its first argument is the
// number, and the text stands in the file en too.
func (p *Printer) Trf(format string, args ...any) string {
	if false {
		_ = fmt.Sprintf(format, args...) // so that go vet checks the arguments of callers
	}
	return p.Sprintf(format, args...)
}
