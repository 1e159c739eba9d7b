package feedconv

// reading selects the rules by which a document is read: all rules, or those of the first versions
// of this package, for [Entry.Earlier]. A nil reading means all rules.
type reading struct {
	first   bool
	differs bool // a rule applies that the first versions did not have
}

// newer reports whether to apply a rule that the first versions of this package did not have. It is
// called only where the rule makes a difference.
func (r *reading) newer() bool {
	if r == nil {
		return true
	}
	r.differs = true
	return !r.first
}

// earlier returns a copy of the fields that identify an entry or show that it changed, or nil if
// other has the same.
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
