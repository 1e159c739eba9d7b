package terminal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/lektordir/lektor/internal/app/viewer/tui/cells"
	"github.com/lektordir/lektor/internal/cli/cmdline"
)

// Command returns the command of an argument vector. A leading ~/ of the program is the
// user's home directory.
func Command(env, argv []string) *exec.Cmd {
	name, _ := cmdline.ExpandHome(argv[0]) // without a home, starting it fails
	cmd := exec.Command(name, argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	return cmd
}

// Background runs a command without the terminal, and returns the first line that it prints.
func Background(env, argv []string) (printed string, err error) {
	text, err := capture(Command(env, argv), 4096)
	printed, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	switch {
	case err == nil:
		return printed, nil
	case printed != "":
		err = fmt.Errorf("%w: %s", err, printed)
	}
	return "", fmt.Errorf("%s: %w", argv[0], err)
}

// limited is a writer that keeps the first bytes. It embeds no buffer: promoted methods could
// write past the limit.
type limited struct {
	buf  bytes.Buffer
	most int // maximum number of bytes
}

func (l *limited) Write(p []byte) (int, error) {
	l.buf.Write(p[:min(l.most-l.buf.Len(), len(p))])
	return len(p), nil
}

// capture runs a command off the terminal, and returns the first bytes that it prints.
func capture(cmd *exec.Cmd, most int) (string, error) {
	out := &limited{most: most}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout, cmd.Stderr = out, out
	err := cmd.Run()
	return out.buf.String(), err
}

// outputBytes is how much of the output of a command is shown.
const outputBytes = 1 << 20

// Output runs a command without a terminal, and returns the lines that it prints. Text is
// wrapped for a screen of this width.
func Output(ctx context.Context, argv []string, width int) (lines []string, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LEKTOR_WIDTH="+strconv.Itoa(max(20, min(width-2, 80))))
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	text, err := capture(cmd, outputBytes)
	for line := range strings.Lines(strings.TrimRight(text, " \t\r\n")) {
		lines = append(lines, cells.Plain(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "  ")))
	}
	if len(text) == outputBytes {
		lines = append(lines, "…")
	}
	return lines, err
}
