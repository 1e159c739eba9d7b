package lektordir

import (
	"fmt"
	"slices"
	"strings"
)

// WithFlags gives the place that [Dir.SetFlags] moves an entry to. It touches
// nothing.
func (r Ref) WithFlags(set, unset string) (Ref, error) {
	for _, c := range set + unset {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return r, fmt.Errorf("%q is no flag: flags are ASCII letters", c)
		}
	}
	// Bytes, as others may have put there what is no UTF-8.
	flags := slices.DeleteFunc([]byte(sortFlags(r.Flags()+set)), func(c byte) bool {
		return strings.IndexByte(unset, c) >= 0
	})
	return Ref{Feed: r.Feed, Unique: r.Unique, Place: Cur, Info: "2," + string(flags)}, nil
}
