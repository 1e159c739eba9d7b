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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feedcmd"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/serve"
)

// Common are the options of all commands.
type Common struct {
	Dir string // path of the lektor-dir
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// Fetch is how hubs are asked. AllowPrivate there is what addresses they
	// may have besides public ones.
	Fetch fetch.Config
}

// ListenOptions are the options of [Listen], and of a [Listener].
type ListenOptions struct {
	Common

	serve.Options

	// Public is the URL under which hubs reach the listener, a path included
	// where a proxy adds one. Without it nothing is registered; [Listen] finds
	// it where the machine has a public address.
	Public *url.URL
	// Cooldown is the least time between two due markers of a feed; several
	// notifications meanwhile leave one at its end.
	Cooldown time.Duration
	// TrustedProxies are whose word counts for who made a request.
	TrustedProxies []netip.Prefix
	// Verbose reports every notification.
	Verbose bool
	// SelfTest only tries whether the listener is reached at Public.
	SelfTest bool

	// Rand returns numbers from 0 to 1 for jitter; nil means at random.
	Rand func() float64
	// Ready is called once, when feeds that change from then on are noticed;
	// nil for none.
	Ready func()
}

// Listen registers with the hubs of all feeds, and leaves a due marker when one
// is updated, until ctx ends, which is no error. systemd is told when it is
// ready, and when it ends.
func Listen(ctx context.Context, o ListenOptions, s *command.Streams) error {
	if o.SelfTest {
		return selfTest(ctx, o, s)
	}
	d, err := feedcmd.OpenDir(o.Dir, nil)
	if err != nil {
		return err
	}
	unlock, err := Lock(d)
	if err != nil {
		return err
	}
	defer unlock()
	door, err := serve.Open(o.Options, s.Report)
	if err != nil {
		return err
	}
	defer door.Close()
	o.findPublic(door.Addr(), door.TLS(), s)
	o.Ready = func() { serve.Ready(s.Report) }
	l := New(d, s.Report, o)
	defer l.Close()
	// Whoever calls while it starts finds his callback.
	if err := l.Load(); err != nil {
		return err
	}
	if o.Verbose {
		for _, addr := range door.Addrs() {
			s.Report.Info("listening on %s", addr)
		}
	}
	return door.Serve(ctx, serve.NewServer(l, s.Report), l.Run)
}

// selfTest tries whether who asks for the public URL reaches us, by an answer that
// nobody else has.
func selfTest(ctx context.Context, o ListenOptions, s *command.Streams) error {
	door, err := serve.Open(o.Options, s.Report)
	if errors.Is(err, syscall.EADDRINUSE) {
		return command.Hint(err, "stop the listener for the test, as that takes its place")
	}
	if err != nil {
		return err
	}
	defer door.Close()
	o.findPublic(door.Addr(), door.TLS(), s)
	if o.Public == nil {
		return errors.New("there is no public URL to be tried; give it with --public-url")
	}
	where, answer := token(feeddir.TokenLen/2), token(32)
	server := serve.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if feeddir.TokenOf(r.URL.Path) != where {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, answer)
	}), s.Report)
	return door.Serve(ctx, server, func(ctx context.Context) error {
		c := fetch.NewClient(o.Fetch)
		defer c.Close()
		public := strings.TrimSuffix(o.Public.String(), "/")
		resp, err := c.Get(ctx, &fetch.Request{URL: public + "/" + where})
		switch {
		case err != nil:
			return command.Hint(fmt.Errorf("not reached: %w", err), "let a proxy or the router forward %s to %s; some routers do so only for those outside, who are then to try it", public, door.Addr())
		case string(resp.Body) != answer:
			return command.Hint(fmt.Errorf("%s: somebody else answers there", public), "let what answers forward to %s, with the path", door.Addr())
		}
		s.Report.Info("%s: reached, at %s", public, door.Addr())
		return nil
	})
}

// findPublic finds out where hubs reach us, and says what to do when they do not.
func (o *ListenOptions) findPublic(addr net.Addr, tls bool, s *command.Streams) {
	if o.Public == nil {
		machine, _ := net.InterfaceAddrs()
		o.Public = publicURL(addr, tls, machine)
	}
	const hint = "let a proxy or the router forward to %s, and give --public-url with the address that the world sees"
	if o.Public == nil {
		s.Report.Warn("this machine has no public address: no hub can reach it, so none is asked, and feeds are fetched on their schedule as before")
		s.Report.Info("hint: "+hint, addr)
		return
	}
	host := o.Public.Hostname()
	ip, err := netip.ParseAddr(host)
	allowed := false
	for _, p := range o.Fetch.AllowPrivate {
		allowed = allowed || err == nil && p.Contains(ip.Unmap())
	}
	if (err == nil && fetch.Private(ip) || host == "localhost") && !allowed {
		s.Report.Warn("%s is a private address: hubs elsewhere cannot reach it", o.Public)
		s.Report.Info("hint: "+hint, addr)
	}
}

// publicURL finds the URL under which the world reaches a listener on addr,
// where this machine has a public address of its own: addr itself, or, where it
// listens on all addresses, the first public one among those of the machine. It
// returns nil when there is none.
func publicURL(addr net.Addr, tls bool, machine []net.Addr) *url.URL {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	ip = ip.Unmap()
	if !ip.IsValid() || ip.IsUnspecified() {
		only4 := ip.Is4()
		ip = netip.Addr{}
		for _, a := range machine {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if m, ok := netip.AddrFromSlice(n.IP); ok {
				if m = m.Unmap(); !fetch.Private(m) && (m.Is4() || !only4) {
					ip = m
					break
				}
			}
		}
	}
	if !ip.IsValid() || fetch.Private(ip) {
		return nil
	}
	u := &url.URL{Scheme: "http", Host: net.JoinHostPort(ip.String(), strconv.Itoa(tcp.Port))}
	if tls {
		u.Scheme = "https"
	}
	return u
}
