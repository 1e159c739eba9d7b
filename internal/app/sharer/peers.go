package sharer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/entryname"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
	"github.com/lektordir/lektor/internal/values"
)

// anotherTarget is what to do about a target that is none.
const anotherTarget = "mount it, or choose another with: lektor-share init DIR"

// peer is another endpoint.
type peer struct {
	name  string
	place string // a directory or a URL that holds its documents
	named bool   // by the user, and not found in the target
}

// peers lists those that are read: all directories beside our own in a target that is
// one, and those that the user named.
func (r *run) peers() ([]peer, error) {
	out := []peer{}
	if r.target != "" && !isURL(r.target) {
		names, err := os.ReadDir(r.target)
		if errors.Is(err, syscall.ENOTDIR) {
			err = command.Hint(err, anotherTarget)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, n := range names {
			// Services of synchronisation have directories of their own, whose names
			// no endpoint has. A directory that cannot be looked at may be a peer's:
			// reading it fails, and says so.
			if n.Name() == r.me || !peerName(n.Name()) {
				continue
			}
			place := filepath.Join(r.target, n.Name())
			if fi, err := os.Stat(place); err == nil && fi.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
				out = append(out, peer{name: n.Name(), place: place})
			}
		}
	}
	names, err := os.ReadDir(r.path(peersDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, n := range names {
		if !peerName(n.Name()) {
			continue
		}
		place, err := atomicfile.Line(r.path(peersDir, n.Name()))
		if err != nil {
			return nil, err
		}
		if place == "" {
			continue
		}
		out = slices.DeleteFunc(out, func(p peer) bool { return p.name == n.Name() })
		out = append(out, peer{name: n.Name(), place: place, named: true})
	}
	return out, nil
}

// peerName reports whether a peer can be called so: it is the name of a file.
func peerName(name string) bool {
	return feedsync.IsNSS(name) && name[0] != '.' && len(name) <= 200 && name != "*"
}

// record is what is known of a peer, etc/share/read/NAME, or of the target.
type record struct{ *values.Values }

func (r *run) record(name string) record {
	data, _ := atomicfile.Read(r.path(readDir, name), maxDocument)
	return record{values.Parse(data, ' ')}
}

// newRecord returns that of a place of which nothing is known.
func newRecord(place string) record {
	rec := record{values.New(' ')}
	rec.Set("place", digest([]byte(place)))
	return rec
}

// isOf reports whether a record is of a place, and not of one before.
func (r record) isOf(place string) bool { return r.Get("place") == digest([]byte(place)) }

// knows reports whether a document was read.
func (r record) knows(name string) bool {
	return r.Get(name)+r.Get(name+".etag")+r.Get(name+".modified") != ""
}

// forget makes a document one that was not read.
func (r record) forget(name string) {
	r.Set(name, "")
	r.validators(name, "", "")
}

// validators sets those of a document; without them the next request for it has no
// conditions.
func (r record) validators(name, etag, modified string) {
	r.Set(name+".etag", etag)
	r.Set(name+".modified", modified)
}

func (r *run) writeRecord(name string, rec record) error {
	return r.private(r.path(readDir, name), rec.Text())
}

// errMissing reports that a peer has no such document, and errNothing that it has none.
var (
	errMissing = errors.New("there is no such document")
	errNothing = errors.New("it has published nothing yet")
)

// CopiedError is the error for an update by our own endpoint that it never made.
type CopiedError struct {
	Peer string // where that is
	Item string // "" for a document that is newer than what this machine published
}

func (e *CopiedError) Error() string {
	what := "has a change of item " + e.Item + " by this endpoint that was not made here"
	if e.Item == "" {
		what = "was published by this endpoint, and not from here"
	}
	return e.Peer + " " + what + ": the lektor-dir was copied, or restored from a backup; nothing is merged"
}

// renew is what to do about it.
const renew = "lektor-share init --renew makes this lektor-dir an endpoint of its own"

// news is what a peer has that was not read before.
type news struct {
	peer   peer
	docs   []*feedsync.Document // to be merged in this order
	found  bool                 // it has published something
	read   bool                 // of that something is new
	broken []error              // of documents that could not be read to their end
	record record
}

// exchange reads the documents of peers, and publishes those of this endpoint.
type exchange struct {
	*run
	peers   []peer
	news    []*news              // of the peers that were read
	changed []string             // marks that peers have changed
	failed  int                  // peers that could not be read
	origins map[string]string    // of feeds that come from a document on a server
	later   map[string]time.Time // of peers whose servers asked for a pause: its end
}

// exchange begins the exchange of a run.
func (r *run) exchange() (*exchange, error) {
	peers, err := r.peers()
	return &exchange{run: r, peers: peers, origins: map[string]string{}, later: map[string]time.Time{}}, err
}

// whole is how many peers were read whole.
func (x *exchange) whole() (n int) {
	for _, one := range x.news {
		if len(one.broken) == 0 {
			n++
		}
	}
	return n
}

// brokenError reports that a document of a peer could not be read to its end.
type brokenError struct {
	name  string
	err   error
	items int // that were read before that, and count
}

func (e *brokenError) Error() string {
	counts := "nothing of it counts"
	if e.items > 0 {
		counts = units.Count(e.items, "item") + " before that count, and it is read again the next time"
		if e.items == 1 {
			counts = "1 item before that counts, and it is read again the next time"
		}
	}
	return e.name + ": " + e.err.Error() + "; " + counts
}
func (e *brokenError) Unwrap() error { return e.err }

// fetchPeer reads what is new of a peer. Of a document that is broken, were it only cut
// off on the way, the items count that were read before that place: what is missing was
// not deleted. But it was not read, and is the next time: of what stands at its
// beginning, until when it reaches, nothing is kept. The error names those that are
// broken; any other one means that nothing was read.
func (x *exchange) fetchPeer(ctx context.Context, p peer) (*news, error) {
	n := &news{peer: p, record: x.record(p.name)}
	if old := n.record; x.rep.lost || !old.isOf(p.place) {
		n.record = newRecord(p.place)
		n.record.Set("success", old.Get("success"))
		n.record.Set("wrote", old.Get("wrote"))
	}
	if err := tooSoon(p.place, n.record, x.now); err != nil {
		return nil, err
	}
	n.record.Set("after", "")
	if _, err := x.fetchDocument(ctx, n, subsFile); err != nil {
		return nil, err
	}
	partial, err := x.fetchDocument(ctx, n, partialFile)
	if err != nil {
		return nil, err
	}
	switch broken := len(n.broken); {
	case partial != nil && x.needsComplete(partial, n.record):
		// Whatever was read of it before is too old.
		n.record.forget(completeFile)
		if _, err := x.fetchDocument(ctx, n, completeFile); err != nil {
			return nil, err
		}
		if len(n.broken) > broken {
			// What is in between is not known: the partial one does not reach back
			// the next time, either.
			n.record.forget(partialFile)
			partial = nil
		}
	case partial == nil && !n.record.knows(partialFile):
		if _, err := x.fetchDocument(ctx, n, completeFile); err != nil {
			return nil, err
		}
	}
	if partial != nil {
		until := ""
		if partial.Sharing != nil {
			until = feedsync.FormatDate(partial.Sharing.Until)
		}
		n.record.Set("until", until)
	}
	n.note(x.now)
	if !n.found {
		return nil, errNothing
	}
	return n, errors.Join(n.broken...)
}

// fetchDocument reads a document of a peer; nil if it is what was read before, is not
// there, or is broken.
func (x *exchange) fetchDocument(ctx context.Context, n *news, name string) (*feedsync.Document, error) {
	data, err := x.placeAt(n.peer.place).read(ctx, name, n.record)
	if err == errMissing {
		return nil, nil
	}
	n.found = true
	if err != nil || data == nil {
		return nil, err
	}
	kind := feedsync.RSS
	if name == subsFile {
		kind = feedsync.OPML
	}
	doc, bad := parse(data, kind, x.isKnown)
	if bad != nil && isURL(n.peer.place) && isPage(http.StatusOK, data) {
		doc, bad = nil, errors.New(aPage)
	}
	items := 0
	if doc != nil {
		items = doc.Len() + doc.Known
		warnings := command.Warnings{Report: x.s.Report}
		for _, problem := range doc.Problems {
			warnings.Warn("%s: %s: %s", n.peer.name, name, termsafe.Brief(problem.String()))
		}
		if n.peer.name != x.me { // else the set is lost, and this is all that there is
			if err := x.notOurs(n.peer.name, doc); err != nil {
				return nil, err
			}
		}
		n.docs, n.read = append(n.docs, doc), true
	}
	if bad != nil {
		// The bytes of an unread document are no watermark.
		n.record.forget(name)
		n.broken = append(n.broken, &brokenError{name, bad, items})
		return nil, nil
	}
	return doc, nil
}

// parse reads a document that is to be of a kind. With the error for one that is broken
// comes what was read of it.
func parse(data []byte, kind feedsync.Kind, known func(*feedsync.Item) bool) (*feedsync.Document, error) {
	doc, err := feedsync.ParseNews(data, known)
	if doc != nil && doc.Kind != kind {
		if err == nil {
			err = errors.New("it is a document of another kind")
		}
		return nil, err
	}
	return doc, err
}

// isKnown reports whether the set has all of a mark of a peer, as it has of nearly all marks
// of nearly all documents, and whoever else has our name has not edited it.
func (x *exchange) isKnown(it *feedsync.Item) bool {
	return !x.rep.set.isNews(it) && x.isOurs(it, feedsync.RSS)
}

// needsComplete reports whether a partial document does not reach back to what was read
// last.
func (x *exchange) needsComplete(partial *feedsync.Document, r record) bool {
	s := partial.Sharing
	if s == nil || s.Since.IsZero() && !slices.ContainsFunc(s.Related, func(r feedsync.Related) bool { return r.Type == "complete" }) {
		return false // it is complete itself
	}
	before := parseDate(r.Get("until"))
	return before.IsZero() || s.Until.IsZero() || s.Until.Before(before) || s.Since.After(before)
}

// notOurs looks for updates by our own endpoint that we never made.
func (x *exchange) notOurs(place string, doc *feedsync.Document) error {
	for _, it := range doc.Items() {
		if !x.isOurs(it, doc.Kind) {
			return command.Hint(&CopiedError{place, it.ID}, renew)
		}
	}
	return nil
}

// isOurs reports whether this endpoint made all updates of an item that bear its name: those
// that are later than all that it had made before this run are of this run.
func (x *exchange) isOurs(it *feedsync.Item, kind feedsync.Kind) bool {
	return !slices.ContainsFunc(it.History, func(u feedsync.Update) bool {
		if u.By != x.me || !u.When.After(x.rep.made) {
			return false
		}
		local := x.rep.set.find(kind, it.ID)
		return local == nil || !slices.Contains(local.History, u)
	})
}

// tooSoon is the error for a request to a server that asked for a longer pause when it was
// asked last.
func tooSoon(place string, rec record, now time.Time) error {
	left := parseDate(rec.Get("after")).Sub(now)
	if !isURL(place) || left <= 0 || left > fetch.MaxRetryAfter { // by another clock
		return nil
	}
	return &laterError{place, left}
}

// laterError is the error for what was not asked, as it is too soon.
type laterError struct {
	place string
	left  time.Duration
}

func (e *laterError) Error() string {
	return fmt.Sprintf("%s: not asked: the server wants to be left alone for %s", fetch.Brief(fetch.Public(e.place)), units.ShortDuration(e.left))
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// note notes when a peer wrote last, and which feeds it publishes.
func (n *news) note(now time.Time) {
	wrote := parseDate(n.record.Get("wrote"))
	for _, doc := range n.docs {
		if doc.Sharing != nil && doc.Sharing.Until.After(wrote) {
			wrote = doc.Sharing.Until
		}
		if doc.Kind != feedsync.OPML {
			continue
		}
		var feeds []string
		for _, it := range doc.Items() {
			if !it.Deleted && !isFolder(it) && entryname.IsFeedHash(it.ID) {
				feeds = append(feeds, it.ID)
			}
		}
		n.record.Set("feeds", strings.Join(feeds, " "))
	}
	n.record.Set("wrote", feedsync.FormatDate(wrote))
	// A date that stays the same as long as the peer publishes nothing new.
	if len(n.broken) == 0 && (n.read || n.record.Get("success") == "") {
		n.record.Set("success", feedsync.FormatDate(now))
	}
}

// read reads all peers, and merges into the set what they have. One that cannot be read
// does not keep the others.
func (x *exchange) read(ctx context.Context, quiet bool) error {
	for _, p := range x.peers {
		n, err := x.fetchPeer(ctx, p)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, new(*CopiedError)):
			return err
		case err == errNothing && !p.named:
			// A machine that has just begun, or no machine's directory.
			if !quiet {
				x.s.Report.Info("%s: %v", p.name, err)
			}
		case err != nil:
			x.failed++
			if wait := fetch.Pause(err); wait > 0 {
				x.later[p.name] = x.now.Add(wait)
			}
			for _, e := range joined.Errors(err) {
				x.s.Report.Print(fmt.Errorf("%s: %w", p.name, e))
			}
		}
		if n != nil {
			x.take(n)
			x.news = append(x.news, n)
		}
	}
	return nil
}

// take merges into the set what a peer has.
func (x *exchange) take(n *news) {
	subs, marks := x.rep.set.merge(n.docs)
	for _, id := range subs {
		if isURL(n.peer.place) {
			x.origins[id] = n.peer.place
		}
	}
	x.changed = append(x.changed, marks...)
	n.docs = nil // there may be many peers, each with all that there is
}

// remember writes down what was read, and who is not to be asked for a while. The set has
// been saved.
func (x *exchange) remember() error {
	for _, n := range x.news {
		if err := x.writeRecord(n.peer.name, n.record); err != nil {
			return err
		}
	}
	for name, when := range x.later {
		rec := x.record(name)
		rec.Set("after", feedsync.FormatDate(when))
		if err := x.writeRecord(name, rec); err != nil {
			return err
		}
	}
	return nil
}

// recover reads what this endpoint has published, when the set is lost, and forgets what
// was read of others: all of that is to be read, too. What is deleted, here or there,
// would come back otherwise.
func (x *exchange) recover(ctx context.Context, dryRun bool) error {
	place := x.place()
	n, err := x.fetchPeer(ctx, peer{name: x.me, place: place})
	if n == nil {
		return command.Hint(fmt.Errorf("the set is gone from %s, and what was published of it cannot be read: %w", x.path(), err),
			"mount %s; or, to do without: rm %s", place, x.path(publishedFile))
	}
	for _, e := range joined.Errors(err) {
		x.s.Report.Print(fmt.Errorf("%s: %w", x.me, e))
	}
	for _, doc := range n.docs {
		if u := &x.rep.set.until; doc.Sharing != nil && doc.Kind == feedsync.OPML {
			u.subs = latest(u.subs, doc.Sharing.Until)
		} else if doc.Sharing != nil {
			u.marks = latest(u.marks, doc.Sharing.Until)
		}
	}
	x.take(n)
	x.rep.set.made = x.rep.set.lastEdit(x.me)
	x.rep.made = x.rep.set.made
	if dryRun {
		return nil
	}
	x.c.step()
	return os.RemoveAll(x.path(readDir))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// related names the peers that are read. Paths on this machine are not published.
func (x *exchange) related(document string) []feedsync.Related {
	var out []feedsync.Related
	for _, p := range x.peers {
		link := "../" + p.name + "/" + document
		switch {
		case isURL(p.place):
			link = fetch.Public(strings.TrimSuffix(p.place, "/")) + "/" + document
		case p.named:
			continue
		}
		if slices.ContainsFunc(x.news, func(n *news) bool { return n.peer.name == p.name }) || atomicfile.Exists(x.path(readDir, p.name)) {
			out = append(out, feedsync.Related{Link: link, Type: "aggregated", Title: p.name})
		}
	}
	return out
}
