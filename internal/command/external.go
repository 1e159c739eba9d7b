package command

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

// External is a command that another program has under the same name: this one becomes
// it, with the arguments as they are, and with its own name, by which messages call the
// command (see [called]). The program is looked for beside this one, as they are
// installed together, and then in $PATH.
func External(name, program, usage string) *cli.Command {
	return &cli.Command{
		Name:            name,
		Usage:           usage + ", by " + program + "(1)",
		SkipFlagParsing: true,
		Action:          func(c *cli.Context) error { return become(program, c.App.Name, os.Args) },
	}
}

// become replaces the process.
func become(program, name string, args []string) error {
	path, err := Program(program)
	if err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, append([]string{name}, args[1:]...), os.Environ())}
}

// called returns the name by which a program was started, if it is one of lektor's: what
// the user typed where another program became this one.
func called(app string, args []string) string {
	if len(args) > 0 {
		if name := filepath.Base(args[0]); strings.HasPrefix(name, "lektor-") && !strings.Contains(name, ".") {
			return name
		}
	}
	return app
}

// Program gives the path of another program of lektor's: beside this one, as they are
// installed together, else in $PATH.
func Program(name string) (string, error) {
	path, err := beside(name)
	if err != nil {
		err = Hint(err, "install %s, which belongs to %s, in the same directory", name, filepath.Base(os.Args[0]))
	}
	return path, err
}

// RunBeside runs such a program with arguments and an input, under our name, prints where
// we do, and waits for it. It ends with ctx, by SIGTERM first. What went wrong in it, it has told.
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
	cmd.WaitDelay = 2 * time.Second
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

func beside(program string) (string, error) {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), program)
		if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrDot) {
		err = nil // the user's own $PATH says so
	}
	return path, err
}
