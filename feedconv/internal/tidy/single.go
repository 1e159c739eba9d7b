package tidy

// singleName returns the name under which an element can stand once in a feed, an entry, or an
// element with children, or "" for elements of which there are several. The first that is not empty
// counts: a further title at the end of a damaged document does not replace the title. Elements of
// other vocabularies are lists, of which the fields take the first.
func singleName(c class, lvl level, atom bool) string {
	if c.ext || c.kind != kText && c.kind != kStruct || c.role == roleDrop || lvl != inFeed && lvl != inEntry &&
		lvl != inStruct {
		return ""
	}
	switch c.name {
	case "link", "category", "enclosure", "hour", "day", "author", "contributor":
		return ""
	}
	if atom {
		// Atom 0.3 has other names for the same.
		switch c.name {
		case "modified":
			return "updated"
		case "issued":
			return "published"
		case "tagline":
			return "subtitle"
		case "copyright":
			return "rights"
		case "url", "homepage":
			return "uri"
		}
	}
	return c.name
}
