// Package sharer is lektor-share: the subscriptions and the marks of entries of one
// lektor-dir kept equal to those of others, by documents of Simple Sharing (see
// internal/feedsync) in a directory or on a server that all of them can reach.
//
// It is a replica by a three-way merge. The [baseline] is what the lektor-dir had, the
// [local] what it has, the [set] what all machines are to agree on. [diff] returns the
// user's edits, which [set.note] notes; [set.merge] merges the documents of peers;
// [planner.plan] returns what differs between set and lektor-dir, and [applier.apply] does
// that. All but the last step are over values. Set and baseline are one file, the [store],
// which one commit changes, so that a run can be killed anywhere: an edit is in both or in
// neither, and what a run applies is in the baseline as soon as it is done. The documents
// are made from the set, through a [view] that leaves out what is not shared, and stand in
// a [transport]: a directory or a server.
//
// The files in the order of reading: over values, local, baseline, diff, set, folders, note,
// meet and plan; then apply, store, old and replica, which change files; peers, place and
// publish, by which machines meet; and the commands, sync, init, status and documents.
package sharer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedcmd"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/lektordir"
)

// Common are the options of every command on a lektor-dir.
type Common struct {
	Dir   string // path of the lektor-dir
	Fetch fetch.Config
	Now   func() time.Time // default time.Now
	Rand  io.Reader        // default crypto/rand

	step func() // called before each change of a file, by tests that end the run there
}

// The files of etc/share.
const (
	shareDir      = "etc/share"
	endpointFile  = "endpoint"
	targetFile    = "target"
	headersFile   = "headers"
	storeFile     = "replica" // the set and the baseline
	lockFile      = "lock"
	peersDir      = "peers"     // of peers that the user named: where they are
	readDir       = "read"      // of every peer: what was last read
	publishedFile = "published" // what the target has
)

// The documents of an endpoint.
const (
	subsFile     = "subscriptions.opml"
	completeFile = "state-all.rss"
	partialFile  = "state.rss"
)

// documents are those in the order in which they are published: the one with all marks
// comes before the one that names it.
var documents = []string{subsFile, completeFile, partialFile}

// maxDocument is the largest document that is read, in bytes.
const maxDocument = 1 << 30

// run is what a command works with.
type run struct {
	reader
	c   Common
	s   *command.Streams
	now time.Time

	me     string // the endpoint
	target string // a directory or a URL
	rep    *replica
	unlock func()
	web    *fetch.Client // see client
}

// path is that of a file of etc/share.
func (r *run) path(elem ...string) string {
	return r.d.Join(append([]string{shareDir}, elem...)...)
}

// open opens the lektor-dir with one of [feedcmd.OpenDir] and [feedcmd.CreateDir].
func (c Common) open(s *command.Streams, with func(string, *lektordir.Options) (*lektordir.Dir, error)) (*run, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.step == nil {
		c.step = func() {}
	}
	if c.Dir == "" {
		return nil, command.Hint(errors.New("there is no home directory to keep feeds in"), "give --dir or set $LEKTORDIR")
	}
	d, err := with(c.Dir, &lektordir.Options{Now: c.Now})
	if err != nil {
		return nil, err
	}
	if err := atomicfile.NoLinks(d.Path(), "etc", shareDir, shareDir+"/"+peersDir, shareDir+"/"+readDir); err != nil {
		return nil, err
	}
	return &run{reader: reader{d: d}, c: c, s: s, now: c.Now()}, nil
}

// begin is open for a lektor-dir that is shared, with its replica.
func (c Common) begin(s *command.Streams) (*run, error) {
	r, err := c.open(s, feedcmd.OpenDir)
	if err != nil {
		return nil, err
	}
	if r.me, err = r.setting(endpointFile); err != nil {
		return nil, err
	}
	if r.me == "" && !atomicfile.Exists(r.path(endpointFile)) {
		return nil, command.Hint(errors.New("this lektor-dir is not shared yet"), "\"lektor-share init DIR|URL\" begins: with a directory that all your machines have, or a server")
	}
	if !feedsync.IsNSS(r.me) {
		return nil, command.Hint(fmt.Errorf("%s does not hold the name of an endpoint", r.path(endpointFile)), "lektor-share init --renew")
	}
	if r.target, err = r.setting(targetFile); err != nil {
		return nil, err
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

// noted is begin with the edits of the user in the set.
func (c Common) noted(ctx context.Context, s *command.Streams) (*run, *local, error) {
	r, err := c.begin(s)
	if err != nil {
		return nil, nil, err
	}
	if r.rep.lost {
		r.end()
		return nil, nil, command.Hint(errors.New("a part of the set is gone from "+r.path()), "lektor-share sync has it again of what the other machines have")
	}
	l, err := r.note(ctx)
	if err != nil {
		r.end()
		return nil, nil, err
	}
	return r, l, nil
}

// setting reads a file of one line, "" when it is not there.
func (r *run) setting(name string) (string, error) {
	line, err := atomicfile.Line(r.path(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return line, nil
	}
	if fi, serr := os.Stat(r.path(name)); serr == nil && !fi.Mode().IsRegular() {
		err = command.Hint(err, "a file of one line belongs there; move away what is in its place, and then: lektor-share init DIR|URL")
	}
	return "", err
}

// lock makes sure that nobody else changes the set. It does not wait.
func (r *run) lock() error {
	busy := command.Hint(errors.New("another lektor-share is at work on this lektor-dir"), "nothing was done; the other one does it")
	var err error
	r.unlock, err = atomicfile.Lock(r.path(lockFile), busy)
	return err
}

// end releases the lock, and closes connections.
func (r *run) end() {
	if r.web != nil {
		r.web.Close()
	}
	if r.unlock != nil {
		r.unlock()
	}
}

// client is what makes the requests of the run, so that a server that asks for a pause gets
// it.
func (r *run) client() *fetch.Client {
	if r.web == nil {
		r.web = fetch.NewClient(r.c.Fetch)
	}
	return r.web
}

// isURL reports whether the target, or a peer, is on a server.
func isURL(place string) bool { return fetch.IsHTTP(place) }

// private is [private] in the lektor-dir.
func (r *run) private(path string, data []byte) error {
	r.c.step()
	return private(path, data)
}

// private writes a file that is for the user alone, unless it holds that already.
func private(path string, data []byte) error {
	old, err := atomicfile.Read(path, int64(len(data))+1)
	if err == nil && string(old) == string(data) {
		if fi, err := os.Lstat(path); err == nil && fi.Mode() == 0o600 {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return atomicfile.WritePrivate(path, data)
}

// line writes a file of one line.
func (r *run) line(text string, elem ...string) error {
	return r.private(r.path(elem...), []byte(text+"\n"))
}

// errSaid is the error when all that failed was reported, and errRemote when only peers
// failed.
var (
	errSaid         = &command.ExitError{Status: 1}
	errRemote error = &command.ExitError{Status: 75}
)
