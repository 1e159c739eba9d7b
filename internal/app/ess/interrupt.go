package ess

import (
	"context"
	"io"
)

// interruptible calls f, and waits for it no longer than ctx lives: f may be
// waiting for a pipe or a terminal, or reading a file without end.
func interruptible[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// Interruptible gives a reader of r whose Read fails when ctx ends, even while
// r waits.
func Interruptible(ctx context.Context, r io.Reader) io.Reader {
	return &interruptibleReader{ctx: ctx, r: r}
}

type interruptibleReader struct {
	ctx context.Context
	r   io.Reader
	buf []byte // of the read that may still be going on when nobody waits for it
	got []byte
	err error
}

func (r *interruptibleReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if len(r.got) == 0 && r.err == nil {
		if r.buf == nil {
			r.buf = make([]byte, 32<<10)
		}
		n, err := interruptible(r.ctx, func() (int, error) { return r.r.Read(r.buf) })
		r.got, r.err = r.buf[:n], err
	}
	if len(r.got) == 0 {
		return 0, r.err
	}
	n := copy(p, r.got)
	r.got = r.got[n:]
	return n, nil
}
