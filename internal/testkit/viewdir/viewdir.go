// Package viewdir makes a lektor-dir with one feed for tests of viewers, and collects the
// output of commands.
package viewdir

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/app/viewer/session"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/testkit/testdir"
)

// FeedID is the id of the feed, whose name is Alpha.
const FeedID = "http://a.example/"

// Now is the time of all tests, in a time zone where the next day has begun.
var Now = time.Date(2026, 3, 15, 23, 0, 0, 0, time.UTC).In(time.FixedZone("", 2*3600))

// Fixture is a lektor-dir and the output of a command.
type Fixture struct {
	*testdir.Dir
	Out, Err bytes.Buffer

	T testing.TB
}

// New makes a lektor-dir.
func New(t testing.TB) *Fixture {
	f := &Fixture{Dir: testdir.New(t), T: t}
	if _, err := f.Feed(FeedID, "Alpha"); err != nil {
		t.Fatal(err)
	}
	return f
}

// Add makes an entry of the feed, see [testdir.Dir.Entry].
func (f *Fixture) Add(where, name string, files ...string) string {
	f.T.Helper()
	path, err := f.Entry(FeedID, where, name, files...)
	if err != nil {
		f.T.Fatal(err)
	}
	return path
}

// Common returns the options of a command on the lektor-dir.
func (f *Fixture) Common() session.Common {
	return session.Common{Dir: f.Path, Now: func() time.Time { return Now }, Terminal: "test"}
}

// Streams returns fresh streams with text to read.
func (f *Fixture) Streams(in string) *cmdline.Streams {
	f.Out.Reset()
	f.Err.Reset()
	return cmdline.NewStreams("lektor-view", strings.NewReader(in), &f.Out, &f.Err)
}

// Want checks the output.
func (f *Fixture) Want(err error, out string) {
	f.T.Helper()
	if err != nil || f.Out.String() != out {
		f.T.Errorf("error %v, printed\n%s\nwant\n%s\n%s", err, &f.Out, out, &f.Err)
	}
}
