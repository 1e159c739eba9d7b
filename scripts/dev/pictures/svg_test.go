package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestSVG: a screen is drawn as valid XML, with each character in its column and style.
func TestSVG(t *testing.T) {
	screen := "\x1b[1mbold\x1b[22m \x1b[7m<&>\x1b[27m  日x\x1b[33mf\x1b[39m\n\x1b[4;34mlink\x1b[0m\n"
	picture := svg(screen, "a <screen>")
	var texts []string
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
			var text string
			if err := d.DecodeElement(&text, &e); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, e.Attr[0].Value+" "+text)
		}
	}
	if got, want := strings.Join(texts, "|"), "12 bold|52 <&>|92 日|108 x|116 f|12 link"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
