// Package must is for programs that measure or try others, where an error ends
// all that goes on: it is thrown where it comes from, and what was deferred is done.
package must

import (
	"fmt"
	"os"
)

// failure is an error that was thrown.
type failure struct{ error }

// Do throws an error, if it is one.
func Do(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// That throws err, if it is not nil, with a text before it that says what was attempted.
func That(err error, format string, args ...any) {
	if err != nil {
		Fail("%s: %w", fmt.Sprintf(format, args...), err)
	}
}

// Fail throws an error.
func Fail(format string, args ...any) { Do(fmt.Errorf(format, args...)) }

// Get returns the first, unless there is an error, which it throws.
func Get[T any](v T, err error) T {
	Do(err)
	return v
}

// Get2 is Get for calls that return two values and an error.
func Get2[T, U any](v T, w U, err error) (T, U) {
	Do(err)
	return v, w
}

// Catch, deferred, puts an error that was thrown into *err. Each goroutine that throws
// needs it.
func Catch(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case failure:
		*err = thrown.error
	default:
		panic(thrown)
	}
}

// Run calls f and returns the error that f throws, nil if it throws none.
func Run(f func()) (err error) {
	defer Catch(&err)
	f()
	return nil
}

// Main is all of a program: it ends with status 1 after an error.
func Main(name string, f func()) {
	if err := Run(f); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
