// Package joined takes apart errors that errors.Join put together.
package joined

import (
	"errors"
	"reflect"
)

// of is the type of joined errors. Others that wrap several, as fmt.Errorf makes
// them, say more than their parts.
var of = reflect.TypeOf(errors.Join(errors.ErrUnsupported))

// Errors gives the errors that err joins, in order, each of which joins no others;
// err itself where it joins none, and nil for nil.
func Errors(err error) []error {
	if err == nil {
		return nil
	}
	if reflect.TypeOf(err) != of {
		return []error{err}
	}
	var all []error
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		all = append(all, Errors(e)...)
	}
	return all
}
