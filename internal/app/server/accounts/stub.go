package accounts

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type User struct{ Name, Dir string }

var ErrDenied = errors.New("denied")

type LimitedError struct{ Wait time.Duration }

func (e *LimitedError) Error() string { return "limited" }

type Accounts struct{ state string }

func Open(state string, now func() time.Time) (*Accounts, error) { return &Accounts{state}, nil }

func (a *Accounts) Login(ctx context.Context, name, password, client string, from netip.Addr) (string, User, error) {
	return a.find(func(f []string) bool { return f[0] == name && f[1] == password })
}
func (a *Accounts) Check(token string) (User, error) {
	_, u, err := a.find(func(f []string) bool { return "tok"+f[0] == token })
	return u, err
}
func (a *Accounts) find(is func([]string) bool) (string, User, error) {
	b, err := os.ReadFile(filepath.Join(a.state, "stub"))
	for _, l := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if f := strings.Split(l, "\t"); len(f) == 3 && is(f) {
			return "tok" + f[0], User{f[0], f[2]}, nil
		}
	}
	return "", User{}, errors.Join(err, ErrDenied)
}
