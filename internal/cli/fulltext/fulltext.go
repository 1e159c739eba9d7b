// Package fulltext runs lektor-article(1) to extract the article of a page, and defines the
// interface between the two programs.
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

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// Program extracts the article of a page. It is a program of its own because loading its library
// would dominate the start of a fetcher, and because deeply nested input must not crash the
// fetcher.
const Program = "lektor-article"

// Article is the output of [Program] with --json.
type Article struct {
	Title   string `json:"title,omitempty"`
	Content string `json:"content,omitempty"` // HTML with absolute URLs; "" if there is no article
	Refresh string `json:"refresh,omitempty"` // target of a meta refresh within 10 seconds, or ""
}

// Limits of a run of [Program].
const (
	maxTime    = 30 * time.Second
	maxArticle = 16 << 20 // bytes of output
)

// MissingError reports that [Program] cannot be found or started.
type MissingError struct{ Err error }

func (e *MissingError) Error() string {
	return fmt.Sprintf("full text needs %s: %v; install it beside lektor-fetch", Program, e.Err)
}

func (e *MissingError) Unwrap() error { return e.Err }

// Installed returns nil if [Program] can be found, else a [MissingError].
func Installed() error {
	if _, err := cmdline.Program(Program); err != nil {
		return &MissingError{err}
	}
	return nil
}

// Extract runs [Program] to extract the article of a page from url, with that Content-Type. The
// error is a [MissingError], the context's, or describes the defect of the page.
func Extract(ctx context.Context, page []byte, url, contentType string) (*Article, error) {
	path, err := cmdline.Program(Program)
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
	stderr := head{most: 4 << 10, over: func() {}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(page), &out, &stderr
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	switch {
	case parent.Err() != nil:
		return nil, context.Cause(parent)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("its article was not found: %w", context.Cause(ctx))
	case err != nil && errors.As(err, new(*exec.ExitError)):
		why := termsafe.Brief(strings.TrimSpace(strings.TrimPrefix(stderr.b.String(), Program+": ")))
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

// head keeps the first most bytes written to it, and calls over if there are more.
type head struct {
	b    bytes.Buffer // not embedded: io.Copy would call its ReadFrom
	most int
	over func()
}

func (h *head) Write(p []byte) (int, error) {
	if free := h.most - h.b.Len(); len(p) > free {
		h.b.Write(p[:free])
		h.over()
	} else {
		h.b.Write(p)
	}
	return len(p), nil
}
