// Package joined takes apart errors that errors.Join put together.
package joined

import (
	"errors"
	"reflect"
)

var kind = reflect.TypeOf(errors.Join(errors.New("")))

// Errors gives the errors that were joined, also those joined within others, in
// order; nil for nil, and err alone when it is no joined one. An error that wraps
// several and has words of its own (fmt.Errorf) is one.
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
