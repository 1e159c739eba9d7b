// Package stage compares the entries of a feed's document with the feed's journal, and stages those
// that are new or have changed in a transaction of package commit.
package stage
