package command

import (
	"errors"
	"fmt"

	"github.com/lektordir/lektor/internal/joined"
)

// UsageError is a mistake in the command line. It ends the command with status
// 2. Without a Hint the reader is referred to --help.
type UsageError struct {
	Message string
	Hint    string
}

func (e *UsageError) Error() string { return e.Message }

// Usagef returns a [UsageError].
func Usagef(format string, args ...any) error {
	return &UsageError{Message: fmt.Errorf(format, args...).Error()}
}

// HintError is an error with something that the user can do about it, which is
// printed on a line of its own.
type HintError struct {
	Err  error
	Hint string
}

func (e *HintError) Error() string { return e.Err.Error() }
func (e *HintError) Unwrap() error { return e.Err }

// Hint adds to err what the user can do about it. It returns nil for nil.
func Hint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &HintError{Err: err, Hint: fmt.Sprintf(format, args...)}
}

// ExitError is an error that ends the command with a status of its own.
// Without an Err nothing is printed: everything was said already.
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

// Remote marks err as a failure of somebody else's server, which ends a
// command with status 75 if nothing worse happened. It returns nil for nil.
func Remote(err error) error {
	if err == nil {
		return nil
	}
	return &ExitError{Status: StatusRemote, Err: err}
}

// Status returns the exit status that err stands for: that of an [ExitError]
// in it, 2 for a [UsageError], 0 for nil and 1 for any other. Of joined errors
// the worst counts: usage, then failures, then remote ones.
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
			if s := Status(err); rank(s) > rank(status) {
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

func rank(status int) int {
	switch status {
	case StatusDone:
		return 0
	case StatusRemote:
		return 1
	case StatusUsage:
		return 3
	}
	return 2
}

// split returns the errors that errors.Join joined, however deep.
func split(err error) []error {
	var errs []error
	for _, err := range joined.Errors(err) {
		// A status around joined errors says nothing that is printed.
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
	switch {
	case errors.As(err, &hint):
		return hint.Hint
	case errors.As(err, &usage):
		return usage.Hint
	}
	return ""
}
