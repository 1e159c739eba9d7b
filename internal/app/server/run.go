package server

import (
	"cmp"
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/lektordir/lektor/internal/app/server/accounts"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/http/httpserver"
)

// DefaultListen is the default address of [Serve].
const DefaultListen = "127.0.0.1:8091"

// DefaultState returns the default directory of users and tokens: $STATE_DIRECTORY, which systemd
// sets, or one below $XDG_STATE_HOME.
func DefaultState() string {
	dir, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	return cmp.Or(dir, filepath.Join(cmp.Or(cmdline.BaseDir("XDG_STATE_HOME", ".local/state"), "/.local/state"),
		"lektor-serve"))
}

// Serve answers requests until ctx ends, and then returns nil. It notifies systemd when it is
// ready and when it stops.
func Serve(ctx context.Context, o Options, s *cmdline.Streams) error {
	flag := ""
	if o.State != "" {
		flag = " --state " + o.State
	}
	o.State = cmp.Or(o.State, DefaultState())
	a, err := accounts.Open(o.State, o.Now)
	if err != nil {
		return cmdline.Hint(err, "name a directory that is yours with --state")
	}
	door, err := httpserver.Open(o.Options, s.Report)
	if err != nil {
		return err
	}
	defer door.Close()
	if err := o.guard(door); err != nil {
		return err
	}
	scheme := "http://"
	if door.TLS() {
		scheme = "https://"
	}
	for _, addr := range door.Addrs() {
		s.Report.Info("listening on %s%s/%s", scheme, addr, strings.TrimPrefix(o.BasePath, "/"))
	}
	if users, err := a.Users(); err == nil && len(users) == 0 {
		s.Report.Warn("there are no users in %s, so nobody can log in yet: \"lektor-serve passwd%s NAME\" adds one, also while the server is running; then enter the URL above in your reader", o.State, flag)
	}
	server := New(o, a, s)
	defer server.Close()
	web := httpserver.Persistent(httpserver.NewServer(server, s.Report))
	return door.Serve(ctx, web, func(ctx context.Context) error {
		httpserver.Ready(s.Report)
		<-ctx.Done()
		return nil
	})
}

// guard refuses to send passwords in the clear over a network: without TLS, each socket must be
// local.
func (o Options) guard(door *httpserver.Door) error {
	if o.Insecure || door.TLS() {
		return nil
	}
	for _, addr := range door.Addrs() {
		if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
			return cmdline.Hint(cmdline.Usagef("%s can be reached from other machines, and passwords would be sent to it in the clear", addr),
				"set --cert and --key, listen on 127.0.0.1 behind a proxy with TLS, or allow it with --insecure")
		}
	}
	return nil
}
