package accounts

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/files/values"
	"github.com/lektordir/lektor/internal/http/passwords"
	"github.com/lektordir/lektor/internal/text/termsafe"
)

const (
	maxFile   = 16 << 20
	maxClient = 64  // columns of the name of a client
	perClient = 100 // tokens of a user's client; see prune
	perUser   = 1000
)

// userName matches valid names of users.
var userName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,63}$`)
})

// account is a line of users.
type account struct {
	User
	hash string
}

// token is a line of tokens.
type token struct {
	Token
	sum      digest
	password string // see passwordMark
}

func (u account) text() string { return u.hash + "\t" + u.Dir }

func (t token) text() string {
	return strings.Join([]string{
		hex.EncodeToString(t.sum[:]), t.User, t.password, t.Client, t.Created.UTC().Format(time.RFC3339),
		cmp.Or(t.day(), "-"),
	}, "\t")
}

// day returns the last day of use, "" for none.
func (t token) day() string { return dayOf(t.Used) }

// dayOf returns the day of a time in UTC, "" for the zero time.
func dayOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.DateOnly)
}

// parseUsers reads users. A line that is not valid is an error, so that a mistake in an editor
// is noticed.
func parseUsers(path string, data []byte) (map[string]account, error) {
	users := map[string]account{}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		if line = strings.TrimRight(line, "\r\n"); line == "" || line[0] == '#' {
			continue
		}
		name, rest, _ := strings.Cut(line, "\t")
		hash, dir, _ := strings.Cut(rest, "\t")
		if !passwords.IsHash(hash) || !userName().MatchString(name) || !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("%s:%d: expected a name, a bcrypt hash and an absolute directory, with tabs between",
				path, n)
		}
		users[name] = account{User{name, dir}, hash}
	}
	return users, nil
}

// parseTokens reads tokens. A line that is not valid is no token.
func parseTokens(_ string, data []byte) (map[digest]token, error) {
	tokens := map[digest]token{}
	for line := range strings.Lines(string(data)) {
		id, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		if t, ok := parseToken(id, rest); ok {
			tokens[t.sum] = t
		}
	}
	return tokens, nil
}

func parseToken(id, text string) (t token, ok bool) {
	f := strings.Split(text, "\t")
	if len(f) != 6 {
		return t, false
	}
	sum, err := hex.DecodeString(f[0])
	if err != nil || len(sum) != len(t.sum) || id == "" || id[0] == '#' || f[2] == "" {
		return t, false
	}
	t.ID, t.User, t.password, t.Client = id, f[1], f[2], f[3]
	copy(t.sum[:], sum)
	t.Created, _ = time.Parse(time.RFC3339, f[4])
	t.Used, _ = time.Parse(time.DateOnly, f[5])
	return t, true
}

// prune removes revoked tokens from lines, and makes room for one more of a user's client. A
// program that logs in at every start, as newsboat does, would fill the file. The tokens that
// have not been used for longest go first, those of the same client before all others. The
// caller holds mu.
func (a *Accounts) prune(lines *values.Values, user, client string) {
	var mine []token
	for sum, t := range a.tokens.Value {
		if _, ok := a.alive(sum); !ok {
			lines.Set(t.ID, "")
			delete(a.recent, sum)
		} else if t.User == user {
			mine = append(mine, t)
		}
	}
	slices.SortFunc(mine, func(x, y token) int {
		return cmp.Or(a.lastUse(x).Compare(a.lastUse(y)), x.Created.Compare(y.Created), cmp.Compare(x.ID, y.ID))
	})
	same := 0
	for _, t := range mine {
		if t.Client == client {
			same++
		}
	}
	surplus := len(mine) - (perUser - 1)
	for _, t := range mine {
		if t.Client == client && same >= perClient || surplus > 0 {
			if t.Client == client {
				same--
			}
			surplus--
			lines.Set(t.ID, "")
			delete(a.recent, t.sum)
		}
	}
}

// lastUse returns when a token was last used, or made. The caller holds mu.
func (a *Accounts) lastUse(t token) time.Time {
	last := t.Created
	for _, at := range []time.Time{t.Used, a.recent[t.sum]} {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// newID returns an id that no line has.
func newID(lines *values.Values) string {
	for {
		if id := strings.ToLower(rand.Text()[:8]); lines.Get(id) == "" {
			return id
		}
	}
}

// clientName returns the name of a client as a field of a line.
func clientName(s string) string {
	return cmp.Or(strings.TrimSpace(termsafe.Truncate(termsafe.Squeeze(strings.ToValidUTF8(s, "\ufffd")), maxClient)),
		"unknown")
}
