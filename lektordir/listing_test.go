package lektordir

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// skipping renames entries while their directory is read, and makes the reading skip them, as
// readdir(3) may.
type skipping struct {
	t *testing.T
	d *Dir
	// renames are the renames during each reading of cur/$feed, in order; paths are
	// relative to the lektor-dir.
	renames [][2]string
	stealth bool // the renames do not change the directory's mtime
	read    int  // readings of cur/$feed
}

func (s *skipping) readDir(f *os.File) ([]os.DirEntry, error) {
	ents, err := f.ReadDir(-1)
	if err != nil || !strings.Contains(f.Name(), "/cur/") {
		return ents, err
	}
	s.read++
	if s.read > len(s.renames) || s.renames[s.read-1][0] == "" {
		return ents, nil
	}
	fi, err := f.Stat()
	if err != nil {
		s.t.Error(err)
	}
	from, to := s.renames[s.read-1][0], s.renames[s.read-1][1]
	if err := os.Rename(s.d.Join(from), s.d.Join(to)); err != nil {
		s.t.Error(err)
	}
	s.d.fs.Stamps.Step = time.Hour // so that even slow readings do not regard the change as old
	if s.stealth {
		if err := os.Chtimes(f.Name(), time.Time{}, fi.ModTime()); err != nil {
			s.t.Error(err)
		}
	}
	return slices.DeleteFunc(ents, func(e os.DirEntry) bool { return strings.HasSuffix(from, "/"+e.Name()) }), nil
}

// List returns entries that are renamed while it reads their directory, with their last names.
func TestListBesideRenames(t *testing.T) {
	const x, y, z = "1700000001.x.h", "1700000002.y.h", "1700000003.z.h"
	in := func(place, name string) string { return place + "/" + feedHash + "/" + name }
	setF := [2]string{in("cur", x+";2,S"), in("cur", x+";2,FS")}
	clearF := [2]string{setF[1], setF[0]}
	setG := [2]string{in("cur", y+";2,S"), in("cur", y+";2,FS")}
	for name, test := range map[string]struct {
		renames        [][2]string
		stealth, fresh bool // fresh: the directory has just changed
		want           string
		read           int // readings; 0 for any number
		strictRead     int
	}{
		"still":               {want: x + ";2,S", read: 1, strictRead: 2},
		"just changed":        {fresh: true, want: x + ";2,S", read: 2, strictRead: 2},
		"renamed":             {renames: [][2]string{setF}, want: x + ";2,FS", read: 3, strictRead: 3},
		"within a tick":       {renames: [][2]string{setF}, stealth: true, fresh: true, want: x + ";2,FS", read: 3, strictRead: 3},
		"renamed twice":       {renames: [][2]string{setF, clearF}, want: x + ";2,S", read: 3, strictRead: 4},
		"one after the other": {renames: [][2]string{setF, setG}, want: x + ";2,FS", read: 3, strictRead: 4},
		"back to new":         {renames: [][2]string{{setF[0], in("new", x)}}, want: x, read: 3, strictRead: 3},
	} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, strict=%v", name, strict), func(t *testing.T) {
				d, _ := newDir(t)
				for _, p := range []string{setF[0], setG[0], in("cur", z+";2,"), in("new", "1700000004.n.h")} {
					if err := os.MkdirAll(d.Join(p), 0o777); err != nil {
						t.Fatal(err)
					}
				}
				d.fs.Stamps.Step = -time.Hour
				if test.fresh {
					d.fs.Stamps.Step = time.Hour // longer than the test takes
				}
				s := &skipping{t: t, d: d, renames: test.renames, stealth: test.stealth}
				d.fs.ReadDir = s.readDir
				refs, err := d.List(t.Context(), ListOptions{Strict: strict})
				if err != nil || len(refs) != 4 {
					t.Fatalf("%q, %v", paths(refs), err)
				}
				if got := refs[0].Name(); got != test.want {
					t.Errorf("%s, want %s", got, test.want)
				}
				want := test.read
				if strict {
					want = test.strictRead
				}
				if want > 0 && s.read != want {
					t.Errorf("cur/ was read %d times, want %d", s.read, want)
				}
			})
		}
	}
}

// A strict List whose readings never agree returns an error and every entry that was seen.
func TestListNeverSettles(t *testing.T) {
	d, c := newDir(t)
	x := func(flags string) string { return "cur/" + feedHash + "/1700000001.x.h;2," + flags }
	if err := os.MkdirAll(d.Join(x("")), 0o777); err != nil {
		t.Fatal(err)
	}
	s := &skipping{t: t, d: d}
	for range 100 / 4 {
		s.renames = append(s.renames, [2]string{}, [2]string{x(""), x("S")}, [2]string{}, [2]string{x("S"), x("")})
	}
	d.fs.ReadDir = s.readDir
	refs, err := d.List(t.Context(), ListOptions{Strict: true})
	if err == nil || len(refs) != 1 || !strings.Contains(err.Error(), "new/"+feedHash+" and cur/"+feedHash+" cannot be listed reliably") {
		t.Errorf("%q, %v", paths(refs), err)
	}
	var slept time.Duration
	for _, d := range c.slept {
		slept += d
	}
	if s.read != 100 || slept < 5*time.Second || slept > 15*time.Second {
		t.Errorf("%d readings in %s", s.read, slept)
	}
}

// While a viewer sets flags of thousands of entries, every List returns all of them.
func TestListBesideMassRenames(t *testing.T) {
	const entries, passes = 3000, 12
	d, err := Create(t.TempDir()+"/d", nil)
	if err != nil {
		t.Fatal(err)
	}
	refs := make([]Ref, entries)
	for i := range refs {
		refs[i] = Ref{Feed: feedHash, Unique: fmt.Sprintf("17%08d.x.h", i), Place: Cur, Info: "2,S"}
		if err := os.MkdirAll(d.abs(refs[i]), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for pass := range passes {
		var marking sync.WaitGroup
		done := make(chan struct{})
		marking.Go(func() {
			defer close(done)
			set, unset := "F", ""
			if pass%2 == 1 {
				set, unset = unset, set
			}
			for i, r := range refs {
				to, err := d.SetFlags(r, set, unset)
				if err != nil {
					t.Error(err)
					return
				}
				refs[i] = to
			}
		})
		strict := ListOptions{Strict: pass%4 > 1}
		for more := true; more; {
			select {
			case <-done:
				more = false
			default:
			}
			got, err := d.List(t.Context(), strict)
			if err != nil || len(got) != entries {
				t.Errorf("pass %d, %+v: %d entries of %d, %v", pass, strict, len(got), entries, err)
				more = false
			}
		}
		marking.Wait()
	}
}
