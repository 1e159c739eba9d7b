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
		t.Errorf("%q", doc)
	}
	var got string
	if err := xml.Unmarshal(doc, &got); err != nil || got != text {
		t.Errorf("%q, %v", got, err)
	}
	doc = JSON([]byte(`"a` + text[1:len(text)-1] + `"`))
	if err := json.Unmarshal(doc, &got); err != nil || Unsafe(string(doc)) || got != text[:len(text)-1] {
		t.Errorf("%q, %q, %v", doc, got, err)
	}
	if same := []byte("plain é\ufeff"); &XML(same)[0] != &same[0] {
		t.Error("what is clean is copied")
	}
}
