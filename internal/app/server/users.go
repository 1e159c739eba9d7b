package server

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// PasswdOptions are the options of [Passwd].
type PasswdOptions struct {
	State  string // directory of users and tokens; "" for DefaultState
	Name   string // name of the user
	Dir    string // lektor-dir of the user; "" for that of a known user, else the default one
	Remove bool   // remove the user
}

// shortPassword is the length of a password, in characters, below which there is a warning.
const shortPassword = 8

// Passwd adds a user, or sets the password and the lektor-dir of one. It reads the password
// twice from a terminal, or else from the first line of s.In. With Remove, it removes the user.
func Passwd(ctx context.Context, o PasswdOptions, s *cmdline.Streams) error {
	if err := accounts.CheckName(o.Name); err != nil {
		return cmdline.Usagef("%w", err)
	}
	state := cmp.Or(o.State, DefaultState())
	a, err := openAccounts(state, !o.Remove)
	if err != nil {
		return err
	}
	if o.Remove {
		if err := a.Remove(ctx, o.Name); err != nil {
			return noUser(err)
		}
		s.Report.Info("the user is removed, and the tokens of the user are revoked")
		return nil
	}
	dir, err := o.dir(a)
	if err != nil {
		return err
	}
	password, err := readPassword(ctx, s)
	if err != nil {
		return err
	}
	if err := accounts.CheckPassword(password); err != nil {
		return err
	}
	added, err := a.SetPassword(ctx, o.Name, password, dir)
	if err != nil {
		return noUser(err)
	}
	if utf8.RuneCountInString(password) < shortPassword {
		s.Report.Warn("the password has fewer than %d characters: others may guess it", shortPassword)
	}
	if added {
		s.Report.Info("the user is added, with the lektor-dir %s", dir)
	} else {
		s.Report.Info("the password is set, and the tokens of the user are revoked: clients must log in again")
	}
	return nil
}

// noUser names an unknown user as the reason of an error.
func noUser(err error) error {
	if errors.Is(err, accounts.ErrUnknown) {
		return cmdline.Hint(errors.New("there is no user of this name"),
			"\"lektor-serve passwd NAME\" adds one; or name another state with --state")
	}
	return err
}

// openAccounts opens the users and tokens of a state directory, which must exist unless create
// is set.
func openAccounts(state string, create bool) (*accounts.Accounts, error) {
	if _, err := os.Stat(state); !create && errors.Is(err, fs.ErrNotExist) {
		return nil, cmdline.Hint(fmt.Errorf("there are no users in %s", state),
			"name another state with --state; \"lektor-serve passwd NAME\" adds a user")
	}
	a, err := accounts.Open(state, nil)
	return a, cmdline.Hint(err, "name a directory that is yours with --state")
}

// dir returns the absolute path of the user's lektor-dir, "" to keep that of a known user.
func (o PasswdOptions) dir(a *accounts.Accounts) (string, error) {
	path := o.Dir
	if path == "" {
		users, err := a.Users()
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(users, func(u accounts.User) bool { return u.Name == o.Name }) {
			return "", nil
		}
		path = cmdline.DefaultDir()
	}
	if _, err := cmdline.OpenDir(path, nil); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// readPassword reads a password: on a terminal twice without echo, else the first line. The terminal is raw
// meanwhile, so that no key stops the program and leaves it without echo.
func readPassword(ctx context.Context, s *cmdline.Streams) (password string, err error) {
	if !s.InIsTerminal() {
		return readLine(cmdline.NewReader(ctx, s.In))
	}
	// Programs and quick fingers type as soon as they see a prompt: the echo ends before it.
	fd := int(s.InFile().Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, term.Restore(fd, before)) }()
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{cmdline.NewReader(ctx, s.InFile()), s.Err}, "")
	first, err := t.ReadPassword("Password: ")
	second := first
	if err == nil {
		second, err = t.ReadPassword("Once more: ")
	}
	switch {
	case errors.Is(err, io.EOF): // ^C or ^D
		fmt.Fprint(s.Err, "\r\n")
		return "", cmdline.Stopped(syscall.SIGINT)
	case err == nil && first != second:
		err = errors.New("the passwords differ: nothing has changed")
	}
	return first, err
}

// readLine reads a line that is a password.
func readLine(in io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(in, 64<<10)).ReadString('\n')
	switch {
	case errors.Is(err, io.EOF) && line == "":
		return "", errors.New("there is no password in standard input: nothing has changed")
	case err != nil && !errors.Is(err, io.EOF):
		return "", fmt.Errorf("standard input: %w", err)
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// TokensOptions are the options of [Tokens].
type TokensOptions struct {
	State  string   // directory of users and tokens; "" for DefaultState
	Revoke []string // ids of tokens to revoke; nil lists the tokens
	Format string   // see [cmdline.PrinterOptions]; "" for one line a token
}

const tokensFormat = `{{.id | pad 8}} {{.user | pad 16}} {{.created | date "2006-01-02" | pad 10}} {{.used | date "2006-01-02" | pad 10}} {{.client}}`

var tokenColumns = []cmdline.Column[accounts.Token]{
	{Name: "id", Verbatim: true, Get: func(t accounts.Token) any { return t.ID }},
	{Name: "user", Verbatim: true, Get: func(t accounts.Token) any { return t.User }},
	{Name: "created", Get: func(t accounts.Token) any { return t.Created }},
	{Name: "used", Get: func(t accounts.Token) any { return t.Used }},
	{Name: "client", Get: func(t accounts.Token) any { return t.Client }},
}

// Tokens lists the tokens with which clients are logged in, or revokes some of them.
func Tokens(ctx context.Context, o TokensOptions, s *cmdline.Streams) error {
	a, err := openAccounts(cmp.Or(o.State, DefaultState()), false)
	if err != nil {
		return err
	}
	if o.Revoke != nil {
		return revoke(ctx, a, o.Revoke, s)
	}
	list, err := a.Tokens()
	if err != nil {
		return err
	}
	return cmdline.Records(s.Out, cmdline.PrinterOptions{Format: o.Format}, tokensFormat, tokenColumns,
		func(p *cmdline.Printer[accounts.Token]) error {
			return p.PrintAll(list)
		})
}

// revoke revokes tokens by their ids, and reports the ids that no token has.
func revoke(ctx context.Context, a *accounts.Accounts, ids []string, s *cmdline.Streams) error {
	found := map[string]bool{}
	n, err := a.Revoke(ctx, func(t accounts.Token) bool {
		found[t.ID] = slices.Contains(ids, t.ID)
		return found[t.ID]
	})
	if err != nil {
		return err
	}
	if n > 0 {
		s.Report.Info("%s revoked", humanize.Count(n, "token"))
	}
	var unknown []error
	for _, id := range ids {
		if !found[id] {
			unknown = append(unknown, cmdline.Hint(fmt.Errorf("no token has the id %q", id),
				"\"lektor-serve tokens\" lists them"))
		}
	}
	return errors.Join(unknown...)
}
