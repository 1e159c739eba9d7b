package viewer

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/testkit/testdir"
	"github.com/lektordir/lektor/internal/testkit/viewdir"
	"github.com/lektordir/lektor/lektordir"
)

// touched sets the ctime of an entry to now, and waits until this is later than after.
func touched(t *testing.T, path string, after time.Time) time.Time {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		if c := time.Unix(st.Ctim.Unix()); c.After(after) {
			return c
		}
		if time.Now().After(end) {
			t.Fatal("the clock of the file system stands still")
		}
	}
}

// remaining returns the unique names of all entries in new/ and cur/, shortened.
func (f *fixture) remaining() string {
	f.T.Helper()
	var names []string
	for _, place := range []string{"new", "cur"} {
		paths, err := filepath.Glob(filepath.Join(f.Path, place, "*", "*"))
		if err != nil {
			f.T.Fatal(err)
		}
		for _, p := range paths {
			name, _, _ := strings.Cut(filepath.Base(p), ".")
			names = append(names, strings.TrimPrefix(name, "17000000"))
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// in returns the options of a command that runs d from now. The entries of a test were moved
// when it began, whatever their names and dates are.
func (f *fixture) in(d time.Duration) session.Common {
	c, t := f.Common(), time.Now().Add(d)
	c.Now = func() time.Time { return t }
	return c
}

// opened opens the lektor-dir.
func (f *fixture) opened() *lektordir.Dir {
	f.T.Helper()
	d, err := lektordir.Open(f.Path, nil)
	if err != nil {
		f.T.Fatal(err)
	}
	return d
}

const days = 24 * time.Hour

func TestExpire(t *testing.T) {
	var order []string
	fill := func(f *fixture) {
		order = nil
		var last time.Time
		add := func(where, name string, files ...string) {
			order = append(order, f.Add(where, name, files...))
			last = touched(t, order[len(order)-1], last)
		}
		// The entries are dated and were delivered years ago. All are moved now, the latest
		// delivery first.
		old := "pubdate=2001-01-01T00:00:00Z"
		add("cur", "1700000009.1.h;2,S", old)
		add("cur", "1700000008.1.h;2,Sa", old)
		add("cur", "1700000007.1.h", old) // in cur/ without info, as a simple viewer leaves it
		add("cur", "1700000006.1.h;2,FS", old)
		add("cur", "1700000005.1.h;2,", old)
		add("new", "1700000004.1.h", old)
		add("cur", "1700000003.1.h;2,T", old)
		add("cur", "1700000002.1.h;2,FST", old)
	}
	for _, tc := range []struct {
		o    ExpireOptions
		in   time.Duration
		keep string // the feed's setting
		want string
	}{
		{o: ExpireOptions{Keep: -1}, in: 900 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Trashed: "7d"}, in: 6 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Trashed: "7d"}, in: 8 * days, want: "04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Trashed: "never"}, in: 800 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Read: "90d"}, in: 89 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Read: "90d"}, in: 91 * days, want: "02 03 04 05 06"},
		{o: ExpireOptions{Keep: -1, Read: "90d", Flagged: true}, in: 91 * days, want: "02 03 04 05"},
		{o: ExpireOptions{Keep: -1, Unread: "1y"}, in: 364 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Unread: "1y"}, in: 367 * days, want: "02 03 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Unread: "1y", Read: "1y", Trashed: "1y", Flagged: true}, in: 367 * days, want: ""},
		// The entries that were read last are 7, 8 and 9, the latest first.
		{o: ExpireOptions{Keep: 1}, want: "02 03 04 05 06 07"},
		{o: ExpireOptions{Keep: 0}, want: "02 03 04 05 06"},
		{o: ExpireOptions{Keep: 9}, in: 900 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: 2, Read: "1w"}, in: 8 * days, want: "02 03 04 05 06 07 08"},
		{o: ExpireOptions{Keep: 2, Read: "1w"}, in: 6 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: 0, Read: "never"}, in: 900 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: 1, Flagged: true}, want: "02 03 04 05 06"},
		// A feed has a setting.
		{o: ExpireOptions{Keep: 0, Read: "1w", Trashed: "7d"}, keep: "all", in: 900 * days, want: "04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1}, keep: "1", want: "02 03 04 05 06 07"},
		{o: ExpireOptions{Keep: 9}, keep: "1", want: "02 03 04 05 06 07"},
		{o: ExpireOptions{Keep: -1, Read: "2d"}, keep: "4w", in: 27 * days, want: "02 03 04 05 06 07 08 09"},
		{o: ExpireOptions{Keep: -1, Read: "9y"}, keep: "2, 4w", in: 29 * days, want: "02 03 04 05 06 07 08"},
		// Only entries that match the query may expire.
		{o: ExpireOptions{Keep: 0, Query: []string{"not:flag:a"}}, want: "02 03 04 05 06 08"},
		{o: ExpireOptions{Keep: 0, Trashed: "1h", Query: []string{"feed:beta"}}, in: 2 * time.Hour, want: "02 03 04 05 06 07 08 09"},
	} {
		f := newFixture(t)
		fill(f)
		if tc.keep != "" {
			if _, err := f.Feed(viewdir.FeedID, "Alpha", "etc/view/keep="+tc.keep); err != nil {
				t.Fatal(err)
			}
		}
		tc.o.Common = f.in(tc.in)
		dry := tc.o
		dry.DryRun = true
		if err := Expire(t.Context(), dry, f.Streams("")); err != nil {
			t.Fatal(err)
		}
		would := f.Out.String()
		err := Expire(t.Context(), tc.o, f.Streams(""))
		if got := f.remaining(); err != nil || got != tc.want {
			t.Errorf("%+v, %s: %v, left %s, not %s\n%s", tc.o, tc.keep, err, got, tc.want, &f.Err)
		}
		// A dry run prints exactly the entries that a real run deletes.
		for _, path := range order {
			_, err := os.Stat(path)
			if printed := strings.Contains(would, path+"\n"); printed == (err == nil) {
				t.Errorf("%+v: %s: printed is %v, and then %v", tc.o, path, printed, err)
			}
		}
		if left, err := os.ReadDir(filepath.Join(f.Path, "tmp", testdir.Hash(viewdir.FeedID))); err == nil && len(left) > 0 {
			t.Errorf("%v is left in tmp", left)
		}
	}
}

// TestExpireNonsense: an invalid age or number deletes nothing.
func TestExpireNonsense(t *testing.T) {
	f := newFixture(t)
	f.Add("cur", "1700000001.1.h;2,S")
	for _, o := range []ExpireOptions{{Read: "90", Keep: -1}, {Read: "soon", Keep: 0}, {Trashed: "x", Keep: 0}, {Unread: "-1d", Keep: 0}} {
		o.Common = f.in(900 * days)
		if err := Expire(t.Context(), o, f.Streams("")); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	for _, keep := range []string{"some", "", "1 2", "1d 2d", "-1", "99999999999999999999", "all 3"} {
		if _, err := f.Feed(viewdir.FeedID, "Alpha", "etc/view/keep="+keep); err != nil {
			t.Fatal(err)
		}
		s := f.Streams("")
		err := Expire(t.Context(), ExpireOptions{Common: f.in(900 * days), Keep: 0, Read: "1d"}, s)
		if err != nil || s.Report.Errors() != 1 || !strings.Contains(f.Err.String(), "etc/view/keep: keep must be all, a number") {
			t.Errorf("%q: %v, %s", keep, err, &f.Err)
		}
	}
	if got := f.remaining(); got != "01" {
		t.Errorf("left: %s", got)
	}
}

// TestExpireVersions: all versions of an entry are deleted together, the oldest first. A flagged
// or unread version keeps them all.
func TestExpireVersions(t *testing.T) {
	f := newFixture(t)
	for id, places := range [][]string{
		{"cur ;2,S", "cur ;2,S"}, {"cur ;2,FS", "cur ;2,S"}, {"cur ;2,S", "new "}, {"cur ;2,", "cur ;2,S"}, {"cur ;2,FS", "cur ;2,ST"},
	} {
		for version, p := range places {
			where, info, _ := strings.Cut(p, " ")
			f.Add(where, testdir.Unique(1700000000+int64(10*id+version), id+1)+info)
		}
	}
	// An entry that a power cut left in new/ and cur/ counts as one.
	f.Add("new", "1700000090.1.h")
	f.Add("cur", "1700000090.1.h;2,S")
	if err := Expire(t.Context(), ExpireOptions{Common: f.in(days), Keep: 0, Trashed: "1h"}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	if got := f.remaining(); got != "10 11 20 21" {
		t.Errorf("left: %s", got)
	}
	if !strings.Contains(f.Err.String(), "lektor-view: 4 entries of 1 feed expired\n") {
		t.Errorf("%s", &f.Err)
	}
}

// TestExpireWithdrawn: withdrawn entries expire like others.
func TestExpireWithdrawn(t *testing.T) {
	f := newFixture(t)
	if _, err := f.Feed(viewdir.FeedID, "Alpha", "etc/history/complete=0000000000000002"); err != nil {
		t.Fatal(err)
	}
	f.Add("cur", testdir.Unique(1700000001, 1)+";2,S")
	f.Add("new", testdir.Unique(1700000002, 2))
	f.Add("new", testdir.Unique(1700000003, 3))
	if err := Expire(t.Context(), ExpireOptions{Common: f.in(days), Keep: 0}, f.Streams("")); err != nil {
		t.Fatal(err)
	}
	if got := f.remaining(); got != "02 03" {
		t.Errorf("left: %s", got)
	}
}

// TestExpireReadOnly: if entries cannot be deleted, the first is reported, and then the number of
// the others.
func TestExpireReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere")
	}
	f := newFixture(t)
	for _, n := range []string{"1", "2", "3"} {
		f.Add("cur", "170000000"+n+".1.h;2,S")
	}
	cur := filepath.Join(f.Path, "cur", testdir.Hash(viewdir.FeedID))
	if err := os.Chmod(cur, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(cur, 0o755)
	s := f.Streams("")
	err := Expire(t.Context(), ExpireOptions{Common: f.in(days), Keep: 0}, s)
	if err != nil || s.Report.Errors() != 2 || !strings.Contains(f.Err.String(), "2 more entries could not be moved: "+fs.ErrPermission.Error()) {
		t.Errorf("%v, %s", err, &f.Err)
	}
}

// TestExpireClockAhead: with a clock more than 31 days after the last run and the last Date of a
// server, expire deletes nothing, however often it is run, unless the user passes --yes.
func TestExpireClockAhead(t *testing.T) {
	f := newFixture(t)
	f.Add("cur", "1700000001.1.h;2,S")
	expire := func(in time.Duration, o ExpireOptions) error {
		o.Common, o.Keep, o.Read = f.in(in), -1, "90d"
		return Expire(t.Context(), o, f.Streams(""))
	}
	refused := func(in time.Duration, o ExpireOptions) {
		t.Helper()
		err := expire(in, o)
		if hint, ok := errors.AsType[*cmdline.HintError](err); !ok || !strings.Contains(hint.Hint, "expire --yes") || !strings.Contains(err.Error(), "the clock says") {
			t.Errorf("after %v: %v", in, err)
		}
		if got := f.remaining(); got != "01" {
			t.Errorf("after %v there is left: %q", in, got)
		}
	}
	passes := func(in time.Duration, o ExpireOptions) {
		t.Helper()
		if err := expire(in, o); err != nil {
			t.Errorf("after %v: %v", in, err)
		}
	}
	date := func(in time.Duration) {
		t.Helper()
		if err := feedfiles.RecordDate(f.opened(), time.Now().Add(in), time.Now().Add(in)); err != nil {
			t.Fatal(err)
		}
	}
	passes(0, ExpireOptions{})
	refused(400*days, ExpireOptions{})
	refused(400*days, ExpireOptions{}) // a refused run does not count as the last one
	refused(400*days, ExpireOptions{DryRun: true})
	passes(0, ExpireOptions{})
	passes(30*days, ExpireOptions{})
	passes(60*days, ExpireOptions{DryRun: true})
	refused(62*days, ExpireOptions{}) // a dry run does not count either
	// The later of the last run and the last Date counts.
	date(50 * days)
	passes(80*days, ExpireOptions{})
	refused(112*days, ExpireOptions{})
	date(70 * days)
	passes(110*days, ExpireOptions{DryRun: true, Yes: true})
	passes(80*days, ExpireOptions{})
	if got := f.remaining(); got != "01" {
		t.Fatalf("left: %q", got)
	}
	passes(400*days, ExpireOptions{Yes: true})
	if got := f.remaining(); got != "" {
		t.Errorf("left after --yes: %q", got)
	}
}

// TestExpireClockOfServers: before the first run, the last Date of a server alone counts.
func TestExpireClockOfServers(t *testing.T) {
	f := newFixture(t)
	f.Add("cur", "1700000001.1.h;2,S")
	if err := feedfiles.RecordDate(f.opened(), time.Now(), time.Now().Add(400*days)); err != nil {
		t.Fatal(err)
	}
	err := Expire(t.Context(), ExpireOptions{Common: f.in(400 * days), Keep: 0}, f.Streams(""))
	if err == nil || f.remaining() != "01" {
		t.Errorf("%v; left: %q", err, f.remaining())
	}
}
