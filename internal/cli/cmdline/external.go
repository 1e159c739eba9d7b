package cmdline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"
)

// External returns a command that replaces this process by another program, with unchanged
// arguments, and with its own name as argument 0, so that messages name the command that the user
// typed (see [called]). The program is searched for in the directory of this one, and then in
// $PATH.
func External(name, program, usage string) *cli.Command {
	return &cli.Command{
		Name:            name,
		Usage:           usage + ", by " + program + "(1)",
		SkipFlagParsing: true,
		Action:          func(c *cli.Context) error { return become(program, c.App.Name, os.Args) },
	}
}

// become replaces the process by program.
func become(program, name string, args []string) error {
	path, err := Program(program)
	if err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, append([]string{name}, args[1:]...),
		os.Environ())}
}

// called returns the base name of args[0] if it is a name of lektor's programs, else app: after
// [External] it is the name that the user typed.
func called(app string, args []string) string {
	if len(args) > 0 {
		if name := filepath.Base(args[0]); strings.HasPrefix(name, "lektor-") && !strings.Contains(name, ".") {
			return name
		}
	}
	return app
}

// Program returns the path of another program of lektor, in the directory of this one, else in
// $PATH.
func Program(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrDot) {
		err = nil // the user's $PATH contains the current directory
	}
	return path, Hint(err, "install %s, which belongs to %s, in the same directory", name, filepath.Base(os.Args[0]))
}

// RunBeside runs another program of lektor under the name of this one, with args and in, writes to
// the streams of s, and waits for it. If ctx ends, it sends SIGTERM, and kills it ten seconds
// later, when it has had time to remove its temporary files. If the program fails, the error has its
// exit status and no message, as the program has printed one.
func RunBeside(ctx context.Context, program string, args []string, in io.Reader, s *Streams) error {
	path, err := Program(program)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Args[0] = s.Report.name
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, s.Out, s.Err
	if out := s.OutFile(); out != nil {
		cmd.Stdout = out
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	switch exit, ok := errors.AsType[*exec.ExitError](err); {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case ok && exit.Exited():
		return &ExitError{Status: exit.ExitCode()}
	case err != nil:
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
