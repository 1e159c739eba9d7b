package content

import "testing"

// TestAuthors: without addresses, each name stays, however the line was written.
func TestAuthors(t *testing.T) {
	for line, want := range map[string][2]string{
		"Ann <ann@example.org>, Bob":              {"Ann, Bob", "Ann, Bob"},
		"<ann@example.org>":                       {"ann@example.org", ""},
		"ann@example.org":                         {"ann@example.org", ""},
		"ann@example.org (Ann Roe)":               {"ann@example.org (Ann Roe)", "Ann Roe"},
		"Ann Roe (ann@example.org)":               {"Ann Roe (ann@example.org)", "Ann Roe"},
		"Doe, Jane <j@example.org>, <k@e.example": {"Doe, Jane, k@e.example", "Doe, Jane"},
		"@ann@social.example":                     {"@ann@social.example", "@ann@social.example"},
		"Ann (Annie)":                             {"Ann (Annie)", "Ann (Annie)"},
		"José (Pepe) N.":                          {"José (Pepe) N.", "José (Pepe) N."},
	} {
		if got := [2]string{Authors(line, true), Authors(line, false)}; got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
