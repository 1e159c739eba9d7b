// Package cli is the room of command lines: arguments, streams, messages, output formats, and runs of
// programs beside this one. It may import text, files, lektordir and http.
package cli
