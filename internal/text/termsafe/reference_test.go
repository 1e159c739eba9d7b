package termsafe

import (
	"encoding/json"
	"encoding/xml"
	"testing"
)

func TestReferences(t *testing.T) {
	const text = "a\u009bb\u202ec\u2066d\u2028e\u00e9\x7f\n"
	doc := XML([]byte("<t>" + text + "</t>"))
	if Unsafe(string(doc)) {
		t.Errorf("got %q; want !Unsafe(string(doc))", doc)
	}
	var got string
	if err := xml.Unmarshal(doc, &got); err != nil || got != text {
		t.Errorf("got %q, %v; want err == nil and got == text", got, err)
	}
	doc = JSON([]byte(`"a` + text[1:len(text)-1] + `"`))
	if err := json.Unmarshal(doc, &got); err != nil || Unsafe(string(doc)) || got != text[:len(text)-1] {
		t.Errorf("got %q, %q, %v; want err == nil and !Unsafe(string(doc)) and got == text[:len(text)-1]", doc, got, err)
	}
	if same := []byte("plain é\ufeff"); &XML(same)[0] != &same[0] {
		t.Error("clean text is copied")
	}
}
