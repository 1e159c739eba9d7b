package sharer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedsync"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/joined"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/internal/units"
)

// anotherTarget is what to do about a target that is none.
const anotherTarget = "mount it, or choose another with: lektor-share init DIR"

// peer is another endpoint.
type peer struct {
	name  string
	place string // a directory or a URL that holds its documents
	named bool   // by the user, and not found in the target
}

// peers gives those that are read, as they were when it was asked first.
func (h *share) peers() ([]peer, error) {
	var err error
	if h.allPeers == nil {
		h.allPeers, err = h.listPeers()
	}
	return h.allPeers, err
}

// listPeers lists those that are read: all directories beside our own in a target that is
// one, and those that the user named.
func (h *share) listPeers() ([]peer, error) {
	out := []peer{}
	if h.target != "" && !isURL(h.target) {
		names, err := os.ReadDir(h.target)
		if errors.Is(err, syscall.ENOTDIR) {
			err = command.Hint(err, anotherTarget)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, n := range names {
			// Only what can be an endpoint's is one: services of synchronisation
			// have directories of their own.
			if fi, err := os.Stat(filepath.Join(h.target, n.Name())); err == nil && fi.IsDir() && n.Name() != h.me && peerName(n.Name()) {
				out = append(out, peer{name: n.Name(), place: filepath.Join(h.target, n.Name())})
			}
		}
	}
	names, err := os.ReadDir(h.path(peersDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, n := range names {
		if !peerName(n.Name()) {
			continue
		}
		place, err := atomicfile.Line(h.path(peersDir, n.Name()))
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

// peerName tells whether a peer can be called so: it is the name of a file.
func peerName(name string) bool {
	return feedsync.IsNSS(name) && name[0] != '.' && len(name) <= 200 && name != "*"
}

// record is what is known of a peer, etc/share/read/NAME: values by name, a line each.
type record map[string]string

func (h *share) record(name string) record {
	r := record{}
	data, _ := atomicfile.Read(h.path(readDir, name), maxDocument)
	for l := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(strings.TrimSuffix(l, "\n"), " "); ok {
			r[k] = v
		}
	}
	return r
}

// knows tells whether a document was read.
func (r record) knows(name string) bool { return r[name]+r[name+".etag"]+r[name+".modified"] != "" }

// forget makes a document one that was not read.
func (r record) forget(name string) {
	delete(r, name)
	r.forgetValidators(name)
}

// forgetValidators makes the next request for a document one without conditions.
func (r record) forgetValidators(name string) {
	delete(r, name+".etag")
	delete(r, name+".modified")
}

// writeRecord writes a record, with the names in order.
func (h *share) writeRecord(name string, r record) error {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(r)) {
		if r[k] != "" {
			b.WriteString(k + " " + strings.ReplaceAll(r[k], "\n", " ") + "\n")
		}
	}
	_, err := h.private(h.path(readDir, name), []byte(b.String()))
	return err
}

// errMissing tells that a peer has no such document, and errNothing that it has none.
var (
	errMissing = errors.New("there is no such document")
	errNothing = errors.New("it has published nothing yet")
)

// get reads a document of a peer; nil when it is what was read before.
func (h *share) get(ctx context.Context, p peer, name string, r record) ([]byte, error) {
	if !isURL(p.place) {
		path := filepath.Join(p.place, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, errMissing
		} else if err != nil {
			return nil, err
		}
		is := identity(path)
		if r[name] == is {
			return nil, nil
		}
		data, err := atomicfile.Read(path, maxDocument)
		r[name] = is
		return data, err
	}
	req := &fetch.Request{URL: strings.TrimSuffix(p.place, "/") + "/" + name, ETag: r[name+".etag"], LastModified: r[name+".modified"]}
	if h.isTarget(p.place) {
		header, err := h.headers()
		if err != nil {
			return nil, err
		}
		req.Header = header
	}
	resp, err := h.client().Get(ctx, req)
	var status *fetch.StatusError
	switch {
	case errors.As(err, &status) && (status.Status == http.StatusNotFound || status.Status == http.StatusGone):
		return nil, errMissing
	case status != nil:
		return nil, h.askedInVain(p, status)
	case err != nil:
		return nil, err
	case resp.NotModified:
		return nil, nil
	case resp.Truncated:
		return nil, errors.New("it was cut off on the way")
	}
	r[name+".etag"], r[name+".modified"] = resp.ETag, resp.LastModified
	return resp.Body, nil
}

// askedInVain says of an answer without a document what is to be done.
func (h *share) askedInVain(p peer, e *fetch.StatusError) error {
	if e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden {
		return e
	}
	err := &fetch.StatusError{URL: e.URL, Status: e.Status, Detail: "this machine may not read there"}
	if !h.isTarget(p.place) {
		return command.Hint(err, "the headers of %s are for the server of the target alone; this one has to let everybody read, by an address that nobody guesses", h.path(headersFile))
	}
	return command.Hint(err, "%s", h.password())
}

// password says where that for the target's server goes.
func (h *share) password() string {
	return fmt.Sprintf("put the header that the server wants, as Authorization, into %s; or say user and password in the URL of lektor-share init", h.path(headersFile))
}

// isTarget tells whether the headers for the target are for a URL, too.
func (h *share) isTarget(place string) bool {
	return isURL(h.target) && fetch.SameOrigin(h.target, place)
}

// headers are those of requests to the target.
func (h *share) headers() (http.Header, error) {
	text, err := atomicfile.Read(h.path(headersFile), atomicfile.MaxLine)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if fi, err := os.Stat(h.path(headersFile)); err == nil && fi.Mode().Perm()&0o077 != 0 {
		return nil, command.Hint(fmt.Errorf("%s can be read by others", h.path(headersFile)), "chmod 600 %s", h.path(headersFile))
	}
	header, err := fetch.ParseHeaders(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.path(headersFile), err)
	}
	return header, nil
}

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
	read   bool                 // there was something
	record record
	broken bool // a document of it is
}

// brokenError tells that a document of a peer could not be read to its end.
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
// beginning, until when it reaches, nothing is kept. The error tells of those that are
// broken; any other one tells that nothing was read.
func (h *share) fetchPeer(ctx context.Context, p peer) (*news, error) {
	n := &news{peer: p, record: h.record(p.name)}
	if h.lost || n.record["place"] != digest([]byte(p.place)) {
		n.record = record{"place": digest([]byte(p.place)), "success": n.record["success"]}
	}
	if err := h.tooSoon(p.place, n.record); err != nil {
		return nil, err
	}
	delete(n.record, "after")
	found := false
	var broken []error
	read := func(name string, kind feedsync.Kind) (*feedsync.Document, error) {
		doc, err := h.fetchDocument(ctx, n, name, kind)
		if err == errMissing {
			return nil, nil
		}
		found = true
		if b := (*brokenError)(nil); errors.As(err, &b) {
			// The bytes of an unread document are no watermark.
			n.record.forget(name)
			broken = append(broken, err)
			return nil, nil
		}
		return doc, err
	}
	if _, err := read(subsFile, feedsync.OPML); err != nil {
		return nil, err
	}
	partial, err := read(partialFile, feedsync.RSS)
	if err != nil {
		return nil, err
	}
	if partial != nil && h.needsComplete(partial, n.record) {
		// Whatever was read of it before is too old.
		n.record.forget(completeFile)
		before := len(broken)
		if _, err := read(completeFile, feedsync.RSS); err != nil {
			return nil, err
		}
		if len(broken) > before {
			// What is in between is not known: the partial one does not reach back
			// the next time, either.
			n.record.forget(partialFile)
			partial = nil
		}
	} else if partial == nil && !n.record.knows(partialFile) {
		if _, err := read(completeFile, feedsync.RSS); err != nil {
			return nil, err
		}
	}
	if partial != nil {
		n.record["until"] = ""
		if partial.Sharing != nil {
			n.record["until"] = feedsync.FormatDate(partial.Sharing.Until)
		}
	}
	if !found {
		return nil, errNothing
	}
	n.broken = len(broken) > 0
	return n, errors.Join(broken...)
}

// fetchDocument reads a document of a peer; nil if it is what was read before.
func (h *share) fetchDocument(ctx context.Context, n *news, name string, kind feedsync.Kind) (*feedsync.Document, error) {
	data, err := h.get(ctx, n.peer, name, n.record)
	if err != nil || data == nil {
		return nil, err
	}
	h.needs(int(parsedWeight * float64(len(data))))
	doc, bad := parse(data, kind)
	if bad != nil && isURL(n.peer.place) && isPage(http.StatusOK, data) {
		doc, bad = nil, errors.New(aPage)
	}
	if doc == nil {
		return nil, &brokenError{name, bad, 0}
	}
	warnings := command.Warnings{Report: h.s.Report}
	for _, problem := range doc.Problems {
		warnings.Warn("%s: %s: %s", n.peer.name, name, termsafe.Brief(problem.String()))
	}
	if err := h.own(n.peer, doc); err != nil {
		return nil, err
	}
	n.docs, n.read = append(n.docs, doc), true
	if bad != nil {
		return nil, &brokenError{name, bad, doc.Len()}
	}
	return doc, nil
}

// needsComplete tells whether a partial document does not reach back to what was read
// last.
func (h *share) needsComplete(partial *feedsync.Document, r record) bool {
	s := partial.Sharing
	if s == nil || s.Since.IsZero() && !slices.ContainsFunc(s.Related, func(r feedsync.Related) bool { return r.Type == "complete" }) {
		return false // it is complete itself
	}
	before, ok := feedsync.ParseDate(r["until"])
	return !ok || s.Until.IsZero() || s.Until.Before(before) || s.Since.After(before)
}

// own looks for updates by our own endpoint that we never made: later than all that it
// had made before this run, and not of this run.
func (h *share) own(p peer, doc *feedsync.Document) error {
	var ours set = h.states
	if doc.Kind == feedsync.OPML {
		ours = h.subs
	}
	for _, it := range doc.Items() {
		for _, u := range it.History {
			if u.By != h.me || !u.When.After(h.madeBefore) {
				continue
			}
			if local := ours.Item(it.ID); local == nil || !slices.Contains(local.History, u) {
				return command.Hint(&CopiedError{p.name, it.ID}, renew)
			}
		}
	}
	return nil
}

// published looks whether a document that stands where this endpoint publishes is from
// elsewhere: it has edits that were not made here, or is newer than what was.
func (h *share) published(place, name string, doc *feedsync.Document) error {
	if err := h.own(peer{name: place}, doc); err != nil {
		return err
	}
	// When a document of the set is lost, what is published is all that there is.
	if !h.lost && doc.Sharing != nil && doc.Sharing.Until.After(h.untils[name]) {
		return command.Hint(&CopiedError{place, ""}, renew)
	}
	return nil
}

// leftAlone is how long the server wants to be left alone that an error is of.
func leftAlone(err error) time.Duration {
	if e, ok := errors.AsType[*fetch.StatusError](err); ok {
		return e.RetryAfter
	}
	if e, ok := errors.AsType[*fetch.HostDelayError](err); ok {
		return e.Left
	}
	return 0
}

// tooSoon is the error for a request to a server that wanted to be left alone for longer
// when it was asked last.
func (h *share) tooSoon(place string, r record) error {
	after, _ := feedsync.ParseDate(r["after"])
	left := after.Sub(h.now)
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

// readPeers reads all peers, and merges what they have into the set; changed are the
// ids of what is new of states. One that cannot be read does not keep the others; failed
// is how many.
func (h *share) readPeers(ctx context.Context, quiet bool) (all []*news, changed map[string]bool, failed int, err error) {
	peers, err := h.peers()
	if err != nil || len(peers) == 0 {
		return nil, nil, 0, err
	}
	changed, h.leaveAlone = map[string]bool{}, map[string]time.Time{}
	for _, p := range peers {
		n, err := h.fetchPeer(ctx, p)
		var copied *CopiedError
		switch {
		case ctx.Err() != nil:
			return nil, nil, 0, context.Cause(ctx)
		case errors.As(err, &copied):
			return nil, nil, 0, err
		case err == errNothing && !p.named:
			// A machine that has just begun, or no machine's directory.
			if !quiet {
				h.s.Report.Info("%s: %v", p.name, err)
			}
		case err != nil:
			failed++
			if wait := leftAlone(err); wait > 0 {
				h.leaveAlone[p.name] = h.now.Add(wait)
			}
			for _, e := range joined.Errors(err) {
				h.s.Report.Print(fmt.Errorf("%s: %w", p.name, e))
			}
		}
		if n != nil {
			h.readNow[p.name] = true
			h.merge(n, changed)
			all = append(all, n)
		}
	}
	return all, changed, failed, nil
}

// merge merges what a peer has into the set.
func (h *share) merge(n *news, changed map[string]bool) {
	for _, doc := range n.docs {
		if doc.Kind == feedsync.OPML {
			for _, c := range h.subs.Merge(doc, feedsync.Rules{Equal: sameOutline}) {
				h.touch(h.subs)
				if c.Incoming && isURL(n.peer.place) {
					h.origins[c.Item.ID] = n.peer.place
				}
			}
			continue
		}
		for _, id := range h.states.merge(doc, feedsync.Rules{Equal: sameState}) {
			h.touch(h.states)
			changed[id] = true
		}
	}
	n.docs = nil // there may be many peers, each with all that there is
}
