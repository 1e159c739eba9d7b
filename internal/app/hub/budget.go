package hub

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/serve"
)

// perTarget is how many requests a minute strangers can have the hub make to one host: for
// feeds without subscribers, and to callbacks that do not confirm.
const perTarget = 60

// budget counts these requests. It may be used by many goroutines.
type budget struct {
	most int // a minute, to one host

	mu     sync.Mutex
	minute time.Time // when the minute began
	spent  map[string]int
}

// spend reports whether one more request can be made to a host, and counts it.
func (b *budget) spend(host string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if age := now.Sub(b.minute); age >= time.Minute || age < 0 {
		b.minute, b.spent = now, map[string]int{}
	}
	if b.spent[host] >= b.most {
		return false
	}
	b.spent[host]++
	return true
}

// refund takes back a request that was counted.
func (b *budget) refund(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent[host] > 0 {
		b.spent[host]--
	}
}

// target names the host of a URL by its address, as one host can have any number of names.
func target(ctx context.Context, o *fetch.Config, rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return ""
	}
	host := strings.ToLower(u.Hostname())
	list := lookup(ctx, o, host)
	if len(list) == 0 {
		return host
	}
	return network(slices.MinFunc(list, netip.Addr.Compare))
}

// lookup returns the addresses of a host; none if it cannot be looked up in two seconds.
func lookup(ctx context.Context, o *fetch.Config, host string) (list []netip.Addr) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a.Unmap()}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	found, err := cmp.Or(o.Resolver, net.DefaultResolver).LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, a := range found {
		list = append(list, a.Unmap())
	}
	return list
}

// network names an address, or by IPv6 the 64 bits within which a host has as many
// addresses as it likes.
func network(addr netip.Addr) string {
	if p := serve.Network(addr); addr.Is6() {
		return p.String()
	}
	return addr.String()
}

// reach makes a request to the callback of a stranger, who may name any server.
func (h *engine) reach(ctx context.Context, callback string, request func() error) error {
	host := target(ctx, &h.opts.Callbacks, callback)
	if !h.budget.spend(host, h.now()) {
		return errMuch
	}
	place, err := h.limits[calling].Acquire(ctx, laneOf(callback))
	if err != nil {
		return err
	}
	defer place.Release()
	if err = request(); err == nil {
		h.budget.refund(host)
	}
	return err
}

// afford reports whether a feed can be read: for a feed without subscribers, a stranger
// may have named any server.
func (h *engine) afford(hash, feedURL string) bool {
	return h.heeded(hash, feedURL) || h.budget.spend(target(h.ctx, &h.opts.Feeds, feedURL), h.now())
}
