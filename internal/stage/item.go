package stage

import (
	"cmp"
	"encoding/hex"
	"iter"
	"time"

	"github.com/lektordir/lektor/internal/journal"
	"github.com/lektordir/lektor/internal/textfile"
)

// Item is an entry as a document has it, on its way into a lektor-dir: what says which
// entry it is, and whether it changed.
type Item struct {
	// GUID is the identifier that the entry has in the document, byte for byte
	// (Atom id, RSS guid, JSON Feed id), "" for none.
	GUID        string
	Title, Link string
	PubDate     time.Time
	PubDateRaw  string // the date as found, if it could not be read
	// Updated says which of two versions in one document is the newer one; zero means PubDate.
	Updated time.Time
	// Text is the text of the content, by which a change is distinguished from one of the
	// markup; white space does not count. It must depend on the content and its
	// type alone. Type is the MIME type of the content.
	Text, Type string
	// Files yields the files of the entry, see [commit.Version]; replaces is the unique name
	// of the older version, or "". It is called when it is known that the entry will be
	// delivered, which most entries of most documents will not.
	Files func(replaces string) iter.Seq2[string, []byte]
	// Earlier is the entry as earlier versions of the program read it in the same
	// document, nil where that is the same. An entry delivered as Earlier is this
	// one, and unchanged. Its Files is not called.
	Earlier *Item
}

// updated is the time by which the newer of two versions is known.
func (it *Item) updated() time.Time {
	if it.Updated.IsZero() {
		return it.PubDate
	}
	return it.Updated
}

// text is the content as change is known by it.
func (it *Item) text() string {
	if textfile.IsText(it.Type) {
		return fold(it.Text)
	}
	return it.Text
}

// date is the date as a text, with fractions of a second in the layout.
func date(at time.Time, raw, layout string) string {
	if at.IsZero() {
		return raw
	}
	return at.UTC().Format(layout)
}

// ID returns the id of an entry: the first of id, guid and link that is not empty, and else
// "urn:sha256:" and a digest of its title, date and content.
func ID(id, guid, link, title string, at time.Time, raw string, content []byte) string {
	if id = cmp.Or(id, guid, link); id != "" {
		return id
	}
	sum := journal.HashOf(title, date(at, raw, time.RFC3339Nano), string(content))
	return "urn:sha256:" + hex.EncodeToString(sum[:])
}

// Document holds the entries of a feed document at one time.
type Document struct {
	Items  []Item // the newest first, as feeds have them; the last is delivered first
	Policy string // how a changed entry is handled, see lektordir.Policy
	GUIDs  GUIDs
	Dates  Dates
	// Keep, if not nil, reports whether the entry with an identity is delivered; other
	// entries are skipped and not counted. See [Document.Versions].
	Keep func(identity string) bool
	// Apart is for several documents in one transaction: if an entry may equal one that
	// is already staged, [Txn.Stage] stages nothing and returns [ErrOverlap].
	Apart bool
}

// The policies; any other value means lektordir.UpdateNew.
const (
	Deliver = "deliver" // lektordir.UpdateAlways
	Ignore  = "ignore"  // lektordir.UpdateNever
)

// GUIDs is how the GUIDs of a document identify entries.
type GUIDs int

// The kinds of GUIDs.
const (
	// Loose are those of RSS: several entries may have one.
	Loose GUIDs = iota
	// OneID means that entries with one GUID are versions of one entry, as in Atom
	// (RFC 4287, section 4.1.1).
	OneID
	// Own GUIDs are the caller's: entries are known by them alone, and none is taken for one
	// whose GUID was changed.
	Own
)

// Dates says what the date of a version (Updated, or where there is none PubDate)
// has to do with whether it may take the place of another one.
type Dates int

// The rules for dates. A version without one is older than any with one. The policy
// decides what a rule lets through.
const (
	// AnyDate is for documents that are newer than what was delivered before,
	// whatever they say.
	AnyDate Dates = iota
	// NotOlder passes over a version that is older than the one on the disk.
	NotOlder
	// OnlyNewer passes over a version that is not newer than the one on the disk,
	// and one of an entry of which nothing is on the disk: it is for old documents
	// of a feed, which change nothing that is known.
	OnlyNewer
)

// Result says what became of a document's entries. New and Updated are unique names, which
// will be in new/ once the transaction is committed.
type Result struct {
	New, Updated []string
	// Unchanged counts entries delivered before as they are now, Ignored those
	// whose change the policy passes over, and Repeated those that stand in
	// the document more than once.
	Unchanged, Ignored, Repeated int
	// Ranked are the entries of the document in its order, whether they are delivered or not:
	// of each the 16 digits that all versions of it have in their unique names; "" for one that
	// Keep passes over.
	Ranked []string
}
