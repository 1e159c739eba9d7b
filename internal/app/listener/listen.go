package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/httpserver"
)

// Common are the options of all commands.
type Common struct {
	Dir string // path of the lektor-dir
	// Fetch configures requests to hubs. AllowPrivate lists the private addresses that hubs
	// may have.
	Fetch fetch.Config
}

// ListenOptions are the options of [Listen], and of a [Listener].
type ListenOptions struct {
	Common

	httpserver.Options

	// Public is the URL of the listener for hubs, with the path that a proxy adds. Without
	// it nothing is registered.
	Public *url.URL
	// Cooldown is the minimum time between two due markers of a feed. Several notifications
	// in that time leave one marker at its end.
	Cooldown time.Duration
	// TrustedProxies are the networks of proxies whose X-Forwarded-For is trusted.
	TrustedProxies []netip.Prefix
	// Verbose reports every notification.
	Verbose bool
	// SelfTest only checks whether the listener can be reached at Public.
	SelfTest bool

	// Rand returns random numbers from 0 to 1 for jitter; nil means math/rand.
	Rand func() float64
	// Ready is called once, when changes of feeds are noticed; may be nil.
	Ready func()
}

// Listen registers with the hubs of all feeds, and leaves a due marker when a feed is
// updated, until ctx ends; then it returns nil. It notifies systemd when it is ready and
// when it stops.
func Listen(ctx context.Context, o ListenOptions, s *cmdline.Streams) error {
	if o.SelfTest {
		return selfTest(ctx, o, s)
	}
	d, err := cmdline.OpenDir(o.Dir, nil)
	if err != nil {
		return err
	}
	unlock, err := Lock(d)
	if err != nil {
		return err
	}
	defer unlock()
	door, err := httpserver.Open(o.Options, s.Report)
	if err != nil {
		return err
	}
	defer door.Close()
	o.checkPublic(door.Addr(), s)
	o.Ready = func() { httpserver.Ready(s.Report) }
	l := New(d, s.Report, o)
	defer l.Close()
	// Load before the first request arrives, so that its callback is known.
	if err := l.Load(); err != nil {
		return err
	}
	if o.Verbose {
		for _, addr := range door.Addrs() {
			s.Report.Info("listening on %s", addr)
		}
	}
	return door.Serve(ctx, httpserver.NewServer(l, s.Report), l.Run)
}

// selfTest requests the public URL, and checks that this process answers, by a random text.
func selfTest(ctx context.Context, o ListenOptions, s *cmdline.Streams) error {
	door, err := httpserver.Open(o.Options, s.Report)
	if errors.Is(err, syscall.EADDRINUSE) {
		return cmdline.Hint(err, "stop the listener for the test, which uses its port")
	}
	if err != nil {
		return err
	}
	defer door.Close()
	o.checkPublic(door.Addr(), s)
	if o.Public == nil {
		return errors.New("no public URL to test; set it with --public-url")
	}
	where, answer := token(push.TokenLen/2), token(32)
	server := httpserver.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if push.TokenOf(r.URL.Path) != where {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer)
	}), s.Report)
	return door.Serve(ctx, server, func(ctx context.Context) error {
		c := fetch.NewClient(o.Fetch)
		defer c.Close()
		public := strings.TrimSuffix(o.Public.String(), "/")
		resp, err := c.Get(ctx, &httpmsg.Request{URL: public + "/" + where})
		switch {
		case err != nil:
			return cmdline.Hint(fmt.Errorf("not reached: %w", err),
				"let a proxy or the router forward %s to %s; some routers do so only for requests from outside, so test it from there", public, door.Addr())
		case string(resp.Body) != answer:
			return cmdline.Hint(fmt.Errorf("%s: another server answers there", public),
				"forward requests from that server to %s, with the path", door.Addr())
		}
		s.Report.Info("%s: reached, at %s", public, door.Addr())
		return nil
	})
}

// checkPublic warns if hubs cannot reach the listener.
func (o *ListenOptions) checkPublic(addr net.Addr, s *cmdline.Streams) {
	if o.Public == nil {
		s.Report.Warn("no public address is known, so no feed is registered, and feeds are fetched only on their schedule")
	} else if _, private := fetch.RefusesHost(o.Public.String(), o.Fetch.AllowPrivate); private.IsValid() {
		s.Report.Warn("%s is a private address: hubs elsewhere cannot reach it", o.Public)
	} else {
		return
	}
	s.Report.Info("hint: let a proxy or the router forward requests to %s, and set --public-url to the URL that hubs can reach",
		addr)
}
