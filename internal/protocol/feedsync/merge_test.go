package feedsync

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var day0 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// u parses an update: "3a" is three seconds after day0, by a. "." means absent.
func u(s string) Update {
	var up Update
	if s[0] != '.' {
		up.When = day0.Add(time.Duration(s[0]-'0') * time.Second)
	}
	if s[1] != '.' {
		up.By = s[1:2]
	}
	return up
}

// canonical returns a content in canonical form.
func canonical(content []byte) []byte { return []byte(Canonical(content)) }

// create, updated and resolve are [Create], [Item.Update] and [Item.Resolve] with another content; nil keeps it.
func create(id string, content []byte, when time.Time, by string) (*Item, error) {
	it, err := Create(id, when, by)
	return edited(it, content, err)
}

func updated(it *Item, content []byte, deleted bool, when time.Time, by string) (*Item, error) {
	it, err := it.Update(deleted, when, by)
	return edited(it, content, err)
}

func resolve(it *Item, content []byte, deleted bool, when time.Time, by string) (*Item, error) {
	it, err := it.Resolve(deleted, when, by)
	return edited(it, content, err)
}

func edited(it *Item, content []byte, err error) (*Item, error) {
	if err != nil || content == nil {
		return it, err
	}
	if content = canonical(content); len(content) == 0 {
		return nil, errors.New("a content must be one element")
	}
	return it.WithContent(content)
}

// item returns an item with a version, a title ("-" for a deletion), and updates, the last
// first.
func item(t testing.TB, version uint64, title, updates string) *Item {
	t.Helper()
	it := &Item{ID: "x", Version: version}
	for _, f := range strings.Fields(updates) {
		it.History = append(it.History, u(f))
	}
	if title == "-" {
		it.Deleted = true
	}
	it, err := it.WithContent(canonical([]byte("<item><title>" + title + "</title></item>")))
	if err != nil {
		t.Fatal(err)
	}
	return it
}

func titleOf(it *Item) string {
	return strings.Join(it.Children("", "title"), "")
}

// Section 4.4, steps 1 and 2.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		av      uint64
		a       string
		bv      uint64
		b       string
		want    int
		because string
	}{
		{2, "1a", 1, "9z", 1, "the larger version wins"},
		{1, "2a", 1, "1b", 1, "the later time wins"},
		{1, "1.", 1, ".z", 1, "when: present wins"},
		{1, "1b", 1, "1a", 1, "the greater by wins"},
		{1, "1a", 1, "1.", 1, "by: present wins"},
		{1, ".a", 1, ".a", 0, "all equal"},
		{3, "1.", 3, "1.", 0, "all equal without by"},
	} {
		a, b := item(t, c.av, "a", c.a), item(t, c.bv, "b", c.b)
		if got := Compare(a, b); got != c.want {
			t.Errorf("%s: %d", c.because, got)
		}
		if got := Compare(b, a); got != -c.want {
			t.Errorf("%s, with exchanged items: %d", c.because, got)
		}
	}
}

// Each row is a branch of section 4.4.1. Winner and loser have different titles.
func TestConflictDetection(t *testing.T) {
	for _, c := range []struct {
		name           string
		wv             uint64
		winner         string
		lv             uint64
		loser          string
		strict, lenent bool
	}{
		{"n = 0", 2, "2a 1a", 2, "1b 1a", true, true},
		{"n = 0, and the loser is among the updates", 2, "2a 1a", 2, "1a", true, false},
		{"n = 1, equal", 2, "2a 1b", 1, "1b", false, false},
		{"n = 1, other by", 2, "2a 1b", 1, "1c", true, true},
		{"n = 1, other when", 2, "3a 1b", 1, "2b", true, true},
		{"n = len, equal", 3, "3a 2b 1c", 1, "1c", false, false},
		{"n = len, not equal", 3, "3a 2b 1c", 1, "1d", true, true},
		{"n = len + 1: truncated", 4, "3a 2b 1c", 1, "1d", false, false},
		{"at another place", 3, "3a 1d 2b", 1, "1d", true, false},
		{"at another place, behind n", 2, "3a 2b 1d", 1, "1d", true, false},
		{"no updates", 2, "2a", 1, "1b", false, false},
		{"winner without a history", 2, "", 1, "1b", false, false},
		{"loser without a history", 2, "2a 1b", 1, "", false, false},
		{"absent when, equal", 2, "2a .b", 1, ".b", false, false},
		{"absent when, not equal", 2, "2a 1b", 1, ".b", true, true},
		{"absent by, equal", 2, "2a 1.", 1, "1.", false, false},
		{"absent by, not equal", 2, "2a 1.", 1, "1b", true, true},
		{"both absent once", 2, "2a 1.", 1, ".b", true, true},
		{"n = 0, absent by", 1, "1a", 1, "1.", true, true},
		{"n = 0, absent when", 1, "1a", 1, ".a", true, true},
	} {
		w, l := item(t, c.wv, "winner", c.winner), item(t, c.lv, "loser", c.loser)
		for _, strict := range []bool{true, false} {
			want := c.lenent
			if strict {
				want = c.strict
			}
			for _, incoming := range []bool{true, false} {
				local, in := l, w
				if !incoming {
					local, in = w, l
				}
				out := Merge(local, in, Rules{Strict: strict})
				if out.Detected != want || out.Incoming != incoming {
					t.Errorf("%s (strict %v, incoming %v): %+v", c.name, strict, incoming, out)
				}
				if titleOf(out.Item) != "winner" || out.Item.Conflict != want || len(out.Item.Conflicts) != map[bool]int{true: 1}[want] {
					t.Errorf("%s (strict %v): %s, conflict %v, %d conflicts", c.name, strict, titleOf(out.Item), out.Item.Conflict, len(out.Item.Conflicts))
				}
				if want {
					k := out.Item.Conflicts[0]
					// Section 5.2: it duplicates the loser's history.
					if k.Head() != l.Head() || k.Version != l.Version || !strings.Contains(string(k.Content), "loser") {
						t.Errorf("%s: the conflict is %+v %s", c.name, k, k.Content)
					}
				} else if out.Item != w {
					t.Errorf("%s: 4.2: the winner has changed", c.name)
				}
			}
		}
	}
}

// If two of three concurrent edits have the same content, only the third is in conflict with
// them, on all machines and in every order of merges.
func TestNoEditIsLost(t *testing.T) {
	for _, titles := range []string{"same same other", "same other same", "other same same", "one two three", "- - other", "same same -", "same same same"} {
		word := strings.Fields(titles)
		edits := []*Item{item(t, 2, word[0], "5a 1o"), item(t, 2, word[1], "4b 1o"), item(t, 2, word[2], "3c 1o")}
		pairs := [][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}}
		for order := range 6 * 6 * 6 {
			all := slices.Clone(edits)
			read := func(pair [2]int) {
				all[pair[0]] = Merge(all[pair[0]], all[pair[1]], Rules{}).Item
			}
			for n, step := 0, order; n < 3; n++ {
				read(pairs[step%6])
				step /= 6
			}
			for range 2 {
				for _, pair := range pairs {
					read(pair)
				}
			}
			for n, it := range all {
				edited := map[string]bool{titleOf(it): true}
				for _, c := range it.Conflicts {
					title := "-"
					if !c.Deleted {
						title = titleOf(c)
					}
					if title == titleOf(edits[0]) {
						t.Fatalf("%s, in the order %d: %d has a conflict between equal contents", titles, order, n)
					}
					edited[title] = true
				}
				for _, title := range word {
					if !edited[title] {
						t.Fatalf("%s, in the order %d: on %d the edit %s is lost without a conflict", titles, order, n, title)
					}
				}
				if it.Conflict != (len(edited) > 1) || Compare(it, edits[0]) != 0 {
					t.Fatalf("%s, in the order %d: %d has %+v", titles, order, n, it)
				}
			}
		}
	}
}

func TestEqualContentIsNoConflict(t *testing.T) {
	a, b := item(t, 2, "same", "2a 1a"), item(t, 2, "same", "1b 1a")
	out := Merge(a, b, Rules{})
	if out.Detected || out.Item.Conflict || out.Incoming || Compare(out.Item, a) != 0 {
		t.Errorf("%+v", out)
	}
	// The next edit includes the update of the other item, so its old copy is no conflict.
	next, err := updated(out.Item, []byte("<item><title>next</title></item>"), false, u("3a").When, "a")
	if err != nil {
		t.Fatal(err)
	}
	if out := Merge(b, next, Rules{}); out.Detected || titleOf(out.Item) != "next" {
		t.Errorf("an old copy of the item with equal content: %+v", out)
	}
	if out := Merge(a, b, Rules{Strict: true}); !out.Detected {
		t.Errorf("strict: %+v", out)
	}
	a, b = item(t, 2, "-", "2a 1a"), item(t, 2, "-", "1b 1a")
	b.Content = canonical([]byte("<item/>"))
	if out := Merge(a, b, Rules{}); out.Detected {
		t.Errorf("both deleted: %+v", out)
	}
	if out := Merge(a, b, Rules{Strict: true}); !out.Detected {
		t.Errorf("strict, both deleted: %+v", out)
	}
	// A deletion and an edit are in conflict, whichever wins.
	for _, in := range []string{"1b 1a", "3b 1a"} {
		out := Merge(item(t, 2, "edit", "2a 1a"), item(t, 2, "-", in), Rules{})
		if !out.Detected || out.Item.Deleted != (in == "3b 1a") {
			t.Errorf("tombstone %s against an edit: %+v", in, out)
		}
	}
}

// A copied endpoint makes different items with equal keys.
func TestTie(t *testing.T) {
	a, b := item(t, 2, "aaa", "2a 1a"), item(t, 2, "bbb", "2a 1a")
	for _, pair := range [][2]*Item{{a, b}, {b, a}} {
		out := Merge(pair[0], pair[1], Rules{})
		if !out.Detected || titleOf(out.Item) != "bbb" || len(out.Item.Conflicts) != 1 || out.Incoming != (pair[1] == b) {
			t.Errorf("%+v: %s", out, titleOf(out.Item))
		}
		if out := Merge(pair[0], pair[1], Rules{Strict: true}); out.Detected || out.Item != pair[0] {
			t.Errorf("4.4, step 2: no action: %+v", out)
		}
	}
	if out := Merge(a, a, Rules{}); out.Item != a {
		t.Error("merging an item with itself changes it")
	}
}

// Other programs may set the conflict flag without a conflict: the flag stays, whichever of
// the two items has it. If they chose the other winner, our winner is not in conflict with
// itself.
func TestConflictsOfOthers(t *testing.T) {
	flagged := func(it *Item) *Item {
		it.Conflict = true
		return it
	}
	for name, pair := range map[string][2]*Item{
		"the winner, equal content": {flagged(item(t, 2, "same", "2a 1a")), item(t, 2, "same", "1b 1a")},
		"the loser, equal content":  {item(t, 2, "same", "2a 1a"), flagged(item(t, 2, "same", "1b 1a"))},
		"one of two equal items":    {item(t, 2, "same", "2a 1a"), flagged(item(t, 2, "same", "2a 1a"))},
	} {
		for range 2 {
			out := Merge(pair[0], pair[1], Rules{})
			if !out.Item.Conflict || len(out.Item.Conflicts) > 0 || out.Detected {
				t.Errorf("%s: %+v", name, out.Item)
			}
			pair[0], pair[1] = pair[1], pair[0]
		}
	}
	winner, loser := item(t, 2, "bbb", "2a 1a"), item(t, 2, "aaa", "2a 1a")
	loser = loser.with([]*Item{winner.asLoser()}, true)
	for _, pair := range [][2]*Item{{winner, loser}, {loser, winner}} {
		out := Merge(pair[0], pair[1], Rules{})
		if titleOf(out.Item) != "bbb" || len(out.Item.Conflicts) != 1 || !strings.Contains(string(out.Item.Conflicts[0].Content), "aaa") {
			t.Errorf("%+v", out.Item)
		}
	}
}

// Section 5.2: an item keeps one conflict of each endpoint.
func TestOneConflictPerEndpoint(t *testing.T) {
	conflict := func(version uint64, s string) *Item {
		return &Item{Version: version, History: []Update{u(s)}, Content: []byte("<item/>")}
	}
	for _, c := range []struct{ in, want []*Item }{
		{[]*Item{conflict(2, "1a"), conflict(3, "1a")}, []*Item{conflict(3, "1a")}},
		{[]*Item{conflict(3, "1a"), conflict(2, "5a")}, []*Item{conflict(3, "1a")}},
		{[]*Item{conflict(2, "1a"), conflict(2, "1b")}, []*Item{conflict(2, "1a"), conflict(2, "1b")}},
		{[]*Item{conflict(2, "1."), conflict(3, "0.")}, []*Item{conflict(3, "0.")}},
		{[]*Item{conflict(2, "5."), conflict(2, "1.")}, []*Item{conflict(2, "5.")}},
	} {
		for range 2 {
			got := reduce(slices.Clone(c.in))
			if !slices.EqualFunc(got, c.want, func(a, b *Item) bool { return a.Version == b.Version && a.Head() == b.Head() }) {
				t.Errorf("%v is reduced to %v", c.in, got)
			}
			slices.Reverse(c.in)
		}
	}
}

func TestUpdate(t *testing.T) {
	it := item(t, 1, "a", "1a")
	for n := range 40 {
		var err error
		if it, err = updated(it, nil, n == 38, day0.Add(time.Duration(n)*time.Hour+time.Nanosecond), "b"); err != nil {
			t.Fatal(err)
		}
		if it.Deleted != (n == 38) {
			t.Errorf("4.2, step 3: deleted is %v after update %d", it.Deleted, n)
		}
	}
	if it.Version != 41 || len(it.History) != 26 || it.Head().When != day0.Add(39*time.Hour) || it.History[1].When != day0.Add(38*time.Hour) {
		t.Errorf("version %d, %d updates, %v", it.Version, len(it.History)-1, it.History[:2])
	}
	out := Merge(item(t, 2, "w", "2a 1a"), item(t, 2, "l", "1b 1a"), Rules{})
	next, err := updated(out.Item, nil, false, day0, "c")
	if err != nil || next.Conflict || next.Conflicts != nil || !out.Item.Conflict {
		t.Errorf("4.2, step 4: %+v, %v", next, err)
	}
	it.Version = MaxVersion
	if _, err := updated(it, nil, false, day0, "c"); err == nil {
		t.Error("Update exceeds version 2^53")
	}
	if _, err := create("a b", []byte("<item/>"), day0, "c"); err == nil {
		t.Error("Create accepts an invalid id")
	}
}

// Loser returns the losing item with its place, deletion and history, also after the
// document was written and read.
func TestLoser(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		base := parse(t, tree("abc", "")).Item("c")
		winner, err := updated(base, []byte(`<outline text="edited"/>`), false, u("3w").When, "w")
		if err != nil {
			t.Fatal(err)
		}
		moved, err := updated(base, []byte(`<outline text="moved"/>`), deleted, u("2l").When, "l")
		if err != nil {
			t.Fatal(err)
		}
		moved.Parent = "a"
		d := parse(t, tree("abc", ""))
		d.Append(winner)
		in := parse(t, tree("abc", ""))
		in.Append(moved)
		d.Merge(parse(t, string(in.Bytes())), Rules{})
		it := parse(t, string(d.Bytes())).Item("c")
		if len(it.Conflicts) != 1 || it.Parent != "" {
			t.Fatalf("deleted %v: %+v", deleted, it)
		}
		loser := it.Conflicts[0]
		if loser.ID != "c" || loser.Parent != "a" || loser.Deleted != deleted || loser.Value("", "text") != "moved" || !slices.Equal(loser.History, moved.History) || loser.Version != 2 {
			t.Errorf("deleted %v: %+v", deleted, loser)
		}
	}
}

// An update is identified by endpoint and second: Moment returns a second in which the
// endpoint has no update in the item's history, its settled updates or its conflicts.
func TestMoment(t *testing.T) {
	mine := func(seconds int) time.Time { return day0.Add(time.Duration(seconds) * time.Second) }
	it := item(t, 3, "w", "5a 2b 1a")
	it.Settled = []Update{u("6a")}
	lost := item(t, 3, "l", "3c 7a")
	it.Conflicts = []*Item{lost.asLoser()}
	for _, c := range []struct {
		now  int
		by   string
		want int
	}{{4, "a", 4}, {5, "a", 8}, {6, "a", 8}, {7, "a", 8}, {1, "a", 2}, {2, "b", 3}, {2, "a", 2}, {3, "c", 4}, {5, "b", 5}} {
		if got := it.Moment(mine(c.now).Add(999*time.Millisecond), c.by); got != mine(c.want) {
			t.Errorf("by %s at %d s: the moment is %v, want %d s", c.by, c.now, got.Sub(day0), c.want)
		}
	}
	// If both edits had one update, a copy of the first would look like the second.
	first, err := updated(item(t, 1, "one", "1o"), []byte("<item><title>first</title></item>"), false, mine(4), "a")
	if err != nil {
		t.Fatal(err)
	}
	second, err := updated(first, []byte("<item><title>second</title></item>"), false, first.Moment(mine(4), "a"), "a")
	if err != nil || second.Head() == first.Head() {
		t.Errorf("%v, %v", second.History, err)
	}
}

// An endpoint that reads the resolution first, and the loser or an older version of it
// later, does not report the conflict again.
func TestResolve(t *testing.T) {
	base := item(t, 1, "base", "1o")
	edit := func(it *Item, title string, s string) *Item {
		t.Helper()
		next, err := updated(it, []byte("<item><title>"+title+"</title></item>"), false, u(s).When, u(s).By)
		if err != nil {
			t.Fatal(err)
		}
		return next
	}
	a1 := edit(base, "a1", "2a")
	a2 := edit(a1, "a2", "3a")
	b := edit(edit(base, "b1", "2b"), "b2", "4b")
	both := Merge(a2, b, Rules{}).Item
	if len(both.Conflicts) != 1 || titleOf(both) != "b2" {
		t.Fatalf("%+v", both)
	}
	loser := both.Conflicts[0]
	if titleOf(loser) != "a2" {
		t.Fatalf("%v", loser)
	}
	done, err := resolve(both, loser.Content, false, u("5c").When, "c")
	if err != nil {
		t.Fatal(err)
	}
	if done.History[1] != b.Head() || done.History[2] != a2.Head() {
		t.Errorf("history %v", done.History)
	}
	for name, other := range map[string]*Item{"a1": a1, "a2": a2, "b": b, "base": base, "both": both} {
		for _, pair := range [][2]*Item{{done, other}, {other, done}} {
			if out := Merge(pair[0], pair[1], Rules{}); out.Detected || out.Item.Conflict || titleOf(out.Item) != "a2" || len(out.Item.Conflicts) > 0 {
				t.Errorf("with %s: %+v", name, out.Item)
			}
		}
	}
	// An edit that the resolution did not know is in conflict with it. The resolved conflict
	// does not return with this edit.
	c := Merge(edit(both, "c", "6d").with(both.Conflicts, true), done, Rules{})
	if !c.Detected || len(c.Item.Conflicts) != 1 || c.Item.Conflicts[0].Head() == a2.Head() {
		t.Errorf("%+v", c.Item)
	}
}

func order(d *Document) string {
	var b strings.Builder
	inside := d.layout().inside
	var down func(kids []*Item)
	down = func(kids []*Item) {
		for _, it := range kids {
			if !it.inert {
				b.WriteString(it.ID)
			}
			if len(inside[it]) > 0 {
				b.WriteByte('(')
				down(inside[it])
				b.WriteByte(')')
			}
		}
	}
	down(inside[nil])
	return b.String()
}

// tree returns a document for a shape such as "a(bc)d". All items have version 1 by o, but
// those in newer have version 2.
func tree(shape, newer string) string {
	var b strings.Builder
	for i, c := range shape {
		switch c {
		case '(':
			continue
		case ')':
			b.WriteString("</outline>")
		default:
			history := `version="1"><sx:history by="o"/>`
			if strings.ContainsRune(newer, c) {
				history = `version="2"><sx:history by="p"><sx:update by="o"/></sx:history>`
			}
			fmt.Fprintf(&b, `<outline text="%c"><sx:sync id="%c" %s</sx:sync>`, c, c, history)
			if i+1 == len(shape) || shape[i+1] != '(' {
				b.WriteString("</outline>")
			}
		}
		b.WriteByte('\n')
	}
	return outlines(b.String())
}

// Section 3.2.
func TestOrder(t *testing.T) {
	for _, c := range []struct{ name, local, incoming, newer, want string }{
		{"added at the end", "ab", "abc", "", "abc"},
		{"added at the beginning", "ab", "cab", "", "cab"},
		{"added within", "ab", "axb", "", "axb"},
		{"behind the nearest that is here", "ad", "abcd", "", "abcd"},
		{"order of a document stays", "ad", "azbd", "", "azbd"},
		{"two at one place: the lower id is first", "ay", "ax", "", "axy"},
		{"and the other way", "ax", "ay", "", "axy"},
		{"moved: MUST be updated, and MUST be incorporated", "abc", "cab", "c", "cab"},
		{"not updated: not moved", "abc", "cab", "", "abc"},
		{"moved into another", "ab(c)", "a(c)b", "c", "a(c)b"},
		{"the winner stays with its parent", "a(bc)d", "da(bc)", "a", "da(bc)"},
		{"a folder of both", "a(b)", "a(c)", "", "a(bc)"},
	} {
		d := parse(t, tree(c.local, ""))
		d.Merge(parse(t, tree(c.incoming, c.newer)), Rules{})
		if got := order(d); got != c.want {
			t.Errorf("%s: %s merged with %s is %s, want %s", c.name, c.local, c.incoming, got, c.want)
		}
		again := parse(t, string(d.Bytes()))
		if got := order(again); got != c.want || len(again.Problems) > 0 {
			t.Errorf("%s: the written document is read as %s, %v", c.name, got, again.Problems)
		}
	}
	// Three siblings from three endpoints, in every order.
	for _, seq := range []string{"xyz", "xzy", "yxz", "yzx", "zxy", "zyx"} {
		d := parse(t, tree("a", ""))
		for _, c := range seq {
			d.Merge(parse(t, tree("a"+string(c), "")), Rules{})
		}
		if got := order(d); got != "axyz" {
			t.Errorf("%s: %s", seq, got)
		}
	}
}

// Section 4.4.2: in a cycle, the item with the lowest id moves to the root. Its Parent
// stays.
func TestCycle(t *testing.T) {
	for _, first := range []string{"a", "b"} {
		// One endpoint moved a into b, the other b into a.
		docs := map[string]string{"a": tree("b(a)", "a"), "b": tree("a(b)", "b")}
		d := parse(t, tree("ab", ""))
		for _, next := range []string{first, map[string]string{"a": "b", "b": "a"}[first]} {
			d.Merge(parse(t, docs[next]), Rules{})
		}
		if got := order(d); got != "a(b)" {
			t.Errorf("effective: %s", got)
		}
		text := string(d.Bytes())
		if !strings.Contains(text, `lektor:parent="b"`) || strings.Count(text, `conflict="true"`) != 1 {
			t.Errorf("%s", text)
		}
		again := parse(t, text)
		a, b := again.Item("a"), again.Item("b")
		if a.Parent != "b" || b.Parent != "a" || a.Conflict || b.Conflict {
			t.Errorf("stored: %+v, %+v", a, b)
		}
		// Moving b to the root ends the cycle.
		out, err := updated(again.Item("b"), nil, false, day0, "q")
		if err != nil {
			t.Fatal(err)
		}
		out.Parent = ""
		again.Append(out)
		if got := order(again); got != "b(a)" || strings.Contains(string(again.Bytes()), "conflict=") {
			t.Errorf("%s in %s", got, again.Bytes())
		}
	}
	// An outline whose parent is missing is at the root, too, but is not in conflict.
	d := parse(t, tree("ab", ""))
	lost := parse(t, tree("a", "a")).Item("a")
	lost.Parent = "gone"
	d.Append(lost)
	for range 2 {
		text := string(d.Bytes())
		if !strings.Contains(text, `lektor:parent="gone"`) || strings.Contains(text, "conflict=") || order(d) != "ab" {
			t.Errorf("%s", text)
		}
		d = parse(t, text)
		if a := d.Item("a"); a.Parent != "gone" || a.Conflict {
			t.Errorf("%+v", a)
		}
	}
	// A longer cycle, an item that is its own parent, and an item whose parent is in a cycle.
	effective, cycle := Parents(map[string]string{"d": "c", "c": "b", "b": "d", "a": "b", "e": "e", "f": "gone"})
	if fmt.Sprint(effective) != "map[a:b b: c:b d:c e: f:]" || fmt.Sprint(cycle) != "[b e]" {
		t.Errorf("%v, %v", effective, cycle)
	}
}
