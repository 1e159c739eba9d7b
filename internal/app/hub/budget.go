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

	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpserver"
)

// perTarget is the maximum number of requests a minute to one host on behalf of strangers:
// for feeds without subscribers, and to callbacks that do not confirm.
const perTarget = 60

// budget counts the requests on behalf of strangers. It is safe for concurrent use.
type budget struct {
	most int // maximum a minute to one host

	mu     sync.Mutex
	minute time.Time // start of the counted minute
	spent  map[string]int
}

// spend counts a request to a host. It reports false if the budget is used up.
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

// refund uncounts a request.
func (b *budget) refund(host string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent[host] > 0 {
		b.spent[host]--
	}
}

// target identifies the host of a URL by its lowest address, because one host can have any
// number of names.
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

// lookup returns the addresses of a host, none if the lookup fails or takes two seconds.
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

// network returns an IPv4 address, or for IPv6 the /64 network, in which a host may have
// any address.
func network(addr netip.Addr) string {
	if p := httpserver.Network(addr); addr.Is6() {
		return p.String()
	}
	return addr.String()
}

// reach makes a request to the callback of a stranger within the budget. A successful
// request is not counted.
func (h *shared) reach(ctx context.Context, callback string, request func() error) error {
	host := target(ctx, &h.opts.Callbacks, callback)
	if !h.budget.spend(host, h.now()) {
		return errTooBusy
	}
	place, err := h.limits[calling].Acquire(ctx, fetch.HostKey(callback))
	if err != nil {
		return err
	}
	defer place.Release()
	if err = request(); err == nil {
		h.budget.refund(host)
	}
	return err
}

// withinBudget reports whether a feed may be read. A feed without subscribers counts against the
// budget, because a stranger may name any server.
func (h *shared) withinBudget(hash, feedURL string) bool {
	return h.readsForPing(hash, feedURL) || h.budget.spend(target(h.background.ctx, &h.opts.Feeds, feedURL), h.now())
}
