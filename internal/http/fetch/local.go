package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

// getFile reads a document from a file; rest is the part of the URL after "file:". The ETag is made
// of attributes that change with the file.
func (c *Client) getFile(r *httpmsg.Request, rest string) (*httpmsg.Response, error) {
	path, err := feedurl.FilePath(rest)
	if err != nil {
		return nil, &feedurl.Error{URL: r.URL, Reason: err.Error()}
	}
	f, err := atomicfile.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.URL, errors.Unwrap(err))
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	res := &httpmsg.Response{
		Status:   http.StatusOK,
		Header:   textproto.MIMEHeader{},
		ETag:     fmt.Sprintf("%d.%09d-%d", fi.ModTime().Unix(), fi.ModTime().Nanosecond(), fi.Size()),
		FinalURL: (&url.URL{Scheme: "file", Path: path}).String(),
		Received: c.cfg.Now(),
	}
	if r.ETag == res.ETag {
		res.Status, res.NotModified = http.StatusNotModified, true
		return res, nil
	}
	limit := &httpmsg.LimitError{URL: r.URL, Limit: "bytes", Max: c.cfg.MaxBytes, Flag: httpmsg.FlagMaxBytes}
	if fi.Size() > c.cfg.MaxBytes {
		return nil, limit
	}
	res.Body, err = io.ReadAll(&wireReader{r: f, max: c.cfg.MaxBytes, limit: limit})
	if err != nil {
		return nil, err
	}
	res.WireBytes = int64(len(res.Body))
	return res, nil
}

// getExec runs a command whose standard output is the document.
func (c *Client) getExec(ctx context.Context, r *httpmsg.Request, command string) (*httpmsg.Response, error) {
	if strings.TrimSpace(command) == "" {
		return nil, &feedurl.Error{URL: r.URL, Reason: "there is no command after exec:"}
	}
	now := c.cfg.Now()
	out, err := c.command(ctx, "exec", command, nil, r.Env)
	if err != nil {
		return nil, err
	}
	return &httpmsg.Response{
		Status: http.StatusOK, Header: textproto.MIMEHeader{}, Body: out, WireBytes: int64(len(out)),
		FinalURL: r.URL, Received: now,
	}, nil
}

// Filter runs command with /bin/sh with doc on standard input, and returns its standard output. env
// is added to its environment. After [Config].Deadline, or more than MaxBytes of output, the
// command and all processes in its process group are killed. The error is a [httpmsg.CommandError],
// [httpmsg.LimitError], [httpmsg.NetError] with KindTimeout, or wraps the cause of ctx.
//
// The caller must check that nobody but the user could write the command.
func (c *Client) Filter(ctx context.Context, command string, doc []byte, env ...string) ([]byte, error) {
	return c.command(ctx, "filter", command, doc, env)
}

// stderrBytes is how much of the end of a command's standard error is kept.
const stderrBytes = 2 << 10

func (c *Client) command(parent context.Context, what, command string, stdin []byte, env []string) ([]byte, error) {
	name := what + ":" + command
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	deadline := time.AfterFunc(c.cfg.Deadline, func() { cancel(errDeadline) })
	defer deadline.Stop()

	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env = append(os.Environ(), env...)
	// The shell gets its own process group, so that its children are killed with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.Cancel = kill
	// A background process may outlive the shell with the output open. Wait for it a few seconds, in which all
	// output is read even on a busy machine, then kill it.
	cmd.WaitDelay = 3 * time.Second
	limit := &httpmsg.LimitError{URL: name, Limit: "bytes of output", Max: c.cfg.MaxBytes, Flag: httpmsg.FlagMaxBytes}
	var out bytes.Buffer
	cmd.Stdout = writer(func(p []byte) (int, error) {
		if int64(out.Len()+len(p)) > c.cfg.MaxBytes {
			cancel(limit)
			return 0, limit
		}
		return out.Write(p)
	})
	var stderr []byte
	cmd.Stderr = writer(func(p []byte) (int, error) {
		stderr = append(stderr, p...)
		stderr = stderr[max(0, len(stderr)-stderrBytes):]
		return len(p), nil
	})
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		_ = kill()
		err = nil
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, limit):
		return nil, limit
	case parent.Err() != nil:
		return nil, fmt.Errorf("%s: %w", name, context.Cause(parent))
	case err != nil && errors.Is(cause, errDeadline):
		return nil, &httpmsg.NetError{URL: name, Kind: httpmsg.KindTimeout,
			Err: fmt.Errorf("the command did not end within %s", c.cfg.Deadline)}
	case err != nil:
		return nil, &httpmsg.CommandError{What: what, Command: command, Err: err,
			Stderr: termsafe.Brief(string(stderr))}
	}
	return out.Bytes(), nil
}

// writer is a function as an [io.Writer].
type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
