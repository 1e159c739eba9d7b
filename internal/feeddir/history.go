package feeddir

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/atomicfile"
	"github.com/lektordir/lektor/internal/backoff"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/filelog"
	"github.com/lektordir/lektor/internal/history"
	"github.com/lektordir/lektor/internal/termsafe"
	"github.com/lektordir/lektor/lektordir"
)

// areaHistory is where is kept what is known of the documents of a feed beside the
// one that is subscribed to (RFC 5005).
const areaHistory = "history"

// The files there. Values are one line but for archives and complete.
const (
	historyFile = "etc/history/follow" // user's: on or off

	fileKind       = "kind"         // of the document that is subscribed to, none for a plain one
	filePrev       = "prev-archive" // URL, of the archive that it names
	fileNextPage   = "next"         // URL, of its second page
	fileBaseline   = "baseline"     // URL of the archive at which automatic walks end, tab, since when
	fileArchives   = "archives"     // a line for each archive whose entries are stored
	fileIncomplete = "incomplete"   // URL of the archive that is missing, tab, why, tab, since when
	fileRetry      = "retry"        // failed walks in a row, tab, when the next may be made
	fileComplete   = "complete"     // lektordir reads it
)

// maxArchives is how much of a record of archives is read, in bytes.
const maxArchives = 64 << 20

// retry is between automatic walks that end at the same archive.
var retry = backoff.Backoff{Base: 24 * time.Hour, Cap: 30 * 24 * time.Hour}

// History is what is known of the documents of a feed beside the one that is
// subscribed to: the directory etc/history. Its user holds the feed's lock where
// something is written.
type History struct {
	d    *lektordir.Dir
	hash string
}

// HistoryOf gives that of a feed.
func HistoryOf(d *lektordir.Dir, hash string) *History { return &History{d, hash} }

func (h *History) path(name string) string {
	return filepath.Join(drawer(h.d, h.hash, areaHistory), name)
}

func (h *History) line(name string) string {
	v, _ := atomicfile.Line(h.path(name))
	return v
}

// write writes a file durably, and touches none that holds the value already. "" has
// none.
func (h *History) write(name, value string) error {
	return recordDurably(h.d, h.hash, areaHistory, name, asLines(value))
}

// Exists tells whether anything is known.
func (h *History) Exists() bool {
	_, err := os.Lstat(drawer(h.d, h.hash, areaHistory))
	return err == nil
}

// Follow tells whether archives are fetched unasked. The user may say no.
func (h *History) Follow() bool {
	v, _ := atomicfile.Line(h.d.Join("src", h.hash, historyFile))
	return !strings.EqualFold(strings.TrimSpace(v), "off")
}

// Linked is what the document that is subscribed to said of others when it was read
// last.
type Linked struct {
	Kind       history.Kind
	Prev, Next string
}

// Linked reads it.
func (h *History) Linked() Linked {
	return Linked{history.Kind(h.line(fileKind)), h.line(filePrev), h.line(fileNextPage)}
}

// SetLinked records it, durably where it changed: a document that has not been
// modified is not read again, and its archives would be missed. Without an archive,
// nothing is missing any more.
func (h *History) SetLinked(l Linked) error {
	if l == (Linked{}) && !h.Exists() {
		return nil
	}
	err := errors.Join(h.write(filePrev, OneField(l.Prev)), h.write(fileNextPage, OneField(l.Next)), h.write(fileKind, string(l.Kind)))
	if l.Prev == "" {
		err = errors.Join(err, h.Whole())
	}
	return err
}

// Baseline is where automatic walks end.
func (h *History) Baseline() history.Baseline {
	modified, ok := mtime(h.path(fileBaseline))
	if !ok {
		return history.Baseline{}
	}
	url, since, _ := strings.Cut(h.line(fileBaseline), "\t")
	if url == "-" {
		url = ""
	}
	b := history.Baseline{URL: url, Since: modified}
	if t, err := time.Parse(time.RFC3339, since); err == nil {
		b.Since = t
	}
	return b
}

// SetBaseline sets it; the zero value removes it.
func (h *History) SetBaseline(b history.Baseline) error {
	return h.write(fileBaseline, baselineLine(b))
}

func baselineLine(b history.Baseline) string {
	if !b.Set() {
		return ""
	}
	return cmp.Or(OneField(b.URL), "-") + "\t" + b.Since.UTC().Format(time.RFC3339)
}

// Settle moves the baseline after a visit, or a walk, that began at a time and left
// nothing missing. A power cut may undo it, and leave the one before. Of a feed without
// archives nothing is kept.
func (h *History) Settle(began time.Time) error {
	b := history.Baseline{URL: h.line(filePrev), Since: began}
	if b.URL == "" {
		old := h.Baseline()
		if b.URL = old.URL; !old.Set() {
			return nil
		}
	}
	return record(h.d, h.hash, areaHistory, fileBaseline, asLines(baselineLine(b)))
}

// Gap is an archive that is missing, and what is older with it.
type Gap struct {
	URL, Reason string
	Since       time.Time // zero when unknown
}

// String is for the user, and fit for a line of a terminal.
func (g *Gap) String() string {
	return termsafe.Brief(fetch.Brief(g.URL)) + ": " + termsafe.Brief(g.Reason)
}

// Gap gives what is missing of a feed, nil when it is not known that anything is.
func (h *History) Gap() *Gap {
	line := h.line(fileIncomplete)
	if line == "" {
		return nil
	}
	f := append(strings.Split(line, "\t"), "", "")
	g := &Gap{URL: f[0], Reason: f[1]}
	g.Since, _ = time.Parse(time.RFC3339, f[2])
	return g
}

// Missing records what is missing after a walk, and when the next may be made of
// itself. It reports whether that is news. Progress tells that the walk got further
// than the one before; after is the least time that a server wants until then.
func (h *History) Missing(now time.Time, url, reason string, progress bool, after time.Duration) (news bool, err error) {
	url, reason = OneField(fetch.Public(url)), OneField(termsafe.Brief(reason))
	old := h.Gap()
	tries := 0
	if old != nil && !progress {
		n, _, _ := strings.Cut(h.line(fileRetry), "\t")
		tries, _ = strconv.Atoi(n)
	}
	tries = max(tries, 0) + 1
	next := now.Add(retry.Wait(tries, 0, after)).UTC().Format(time.RFC3339)
	news = old == nil || old.URL != url || old.Reason != reason
	if news {
		err = h.write(fileIncomplete, strings.Join([]string{url, reason, now.UTC().Format(time.RFC3339)}, "\t"))
	}
	return news, errors.Join(err, h.write(fileRetry, strconv.Itoa(tries)+"\t"+next))
}

// Retry tells when a walk that ended too early may be made again of itself.
func (h *History) Retry() time.Time {
	_, next, _ := strings.Cut(h.line(fileRetry), "\t")
	t, _ := time.Parse(time.RFC3339, next)
	return t
}

// Whole records that nothing is missing that a walk would find.
func (h *History) Whole() error {
	return errors.Join(h.write(fileRetry, ""), h.write(fileIncomplete, ""))
}

// CompletePath is where [History.Present] records, below src/, for those who want to know
// whether it has since.
func CompletePath(hash string) string {
	return SettingsPath(hash) + "/" + areaHistory + "/" + fileComplete
}

// SettingsPath is the directory of what programs and users keep about a feed, below src/.
func SettingsPath(hash string) string { return hash + "/etc" }

// Present records the entries of a document that says that it is complete, in its
// order, by the 16 digits of their unique names; see [lektordir.Dir.Complete].
func (h *History) Present(identities []string) error {
	text := asLines(identities...)
	old, err := atomicfile.Read(h.path(fileComplete), maxArchives)
	if err == nil && string(old) == text {
		return nil
	}
	if err := h.mkdir(); err != nil {
		return err
	}
	return atomicfile.Write(h.path(fileComplete), []byte(text))
}

// NotComplete records that the document of a feed does not say that it is complete.
func (h *History) NotComplete() error {
	if !atomicfile.Exists(h.path(fileComplete)) {
		return nil
	}
	return h.write(fileComplete, "")
}

func (h *History) mkdir() error {
	if err := Guard(h.d, h.hash, areaHistory); err != nil {
		return err
	}
	return os.MkdirAll(drawer(h.d, h.hash, areaHistory), 0o777)
}

// forget removes what belongs to a subscription. The record of archives stays, as the
// journal does: what was delivered is not fetched again.
func (h *History) forget() error {
	if err := Guard(h.d, h.hash, areaHistory); err != nil {
		return err
	}
	var bad error
	for _, name := range []string{fileKind, filePrev, fileNextPage, fileBaseline, fileRetry, fileIncomplete, filepath.Base(historyFile)} {
		bad = errors.Join(bad, remove(h.path(name)))
	}
	return bad
}

var historyCRC = crc32.MakeTable(crc32.Castagnoli)

// archiveLine is a line of the record: six fields with tabs between them, those that
// are empty "-", and the CRC-32C of all before it, in hexadecimal.
func archiveLine(s history.Stored) []byte {
	f := []string{s.URL, s.Final, s.Self, s.Prev, s.Digest, s.Time.UTC().Format(time.RFC3339)}
	for i := range f {
		f[i] = cmp.Or(OneField(f[i]), "-")
	}
	line := strings.Join(f, "\t") + "\t"
	return fmt.Appendf(nil, "%s%08x\n", line, crc32.Checksum([]byte(line), historyCRC))
}

// parseArchive reads a line without its newline.
func parseArchive(line []byte) (s history.Stored, ok bool) {
	i := bytes.LastIndexByte(line, '\t') + 1
	f := strings.Split(string(line), "\t")
	if len(f) != 7 || f[6] != fmt.Sprintf("%08x", crc32.Checksum(line[:i], historyCRC)) {
		return s, false
	}
	for i, v := range f[:6] {
		if v == "-" {
			f[i] = ""
		}
	}
	s = history.Stored{URL: f[0], Final: f[1], Self: f[2], Prev: f[3], Digest: f[4]}
	s.Time, _ = time.Parse(time.RFC3339, f[5])
	return s, s.URL != "" && s.Final != ""
}

// Archives reads the record of archives. Lines that do not count are passed over: the
// archive is fetched again, and what was in it is known.
func (h *History) Archives() (*history.Record, error) {
	data, err := filelog.Read(h.path(fileArchives), archivesLog)
	if err != nil {
		return nil, err
	}
	r := &history.Record{}
	for line := range bytes.Lines(data) {
		if s, ok := parseArchive(bytes.TrimSuffix(line, []byte{'\n'})); ok {
			r.Add(s)
		}
	}
	return r, nil
}

// archivesLog is the record of archives: a log whose lines that do not count are passed over.
var archivesLog = filelog.Options{Valid: func(line []byte) bool { _, ok := parseArchive(line); return ok }, Max: maxArchives}

// Store adds an archive to the record, whose entries must be durable. It does not sync: a
// line that is lost costs a request.
func (h *History) Store(s history.Stored) error {
	if err := h.mkdir(); err != nil {
		return err
	}
	log, _, err := filelog.Open(h.path(fileArchives), archivesLog)
	if err != nil {
		return err
	}
	return errors.Join(log.Append(archiveLine(s)), log.Close())
}

// Walk prepares a walk from the document that is subscribed to, whose URLs are own. One
// that the user asked for goes to the first archive, another ends at the baseline, and
// leaves what is missing alone until it may be tried again.
func (h *History) Walk(now time.Time, asked bool, own ...string) (*history.Walk, error) {
	record, err := h.Archives()
	if err != nil {
		return nil, err
	}
	w := history.NewWalk(record, h.line(filePrev), own...)
	if gap := h.Gap(); gap != nil {
		w.Gap = gap.URL
		w.Later = !asked && now.Before(h.Retry())
	}
	if !asked {
		w.Baseline = h.Baseline()
		if w.Baseline.Since.After(now.Add(clockSkew)) {
			// The clock was wrong then. Archives are news rather than nothing.
			w.Baseline.Since = time.Unix(0, 0)
		}
	}
	return w, nil
}

// WalkDue reports whether a walk through the archives of a feed is to be made unasked:
// when the archive that its document names is not stored (RFC 5005, section 4.2), or
// when what was missing may be asked for again. Where it is not, whole reports whether
// nothing is missing. own are the URLs of the document.
func (h *History) WalkDue(now time.Time, own ...string) (due, whole bool) {
	if h.line(filePrev) == "" {
		return false, true
	}
	w, err := h.Walk(now, false, own...)
	if err != nil {
		return h.Follow(), false // the walk says why
	}
	_, _, ask := w.Next()
	gap := w.Gap != "" || w.Stopped() != nil
	again := gap && !now.Before(h.Retry())
	return (ask || again) && h.Follow(), !ask && !gap
}

// Stored tells whether any archive is in the record, or may be.
func (h *History) Stored() bool {
	_, err := os.Lstat(h.path(fileArchives))
	return err == nil
}

// Sync makes the record of archives durable.
func (h *History) Sync() error {
	f, err := os.Open(h.path(fileArchives))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// Summary is what a list of subscriptions says of a feed's history: "complete",
// "archived" and how many archives are stored, "paged", "incomplete" where something
// is known to be missing, or nothing.
func (h *History) Summary() string {
	if !h.Exists() {
		return ""
	}
	kind := h.Linked().Kind
	_, whole := h.WalkDue(time.Time{})
	switch {
	case h.Gap() != nil, !whole && h.Follow():
		return "incomplete"
	case kind == history.Archived, kind == history.Archive:
		n := 0
		if r, err := h.Archives(); err == nil {
			n = r.Len()
		}
		return fmt.Sprintf("%s %d", history.Archived, n)
	case slices.Contains([]history.Kind{history.Complete, history.Paged}, kind):
		return string(kind)
	}
	return ""
}
