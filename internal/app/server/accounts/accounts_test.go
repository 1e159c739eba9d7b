package accounts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/passwords"
	"github.com/lektordir/lektor/internal/testkit/server"
)

var (
	home = netip.MustParseAddr("192.0.2.1")
	away = netip.MustParseAddr("2001:db8::1")
)

// world is a state directory with two users.
type world struct {
	*testing.T
	*Accounts
	clock *server.Clock
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: server.ClockAt(time.Date(2026, 5, 4, 23, 0, 0, 0, time.UTC))}
	w.Accounts = w.open(filepath.Join(t.TempDir(), "a", "state"))
	w.set("ada", "correct horse", "/home/ada/feeds")
	w.set("bob", "battery", "/home/bob/feeds")
	return w
}

// open opens the accounts as another process does, with cheap hashes.
func (w *world) open(state string) *Accounts {
	w.Helper()
	a, err := Open(state, w.clock.Now)
	if err != nil {
		w.Fatal(err)
	}
	a.cost = minCost
	return a
}

func (w *world) set(name, password, dir string) {
	w.Helper()
	if _, err := w.SetPassword(w.Context(), name, password, dir); err != nil {
		w.Fatal(err)
	}
}

func (w *world) login(name, password, client string) string {
	w.Helper()
	secret, u, err := w.Login(w.Context(), name, password, client, home)
	if err != nil {
		w.Fatal(err)
	}
	if u.Name != name {
		w.Fatalf("logged in as %q", u.Name)
	}
	return secret
}

// denied checks that an error is ErrDenied.
func denied(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, ErrDenied) {
		t.Errorf("%s: %v, want ErrDenied", what, err)
	}
}

func (w *world) file(name string) string {
	w.Helper()
	b, err := os.ReadFile(filepath.Join(w.state, name))
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

func TestLogin(t *testing.T) {
	w := newWorld(t)
	secret := w.login("ada", "correct horse", "news\tboat\n\x1b[1m")
	u, err := w.Check(secret)
	if want := (User{"ada", "/home/ada/feeds"}); err != nil || u != want {
		t.Errorf("Check = %v, %v; want %v", u, err, want)
	}
	if len(secret) < 26 || strings.ContainsAny(secret, "= \t/+&%") {
		t.Errorf("the token %q is short, or needs escapes", secret)
	}
	for _, c := range []struct{ name, password string }{
		{"ada", "battery"}, {"bob", "correct horse"}, {"nobody", "battery"}, {"nobody", "correct horse"},
		{"ada", ""}, {"", ""}, {"ada", "correct horse\x00"}, {"# ada", "correct horse"}, {"ada\t", "correct horse"},
	} {
		w.clock.Add(time.Hour)
		_, _, err := w.Login(t.Context(), c.name, c.password, "", home)
		denied(t, fmt.Sprintf("%q %q", c.name, c.password), err)
	}
	for _, wrong := range []string{"", "NA", secret[1:], secret + "A", strings.ToLower(secret), digestHex(secret)} {
		_, err := w.Check(wrong)
		denied(t, "token "+wrong, err)
	}
	if strings.Contains(w.file("tokens"), secret) || strings.Contains(w.file("users"), "horse") {
		t.Error("a secret is stored")
	}
	list, err := w.Tokens()
	if err != nil || len(list) != 1 || list[0].Client != "news boat [1m" || list[0].User != "ada" || list[0].Created != time.Date(2026, 5, 4, 23, 0, 0, 0, time.UTC) {
		t.Errorf("Tokens = %+v, %v", list, err)
	}
}

func digestHex(secret string) string { d := digestOf(secret); return fmt.Sprintf("%x", d[:]) }

func TestPrivate(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	w := newWorld(t)
	w.login("ada", "correct horse", "")
	for name, want := range map[string]os.FileMode{".": 0o700, "users": 0o600, "tokens": 0o600, "lock": 0o600} {
		fi, err := os.Stat(filepath.Join(w.state, name))
		if err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s has the permissions %v, %v; want %v", name, fi.Mode().Perm(), err, want)
		}
	}
}

func TestPasswords(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("é", MaxPassword/2)
	w.set("ada", long, "")
	if u, err := w.Check(w.login("ada", long, "")); err != nil || u.Dir != "/home/ada/feeds" {
		t.Errorf("after a change without a directory: %v, %v", u, err)
	}
	_, _, err := w.Login(t.Context(), "ada", long+"x", "", home)
	denied(t, "a password beyond the bytes that count", err)
	w.set("ada", "cafe\u0301 au lait", "")
	w.login("ada", "caf\u00e9 au lait", "a phone")
	for _, c := range []struct{ name, password, dir string }{
		{"ada", "", "/d"}, {"ada", long + "x", "/d"}, {"ada", "\xff", "/d"}, {"ada", "a\x00b", "/d"}, {"ada", "good", "relative"},
		{"ada", "good", "/d\tx"}, {"ada", "good", "/d\nx"}, {"", "good", "/d"}, {"#a", "good", "/d"}, {"a\tb", "good", "/d"},
		{strings.Repeat("a", 65), "good", "/d"}, {"new", "good", ""},
	} {
		if _, err := w.SetPassword(t.Context(), c.name, c.password, c.dir); err == nil {
			t.Errorf("SetPassword(%q, %q, %q) succeeded", c.name, c.password, c.dir)
		}
	}
}

// The tokens of the old password end with the same step that sets the new one.
func TestPasswordRevokes(t *testing.T) {
	w := newWorld(t)
	ada, bob := w.login("ada", "correct horse", ""), w.login("bob", "battery", "")
	server := w.open(w.state)
	if _, err := server.Check(ada); err != nil {
		t.Fatal(err)
	}
	writes := 0
	w.write = func(path string, data []byte) error { writes++; return atomicfile.WritePrivate(path, data) }
	w.set("ada", "correct horse", "") // even the same one
	if writes != 1 {
		t.Errorf("a new password took %d writes: a kill may come between", writes)
	}
	_, err := server.Check(ada)
	denied(t, "a token of the old password", err)
	if _, err := server.Check(bob); err != nil {
		t.Errorf("another user's token: %v", err)
	}
	if list, _ := server.Tokens(); len(list) != 1 || list[0].User != "bob" {
		t.Errorf("Tokens = %v", list)
	}
	if err := w.Remove(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	_, err = server.Check(bob)
	denied(t, "a token of a removed user", err)
	w.set("bob", "battery", "/home/bob/feeds")
	_, err = server.Check(bob)
	denied(t, "a token of a user who was removed and added", err)
	if err := w.Remove(t.Context(), "eve"); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown user was removed: %v", err)
	}
	w.login("ada", "correct horse", "")
	if n := strings.Count(w.file("tokens"), "\n"); n != 1 {
		t.Errorf("tokens has %d lines, want no revoked ones:\n%s", n, w.file("tokens"))
	}
}

func TestRevoke(t *testing.T) {
	w := newWorld(t)
	one, two := w.login("ada", "correct horse", "one"), w.login("ada", "correct horse", "two")
	server := w.open(w.state)
	for _, secret := range []string{one, two} {
		if _, err := server.Check(secret); err != nil {
			t.Fatal("a token does not survive a restart:", err)
		}
	}
	if n, err := w.Revoke(t.Context(), func(t Token) bool { return t.Client == "one" }); n != 1 || err != nil {
		t.Errorf("Revoke = %d, %v", n, err)
	}
	_, err := server.Check(one)
	denied(t, "a revoked token", err)
	if _, err := server.Check(two); err != nil {
		t.Errorf("the other token: %v", err)
	}
	if n, err := w.Revoke(t.Context(), func(t Token) bool { return t.Client == "one" }); n != 0 || err != nil {
		t.Errorf("the second Revoke = %d, %v", n, err)
	}
}

func TestUsed(t *testing.T) {
	w := newWorld(t)
	secret := w.login("ada", "correct horse", "")
	used := func() string {
		t.Helper()
		list, err := w.open(w.state).Tokens()
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].Used.Format(time.RFC3339)
	}
	writes := 0
	w.write = func(path string, data []byte) error { writes++; return atomicfile.WritePrivate(path, data) }
	check := func() {
		t.Helper()
		if _, err := w.Check(secret); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		check()
	}
	if got := used(); got != "2026-05-04T00:00:00Z" || writes != 1 {
		t.Errorf("used %s with %d writes", got, writes)
	}
	w.clock.Add(2 * time.Hour)
	// A lock that is held, or a full disk, does not keep a reader out.
	unlock, err := w.lock()
	if err != nil {
		t.Fatal(err)
	}
	check()
	unlock()
	w.clock.Add(24 * time.Hour)
	w.write = func(string, []byte) error { return unix.ENOSPC }
	check()
	if got := used(); got != "2026-05-04T00:00:00Z" {
		t.Errorf("used %s", got)
	}
	w.clock.Add(24 * time.Hour)
	w.write = atomicfile.WritePrivate
	check()
	if got := used(); got != "2026-05-07T00:00:00Z" {
		t.Errorf("used %s", got)
	}
}

// A failed write changes nothing, and no success is reported.
func TestDiskFull(t *testing.T) {
	w := newWorld(t)
	secret := w.login("ada", "correct horse", "")
	before := w.file("users") + w.file("tokens")
	w.write = func(string, []byte) error { return unix.ENOSPC }
	got, u, err := w.Login(t.Context(), "ada", "correct horse", "", home)
	if !errors.Is(err, unix.ENOSPC) || got != "" || u != (User{}) {
		t.Errorf("Login = %q, %v, %v", got, u, err)
	}
	_, err = w.SetPassword(t.Context(), "ada", "other", "")
	_, rerr := w.Revoke(t.Context(), func(Token) bool { return true })
	for _, err := range []error{err, rerr, w.Remove(t.Context(), "ada")} {
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a command on a full disk: %v", err)
		}
	}
	if after := w.file("users") + w.file("tokens"); after != before {
		t.Errorf("the files changed:\n%s\nwere\n%s", after, before)
	}
	if _, err := w.Check(secret); err != nil {
		t.Error(err)
	}
}

// minCost is the least cost of bcrypt.
const minCost = 4

// costOf returns the cost of a bcrypt hash.
func costOf(hash []byte) int { n, _ := strconv.Atoi(string(hash[4:6])); return n }

// tries is the number of wrong passwords from which on there is a wait.
const tries = 5

func TestLimits(t *testing.T) {
	w := newWorld(t)
	hashed := 0
	compare := w.checker.Compare
	w.checker.Compare = func(hash, password []byte) error { hashed++; return compare(hash, password) }
	try := func(password string, from netip.Addr) error {
		_, _, err := w.Login(t.Context(), "ada", password, "", from)
		return err
	}
	// A phone with an old password repeats it for ever, which is no guess.
	for range 50 {
		denied(t, "the old password", try("old", home))
	}
	if hashed != 1 {
		t.Errorf("%d hashes for one wrong password", hashed)
	}
	for i := range tries - 1 {
		denied(t, "a guess", try(fmt.Sprint("guess", i), home))
	}
	limited := &passwords.LimitedError{}
	if err := try("correct horse", home); !errors.As(err, &limited) || limited.Wait != time.Second {
		t.Errorf("the next one: %v", err)
	}
	if hashed != tries {
		t.Errorf("%d hashes", hashed)
	}
	denied(t, "the old password again", try("old", home))
	if err := try("correct horse", away); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	w.clock.Add(time.Second)
	denied(t, "a guess after the wait", try("guess", home))
	w.clock.Add(time.Second)
	if err := try("correct horse", home); !errors.As(err, &limited) || limited.Wait != time.Second {
		t.Errorf("the wait is not doubled: %v", err)
	}
	w.clock.Add(time.Second)
	if err := try("correct horse", home); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	denied(t, "a guess after success", try("guess again", home))
	// A new password makes one that was wrong right.
	w.set("ada", "old", "")
	if err := try("old", home); err != nil {
		t.Errorf("the password that was wrong before: %v", err)
	}
	if strings.Contains(limited.Error(), "ada") || strings.Contains(ErrDenied.Error(), "ada") {
		t.Error("an error names the user")
	}
}

// Guesses that come at once are no more than those that come one after the other. An unknown
// name with the password of another user counts as a guess, too.
func TestLimitsAtOnce(t *testing.T) {
	w := newWorld(t)
	var hashed atomic.Int32
	compare := w.checker.Compare
	w.checker.Compare = func(hash, password []byte) error {
		hashed.Add(1)
		return compare(hash, password)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if _, _, err := w.Login(t.Context(), fmt.Sprint("nobody", i), []string{"battery", "correct horse"}[i%2], "", home); err == nil {
				t.Error("logged in")
			}
		})
	}
	wg.Wait()
	if most := int32(tries + w.checker.AtOnce() - 1); hashed.Load() > most {
		t.Errorf("%d hashes, want at most %d", hashed.Load(), most)
	}
	if _, _, err := w.Login(t.Context(), "ada", "correct horse", "", home); !errors.As(err, new(*passwords.LimitedError)) {
		t.Error("the address is not limited")
	}
}

// One hash is computed for each guess, whoever it is for, of the same cost.
func TestUnknownUser(t *testing.T) {
	w := newWorld(t)
	known := w.file("users")
	var costs []int
	compare := w.checker.Compare
	w.checker.Compare = func(hash, password []byte) error {
		costs = append(costs, costOf(hash))
		return compare(hash, password)
	}
	ask := func(name string) {
		w.clock.Add(time.Hour)
		_, _, err := w.Login(t.Context(), name, "guess", "", home)
		denied(t, name, err)
	}
	for _, name := range []string{"ada", "nobody", "", strings.Repeat("x", 1000)} {
		ask(name)
	}
	if !slices.Equal(costs, []int{minCost, minCost, minCost, minCost}) {
		t.Errorf("costs %v for users with %s", costs, known)
	}
	costs = nil
	w.Accounts = w.open(t.TempDir())
	w.checker.Compare = func(hash, _ []byte) error {
		costs = append(costs, costOf(hash))
		return ErrDenied
	}
	ask("ada")
	if !slices.Equal(costs, []int{passwords.Cost}) {
		t.Errorf("costs %v without users", costs)
	}
}

// A program that logs in at each start does not fill the file, and displaces only its own
// tokens that have not been used for longest.
func TestMany(t *testing.T) {
	w := newWorld(t)
	phone := w.login("ada", "correct horse", "phone")
	running := w.login("ada", "correct horse", "newsboat")
	other := w.login("bob", "battery", "newsboat")
	var first, last string
	for i := range perClient + 20 {
		w.clock.Add(time.Minute)
		if last = w.login("ada", "correct horse", "newsboat"); i == 0 {
			first = last
		}
		for _, secret := range []string{running, last} {
			if _, err := w.Check(secret); err != nil {
				t.Fatal(err)
			}
		}
	}
	list, err := w.Tokens()
	if err != nil || len(list) != perClient+2 {
		t.Errorf("%d tokens, %v; want %d", len(list), err, perClient+2)
	}
	for _, secret := range []string{phone, running, other, last} {
		if _, err := w.Check(secret); err != nil {
			t.Error(err)
		}
	}
	_, err = w.Check(first)
	denied(t, "the token that was not used for longest", err)
}

func TestBroken(t *testing.T) {
	w := newWorld(t)
	secret := w.login("ada", "correct horse", "")
	good := w.file("users")
	for _, bad := range []string{"eve\tplain\t/d\n", "eve\n", "eve\t" + passwords.Nobody + "\trelative\n", "../x\t" + passwords.Nobody + "\t/d\n"} {
		if err := os.WriteFile(filepath.Join(w.state, "users"), []byte("# note\n\n"+good+bad), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := w.Check(secret)
		if err == nil || !strings.Contains(err.Error(), "users:5: expected a name") || strings.Contains(err.Error(), "eve") {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := Open(w.state, nil); err == nil {
			t.Errorf("%q: it opens", bad)
		}
	}
	if err := os.WriteFile(filepath.Join(w.state, "users"), []byte("# note\n"+good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.state, "tokens"), []byte("# note\nodd\nx\ty\n"+w.file("tokens")+"cut\t00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Check(secret); err != nil {
		t.Error(err)
	}
	w.login("ada", "correct horse", "")
	if _, err := w.Check(secret); err != nil || !strings.HasPrefix(w.file("tokens"), "# note\nodd\n") {
		t.Errorf("%v, with tokens\n%s", err, w.file("tokens"))
	}
	for _, name := range []string{"tokens", "users"} {
		if err := os.Remove(filepath.Join(w.state, name)); err != nil {
			t.Fatal(err)
		}
		_, err := w.Check(secret)
		denied(t, "without "+name, err)
	}
}

// Changes of two processes in one tick of the clock are seen.
func TestQuickChanges(t *testing.T) {
	w := newWorld(t)
	server := w.open(w.state)
	for i := range 50 {
		secret := w.login("ada", "correct horse", "")
		if _, err := server.Check(secret); err != nil {
			t.Fatal(i, err)
		}
		if _, err := w.Revoke(t.Context(), func(Token) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Check(secret); !errors.Is(err, ErrDenied) {
			t.Fatal(i, err)
		}
	}
}

// Processes that log in, revoke and change passwords at once lose nothing of each other.
func TestRace(t *testing.T) {
	w := newWorld(t)
	const processes, each = 4, 10
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex
		secrets = map[string]string{}
	)
	for p := range processes {
		a := w.open(w.state)
		wg.Go(func() {
			name := fmt.Sprint("user", p)
			if _, err := a.SetPassword(t.Context(), name, name, "/"+name); err != nil {
				t.Error(err)
			}
			for range each {
				wg.Go(func() {
					secret, u, err := a.Login(t.Context(), name, name, "", home)
					if err != nil || u.Dir != "/"+name {
						t.Error(u, err)
					}
					mu.Lock()
					defer mu.Unlock()
					secrets[secret] = name
				})
			}
		})
	}
	wg.Go(func() {
		secret := w.login("bob", "battery", "")
		for range each {
			if _, err := w.Check(secret); err != nil {
				t.Error(err)
			}
			if _, err := w.SetPassword(t.Context(), "ada", "other", ""); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	if len(secrets) != processes*each {
		t.Errorf("%d tokens", len(secrets))
	}
	for secret, name := range maps.All(secrets) {
		if u, err := w.Check(secret); err != nil || u.Name != name {
			t.Errorf("%s: %v, %v", name, u, err)
		}
	}
}

// A login that began before a change of the password gets no token.
func TestChangeDuringLogin(t *testing.T) {
	w := newWorld(t)
	compare := w.checker.Compare
	w.checker.Compare = func(hash, password []byte) error {
		if _, err := w.open(w.state).SetPassword(t.Context(), "ada", "new", ""); err != nil {
			t.Error(err)
		}
		return compare(hash, password)
	}
	_, _, err := w.Login(t.Context(), "ada", "correct horse", "", home)
	denied(t, "the old password", err)
	if list, err := w.Tokens(); len(list) != 0 || err != nil {
		t.Errorf("Tokens = %v, %v", list, err)
	}
}

func TestStopped(t *testing.T) {
	w := newWorld(t)
	unlock, err := w.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	w.checker.Compare = func([]byte, []byte) error { cancel(); return nil }
	if _, _, err := w.Login(ctx, "ada", "correct horse", "", home); !errors.Is(err, context.Canceled) {
		t.Errorf("Login, while another process holds the lock, after the client went: %v", err)
	}
}

// Files of the first version are read: clients are logged in for years.
func TestVersion1(t *testing.T) {
	state := t.TempDir()
	if err := os.CopyFS(state, os.DirFS("testdata/version1")); err != nil {
		t.Fatal(err)
	}
	a, err := Open(state, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := User{"ann", "/home/ann/feeds"}
	if u, err := a.Check("AFZMZSQGZPOUJW7JWAJLSRETKV"); err != nil || u != want {
		t.Errorf("Check = %v, %v", u, err)
	}
	if _, u, err := a.Login(t.Context(), "ann", "correct horse battery", "", home); err != nil || u != want {
		t.Errorf("Login = %v, %v", u, err)
	}
	list, err := a.Tokens()
	if err != nil || len(list) != 3 || list[2].Client != "newsboat2.21" || !list[2].Used.IsZero() || list[2].Created.Unix() != 1795482123 {
		t.Errorf("Tokens = %v, %v", list, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("ada\t"+passwords.Nobody+"\t/d\n"), []byte("id\t"+strings.Repeat("00", 32)+"\tada\tmark\tclient\t2026-01-02T03:04:05Z\t2026-01-02\n"))
	f.Fuzz(func(t *testing.T, users, tokens []byte) {
		if parsed, err := parseUsers("users", users); err == nil {
			for name, u := range parsed {
				again, err := parseUsers("users", []byte(name+"\t"+u.text()+"\n"))
				if err != nil || again[name] != u {
					t.Errorf("%q is written and read as %q, %v", u, again, err)
				}
			}
		}
		parsed, _ := parseTokens("tokens", tokens)
		for sum, tok := range parsed {
			if again, ok := parseToken(tok.ID, tok.text()); !ok || again.sum != sum || again.text() != tok.text() {
				t.Errorf("%+v is written and read as %+v", tok, again)
			}
		}
	})
}

// TestStateOfOthers: users and tokens in a state that somebody else may have written are not read, since
// they would let him in.
func TestStateOfOthers(t *testing.T) {
	for what, change := range map[string]func(state string) error{
		"everybody writes to the directory": func(state string) error { return os.Chmod(state, 0o777|os.ModeSticky) },
		"everybody writes to the users":     func(state string) error { return os.Chmod(filepath.Join(state, "users"), 0o666) },
		"a group writes to the tokens":      func(state string) error { return os.Chmod(filepath.Join(state, "tokens"), 0o660) },
	} {
		w := newWorld(t)
		w.login("ada", "correct horse", "reader")
		if err := change(w.state); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(w.state, nil); err == nil || !strings.Contains(err.Error(), "can be written by others; the state is not used") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
