// Package history stores the state of a feed's documents besides the current one (RFC 5005): which archives
// were read, which is missing, and where automatic walks end.
package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/feeds/feedfiles"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/filelog"
	"github.com/lektordir/lektor/internal/http/limiter"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// The files there. Each value is one line, except archives and complete.
const (
	fileKind     = "kind"         // kind of the feed's document; absent for a plain one
	filePrev     = "prev-archive" // URL of the archive that the document names
	fileNextPage = "next"         // URL of the second page
	// URL of the archive at which automatic walks end, tab, time of the visit that set it
	fileBaseline   = "baseline"
	fileArchives   = "archives"   // a line for each archive whose entries are stored
	fileIncomplete = "incomplete" // URL of the missing archive, tab, reason, tab, time of the record
	fileRetry      = "retry"      // number of failed walks in a row, tab, time of the next walk
	fileComplete   = "complete"   // read by lektordir
	fileFollow     = "follow"     // set by the user, see [feedfiles.PathHistory]
)

// maxArchives is the maximum size of a record of archives, in bytes.
const maxArchives = 64 << 20

// retry is the backoff of automatic walks that end at the same archive.
var retry = limiter.Backoff{Base: 24 * time.Hour, Cap: 30 * 24 * time.Hour}

// History is the state of a feed's history, in the directory etc/history. To write, the caller must
// hold the feed's lock.
type History struct{ dir feedfiles.Dir }

// Of returns the History of a feed.
func Of(d *lektordir.Dir, hash string) *History {
	return &History{feedfiles.In(d, hash, feedfiles.AreaHistory)}
}

// Exists reports whether there is any state.
func (h *History) Exists() bool { return h.dir.Exists() }

// Follow reports whether archives are fetched automatically. The user can turn that off.
func (h *History) Follow() bool {
	return !strings.EqualFold(strings.TrimSpace(h.dir.Line(fileFollow)), "off")
}

// Linked holds the kind and the links of the feed's own document when it was last parsed.
type Linked struct {
	Kind       rfc5005.Kind
	Prev, Next string
}

// Linked returns the recorded Linked.
func (h *History) Linked() Linked {
	return Linked{rfc5005.Kind(h.dir.Line(fileKind)), h.dir.Line(filePrev), h.dir.Line(fileNextPage)}
}

// SetLinked records l durably, because an unmodified document is not parsed again, so that its archives
// would be missed. If Prev is "", SetLinked clears the gap.
func (h *History) SetLinked(l Linked) error {
	err := errors.Join(h.dir.RecordDurably(filePrev, feedfiles.OneField(l.Prev)),
		h.dir.RecordDurably(fileNextPage, feedfiles.OneField(l.Next)),
		h.dir.RecordDurably(fileKind, string(l.Kind)))
	if l.Prev == "" {
		err = errors.Join(err, h.ClearGap())
	}
	return err
}

// Baseline returns where automatic walks end.
func (h *History) Baseline() rfc5005.Baseline {
	modified, ok := feedfiles.ModTime(h.dir.Path(fileBaseline))
	if !ok {
		return rfc5005.Baseline{}
	}
	url, since, _ := strings.Cut(h.dir.Line(fileBaseline), "\t")
	if url == "-" {
		url = ""
	}
	b := rfc5005.Baseline{URL: url, Since: modified}
	if t, err := time.Parse(time.RFC3339, since); err == nil {
		b.Since = t
	}
	return b
}

// SetBaseline sets the baseline; the zero value removes it.
func (h *History) SetBaseline(b rfc5005.Baseline) error {
	return h.dir.RecordDurably(fileBaseline, baselineLine(b))
}

func baselineLine(b rfc5005.Baseline) string {
	if !b.Set() {
		return ""
	}
	return cmp.Or(feedfiles.OneField(b.URL), "-") + "\t" + b.Since.UTC().Format(time.RFC3339)
}

// MoveBaseline moves the baseline to the archive that the document names now. Call it after a visit or walk
// that left no entries missing; began is its start. The change is not synced. A feed without archives
// has no baseline.
func (h *History) MoveBaseline(began time.Time) error {
	b := rfc5005.Baseline{URL: h.dir.Line(filePrev), Since: began}
	if b.URL == "" {
		old := h.Baseline()
		if b.URL = old.URL; !old.Set() {
			return nil
		}
	}
	return h.dir.Record(fileBaseline, baselineLine(b))
}

// Gap is a missing archive. All older archives are missing, too.
type Gap struct{ URL, Reason string }

// String returns the gap in one line, safe for a terminal.
func (g *Gap) String() string {
	return termsafe.Brief(feedurl.Brief(g.URL)) + ": " + termsafe.Brief(g.Reason)
}

// Gap returns the recorded gap of a feed, nil if there is none.
func (h *History) Gap() *Gap {
	line := h.dir.Line(fileIncomplete)
	if line == "" {
		return nil
	}
	f := append(strings.Split(line, "\t"), "")
	return &Gap{URL: f[0], Reason: f[1]}
}

// Missing records the gap after a walk, and the time of the next automatic walk. It reports whether the
// gap is new. progress reports whether the walk got further than the previous one; after is the minimum
// wait that a server asked for.
func (h *History) Missing(now time.Time, url, reason string, progress bool, after time.Duration) (isNew bool,
	err error) {
	url, reason = feedfiles.OneField(feedurl.Public(url)), feedfiles.OneField(termsafe.Brief(reason))
	old := h.Gap()
	tries := 0
	if old != nil && !progress {
		n, _, _ := strings.Cut(h.dir.Line(fileRetry), "\t")
		tries, _ = strconv.Atoi(n)
	}
	tries = max(tries, 0) + 1
	next := now.Add(retry.Wait(tries, 0, after)).UTC().Format(time.RFC3339)
	isNew = old == nil || old.URL != url || old.Reason != reason
	if isNew {
		err = h.dir.RecordDurably(fileIncomplete, strings.Join([]string{url, reason, now.UTC().Format(time.RFC3339)},
			"\t"))
	}
	return isNew, errors.Join(err, h.dir.RecordDurably(fileRetry, strconv.Itoa(tries)+"\t"+next))
}

// Retry returns the time from which an automatic walk may request a missing archive again.
func (h *History) Retry() time.Time {
	_, next, _ := strings.Cut(h.dir.Line(fileRetry), "\t")
	t, _ := time.Parse(time.RFC3339, next)
	return t
}

// ClearGap records that there is no gap.
func (h *History) ClearGap() error {
	return errors.Join(h.dir.RecordDurably(fileRetry, ""), h.dir.RecordDurably(fileIncomplete, ""))
}

// CompletePath returns the path of the file that [History.Present] writes, below src/.
func CompletePath(hash string) string {
	return feedfiles.SettingsPath(hash) + "/" + feedfiles.AreaHistory + "/" + fileComplete
}

// Present records the entries of a document that is marked complete, in its order, by the 16 digits
// of their unique names; see [lektordir.Dir.Complete].
func (h *History) Present(identities []string) error {
	if len(identities) > 0 {
		return h.dir.RecordDurably(fileComplete, identities...)
	}
	if err := h.dir.Make(); err != nil {
		return err
	}
	return atomicfile.Write(h.dir.Path(fileComplete), nil) // no entries: without the file, all would be shown
}

// NotComplete records that the document of a feed is not marked complete.
func (h *History) NotComplete() error {
	return h.dir.RecordDurably(fileComplete, "")
}

// Forget removes the files of a subscription. The record of archives stays, like the journal:
// delivered archives are not fetched again.
func (h *History) Forget() (bad error) {
	for _, name := range []string{fileKind, filePrev, fileNextPage, fileBaseline, fileRetry, fileIncomplete,
		fileFollow} {
		bad = errors.Join(bad, h.dir.Record(name))
	}
	return bad
}

// archiveLine returns a line of the record: six fields separated by tabs, "-" for an empty one, and
// the CRC-32C of everything before it, in hexadecimal.
func archiveLine(s rfc5005.Stored) []byte {
	f := []string{s.URL, s.Final, s.Self, s.Prev, s.Digest, s.Time.UTC().Format(time.RFC3339)}
	for i := range f {
		f[i] = cmp.Or(feedfiles.OneField(f[i]), "-")
	}
	return filelog.Seal([]byte(strings.Join(f, "\t")+"\t"), 0)
}

// parseArchive parses a line without its newline.
func parseArchive(line []byte) (s rfc5005.Stored, ok bool) {
	text, ok := filelog.Unseal(line)
	f := strings.Split(string(text), "\t")
	if !ok || len(f) != 7 || f[6] != "" {
		return s, false
	}
	for i, v := range f[:6] {
		if v == "-" {
			f[i] = ""
		}
	}
	s = rfc5005.Stored{URL: f[0], Final: f[1], Self: f[2], Prev: f[3], Digest: f[4]}
	s.Time, _ = time.Parse(time.RFC3339, f[5])
	return s, s.URL != "" && s.Final != ""
}

// Archives reads the record of archives. It skips damaged lines: such an archive is fetched again,
// and its entries are not delivered twice.
func (h *History) Archives() (*rfc5005.Record, error) {
	data, err := filelog.Read(h.dir.Path(fileArchives), archivesLog)
	if err != nil {
		return nil, err
	}
	r := &rfc5005.Record{}
	for line := range bytes.Lines(data) {
		if s, ok := parseArchive(bytes.TrimSuffix(line, []byte{'\n'})); ok {
			r.Add(s)
		}
	}
	return r, nil
}

// archivesLog are the options of the log of archives.
var archivesLog = filelog.Options{Valid: func(line []byte) bool { _, ok := parseArchive(line); return ok },
	Max: maxArchives}

// Store adds an archive to the record. Its entries must be durable. Store does not sync: a lost
// line costs a request.
func (h *History) Store(s rfc5005.Stored) error {
	if err := h.dir.Make(); err != nil {
		return err
	}
	log, _, err := filelog.Open(h.dir.Path(fileArchives), archivesLog)
	if err != nil {
		return err
	}
	return errors.Join(log.Append(archiveLine(s)), log.Close())
}

// Walk returns a walk that starts at the feed's own document, whose URLs are own. If the user asked for
// it, it walks to the first archive. Otherwise it ends at the baseline, and does not request a missing
// archive before [History.Retry].
func (h *History) Walk(now time.Time, asked bool, own ...string) (*rfc5005.Walk, error) {
	record, err := h.Archives()
	if err != nil {
		return nil, err
	}
	w := rfc5005.NewWalk(record, h.dir.Line(filePrev), own...)
	if gap := h.Gap(); gap != nil {
		w.Gap = gap.URL
		w.Later = !asked && now.Before(h.Retry())
	}
	if !asked {
		w.Baseline = h.Baseline()
		if w.Baseline.Since.After(now.Add(feedfiles.ClockSkew)) {
			// The baseline was set while the clock was ahead. It is ignored, so that no entry is
			// missed.
			w.Baseline.Since = time.Unix(0, 0)
		}
	}
	return w, nil
}

// WalkDue reports whether an automatic walk is due: if the archive that the feed's document names is not
// stored (RFC 5005, section 4.2), or if a missing archive may be requested again. whole is true if no
// archive is missing or still to be requested. own holds the URLs of the document.
func (h *History) WalkDue(now time.Time, own ...string) (due, whole bool) {
	if h.dir.Line(filePrev) == "" {
		return false, true
	}
	w, err := h.Walk(now, false, own...)
	if err != nil {
		return h.Follow(), false // the walk reports the error
	}
	_, _, ask := w.Next()
	gap := w.Gap != "" || w.Stopped() != nil
	again := gap && !now.Before(h.Retry())
	return (ask || again) && h.Follow(), !ask && !gap
}

// Stored reports whether there is a record of archives, even if it cannot be read.
func (h *History) Stored() bool {
	return atomicfile.Exists(h.dir.Path(fileArchives))
}

// Sync makes the record of archives durable.
func (h *History) Sync() error {
	f, err := atomicfile.Optional(os.Open(h.dir.Path(fileArchives)))
	if f == nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Summary describes the history of a feed in a list of subscriptions: "complete", "archived" and
// the number of stored archives, "paged", "incomplete" if something is missing, or "".
func (h *History) Summary() string {
	if !h.Exists() {
		return ""
	}
	kind := h.Linked().Kind
	_, whole := h.WalkDue(time.Time{})
	switch {
	case h.Gap() != nil, !whole && h.Follow():
		return "incomplete"
	case kind == rfc5005.Archived, kind == rfc5005.Archive:
		n := 0
		if r, err := h.Archives(); err == nil {
			n = r.Len()
		}
		return fmt.Sprintf("%s %d", rfc5005.Archived, n)
	case slices.Contains([]rfc5005.Kind{rfc5005.Complete, rfc5005.Paged}, kind):
		return string(kind)
	}
	return ""
}
