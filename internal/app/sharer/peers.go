package sharer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/dir/entryname"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// errMissing is the error for a document that does not exist, errNothing that for a peer without any
// document, and errPause that for a request that was not made.
var (
	errPause   = errors.New("not asked: the server asked for a pause")
	errCutOff  = errors.New("the response was cut off")
	errMissing = errors.New("there is no such document")
	errNothing = errors.New("it has published nothing yet")
)

// CopiedError is the error for an update in our name that this lektor-dir never made.
type CopiedError struct {
	Peer string // peer or URL of the document with the update
	Item string // "" if the whole document is newer than the published one
}

func (e *CopiedError) Error() string {
	what := "has a change of item " + e.Item + " by this endpoint that was not made here"
	if e.Item == "" {
		what = "is newer than the one that this lektor-dir published"
	}
	return e.Peer + " " + what + ": the lektor-dir was copied, or restored from a backup; nothing is merged"
}

// renew is the hint for a [CopiedError].
const renew = "lektor-share init --renew makes this lektor-dir an endpoint of its own"

// peerUpdate is the reading of a peer.
type peerUpdate struct {
	peer   peer
	found  bool    // the peer has published something
	read   bool    // at least one document has changed
	failed error   // a document could not be read at all
	broken []error // errors of documents that could not be read to their end
	record record
}

// exchange reads the documents of peers, and publishes those of this endpoint.
type exchange struct {
	*run
	peers   []peer
	updates []*peerUpdate     // peers that were read
	whole   int               // number of peers whose documents were all read to their end
	failed  error             // errRemote if a peer or the server failed, errReported if a later sync will, too
	origins map[string]string // hash of a feed -> place of the peer that it comes from
}

// exchange begins the exchange of a run.
func (r *run) exchange() (*exchange, error) {
	peers, err := r.peers()
	return &exchange{run: r, peers: peers, origins: map[string]string{}}, err
}

// brokenError is the error for a document of a peer that could not be read to its end.
type brokenError struct{ error }

func (e *brokenError) Unwrap() error { return e.error }

// broken returns the error for a document. The items before the error are used.
func broken(name string, err error, items int) error {
	used := "none of its items are used"
	switch {
	case items == 1:
		used = "the item before this error is used, and the document is read again next time"
	case items > 1:
		used = "the " + humanize.Count(items, "item") +
			" before this error are used, and the document is read again next time"
	}
	return &brokenError{fmt.Errorf("%s: %w; %s", name, err, used)}
}

// fetchPeer reads the changed documents of a peer, and merges them into the set. If a document is
// broken, for example cut off, the items before the break are used and missing items are not deletions.
// Its validators and its until date are not recorded, so it is read again next time. If documents are
// broken, fetchPeer returns the update and the errors; with any other error the update is nil.
func (x *exchange) fetchPeer(ctx context.Context, p peer) (*peerUpdate, error) {
	rec := x.recordOf(p.name, p.place, x.rep.lost)
	n := &peerUpdate{peer: p, record: rec}
	if err := tooSoon(p.place, rec, x.now); err != nil {
		return nil, err
	}
	rec.Set("after", "")
	x.fetchDocument(ctx, n, subsFile)
	partial := x.fetchDocument(ctx, n, partialFile)
	stale := partial != nil && x.needsComplete(partial, rec) // the recorded complete document is too old
	if stale {
		rec.forget(completeFile)
	}
	never := rec.Get(partialFile+".etag")+rec.Get(partialFile+".modified") == "" // it was never read
	if broken := len(n.broken); stale || partial == nil && never {
		if x.fetchDocument(ctx, n, completeFile); stale && len(n.broken) > broken {
			// The marks before the partial document are missing. Its until date is not
			// recorded, so that the next run reads the complete document again.
			rec.forget(partialFile)
			partial = nil
		}
	}
	switch {
	case n.failed != nil:
		return nil, n.failed
	case !n.found:
		return nil, errNothing
	case partial != nil:
		rec.Set("until", feedsync.FormatDate(cmp.Or(partial.Sharing, &feedsync.Sharing{}).Until))
	}
	// The date stays the same until a document changes.
	if len(n.broken) == 0 && (n.read || rec.Get("success") == "") {
		rec.Set("success", feedsync.FormatDate(x.now))
	}
	return n, errors.Join(n.broken...)
}

// fetchDocument reads a document of a peer and merges it. It returns nil if the document has not
// changed, does not exist, or is broken, and if one before it could not be read.
func (x *exchange) fetchDocument(ctx context.Context, n *peerUpdate, name string) *feedsync.Document {
	if n.failed != nil {
		return nil
	}
	data, err := x.transportAt(n.peer.place).read(ctx, name, n.record)
	if err == errMissing {
		return nil
	}
	n.found = true
	if n.failed = err; err != nil || data == nil {
		return nil
	}
	doc, bad, copied := x.parse(n.peer.name, name, data, x.rep.set.mergeMark)
	if n.failed = copied; copied != nil {
		return nil
	}
	if bad != nil && isURL(n.peer.place) && isPage(http.StatusOK, data) {
		doc, bad = nil, errors.New(aPage)
	}
	items := 0
	if doc != nil {
		items = doc.Len() + doc.Taken
		var faults []string
		for _, fault := range doc.Faults() {
			faults = append(faults, fmt.Sprintf("%s: %s: %s", n.peer.name, name, termsafe.Brief(fault.String())))
		}
		x.warn(faults)
		x.merge(n, doc)
	}
	if bad != nil {
		// A broken document is read again next time.
		n.record.forget(name)
		n.broken = append(n.broken, broken(name, bad, items))
		return nil
	}
	return doc
}

// merge merges the subscriptions of a document, whose marks were merged when they were parsed, and
// records its date and feeds.
func (x *exchange) merge(n *peerUpdate, doc *feedsync.Document) {
	n.read = true
	own := n.peer.name == x.me // the set is lost, and this document restores it
	if s := doc.Sharing; s != nil {
		n.record.Set("wrote", feedsync.FormatDate(latest(parseDate(n.record.Get("wrote")), s.Until)))
		if dates := &x.rep.set.dates; own && doc.Kind == feedsync.OPML {
			dates.subs = latest(dates.subs, s.Until)
		} else if own {
			dates.marks = latest(dates.marks, s.Until)
		}
	}
	if doc.Kind != feedsync.OPML {
		return
	}
	var feeds []string
	for _, it := range doc.Items() {
		if !it.Deleted && !isFolder(it) && entryname.IsFeedHash(it.ID) {
			feeds = append(feeds, it.ID)
		}
	}
	n.record.Set("feeds", strings.Join(feeds, " "))
	for _, id := range x.rep.set.mergeSubs(doc) {
		if !own { // the user's own have no origin
			x.origins[id] = n.peer.place
		}
	}
}

// parse parses a document that came from a place. It passes marks to take one at a time, and does not keep
// them. If the document is broken, parse returns the part before the break, and the error as bad. copied is
// a [CopiedError].
func (x *exchange) parse(place, name string, data []byte, take func(*feedsync.Item)) (
	doc *feedsync.Document, bad, copied error) {
	kind := feedsync.RSS
	if name == subsFile {
		kind = feedsync.OPML
	}
	check := func(it *feedsync.Item) {
		if copied = cmp.Or(copied, x.copied(place, it, kind)); copied == nil && kind == feedsync.RSS {
			take(it)
		}
	}
	doc, bad = feedsync.ParseItems(data, check)
	if doc == nil || doc.Kind != kind {
		return nil, cmp.Or(bad, errors.New("it is a document of another kind")), copied
	}
	for _, it := range doc.Items() {
		check(it)
	}
	return doc, bad, copied
}

// needsComplete reports whether a partial document starts after the date until which the
// peer was read.
func (x *exchange) needsComplete(partial *feedsync.Document, r record) bool {
	s := partial.Sharing
	if s == nil || s.Since.IsZero() && !slices.ContainsFunc(s.Related,
		func(r feedsync.Related) bool { return r.Type == "complete" }) {
		return false // it is a complete document
	}
	before := parseDate(r.Get("until"))
	return before.IsZero() || s.Until.IsZero() || s.Until.Before(before) || s.Since.After(before)
}

// copied returns a [CopiedError] if an item has an update in our name that this lektor-dir never made. An
// update later than our last edit before this run must be in the set, because this run made it.
func (x *exchange) copied(place string, it *feedsync.Item, kind feedsync.Kind) error {
	if place == x.me { // the set is lost, and this document restores it
		return nil
	}
	for _, u := range it.History {
		if u.By != x.me || !u.When.After(x.rep.lastOwnEdit) {
			continue
		}
		if local := x.rep.set.find(kind, it.ID); local == nil || !slices.Contains(local.History, u) {
			return cmdline.Hint(&CopiedError{place, it.ID}, renew)
		}
	}
	return nil
}

// tooSoon returns an error if a server asked for a pause that has not ended.
func tooSoon(place string, rec record, now time.Time) error {
	rest := parseDate(rec.Get("after")).Sub(now)
	if !isURL(place) || rest <= 0 || rest > httpmsg.MaxRetryAfter { // too long: another clock wrote it
		return nil
	}
	return fmt.Errorf("%s: %w, which ends in %s", feedurl.Brief(feedurl.Public(place)), errPause,
		humanize.ShortDuration(rest))
}

func digest(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// read reads all peers and merges their documents. It continues after a peer that cannot be
// read, and fails if another lektor-dir publishes as this endpoint.
func (x *exchange) read(ctx context.Context, quiet bool) error {
	for _, p := range x.peers {
		n, err := x.fetchPeer(ctx, p)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, new(*CopiedError)):
			return err
		case err == errNothing && !p.named:
			// The machine has not published yet, or the directory belongs to no machine.
			if !quiet {
				x.s.Report.Info("%s: %v", p.name, err)
			}
		case err != nil:
			if rec := x.record(p.name); rec.pause(err, x.now) {
				x.updates = append(x.updates, &peerUpdate{peer: p, record: rec, broken: []error{err}})
			}
			for _, e := range humanize.Errors(err) {
				x.s.Report.Print(fmt.Errorf("%s: %w", p.name, e))
				if mayPass(e) || errors.As(e, new(*fs.PathError)) && !errors.Is(e, fs.ErrPermission) {
					x.failed = cmp.Or(x.failed, errRemote)
				} else {
					x.failed = errReported
				}
			}
		}
		if n != nil {
			x.updates = append(x.updates, n)
		}
		if err == nil {
			x.whole++
		}
	}
	return x.overwritten(ctx)
}

// recover restores a lost set from the documents that this endpoint has published. It
// removes the records of all peers, so that all their documents are read again. Otherwise
// items that were deleted there or here would come back.
func (x *exchange) recover(ctx context.Context, dryRun bool) error {
	place := x.home()
	n, err := x.fetchPeer(ctx, peer{name: x.me, place: place})
	if n == nil {
		return cmdline.Hint(fmt.Errorf("the set is missing from %s, and its published documents cannot be read: %w",
			x.path(), err),
			"mount %s; or, to continue without these documents: rm %s", place, x.path(publishedFile))
	}
	for _, e := range humanize.Errors(err) {
		x.s.Report.Print(fmt.Errorf("%s: %w", x.me, e))
	}
	x.rep.lastOwnEdit = latest(x.rep.set.dates.subs, x.rep.set.dates.marks)
	x.rep.set.lastOwnEdit = x.rep.lastOwnEdit
	if dryRun {
		return nil
	}
	x.step()
	return os.RemoveAll(x.path(readDir))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// related returns links to the peers that are read. Paths on this machine are not
// published.
func (x *exchange) related(document string) []feedsync.Related {
	var out []feedsync.Related
	for _, p := range x.peers {
		link := "../" + p.name + "/" + document
		switch {
		case isURL(p.place):
			link = feedurl.Public(strings.TrimSuffix(p.place, "/")) + "/" + document
		case p.named:
			continue
		}
		if atomicfile.Exists(x.path(readDir, p.name)) {
			out = append(out, feedsync.Related{Link: link, Type: "aggregated", Title: p.name})
		}
	}
	return out
}
