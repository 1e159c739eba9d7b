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

// Public removes passwords from elements, and references that a reader must not follow.
func TestPublicElements(t *testing.T) {
	const secret = "http://me:secret@x.example/"
	e := &lektordir.Entry{Elements: lektordir.Elements{{Name: "podcast:transcript", Text: secret, Attributes: []lektordir.Attribute{
		{Name: "url", Value: secret}, {Name: "feedUrl", Value: "javascript:alert(1)"}, {Name: "title", Value: "javascript: how to"}}}}}
	got := fmt.Sprint(Public(e).Elements)
	if want := "[{podcast:transcript http://x.example/ [{url http://x.example/} {feedUrl } {title javascript: how to}]}]"; got != want {
		t.Errorf("%s", got)
	}
	if e.Elements[0].Attributes[0].Value != secret {
		t.Error("the entry itself was changed")
	}
}
