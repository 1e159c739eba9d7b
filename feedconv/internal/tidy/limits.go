package tidy

// Limits of every document. The rest is not read.
const (
	MaxDepth        = 256    // elements nested
	maxDeclarations = 512    // namespace declarations in scope at once
	maxNamespaces   = 4096   // different namespaces that are not known
	maxURILen       = 4096   // bytes of the name of one
	maxNames        = 4096   // different element names
	maxNameLen      = 128    // bytes of an element or attribute name
	maxNodes        = 600000 // elements and attributes; more where more entries may be
	nodesPerEntry   = 30     // nodes for each entry
	maxSameWarning  = 20     // warnings of a kind
)

// Limits of the extensions that are kept of an entry, and of a feed.
const (
	MaxExtensions     = 10000   // elements, pieces of text and attributes of the feed's or entry's element
	maxExtensionBytes = 1 << 20 // bytes of names, attributes and text
	MaxExtensionDepth = 64      // elements nested
)
