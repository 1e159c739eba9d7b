package cmdline

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Interruptible calls f and waits until it returns or ctx ends: f may block on a pipe or terminal,
// or read an endless file. The error is that of f, or the cause of ctx; then f may still be
// running, and must not share data with the caller.
func Interruptible[T any](ctx context.Context, f func() (T, error)) (T, error) {
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

// NewReader returns a reader of r whose Read fails with the cause when ctx ends,
// even while r waits. Every command reads standard input this way. If the input
// ends because a signal ended its writer, as ^C ends all processes of a pipeline, and the same
// signal is on its way to this process, Read fails instead of returning io.EOF.
func NewReader(ctx context.Context, r io.Reader) io.Reader {
	if same, ok := r.(*reader); ok && same.ctx == ctx {
		return r
	}
	return &reader{ctx: ctx, Reader: r}
}

type reader struct {
	io.Reader
	ctx context.Context
	buf []byte // buffer of a read that may outlive its caller
	got []byte
	err error
}

func (r *reader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if len(r.got) == 0 && r.err == nil {
		if r.buf == nil {
			r.buf = make([]byte, 32<<10)
		}
		n, err := Interruptible(r.ctx, func() (int, error) { return r.Reader.Read(r.buf) })
		r.got, r.err = r.buf[:n], err
		if settle, ok := r.ctx.Value(settleKey{}).(func()); ok && err == io.EOF {
			// Perhaps whoever wrote it was stopped, and so are we.
			if settle(); r.ctx.Err() != nil {
				r.got, r.err = nil, context.Cause(r.ctx)
			}
		}
	}
	if len(r.got) == 0 {
		return 0, r.err
	}
	n := copy(p, r.got)
	r.got = r.got[n:]
	return n, nil
}

// SizeError is what [ReadAll] returns for more than the limit.
type SizeError struct{ Limit int64 } // bytes

func (e *SizeError) Error() string { return fmt.Sprintf("more than %d bytes", e.Limit) }

// grace is how long the end of an input must last to be believed.
const grace = 10 * time.Millisecond

// ReadAll reads input to its end, for what means something only as a whole: more
// than limit bytes are a [*SizeError]. When ctx ends before the input does, nothing
// is read and the error is the cause.
func ReadAll(ctx context.Context, in io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(NewReader(ctx, in), limit+1))
	if err == nil && ctx.Value(settleKey{}) != nil {
		// A signal may have been taken by a thread that did not get round to
		// telling of it; half an entry would be delivered.
		select {
		case <-ctx.Done():
		case <-time.After(grace):
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case int64(len(b)) > limit:
		return nil, &SizeError{limit}
	}
	return b, nil
}
