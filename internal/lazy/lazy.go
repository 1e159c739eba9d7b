// Package lazy puts off what a package would else make before main begins, at
// each start of each program, whether it is used or not.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function for a package variable: it compiles expr when it is
// first called and panics if it cannot. It may be called concurrently.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
