// Package errlist takes apart errors that errors.Join put together.
package errlist

import (
	"errors"
	"reflect"
)

var kind = reflect.TypeOf(errors.Join(errors.New("")))

// Errors returns the errors that were joined, also those joined within others, in
// order; nil for nil, and err alone if it is not a joined error. An error that wraps
// several and has a text of its own (fmt.Errorf) counts as one error.
func Errors(err error) []error {
	switch {
	case err == nil:
		return nil
	case reflect.TypeOf(err) != kind:
		return []error{err}
	}
	var out []error
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		out = append(out, Errors(e)...)
	}
	return out
}
