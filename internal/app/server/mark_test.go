package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/protocol/greader"
	journals "github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

const (
	read    = "user/-/state/com.google/read"
	starred = "user/-/state/com.google/starred"
	kept    = "user/-/state/com.google/kept-unread"
	track   = "user/-/state/com.google/tracking-kept-unread"
)

func TestEditTag(t *testing.T) {
	for _, tc := range []struct {
		form []string
		want string // flags of the entries 100:new 200:F 300:Sx after it
	}{
		{[]string{"a", read}, "100:S 200:FS 300:Sx"},
		{[]string{"a", read, "r", kept, "ac", "edit"}, "100:S 200:FS 300:Sx"},
		{[]string{"r", read, "a", kept, "a", track}, "100:new 200:F 300:x"},
		{[]string{"a", kept}, "100:new 200:F 300:x"},
		{[]string{"a", kept, "r", read, "s", "feed/" + feedA, "async", "true", "T", "good"}, "100:new 200:F 300:x"},
		{[]string{"a", track, "async", "true"}, "100:new 200:F 300:Sx"},
		{[]string{"r", kept}, "100:new 200:F 300:Sx"},
		{[]string{"a", read, "a", kept}, "100:S 200:FS 300:Sx"},
		{[]string{"a", starred}, "100:F 200:F 300:FSx"},
		{[]string{"a", starred, "a", "user/7/state/com.google/read", "r", "user/-/label/flag-x"}, "100:FS 200:FS 300:FS"},
		{[]string{"r", starred}, "100:new 200: 300:Sx"},
		{[]string{"a", "user/-/label/flag-q"}, "100:q 200:Fq 300:Sqx"},
		{[]string{"a", "user/-/state/com.google/broadcast", "a", "user/-/state/com.google/like", "a", "user/-/label/News", "r", "x", "a", ""}, "100:new 200:F 300:Sx"},
		{[]string{"r", "user/-/label/Unknown"}, "100:new 200:F 300:Sx"},
	} {
		f := newFixture(t)
		ids := []greader.ID{f.add(feedA, 100, "-"), f.add(feedA, 200, "F"), f.add(feedB, 300, "Sx")}
		form := append([]string{"i", ids[0].Long(), "i", ids[1].Short(), "i", ids[2].Long(), "i", "77", "i", "../../x"}, tc.form...)
		for range 2 { // the same request again changes nothing
			f.post("edit-tag", form...)
			if got := f.flags(); got != tc.want {
				t.Errorf("%q: got %s, want %s", tc.form, got, tc.want)
			}
		}
		if f.log.Len() > 0 {
			t.Errorf("logged: %s", &f.log)
		}
	}
	f := newFixture(t)
	f.text(f.do("POST", api+"edit-tag", "a="+read), 400)
	id := f.add(feedA, 100, "-").Long()
	form := multipart("T", "good", "a", read, "i", "77", "i", id)
	if got := f.text(f.do("POST", api+"edit-tag", form, "Content-Type", multipartType), 200); got != "OK" || f.flags() != "100:S" {
		t.Errorf("multipart: got %s, %s", got, f.flags())
	}
	form = multipart("T", "good", "r", read, "i", id)
	f.text(f.do("POST", api+"edit-tag", form, "Content-Type", multipartType, "Authorization", ""), 200)
	if f.flags() != "100:" {
		t.Errorf("multipart with T alone: got %s", f.flags())
	}
}

func TestMarkAll(t *testing.T) {
	for _, tc := range []struct {
		form []string
		want string // unread: 100 and 200 of A, 150 of B
	}{
		{[]string{"s", "feed/" + feedA}, "100:S 150:new 200:S 250:T"},
		{[]string{"s", "user/-/label/a/b", "T", "x"}, "100:new 150:S 200: 250:T"},
		{[]string{"s", "user/-/state/com.google/reading-list"}, "100:S 150:S 200:S 250:T"},
		{[]string{"s", "user/-/state/com.google/reading-list", "ts", "150000001"}, "100:S 150:S 200:S 250:T"}, // seconds, of 1974
		{[]string{"s", "user/-/state/com.google/reading-list", "ts", "0000000150000001"}, "100:S 150:S 200: 250:T"},
		{[]string{"s", "user/-/state/com.google/reading-list", "ts", "0000000150000000"}, "100:S 150:new 200: 250:T"},
		{[]string{"s", "user/-/state/com.google/reading-list", "ts", "150"}, "100:S 150:S 200: 250:T"},
		{[]string{"s", "user/-/state/com.google/reading-list", "ts", "0000000150000000999"}, "100:S 150:new 200: 250:T"}, // nanoseconds
		{[]string{"s", "user/-/state/com.google/reading-list", "ts", "0"}, "100:S 150:S 200:S 250:T"},
		{[]string{"s", "user/-/label/unknown"}, "100:new 150:new 200: 250:T"},
	} {
		f := newFixture(t)
		f.add(feedA, 100, "-")
		f.add(feedB, 150, "-")
		f.add(feedA, 200, "")
		f.add(feedA, 250, "T")
		f.post("mark-all-as-read", tc.form...)
		if got := f.flags(); got != tc.want {
			t.Errorf("%q: got %s, want %s", tc.form, got, tc.want)
		}
	}
	f := newFixture(t)
	for _, bad := range []string{"", "s=x", "s=feed/1&ts=x"} {
		f.text(f.do("POST", api+"mark-all-as-read", bad), 400)
	}
}

// A request is one command for undo, whatever the number of its entries.
func TestUndo(t *testing.T) {
	f := newFixture(t)
	var form []string
	for i := range int64(300) {
		form = append(form, "i", f.add(feedA, 1000+i, "-").Long())
	}
	f.post("edit-tag", append(form, "a", read)...)
	journals, err := filepath.Glob(filepath.Join(f.Path, "etc/view/undo/*"))
	if err != nil || len(journals) != 1 {
		t.Fatalf("%d journals, %v; want 1", len(journals), err)
	}
	f.post("edit-tag", form[0], form[1], "a", read) // changes nothing, so there is no journal
	s := cmdline.NewStreams("lektor-view", strings.NewReader(""), &f.log, &f.log)
	if err := undo.Undo(context.Background(), undo.Options{Common: session.Common{Dir: f.Path}}, s); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(f.flags(), "S") {
		t.Error("entries are still read")
	}
}

// The changes of subscriptions that a client makes are in the journal of its marks.
func TestUndoSubscriptions(t *testing.T) {
	f := newFixture(t)
	f.post("edit-tag", "i", f.add(feedA, 100, "-").Long(), "a", read)
	f.post("subscription/edit", "ac", "edit", "s", "feed/"+f.a, "t", "Mine")
	f.post("subscription/edit", "ac", "unsubscribe", "s", "feed/"+f.a)
	f.post("subscription/edit", "ac", "subscribe", "s", "feed/http://c.example/rss")
	d, err := lektordir.Open(f.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	records, err := journals.Records(d)
	if err != nil || len(records) != 1 {
		t.Fatalf("%v, %v", records, err)
	}
	c, err := records[0].Read()
	if err != nil {
		t.Fatal(err)
	}
	want := f.a + "\talias\t\tMine\n" + f.a + "\turl\t" + feedA + "\t\n" +
		testdir.Hash("http://c.example/rss") + "\turl\t\thttp://c.example/rss\\na client of lektor-serve\n"
	if c.Lines() != want || len(c.Moves) != 1 || c.Invalid > 0 {
		t.Errorf("%d moves, %d invalid lines, and\n%swant\n%s", len(c.Moves), c.Invalid, c.Lines(), want)
	}
}

// The marks of a client within ten minutes are one command for undo, which takes all of them back, unless
// another command comes in between.
func TestUndoChain(t *testing.T) {
	at := now
	f := newFixture(t, func(o *Options) { o.Now = func() time.Time { return at } })
	ids := []string{f.add(feedA, 100, "-").Long(), f.add(feedA, 200, "-").Long(), f.add(feedB, 300, "F").Long()}
	journals := func() int {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(f.Path, "etc/view/undo/*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	takeBack := func() string {
		t.Helper()
		s := cmdline.NewStreams("lektor-view", strings.NewReader(""), io.Discard, io.Discard)
		if err := undo.Undo(context.Background(), undo.Options{Common: session.Common{Dir: f.Path}}, s); err != nil {
			t.Fatal(err)
		}
		return f.flags()
	}
	post := func(token, path string, form ...string) {
		t.Helper()
		f.text(f.do("POST", api+path, values(form...), "Authorization", "GoogleLogin auth="+token), 200)
	}
	for i, step := range []struct {
		after   time.Duration
		token   string
		form    []string
		want    int // journals
		flagged string
	}{
		{0, "good", []string{"i", ids[0], "a", read}, 1, "100:S 200:new 300:F"},
		{9 * time.Minute, "good", []string{"i", ids[0], "a", starred}, 1, "100:FS 200:new 300:F"},
		{0, "good", []string{"i", ids[0], "a", starred}, 1, "100:FS 200:new 300:F"}, // changes nothing
		{0, "second", []string{"i", ids[1], "a", read}, 2, "100:FS 200:S 300:F"},
		{0, "good", []string{"i", ids[2], "a", read}, 3, "100:FS 200:S 300:FS"},
		{time.Minute, "good", []string{"i", ids[2], "r", starred}, 3, "100:FS 200:S 300:S"},
		{9 * time.Minute, "good", []string{"i", ids[2], "r", read}, 4, "100:FS 200:S 300:"},
	} {
		at = at.Add(step.after)
		post(step.token, "edit-tag", step.form...)
		if n := journals(); n != step.want || f.flags() != step.flagged {
			t.Errorf("step %d: %d journals, %s; want %d, %s", i, n, f.flags(), step.want, step.flagged)
		}
	}
	for i, want := range []string{"100:FS 200:S 300:S", "100:FS 200:S 300:F", "100:FS 200: 300:F", "100: 200: 300:F"} {
		if got := takeBack(); got != want || journals() != 3-i {
			t.Errorf("undo %d: %s, %d journals; want %s", i, got, journals(), want)
		}
	}
	// A journal that was taken back is not continued.
	post("good", "edit-tag", "i", ids[0], "a", read)
	if got := takeBack(); got != "100: 200: 300:F" || journals() != 0 {
		t.Errorf("got %s, %d journals", got, journals())
	}
	// Another command may have the number of one that was taken back.
	post("good", "edit-tag", "i", ids[1], "a", read)
	takeBack()
	other := filepath.Join(f.Path, "etc/view/undo", fmt.Sprintf("%d.1", os.Getuid()))
	text := "mark\t" + at.Format(time.RFC3339) + "\nnew/" + f.a + "/1.2.host\tcur/" + f.a + "/1.2.host;2,S\n"
	if err := os.WriteFile(other, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	post("good", "edit-tag", "i", ids[1], "a", read)
	if b, err := os.ReadFile(other); err != nil || string(b) != text || journals() != 2 {
		t.Errorf("%d journals, want 2; %v\n%s", journals(), err, b)
	}
}

// The marks of several requests are synced by one call soon, and those that remain when the server ends.
func TestSync(t *testing.T) {
	var later []func()
	f := newFixture(t, func(o *Options) {
		o.After = func(d time.Duration, do func()) {
			if d > 2*time.Second {
				t.Errorf("marks are synced after %s", d)
			}
			later = append(later, do)
		}
	})
	var synced []string
	f.server.sync = func(_ string, rels ...string) error {
		slices.Sort(rels)
		synced = append(synced, strings.Join(rels, " "))
		return errors.New("disk failed")
	}
	a, b := f.add(feedA, 100, "-").Long(), f.add(feedB, 200, "-").Long()
	f.post("edit-tag", "i", a, "a", read)
	f.post("edit-tag", "i", b, "a", read)
	f.post("edit-tag", "i", b, "a", read) // changes nothing
	f.post("edit-tag", "i", a, "a", starred)
	if len(later) != 1 || len(synced) != 0 {
		t.Fatalf("%d syncs to come, %q; want one", len(later), synced)
	}
	later[0]()
	want := "cur/" + f.a + " cur/" + f.b + " new/" + f.a + " new/" + f.b
	if len(synced) != 1 || synced[0] != want || !strings.Contains(f.log.String(), "marks may be lost if the power fails: disk failed") {
		t.Errorf("synced %q, want %q; logged %s", synced, want, &f.log)
	}
	f.post("edit-tag", "i", b, "a", starred)
	f.server.Close()
	if len(later) != 2 || len(synced) != 2 || synced[1] != "cur/"+f.b+" new/"+f.b {
		t.Errorf("%d later, synced %q", len(later), synced)
	}
}

// A mark or delivery of another program shows in the next answer.
func TestFresh(t *testing.T) {
	f := newFixture(t)
	unread := "xt=" + read
	count := func() int { ids, _ := f.ids(unread); return len(ids) }
	for i := range 20 {
		f.add(feedA, int64(100+i), "-")
		if got := count(); got != 1 {
			t.Fatalf("%d unread entries after the delivery of %d", got, 100+i)
		}
		unique := testdir.Unique(int64(100+i), 100+i)
		cur := filepath.Join(f.Path, "cur", f.a)
		if err := os.MkdirAll(cur, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(f.Path, "new", f.a, unique), filepath.Join(cur, unique+";2,S")); err != nil {
			t.Fatal(err)
		}
		if got := count(); got != 0 {
			t.Fatalf("%d unread entries after the mark of %d", got, 100+i)
		}
	}
	f.post("subscription/edit", "ac", "unsubscribe", "s", "feed/"+f.a)
	if ids, _ := f.ids(""); len(ids) != 0 {
		t.Errorf("%d entries of a feed that was unsubscribed from", len(ids))
	}
}

// Entries of one microsecond with the same 8 bits have ids of their own, all are found by them, and
// a mark does not change them.
func TestEqualIDs(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		for _, feed := range []string{feedA, feedB} {
			name := fmt.Sprintf("100.M7P%dQ1I%014x05.host", i, i)
			if _, err := f.Entry(feed, "new", name, "title="+name); err != nil {
				t.Fatal(err)
			}
		}
	}
	next := "100.M7P9Q1I0000000000000006.host" // has an id of its own, which no other takes
	if _, err := f.Entry(feedA, "cur", next+";2,S", "title=next"); err != nil {
		t.Fatal(err)
	}
	base := idOf("100.M7P1Q1I0000000000000005.host")
	titles := func() string {
		var all []string
		for _, i := range f.contents(f.get("stream/contents?r=o")) {
			all = append(all, i.ID+" "+i.Origin.StreamID+" "+i.Title)
		}
		return strings.Join(all, "\n")
	}
	before := titles()
	if items := f.contents(f.get("stream/items/contents?i=" + idOf(next).Short())); len(items) != 1 || items[0].Title != "next" {
		t.Errorf("got %+v", items)
	}
	for i := range greader.ID(7) {
		if !strings.Contains(before, (base + i).Long()) {
			t.Fatalf("no %s in\n%s", (base + i).Long(), before)
		}
		f.post("edit-tag", "i", (base + i).Short(), "a", read)
	}
	if after := titles(); after != before {
		t.Errorf("got\n%s\nwant\n%s", after, before)
	}
	if strings.Contains(f.flags(), "new") {
		t.Errorf("unread: %s", f.flags())
	}
}

// Requests at the same time, beside another viewer, lose nothing.
func TestAtOnce(t *testing.T) {
	f := newFixture(t)
	const n = 60
	for i := range int64(n) {
		f.add(feedA, 100+i, "-")
	}
	var wg sync.WaitGroup
	for w := range 6 {
		wg.Go(func() {
			for i := range n {
				id := idOf(testdir.Unique(int64(100+i), 100+i)).Long()
				tag := []string{read, starred}[w%2]
				if r := f.do("POST", api+"edit-tag", values("i", id, "a", tag)); r.StatusCode != 200 {
					t.Errorf("status %d", r.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	for i, place := range strings.Fields(f.flags()) {
		if want := fmt.Sprintf("%d:FS", 100+i); place != want {
			t.Errorf("got %s, want %s", place, want)
		}
	}
	err := filepath.WalkDir(f.Path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && filepath.Base(filepath.Dir(filepath.Dir(path))) == "cur" {
			if n, reason := entryname.Parse(d.Name(), true); reason != "" || n.Bare {
				t.Errorf("%s: %s", path, reason)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
