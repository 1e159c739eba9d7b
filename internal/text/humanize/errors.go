package humanize

import (
	"errors"
	"reflect"
)

var joined = reflect.TypeOf(errors.Join(errors.New("")))

// Errors returns the errors that errors.Join has joined, in order and at any depth. For nil it returns nil, and for any
// other error only err. An error of fmt.Errorf that wraps several errors counts as one, since it
// has its own text.
func Errors(err error) []error {
	switch {
	case err == nil:
		return nil
	case reflect.TypeOf(err) != joined:
		return []error{err}
	}
	var out []error
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		out = append(out, Errors(e)...)
	}
	return out
}
