package cmdline

import (
	"errors"
	"fmt"

	"github.com/lektordir/lektor/internal/text/humanize"
)

// UsageError is a mistake in the command line. It ends the command with status 2. An empty Hint
// means a reference to --help.
type UsageError struct {
	Message string
	Hint    string
}

func (e *UsageError) Error() string { return e.Message }

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return &UsageError{Message: fmt.Errorf(format, args...).Error()}
}

// HintError is an error with a hint what the user can do, which is printed on a line of its own.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }

// Hint adds a hint what the user can do to err. It returns nil if err is nil.
func Hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &HintError{Err: err, Hint: fmt.Sprintf(format, args...)}
}

// ExitError is an error that ends the command with Status. If Err is nil, nothing is printed.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}
func (e *ExitError) Unwrap() error { return e.Err }

// Status returns the exit status for err: that of an [ExitError] in it, 2 for a [UsageError], 0 for
// nil and 1 for other errors. For joined errors it is the worst one: a usage error is worse than a
// failure, and that is worse than a remote one.
func Status(err error) int {
	switch e := err.(type) {
	case nil:
		return StatusDone
	case *ExitError:
		return e.Status
	case *UsageError:
		return StatusUsage
	case interface{ Unwrap() []error }:
		status := StatusDone
		for _, err := range e.Unwrap() {
			if s := Status(err); ranks[s] > ranks[status] {
				status = s
			}
		}
		if status == StatusDone {
			return StatusFailed
		}
		return status
	}
	if inner := errors.Unwrap(err); inner != nil {
		return Status(inner)
	}
	return StatusFailed
}

// ranks has the order of the statuses; others are as bad as StatusFailed.
var ranks = map[int]int{StatusDone: -2, StatusRemote: -1, StatusFailed: 0, StatusUsage: 1}

// split returns the errors joined by errors.Join, at any depth.
func split(err error) []error {
	var errs []error
	for _, err := range humanize.Errors(err) {
		// The status of joined errors is not printed.
		if e, ok := err.(*ExitError); ok {
			errs = append(errs, split(e.Err)...)
		} else {
			errs = append(errs, err)
		}
	}
	return errs
}

// hintOf returns the hint in err, if there is one.
func hintOf(err error) string {
	var hint *HintError
	var usage *UsageError
	var other interface{ Hint() string } // an error of a package that does not know command lines
	switch {
	case errors.As(err, &hint):
		return hint.Hint
	case errors.As(err, &usage):
		return usage.Hint
	case errors.As(err, &other):
		return other.Hint()
	}
	return ""
}
