// Package read is the room of reading: entries and feeds are listed, found, selected, marked and removed.
// It may import text, files, dir, lektordir, feedconv, fromfeed, http, content, protocol, feeds and cli.
package read
