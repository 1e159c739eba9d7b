package feedurl

import "testing"

func TestRedactText(t *testing.T) {
	for in, want := range map[string]string{
		"":                                "",
		"http://a.example/@b":             "http://a.example/@b",
		"mail ann@a.example, or http://b": "mail ann@a.example, or http://b",
		`<a href="HTTP://ann:s3@cret@a.example/x?y=@z">`: `<a href="HTTP://a.example/x?y=@z">`,
		"http://ann@a ftp://b:c@d:1/e":                   "http://a ftp://d:1/e",
	} {
		if got := RedactText(in); got != want {
			t.Errorf("RedactText(%q) = %q, want %q", in, got, want)
		}
	}
}
