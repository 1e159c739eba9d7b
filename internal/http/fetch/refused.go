package fetch

import (
	"fmt"
	"net/http"
)

// RefusedError reports that a server refused a [Post]. Repeating the same request soon is useless.
type RefusedError struct {
	URL string
	// Status is the HTTP status, or 0 if the status is a success and the body reports the refusal.
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

// Success reports whether the status is 2xx.
func (a *Answer) Success() bool { return a.Status >= 200 && a.Status <= 299 }

// Verdict returns nil for success, a [RefusedError] for a 4xx status except 429, and a
// [httpmsg.StatusError] for any other. detail is the message of the server in one line; otherwise
// replaces an empty one.
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
