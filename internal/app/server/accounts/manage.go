package accounts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/passwords"
)

// MaxPassword is the maximum length of a password, in bytes: bcrypt ignores the rest.
const MaxPassword = 72

// CheckName returns an error if a name cannot be that of a user.
func CheckName(name string) error {
	if !userName().MatchString(name) {
		return errors.New("a name has 1 to 64 letters, digits and _ . @ + - and begins with a letter, a digit or _")
	}
	return nil
}

// CheckPassword returns an error if a password cannot be set.
func CheckPassword(password string) error {
	secret, valid := normal(password)
	switch {
	case len(secret) == 0:
		return errors.New("the password is empty")
	case !valid:
		return fmt.Errorf("the password has more than %d bytes, or is not valid UTF-8", MaxPassword)
	}
	return nil
}

// normal returns a password in one form of Unicode, as a phone and a terminal may write é
// differently, and reports whether it can be one.
func normal(password string) (secret []byte, valid bool) {
	if len(password) > 4*MaxPassword {
		return nil, false
	}
	secret = norm.NFC.Bytes([]byte(password))
	valid = utf8.ValidString(password) && len(secret) > 0 && len(secret) <= MaxPassword &&
		!strings.ContainsRune(password, 0)
	return secret[:min(len(secret), MaxPassword)], valid
}

// SetPassword adds a user, or changes the password and the lektor-dir of one, which revokes
// the user's tokens. dir is an absolute path; "" keeps the lektor-dir of a known user. added
// reports whether the user is new.
func (a *Accounts) SetPassword(ctx context.Context, name, password, dir string) (added bool, err error) {
	if err := cmp.Or(CheckName(name), CheckPassword(password)); err != nil {
		return false, err
	}
	if dir != "" && (!filepath.IsAbs(dir) || strings.ContainsFunc(dir, unicode.IsControl)) {
		return false, errors.New("the directory of a user is an absolute path without control characters")
	}
	secret, _ := normal(password)
	hash, err := passwords.Hash(secret, a.cost)
	if err != nil {
		return false, err
	}
	err = a.change(ctx, a.users.Path, func(lines *values.Values) (bool, error) {
		old, known := a.users.Value[name]
		u := account{User{name, cmp.Or(dir, old.Dir)}, hash}
		if u.Dir == "" {
			return false, ErrUnknown
		}
		added = !known
		lines.Set(name, u.text())
		return true, nil
	})
	return added, err
}

// Remove removes a user, which revokes the user's tokens. The lektor-dir stays. The error is
// ErrUnknown if there is no such user.
func (a *Accounts) Remove(ctx context.Context, name string) error {
	return a.change(ctx, a.users.Path, func(lines *values.Values) (bool, error) {
		if _, known := a.users.Value[name]; !known {
			return false, ErrUnknown
		}
		lines.Set(name, "")
		return true, nil
	})
}

// Users returns the users by name.
func (a *Accounts) Users() ([]User, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(); err != nil {
		return nil, err
	}
	var list []User
	for _, name := range slices.Sorted(maps.Keys(a.users.Value)) {
		list = append(list, a.users.Value[name].User)
	}
	return list, nil
}

// Tokens returns the tokens that are not revoked, by user and in the order in which they were
// made.
func (a *Accounts) Tokens() ([]Token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(); err != nil {
		return nil, err
	}
	var list []Token
	for sum := range a.tokens.Value {
		if t, ok := a.alive(sum); ok {
			list = append(list, t.Token)
		}
	}
	slices.SortFunc(list, func(x, y Token) int {
		return cmp.Or(cmp.Compare(x.User, y.User), x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
	return list, nil
}

// Logout revokes a token.
func (a *Accounts) Logout(ctx context.Context, secret string) error {
	return a.change(ctx, a.tokens.Path, func(lines *values.Values) (bool, error) {
		t, ok := a.alive(digestOf(secret))
		lines.Set(t.ID, "")
		return ok, nil
	})
}

// Revoke revokes the tokens that wanted selects, all at once, and returns their number.
func (a *Accounts) Revoke(ctx context.Context, wanted func(Token) bool) (n int, err error) {
	err = a.change(ctx, a.tokens.Path, func(lines *values.Values) (bool, error) {
		for sum := range a.tokens.Value {
			if t, ok := a.alive(sum); ok && wanted(t.Token) {
				lines.Set(t.ID, "")
				n++
			}
		}
		return n > 0, nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
