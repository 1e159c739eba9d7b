package listener

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
)

// Limit lets most connections of a listener be open at once. When one more
// comes, the oldest of the peer that has most of them is closed: since a request
// that is not slow is over in no time, that is one of those who keep
// connections open, and not who has something to say. Peers are addresses, and
// networks of 64 bits by IPv6.
func Limit(l net.Listener, most int) net.Listener {
	return &limiter{Listener: l, most: max(most, 1), open: map[*conn]bool{}, peers: map[netip.Prefix]int{}}
}

type limiter struct {
	net.Listener
	most int

	mu    sync.Mutex
	open  map[*conn]bool
	peers map[netip.Prefix]int
	count uint64
}

type conn struct {
	net.Conn
	l     *limiter
	peer  netip.Prefix
	order uint64
	once  sync.Once
}

func (l *limiter) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, l: l, peer: peerOf(nc.RemoteAddr())}
	l.mu.Lock()
	var victim *conn
	if len(l.open) >= l.most {
		victim = l.victim()
	}
	l.count++
	c.order = l.count
	l.open[c] = true
	l.peers[c.peer]++
	l.mu.Unlock()
	if victim != nil {
		_ = victim.Close()
	}
	return c, nil
}

// victim is the connection to be closed. The caller holds mu.
func (l *limiter) victim() *conn {
	var v *conn
	for c := range l.open {
		switch {
		case v == nil, l.peers[c.peer] > l.peers[v.peer], l.peers[c.peer] == l.peers[v.peer] && c.order < v.order:
			v = c
		}
	}
	return v
}

func (c *conn) Close() error {
	c.once.Do(func() {
		c.l.mu.Lock()
		defer c.l.mu.Unlock()
		delete(c.l.open, c)
		if c.l.peers[c.peer]--; c.l.peers[c.peer] == 0 {
			delete(c.l.peers, c.peer)
		}
	})
	return c.Conn.Close()
}

func peerOf(a net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	addr := ap.Addr().Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits)
	return p
}

// Certificate gives a TLS configuration with a certificate from PEM files,
// which are read again when they change: what renews certificates need not
// know of us.
func Certificate(certFile, keyFile string) (*tls.Config, error) {
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

// Activated gives the sockets that systemd passed to this process (sd_listen_fds,
// LISTEN_PID and LISTEN_FDS), none when it did not. The variables are unset, so
// that no child takes them for its own.
func Activated() ([]net.Listener, error) {
	pid, fds := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		_ = os.Unsetenv(name)
	}
	if fds == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(fds)
	if err != nil || n < 0 || n > 64 {
		return nil, fmt.Errorf("LISTEN_FDS=%s makes no sense", fds)
	}
	var out []net.Listener
	for i := range n {
		const first = 3 // SD_LISTEN_FDS_START
		f := os.NewFile(uintptr(first+i), "LISTEN_FD_"+strconv.Itoa(first+i))
		l, err := net.FileListener(f)
		_ = f.Close()
		if err != nil {
			for _, l := range out {
				_ = l.Close()
			}
			return nil, fmt.Errorf("socket %d from systemd: %w", i+1, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// Tell sends a state such as "READY=1" to systemd (sd_notify, NOTIFY_SOCKET); it
// does nothing where nobody waits for it.
func Tell(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		return err
	}
	_, err = c.Write([]byte(state))
	return errors.Join(err, c.Close())
}

// PublicURL finds the URL under which the world reaches a listener on addr,
// where this machine has a public address of its own: addr itself, or, where it
// listens on all addresses, the first public one among those of the machine. It
// returns nil when there is none.
func PublicURL(addr net.Addr, tls bool, machine []net.Addr) *url.URL {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	ip, _ := netip.AddrFromSlice(tcp.IP)
	ip = ip.Unmap()
	if !ip.IsValid() || ip.IsUnspecified() {
		any4 := ip.Is4()
		ip = netip.Addr{}
		for _, a := range machine {
			n, ok := a.(*net.IPNet)
			if !ok {
				continue
			}
			if m, ok := netip.AddrFromSlice(n.IP); ok {
				if m = m.Unmap(); !fetch.Private(m) && (m.Is4() || !any4) {
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
