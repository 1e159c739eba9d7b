// Package must is for programs that measure or test others, in which an error ends everything. An
// error is thrown as a panic, so deferred functions run.
package must

import (
	"fmt"
	"os"
)

// failure is an error that was thrown.
type failure struct{ error }

// Do throws err if it is not nil.
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

// Fail throws a new error.
func Fail(format string, args ...any) { Do(fmt.Errorf(format, args...)) }

// Get returns v, or throws err if it is not nil.
func Get[T any](v T, err error) T {
	Do(err)
	return v
}

// Get2 is [Get] for calls that return two values and an error.
func Get2[T, U any](v T, w U, err error) (T, U) {
	Do(err)
	return v, w
}

// Catch, called by defer, assigns a thrown error to *err. Each goroutine that throws needs it.
func Catch(err *error) {
	switch thrown := recover().(type) {
	case nil:
	case failure:
		*err = thrown.error
	default:
		panic(thrown)
	}
}

// Run calls f and returns the error that f throws, or nil.
func Run(f func()) (err error) {
	defer Catch(&err)
	f()
	return nil
}

// Main runs a program. If f throws an error, it prints the error, and exits with status 1.
func Main(name string, f func()) {
	if err := Run(f); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}
