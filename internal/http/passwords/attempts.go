package passwords

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/http/limiter"
)

// LimitedError is the error of a network from which too many wrong passwords came.
type LimitedError struct{ Wait time.Duration }

func (e *LimitedError) Error() string {
	return fmt.Sprintf("there were too many wrong passwords from this address: try again in %s",
		e.Wait.Round(time.Second)+time.Second)
}

const (
	freeTries   = 5                // wrong passwords from which on there is a wait
	mostWait    = 15 * time.Minute // after the last one
	mostFailing = 10_000           // networks that are remembered
	mostTried   = 16               // wrong passwords that are remembered of a network
)

// wrongWait is the wait after each further wrong password.
var wrongWait = limiter.Backoff{Base: time.Second, Cap: mostWait}

// attempts counts the wrong passwords of each network. A limit by user would let anybody lock
// a user out.
//
// A client that repeats a wrong password, as a phone does after the password was changed, does
// not guess: the repetition is denied without being counted, so that others behind the same
// address can log in.
type attempts struct {
	now func() time.Time
	key []byte // of the digests, new in each process

	mu       *sync.Mutex
	networks map[netip.Prefix]failures
}

// digest identifies an attempt.
type digest [sha256.Size]byte

// failures are the wrong passwords of a network.
type failures struct {
	n     int
	last  time.Time
	tried []digest // the newest, oldest first
}

func newAttempts(now func() time.Time) attempts {
	return attempts{now: now, key: []byte(rand.Text()), mu: new(sync.Mutex), networks: map[netip.Prefix]failures{}}
}

// digestOf identifies an attempt: a name, the hash to compare with, and the password.
func (t *attempts) digestOf(name, hash string, secret []byte) (d digest) {
	sum := hmac.New(sha256.New, t.key)
	for _, part := range [][]byte{[]byte(name), []byte(hash), secret} {
		one := sha256.Sum256(part)
		sum.Write(one[:])
	}
	sum.Sum(d[:0])
	return d
}

// repeated reports whether the attempt has failed from this network before.
func (t *attempts) repeated(from netip.Addr, try digest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.networks[httpserver.Network(from)].tried, try)
}

// allowed returns a [*LimitedError] if the network must wait.
func (t *attempts) allowed(from netip.Addr) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.networks[httpserver.Network(from)]
	if f.n < freeTries {
		return nil
	}
	d := wrongWait.Wait(f.n-freeTries+1, 0, 0)
	// If the clock was set back, the rest may be longer than the whole wait.
	if rest := f.last.Add(d).Sub(t.now()); rest > 0 && rest <= d {
		return &LimitedError{rest}
	}
	return nil
}

// failed counts a wrong password.
func (t *attempts) failed(from netip.Addr, try digest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.networks) >= mostFailing {
		for k, f := range t.networks {
			if t.now().Sub(f.last) > mostWait {
				delete(t.networks, k)
			}
		}
		if len(t.networks) >= mostFailing {
			clear(t.networks)
		}
	}
	network := httpserver.Network(from)
	f := t.networks[network]
	if len(f.tried) == mostTried {
		f.tried = slices.Delete(f.tried, 0, 1)
	}
	t.networks[network] = failures{f.n + 1, t.now(), append(f.tried, try)}
}

// Succeeded forgets the failures of a network, but not the passwords that failed.
func (t *attempts) Succeeded(from netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	network := httpserver.Network(from)
	if f, ok := t.networks[network]; ok {
		t.networks[network] = failures{0, f.last, f.tried}
	}
}
