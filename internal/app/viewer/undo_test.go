package viewer

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/testkit/dir"
	"github.com/lektordir/lektor/lektordir"
)

// places gives, by unique name, where entries are: "new", or what follows the ';'.
func (f *fixture) places() map[string]string {
	f.t.Helper()
	found := map[string]string{}
	for _, where := range []string{"new", "cur"} {
		paths, err := filepath.Glob(filepath.Join(f.Path, where, "*", "*"))
		if err != nil {
			f.t.Fatal(err)
		}
		for _, path := range paths {
			unique, info, _ := strings.Cut(filepath.Base(path), ";")
			if where == "new" {
				info = where
			}
			if found[unique] != "" {
				f.t.Errorf("%s is in two places", unique)
			}
			found[unique] = info
		}
	}
	return found
}

// flags are those of a place.
func flags(place string) string { return strings.TrimPrefix(strings.TrimPrefix(place, "new"), "2,") }

func (f *fixture) undo(o UndoOptions) error {
	o.Common = f.common()
	o.Print.Format = "name"
	return Undo(context.Background(), o, f.streams(""))
}

// step is what a command did, by unique name: where entries were, and where they are.
type step map[string][2]string

// Whatever commands were run, and whatever others moved meanwhile: undo takes the
// last that is not taken back, and of it just what is where the command left it.
func TestUndoModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	rounds := 8
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		f := newFixture(t)
		var names []string
		for n := range 8 {
			name := fmt.Sprintf("17000000%02d.1.h", n)
			if n == 7 {
				name = fmt.Sprintf("1700000099.M1P1Q1I%016x.h", 7)
			}
			names = append(names, name)
			f.entry([]string{"new", "cur"}[n%2], name+[]string{"", ";2,S", "", ";2,F", "", "", "", ";2,"}[n])
		}
		some := func() Names {
			return Names{Args: slices.Clone(names[rnd.IntN(3) : 3+rnd.IntN(len(names)-2)])}
		}
		letters := func() string { return []string{"S", "F", "T", "a", "Sb", ""}[rnd.IntN(6)] }
		var steps []step
		for range 60 {
			before := f.places()
			s := f.streams("")
			s.Out = io.Discard
			c := f.common()
			what := rnd.IntN(9)
			switch what {
			case 0, 1:
				_ = Mark(t.Context(), MarkOptions{Common: c, Names: some(), Set: letters(), Clear: letters()}, s)
			case 2:
				_ = Remove(t.Context(), RemoveOptions{Common: c, Names: some()}, s)
			case 3:
				_ = Next(t.Context(), ShowOptions{Common: c, Mark: true}, s)
			case 4:
				_ = Digest(t.Context(), DigestOptions{Common: c, Query: []string{"is:unread"}}, s)
			case 5:
				_ = Show(t.Context(), ShowOptions{Common: c, Names: some(), Mark: true}, s)
			case 6: // somebody else
				unique := names[rnd.IntN(len(names))]
				from := filepath.Join(f.Path, "new", dir.Hash(feedID), unique)
				if before[unique] != "new" {
					from = filepath.Join(f.Path, "cur", dir.Hash(feedID), unique)
					if info := before[unique]; info != "" {
						from += ";" + info
					}
				}
				to := filepath.Join(f.Path, "cur", dir.Hash(feedID), unique+";2,"+[]string{"", "S", "FS", "T"}[rnd.IntN(4)])
				if to == from {
					continue
				}
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
				continue
			default:
				err := f.undo(UndoOptions{})
				now := f.places()
				want := maps.Clone(before)
				if len(steps) > 0 {
					for unique, m := range steps[len(steps)-1] {
						if before[unique] == m[1] {
							if want[unique] = "2," + flags(m[0]); m[0] == "" {
								want[unique] = "2,S" // a bare name says so
							}
						}
					}
					steps = steps[:len(steps)-1]
				} else if err == nil {
					t.Errorf("nothing was there to take back, but: %s", &f.out)
				}
				if !maps.Equal(now, want) {
					t.Fatalf("undo: from %v to %v, want %v\n%s", before, now, want, &f.err)
				}
				continue
			}
			did := step{}
			for unique, place := range f.places() {
				if before[unique] != place {
					did[unique] = [2]string{before[unique], place}
				}
			}
			if len(did) > 0 {
				steps = append(steps, did)
				steps = steps[max(0, len(steps)-maxCommands):]
			}
		}
	}
}

// What stands in the journal is not believed.
func TestUndoForeign(t *testing.T) {
	f := newFixture(t)
	f.entry("new", "1700000001.1.h")
	f.entry("cur", "1700000002.1.h;2,S")
	f.entry("cur", "1700000003.1.h;2,S")
	h := dir.Hash(feedID)
	one, two := "new/"+h+"/1700000001.1.h", "cur/"+h+"/1700000002.1.h;2,S"
	for _, line := range []string{
		"", "\t", "x", one, two, two + "\t", one + "\t" + two, // another entry
		"cur/" + h + "/1700000001.1.h;2,\t" + one,                                  // into new/
		two + "\t" + "tmp/" + h + "/1700000002.1.h",                                // out of the places of entries
		"cur/" + h + "/../../../x;2,\t" + two,                                      // and of the directory
		"/etc/" + h + "/1700000002.1.h\t" + two, "../cur/a/1700000002.1.h\t" + two, //
		"src/" + h + "/1700000002.1.h\t" + two, "cur/../1700000002.1.h;2,\t" + two, //
		"cur/other/1700000002.1.h;2,\t" + two, two + "\t../" + two, two + "\t/" + two, //
		two + "\t" + two + "/..", two + "\t" + two + "\t" + two, "new//1700000002.1.h\t" + two,
	} {
		before := f.places()
		write := func(number int, text string) string {
			path := filepath.Join(f.Path, undoDir, fmt.Sprint(os.Getuid(), ".", number))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			return path
		}
		write(7, "mark\t2026-03-15T00:00:00Z\n"+line+"\n")
		if err := f.undo(UndoOptions{}); err == nil {
			t.Errorf("%q was taken back: %s%s", line, &f.out, &f.err)
		}
		if now := f.places(); !maps.Equal(now, before) {
			t.Errorf("%q: from %v to %v", line, before, now)
		}
		// One such line does not keep the others from being taken back, and what a
		// kill cut off was not done.
		write(1, "mark\t2026-03-15T00:00:00Z\ncur/"+h+"/1700000003.1.h;2,\tcur/"+h+"/1700000003.1.h;2,S\n"+line+"\ncur/"+h+"/1700000002.1.h;2,F\t"+two)
		if err := f.undo(UndoOptions{}); err != nil || f.out.String() != "1700000003.1.h\n" {
			t.Errorf("with %q: %v, %q, %s", line, err, &f.out, &f.err)
		}
		if err := os.Rename(f.Path+"/cur/"+h+"/1700000003.1.h;2,", f.Path+"/cur/"+h+"/1700000003.1.h;2,S"); err != nil {
			t.Fatal(err)
		}
	}
}

// What has the name of a command's file and is none waits for nothing, leads
// nowhere, and does not hide the commands before.
func TestUndoOddFiles(t *testing.T) {
	f := newFixture(t)
	f.entry("new", "1700000001.1.h")
	outside := t.TempDir()
	mark := func() {
		t.Helper()
		if err := Mark(t.Context(), MarkOptions{Common: f.common(), Names: Names{Args: []string{"1700000001.1.h"}}, Set: "S"}, f.streams("")); err != nil {
			t.Fatal(err)
		}
	}
	mark()
	path := func(number int) string { return filepath.Join(f.Path, undoDir, fmt.Sprint(os.Getuid(), ".", number)) }
	text := "mark\t2026-03-15T00:00:00Z\n"
	for number, err := range map[int]error{
		2: unix.Mkfifo(path(2), 0o666), 3: os.MkdirAll(path(3)+"/x", 0o777),
		4: os.Symlink(outside+"/journal", path(4)), 5: os.WriteFile(path(5), []byte("\x00\x00\x00"), 0o666),
		6: os.WriteFile(path(6), nil, 0o666), 7: os.WriteFile(path(7), []byte(text+strings.Repeat("x", 100)), 0o666),
		8: os.WriteFile(filepath.Join(f.Path, undoDir, "note"), []byte(text), 0o666),
		9: os.WriteFile(path(99999999)+"99999999999999", []byte(text), 0o666),
	} {
		if err != nil {
			t.Fatal(number, err)
		}
	}
	if err := os.WriteFile(outside+"/journal", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := f.undo(UndoOptions{}); err != nil || f.out.String() != "1700000001.1.h\n" {
		t.Errorf("%v, %q, %s", err, &f.out, &f.err)
	}
	if places := f.places(); places["1700000001.1.h"] != "2," {
		t.Error(places)
	}
	// Nor is a link in the place of the directory followed.
	if err := os.RemoveAll(filepath.Join(f.Path, undoDir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(f.Path, undoDir)); err != nil {
		t.Fatal(err)
	}
	mark()
	if warned := f.err.String(); !strings.Contains(warned, "undo will not take this back") || f.places()["1700000001.1.h"] != "2,S" {
		t.Errorf("%q, %v", warned, f.places())
	}
	if err := f.undo(UndoOptions{}); err == nil {
		t.Error("it took back what stands elsewhere")
	}
	if left, err := os.ReadDir(outside); len(left) != 1 || err != nil {
		t.Error(left, err)
	}
}

// Where nothing can be written down, or no more, what was asked for is done, and one
// warning tells.
func TestJournalFails(t *testing.T) {
	for _, limit := range []int64{0, 300} {
		f := newFixture(t)
		var refs []lektordir.Ref
		for n := range 5 {
			f.entry("new", fmt.Sprintf("170000000%d.1.h", n))
			refs = append(refs, lektordir.Ref{Feed: dir.Hash(feedID), Unique: fmt.Sprintf("170000000%d.1.h", n)})
		}
		s := f.streams("")
		v, err := f.common().open(nil, command.PrinterOptions{}, s)
		if err != nil {
			t.Fatal(err)
		}
		j := v.moves("mark")
		j.max = limit
		for _, ref := range refs {
			if _, err := v.setFlags(ref, "S", ""); err != nil {
				t.Error(err)
			}
		}
		j.close()
		want := "undo will not take this back"
		if limit > 0 {
			want = "undo will take back only the first 2 of these"
		}
		if s.Report.Warnings() != 1 || !strings.Contains(f.err.String(), want) {
			t.Errorf("limit %d: %s", limit, &f.err)
		}
		err = f.undo(UndoOptions{})
		if (err == nil) != (limit > 0) || strings.Count(f.out.String(), "\n") != min(int(limit), 2) {
			t.Errorf("limit %d: %v, %s", limit, err, &f.out)
		}
	}
}

// Where the rename itself is refused, that is the one message.
func TestJournalOfNothing(t *testing.T) {
	f := newFixture(t)
	f.entry("new", "1700000001.1.h")
	for _, name := range []string{"etc", "cur"} { // neither a journal nor a place to move to
		if err := os.RemoveAll(filepath.Join(f.Path, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.Path, "etc"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(f.Path, "cur"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(f.Path, "cur", dir.Hash(feedID)), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s := f.streams("")
	if err := Mark(t.Context(), MarkOptions{Common: f.common(), Names: Names{Args: []string{f.Path + "/new/" + dir.Hash(feedID) + "/1700000001.1.h"}}, Set: "S"}, s); err != nil {
		t.Error(err)
	}
	if s.Report.Errors() != 1 || s.Report.Warnings() != 0 {
		t.Errorf("it said: %s", &f.err)
	}
}

// A rename that another viewer was faster with is not ours to take back.
func TestUndoOfOthers(t *testing.T) {
	f := newFixture(t)
	path := f.entry("new", "1700000001.1.h")
	other := f.entry("new", "1700000002.1.h")
	v, err := f.common().open(nil, command.PrinterOptions{}, f.streams(""))
	if err != nil {
		t.Fatal(err)
	}
	defer v.moves("mark").close()
	for _, p := range []string{path, other} {
		ref, err := v.Dir.Resolve(p)
		if err != nil {
			t.Fatal(err)
		}
		if p == path {
			if _, err := v.Dir.SetFlags(ref, "S", ""); err != nil {
				t.Fatal(err)
			}
		}
		if to, err := v.setFlags(ref, "S", ""); err != nil || to.Flags() != "S" {
			t.Error(to, err)
		}
	}
	v.journal.close()
	if err := f.undo(UndoOptions{}); err != nil || f.out.String() != "1700000002.1.h\n" {
		t.Errorf("%v, %q, %s", err, &f.out, &f.err)
	}
}

// Commands at once keep a journal each, and as many undos at once take back each of
// them.
func TestUndoAtOnce(t *testing.T) {
	f := newFixture(t)
	const n = 12
	for i := range n {
		f.entry("new", fmt.Sprintf("17000000%02d.1.h", i))
		f.entry("new", fmt.Sprintf("17000001%02d.1.h", i))
	}
	all := func(do func(i int, s *command.Streams) error) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				var out strings.Builder
				s := command.NewStreams("lektor-view", strings.NewReader(""), &out, &out)
				if err := do(i, s); err != nil {
					t.Error(err, out.String())
				}
			})
		}
		wg.Wait()
	}
	all(func(i int, s *command.Streams) error {
		names := Names{Args: []string{fmt.Sprintf("17000000%02d.1.h", i), fmt.Sprintf("17000001%02d.1.h", i)}}
		return Mark(t.Context(), MarkOptions{Common: f.common(), Names: names, Set: "S"}, s)
	})
	for unique, place := range f.places() {
		if place != "2,S" {
			t.Errorf("%s: %s", unique, place)
		}
	}
	all(func(i int, s *command.Streams) error {
		// Each may find all that is left in another's hands.
		for {
			err := Undo(t.Context(), UndoOptions{Common: f.common()}, s)
			if left, _ := filepath.Glob(filepath.Join(f.Path, undoDir, "*")); err == nil || len(left) == 0 {
				return nil
			}
		}
	})
	for unique, place := range f.places() {
		if place != "2," {
			t.Errorf("%s: %s", unique, place)
		}
	}
}

// Whoever marks, throws away and takes back at the same time: no entry is lost or
// twice there, and the journal stays small and comes to an end.
func TestUndoCrowd(t *testing.T) {
	f := newFixture(t)
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("17000000%02d.1.h", i))
		f.entry([]string{"new", "cur"}[i%2], names[i]+[]string{"", ";2,F"}[i%2])
	}
	var wg sync.WaitGroup
	for range 6 {
		rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
		wg.Go(func() {
			var out strings.Builder
			c := f.common()
			for range 25 {
				s := command.NewStreams("lektor-view", strings.NewReader(""), io.Discard, &out)
				from := rnd.IntN(len(names) - 3)
				some := Names{Args: slices.Clone(names[from : from+3])}
				var err error
				switch rnd.IntN(5) {
				case 0:
					err = Mark(t.Context(), MarkOptions{Common: c, Names: some, Set: "Sa", Clear: "F"}, s)
				case 1:
					err = Mark(t.Context(), MarkOptions{Common: c, Names: some, Set: "F", Clear: "Sa"}, s)
				case 2:
					err = Remove(t.Context(), RemoveOptions{Common: c, Names: some}, s)
				case 3:
					err = Digest(t.Context(), DigestOptions{Common: c, Query: []string{"is:unread"}}, s)
				default:
					if err = Undo(t.Context(), UndoOptions{Common: c}, s); err != nil && strings.Contains(err.Error(), "nothing to take back") {
						err = nil
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
			for line := range strings.Lines(out.String()) {
				if !strings.Contains(line, "left alone") && !strings.Contains(line, " taken back") && !strings.Contains(line, "left as") && !strings.Contains(line, "nothing of it is left") {
					t.Error(line)
				}
			}
		})
	}
	wg.Wait()
	if places := f.places(); len(places) != len(names) {
		t.Errorf("%d entries: %v", len(places), places)
	}
	for n := 0; f.undo(UndoOptions{}) == nil; n++ {
		if n > maxCommands {
			t.Fatal("there is no end of it")
		}
	}
	if places := f.places(); len(places) != len(names) {
		t.Errorf("%d entries: %v", len(places), places)
	}
	if left, err := os.ReadDir(filepath.Join(f.Path, undoDir)); len(left) > 0 || err != nil {
		t.Error(left, err)
	}
}

// during calls something while a command prints.
type during struct {
	io.Writer
	do func()
}

func (d *during) Write(p []byte) (int, error) {
	d.do()
	return d.Writer.Write(p)
}

// A command that still runs is left alone, and the one before it is taken back.
func TestUndoWhileItRuns(t *testing.T) {
	f := newFixture(t)
	f.entry("cur", "1700000001.1.h;2,S")
	for n := range 3 {
		f.entry("new", fmt.Sprintf("170000001%d.1.h", n))
	}
	if err := Mark(t.Context(), MarkOptions{Common: f.common(), Names: Names{Args: []string{"1700000001.1.h"}}, Set: "F"}, f.streams("")); err != nil {
		t.Fatal(err)
	}
	s := f.streams("")
	said := ""
	n := 0
	s.Out = &during{&f.out, func() {
		if n++; n == 3 {
			var out strings.Builder
			err := Undo(t.Context(), UndoOptions{Common: f.common()}, command.NewStreams("lektor-view", nil, io.Discard, &out))
			if said = out.String(); err != nil {
				t.Error(err)
			}
		}
	}}
	if err := Digest(t.Context(), DigestOptions{Common: f.common()}, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said, "digest of 2026-03-16 01:00 is still at work, and is left alone") {
		t.Error(said)
	}
	if err := f.undo(UndoOptions{}); err != nil || strings.Count(f.out.String(), "\n") != 3 {
		t.Errorf("%v %s %s", err, &f.out, &f.err)
	}
	if places := f.places(); places["1700000001.1.h"] != "2,S" || places["1700000010.1.h"] != "2," {
		t.Error(places)
	}
}

// FuzzUndo: whatever stands in a journal, a move is one of an entry that stays that
// entry, to cur/.
func FuzzUndo(f *testing.F) {
	f.Add("mark\t2026-03-15T00:00:00Z\nnew/a/1.a.h\tcur/a/1.a.h;2,S\ncur/a/1.a.h\ttmp/a/1.a.h;gone\n")
	f.Add("rm\t2026-03-15T00:00:00Z\ncur/a/1.a.h;2,S\tcur/a/1.b.h;2,ST\n\n\t\nx")
	f.Add("x\t\n")
	f.Fuzz(func(t *testing.T, text string) {
		d := parseDone(text)
		if d == nil {
			return
		}
		if len(d.moves)+d.odd > strings.Count(text, "\n") {
			t.Errorf("%d moves and %d odd lines", len(d.moves), d.odd)
		}
		for _, m := range d.moves {
			if !filepath.IsLocal(m.from.Path()) || strings.Count(m.from.Path(), "/") != 2 {
				t.Errorf("from %s", m.from.Path())
			}
			if m.to != (lektordir.Ref{}) && (m.to.Feed != m.from.Feed || m.to.Unique != m.from.Unique || !strings.HasPrefix(m.to.Path(), "cur/") || strings.Count(m.to.Path(), "/") != 2) {
				t.Errorf("from %s to %s", m.from.Path(), m.to.Path())
			}
		}
	})
}
