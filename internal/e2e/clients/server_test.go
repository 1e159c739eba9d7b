// Package clients tests lektor-serve from outside, as clients of the Google Reader API see
// it: by requests, by the requests that known clients make, and by clients themselves. It
// shares no code with the server: an oracle answers from the directory (oracle_test.go).
package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/testkit/testdir"
)

func TestMain(m *testing.M) { testdir.Main(m) }

const user = "ada-lovelace"

// password has the characters that forms encode in several ways.
const password = "pä ss+w&rd=%;x"

// service is a lektor-serve that runs, with one user, who is logged in.
type service struct {
	t     testing.TB
	bin   string
	url   string // without a slash at its end
	dir   string
	state string
	auth  string
	args  []string
	cmd   *exec.Cmd
	log   *said
}

// said is what a program has written.
type said struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// serveDir starts lektor-serve for a lektor-dir and logs in.
func serveDir(t testing.TB, dir string, args ...string) *service {
	t.Helper()
	s := &service{t: t, bin: testdir.Bin(t), dir: dir, state: filepath.Join(t.TempDir(), "state"), args: args}
	s.addUser(user, password, dir)
	s.start()
	s.auth = s.login(user, password)
	return s
}

// run runs a program to its end and returns its output.
func (s *service) run(stdin, program string, args ...string) string {
	s.t.Helper()
	cmd := s.command(program, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.t.Fatalf("%s %q: %v\n%s%s", program, args, err, stderr.String(), out)
	}
	return string(out)
}

// command returns a program of ours on the lektor-dir.
func (s *service) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Env = append(os.Environ(), "LEKTORDIR="+s.dir)
	return cmd
}

func (s *service) addUser(name, password, dir string) {
	s.t.Helper()
	s.run(password+"\n", "lektor-serve", "passwd", "--state", s.state, "--dir", dir, name)
}

var listening = regexp.MustCompile(`listening on (?:http://)?(\S+:\d+)`)

// start starts the program and waits until it listens.
func (s *service) start() {
	s.t.Helper()
	s.log = &said{}
	s.cmd = exec.Command(filepath.Join(s.bin, "lektor-serve"), append([]string{"--listen", "127.0.0.1:0", "--state", s.state}, s.args...)...)
	s.cmd.Stderr, s.cmd.Stdout = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	cmd, ended := s.cmd, make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		ended <- <-ended // stop may wait for it, too
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		if m := listening.FindStringSubmatch(s.log.String()); m != nil {
			s.url = "http://" + m[1]
			if n := slices.Index(s.args, "--base-path"); n >= 0 {
				s.url += strings.TrimSuffix(s.args[n+1], "/")
			}
			break
		}
		select {
		case err := <-ended:
			ended <- err
			s.t.Fatalf("lektor-serve ended: %v\n%s", err, s.log)
		default:
		}
		if time.Now().After(end) {
			s.t.Fatalf("lektor-serve does not listen in a minute, but says\n%s", s.log)
		}
	}
	log := s.log
	s.t.Cleanup(func() {
		// No user is named in a message.
		for _, secret := range []string{"panic", user, password, s.auth} {
			if secret != "" && strings.Contains(log.String(), secret) {
				s.t.Errorf("%q is in what the server says:\n%s", secret, log)
			}
		}
	})
}

// kill ends the program as a power cut does.
func (s *service) kill() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGKILL)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s.cmd.Process.Signal(syscall.Signal(0)) != nil {
			return
		}
	}
	s.t.Fatal("the killed server does not end")
}

// answer is the server's answer to a request.
type answer struct {
	request string
	status  int
	header  http.Header
	body    string
}

func (a answer) String() string {
	body := a.body
	if len(body) > 600 {
		body = body[:600] + "…"
	}
	return fmt.Sprintf("%s: %d\n%s", a.request, a.status, body)
}

var client = &http.Client{
	Timeout:       time.Minute,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
}

// try makes a request; target is the path and the query as they are sent. Header lines are
// as in "Cookie: x".
func (s *service) try(method, target, body string, header ...string) (answer, error) {
	a := answer{request: method + " " + target}
	if body != "" {
		a.request += " with " + body[:min(len(body), 300)]
	}
	r, err := http.NewRequest(method, s.url+target, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, h := range header {
		k, v, _ := strings.Cut(h, ": ")
		r.Header.Set(k, v)
	}
	response, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	a.status, a.header, a.body = response.StatusCode, response.Header, string(b)
	return a, err
}

// do is try without authorization, which fails the test if there is no answer.
func (s *service) do(method, target, body string, header ...string) answer {
	s.t.Helper()
	a, err := s.try(method, target, body, header...)
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", a.request, err, s.log)
	}
	if a.status >= 500 {
		s.t.Errorf("%s\n%s", a, s.log)
	}
	return a
}

// header is the header line that authorizes.
func (s *service) header() string { return "Authorization: GoogleLogin auth=" + s.auth }

func (s *service) get(target string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, target, "", s.header())
}

func (s *service) post(target, form string) answer {
	s.t.Helper()
	return s.do(http.MethodPost, target, form, s.header())
}

// edit posts a form that must be answered with OK.
func (s *service) edit(target, form string) {
	s.t.Helper()
	if a := s.post(target, form); a.status != http.StatusOK || a.body != "OK" {
		s.t.Errorf("%s; want OK", a)
	}
}

// login returns the value Auth of a log-in.
func (s *service) login(name, password string) string {
	s.t.Helper()
	a := s.do(http.MethodPost, "/accounts/ClientLogin", url.Values{"Email": {name}, "Passwd": {password}}.Encode())
	return authOf(s.t, a)
}

var loginAnswer = regexp.MustCompile(`^SID=[^\n]*\nLSID=[^\n]*\nAuth=([^\n]+)\n$`)

// authOf takes the value Auth out of the text that answers a log-in.
func authOf(t testing.TB, a answer) string {
	t.Helper()
	m := loginAnswer.FindStringSubmatch(a.body)
	if a.status != http.StatusOK || m == nil {
		t.Fatalf("%s; want three lines, SID, LSID and Auth", a)
	}
	return m[1]
}

// decode reads the JSON of an answer into v, strictly by v's types.
func decode(t testing.TB, a answer, v any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("%s", a)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatalf("%s\n%v", a, err)
	}
}

// deadline returns a function that reports whether a minute has passed.
func deadline() func() bool {
	end := time.Now().Add(time.Minute)
	return func() bool { return time.Now().After(end) }
}

// pause is the time between two looks at another program.
func pause() { time.Sleep(20 * time.Millisecond) }

// await waits until a condition holds, for a minute.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := deadline(); !done(); pause() {
		if end() {
			t.Fatalf("a minute has passed without this: %s", what)
		}
	}
}
