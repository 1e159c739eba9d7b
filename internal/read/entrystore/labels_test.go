package entrystore

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lektordir/lektor/internal/protocol/query"
)

func TestLabels(t *testing.T) {
	dir := t.TempDir()
	if all, err := Labels(dir); err != nil || all != nil {
		t.Fatal(all, err)
	}
	if err := EditLabels(dir, nil, []Label{{"q", "To read"}, {"", "A/b"}}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, labelsFile)
	const wrong = "# a\tnote\nA\tupper case\nab\ttwo\nx\t \n\t\nz"
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(b, wrong...), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := EditLabels(dir, []Label{{"", "A/b"}, {"x", "y"}}, []Label{{"r", "Say \"x\""}}); err != nil {
		t.Fatal(err)
	}
	if b, err = os.ReadFile(path); err != nil || string(b) != "q\tTo read\n"+wrong+"\nr\tSay \"x\"\n" {
		t.Errorf("%q, %v", b, err)
	}
	if all, err := Labels(dir); err != nil || !slices.Equal(all, []Label{{"q", "To read"}, {"r", "Say \"x\""}}) {
		t.Errorf("%v, %v", all, err)
	}
	for text, want := range map[string]string{
		`label:"to READ"`:         "",
		`not:label:"say \"x\""`:   "",
		`label:none`:              "no flag has the label none",
		`label:A/b`:               "no flag has the label A/b",
		`query:label/q is:unread`: "a saved query has no / in its name",
	} {
		q, err := query.ParseWith(text, SavedIn(dir))
		if e, ok := errors.AsType[*query.Error](err); want != "" && (!ok || e.Reason != want) || want == "" && (err != nil || !q.MentionsState() || q.String() != text) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err = query.ParseWith("label:none", SavedIn(dir))
	if e, ok := errors.AsType[*query.Error](err); !ok || e.Hint != `there are label:"To read", label:"Say \"x\""` {
		t.Errorf("%+v", err)
	}
}
