package feedconv

// reading says how a document is read: by all rules, or as the first versions of this
// package did, for [Entry.Earlier]. A nil reading is by all rules.
type reading struct {
	first   bool
	differs bool // a rule applies that the first versions did not have
}

// newer reports whether a rule holds that the first versions of this package did not
// have. It is asked where the rule makes a difference.
func (r *reading) newer() bool {
	if r == nil {
		return true
	}
	r.differs = true
	return !r.first
}

// earlier returns what identifies an entry and shows a change of it, or nil where that
// is the same in another reading.
func (e *Entry) earlier(other *Entry) *Entry {
	if e.GUID == other.GUID && e.ID == other.ID && e.Link == other.Link && e.Title == other.Title &&
		e.Content == other.Content && e.ContentType == other.ContentType &&
		e.Published.Equal(other.Published) && e.Updated.Equal(other.Updated) && e.PublishedRaw == other.PublishedRaw {
		return nil
	}
	return &Entry{
		GUID: e.GUID, ID: e.ID, Link: e.Link, Title: e.Title, Content: e.Content, ContentType: e.ContentType,
		Published: e.Published, Updated: e.Updated, PublishedRaw: e.PublishedRaw,
	}
}
