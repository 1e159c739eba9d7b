package httpserver

import (
	"net"
	"net/netip"
	"sync"
)

// Limit limits the number of open connections of a listener to most. To accept
// one more, it closes the oldest connection of the peer with the most connections. Ordinary
// requests end quickly, so this hits peers that keep connections open. A peer is an IPv4 address or an
// IPv6 /64 network.
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

// victim returns the connection to close. The caller holds mu.
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
	return Network(ap.Addr())
}

// Network returns an IPv4 address, or for IPv6 the /64 network, in which a host may have
// any address.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	p, _ := addr.Prefix(min(addr.BitLen(), 64))
	return p
}
