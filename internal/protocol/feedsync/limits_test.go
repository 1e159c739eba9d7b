package feedsync

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// An endpoint that edits twice within a second makes two equal updates. A history with one
// of them does not include the other.
func TestTwoUpdatesInOneSecond(t *testing.T) {
	// X edited twice in the second "1x"; Y knew the first and edited twice.
	winner := item(t, 3, "theirs", "5y 4y 1x")
	loser := item(t, 2, "mine", "1x 1x")
	if !Concurrent(winner, loser, Rules{}) {
		t.Error("the winner has only one of two equal updates, but there is no conflict")
	}
	out := Merge(loser, winner, Rules{})
	if !out.Item.Conflict || len(out.Item.Conflicts) != 1 || out.Item.Conflicts[0].Head().By != "x" {
		t.Fatalf("the conflict of an endpoint with two updates in a second: %+v", out.Item)
	}
	// When the conflict is merged again, it is neither settled nor duplicated.
	again := Merge(out.Item, winner, Rules{})
	if len(again.Item.Conflicts) != 1 {
		t.Errorf("merged again: %+v", again.Item.Conflicts)
	}
	// The winner has both updates.
	if Concurrent(item(t, 3, "theirs", "5y 1x 1x"), loser, Rules{}) {
		t.Error("the winner has both equal updates, but there is a conflict")
	}
	// A resolution keeps both updates, so a stale copy of the loser is not in conflict with it.
	solved, err := resolve(out.Item, nil, false, u("6y").When, "y")
	if err != nil {
		t.Fatal(err)
	}
	if count(solved.History, u("1x")) != 2 || Concurrent(solved, loser, Rules{}) {
		t.Errorf("resolved: %v", solved.History)
	}
	// The same holds if the loser was settled without a conflict.
	same := Merge(item(t, 2, "mine", "1x 1x"), item(t, 3, "mine", "5y 4y 1x"), Rules{}).Item
	if same.Conflict || count(same.Settled, u("1x")) != 1 {
		t.Fatalf("settled: %+v", same)
	}
	next, err := updated(same, nil, true, u("7y").When, "y")
	if err != nil || Concurrent(next, loser, Rules{}) {
		t.Errorf("%v, %v", next, err)
	}
}

// Items are cut to the limits when they are read, in the same way on every endpoint.
func TestLimitsOfAnItem(t *testing.T) {
	var updates, conflicts strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&updates, `<sx:update when="Tue, 24 May 2005 08:00:11 GMT" by="u%d"/>`, n)
		fmt.Fprintf(&conflicts, `<sx:conflict by="c%04d" version="1"><item/></sx:conflict>`, n)
	}
	long := strings.Repeat("x", MaxContent)
	d := parse(t, `<rss xmlns:sx="`+Namespace+`"><channel>`+
		`<item><sx:sync id="a" version="9007199254740992"><sx:history by="x">`+updates.String()+`</sx:history><sx:conflicts>`+conflicts.String()+`</sx:conflicts></sx:sync></item>`+
		`<item><title>`+long+`</title><sx:sync id="b" version="1"><sx:history by="x"/></sx:sync></item>`+
		`<item><title>plain</title></item>`+
		`</channel></rss>`)
	a := d.Item("a")
	if a == nil || len(a.History) != 1+KeepUpdates || len(a.Conflicts) != MaxConflicts || a.Conflicts[MaxConflicts-1].Head().By != "c0999" {
		t.Fatalf("%+v", a)
	}
	if n := len(d.Bytes()); n > 100_000 {
		t.Errorf("the document is written in %d bytes", n)
	}
	if d.Item("b") != nil || len(d.Problems) != 1 || !strings.Contains(d.Problems[0].String(), "longer than 64 KiB; skipped") {
		t.Errorf("problems: %v", d.Problems)
	}
	if d.Plain != 1 {
		t.Errorf("%d items without sx:sync", d.Plain)
	}
	for _, edit := range []func() (*Item, error){
		func() (*Item, error) { return updated(a, nil, true, day0, "me") },
		func() (*Item, error) { return resolve(a, nil, true, day0, "me") },
		func() (*Item, error) { return create("c", []byte("<item><title>"+long+"</title></item>"), day0, "me") },
	} {
		if _, err := edit(); !errors.As(err, new(*BoundError)) {
			t.Errorf("an edit that exceeds a limit returns %v", err)
		}
	}
	blank := a.Blank(canonical([]byte("<item><title>nothing</title></item>")))
	if len(blank.Conflicts) != MaxConflicts || string(blank.Conflicts[0].Content) != "<item><title>nothing</title></item>" {
		t.Errorf("%+v", blank)
	}
}

// A content that is nested too deep is skipped; a content of the greatest depth can become
// a conflict.
func TestDeepItem(t *testing.T) {
	nested := func(n int, by string) string {
		return rss("<item>" + strings.Repeat("<x>", n) + by + strings.Repeat("</x>", n) + `<sx:sync id="a" version="2"><sx:history by="` + by + `"/></sx:sync></item>`)
	}
	if d := parse(t, nested(maxNesting+1, "a")); d.Len() != 0 || len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Reason, "more than 100") {
		t.Errorf("%d items, %v", d.Len(), d.Problems)
	}
	d := parse(t, nested(maxNesting, "a"))
	d.Merge(parse(t, nested(maxNesting, "b")), Rules{})
	again := parse(t, string(d.Bytes()))
	if it := again.Item("a"); it == nil || len(it.Conflicts) != 1 || state(again) != state(d) {
		t.Fatalf("%v, %s", again.Problems, d.Bytes())
	}
	if it, err := ReadItem(again.Item("a").Append(nil)); err != nil || len(it.Conflicts) != 1 {
		t.Errorf("%v", err)
	}
	if _, err := create("a", []byte("<item>"+strings.Repeat("<x>", 1000)+strings.Repeat("</x>", 1000)+"</item>"), day0, "a"); err == nil {
		t.Error("a content that is nested too deep has a canonical form")
	}
}
