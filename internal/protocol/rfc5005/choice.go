package rfc5005

import (
	"cmp"
	"time"
)

// Version decides which of several versions of an entry is used (RFC 5005, section 4.2).
type Version struct {
	Updated  time.Time // update of the entry; zero if unknown, which is before all others
	Document time.Time // time of its document; zero if unknown
	// Nearness is greater, the nearer the document is to the subscription document.
	Nearness int
}

// After reports whether v is used rather than w: the later update, then the document updated later,
// then the nearer one.
func (v Version) After(w Version) bool {
	return cmp.Or(v.Updated.Compare(w.Updated), v.Document.Compare(w.Document), cmp.Compare(v.Nearness, w.Nearness)) > 0
}

// Choice chooses among the versions of entries in the documents of one walk. Its size grows with
// the number of entries.
type Choice struct {
	best map[string]Version // by identity
}

// Add adds a version of an entry.
func (c *Choice) Add(identity string, v Version) {
	if c.best == nil {
		c.best = map[string]Version{}
	}
	if old, ok := c.best[identity]; !ok || v.After(old) {
		c.best[identity] = v
	}
}

// From reports whether the chosen version of an entry is that of the document with this nearness,
// or no version is known.
func (c *Choice) From(identity string, nearness int) bool {
	v, ok := c.best[identity]
	return !ok || v.Nearness == nearness
}

// Has reports whether any version of an entry was added.
func (c *Choice) Has(identity string) bool { _, ok := c.best[identity]; return ok }
