// Package text is the room of text without disk and network: its charset, its display on a terminal,
// numbers with units, fields of lines, HTML and XML, and URLs. It imports no other room.
package text
