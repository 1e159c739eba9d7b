package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/urfave/cli/v2"
)

// External is a command that another program has under the same name: this one becomes
// it, with the arguments as they are. The program is looked for beside this one, as
// they are installed together, and then in $PATH.
func External(name, program, usage string) *cli.Command {
	return &cli.Command{
		Name:            name,
		Usage:           usage + ", by " + program + "(1)",
		SkipFlagParsing: true,
		Action:          func(c *cli.Context) error { return become(program, os.Args) },
	}
}

// become replaces the process.
func become(program string, args []string) error {
	path, err := Program(program)
	if err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: path, Err: syscall.Exec(path, append([]string{program}, args[1:]...), os.Environ())}
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
