package lektordir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/lektordir/lektor/internal/dir/commit"
	"github.com/lektordir/lektor/internal/dir/journal"
)

// Fetchers that are killed and recover, and viewers that mark and delete, work on one feed at
// the same time. Afterwards every entry exists once and whole, unless it was deleted, and tmp/ is
// empty.
func TestInterleaved(t *testing.T) {
	for seed := range uint64(4) {
		interleave(t, seed)
	}
}

func interleave(t *testing.T, seed uint64) {
	const entries, fetchers, viewers, rounds = 12, 4, 4, 25
	d, _ := newDir(t)
	deliver(t, d) // src/ and the journal's directory
	var mu sync.Mutex
	removed := map[string]int{}
	// early holds the versions that viewers took during the replacement. The version that each
	// replaces may exist as well then, or have been deleted; see lektor-dir(5).
	early := map[string]bool{}
	var wg sync.WaitGroup
	// fetch delivers entries, and is sometimes killed on the way.
	fetch := func(d *Dir, w *fetcher, rnd *rand.Rand) error {
		if err := w.Recover(ctx); err != nil {
			return fmt.Errorf("recovery: %w", err)
		}
		tx, err := w.Begin(feedHash)
		var busy *commit.BusyError
		if errors.As(err, &busy) {
			return nil
		}
		if err != nil {
			return err
		}
		j, err := tx.Journal()
		if err != nil {
			return err
		}
		for i := range entries {
			v := sample(fmt.Sprint(i), fmt.Sprint("text ", rnd.IntN(3)))
			recs := j.Versions(v.Identity)
			if n := len(recs); n > 0 {
				last := recs[n-1]
				if _, err := os.Lstat(d.Join("new", feedHash, last.Unique)); err != nil || last.Content == v.Content {
					continue
				}
				v.Replaces, v.Lineage = last.Unique, last.Lineage()
			}
			if rnd.IntN(3) > 0 {
				continue
			}
			if _, err := tx.add(ctx, v); err != nil {
				return err
			}
		}
		switch rnd.IntN(4) {
		case 0: // killed while it staged
			die(tx)
		case 1: // killed after some renames
			if len(tx.staged) > 0 {
				if err := tx.Wait(); err != nil {
					return err
				}
				if err := journal.Append(d.journalPath(feedHash), j, tx.staged); err != nil {
					return err
				}
				for _, r := range tx.staged[:rnd.IntN(len(tx.staged)+1)] {
					if _, err := commit.MoveToNew(d.fs, feedHash, tx.place(), r); err != nil {
						return err
					}
				}
			}
			die(tx)
		default:
			return end(tx)
		}
		return nil
	}
	for i := range fetchers {
		own, err := Open(d.Path(), &Options{Host: "host", PID: i})
		if err != nil {
			t.Fatal(err)
		}
		w := writer(t, own)
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			for range rounds {
				if err := fetch(own, w, rnd); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range viewers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for range rounds {
				refs, err := d.List(ctx, ListOptions{AllVersions: true})
				if err != nil {
					t.Error(err)
				}
				for _, r := range refs {
					_, nerr := os.Lstat(d.Join("tmp", feedHash, r.Unique+commit.Replacing))
					took := nerr == nil && r.Place == New
					switch rnd.IntN(8) {
					case 0:
						_, err = d.SetFlags(r, "S", "F")
					case 1:
						_, err = d.SetFlags(r, "F", "S")
					case 2:
						if err = d.Remove(r); err == nil {
							mu.Lock()
							removed[r.Identity()]++
							mu.Unlock()
						}
					case 3: // a simple viewer, which adds no flags
						if err = os.Mkdir(d.Join("cur", r.Feed), 0o777); errors.Is(err, os.ErrExist) {
							err = nil
						}
						if err == nil && r.Place == New {
							err = os.Rename(d.abs(r), d.Join("cur", r.Feed, r.Unique))
						}
					default:
						took = false
					}
					if took && err == nil {
						mu.Lock()
						early[r.Unique] = true
						mu.Unlock()
					}
					if err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	last, _ := Open(d.Path(), &Options{Host: "host", PID: 99})
	w := writer(t, last)
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if got := tree(t, d, "tmp/"+feedHash); len(got) != 0 {
		t.Errorf("left in tmp: %v", got)
	}
	j, err := journal.Read(d.journalPath(feedHash))
	if err != nil || j.Bad() != 0 {
		t.Fatalf("%d bad lines, %v", j.Bad(), err)
	}
	there := map[string]int{}
	for _, r := range list(t, d, ListOptions{AllVersions: true}) {
		there[r.Identity()]++
		if _, err := d.ReadEntry(r, AllFields); err != nil {
			t.Error(err)
		}
	}
	for i := range entries {
		id := sample(fmt.Sprint(i), "").Identity
		if len(j.Versions(id)) == 0 {
			continue
		}
		both := 0
		for unique := range early {
			if (Ref{Unique: unique}).Identity() == id.String() {
				both++
			}
		}
		if n := there[id.String()] + removed[id.String()]; n < 1 || n > 1+both {
			t.Errorf("seed %d, entry %d: exists %d times, removed %d times, %d versions taken while they replaced others",
				seed, i, there[id.String()], removed[id.String()], both)
		}
	}
}
