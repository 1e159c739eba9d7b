// Package protocol is the room of formats and protocols, a package each, over values: none keeps a state or
// reads a file. It may import text, dir, lektordir, feedconv and http.
package protocol
