// Package passwords checks the passwords of users against bcrypt hashes, for servers. The time of
// a check does not show whether the user exists, and after several wrong passwords a network must
// wait.
package passwords

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// ErrDenied is the error of a wrong name or password. It names no user.
var ErrDenied = errors.New("the user, the password or the token is wrong")

// Cost is the cost of bcrypt: a fraction of a second for a check, on small machines too.
const Cost = bcrypt.DefaultCost

// Nobody is the hash of a random password of nobody, with [Cost].
const Nobody = "$2a$10$JquuZ2Jhcc1ApiAMNHGFWupsryYluFMvN2qL3TtKzKyUAWmIUjhBm"

// Hash returns the bcrypt hash of a password of at most 72 bytes.
func Hash(password []byte, cost int) (string, error) {
	hash, err := bcrypt.GenerateFromPassword(password, cost)
	return string(hash), err
}

// IsHash reports whether text is a bcrypt hash.
func IsHash(text string) bool {
	_, err := bcrypt.Cost([]byte(text))
	return err == nil
}

// Checker checks passwords. It is safe for concurrent use.
type Checker struct {
	attempts
	// Compare is bcrypt.CompareHashAndPassword, except in tests.
	Compare func(hash, password []byte) error
	hashing chan struct{} // limits the checks at once
}

// New returns a checker with a clock.
func New(now func() time.Time) *Checker {
	return &Checker{
		attempts: newAttempts(now), Compare: bcrypt.CompareHashAndPassword,
		hashing: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	}
}

// AtOnce returns the number of checks that run at once.
func (c *Checker) AtOnce() int { return cap(c.hashing) }

// HashOf returns the hash to compare a password with, and whether the user is known. The hash of an
// unknown user is that of another one, always the same for a name, so that the check takes as long
// as for a known one.
func HashOf[U any](users map[string]U, name string, hash func(U) string) (string, bool) {
	if u, ok := users[name]; ok {
		return hash(u), true
	}
	if len(users) == 0 {
		return Nobody, false
	}
	names := slices.Sorted(maps.Keys(users))
	sum := sha256.Sum256([]byte(name))
	return hash(users[names[binary.BigEndian.Uint64(sum[:])%uint64(len(names))]]), false
}

// Check compares a password with a hash of [HashOf]. If possible is not set, the password is wrong
// in any case. The error is ErrDenied, or a [*LimitedError] after several wrong passwords from the
// network of an address, until [Checker.Succeeded] is called with it.
func (c *Checker) Check(ctx context.Context, from netip.Addr, name, hash string, password []byte, possible bool) error {
	try := c.digestOf(name, hash, password)
	if c.repeated(from, try) {
		return ErrDenied
	}
	if err := c.allowed(from); err != nil {
		return err
	}
	select {
	case c.hashing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.hashing }()
	// Others from the same network may have failed meanwhile.
	if err := c.allowed(from); err != nil {
		return err
	}
	if c.Compare([]byte(hash), password) != nil || !possible {
		c.failed(from, try)
		return ErrDenied
	}
	return nil
}
