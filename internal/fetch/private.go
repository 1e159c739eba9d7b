package fetch

import "net/netip"

// special holds the prefixes that are no public hosts and that netip has no
// predicate for.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),       // this network; Linux takes 0.x for itself
	netip.MustParsePrefix("100.64.0.0/10"),   // behind carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),    // IETF protocol assignments
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("64:ff9b:1::/48"),  // NAT64 of a local network (RFC 8215)
	netip.MustParsePrefix("fec0::/10"),       // site-local, before unique local addresses
	netip.MustParsePrefix("100::/64"),        // discard
	netip.MustParsePrefix("2001::/32"),       // Teredo: the address inside is obfuscated
	netip.MustParsePrefix("2001:10::/28"),    // ORCHID
	netip.MustParsePrefix("2001:20::/28"),    // ORCHIDv2
	netip.MustParsePrefix("5f00::/16"),       // segment routing
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
}

// carriers are IPv6 prefixes with an IPv4 address at the byte offset, to which
// a gateway takes the packets.
var carriers = []struct {
	prefix netip.Prefix
	offset int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4
	{netip.MustParsePrefix("::/96"), 12},        // IPv4-compatible
}

// private tells whether addr belongs to this machine, its network or nobody,
// rather than to a public host. Addresses in allow are public.
func private(addr netip.Addr, allow []netip.Prefix) bool {
	addr = addr.Unmap().WithZone("")
	for _, p := range allow {
		if p.Contains(addr) {
			return false
		}
	}
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsLoopback() || addr.IsPrivate() ||
		addr.IsLinkLocalUnicast() || addr.IsMulticast() {
		return true
	}
	for _, p := range special {
		if p.Contains(addr) {
			return true
		}
	}
	for _, c := range carriers {
		if c.prefix.Contains(addr) {
			b := addr.As16()
			return private(netip.AddrFrom4([4]byte(b[c.offset:c.offset+4])), allow)
		}
	}
	return false
}
