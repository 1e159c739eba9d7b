// Package accounts keeps the users of lektor-serve, and the tokens that their clients log in
// with, in the state directory:
//
//	users     a line for each user: name, bcrypt hash of the password, lektor-dir
//	tokens    a line for each token: id, SHA-256, user, password, client, created, used
//	lock      locked while one of the files is replaced
//
// Fields have a tab between, and lines that begin with # are notes. Files are replaced
// atomically and synced. Every use sees what other processes have changed.
//
// A token names the password with which it was made, by a digest of the user's hash. So one
// replacement of users changes a password and revokes the tokens of the old one, and a kill
// cannot come between. The lines of revoked tokens go when a token is added.
package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/files/stamp"
	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/files/workers"
	"github.com/lektordir/lektor/internal/http/passwords"
)

// Errors of [Accounts]. No error names a user.
var (
	// ErrDenied is the error of a wrong name, password or token.
	ErrDenied = passwords.ErrDenied
	// ErrUnknown is the error of a command that names an unknown user or token.
	ErrUnknown = errors.New("unknown")
	// errBusy is the error if another process keeps the lock.
	errBusy = errors.New("another process has it locked")
)

// User is a user of the server.
type User struct {
	Name string
	Dir  string // absolute path of the lektor-dir
}

// Token describes a token, without the token itself.
type Token struct {
	ID, User, Client string
	Created          time.Time
	Used             time.Time // midnight of the last day of use in UTC, zero if never used
}

// Accounts are the users and tokens of a state directory. They are safe for concurrent use.
type Accounts struct {
	state string
	now   func() time.Time
	write func(path string, data []byte) error

	checker  *passwords.Checker
	cost     int        // of bcrypt
	changing sync.Mutex // held beside the lock file

	mu     sync.Mutex
	users  stamp.File[map[string]account]
	tokens stamp.File[map[digest]token]
	recent map[digest]time.Time // last use of tokens in this process
}

// Open opens the accounts in a state directory, which it creates if necessary, for this user
// alone. now is the clock; nil means [time.Now].
func Open(state string, now func() time.Time) (*Accounts, error) {
	if now == nil {
		now = time.Now
	}
	if err := atomicfile.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	if err := atomicfile.TrustedState(state, "users", "tokens"); err != nil {
		return nil, err
	}
	// [atomicfile.Lock] would let others open the file, and so keep the lock.
	lock, err := os.OpenFile(filepath.Join(state, "lock"), os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock.Close(); err != nil {
		return nil, err
	}
	a := &Accounts{
		state: state, now: now, write: atomicfile.WritePrivate,
		checker: passwords.New(now), cost: passwords.Cost,
		recent: map[digest]time.Time{},
	}
	a.users = stamp.File[map[string]account]{Path: filepath.Join(state, "users"), Max: maxFile, Parse: parseUsers}
	a.tokens = stamp.File[map[digest]token]{Path: filepath.Join(state, "tokens"), Max: maxFile, Parse: parseTokens}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a, a.load()
}

// load reads the files that have changed. The caller holds mu.
func (a *Accounts) load() error { return errors.Join(a.users.Load(), a.tokens.Load()) }

// Login checks a password and returns a new token, which lasts until it is revoked. client is
// the name of the program that logs in, for the list of tokens. from is its address: after
// several wrong passwords from a network, the error is a
// [*passwords.LimitedError]. Unknown users take
// as long as known ones. ErrDenied is the error of a wrong name or password.
func (a *Accounts) Login(ctx context.Context, name, password, client string, from netip.Addr) (string, User, error) {
	secret, valid := normal(password)
	hash, known, err := a.hashOf(name)
	if err != nil {
		return "", User{}, err
	}
	if err := a.checker.Check(ctx, from, name, hash, secret, known && valid); err != nil {
		return "", User{}, err
	}
	secretToken, u, err := a.issue(ctx, name, hash, client)
	if err == nil {
		a.checker.Succeeded(from)
	}
	return secretToken, u, err
}

// hashOf returns what [passwords.HashOf] returns for a user.
func (a *Accounts) hashOf(name string) (hash string, known bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(); err != nil {
		return "", false, err
	}
	hash, known = passwords.HashOf(a.users.Value, name, func(u account) string { return u.hash })
	return hash, known, nil
}

// issue adds a token for a user whose hash a password has matched. It returns ErrDenied if
// that is no longer the user's hash.
func (a *Accounts) issue(ctx context.Context, name, hash, client string) (secret string, u User, err error) {
	secret = rand.Text() + rand.Text() // 256 bits
	sum := digestOf(secret)
	err = a.change(ctx, a.tokens.Path, func(lines *values.Values) (bool, error) {
		user := a.users.Value[name]
		if user.hash != hash {
			return false, ErrDenied
		}
		u = user.User
		a.prune(lines, name, clientName(client))
		t := token{
			Token: Token{ID: newID(lines), User: name, Client: clientName(client), Created: a.now()},
			sum:   sum, password: passwordMark(hash),
		}
		lines.Set(t.ID, t.text())
		return true, nil
	})
	if err != nil {
		return "", User{}, err
	}
	return secret, u, nil
}

// Check returns the user of a token. The error is ErrDenied if the token is unknown or
// revoked. Check does not compute a password hash; unless a file has changed, it costs two
// calls of stat(2). The first use on a day is recorded.
func (a *Accounts) Check(secret string) (User, error) {
	sum := digestOf(secret)
	a.mu.Lock()
	if err := a.load(); err != nil {
		a.mu.Unlock()
		return User{}, err
	}
	t, ok := a.alive(sum)
	u := a.users.Value[t.User].User
	day := ""
	if ok {
		if today := dayOf(a.now()); t.day() != today && dayOf(a.recent[sum]) != today {
			day = today
		}
		a.recent[sum] = a.now()
	}
	a.mu.Unlock()
	if !ok {
		return User{}, ErrDenied
	}
	if day != "" {
		a.note(day)
	}
	return u, nil
}

// alive returns a token that is not revoked. The caller holds mu.
func (a *Accounts) alive(sum digest) (token, bool) {
	t, ok := a.tokens.Value[sum]
	u, known := a.users.Value[t.User]
	return t, ok && known && t.password == passwordMark(u.hash)
}

// note records the uses of this day. It does not wait for the lock, and ignores errors: a
// full disk must not refuse a reader. A use that was not recorded is recorded with the next
// one.
func (a *Accounts) note(day string) {
	if !a.changing.TryLock() {
		return
	}
	defer a.changing.Unlock()
	unlock, err := a.lock()
	if err != nil {
		return
	}
	defer unlock()
	_ = a.replace(a.tokens.Path, func(lines *values.Values) (bool, error) {
		for sum, last := range a.recent {
			t, ok := a.alive(sum)
			if !ok {
				delete(a.recent, sum)
			} else if t.day() < day && dayOf(last) == day {
				t.Used = a.now()
				lines.Set(t.ID, t.text())
			}
		}
		return true, nil
	})
}

// change changes the lines of a file while no other process does. It calls edit with mu held
// and both files read, and replaces the file if edit returns true.
func (a *Accounts) change(ctx context.Context, path string, edit func(*values.Values) (bool, error)) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	unlock, err := a.waitForLock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	atomicfile.Sweep(path)
	return a.replace(path, edit)
}

// replace is change for a caller that holds the lock.
func (a *Accounts) replace(path string, edit func(*values.Values) (bool, error)) error {
	text, err := a.edited(path, edit)
	if err != nil || text == nil {
		return err
	}
	return a.write(path, text) // without mu: tokens are checked meanwhile
}

// edited returns the new text of a file, nil if it does not change.
func (a *Accounts) edited(path string, edit func(*values.Values) (bool, error)) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(); err != nil {
		return nil, err
	}
	data, err := atomicfile.Read(path, maxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	lines := values.Parse(data, '\t')
	changed, err := edit(lines)
	if err != nil || !changed {
		return nil, err
	}
	return append([]byte{}, lines.Text()...), nil
}

// waitForLock takes the lock as soon as it is free.
func (a *Accounts) waitForLock(ctx context.Context) (unlock func(), err error) {
	isBusy := func(err error) bool { return err == errBusy }
	err = workers.WhileBusy(ctx, workers.Sleep, workers.Patience, nil, isBusy, func() error {
		unlock, err = a.lock()
		return err
	})
	if err == errBusy {
		err = fmt.Errorf("%s: %w", a.state, errBusy)
	}
	return unlock, err
}

func (a *Accounts) lock() (unlock func(), err error) {
	return atomicfile.Lock(filepath.Join(a.state, "lock"), errBusy)
}

// digest is a SHA-256.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// passwordMark names a password by its hash, which has a random salt.
func passwordMark(hash string) string {
	sum := digestOf(hash)
	return hex.EncodeToString(sum[:16])
}
