package serve

import (
	"net"
	"net/netip"
	"sync"
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
	return Network(ap.Addr())
}

// Network returns an address, or by IPv6 the network of 64 bits within which a host has as
// many addresses as it likes.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	p, _ := addr.Prefix(min(addr.BitLen(), 64))
	return p
}
