// Package stage finds the entries of a feed's document that are new or have changed, by the
// feed's journal, and stages them in a transaction of package commit. The files of an entry
// are bytes to it.
package stage
