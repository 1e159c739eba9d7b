// Package dir is the room beneath the public package lektordir: names, directories, journals, and the
// delivery of entries exactly once. It may import text and files.
package dir
