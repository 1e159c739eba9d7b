package hub

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/files/atomicfile"
	"github.com/lektordir/lektor/internal/http/httpserver"
	"github.com/lektordir/lektor/internal/text/humanize"
)

// ServeOptions are the options of [Serve].
type ServeOptions struct {
	Options
	// ExpireNow only removes ended subscriptions and returns. Another hub may run
	// meanwhile.
	ExpireNow bool
}

// errBusy is the error if another hub uses the state.
var errBusy = errors.New("another hub already uses this state")

// DefaultState returns the default directory of the state, below $XDG_STATE_HOME.
func DefaultState() string {
	return filepath.Join(cmp.Or(cmdline.BaseDir("XDG_STATE_HOME", ".local/state"), "/.local/state"), "lektor-hub")
}

// Serve runs a hub until ctx ends, and then returns nil. It notifies systemd when the hub
// is ready and when it stops.
func Serve(ctx context.Context, o ServeOptions, s *cmdline.Streams) error {
	if o.ExpireNow {
		return expireNow(ctx, o, s)
	}
	if _, err := openStates(o.State); err != nil {
		return cmdline.Hint(err, "name a directory that is yours with --state")
	}
	unlock, err := lock(o.State)
	if err != nil {
		return err
	}
	defer unlock()
	door, err := httpserver.Open(o.Options.Options, s.Report)
	if err != nil {
		return err
	}
	defer door.Close()
	if o.Public == nil {
		o.Public = listenURL(door)
		s.Report.Warn("assuming the URL %s; set --public-url to the URL that others use", o.Public)
	}
	o.Ready = func() { httpserver.Ready(s.Report) }
	h, err := New(o.Options, s.Report)
	if err != nil {
		return err
	}
	defer h.Close()
	if o.Verbose {
		h.log.reporter = s.Report
		for _, addr := range door.Addrs() {
			s.Report.Info("listening on %s", addr)
		}
	}
	return door.Serve(ctx, httpserver.NewServer(h, s.Report), h.Run)
}

// expireNow implements [ServeOptions].ExpireNow.
func expireNow(ctx context.Context, o ServeOptions, s *cmdline.Streams) error {
	if _, err := os.Stat(filepath.Join(o.State, "feeds")); err != nil {
		return cmdline.Hint(err, "name the state of a hub with --state")
	}
	if err := (states{o.State}).trusted(); err != nil {
		return cmdline.Hint(err, "name a directory that is yours with --state")
	}
	swept, err := states{o.State}.sweep(true, o.Now, func() bool { return ctx.Err() != nil }, s.Report.Warn)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	s.Report.Info("removed %s that had expired, and %d that had failed three times; %s to %s left",
		humanize.Count(swept.Expired, "subscription"),
		swept.Failed, humanize.Count(swept.Kept, "subscription"), humanize.Count(swept.Feeds, "feed"))
	return nil
}

// listenURL returns a URL for the address that the hub listens on.
func listenURL(door *httpserver.Door) *url.URL {
	u := &url.URL{Scheme: "http", Host: door.Addr().String()}
	if door.TLS() {
		u.Scheme = "https"
	}
	if a, ok := door.Addr().(*net.TCPAddr); ok && (a.IP == nil || a.IP.IsUnspecified()) {
		_, port, _ := net.SplitHostPort(a.String())
		u.Host = net.JoinHostPort("localhost", port)
	}
	return u
}

// lock locks the state for one hub. The lock file is never removed.
func lock(dir string) (unlock func(), err error) {
	return atomicfile.Lock(filepath.Join(dir, "lock"),
		cmdline.Hint(errBusy, "stop it, or name another state with --state"))
}
