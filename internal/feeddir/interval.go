package feeddir

import (
	"fmt"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/units"
)

// MinInterval is the least interval that can be set unless it is forced.
const MinInterval = time.Minute

// ShortIntervalError is an interval below [MinInterval].
type ShortIntervalError struct{ Value string }

func (e *ShortIntervalError) Error() string {
	return fmt.Sprintf("an interval of %s is too short: servers refuse whoever comes more often than once in %s", e.Value, units.ShortDuration(MinInterval))
}

// bare tells whether an interval has no unit.
func bare(v string) bool { return strings.Trim(v, "0123456789") == "" }

// checkInterval is the error for an interval that a user gives: it needs a unit,
// as one who writes 3 rarely means seconds.
func checkInterval(v string) error {
	v = strings.TrimSpace(v)
	d, err := units.ParseInterval(v)
	switch {
	case v != "" && bare(v):
		return fmt.Errorf("the interval %s has no unit; is it %[1]sm, %[1]sh or %[1]sd?", v)
	case err != nil:
		return err
	case d < MinInterval:
		return &ShortIntervalError{Value: v}
	}
	return nil
}

// readInterval reads an interval from its file, where somebody may have written
// it with an editor: a number without a unit is one of seconds, but stands for
// MinInterval at least. One with a unit is taken at its word.
func readInterval(v string) (time.Duration, error) {
	d, err := units.ParseInterval(v)
	if err == nil && bare(strings.TrimSpace(v)) {
		d = max(d, MinInterval)
	}
	return d, err
}
