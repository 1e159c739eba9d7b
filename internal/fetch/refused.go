package fetch

import (
	"fmt"
	"net/http"
)

// RefusedError is the answer of a server that it does not do what it was asked for
// by a [Post]. To ask the same again soon is no use.
type RefusedError struct {
	URL string
	// Status is the HTTP status when it was no success; else 0, when the
	// answer itself said so.
	Status  int
	Message string // the server's message, cleaned, in one line; may be empty
}

func (e *RefusedError) Error() string {
	s := e.URL + ": refused"
	if e.Status != 0 {
		s += fmt.Sprintf(" with status %d", e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Success reports whether the status is one of success.
func (a *Answer) Success() bool { return a.Status >= 200 && a.Status <= 299 }

// Verdict returns the error of an answer: nil for success, a [RefusedError] for a
// status of 4xx but 429, a [httpmsg.StatusError] for any other. detail is what the server
// said, in one line; otherwise says what to make of it that it said nothing.
func (a *Answer) Verdict(detail, otherwise string) error {
	switch {
	case a.Success():
		return nil
	case a.Status >= 400 && a.Status <= 499 && a.Status != http.StatusTooManyRequests:
		return &RefusedError{URL: a.FinalURL, Status: a.Status, Message: detail}
	case detail == "":
		detail = otherwise
	}
	return a.Error(detail)
}
