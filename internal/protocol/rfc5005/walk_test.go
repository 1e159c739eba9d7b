package rfc5005

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// site maps the URL of each archive to that of the archive before it.
type site map[string]string

func u(n any) string { return fmt.Sprintf("http://x.example/%v", n) }

// walk walks through a site as a fetcher does, and returns the requested URLs, newest first, the
// stored archives, and the reason why the walk ended. Each archive has ten entries and a hundred
// bytes.
func walk(t *testing.T, s site, w *Walk, redirects map[string]string) (asked []string, stored []Stored, stop *Stop) {
	t.Helper()
	for range 1000 {
		url, _, ok := w.Next()
		if !ok || w.May() != nil {
			return asked, stored, w.Stopped()
		}
		asked = append(asked, strings.TrimPrefix(url, u("")))
		prev, there := s[url]
		final := url
		if to := redirects[url]; to != "" {
			final = to
			prev, there = s[to]
		}
		if !there {
			w.Fail("404", true)
			return asked, stored, w.Stopped()
		}
		w.Count(10, 100)
		known, err := w.Arrived(final)
		if err != nil {
			return asked, stored, w.Stopped()
		}
		if known != nil {
			continue
		}
		stored = append(stored, w.Got(Document{URL: final, Prev: prev}))
	}
	t.Fatal("an endless walk")
	return nil, nil, nil
}

// chain returns n archives; 1 is the first.
func chain(n int) site {
	s := site{}
	for i := 1; i <= n; i++ {
		s[u(i)] = u(i - 1)
	}
	s[u(1)] = ""
	return s
}

func TestWalk(t *testing.T) {
	sub := u("feed")
	record := func(prevs site, of ...int) *Record {
		r := &Record{}
		for _, n := range of {
			r.Add(Stored{URL: u(n), Final: u(n), Prev: prevs[u(n)]})
		}
		return r
	}
	for _, c := range []struct {
		name     string
		first    string
		site     site
		record   *Record
		baseline string
		gap      string
		limits   Limits
		redirect map[string]string
		asked    string
		stop     string // "" for the end of the archives
	}{
		{name: "all", first: u(3), site: chain(3), record: &Record{}, asked: "3 2 1"},
		{name: "nothing to do", first: "", site: chain(3), record: &Record{}},
		{name: "all known", first: u(3), site: chain(3), record: record(chain(3), 1, 2, 3)},
		{name: "a new one", first: u(4), site: chain(4), record: record(chain(3), 1, 2, 3), asked: "4"},
		{name: "the newest stored first leaves no gap", first: u(3), site: chain(3), record: record(chain(3), 3), asked: "2 1"},
		{name: "a gap in the middle", first: u(5), site: chain(5), record: record(chain(5), 5, 4, 1), asked: "3 2"},
		{name: "the baseline", first: u(5), site: chain(5), record: &Record{}, baseline: u(3), asked: "5 4"},
		{name: "nothing but the baseline", first: u(3), site: chain(5), record: &Record{}, baseline: u(3)},
		{name: "a recorded archive before the baseline ends the walk", first: u(5), site: chain(5), record: record(chain(5), 3), baseline: u(1), asked: "5 4"},
		{name: "redirected to a recorded archive before the baseline", first: u(5), site: site{u(5): u("3b"), u(3): u(2)}, redirect: map[string]string{u("3b"): u(3)}, record: record(chain(5), 3), baseline: u(1), asked: "5 3b"},
		{name: "a gap before the baseline", first: u(6), site: chain(6), record: record(chain(6), 5, 4, 2), baseline: u(0), gap: u(3), asked: "6 3 1"},
		{name: "a redirect to an archive with a place of its own", first: u(7), site: site{u(7): u(6), u(2): u(1)}, redirect: map[string]string{u(6): u(2)}, record: record(chain(4), 4, 3, 2, 1), asked: "7 6", stop: u(6) + ": it redirects to " + u(2) + ", which is the archive before " + u(3)},
		{name: "a redirect to an archive that moved", first: u(7), site: site{u(7): u(6), u("six"): u(1)}, redirect: map[string]string{u(6): u("six")}, record: record(chain(4), 4, 3, 2, 1), asked: "7 6"},
		{name: "a missing archive", first: u(3), site: site{u(3): u(2)}, record: &Record{}, asked: "3 2", stop: u(2) + ": 404"},
		{name: "itself", first: u(1), site: site{u(1): u(1)}, record: &Record{}, asked: "1", stop: u(1) + ": the archives form a loop"},
		{name: "two", first: u(2), site: site{u(2): u(1), u(1): u(2)}, record: &Record{}, asked: "2 1", stop: u(2) + ": the archives form a loop"},
		{name: "the subscription document", first: u(1), site: site{u(1): sub}, record: &Record{}, asked: "1", stop: sub + ": the archives form a loop"},
		{name: "by redirect", first: u(2), site: site{u(2): u(1)}, redirect: map[string]string{u(1): u(2)}, record: &Record{}, asked: "2 1", stop: u(1) + ": the archives form a loop"},
		{name: "in the record", first: u(3), site: chain(3), record: record(site{u(3): u(2), u(2): u(3)}, 3, 2), stop: u(3) + ": the archives form a loop"},
		{name: "redirected to a recorded archive", first: u("new"), site: chain(3), redirect: map[string]string{u("new"): u(2)}, record: record(chain(3), 2), asked: "new 1"},
		{name: "documents", first: u(500), site: chain(500), record: &Record{}, limits: Limits{Documents: 2}, asked: "500 499", stop: u(498) + ": the walk ended here after 2 documents"},
		{name: "no limit", first: u(3), site: chain(3), record: &Record{}, limits: Limits{Documents: 3}, asked: "3 2 1"},
		{name: "entries", first: u(500), site: chain(500), record: &Record{}, limits: Limits{Entries: 11}, asked: "500 499", stop: u(498) + ": the walk ended here after 20 entries"},
		{name: "bytes", first: u(500), site: chain(500), record: &Record{}, limits: Limits{Bytes: 1}, asked: "500", stop: u(499) + ": the walk ended here after 100 bytes"},
		{name: "continues after a limit", first: u(5), site: chain(5), record: record(chain(5), 5, 4), limits: Limits{Documents: 2}, asked: "3 2", stop: u(1) + ": the walk ended"},
		{name: "no link for a stranger", first: "file:///etc/passwd", site: chain(1), record: &Record{}, stop: "file:///etc/passwd: the link to it is not followed"},
	} {
		w := NewWalk(c.record, c.first, sub)
		w.Limits, w.Gap = c.limits, c.gap
		if c.baseline != "" {
			w.Baseline = Baseline{c.baseline, time.Unix(1000, 0)}
		}
		asked, _, stop := walk(t, c.site, w, c.redirect)
		got := ""
		if stop != nil {
			got = stop.Error()
		}
		if strings.Join(asked, " ") != c.asked || (got == "") != (c.stop == "") || !strings.HasPrefix(got, c.stop) {
			t.Errorf("%s: %q and %q, want %q and %q", c.name, asked, got, c.asked, c.stop)
		}
	}
}

// TestForget checks that only a forgotten archive is requested again.
func TestForget(t *testing.T) {
	for _, name := range []any{2, "two", "self"} {
		r := &Record{}
		for n := 1; n <= 3; n++ {
			r.Add(Stored{URL: u(n), Final: u(n), Prev: chain(3)[u(n)]})
		}
		r.Add(Stored{URL: u("two"), Final: u(2), Self: u("self"), Prev: u("bad")})
		w := NewWalk(r, u(3), u("feed"))
		if asked, _, stop := walk(t, chain(3), w, nil); stop == nil || len(asked) != 1 || len(w.Broken()) != 1 {
			t.Fatal(asked, stop, w.Broken())
		}
		r.Forget(w.Broken()[0])
		r.Forget(u(name))
		asked, _, stop := walk(t, chain(3), NewWalk(r, u(3), u("feed")), nil)
		if fmt.Sprint(asked) != "[2]" || stop != nil || r.Len() != 2 {
			t.Errorf("%v: got %q, %v, %d; want fmt.Sprint(asked) == \"[2]\" and stop == nil and r.Len() == 2", name, asked, stop, r.Len())
		}
	}
}

// TestBrokenLoop checks Broken after a loop: it returns the last archive if that is recorded,
// otherwise all recorded archives of the loop.
func TestBrokenLoop(t *testing.T) {
	site := map[string]string{u(5): u(4), u(4): u(3), u(3): u(2), u(2): u(4)}
	r := &Record{}
	for n := 3; n <= 5; n++ {
		r.Add(Stored{URL: u(n), Final: u(n), Prev: site[u(n)]})
	}
	w := NewWalk(r, u(5), u("feed"))
	if _, _, stop := walk(t, site, w, nil); stop == nil || fmt.Sprint(w.Broken()) != fmt.Sprint([]string{u(4), u(3)}) {
		t.Errorf("got %v, %q; want stop != nil and fmt.Sprint(w.Broken()) == fmt.Sprint([]string{u(4), u(3)})", stop, w.Broken())
	}
	r.Add(Stored{URL: u(2), Final: u(2), Prev: u(4)})
	w = NewWalk(r, u(5), u("feed"))
	if _, _, stop := walk(t, site, w, nil); stop == nil || fmt.Sprint(w.Broken()) != fmt.Sprint([]string{u(2)}) {
		t.Errorf("got %v, %q; want stop != nil and fmt.Sprint(w.Broken()) == fmt.Sprint([]string{u(2)})", stop, w.Broken())
	}
}

// TestBaseline checks that a walk ends at a document whose entries are all older, by their dates
// or else delivery times, and that an unknown entry is delivered unless it is more than a day older.
func TestBaseline(t *testing.T) {
	at := func(hours int) time.Time { return time.Unix(1e9, 0).Add(time.Duration(hours) * time.Hour) }
	b := Baseline{Since: at(0)}
	for _, c := range []struct {
		name      string
		versions  map[string]time.Time
		delivered map[string]time.Time
		behind    bool
	}{
		{"nothing", nil, nil, false},
		{"all older", map[string]time.Time{"a": at(-1), "b": at(-1000)}, nil, true},
		{"of the moment", map[string]time.Time{"a": at(0), "b": at(-1000)}, nil, false},
		{"newer, and known", map[string]time.Time{"a": at(1)}, map[string]time.Time{"a": at(-5)}, false},
		{"older, and delivered later", map[string]time.Time{"a": at(-1)}, map[string]time.Time{"a": at(5)}, true},
		{"no date, and not known", map[string]time.Time{"a": {}}, nil, false},
		{"no date, and delivered before", map[string]time.Time{"a": {}}, map[string]time.Time{"a": at(-1)}, true},
		{"no date, and delivered after", map[string]time.Time{"a": {}}, map[string]time.Time{"a": at(1)}, false},
	} {
		if got := b.Behind(c.versions, c.delivered); got != c.behind {
			t.Errorf("%s: got %t, want %t", c.name, got, c.behind)
		}
		if (Baseline{}).Behind(c.versions, c.delivered) {
			t.Errorf("%s: Behind reports true without a baseline", c.name)
		}
	}
	for hours, news := range map[int]bool{-25: false, -24: true, 0: true, 1: true} {
		if got := b.News(at(hours)); got != news {
			t.Errorf("%d hours after: %t", hours, got)
		}
	}
	if !b.News(time.Time{}) {
		t.Error("News reports false for an entry without a date")
	}
}

// TestWalkDowngrade checks that a redirect from https to http ends the walk.
func TestWalkDowngrade(t *testing.T) {
	w := NewWalk(&Record{}, "https://x.example/1", "https://x.example/")
	if _, _, ok := w.Next(); !ok {
		t.Fatal(w.Stopped())
	}
	if _, err := w.Arrived("http://x.example/1"); err == nil || !strings.Contains(err.Error(), "https to http") {
		t.Error(err)
	}
}

// TestRecord checks that an archive is found under all of its URLs and counted once, and that a
// self link does not hide another archive with that URL.
func TestRecord(t *testing.T) {
	var r Record
	r.Add(Stored{URL: u(1), Final: u("one"), Self: u("uno"), Prev: u(0)})
	r.Add(Stored{URL: u("other"), Final: u("one"), Self: u("uno"), Prev: u(0)})
	r.Add(Stored{URL: u(2), Final: u(2), Self: u(1), Prev: u(1)})
	for _, url := range []string{u(1), u("one"), u("uno"), u("other")} {
		if s, ok := r.Find(url); !ok || s.Prev != u(0) {
			t.Errorf("%s: got %+v; want ok and s.Prev == u(0)", url, s)
		}
	}
	if _, ok := r.Find(u(0)); ok || r.Len() != 2 {
		t.Error(r.Len())
	}
}

// TestInterrupted checks that a walk requests exactly the missing archives, whichever are stored.
func TestInterrupted(t *testing.T) {
	const n = 10
	s := chain(n)
	for set := range 1 << n {
		r := &Record{}
		var missing []string
		for i := n; i > 0; i-- {
			if set>>(i-1)&1 == 1 {
				r.Add(Stored{URL: u(i), Final: u(i), Prev: s[u(i)]})
			} else {
				missing = append(missing, fmt.Sprint(i))
			}
		}
		asked, _, stop := walk(t, s, NewWalk(r, u(n), u("feed")), nil)
		if stop != nil || !slices.Equal(asked, missing) {
			t.Fatalf("%b: %q, not %q; %v", set, asked, missing, stop)
		}
	}
}

// TestChoice checks RFC 5005, section 4.2: "clients SHOULD consider only the most recently updated
// entry", and if entries are equal, the one of "the most recently updated feed document".
func TestChoice(t *testing.T) {
	at := func(n int) time.Time {
		if n == 0 {
			return time.Time{}
		}
		return time.Unix(int64(n), 0)
	}
	ordered := []Version{
		{at(0), at(0), 1}, {at(0), at(0), 2}, {at(0), at(5), 0}, {at(0), at(6), 0},
		{at(1), at(0), 0}, {at(1), at(0), 9}, {at(1), at(3), 2}, {at(1), at(4), 1}, {at(2), at(0), 0},
	}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.After(b) != (i > j) {
				t.Errorf("%+v after %+v: %t", a, b, a.After(b))
			}
		}
	}
	var c Choice
	for _, v := range []Version{{at(1), at(1), 1}, {at(3), at(1), 0}, {at(2), at(9), 2}} {
		c.Add("e", v)
	}
	if c.From("e", 1) || !c.From("e", 0) || c.From("e", 2) || !c.From("other", 7) || c.Has("other") {
		t.Error("From or Has reports a wrong version")
	}
}
