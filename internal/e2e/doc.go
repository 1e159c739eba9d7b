// Package e2e is the room of tests of several programs together. It may import text, files, dir, lektordir,
// feedconv, fromfeed, http, content, protocol, feeds, cli, read, app and testkit.
package e2e
