package httpserver

import (
	"cmp"
	"crypto/tls"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
)

// Limit limits the number of open connections of a listener to most. To accept
// one more, it closes an idle one, whose client can open another: the oldest one of the peer with the most
// connections. If none is idle, it closes the oldest one of that peer. Ordinary
// requests end quickly, so this hits peers that send slowly. A peer is an IPv4 address or an
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
	idle  atomic.Bool // it waits for the next request
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
	return slices.MinFunc(slices.Collect(maps.Keys(l.open)), func(a, b *conn) int {
		if idle := a.idle.Load(); idle != b.idle.Load() {
			if idle {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(l.peers[b.peer], l.peers[a.peer]), cmp.Compare(a.order, b.order))
	})
}

// noteIdle notes the state of a connection that [Limit] counts.
func noteIdle(c net.Conn, state http.ConnState) {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if c, ok := c.(*conn); ok {
		c.idle.Store(state == http.StateIdle)
	}
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
