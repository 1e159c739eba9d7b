//go:build linux && (amd64 || arm64)

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/gluster"
	"github.com/lektordir/lektor/internal/testkit/must"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// opened returns a crowd that has not started.
func opened(t *testing.T) *crowd {
	t.Helper()
	e := testEnv(t)
	if gluster.Inside() {
		t.Cleanup(e.onVolume(t.Context()))
	}
	var c *crowd
	if err := must.Run(func() { c = newCrowd(t.Context(), e) }); err != nil {
		t.Fatal("a crowd: ", err)
	}
	t.Cleanup(c.feeds.server.Close)
	return c
}

// TestCrowd runs for three seconds what make faults runs for a minute.
func TestCrowd(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes five seconds")
	}
	c := opened(t)
	if c.isolationErr != nil {
		t.Log("not on other hosts: ", c.isolationErr)
	}
	c.wanted = []string{"update -a", "deliver", "put", "lektor-clock", "mark", "rm"}
	if err := c.rush(t.Context(), uint64(time.Now().UnixNano()), 3*time.Second, 20*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for text, n := range c.account.findings {
		t.Errorf("%d times: %s", n, text)
	}
	for _, kind := range []string{"update -a", "watch", "deliver", "put", "lektor-clock", "mark", "rm"} {
		if s := c.account.stats[kind]; s == nil || s.runs == 0 {
			t.Errorf("%s did not run", kind)
		}
	}
	if len(c.account.ev.printed) == 0 {
		t.Error("nothing was delivered")
	}
}

// TestOneAsks: if fetchers on two hosts begin at once, only one of them requests each feed.
func TestOneAsks(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	c := opened(t)
	dir := c.dir + "-hosts"
	if err := oneAsks(t.Context(), c.env.fetch, c.self, [2]string{dir, dir}, 30, 4); err != nil {
		t.Error(err)
	}
	// Two fetchers with separate lektor-dirs both make requests, which the check must detect.
	if err := oneAsks(t.Context(), c.env.fetch, c.self, [2]string{dir + "1", dir}, 1, 1); err == nil {
		t.Error("two requests by fetchers of separate lektor-dirs were not detected")
	}
}

// TestCrowdOnGluster runs for a short time what make faults runs on GlusterFS: two hosts with a
// mount each.
func TestCrowdOnGluster(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	if !gluster.Inside() {
		if err := gluster.Supported(); err != nil {
			t.Skip(err)
		}
		cmd, err := gluster.Again(t.Context(), "-test.run=^TestCrowdOnGluster$", "-test.v")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	c := opened(t)
	if err := oneAsks(t.Context(), c.env.fetch, c.self, [2]string{c.dir + "-hosts", c.second + "-hosts"}, 6, 3); err != nil {
		t.Error(err)
	}
	if err := c.rush(t.Context(), uint64(time.Now().UnixNano()), 2*time.Second, 100*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for text, n := range c.account.findings {
		t.Errorf("%d times: %s", n, text)
	}
	if len(c.account.ev.printed) == 0 {
		t.Error("nothing was delivered")
	}
}

// world returns the evidence of a small, correct lektor-dir: four entries of a feed with each
// policy. The first entry was changed and is unread, the second was read before it changed, the
// third was removed, the fourth is unread.
func world() *evidence {
	e := &evidence{
		journals: map[string][]line{}, removed: map[string]int{}, hidden: map[string]bool{}, printed: map[string]int{},
		denied: map[string]bool{}, broken: map[string]bool{}, clock: "clock", clockRuns: 2,
	}
	for _, policy := range []string{unread, deliver, ignore} {
		f := newFeed(policy, "urn:"+policy, policy, false)
		e.feeds = append(e.feeds, f)
		name := func(v version) string {
			id, _ := f.digests(v)
			return fmt.Sprintf("17000000%02d.M1P1Q%dI%s.host", v.number, v.entry, id[:16])
		}
		journal := func(v version, replaces string) {
			id, content := f.digests(v)
			e.journals[f.hash] = append(e.journals[f.hash], line{id, content, name(v), replaces})
		}
		place := func(place string, v version, flags string) {
			e.entries = append(e.entries, &entry{testdir.Entry{Place: place, Feed: f.hash, Unique: name(v), Name: name(v) + flags, Files: f.files(v)}})
		}
		for _, v := range []version{{1, 1}, {1, 2}, {2, 1}, {2, 2}, {3, 1}, {4, 1}} {
			f.offer(v)
			f.take(v)
		}
		one, two := version{1, 1}, version{2, 1}
		for _, v := range []version{one, two, {3, 1}, {4, 1}} {
			journal(v, "")
		}
		switch policy {
		case unread:
			journal(version{1, 2}, name(one))
			place("new", version{1, 2}, "")
			// The version was recorded, and then given up because a viewer was faster.
			journal(version{2, 2}, name(two))
		case deliver:
			journal(version{1, 2}, "")
			journal(version{2, 2}, "")
			place("new", one, "")
			place("new", version{1, 2}, "")
			place("new", version{2, 2}, "")
		case ignore:
			place("new", one, "")
		}
		place("cur", two, ";2,S")
		place("new", version{4, 1}, "")
		e.removed[f.hash+"/"+name(version{3, 1})] = 1
		e.printed[f.hash+"/"+name(version{4, 1})] = 1
	}
	e.entries = append(e.entries, &entry{testdir.Entry{Place: "new", Feed: "clock", Unique: "1700000000.P1Q1.host", Name: "1700000000.P1Q1.host", Files: map[string]string{
		"title": "Current Time\n", "content": "1700000000\n", "id": "tag:clock:1700000000.1.1\n", "pubdate": "2023-11-14T22:13:20Z\n", "feed": "../../../src/clock",
	}}})
	e.removed["clock/1700000001.P1Q1.host"] = 1
	return e
}

// at returns an entry of the feed with a policy.
func (e *evidence) at(policy string, v version) *entry {
	for _, f := range e.feeds {
		for _, x := range e.entries {
			if f.policy == policy && x.Feed == f.hash && x.Files["title"] == f.title(v)+"\n" {
				return x
			}
		}
	}
	return nil
}

func (e *evidence) drop(x *entry) {
	e.entries = slices.DeleteFunc(e.entries, func(y *entry) bool { return y == x })
}

// TestAccounting: the accounting finds each planted error, and nothing else.
func TestAccounting(t *testing.T) {
	if bad := world().check(); len(bad) > 0 {
		t.Fatal(bad)
	}
	twin := func(x *entry, unique string) *entry {
		y := *x
		y.Unique, y.Name = unique, unique
		y.Files = maps.Clone(x.Files)
		return &y
	}
	// note adds a line to the journal, like that of an entry.
	note := func(e *evidence, x *entry, unique string) {
		for _, l := range e.journals[x.Feed] {
			if l.unique == x.Unique {
				l.unique = unique
				e.journals[x.Feed] = append(e.journals[x.Feed], l)
				return
			}
		}
	}
	for name, c := range map[string]struct {
		plant func(e *evidence)
		want  string
	}{
		"lost, of a feed that replaces": {func(e *evidence) { e.drop(e.at(unread, version{1, 2})) }, "is there or removed 0 times"},
		"lost, read":                    {func(e *evidence) { e.drop(e.at(unread, version{2, 1})) }, "is there or removed 0 times"},
		"lost, old version":             {func(e *evidence) { e.drop(e.at(deliver, version{2, 1})) }, "is lost"},
		"lost, new version":             {func(e *evidence) { e.drop(e.at(deliver, version{2, 2})) }, "is lost"},
		"lost, of a feed that ignores":  {func(e *evidence) { e.drop(e.at(ignore, version{4, 1})) }, "is there or removed 0 times"},
		"lost, of the clock":            {func(e *evidence) { e.entries = e.entries[:len(e.entries)-1] }, "delivered 2 entries, and 1"},
		"removed by nobody":             {func(e *evidence) { clear(e.removed) }, "is there or removed 0 times"},
		"never delivered": {func(e *evidence) {
			x := e.at(ignore, version{4, 1})
			e.drop(x)
			e.journals[x.Feed] = slices.DeleteFunc(e.journals[x.Feed], func(l line) bool { return l.unique == x.Unique })
		}, "was never delivered"},
		"version never delivered": {func(e *evidence) {
			x := e.at(deliver, version{2, 2})
			e.drop(x)
			e.journals[x.Feed] = slices.DeleteFunc(e.journals[x.Feed], func(l line) bool { return l.unique == x.Unique })
		}, "was never delivered"},
		"in new and in cur": {func(e *evidence) {
			x := *e.at(ignore, version{4, 1})
			x.Place, x.Name = "cur", x.Name+";2,S"
			e.entries = append(e.entries, &x)
		}, "is the same entry as"},
		"twice in cur": {func(e *evidence) {
			x := *e.at(deliver, version{2, 1})
			x.Name = x.Unique
			e.entries = append(e.entries, &x)
		}, "is the same entry as"},
		"delivered twice": {func(e *evidence) {
			x := twin(e.at(deliver, version{4, 1}), "1700000009.M1P1Q1I0000000000000000.host")
			note(e, e.at(deliver, version{4, 1}), x.Unique)
			e.entries = append(e.entries, x)
		}, "was delivered twice"},
		"there twice, noted once": {func(e *evidence) {
			e.entries = append(e.entries, twin(e.at(ignore, version{4, 1}), "1700000009.M1P1Q1I0000000000000000.host"))
		}, "is in no journal"},
		"delivered again after it was removed": {func(e *evidence) {
			f := e.feeds[2]
			id, content := f.digests(version{3, 1})
			x := &entry{testdir.Entry{Place: "new", Feed: f.hash, Unique: "1700000009.M1P1Q1I" + id[:16] + ".host", Files: f.files(version{3, 1})}}
			x.Name = x.Unique
			e.entries = append(e.entries, x)
			e.journals[f.hash] = append(e.journals[f.hash], line{id, content, x.Unique, ""})
		}, "was delivered twice"},
		"back after it was removed": {func(e *evidence) {
			x := e.at(unread, version{4, 1})
			e.removed[x.ref()] = 1
		}, "came back"},
		"removed twice": {func(e *evidence) {
			for key := range e.removed {
				e.removed[key] = 2
			}
		}, "was removed 2 times"},
		"changed, for a feed that ignores": {func(e *evidence) {
			f := e.feeds[2]
			id, content := f.digests(version{1, 2})
			e.journals[f.hash] = append(e.journals[f.hash], line{id, content, "1700000002.M1P1Q1I" + id[:16] + ".host", ""})
		}, "2 versions of entry 1"},
		"two versions where one replaces": {func(e *evidence) {
			f := e.feeds[0]
			x := twin(e.at(unread, version{1, 2}), e.journals[f.hash][0].unique)
			x.Files = f.files(version{1, 1})
			e.entries = append(e.entries, x)
		}, "is there or removed 2 times"},
		"an old version is unread": {func(e *evidence) { e.feeds[0].latest[4] = 2 }, "and there is version 2"},
		"half content":             {func(e *evidence) { e.at(deliver, version{4, 1}).Files["content"] = "<p>Entry" }, "content is"},
		"no content":               {func(e *evidence) { delete(e.at(deliver, version{4, 1}).Files, "content") }, "it has no file content"},
		"no extra":                 {func(e *evidence) { delete(e.at(deliver, version{4, 1}).Files, "extras") }, "it has no file extras"},
		"another file":             {func(e *evidence) { e.at(deliver, version{4, 1}).Files["title.1"] = "" }, "title.1 is"},
		"feed leads elsewhere":     {func(e *evidence) { e.at(deliver, version{4, 1}).Files["feed"] = "../x" }, "feed is"},
		"half of the clock's":      {func(e *evidence) { delete(e.entries[len(e.entries)-1].Files, "id") }, "no whole entry of lektor-clock"},
		"never served": {func(e *evidence) {
			f := e.feeds[1]
			e.at(deliver, version{4, 1}).Files = f.files(version{7, 1})
		}, "no fetcher was given it"},
		"the journal has another version": {func(e *evidence) {
			e.at(deliver, version{1, 1}).Unique = e.at(deliver, version{1, 2}).Unique
		}, "another version under its name"},
		"a name twice in the journal": {func(e *evidence) {
			f := e.feeds[1]
			e.journals[f.hash] = append(e.journals[f.hash], e.journals[f.hash][0])
		}, "twice"},
		"replaces another":     {func(e *evidence) { f := e.feeds[0]; e.journals[f.hash][4].replaces = e.journals[f.hash][1].unique }, "which is another entry"},
		"printed twice":        {func(e *evidence) { e.printed[e.at(ignore, version{4, 1}).ref()] = 2 }, "2 times, as the fetchers say"},
		"printed and unknown":  {func(e *evidence) { e.printed[e.feeds[0].hash+"/x"] = 1 }, "is in no journal"},
		"there, though denied": {func(e *evidence) { e.denied[e.at(unread, version{4, 1}).ref()] = true }, "said that it was not"},
		"whole, though broken": {func(e *evidence) { e.broken[e.at(unread, version{4, 1}).ref()] = true }, "was not whole"},
		"its feed is unknown":  {func(e *evidence) { e.at(ignore, version{4, 1}).Feed = "other" }, "nobody fetched"},
	} {
		t.Run(name, func(t *testing.T) {
			e := world()
			c.plant(e)
			bad := e.check()
			if !slices.ContainsFunc(bad, func(err error) bool { return strings.Contains(err.Error(), c.want) }) {
				t.Errorf("found %v, not %q", bad, c.want)
			}
		})
	}
	// A version that lektor-view removed with a newer one is accounted for.
	e := world()
	old, newer := e.at(deliver, version{1, 1}), e.at(deliver, version{1, 2})
	e.drop(old)
	e.drop(newer)
	e.removed[newer.ref()], e.hidden[newer.ref()] = 1, true
	if bad := e.check(); len(bad) > 0 {
		t.Error(bad)
	}
}

// TestCrowdFinds: a complete run finds errors that are planted in the lektor-dir.
func TestCrowdFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	c := opened(t)
	for entry := range 5 {
		if !c.putOne([]string{c.env.fetch}, version{entry + 1, 1}) {
			t.Fatal(c.account.findings)
		}
	}
	cmd := exec.Command("sh", "-euc", `
entry() { dirname "$(grep -l "^Entry $1 of " new/*/*/title)"; }
rm -r "$(entry 1)"
two=$(entry 2)
mkdir -p "cur/${two#new/}"
cp -R "$two"/. "cur/${two#new/}"
: >"$(entry 3)/content"
four=$(entry 4)
cp -R "$four" "tmp/${four#new/}x"
for journal in src/*/etc/fetch/seen; do
	sed '$d' "$journal" >short
	cat short >"$journal"
done
mkdir -p etc/fetch/taken
: >etc/fetch/taken/x`)
	cmd.Dir = c.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := c.lastRound(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"entry 1, of which 1 versions were delivered, is there or removed 0 times", "is the same entry as", "content is", "left: tmp/", "is in no journal",
		"said: lektor-fetch: warning: etc/fetch/taken/x", "check: it said: lektor-fetch: 2 problems",
	} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(c.account.findings)), func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("found nothing with %q", want)
		}
	}
	if t.Failed() {
		t.Log(slices.Sorted(maps.Keys(c.account.findings)))
	}
}
