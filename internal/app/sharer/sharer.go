// Package sharer implements lektor-share: it keeps the subscriptions and the marks of
// entries of one lektor-dir equal to those of others, by documents of Simple Sharing (see
// internal/protocol/feedsync) in a directory or on a server that all of them can reach.
//
// It is a replica with a three-way merge. The [baseline] is the state of the lektor-dir at
// the last run, [local] its state now, and the [itemSet] is the state that all machines agree
// on. [diff] returns the edits of the user, and [itemSet.note] adds them to the set.
// [itemSet.mergeSubs] and [itemSet.mergeMark] merge items of peers. [planner.plan] returns
// the differences between set and lektor-dir, and [applier.apply] removes them. All but the
// last step work on values.
//
// Set and baseline are one file, the [store], and one commit changes both, so a run can be
// killed anywhere: an edit is in both or in neither, and an action is in the baseline as
// soon as it is done. A [view] makes the documents from the set, without feeds that are not
// shared. They are kept in a [transport]: a directory or a server. The [endpoint] knows these
// places, and has the other files of etc/share.
//
// Read the files in this order: local reads the lektor-dir; baseline, diff, marks, set,
// folders, note, match and plan work on values; apply, store and replica change files;
// endpoint, transport, peers and publish are the exchange between machines; sync, init,
// status and documents are the commands.
package sharer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of every command on a lektor-dir.
type Common struct {
	Dir   string // path of the lektor-dir
	Fetch fetch.Config
	Now   func() time.Time // default time.Now
	Rand  io.Reader        // default crypto/rand

	step  func()     // called before each change of a file, by tests that end the run there
	stamp stamp.Rule // in tests that do not wait for the clock
}

// The files of etc/share:
const (
	shareDir      = "etc/share"
	endpointFile  = "endpoint"
	targetFile    = "target"
	headersFile   = "headers"
	storeFile     = "replica" // the set and the baseline
	lockFile      = "lock"
	peersDir      = "peers"     // directory or URL of each peer that the user added
	readDir       = "read"      // record of each peer
	publishedFile = "published" // record of the target
)

// The documents of an endpoint:
const (
	subsFile     = "subscriptions.opml"
	completeFile = "state-all.rss"
	partialFile  = "state.rss"
)

// documents are the names of the documents in the order of publication: the complete
// document of marks comes before the partial one, which links to it.
var documents = []string{subsFile, completeFile, partialFile}

// maxDocument is the size of the largest document that is read, in bytes.
const maxDocument = 1 << 30

// run is the state of one command.
type run struct {
	*endpoint
	c   Common
	s   *cmdline.Streams
	yes bool // deletions have no limit
	rep *replica
}

// open opens the lektor-dir with [cmdline.OpenDir] or [cmdline.CreateDir], and reads the names of the
// endpoint and the target.
func (c Common) open(s *cmdline.Streams, with func(string, *lektordir.Options) (*lektordir.Dir, error)) (*run, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.step == nil {
		c.step = func() {}
	}
	d, err := with(c.Dir, &lektordir.Options{Now: c.Now})
	if none, ok := errors.AsType[*lektordir.NotLektorDirError](err); ok && none.Err == nil {
		err = cmdline.Hint(err, "%s, which makes one; or name another with --dir or $LEKTORDIR", firstInit)
	}
	if err != nil {
		return nil, err
	}
	if err := atomicfile.NoLinks(d.Path(), "etc", shareDir, shareDir+"/"+peersDir, shareDir+"/"+readDir); err != nil {
		return nil, err
	}
	if c.stamp.Clock == nil {
		c.stamp.Clock = c.Now
	}
	c.stamp.Shared = d.Shared()
	r := &run{endpoint: &endpoint{reader: &reader{d: d, now: c.Now(), rule: c.stamp}, step: c.step,
		report: s.Report, web: fetch.NewClient(c.Fetch)}, c: c, s: s}
	if r.me, err = r.setting(endpointFile); err != nil {
		return nil, err
	}
	r.target, err = r.setting(targetFile)
	return r, err
}

// firstInit is the hint if nothing is shared yet.
const firstInit = "begin with: lektor-share init DIR|URL (a directory that all your machines have, or a server)"

// begin opens a shared lektor-dir, locks it and loads its replica.
func (c Common) begin(s *cmdline.Streams) (*run, error) {
	r, err := c.open(s, cmdline.OpenDir)
	if err != nil {
		return nil, err
	}
	if r.me == "" && !atomicfile.Exists(r.path(endpointFile)) {
		return nil, cmdline.Hint(errors.New("this lektor-dir is not shared yet"), firstInit)
	}
	if !feedsync.IsNSS(r.me) {
		return nil, cmdline.Hint(fmt.Errorf("%s does not hold the name of an endpoint", r.path(endpointFile)),
			"lektor-share init --renew")
	}
	if err := r.lock(); err != nil {
		return nil, err
	}
	if err := r.load(); err != nil {
		r.end()
		return nil, err
	}
	return r, nil
}

// openRecordingEdits begins a run as [Common.begin] does, and adds the edits of the user to the set.
func (c Common) openRecordingEdits(ctx context.Context, yes bool, s *cmdline.Streams) (*run, *local, error) {
	r, err := c.begin(s)
	if err != nil {
		return nil, nil, err
	}
	if r.rep.lost {
		r.end()
		return nil, nil, cmdline.Hint(errors.New("the set, or a part of it, is missing from "+r.path()),
			"lektor-share sync restores it from the other machines")
	}
	r.yes = yes
	l, err := r.note(ctx)
	if err != nil {
		r.end()
		return nil, nil, err
	}
	return r, l, nil
}

// end releases the lock, and closes the store and connections.
func (r *run) end() {
	if r.rep != nil {
		r.rep.store.close()
	}
	r.web.Close()
	if r.unlock != nil {
		r.unlock()
	}
}

// isURL reports whether a target or a peer is on a server.
func isURL(place string) bool { return feedurl.IsHTTP(place) }

// errReported is the error if every failure was reported already. errRemote is the error if
// only peers failed, and a later try may help.
var (
	errReported error = &cmdline.ExitError{Status: 1}
	errRemote   error = &cmdline.ExitError{Status: 75}
)
