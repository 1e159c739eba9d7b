// Package units reads and writes numbers with units as people do: times between
// fetches, bytes, and so many of something.
package units

import (
	"fmt"
	"strconv"
	"strings"
)

// Group writes a number with its thousands apart, "12,345".
func Group(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count writes how many there are of something that is named in the singular,
// such as "1 entry" or "2,000 feeds".
func Count(n int, what string) string {
	if n != 1 {
		if y, ok := strings.CutSuffix(what, "y"); ok {
			what = y + "ie"
		}
		what += "s"
	}
	return Group(int64(n)) + " " + what
}

// Bytes writes a number of bytes, in decimal units.
func Bytes(n int64) string {
	switch {
	case n < 10_000:
		return Count(int(n), "byte")
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1e3)
	case n < 10_000_000_000:
		return fmt.Sprintf("%s MB", Group(n/1e6))
	}
	return fmt.Sprintf("%s GB", Group(n/1e9))
}
