// Package files is the room of files and goroutines that know no lektor-dir: files that are replaced, read,
// locked and watched. It may import text.
package files
