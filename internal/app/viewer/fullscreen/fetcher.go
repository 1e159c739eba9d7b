package fullscreen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"

	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// fetcherName is the program that makes every change of src/ for the reader.
const fetcherName = "lektor-fetch"

// Fetcher runs lektor-fetch in a session of its own, off the reader's terminal. It is never
// killed: SIGTERM ends it when the feeds that it is delivering are whole.
func (l *changes) Fetcher(ctx context.Context, in string, args []string, line func(string)) ([]string, error) {
	path, err := cmdline.Program(fetcherName)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, append([]string{"--dir", l.dir.Path()}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdin = strings.NewReader(in)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadString('\n')
		if err != nil && text == "" {
			break
		}
		line(strings.TrimSuffix(text, "\n"))
	}
	err = cmd.Wait()
	var all []string
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && !exit.Exited() {
		all = append(all, fetcherName+": "+err.Error()) // the signal that killed it
	}
	return append(all, linesOf(&messages, fetcherName+": ")...), err
}
