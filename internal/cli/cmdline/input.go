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

// NewReader returns a reader of r. When ctx ends, its Read fails with the cause, even while r
// blocks. All commands read standard input by it.
//
// A signal such as ^C may end the writer of the input, too. Then the input ends while the same
// signal is on its way to this process, and Read fails instead of returning io.EOF.
func NewReader(ctx context.Context, r io.Reader) io.Reader {
	if same, ok := r.(*stdinReader); ok && same.ctx == ctx {
		return r
	}
	return &stdinReader{ctx: ctx, Reader: r}
}

type stdinReader struct {
	io.Reader
	ctx context.Context
	buf []byte // buffer of a read that may outlive its caller
	got []byte
	err error
}

func (r *stdinReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	if len(r.got) == 0 && r.err == nil {
		if r.buf == nil {
			r.buf = make([]byte, 32<<10)
		}
		n, err := Interruptible(r.ctx, func() (int, error) { return r.Reader.Read(r.buf) })
		r.got, r.err = r.buf[:n], err
		if handleSent, ok := r.ctx.Value(signalsKey{}).(func()); ok && err == io.EOF {
			// A signal that ended the writer may be on its way to this process.
			if handleSent(); r.ctx.Err() != nil {
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

// SizeError is the error of [ReadAll] for input over the limit.
type SizeError struct{ Limit int64 } // bytes

func (e *SizeError) Error() string { return fmt.Sprintf("more than %d bytes", e.Limit) }

// grace is how long ReadAll waits for a signal after the end of the input.
const grace = 10 * time.Millisecond

// ReadAll reads input to its end, for input that is used only as a whole. More than limit bytes
// are a [*SizeError]. If ctx ends before the input does, the error is the cause and there is no
// data.
func ReadAll(ctx context.Context, in io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(NewReader(ctx, in), limit+1))
	if err == nil && ctx.Value(signalsKey{}) != nil {
		// A thread may have received a signal without passing it on yet. Without a pause, half an
		// entry might be delivered.
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
