package feedconv

func (o Options) maxBytes() int64 {
	if o.MaxBytes > 0 {
		return o.MaxBytes
	}
	return DefaultMaxBytes
}

func (o Options) maxEntries() int {
	if o.MaxEntries > 0 {
		return o.MaxEntries
	}
	return DefaultMaxEntries
}

// DefaultMaxBytes is the largest document that [Parse] reads unless
// [Options.MaxBytes] says otherwise: 16 MiB, counted after decompression.
const DefaultMaxBytes = 16 << 20

// DefaultMaxEntries is the largest number of entries that [Parse] takes from
// one document unless [Options.MaxEntries] says otherwise.
const DefaultMaxEntries = 20000

// Limits of tidy for every document: it lets no more through.
const (
	maxDepth        = 256    // elements in each other
	maxAttrs        = 256    // attributes of an element
	maxDeclarations = 512    // namespace declarations in scope at once
	maxNamespaces   = 4096   // different namespaces that are not known
	maxURILen       = 4096   // bytes of the name of one
	maxNames        = 4096   // different element names
	maxNameLen      = 128    // bytes of an element or attribute name
	maxTextRuns     = 16     // pieces of text between the children of an element
	maxNodes        = 600000 // elements and attributes, weighted by what gofeed spends on them; more where more entries may be
	maxSameWarning  = 20     // warnings of a kind
)

// Limits of the extensions that are kept of an entry, and of a feed.
const (
	maxExtensions     = 10000   // elements, pieces of text and attributes of the feed's or entry's element
	maxExtensionBytes = 1 << 20 // of names, attributes and text
	maxExtensionDepth = 64      // elements in each other
)

// maxList is how many authors, categories, enclosures … are taken of an entry
// or a feed.
const maxList = 1000
