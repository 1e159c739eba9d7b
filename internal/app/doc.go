// Package app is the room of programs: a package for each, whose commands are functions of options and
// streams. None imports another. It may import text, files, dir, lektordir, feedconv, fromfeed, http,
// content, protocol, feeds, cli and read.
package app
