package feedsync

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMust has each MUST of the specification, in its words and its order. Package sharer
// tests the rules for publishers that do not concern a document.
func TestMust(t *testing.T) {
	item1 := func(attrs, history string) string {
		return "<item><sx:sync " + attrs + ">" + history + "</sx:sync></item>"
	}
	invalid := func(t *testing.T, items ...string) {
		t.Helper()
		for _, text := range items {
			if d := parse(t, rss(text)); d.Len() != 0 || len(d.Problems) != 1 || d.Problems[0].Warning {
				t.Errorf("%s: %d items, %v", text, d.Len(), d.Problems)
			}
		}
	}
	dated := func(when string) string {
		return item1(`id="a" version="1"`, `<sx:history when="`+when+`"/>`)
	}
	neither := func(t *testing.T) {
		invalid(t, item1(`id="a" version="1"`, `<sx:history/>`), item1(`id="a" version="1"`, `<sx:history when="" by=""/>`),
			item1(`id="a" version="2"`, `<sx:history by="x"><sx:update/></sx:history>`),
			item1(`id="a" version="1"`, `<sx:history by="x"/><sx:conflicts><sx:conflict version="1"/></sx:conflicts>`))
		for _, one := range []string{`by="x"`, `when="Sat, 21 May 2005 09:43:33 GMT"`} {
			if d := parse(t, rss(item1(`id="a" version="1"`, `<sx:history `+one+`/>`))); d.Len() != 1 {
				t.Errorf("one attribute is enough: %v", d.Problems)
			}
		}
	}
	least := func(t *testing.T) {
		for _, by := range []string{"!", "%01", "A", "0"} {
			if !strings.Contains(fmt.Sprint(Compare(&Item{Version: 1, History: []Update{{day0, ""}}}, &Item{Version: 1, History: []Update{{day0, by}}})), "-1") {
				t.Errorf("an absent by is not less than %q", by)
			}
		}
	}
	shape := func(local, incoming, newer string) string {
		d := parse(t, tree(local, ""))
		d.Merge(parse(t, tree(incoming, newer)), Rules{})
		return order(parse(t, string(d.Bytes())))
	}
	is := func(t *testing.T, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, not %s", got, want)
		}
	}
	for _, c := range []struct {
		sentence string
		test     func(t *testing.T)
	}{
		{"1.2 All date-time values MUST be expressed as GMT and MUST conform to the Date and Time specification of RFC 822, except using 4 digit years", func(t *testing.T) {
			east := time.FixedZone("", 3600)
			is(t, FormatDate(time.Date(2005, 5, 1, 0, 30, 0, 0, east)), "Sat, 30 Apr 2005 23:30:00 GMT")
			it, err := create("a", []byte("<item/>"), time.Date(2005, 5, 1, 0, 30, 0, 5, east), "x")
			if err != nil || !strings.Contains(document(t, it), `when="Sat, 30 Apr 2005 23:30:00 GMT"`) {
				t.Errorf("%v: %s", err, document(t, it))
			}
			invalid(t, dated("2005-05-21T09:43:33Z"), dated("Sat May 21 09:43:33 2005"), dated("1116668613"), dated("31 Feb 2005 09:43:33 GMT"))
		}},
		{"1.2 All endpoint identifiers MUST conform to the syntax for Namespace Specific Strings", func(t *testing.T) {
			for _, by := range []string{"a b", "a/b", "é", "a%2", "a%00", "a&#9;b", "a?b", "a#b"} {
				invalid(t, item1(`id="a" version="1"`, `<sx:history by="`+by+`"/>`), item1(`id="a" version="2"`, `<sx:history by="x"><sx:update by="`+by+`"/></sx:history>`))
			}
		}},
		{"2.3 The ID MUST be globally unique within the feed", func(t *testing.T) {
			d := parse(t, rss(item1(`id="a" version="1"`, `<sx:history by="x"/>`)+item1(`id="a" version="2"`, `<sx:history by="x"/>`)+item1(`id="a" version="1"`, `<sx:history by="y"/>`)))
			if d.Len() != 1 || len(d.Items()) != 1 || d.Item("a").Version != 2 || len(d.Problems) != 2 {
				t.Errorf("%d items, %v", d.Len(), d.Problems)
			}
			d.Append(d.Item("a"))
			if len(d.Items()) != 1 {
				t.Error("an item that is appended twice is there twice")
			}
		}},
		{"2.3 it MUST be identical across feeds; MUST NOT be changed by subsequent publishers", func(t *testing.T) {
			it, err := create("a;b=%41", []byte("<item/>"), day0, "x")
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []func() (*Item, error){
				func() (*Item, error) { return updated(it, []byte("<item><title/></item>"), false, day0, "y") },
				func() (*Item, error) { return updated(it, nil, true, day0, "z") },
				func() (*Item, error) { return resolve(it, nil, false, day0, "z") },
			} {
				if it, err = step(); err != nil {
					t.Fatal(err)
				}
				d := New(RSS, "t", "", "")
				d.Merge(parse(t, document(t, it)), Rules{})
				if !strings.Contains(string(d.Bytes()), `id="a;b=%41"`) || it.ID != "a;b=%41" {
					t.Errorf("%s", d.Bytes())
				}
			}
		}},
		{"2.3 therefore they MUST conform to the syntax for Namespace Specific Strings", func(t *testing.T) {
			for _, id := range []string{"a b", "a/b", "é", "a%2", "a%00", "a?b", "a#b", "&lt;"} {
				invalid(t, item1(`id="`+id+`" version="1"`, `<sx:history by="x"/>`))
			}
			if _, err := create("a/b", []byte("<item/>"), day0, "x"); err == nil {
				t.Error("Create accepts an invalid id")
			}
		}},
		{"2.4 Either or both of the when or by attributes MUST be present; it is invalid to have neither", neither},
		{"2.4 the empty string (which MUST be less than all other values for purposes of collation)", least},
		{"2.4 The sx:sync element MUST contain a sx:history element", func(t *testing.T) {
			invalid(t, item1(`id="a" version="1"`, ""), item1(`id="a" version="1"`, "<history by='x'/>"))
		}},
		{"2.5 Either or both of the when or by attributes MUST be present", neither},
		{"2.5 the empty string (which MUST be less than all other values", least},
		{"3.2 changes MUST be processed such that the order of items is preserved", func(t *testing.T) {
			is(t, shape("abcd", "axbycd", ""), "axbycd")
			is(t, shape("abcd", "dcba", ""), "abcd")
			is(t, shape("abcd", "abcd", "b"), "abcd")
		}},
		{"3.2 the publishers and subscribers MUST follow these rules: When an item is moved the publisher MUST ensure that the item is updated", func(t *testing.T) {
			// An item without an update does not move.
			is(t, shape("abc", "cab", ""), "abc")
		}},
		{"3.2 The subscriber MUST incorporate the new position for the item", func(t *testing.T) {
			is(t, shape("abc", "cab", "c"), "cab")
			is(t, shape("a(b)c", "ac(b)", "b"), "ac(b)")
			is(t, shape("a(b)c", "abc", "b"), "abc")
		}},
		{"3.2 the subscriber MUST order the elements alphabetically (ascending) by using a text collation on the id", func(t *testing.T) {
			is(t, shape("az", "ay", ""), "ayz")
			is(t, shape("ay", "az", ""), "ayz")
			is(t, shape("a(z)", "a(y)", ""), "a(yz)")
		}},
		{"4.1 endpoints MUST follow this algorithm", func(t *testing.T) {
			it, err := create("a", []byte("<item/>"), day0, "x")
			if err != nil || it.Version != 1 || it.ID != "a" || it.Deleted || it.Conflict || !slices.Equal(it.History, []Update{{day0, "x"}}) {
				t.Errorf("%+v, %v", it, err)
			}
		}},
		{"4.2 when creating, updating or deleting an item as the result of a local user operation, endpoints MUST follow this algorithm", func(t *testing.T) {
			out := Merge(item(t, 2, "w", "2a 1a"), item(t, 2, "l", "1b 1a"), Rules{})
			if !out.Item.Conflict || len(out.Item.Conflicts) != 1 {
				t.Fatal("want a conflict")
			}
			it, err := updated(out.Item, nil, true, day0.Add(9*time.Hour), "x")
			if err != nil || it.Version != 3 || !it.Deleted || it.Conflict || len(it.Conflicts) != 0 ||
				!slices.Equal(it.History, append([]Update{{day0.Add(9 * time.Hour), "x"}}, out.Item.History...)) {
				t.Errorf("deleted: %+v, %v", it, err)
			}
			if it, err = updated(it, nil, false, day0.Add(10*time.Hour), "y"); err != nil || it.Deleted || it.Version != 4 || strings.Contains(document(t, it), "conflict") {
				t.Errorf("undeleted: %+v, %v", it, err)
			}
		}},
		{"4.3 it MUST determine if others' modifications to items are more recent than the subscriber's own", func(t *testing.T) {
			mine, theirs := item(t, 2, "mine", "2a 1a"), item(t, 3, "theirs", "1b 2a 1a")
			if out := Merge(mine, theirs, Rules{}); titleOf(out.Item) != "theirs" || out.Detected {
				t.Errorf("%+v", out)
			}
			if out := Merge(theirs, mine, Rules{}); titleOf(out.Item) != "theirs" || out.Incoming {
				t.Errorf("%+v", out)
			}
		}},
		{"4.3 all implementations MUST detect which modification will \"win\" and which will \"lose,\" consistently", func(t *testing.T) {
			items := []*Item{item(t, 2, "p", "2a 1a"), item(t, 2, "q", "2b 1a"), item(t, 2, "r", "1c 1a"), item(t, 1, "s", "9z"), item(t, 2, "t", ".d 1a")}
			for i, a := range items {
				for _, b := range items[i+1:] {
					if x, y := titleOf(Merge(a, b, Rules{}).Item), titleOf(Merge(b, a, Rules{}).Item); x != y {
						t.Errorf("%s and %s: %s here, %s there", titleOf(a), titleOf(b), x, y)
					}
				}
			}
		}},
		{"4.4 all implementations MUST use this algorithm when comparing an incoming item from a publisher", func(t *testing.T) {
			for _, r := range []Rules{{}, {Strict: true}} {
				for _, c := range [][2]*Item{
					{item(t, 3, "w", "1a"), item(t, 2, "l", "9z")},
					{item(t, 2, "w", "2a"), item(t, 2, "l", "1z")},
					{item(t, 2, "w", "1z"), item(t, 2, "l", "1a")},
					{item(t, 2, "w", "1."), item(t, 2, "l", ".z")},
					{item(t, 2, "w", "1a"), item(t, 2, "l", "1.")},
				} {
					if out := Merge(c[1], c[0], r); titleOf(out.Item) != "w" || !out.Incoming {
						t.Errorf("%+v: %s of %v and %v", r, titleOf(out.Item), c[0].History, c[1].History)
					}
				}
				same := item(t, 2, "w", "1a")
				if out := Merge(same, item(t, 2, "w", "1a"), r); out.Item != same || out.Incoming || out.Detected {
					t.Errorf("step 2: %+v", out)
				}
			}
		}},
		{"4.4 one MUST detect to see if this was a normal sequence of edits, or if the endpoints stepped on each others' changes", func(t *testing.T) {
			if Concurrent(item(t, 2, "w", "2a 1o"), item(t, 1, "l", "1o"), Rules{}) || !Concurrent(item(t, 2, "w", "2a 1o"), item(t, 2, "l", "1b 1o"), Rules{}) {
				t.Error("a normal sequence counts as a conflict, or a conflict is not detected")
			}
		}},
		{"4.4.1 endpoints MUST follow this algorithm on the modification history of two updated items", func(t *testing.T) {
			// TestConflictDetection has each branch.
			for _, c := range []struct {
				winner, loser *Item
				want          bool
			}{
				{item(t, 2, "w", "2a"), item(t, 2, "l", "1a"), true},
				{item(t, 4, "w", "4a 3a 2a 1a"), item(t, 2, "l", "2a"), false},
				{item(t, 4, "w", "4a 3a 2b 1a"), item(t, 2, "l", "2a"), true},
				{item(t, 4, "w", "4a 3a"), item(t, 2, "l", "2z"), false},
			} {
				if got := Concurrent(c.winner, c.loser, Rules{Strict: true}); got != c.want {
					t.Errorf("%v, %v: %v", c.winner.History, c.loser.History, got)
				}
			}
		}},
		{"4.4.1 the conflict attribute on the sx:sync element MUST be set to \"true\"; else the value of the conflict attribute MUST be preserved", func(t *testing.T) {
			for _, r := range []Rules{{}, {Strict: true}} {
				out := Merge(item(t, 2, "w", "2a 1o"), item(t, 2, "l", "1b 1o"), r)
				if !strings.Contains(document(t, out.Item), ` conflict="true"`) {
					t.Errorf("not set: %s", document(t, out.Item))
				}
				flagged := item(t, 3, "w", "3a 2a 1o")
				flagged.Conflict = true
				if out := Merge(item(t, 2, "l", "2a 1o"), flagged, r); !out.Item.Conflict || out.Detected {
					t.Errorf("not preserved: %+v", out)
				}
				if out := Merge(item(t, 2, "l", "2a 1o"), item(t, 3, "w", "3a 2a 1o"), r); out.Item.Conflict {
					t.Errorf("the attribute is set without a conflict: %+v", out)
				}
			}
		}},
		{"4.4.2 all implementations for hierarchical data MUST check if the results of comparison have caused an item to indirectly become a parent of itself; endpoints MUST follow this algorithm", func(t *testing.T) {
			d := parse(t, tree("abc", ""))
			d.Merge(parse(t, tree("b(a)c", "a")), Rules{})
			d.Merge(parse(t, tree("ac(b)", "b")), Rules{})
			d.Merge(parse(t, tree("a(c)b", "c")), Rules{})
			text := string(d.Bytes())
			is(t, order(parse(t, text)), "a(c(b))")
			if !strings.Contains(text, `id="a" version="2" conflict="true"`) || strings.Count(text, `conflict="true"`) != 1 {
				t.Errorf("the lowest id is not the one at the root, with a conflict: %s", text)
			}
		}},
		{"5.1 The sx:conflicts element MUST contain one or more sx:conflict sub-elements", func(t *testing.T) {
			d := parse(t, rss(item1(`id="a" version="1"`, `<sx:history by="x"/><sx:conflicts/>`)))
			if len(d.Problems) != 1 || !strings.Contains(d.Problems[0].Reason, "no sx:conflict") {
				t.Errorf("%v", d.Problems)
			}
			next, err := updated(d.Item("a"), nil, false, day0, "y")
			if err != nil || strings.Contains(document(t, next), "conflicts") {
				t.Errorf("an empty sx:conflicts is written: %s", document(t, next))
			}
		}},
		{"5.2 Either or both of the when or by attributes MUST be present", neither},
	} {
		t.Run(c.sentence, c.test)
	}
}
