package lektordir

import (
	"fmt"
	"strings"
)

// WithFlags gives the place that [Dir.SetFlags] moves an entry to. It touches
// nothing.
func (r Ref) WithFlags(set, clear string) (Ref, error) {
	for _, c := range set + clear {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return r, fmt.Errorf("%q is no flag: flags are ASCII letters", c)
		}
	}
	flags := strings.Map(func(c rune) rune {
		if strings.ContainsRune(clear, c) {
			return -1
		}
		return c
	}, sortFlags(r.Flags()+set))
	return Ref{Feed: r.Feed, Unique: r.Unique, Place: Cur, Info: "2," + flags}, nil
}
