package sharer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/feedsync"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/humanize"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/internal/text/xmltext"
)

// view is the part of a set that the documents show. It does not change the set.
type view struct {
	*itemSet
	hide    map[string]bool // feeds that are in no document
	related func(document string) []feedsync.Related
}

// blankMark returns the content of a mark of a feed without subscription. For privacy, it
// does not name the entry.
func blankMark(id string, flag byte) []byte {
	return []byte(`<item><title>(no subscription any more)</title><guid isPermaLink="false">` + xmltext.Text(id) +
		`</guid><category>` + wordOf(flag) + `</category></item>`)
}

// subscriptions returns the document with the subscriptions and folders.
func (v view) subscriptions() *feedsync.Document {
	doc := v.empty(feedsync.OPML)
	hidden := v.hiddenFolders()
	for _, it := range v.subs.Items() {
		if !v.hide[it.ID] && !hidden[it.ID] {
			doc.Append(it)
		}
	}
	doc.SetSharing(&feedsync.Sharing{Until: v.dates.subs, Version: feedsync.SpecVersion, Related: v.related(subsFile)})
	return doc
}

// hiddenFolders returns, for each folder with feeds, whether all of them are hidden.
func (v view) hiddenFolders() map[string]bool {
	t := foldersOf(v.subs)
	hidden := map[string]bool{}
	for _, it := range v.subs.Items() {
		if it.Deleted || isFolder(it) {
			continue
		}
		for id := t.parent[it.ID]; id != ""; id = t.parent[id] {
			others, known := hidden[id]
			hidden[id] = v.hide[it.ID] && (others || !known)
		}
	}
	return hidden
}

// writeMarks writes the complete document of marks, or, with newer, the partial one: marks
// that have changed since the complete document.
func (v view) writeMarks(w io.Writer, newer bool) error {
	doc := v.empty(feedsync.RSS)
	sharing := &feedsync.Sharing{Until: v.dates.complete, Version: feedsync.SpecVersion}
	if newer {
		sharing.Since, sharing.Until = v.dates.complete, v.dates.marks
		if !sharing.Since.IsZero() {
			sharing.Window = int(sharing.Until.Sub(sharing.Since)/(24*time.Hour)) + 1
		}
		sharing.Related = []feedsync.Related{{Link: completeFile, Type: "complete", Until: v.dates.complete}}
	}
	sharing.Related = append(sharing.Related, v.related(partialFile)...)
	doc.SetSharing(sharing)
	return doc.WriteItems(w, func(yield func(*feedsync.Item) bool) {
		for feed, m := range v.marks.sorted(func(m mark) bool { return m.newer || !newer }) {
			if v.hide[feed] {
				continue
			}
			if !yield(v.shown(m)) {
				return
			}
		}
	})
}

// shown returns the form of a mark in a document.
func (v view) shown(m mark) *feedsync.Item {
	it := m.item()
	if feed, _, flag, ours := splitState(it.ID); ours && v.unsubscribed(feed) {
		it = it.Blank(blankMark(it.ID, flag))
	}
	return it
}

// date sets new dates for the documents that have changed since the last commit. It reports
// whether the complete document is written again. With withdrawn, which means that other
// feeds are withheld than before, all documents are written again.
func (s *itemSet) date(withdrawn bool) (complete bool) {
	if s.subsTouched || withdrawn && !s.dates.subs.IsZero() {
		s.dates.subs = s.next(s.dates.subs)
	}
	if len(s.marks.touched) == 0 && (!withdrawn || s.dates.complete.IsZero()) {
		return false
	}
	hidden := s.withheld()
	newer := s.marks.size(true, hidden)
	complete = withdrawn || s.dates.complete.IsZero() ||
		newer+frameSize > max((s.marks.size(false, hidden)-newer)/4, minPartial)
	if s.dates.marks = s.next(s.dates.marks); complete {
		s.dates.complete = s.dates.marks
		s.marks.published()
	}
	return complete
}

// minPartial is the size up to which the partial document may always grow, in bytes.
const minPartial = 4 << 10

// frameSize is the approximate length of a document without items, in bytes.
const frameSize = 1 << 10

// overwritten checks whether another lektor-dir has overwritten our documents since the
// last run. A copy of this lektor-dir that publishes as the same endpoint would overwrite
// our edits, and we its edits, unnoticed. The check runs before the set is saved, while our
// own edits can still be distinguished from those of the copy. A server is asked only about
// documents that are going to be written, with validators: usually the answer is "not
// modified".
func (x *exchange) overwritten(ctx context.Context) error {
	if x.target == "" {
		return nil
	}
	rec, s := x.published(), x.rep.set
	if isURL(x.target) && tooSoon(x.target, rec, x.now) != nil {
		return nil
	}
	for _, name := range documents {
		// Every change of marks also changes the partial document, so a server is never asked for the
		// complete one.
		if isURL(x.target) && (name == completeFile || name == subsFile && !s.subsTouched ||
			name == partialFile && len(s.marks.touched) == 0) {
			continue
		}
		// A document that cannot be read is written again; that reports any error.
		data, err := x.transportAt(x.home()).read(ctx, name, rec)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err == nil && data != nil {
			if err := x.checkOwner(name, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkOwner returns an error if a document in our place was written by another lektor-dir
// that uses our name: it has edits that were not made here, or is newer than the published
// one.
func (x *exchange) checkOwner(name string, data []byte) error {
	place := feedurl.Public(x.home()) + "/" + name
	until := x.rep.before.marks
	if name == subsFile {
		until = x.rep.before.subs
	}
	doc, _, copied := x.parse(place, name, data, func(*feedsync.Item) {})
	if doc == nil || copied != nil {
		return copied
	}
	// If the set is lost, the published documents are all that is left.
	if !x.rep.lost && doc.Sharing != nil && doc.Sharing.Until.After(until) {
		return cmdline.Hint(&CopiedError{place, ""}, renew)
	}
	return nil
}

// version returns the version of a document, "" if there is none.
func (u documentDates) version(name string) string {
	until := u.marks
	switch {
	case name == subsFile:
		until = u.subs
	case name == completeFile || u.complete.IsZero():
		until = u.complete
	}
	// A record separates values by commas.
	return strings.ReplaceAll(feedsync.FormatDate(until), ",", "")
}

// document writes a document.
func (x *exchange) document(name string, w io.Writer) error {
	v := view{itemSet: x.rep.set, hide: x.rep.set.withheld(), related: x.related}
	if name == subsFile {
		return v.subscriptions().Write(w)
	}
	return v.writeMarks(w, name == partialFile)
}

// publish saves the records of the peers that were merged, and publishes the documents. An
// error of the server that may be gone at the next sync counts as one of a peer.
func (x *exchange) publish(ctx context.Context) error {
	for _, n := range x.updates {
		if err := x.write(n.record.Text(), readDir, n.peer.name); err != nil {
			return err
		}
	}
	err := x.publishDocuments(ctx)
	if err == nil || !isURL(x.target) || slices.ContainsFunc(humanize.Errors(err),
		func(e error) bool { return !mayPass(e) }) {
		return err
	}
	x.s.Report.Print(err)
	x.failed = cmp.Or(x.failed, errRemote)
	return nil
}

// publishDocuments writes the documents that differ from those in the target. If the server
// refuses the subscriptions, the marks are written anyway. The partial document of marks
// links to the complete one, so it is not written if the complete one failed.
func (x *exchange) publishDocuments(ctx context.Context) error {
	if x.target == "" {
		return nil
	}
	if err := isThere(x.target); err != nil {
		return err
	}
	rec, to := x.published(), x.transportAt(x.home())
	var bad error
	for _, name := range documents {
		version := x.rep.set.dates.version(name)
		if version == "" || to.has(name, version, rec) {
			continue
		}
		if err := tooSoon(x.target, rec, x.now); err != nil {
			return errors.Join(bad, err)
		}
		err := to.write(ctx, name, version, func(w io.Writer) error { return x.document(name, w) }, rec)
		rec.pause(err, x.now)
		if err = errors.Join(err, x.write(rec.Text(), publishedFile)); err == nil {
			continue
		}
		bad = errors.Join(bad, err)
		// An error that concerns a single document does not stop the next.
		if e, ok := errors.AsType[*httpmsg.StatusError](err); !ok || name != subsFile || !slices.Contains([]int{
			http.StatusRequestEntityTooLarge, http.StatusLocked, http.StatusInsufficientStorage}, e.Status) {
			return bad
		}
	}
	return bad
}

// mayPass reports whether a later sync may succeed though the user does nothing here. The manual has
// the same list (EXIT STATUS).
func mayPass(err error) bool {
	if e, ok := errors.AsType[*httpmsg.StatusError](err); ok {
		switch e.Status {
		case http.StatusRequestTimeout, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests:
			return true
		case http.StatusNotImplemented:
			return false
		}
		return e.Status/100 != 4 // with status 200, a page in place of the answer, for example of a hotel
	}
	switch {
	case errors.Is(err, errNothing), errors.Is(err, errCutOff), errors.Is(err, errPause),
		errors.As(err, new(*brokenError)):
		return true
	case errors.As(err, new(*httpmsg.LimitError)), errors.As(err, new(*httpmsg.PrivateError)):
		return false
	}
	return httpmsg.Remote(err)
}

// PublishOptions are the options of [Publish].
type PublishOptions struct {
	Common
	To  string // directory, or "-" for standard output
	Set string // with "-": subscriptions or state
}

// Publish writes the complete documents to another place than the target.
func Publish(ctx context.Context, o PublishOptions, s *cmdline.Streams) error {
	name, ok := map[string]string{"": subsFile, "subscriptions": subsFile, "state": completeFile}[o.Set]
	if !ok {
		return cmdline.Usagef("--set %s: use subscriptions or state", o.Set)
	}
	r, l, err := o.openRecordingEdits(ctx, false, s)
	if err != nil {
		return err
	}
	defer r.end()
	if err := errors.Join(r.commit(l), r.trouble); err != nil {
		return err
	}
	x, err := r.exchange()
	if err != nil {
		return err
	}
	if o.To == "-" {
		var doc bytes.Buffer
		if err := x.document(name, &doc); err != nil {
			return err
		}
		_, err := s.Out.Write(termsafe.XML(doc.Bytes()))
		return err
	}
	to := directory{path: filepath.Join(o.To, r.me), step: r.step}
	for _, name := range documents {
		if r.rep.set.dates.version(name) == "" {
			continue
		}
		doc := func(w io.Writer) error { return x.document(name, w) }
		if err := to.write(ctx, name, "", doc, record{values.New(' ')}); err != nil {
			return err
		}
	}
	return nil
}
