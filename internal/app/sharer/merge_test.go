package sharer

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/lektordir"
)

// value is a machine without a disk: its lektor-dir, baseline and set as values.
type value struct {
	t     *testing.T
	local *local
	base  *baseline
	set   *itemSet
}

func newValue(t *testing.T, name string, feeds, entries int) *value {
	v := &value{t: t, base: &baseline{feeds: map[string]*baseFeed{}}, set: newSet(name, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	v.local = &local{subs: map[string]*subscriptions.Subscription{}, withheld: map[string]string{}, unread: map[string]bool{},
		entries: map[string]map[string]lektordir.Ref{}, unknown: map[entryID]bool{}}
	for f := range feeds {
		hash := testdir.Hash(feedURL(f))
		v.local.subs[hash] = &subscriptions.Subscription{Hash: hash, ID: feedURL(f), URL: feedURL(f), Name: fmt.Sprint("Feed ", f)}
		v.local.entries[hash] = map[string]lektordir.Ref{}
		for n := range entries {
			identity := fmt.Sprintf("%08x%08x", f, n)
			v.local.entries[hash][identity] = lektordir.Ref{Feed: hash, Unique: "1503674300.M1P1Q1I" + identity + "." + name}
		}
	}
	return v
}

// documents returns the documents that the machine publishes.
func (v *value) documents() []*feedsync.Document {
	v.t.Helper()
	shows := view{itemSet: v.set, related: func(string) []feedsync.Related { return nil }}
	var marks bytes.Buffer
	if err := shows.writeMarks(&marks, false); err != nil {
		v.t.Fatal(err)
	}
	var out []*feedsync.Document
	for _, data := range [][]byte{shows.subscriptions().Bytes(), marks.Bytes()} {
		doc, err := feedsync.Parse(data)
		if err != nil {
			v.t.Fatal(err)
		}
		out = append(out, doc)
	}
	return out
}

// sync is a run without a disk: diff, merge, plan, and the actions on values.
func (v *value) sync(random io.Reader, now time.Time, peers ...*value) {
	v.t.Helper()
	v.set.now = now
	edits := diff(v.base, v.local)
	v.base.follow(v.local)
	if warned, err := v.set.note(edits, v.base, random); err != nil || len(warned) > 0 {
		v.t.Fatal(warned, err)
	}
	for _, p := range peers {
		for _, doc := range p.documents() {
			if doc.Kind == feedsync.OPML {
				v.set.mergeSubs(doc)
				continue
			}
			for _, it := range doc.Items() {
				v.set.mergeMark(it)
			}
		}
	}
	p := &planner{base: v.base, local: v.local}
	for _, a := range p.plan(v.set) {
		if a.kind == setFlags {
			to, err := v.local.entries[a.feed][a.identity].WithFlags(a.set, a.clear)
			if err != nil {
				v.t.Fatal(err)
			}
			v.local.entries[a.feed][a.identity] = to
			e := v.base.entries(a.feed)[a.identity]
			v.base.setEntry(a.feed, a.identity, e.at(to))
			continue
		}
		sub := a.sub
		if a.kind == setAlias || a.kind == setCategories {
			c := *v.local.subs[a.feed]
			if sub = &c; a.kind == setAlias {
				sub.Alias = a.alias
			} else {
				sub.Categories = a.categories
			}
		}
		if v.local.subs[a.feed] = sub; sub == nil {
			delete(v.local.subs, a.feed)
			v.base.setSub(a.feed, baseSub{})
			continue
		}
		v.base.setSub(a.feed, baseSub{subscribed: true, alias: sub.Alias, categories: sub.Categories})
	}
	if again := p.plan(v.set); len(again) > 0 || len(p.refused) > 0 || len(diff(v.base, v.local)) > 0 {
		v.t.Fatalf("%s: after the plan, actions %v and edits %v are left; refused: %v", v.set.me, again, diff(v.base, v.local), p.refused)
	}
}

// state is what a user sees.
func (v *value) state() string {
	var lines []string
	for hash, sub := range v.local.subs {
		lines = append(lines, fmt.Sprintf("%s %q %q", hash, sub.Alias, sub.Categories))
	}
	for feed, here := range v.local.entries {
		for identity, ref := range here {
			lines = append(lines, feed+" "+identity+" "+shared(ref))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// After random edits of values all machines agree, and no edit is lost: in a round at most
// one user edits a thing. The baseline that is read from the lines of all changes equals the
// one in memory.
func TestMergeOfValues(t *testing.T) {
	const feeds, entries = 4, 5
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		random := rand.NewChaCha8([32]byte{byte(seed)})
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var all []*value
		for n := range 2 + r.IntN(3) {
			all = append(all, newValue(t, string(rune('a'+n)), feeds, entries))
		}
		round := func() {
			for range 2 {
				for _, i := range r.Perm(len(all)) {
					now = now.Add(time.Minute)
					all[i].sync(random, now, slices.DeleteFunc(slices.Clone(all), func(o *value) bool { return o == all[i] })...)
				}
			}
			for _, v := range all[1:] {
				if a, b := all[0].state(), v.state(); a != b {
					t.Fatalf("seed %d: a has\n%s\n%s has\n%s", seed, a, v.set.me, b)
				}
			}
		}
		round()
		for range 6 {
			want := map[string]string{}
			for f := range feeds {
				v, hash := all[r.IntN(len(all))], testdir.Hash(feedURL(f))
				if sub := v.local.subs[hash]; sub != nil {
					c := *sub
					c.Alias, c.Categories = []string{"", "One", "Two"}[r.IntN(3)], [][]string{nil, {"X"}, {"X/Y", "Z"}}[r.IntN(3)]
					v.local.subs[hash] = &c
					want[hash] = fmt.Sprintf("%s %q %q", hash, c.Alias, c.Categories)
				}
				for n := range entries {
					v, identity := all[r.IntN(len(all))], fmt.Sprintf("%08x%08x", f, n)
					ref := v.local.entries[hash][identity]
					set, unset := "S", "F"
					if ref.HasFlag('S') {
						set, unset = "Fa", "S"
					}
					to, err := ref.WithFlags(set, unset)
					if err != nil {
						t.Fatal(err)
					}
					v.local.entries[hash][identity] = to
					want[identity] = hash + " " + identity + " " + shared(to)
				}
			}
			round()
			lines := strings.Split(all[0].state(), "\n")
			for _, line := range slices.Sorted(maps.Values(want)) {
				if !slices.Contains(lines, line) {
					t.Fatalf("seed %d: %s is lost:\n%s", seed, line, strings.Join(lines, "\n"))
				}
			}
		}
		for _, v := range all {
			read := &baseline{feeds: map[string]*baseFeed{}}
			for line := range strings.Lines(string(v.base.changes)) {
				word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
				if !read.parseLine([]byte(line), []byte(word), []byte(rest)) {
					t.Fatalf("%q is not a line of a baseline", line)
				}
			}
			if a, b := string(read.appendAll(nil)), string(v.base.appendAll(nil)); a != b {
				t.Fatalf("seed %d: the baseline read from the lines is\n%s\nand in memory\n%s", seed, a, b)
			}
		}
	}
}
