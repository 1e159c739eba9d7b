// Package testkit is the room of helpers for tests and for scripts. It may import text, files, dir,
// lektordir, feedconv, fromfeed, http, content, protocol, feeds, cli, read and app.
package testkit
