package humanize

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestErrors(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	one := fmt.Errorf("about %w and %w", b, c)
	for name, test := range map[string]struct {
		err  error
		want []error
	}{
		"none":    {nil, nil},
		"one":     {one, []error{one}},
		"several": {errors.Join(a, nil, errors.Join(one, c)), []error{a, one, c}},
	} {
		if got := Errors(test.err); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
