package stage

import (
	"cmp"
	"encoding/hex"
	"iter"
	"time"

	"github.com/lektordir/lektor/internal/dir/journal"
	"github.com/lektordir/lektor/internal/text/markup"
	"github.com/lektordir/lektor/internal/text/textfile"
)

// Item is an entry of a document, with the values that identify it and show whether it has changed.
type Item struct {
	// GUID is the identifier of the entry in the document, byte for byte (Atom id, RSS guid,
	// JSON Feed id), or "" if it has none.
	GUID        string
	Title, Link string
	PubDate     time.Time
	PubDateRaw  string // the date in the document, if it could not be parsed
	// Updated decides which of two versions is newer; zero means PubDate.
	Updated time.Time
	// Text is the content without markup and with single spaces: a change of markup or white
	// space is not a change of the entry. It must depend only on the content and its type.
	Text string
	// Enclosures holds the URLs of the enclosures.
	Enclosures []string
	// Status is that of an entry that is broadcast live, or "". Each status is a version.
	Status string
	// Files returns the files of the entry, see [commit.Version]. replaces is the unique name of
	// the older version, or "". It is called for entries that are known or staged.
	Files func(replaces string) iter.Seq2[string, []byte]
}

// updated returns the time that decides which of two versions is newer.
func (it *Item) updated() time.Time {
	if it.Updated.IsZero() {
		return it.PubDate
	}
	return it.Updated
}

// date formats a date by a layout. If the date is zero, it returns raw.
func date(at time.Time, raw, layout string) string {
	if at.IsZero() {
		return raw
	}
	return at.UTC().Format(layout)
}

// PlainText returns content as [Item].Text has it: text without the markup of HTML or XML and with
// single spaces, other content as it is.
func PlainText(content, mimeType string) string {
	if !textfile.IsText(mimeType) {
		return content
	}
	return markup.Plain(content, markup.ModeOf(mimeType))
}

// ID returns the id of an entry: the first of id, guid and link that is not empty, or "urn:sha256:"
// and a digest of its title, date and content.
func ID(id, guid, link, title string, at time.Time, raw string, content []byte) string {
	if id = cmp.Or(id, guid, link); id != "" {
		return id
	}
	sum := journal.HashOf(title, date(at, raw, time.RFC3339Nano), string(content))
	return "urn:sha256:" + hex.EncodeToString(sum[:])
}

// Document holds the entries of a feed document.
type Document struct {
	Items  []Item // the newest first, as in feeds; the last is delivered first
	Policy string // how a changed entry is handled, see lektordir.Policy
	GUIDs  GUIDs
	Dates  Dates
	// Keep, if not nil, reports whether the entry with an identity (see [Document.Versions]) is
	// staged. Other entries are skipped and not counted.
	Keep func(identity string) bool
	// NoOverlap must be true for each of several documents in one transaction. If an entry of the
	// document may equal one that is already staged, [Stager.Stage] stages nothing and returns
	// [ErrOverlap].
	NoOverlap bool
}

// The policies; any other value means lektordir.UpdateNew.
const (
	Deliver = "deliver" // lektordir.UpdateAlways
	Ignore  = "ignore"  // lektordir.UpdateNever
)

// GUIDs determines how the GUIDs of a document identify entries.
type GUIDs int

// The kinds of GUIDs.
const (
	// Loose GUIDs may be shared by different entries, as in RSS.
	Loose GUIDs = iota
	// OneID means that entries with the same GUID are versions of one entry, as in Atom
	// (RFC 4287, section 4.1.1).
	OneID
	// Own means that the caller chooses the GUIDs. Only the GUID identifies an entry, and an entry
	// with a new GUID is always a new entry.
	Own
)

// Dates is a rule for the dates of changed entries. The date of a version is Updated, or PubDate if
// that is zero.
type Dates int

// The rules for dates. They compare a changed entry with the newest delivered version, if that is in
// new/ or cur/. A version without a date is older than any other. If the rule accepts the change, the
// policy decides.
const (
	// AnyDate accepts every change. It is for the feed's present document.
	AnyDate Dates = iota
	// NotOlder ignores a version that is older than the delivered one.
	NotOlder
	// OnlyNewer ignores a version unless it is newer than the delivered one. It also ignores the
	// version if the delivered one was deleted. It is for a feed's old documents.
	OnlyNewer
)

// Result is the result of staging a document. New and Updated hold unique names, which will be in
// new/ after the commit.
type Result struct {
	New, Updated []string
	// Unchanged is the number of entries that were delivered before and have not changed, or have
	// other properties alone, Ignored
	// that of entries whose change is ignored by the policy or the rule for dates, and Repeated
	// that of entries left out because the document has the same entry again.
	Unchanged, Ignored, Repeated int
	// Ranked has an element for each entry of the document, in its order: the 16 digits that all
	// versions of the entry have in their unique names, or "" if Keep skips the entry.
	Ranked []string
}
