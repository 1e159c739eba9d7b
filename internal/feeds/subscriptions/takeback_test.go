package subscriptions

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/lektordir"
)

// shown returns the settings of a feed that are set.
func shown(t *testing.T, d *lektordir.Dir, hash string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range settings.Names {
		v, err := settings.Get(d, hash, key)
		if err != nil {
			t.Fatal(err)
		}
		if v != "" {
			all[key] = v
		}
	}
	return all
}

// Whatever was changed, and in whichever order, taking the changes back restores the settings of before. If the
// program was killed after any of the changes, as long as it was recorded, the same holds.
func TestTakeBackAll(t *testing.T) {
	values := map[string][]string{
		"url": {"http://a.example/2", "exec:date", "http://kim:word@a.example/"}, "alias": {" Mine ", "Other"},
		"interval": {"2h", "30m"}, "categories": {"a\n\nb/c", "x"}, "headers": {"A: 1\nB: 2", "C: 3"},
		"filter": {"sed s/a/b/", "cat"}, "origin": {"http://page.example/"}, "private": {"yes", "no"}, "history": {"off"},
		"keep": {"30d"}, "fulltext": {"on"}, "paused": {"on"}, "on-update": {"ignore"},
	}
	keys := slices.Sorted(maps.Keys(values))
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		d, w := writerFor(t)
		s := &Subscription{ID: "http://a.example/"}
		if _, err := Add(w, d, s, AddOptions{}); err != nil {
			t.Fatal(err)
		}
		var changes []Change
		change := func(record Recorder) {
			key := keys[rnd.IntN(len(keys))]
			var err error
			switch n := rnd.IntN(10); {
			case n == 0 && feedfiles.Subscribed(d, s.Hash):
				err = Remove(w, d, s.Hash, record)
			case n == 1:
				err = Purge(context.Background(), w, d, s.Hash, record)
			case !feedfiles.Subscribed(d, s.Hash):
				_, err = Add(w, d, &Subscription{ID: s.ID, Alias: s.Alias}, AddOptions{Record: record})
			case n < 4 && key != "url":
				err = Unset(w, d, s.Hash, key, record)
			default:
				err = Restore(w, d, s.Hash, key, values[key][rnd.IntN(len(values[key]))], record)
			}
			if err != nil {
				t.Fatal(seed, err)
			}
		}
		for range rnd.IntN(6) {
			change(nil)
		}
		before := shown(t, d, s.Hash)
		for range rnd.IntN(6) + 1 {
			change(func(more ...Change) { changes = append(changes, more...) })
		}
		for range 2 { // the second time, all is done
			if _, err := TakeBack(w, d, s.Hash, changes, false); err != nil {
				t.Fatal(seed, err)
			}
			if got := shown(t, d, s.Hash); !maps.Equal(got, before) {
				t.Fatalf("seed %d: got %q, want %q, after\n%q", seed, got, before, changes)
			}
		}
	}
}

// writerFor returns a lektor-dir that the user alone may write to, and a writer.
func writerFor(t *testing.T) (*lektordir.Dir, *commit.Writer) {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := lektordir.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := feedfiles.NewWriter(d, commit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return d, w
}
