package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/fetch"
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

	// Address is the host and port to listen on, unless systemd passes a
	// socket; Given that the user said so.
	Address  string
	Given    bool
	Cert     string // a file with a certificate, to speak TLS
	Key      string // a file with its key
	MaxConns int    // see [Limit]

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

	// Rand gives numbers from 0 to 1 for jitter; nil means at random.
	Rand func() float64
	// Ready is called once, when feeds that change from then on are noticed;
	// nil for none.
	Ready func()
}

// stopWithin is how long requests may take that are being answered when the
// listener is stopped.
const stopWithin = 2 * time.Second

// Listen registers with the hubs of all feeds, and leaves a due marker when one
// is updated, until ctx ends, which is no error. systemd is told when it is
// ready, and when it ends.
func Listen(ctx context.Context, o ListenOptions, s *command.Streams) error {
	d, err := command.OpenDir(o.Dir, nil)
	if err != nil {
		return err
	}
	unlock, err := Lock(d)
	if err != nil {
		return err
	}
	defer unlock()
	var conf *tls.Config
	if o.Cert != "" {
		if conf, err = certificate(o.Cert, o.Key); err != nil {
			return err
		}
	}
	sockets, err := o.sockets(s)
	if err != nil {
		return err
	}
	o.findPublic(sockets[0].Addr(), conf != nil, s)
	o.Ready = func() {
		if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
			s.Report.Warn("systemd: %v", err)
		}
	}
	l := New(d, s.Report, o)
	defer l.Close()
	// Whoever calls while it starts finds his callback.
	if err := l.Load(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := l.Server()
	for _, socket := range sockets {
		if o.Verbose {
			s.Report.Info("listening on %s", socket.Addr())
		}
		socket = Limit(socket, o.MaxConns)
		if conf != nil {
			socket = tls.NewListener(socket, conf)
		}
		go func() {
			if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
				cancel(err)
			}
		}()
	}
	err = l.Run(ctx)
	_, _ = daemon.SdNotify(false, daemon.SdNotifyStopping) // it is told by our end as well
	stopping, stop := context.WithTimeout(context.Background(), stopWithin)
	defer stop()
	if server.Shutdown(stopping) != nil {
		_ = server.Close()
	}
	if cause := context.Cause(ctx); err == nil && cause != nil {
		if _, ok := errors.AsType[*net.OpError](cause); ok {
			err = cause
		}
	}
	return err
}

// sockets gives what to listen on: what systemd passed, else the address.
func (o *ListenOptions) sockets(s *command.Streams) ([]net.Listener, error) {
	passed, err := activation.Listeners()
	switch {
	case err != nil:
		return nil, fmt.Errorf("sockets from systemd: %w", err)
	case len(passed) == 0:
		l, err := net.Listen("tcp", o.Address)
		if err != nil {
			return nil, command.Hint(err, "--listen takes another address or port")
		}
		return []net.Listener{l}, nil
	case o.Given:
		s.Report.Warn("--listen is ignored: systemd passed a socket")
	}
	for i, l := range passed {
		if l == nil {
			return nil, fmt.Errorf("socket %d from systemd is none that listens for connections", i+1)
		}
	}
	return passed, nil
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

// certificate gives a TLS configuration with a certificate from PEM files,
// which are read again when they change: what renews certificates need not
// know of us.
func certificate(certFile, keyFile string) (*tls.Config, error) {
	var (
		mu      sync.Mutex
		current *tls.Certificate
		stamp   [2]time.Time
	)
	load := func() error {
		var now [2]time.Time
		for i, name := range []string{certFile, keyFile} {
			fi, err := os.Stat(name)
			if err != nil {
				return err
			}
			now[i] = fi.ModTime()
		}
		if current != nil && now == stamp {
			return nil
		}
		c, err := tls.LoadX509KeyPair(certFile, keyFile)
		if err != nil {
			return err
		}
		current, stamp = &c, now
		return nil
	}
	if err := load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			mu.Lock()
			defer mu.Unlock()
			_ = load() // half of a renewal: the old one will do until it is whole
			return current, nil
		},
	}, nil
}
