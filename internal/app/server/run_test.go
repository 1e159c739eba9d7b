package server

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/httpserver"
)

// until is a stream that calls stop at a word.
type until struct {
	text strings.Builder
	word string
	stop func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.text.Write(p)
	if strings.Contains(u.text.String(), u.word) {
		u.stop()
	}
	return n, err
}

// Without users, the server says where it listens, and then what to do first: a command that adds a user
// to the same state.
func TestServeWithoutUsers(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", "")
	for _, tc := range []struct{ path, state, url, command string }{
		{"/", "", "", "lektor-serve passwd NAME"},
		{"/news/", "other", "/news", "lektor-serve passwd --state DIR/other NAME"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		dir := t.TempDir()
		t.Setenv("XDG_STATE_HOME", dir)
		if tc.state != "" {
			tc.state = filepath.Join(dir, tc.state)
		}
		said := &until{word: "passwd", stop: cancel}
		o := Options{Options: httpserver.Options{Address: "127.0.0.1:0", Given: true, MaxConns: 1}, BasePath: tc.path, State: tc.state}
		if err := Serve(ctx, o, cmdline.NewStreams("lektor-serve", nil, nil, said)); err != nil {
			t.Fatal(err)
		}
		want := `(?s)listening on http://127\.0\.0\.1:[0-9]+` + tc.url + `/\n.*: warning: there are no users in \S+, so nobody can log in yet: "` +
			regexp.QuoteMeta(strings.ReplaceAll(tc.command, "DIR", dir)) + `" adds one, also while the server is running; then enter the URL above in your reader\n`
		if got := said.text.String(); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("base path %s, state %q: got %s; want %s", tc.path, tc.state, got, want)
		}
	}
}
