// Package feeds is the room of feeds: what is kept of each between fetches, and the way from a document to
// the lektor-dir. It may import text, files, dir, lektordir, feedconv, fromfeed, http and protocol.
package feeds
