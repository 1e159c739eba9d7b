package joined

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestErrors(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	two := fmt.Errorf("%w and %w", a, b)
	for _, x := range []struct {
		err  error
		want []error
	}{
		{nil, nil},
		{a, []error{a}},
		{errors.Join(nil, nil), nil},
		{errors.Join(a, nil, errors.Join(b, errors.Join(c))), []error{a, b, c}},
		{errors.Join(two, c), []error{two, c}},
	} {
		if got := Errors(x.err); !slices.Equal(got, x.want) {
			t.Errorf("%v: %v, not %v", x.err, got, x.want)
		}
	}
}
