package history

import "time"

// Version is what tells which of several versions of an entry counts (RFC 5005,
// section 4.2).
type Version struct {
	Updated  time.Time // of the entry; zero when unknown, which is before all others
	Document time.Time // of the document that it stands in; zero when unknown
	// Nearness tells how near to the subscription document that document is: of
	// two, the greater one is nearer.
	Nearness int
}

// After tells whether v counts rather than w: the latest update wins, then the
// document that was updated later, then the nearer one.
func (v Version) After(w Version) bool {
	if c := v.Updated.Compare(w.Updated); c != 0 {
		return c > 0
	}
	if c := v.Document.Compare(w.Document); c != 0 {
		return c > 0
	}
	return v.Nearness > w.Nearness
}

// Choice chooses among the versions of entries in the documents of one walk. Its
// size is that of the number of entries.
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

// From tells whether the version of an entry that counts is that of the document of
// a nearness, or none is known.
func (c *Choice) From(identity string, nearness int) bool {
	v, ok := c.best[identity]
	return !ok || v.Nearness == nearness
}

// Has tells whether any version of an entry was added.
func (c *Choice) Has(identity string) bool { _, ok := c.best[identity]; return ok }
