package entrystore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lektordir/lektor/lektordir"
)

// Public removes passwords from categories and the source, and an image that is not a valid link.
func TestPublicCategoriesAndSource(t *testing.T) {
	const secret = "http://me:secret@x.example/"
	e := &lektordir.Entry{
		Terms:  []lektordir.Category{{Name: secret, Scheme: secret, Label: secret, Term: secret}},
		Source: lektordir.Source{Title: "S", Description: secret, Copyright: secret, Image: secret},
	}
	p := Public(e)
	if got := fmt.Sprintf("%+v %+v", p.Terms, p.Source); strings.Contains(got, "secret") || strings.Count(got, "http://x.example/") != 7 {
		t.Error(got)
	}
	if e.Terms[0].Term != secret {
		t.Error("the entry itself was changed")
	}
	e.Source.Image = "javascript:alert(1)"
	if got := Public(e).Source.Image; got != "" {
		t.Errorf("image %q", got)
	}
}
