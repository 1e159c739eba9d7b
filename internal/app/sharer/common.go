// Package sharer is lektor-share: the subscriptions and the marks of entries of one
// lektor-dir kept equal to those of others, by documents of Simple Sharing (see
// internal/feedsync) in a directory or on a server that all of them can reach.
//
// What is shared is two sets of items, which etc/share holds as the documents that
// are published: an outline for each feed and folder, and an item for each mark of an
// entry. A [share] is a run of a command on them. Its steps are safe to be killed
// between, in this order: local edits are noted in the set, and others' documents
// merged into it; the set is saved; the lektor-dir is made to follow; what it has now
// is remembered as seen; and the documents are published. An edit is what differs from
// what was seen and is not in the set, so that one noted before a kill is not noted
// again, and what was applied before one is none.
package sharer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
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
	lastFile      = "last"
	lockFile      = "lock"
	peersDir      = "peers" // of peers that the user named: where they are
	readDir       = "read"  // of every peer: what was last read
	subsFile      = "subscriptions.opml"
	completeFile  = "state-all.rss"
	partialFile   = "state.rss"
	publishedFile = "published" // digests of what a server has
	indexFile     = "index"     // of the complete document
)

// documents are what an endpoint publishes.
var documents = []string{subsFile, completeFile, partialFile}

// maxDocument is the largest document that is read, in bytes.
const maxDocument = 1 << 30

// share is a run of a command.
type share struct {
	c   Common
	d   *lektordir.Dir
	s   *command.Streams
	now time.Time

	me     string // the endpoint
	target string // a directory or a URL

	subs    *feedsync.Document
	states  *states
	changed struct{ subs, states bool }
	last    *seen
	local   *local
	origins map[string]string // of feeds that a document on a server told of
	unlock  func()
	web     *fetch.Client // see client

	allPeers []peer          // see peers
	readNow  map[string]bool // of these, by this run

	trouble    error     // what could not be read here; the rest is done
	memory     int64     // bytes that are needed, about
	madeBefore time.Time // the last edit of this endpoint, before this run
	// untils are those of the set, by document, before this run.
	untils map[string]time.Time
	// leaveAlone are peers whose servers want to be asked later, and when.
	leaveAlone map[string]time.Time

	lost    bool // a document of the set is, and was published
	waiting int  // items that could not be applied yet
}

// path is that of a file of etc/share.
func (h *share) path(elem ...string) string {
	return h.d.Join(append([]string{shareDir}, elem...)...)
}

// open opens the lektor-dir with one of [command.OpenDir] and [command.CreateDir].
func (c Common) open(s *command.Streams, with func(string, *lektordir.Options) (*lektordir.Dir, error)) (*share, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dir == "" {
		return nil, command.Hint(errors.New("there is no home directory to keep feeds in"), "give --dir or set $LEKTORDIR")
	}
	d, err := with(c.Dir, &lektordir.Options{Now: c.Now})
	if err != nil {
		return nil, err
	}
	if err := d.Inside("etc", shareDir, shareDir+"/"+peersDir, shareDir+"/"+readDir); err != nil {
		return nil, err
	}
	return &share{c: c, d: d, s: s, now: c.Now(), origins: map[string]string{}, readNow: map[string]bool{}}, nil
}

// begin is open for a lektor-dir that is shared, with the set loaded.
func (c Common) begin(s *command.Streams) (*share, error) {
	h, err := c.open(s, command.OpenDir)
	if err != nil {
		return nil, err
	}
	if h.me, err = h.setting(endpointFile); err != nil {
		return nil, err
	}
	if h.me == "" && !atomicfile.Exists(h.path(endpointFile)) {
		return nil, command.Hint(errors.New("this lektor-dir is not shared yet"), "\"lektor-share init DIR|URL\" begins: with a directory that all your machines have, or a server")
	}
	if !feedsync.IsNSS(h.me) {
		return nil, command.Hint(fmt.Errorf("%s does not hold the name of an endpoint", h.path(endpointFile)), "lektor-share init --renew")
	}
	if h.target, err = h.setting(targetFile); err != nil {
		return nil, err
	}
	if err := h.lockSet(); err != nil {
		return nil, err
	}
	if err := h.load(); err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// setting reads a file of one line, "" when it is not there.
func (h *share) setting(name string) (string, error) {
	line, err := atomicfile.Line(h.path(name))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return line, nil
	}
	if fi, serr := os.Stat(h.path(name)); serr == nil && !fi.Mode().IsRegular() {
		err = command.Hint(err, "a file of one line belongs there; move away what is in its place, and then: lektor-share init DIR|URL")
	}
	return "", err
}

// noted is begin with the edits of the user in the set.
func (c Common) noted(ctx context.Context, s *command.Streams) (*share, error) {
	h, err := c.begin(s)
	if err != nil {
		return nil, err
	}
	if h.lost {
		err = command.Hint(errors.New("a part of the set is gone from "+h.path()), "lektor-share sync has it again of what the other machines have")
	} else {
		err = h.note(ctx)
	}
	if err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// items gives the items of both sets; of states, those that are wanted.
func (h *share) items(want func(mark) bool) iter.Seq2[set, *feedsync.Item] {
	return func(yield func(set, *feedsync.Item) bool) {
		for _, it := range h.subs.Items() {
			if !yield(h.subs, it) {
				return
			}
		}
		for it := range h.states.items(want) {
			if !yield(h.states, it) {
				return
			}
		}
	}
}

// lockSet makes sure that nobody else changes the set. It does not wait.
func (h *share) lockSet() error {
	busy := command.Hint(errors.New("another lektor-share is at work on this lektor-dir"), "nothing was done; the other one does it")
	var err error
	h.unlock, err = atomicfile.Lock(h.path(lockFile), busy)
	return err
}

// end gives up the lock, and closes connections.
func (h *share) end() {
	if h.web != nil {
		h.web.Close()
	}
	if h.unlock != nil {
		h.unlock()
	}
}

// client is what makes the requests of the run, so that a server that wants to be left
// alone is asked by none.
func (h *share) client() *fetch.Client {
	if h.web == nil {
		h.web = fetch.NewClient(h.c.Fetch)
	}
	return h.web
}

// isURL tells whether the target, or a peer, is on a server.
func isURL(place string) bool { return fetch.IsHTTP(place) }

// change tells that a file is about to be changed.
func (h *share) change() {
	if h.c.step != nil {
		h.c.step()
	}
}

// private is [private] in the lektor-dir.
func (h *share) private(path string, data []byte) (bool, error) {
	h.change()
	return private(path, data)
}

// private writes a file that is for the user alone, unless it holds that already. It
// reports whether it wrote.
func private(path string, data []byte) (bool, error) {
	old, err := atomicfile.Read(path, int64(len(data))+1)
	if err == nil && string(old) == string(data) {
		if fi, err := os.Lstat(path); err == nil && fi.Mode() == 0o600 {
			return false, nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return false, err
	}
	return true, atomicfile.WritePrivate(path, data)
}

// line writes a file of one line.
func (h *share) line(text string, elem ...string) error {
	_, err := h.private(h.path(elem...), []byte(text+"\n"))
	return err
}

// load reads the set.
func (h *share) load() error {
	var err error
	if h.subs, err = h.read(subsFile, feedsync.OPML); err != nil {
		return err
	}
	if err := h.loadStates(); err != nil {
		return err
	}
	put := h.record("../" + publishedFile)
	for _, name := range documents {
		h.lost = h.lost || put[name] != "" && !atomicfile.Exists(h.path(name))
	}
	h.untils = map[string]time.Time{completeFile: h.states.until, partialFile: h.states.until}
	if h.subs.Sharing != nil {
		h.untils[subsFile] = h.subs.Sharing.Until
	}
	if h.last, err = h.readLast(); err == nil {
		h.madeBefore = h.last.made
	}
	return err
}

// read reads a document of the set; a missing one is empty.
func (h *share) read(name string, kind feedsync.Kind) (*feedsync.Document, error) {
	data, err := atomicfile.Read(h.path(name), maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return h.empty(kind), nil
	}
	if err != nil {
		return nil, err
	}
	return h.parseOwn(name, data, kind)
}

// parseOwn parses a document of the set.
func (h *share) parseOwn(name string, data []byte, kind feedsync.Kind) (*feedsync.Document, error) {
	doc, err := parse(data, kind)
	if err != nil {
		return nil, command.Hint(fmt.Errorf("%s: %w", h.path(name), err), "it was written by hand or damaged; remove it, and the next sync has of it what the other machines have")
	}
	return doc, nil
}

// parse reads a document that is to be of a kind. With the error for one that is broken
// comes what was read of it.
func parse(data []byte, kind feedsync.Kind) (*feedsync.Document, error) {
	doc, err := feedsync.Parse(data)
	if doc != nil && doc.Kind != kind {
		if err == nil {
			err = errors.New("it is a document of another kind")
		}
		return nil, err
	}
	return doc, err
}

// needs raises the program's limit of memory, if there is one, when what is going to be
// in memory does not fit: under a limit that is too low, all time goes into collecting
// garbage that there is not.
func (h *share) needs(bytes int) {
	h.memory += int64(bytes)
	if h.memory > debug.SetMemoryLimit(-1) {
		// With room, as this is about what is needed: just below the limit a run of a
		// million marks takes several times as long as it should.
		debug.SetMemoryLimit(h.memory + h.memory/8)
	}
}

// What is in memory of a document, for each of its bytes, and of those of what was seen;
// of an entry, and of a mark that is noted.
const (
	parsedWeight = 3.2
	ownWeight    = 1.3
	seenWeight   = 6
	entryWeight  = 600
	markWeight   = 1000
)

// empty makes a document without items.
func (h *share) empty(kind feedsync.Kind) *feedsync.Document {
	if kind == feedsync.OPML {
		return feedsync.New(kind, "Subscriptions of "+h.me, "", "")
	}
	return feedsync.New(kind, "Entries read and marked on "+h.me, "https://github.com/lektordir/lektor", "What lektor-share keeps equal on several machines")
}

// said is the error when all that failed was reported.
var said = &command.ExitError{Status: 1}

// remote is the error when only peers failed.
var remote = &command.ExitError{Status: 75}

// modify makes the next version of an item, or the first: its content, or with nil
// its deletion. Who edits an item in conflict has decided what it is to be.
func (h *share) modify(doc set, id string, content []byte, parent string) error {
	it := doc.Item(id)
	when := h.moment(it)
	var next *feedsync.Item
	var err error
	switch {
	case it == nil:
		next, err = feedsync.Create(id, content, when, h.me)
	case it.Conflict:
		next, err = it.Resolve(content, content == nil, when, h.me)
	default:
		next, err = it.Update(content, content == nil, when, h.me)
	}
	if err != nil {
		return err
	}
	if content != nil {
		next.Parent = parent
	}
	h.put(doc, next)
	return nil
}

// moment is when an edit happens: now, but for the endpoint's own order of edits.
func (h *share) moment(it *feedsync.Item) time.Time {
	when := h.now
	if it != nil {
		when = it.Moment(h.now, h.me)
	}
	when = when.UTC().Truncate(time.Second)
	if when.After(h.last.made) {
		h.last.made = when
	}
	return when
}

// put puts an item into a set.
func (h *share) put(doc set, items ...*feedsync.Item) {
	doc.Append(items...)
	h.touch(doc)
}

// touch notes that a set changed.
func (h *share) touch(doc set) {
	if doc == set(h.subs) {
		h.changed.subs = true
		return
	}
	h.changed.states = true
}

// next gives an until that is later than the one before: it grows with every change of
// the set (section 2.1).
func (h *share) next(before time.Time) time.Time {
	until := h.now.UTC().Truncate(time.Second)
	if !until.After(before) {
		until = before.Add(time.Second)
	}
	return until
}

// save writes the set, as the documents that will be published.
func (h *share) save() error {
	if err := h.states.err; err != nil {
		// What cannot be read is not to be lost.
		return command.Hint(err, "remove %s, and the next sync has of it what the other machines have", h.path(completeFile))
	}
	if h.changed.subs {
		h.subs.Arrange()
		before := time.Time{}
		if s := h.subs.Sharing; s != nil {
			before = s.Until
		}
		h.subs.SetSharing(&feedsync.Sharing{Until: h.next(before), Version: feedsync.SpecVersion, Related: h.aggregated(subsFile)})
		if _, err := h.private(h.path(subsFile), h.subs.Bytes()); err != nil {
			return err
		}
	}
	if h.changed.states {
		if err := h.saveStates(); err != nil {
			return err
		}
	}
	h.changed.subs, h.changed.states = false, false
	if h.states.index == nil {
		return nil
	}
	_, err := h.private(h.path(indexFile), h.states.index)
	h.states.index = nil
	return err
}

// minPartial is how large a partial document may be whatever the complete one is, in
// bytes.
const minPartial = 4 << 10

// aggregated names the peers that are read. Of paths on this machine nothing is told.
func (h *share) aggregated(document string) []feedsync.Related {
	var out []feedsync.Related
	peers, err := h.peers()
	if err != nil {
		h.fails(err)
	}
	for _, p := range peers {
		link := "../" + p.name + "/" + document
		switch {
		case isURL(p.place):
			link = fetch.Public(strings.TrimSuffix(p.place, "/")) + "/" + document
		case p.named:
			continue
		}
		if h.readNow[p.name] || atomicfile.Exists(h.path(readDir, p.name)) {
			out = append(out, feedsync.Related{Link: link, Type: "aggregated", Title: p.name})
		}
	}
	return out
}

// label is what an item is called to a person.
func label(it *feedsync.Item) string {
	if title, ok := it.ChildText("", "title"); ok {
		return title
	}
	return cmp.Or(it.Value("", "text"), it.Value("", "title"), it.ID)
}
