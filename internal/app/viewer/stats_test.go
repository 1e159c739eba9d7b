package viewer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/schema"
)

func TestBar(t *testing.T) {
	for want, weeks := range map[string][]int{
		"   ": {0, 0, 0}, "█ █": {1, 0, 1}, "▁█ ": {1, 1000, 0}, "▁▂▃▄▅▆▇█": {1, 2, 3, 4, 5, 6, 7, 8},
	} {
		most := 0
		for _, n := range weeks {
			most = max(most, n)
		}
		if got := bar(weeks, most); got != want {
			t.Errorf("%v: %q, not %q", weeks, got, want)
		}
	}
}

// TestStats: in the time zone of the test, now is 16 March, the last day of a week.
func TestStats(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1773000000.1.h", "pubdate=2026-03-15T22:30:00Z") // the 16th
	f.Add("new", "1773000001.1.h", "pubdate=2026-03-10T12:00:00Z")
	f.Add("cur", "1773000002.1.h;2,FS", "pubdate=2026-03-09T21:30:00Z") // the 9th
	f.Add("cur", "1773000003.1.h;2,T", "pubdate=2026-03-15T12:00:00Z")
	f.Add("cur", "1400000004.1.h;2,S", "pubdate=2030-01-01T00:00:00Z") // delivered in 2014
	if _, err := f.Feed("http://b.example/", "broken\x1b[2J one", "etc/fetch/error=410 Gone\x07"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Feed("http://c.example/", "Quiet"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Entry("http://c.example/", "cur", "1700000000.1.h;2,S", "pubdate=2024-01-01T00:00:00Z"); err != nil {
		t.Fatal(err)
	}
	o := StatsOptions{Common: f.Common(), Weeks: 3}
	o.Print.Format = "feed,unread,all,flagged,weeks,newest,silent,error"
	err := Stats(t.Context(), o, f.Streams(""))
	f.Want(err, "Alpha\t2\t4\t1\t0, 1, 2\t2026-03-15T22:30:00Z\tfalse\t\n"+
		"broken[2J one\t0\t0\t0\t0, 0, 0\t\ttrue\t410 Gone\n"+
		"Quiet\t0\t1\t0\t0, 0, 0\t2024-01-01T00:00:00Z\ttrue\t\n")
	o.Print = cmdline.PrinterOptions{}
	if err := Stats(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(f.Out.String(), "\n")
	for i, want := range []string{"unread  entries  weeks", "2        4   ▄█       2", "Gone", "silent since 2024-01-01", "2        5  3 feeds in all, "} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Errorf("line %d lacks %q:\n%s", i, want, &f.Out)
		}
	}
	if !strings.HasSuffix(f.Out.String(), "; 1 broken, 1 silent\n") || strings.ContainsAny(f.Out.String(), "\x1b\x07") {
		t.Errorf("%q", f.Out.String())
	}
	// The schema in docs/ has exactly the fields that -o json prints.
	o.Print.Format = "json"
	if err := Stats(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	sch := schema.Open(t, "lektor-stats.schema.json")
	var names []string
	for _, c := range statColumns {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	if got := sch.Properties(); !slices.Equal(got, names) {
		t.Errorf("the schema has %q, and -o json %q", got, names)
	}
	if !strings.Contains(f.Out.String(), `"weeks":[0,1,2]`) {
		t.Errorf("no numbers in %s", &f.Out)
	}
	for line := range strings.Lines(f.Out.String()) {
		if err := sch.Check([]byte(line)); err != nil {
			t.Errorf("%s%v", line, err)
		}
		for _, name := range append(sch.Required(), "more") {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			if _, there := record[name]; there {
				delete(record, name)
			} else {
				record[name] = 1
			}
			if wrong, err := json.Marshal(record); err != nil || sch.Check(wrong) == nil {
				t.Errorf("%s: the schema accepts a wrong %s, %v", line, name, err)
			}
		}
		if sch.Check([]byte(strings.Replace(line, `"weeks":[0`, `"weeks":["0"`, 1))) == nil {
			t.Errorf("%s: the schema accepts a week that is not a number", line)
		}
	}
	// -o bytes prints the size on the disk.
	o.Query = []string{"feed:quiet"}
	o.Print.Format = "bytes"
	if err := Stats(t.Context(), o, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	if got := f.Out.String(); got == "0\n" || strings.Count(got, "\n") != 1 {
		t.Errorf("%q", got)
	}
}
