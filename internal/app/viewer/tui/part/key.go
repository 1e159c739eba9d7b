package part

import (
	"github.com/lektordir/lektor/internal/read/catalog"
	"github.com/lektordir/lektor/lektordir"
)

// Key identifies an entry, whatever its flags are.
type Key = catalog.ID

// KeyOf returns the key of an entry.
func KeyOf(r lektordir.Ref) Key { return catalog.IDOf(r) }

// Pending is the changes that the user has requested, and the disk has not made. Entries are shown as they will be
// after these.
type Pending interface {
	// Now returns the name of an entry after the changes.
	Now(lektordir.Ref) lektordir.Ref
	// Unread and Trashed report whether an entry is unread, or trashed, after the changes.
	Unread(catalog.Entry) bool
	Trashed(catalog.Entry) bool
	// Trashing reports whether entries are being trashed.
	Trashing() bool
	// Touches reports whether an entry of a feed is changed, and Feeds returns the hashes of such feeds.
	Touches(feed string) bool
	Feeds() map[string]bool
	// ScanBegins records that a scan began, and Listed drops the changes that a list from such a scan contains.
	ScanBegins(id int)
	Listed(scan int)
}
