package undo_test

import (
	"context"
	"errors"
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

	"github.com/lektordir/lektor/internal/app/viewer"
	"github.com/lektordir/lektor/internal/app/viewer/session"
	command "github.com/lektordir/lektor/internal/app/viewer/undo"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/read/undo"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
	"github.com/lektordir/lektor/lektordir"
)

// places returns the places of entries by unique name: "new", or in cur/ the text after the ';'.
func (f *fixture) places() map[string]string {
	f.T.Helper()
	found := map[string]string{}
	for _, where := range []string{"new", "cur"} {
		paths, err := filepath.Glob(filepath.Join(f.Path, where, "*", "*"))
		if err != nil {
			f.T.Fatal(err)
		}
		for _, path := range paths {
			unique, info, _ := strings.Cut(filepath.Base(path), ";")
			if where == "new" {
				info = where
			}
			if found[unique] != "" {
				f.T.Errorf("%s is in two places", unique)
			}
			found[unique] = info
		}
	}
	return found
}

// flags returns the flags of a place.
func flags(place string) string { return strings.TrimPrefix(strings.TrimPrefix(place, "new"), "2,") }

func (f *fixture) undo(o command.Options) error {
	o.Common = f.Common()
	o.Print.Format = "name"
	return command.Undo(context.Background(), o, f.Streams(""))
}

// step is the effect of a command: the old and the new place of each entry by unique name.
type step map[string][2]string

// TestUndoModel: after random commands and moves by others, undo takes back the last command that
// is not taken back yet, and of its entries only those that nobody has moved since.
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
			f.Add([]string{"new", "cur"}[n%2], name+[]string{"", ";2,S", "", ";2,F", "", "", "", ";2,"}[n])
		}
		some := func() session.Names {
			return session.Names{Args: slices.Clone(names[rnd.IntN(3) : 3+rnd.IntN(len(names)-2)])}
		}
		letters := func() string { return []string{"S", "F", "T", "a", "Sb", ""}[rnd.IntN(6)] }
		var steps []step
		for range 60 {
			before := f.places()
			s := f.Streams("")
			s.Out = io.Discard
			c := f.Common()
			what := rnd.IntN(9)
			switch what {
			case 0, 1:
				_ = viewer.Mark(t.Context(), viewer.MarkOptions{Common: c, Names: some(), Set: letters(), Clear: letters()}, s)
			case 2:
				_ = viewer.Remove(t.Context(), viewer.RemoveOptions{Common: c, Names: some()}, s)
			case 3:
				_ = viewer.Next(t.Context(), viewer.ShowOptions{Common: c, Mark: true}, s)
			case 4:
				_ = viewer.Digest(t.Context(), viewer.DigestOptions{Common: c, Query: []string{"is:unread"}}, s)
			case 5:
				_ = viewer.Show(t.Context(), viewer.ShowOptions{Common: c, Names: some(), Mark: true}, s)
			case 6: // another viewer moves an entry
				unique := names[rnd.IntN(len(names))]
				from := filepath.Join(f.Path, "new", testdir.Hash(viewdir.FeedID), unique)
				if before[unique] != "new" {
					from = filepath.Join(f.Path, "cur", testdir.Hash(viewdir.FeedID), unique)
					if info := before[unique]; info != "" {
						from += ";" + info
					}
				}
				to := filepath.Join(f.Path, "cur", testdir.Hash(viewdir.FeedID), unique+";2,"+[]string{"", "S", "FS", "T"}[rnd.IntN(4)])
				if to == from {
					continue
				}
				if err := os.Rename(from, to); err != nil {
					t.Fatal(err)
				}
				continue
			default:
				err := f.undo(command.Options{})
				now := f.places()
				want := maps.Clone(before)
				if len(steps) > 0 {
					for unique, m := range steps[len(steps)-1] {
						if before[unique] == m[1] {
							if want[unique] = "2," + flags(m[0]); m[0] == "" {
								want[unique] = "2,S" // a name without information means read
							}
						}
					}
					steps = steps[:len(steps)-1]
				} else if err == nil {
					t.Errorf("nothing was there to take back, but: %s", &f.Out)
				}
				if !maps.Equal(now, want) {
					t.Fatalf("undo: from %v to %v, want %v\n%s", before, now, want, &f.Err)
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
				steps = steps[max(0, len(steps)-undo.MaxCommands):]
			}
		}
	}
}

// TestUndoForeign: invalid lines of the journal move nothing.
func TestUndoForeign(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1700000001.1.h")
	f.Add("cur", "1700000002.1.h;2,S")
	f.Add("cur", "1700000003.1.h;2,S")
	h := testdir.Hash(viewdir.FeedID)
	one, two := "new/"+h+"/1700000001.1.h", "cur/"+h+"/1700000002.1.h;2,S"
	for _, line := range []string{
		"", "\t", "x", one, two, two + "\t", one + "\t" + two, // another entry
		"cur/" + h + "/1700000001.1.h;2,\t" + one,                                  // into new/
		two + "\t" + "tmp/" + h + "/1700000002.1.h",                                // outside of new/ and cur/
		"cur/" + h + "/../../../x;2,\t" + two,                                      // outside of the lektor-dir
		"/etc/" + h + "/1700000002.1.h\t" + two, "../cur/a/1700000002.1.h\t" + two, //
		"src/" + h + "/1700000002.1.h\t" + two, "cur/../1700000002.1.h;2,\t" + two, //
		"cur/other/1700000002.1.h;2,\t" + two, two + "\t../" + two, two + "\t/" + two, //
		two + "\t" + two + "/..", two + "\t" + two + "\t" + two, "new//1700000002.1.h\t" + two,
	} {
		before := f.places()
		write := func(number int, text string) string {
			path := filepath.Join(f.Path, undo.Dir, fmt.Sprint(os.Getuid(), ".", number))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			return path
		}
		write(7, "mark\t2026-03-15T00:00:00Z\n"+line+"\n")
		if err := f.undo(command.Options{}); err == nil {
			t.Errorf("%q was taken back: %s%s", line, &f.Out, &f.Err)
		}
		if now := f.places(); !maps.Equal(now, before) {
			t.Errorf("%q: from %v to %v", line, before, now)
		}
		// An invalid line does not prevent the others from being taken back, and a line that
		// a kill cut off is ignored.
		write(1, "mark\t2026-03-15T00:00:00Z\ncur/"+h+"/1700000003.1.h;2,\tcur/"+h+"/1700000003.1.h;2,S\n"+line+"\ncur/"+h+"/1700000002.1.h;2,F\t"+two)
		if err := f.undo(command.Options{}); err != nil || f.Out.String() != "1700000003.1.h\n" {
			t.Errorf("with %q: %v, %q, %s", line, err, &f.Out, &f.Err)
		}
		if err := os.Rename(f.Path+"/cur/"+h+"/1700000003.1.h;2,", f.Path+"/cur/"+h+"/1700000003.1.h;2,S"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUndoOddFiles: a pipe, directory, link or odd file with the name of a journal does not block
// undo, is not followed, and does not hide earlier commands.
func TestUndoOddFiles(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1700000001.1.h")
	outside := t.TempDir()
	mark := func() {
		t.Helper()
		if err := viewer.Mark(t.Context(), viewer.MarkOptions{Common: f.Common(), Names: session.Names{Args: []string{"1700000001.1.h"}}, Set: "S"}, f.Streams("")); err != nil {
			t.Fatal(err)
		}
	}
	mark()
	path := func(number int) string { return filepath.Join(f.Path, undo.Dir, fmt.Sprint(os.Getuid(), ".", number)) }
	text := "mark\t2026-03-15T00:00:00Z\n"
	for number, err := range map[int]error{
		2: unix.Mkfifo(path(2), 0o666), 3: os.MkdirAll(path(3)+"/x", 0o777),
		4: os.Symlink(outside+"/journal", path(4)), 5: os.WriteFile(path(5), []byte("\x00\x00\x00"), 0o666),
		6: os.WriteFile(path(6), nil, 0o666), 7: os.WriteFile(path(7), []byte(text+strings.Repeat("x", 100)), 0o666),
		8: os.WriteFile(filepath.Join(f.Path, undo.Dir, "note"), []byte(text), 0o666),
		9: os.WriteFile(path(99999999)+"99999999999999", []byte(text), 0o666),
	} {
		if err != nil {
			t.Fatal(number, err)
		}
	}
	if err := os.WriteFile(outside+"/journal", []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := f.undo(command.Options{}); err != nil || f.Out.String() != "1700000001.1.h\n" {
		t.Errorf("%v, %q, %s", err, &f.Out, &f.Err)
	}
	if places := f.places(); places["1700000001.1.h"] != "2," {
		t.Error(places)
	}
	// A link in the place of the directory is not followed either.
	if err := os.RemoveAll(filepath.Join(f.Path, undo.Dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(f.Path, undo.Dir)); err != nil {
		t.Fatal(err)
	}
	mark()
	if warned := f.Err.String(); !strings.Contains(warned, "undo cannot take this back") || f.places()["1700000001.1.h"] != "2,S" {
		t.Errorf("%q, %v", warned, f.places())
	}
	if err := f.undo(command.Options{}); err == nil {
		t.Error("undo used a journal behind a link")
	}
	if left, err := os.ReadDir(outside); len(left) != 1 || err != nil {
		t.Error(left, err)
	}
}

// TestJournalOfNothing: if the rename itself fails, the only message is its error.
func TestJournalOfNothing(t *testing.T) {
	f := newFixture(t)
	f.Add("new", "1700000001.1.h")
	for _, name := range []string{"etc", "cur"} { // so that neither a journal nor cur/ can be created
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
	if err := os.WriteFile(filepath.Join(f.Path, "cur", testdir.Hash(viewdir.FeedID)), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	s := f.Streams("")
	if err := viewer.Mark(t.Context(), viewer.MarkOptions{Common: f.Common(), Names: session.Names{Args: []string{f.Path + "/new/" + testdir.Hash(viewdir.FeedID) + "/1700000001.1.h"}}, Set: "S"}, s); err != nil {
		t.Error(err)
	}
	if s.Report.Errors() != 1 || s.Report.Warnings() != 0 {
		t.Errorf("messages: %s", &f.Err)
	}
}

// TestUndoOfOthers: if another viewer has set the flags first, undo does not clear them.
func TestUndoOfOthers(t *testing.T) {
	f := newFixture(t)
	path := f.Add("new", "1700000001.1.h")
	other := f.Add("new", "1700000002.1.h")
	v, err := f.Common().Open(nil, cmdline.PrinterOptions{}, f.Streams(""))
	if err != nil {
		t.Fatal(err)
	}
	m := undo.Moving(v.Store, "mark")
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
		if to, err := m.SetFlags(ref, "S", ""); err != nil || to.Flags() != "S" {
			t.Error(to, err)
		}
	}
	m.Close()
	if err := f.undo(command.Options{}); err != nil || f.Out.String() != "1700000002.1.h\n" {
		t.Errorf("%v, %q, %s", err, &f.Out, &f.Err)
	}
}

// TestUndoAtOnce: concurrent commands write a journal each, and as many concurrent undos take
// back all of them.
func TestUndoAtOnce(t *testing.T) {
	f := newFixture(t)
	const n = 12
	for i := range n {
		f.Add("new", fmt.Sprintf("17000000%02d.1.h", i))
		f.Add("new", fmt.Sprintf("17000001%02d.1.h", i))
	}
	all := func(do func(i int, s *cmdline.Streams) error) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				var out strings.Builder
				s := cmdline.NewStreams("lektor-view", strings.NewReader(""), &out, &out)
				if err := do(i, s); err != nil {
					t.Error(err, out.String())
				}
			})
		}
		wg.Wait()
	}
	all(func(i int, s *cmdline.Streams) error {
		names := session.Names{Args: []string{fmt.Sprintf("17000000%02d.1.h", i), fmt.Sprintf("17000001%02d.1.h", i)}}
		return viewer.Mark(t.Context(), viewer.MarkOptions{Common: f.Common(), Names: names, Set: "S"}, s)
	})
	for unique, place := range f.places() {
		if place != "2,S" {
			t.Errorf("%s: %s", unique, place)
		}
	}
	all(func(i int, s *cmdline.Streams) error {
		// All remaining journals may be locked by other undos: try again.
		for {
			err := command.Undo(t.Context(), command.Options{Common: f.Common()}, s)
			if left, _ := filepath.Glob(filepath.Join(f.Path, undo.Dir, "*")); err == nil || len(left) == 0 {
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

// TestUndoCrowd: processes that mark, trash and undo at the same time lose and duplicate no
// entry, and the journals stay few and can all be taken back.
func TestUndoCrowd(t *testing.T) {
	f := newFixture(t)
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("17000000%02d.1.h", i))
		f.Add([]string{"new", "cur"}[i%2], names[i]+[]string{"", ";2,F"}[i%2])
	}
	var wg sync.WaitGroup
	for range 6 {
		rnd := rand.New(rand.NewPCG(rand.Uint64(), 0))
		wg.Go(func() {
			var out strings.Builder
			c := f.Common()
			for range 25 {
				s := cmdline.NewStreams("lektor-view", strings.NewReader(""), io.Discard, &out)
				from := rnd.IntN(len(names) - 3)
				some := session.Names{Args: slices.Clone(names[from : from+3])}
				var err error
				switch rnd.IntN(5) {
				case 0:
					err = viewer.Mark(t.Context(), viewer.MarkOptions{Common: c, Names: some, Set: "Sa", Clear: "F"}, s)
				case 1:
					err = viewer.Mark(t.Context(), viewer.MarkOptions{Common: c, Names: some, Set: "F", Clear: "Sa"}, s)
				case 2:
					err = viewer.Remove(t.Context(), viewer.RemoveOptions{Common: c, Names: some}, s)
				case 3:
					err = viewer.Digest(t.Context(), viewer.DigestOptions{Common: c, Query: []string{"is:unread"}}, s)
				default:
					if err = command.Undo(t.Context(), command.Options{Common: c}, s); err != nil && strings.Contains(err.Error(), "nothing to take back") {
						err = nil
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
			for line := range strings.Lines(out.String()) {
				if !strings.Contains(line, "is not changed") && !strings.Contains(line, " taken back") && !strings.Contains(line, "left as") && !strings.Contains(line, "nothing is left") {
					t.Error(line)
				}
			}
		})
	}
	wg.Wait()
	if places := f.places(); len(places) != len(names) {
		t.Errorf("%d entries: %v", len(places), places)
	}
	for n := 0; f.undo(command.Options{}) == nil; n++ {
		if n > undo.MaxCommands {
			t.Fatal("undo finds more and more journals")
		}
	}
	if places := f.places(); len(places) != len(names) {
		t.Errorf("%d entries: %v", len(places), places)
	}
	if left, err := os.ReadDir(filepath.Join(f.Path, undo.Dir)); len(left) > 0 || err != nil {
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

// TestUndoWhileItRuns: a command that still runs is skipped, and the command before it is taken
// back.
func TestUndoWhileItRuns(t *testing.T) {
	f := newFixture(t)
	f.Add("cur", "1700000001.1.h;2,S")
	for n := range 3 {
		f.Add("new", fmt.Sprintf("170000001%d.1.h", n))
	}
	if err := viewer.Mark(t.Context(), viewer.MarkOptions{Common: f.Common(), Names: session.Names{Args: []string{"1700000001.1.h"}}, Set: "F"}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	s := f.Streams("")
	messages := ""
	n := 0
	s.Out = &during{&f.Out, func() {
		if n++; n == 3 {
			var out strings.Builder
			err := command.Undo(t.Context(), command.Options{Common: f.Common()}, cmdline.NewStreams("lektor-view", nil, io.Discard, &out))
			if messages = out.String(); err != nil {
				t.Error(err)
			}
		}
	}}
	if err := viewer.Digest(t.Context(), viewer.DigestOptions{Common: f.Common()}, s); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(messages, "digest of 2026-03-16 01:00 is still running; it is not taken back") {
		t.Error(messages)
	}
	if err := f.undo(command.Options{}); err != nil || strings.Count(f.Out.String(), "\n") != 3 {
		t.Errorf("%v %s %s", err, &f.Out, &f.Err)
	}
	if places := f.places(); places["1700000001.1.h"] != "2,S" || places["1700000010.1.h"] != "2," {
		t.Error(places)
	}
}

// TestJournalAhead: lines of many entries are written before their renames, a chunk at a time. After a
// kill, undo takes back the entries that were moved, and the others are as they were. The lines of an
// entry that could not be moved, and of entries that were not moved at the end, are removed.
func TestJournalAhead(t *testing.T) {
	const total, moved, gone = 400, 300, 290
	f := newFixture(t)
	var refs []lektordir.Ref
	for n := range total {
		name := fmt.Sprintf("1700000%03d.1.h", n)
		f.Add("new", name)
		refs = append(refs, lektordir.Ref{Feed: testdir.Hash(viewdir.FeedID), Unique: name})
	}
	v, err := f.Common().Open(nil, cmdline.PrinterOptions{}, f.Streams(""))
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Dir.Remove(refs[gone]); err != nil {
		t.Fatal(err)
	}
	m := undo.Moving(v.Store, "mark")
	for i, ref := range refs[:moved] {
		m.Announce(refs[i:], "S", "")
		if _, err := m.SetFlags(ref, "S", ""); (err != nil) != (i == gone) {
			t.Error(i, err)
		}
	}
	records, err := undo.Records(v.Dir)
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	killed, err := os.ReadFile(records[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	ended, err := records[0].Read()
	if err != nil || len(ended.Moves) != moved-1 || strings.Count(string(killed), "\n") <= moved {
		t.Fatalf("%d lines at the end, %d before; %v", len(ended.Moves), strings.Count(string(killed), "\n"), err)
	}
	if err := os.WriteFile(records[0].Path, killed, 0o666); err != nil {
		t.Fatal(err)
	}
	f.Out.Reset()
	f.Err.Reset()
	if err := f.undo(command.Options{}); err != nil || strings.Count(f.Out.String(), "\n") != moved-1 || !strings.Contains(f.Err.String(), ": 299 entries taken back\n") {
		t.Errorf("%v, %d entries, %s", err, strings.Count(f.Out.String(), "\n"), &f.Err)
	}
	left, err := os.ReadDir(v.Dir.Join("new", refs[0].Feed))
	if err != nil || len(left) != total-moved {
		t.Errorf("%d in new/, %v", len(left), err)
	}
}

// A journal of another user changes no setting, whoever's number it has.
func TestJournalOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root gives files away")
	}
	f := newFixture(t)
	path := filepath.Join(f.Path, undo.Dir, "0.1")
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	text := "set\t2026-03-15T00:00:00Z\n" + testdir.Hash("http://a.example/") + "\talias\tFoe\t\n"
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	err := command.Undo(t.Context(), command.Options{Common: f.Common()}, f.Streams(""))
	const want = "belongs to another user; its changes of settings are not taken back"
	if err != nil || !strings.Contains(f.Err.String(), want) {
		t.Errorf("%v\n%s", err, &f.Err)
	}
}
