// Package fulltext gets the article of a page from lektor-article(1), and holds what the
// two programs agree on.
package fulltext

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/termsafe"
)

// Program finds the article of a page. It is a program of its own since the library for
// it would cost each start of a fetcher more than all else, and since what strangers
// write, nested a million deep, must not end the fetcher.
const Program = "lektor-article"

// Article is what a page has, as [Program] prints it with --json.
type Article struct {
	Title   string `json:"title,omitempty"`
	Content string `json:"content,omitempty"` // HTML with absolute URLs; "" where there is none
	Refresh string `json:"refresh,omitempty"` // the URL to which the page sends a browser at once
}

// Limits of a run of [Program].
const (
	maxTime    = 30 * time.Second
	maxArticle = 16 << 20 // bytes of its output
)

// MissingError tells that there is no [Program]: it is not the page's fault.
type MissingError struct{ Err error }

func (e *MissingError) Error() string {
	return fmt.Sprintf("full text needs %s: %v; install it beside lektor-fetch", Program, e.Err)
}

func (e *MissingError) Unwrap() error { return e.Err }

// Installed is nil where [Program] is found, else a [MissingError].
func Installed() error {
	if _, err := command.Program(Program); err != nil {
		return &MissingError{err}
	}
	return nil
}

// Extract has [Program] find the article of a page that was found at url, with that
// Content-Type. The error is a [MissingError], the context's, or says what is wrong
// with the page.
func Extract(ctx context.Context, page []byte, url, contentType string) (*Article, error) {
	path, err := command.Program(Program)
	if err != nil {
		return nil, &MissingError{err}
	}
	parent := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("not within %s", maxTime))
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--json", "--url="+url, "--content-type="+contentType)
	out := head{most: maxArticle, over: func() { stop(errTooLong) }}
	said := head{most: 4 << 10, over: func() {}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(page), &out, &said
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case parent.Err() != nil:
		return nil, context.Cause(parent)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("its article was not found: %w", context.Cause(ctx))
	case err != nil && errors.As(err, new(*exec.ExitError)):
		why := termsafe.Brief(strings.TrimSpace(strings.TrimPrefix(said.b.String(), Program+": ")))
		return nil, fmt.Errorf("its article was not found: %v: %s", err, why)
	case err != nil:
		return nil, &MissingError{err}
	}
	a := &Article{}
	if err := json.Unmarshal(out.b.Bytes(), a); err != nil {
		return nil, fmt.Errorf("its article was not found: %v", err)
	}
	return a, nil
}

var errTooLong = errors.New("it would be too long")

// head keeps the first bytes of what is written, and tells of more.
type head struct {
	b    bytes.Buffer // not embedded: what copies into it would use its ReadFrom
	most int
	over func()
}

func (h *head) Write(p []byte) (int, error) {
	if left := h.most - h.b.Len(); len(p) > left {
		h.b.Write(p[:left])
		h.over()
	} else {
		h.b.Write(p)
	}
	return len(p), nil
}
