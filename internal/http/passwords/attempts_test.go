package passwords

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// An IPv6 host has a whole network of addresses; failures from too many networks are forgotten.
func TestLimitNetworks(t *testing.T) {
	now := time.Unix(1e9, 0)
	a := newAttempts(func() time.Time { return now })
	for i := range freeTries {
		a.failed(netip.MustParseAddr(fmt.Sprintf("2001:db8::%x", i)), digest{byte(i)})
	}
	if a.allowed(netip.MustParseAddr("2001:db8::ffff")) == nil {
		t.Error("another address of the network is not limited")
	}
	if err := a.allowed(netip.MustParseAddr("2001:db8:0:1::1")); err != nil {
		t.Error("another network:", err)
	}
	for i := range 3 * mostFailing {
		a.failed(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), digest{})
	}
	if n := len(a.networks); n > mostFailing {
		t.Errorf("%d networks are remembered", n)
	}
	for i := range 100 {
		a.failed(netip.MustParseAddr("192.0.2.1"), digest{byte(i)})
	}
	if f := a.networks[netip.MustParsePrefix("192.0.2.1/32")]; len(f.tried) != mostTried || f.n != 100 {
		t.Errorf("%d passwords are remembered, and %d counted", len(f.tried), f.n)
	}
	now = now.Add(-24 * time.Hour)
	if err := a.allowed(netip.MustParseAddr("192.0.2.1")); err != nil {
		t.Error("after the clock was set back:", err)
	}
}
