package feedconv

import "testing"

// A document with the dates of entries is an alternate of the feed, and
// not the page that it belongs to.
func TestNoticesAreNoPage(t *testing.T) {
	const notices = `<link rel="alternate" type="application/ess" href="http://e/ess"/><link rel="alternate" type="Application/NNO; charset=utf-8" href="http://e/nno"/>`
	for in, want := range map[string]string{
		notices: "",
		notices + `<link rel="alternate" type="text/html" href="http://e/page"/>`:      "http://e/page",
		notices + `<link href="http://e/page"/>`:                                       "http://e/page",
		notices + `<link rel="alternate" type="application/pdf" href="http://e/pdf"/>`: "http://e/pdf",
	} {
		f, err := ParseBytes([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"><title>x</title>`+in+`</feed>`), Options{})
		if err != nil || f.Link != want {
			t.Errorf("%s: the page is %q, %v; want %q", in, f.Link, err, want)
		}
	}
}
