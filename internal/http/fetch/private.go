package fetch

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/lektordir/lektor/internal/text/feedurl"
)

// special holds non-public prefixes for which netip has no method.
var special = []netip.Prefix{
	netip.MustParsePrefix("100.64.0.0/10"),   // behind carrier-grade NAT
	netip.MustParsePrefix("192.0.0.0/24"),    // IETF protocol assignments
	netip.MustParsePrefix("192.88.99.0/24"),  // relays of 6to4, no longer in use (RFC 7526)
	netip.MustParsePrefix("198.18.0.0/15"),   // benchmarks
	netip.MustParsePrefix("240.0.0.0/4"),     // reserved, and broadcast
	netip.MustParsePrefix("fec0::/10"),       // site-local, before unique local addresses
	netip.MustParsePrefix("100::/64"),        // discard
	netip.MustParsePrefix("2001::/32"),       // Teredo: the address inside is obfuscated
	netip.MustParsePrefix("2001:10::/28"),    // ORCHID
	netip.MustParsePrefix("2001:20::/28"),    // ORCHIDv2
	netip.MustParsePrefix("5f00::/16"),       // segment routing
	netip.MustParsePrefix("2001:db8::/32"),   // documentation
	netip.MustParsePrefix("3fff::/20"),       // documentation (RFC 9637)
	netip.MustParsePrefix("192.0.2.0/24"),    // documentation
	netip.MustParsePrefix("198.51.100.0/24"), // documentation
	netip.MustParsePrefix("203.0.113.0/24"),  // documentation
}

// carriers are IPv6 prefixes that embed an IPv4 address at a byte offset, to which a gateway
// forwards. An address has the stricter of least and the standing of the IPv4 address.
var carriers = []struct {
	prefix netip.Prefix
	offset int
	least  standing
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12, public},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12, private}, // NAT64 of a local network (RFC 8215)
	{netip.MustParsePrefix("2002::/16"), 2, public},        // 6to4
	{netip.MustParsePrefix("::/96"), 12, public},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, public}, // translated (RFC 2765)
}

// metadata are the addresses, except link-local ones, of services from which a cloud machine gets
// its own secrets.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
}

// thisNetwork holds addresses that Linux treats as its own, or never sends to.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// standing determines who may request an address.
type standing int

const (
	public  standing = iota // any document
	private                 // only the user: an address of this machine, its network or nobody
	never                   // only if the user allows the address, see [Config].AllowPrivate
)

// standingOf returns the standing of an address. Addresses in allow are public. For an IPv6 address
// that embeds an IPv4 address, see carriers.
func standingOf(addr netip.Addr, allow []netip.Prefix) standing {
	addr = addr.Unmap().WithZone("")
	contains := func(p netip.Prefix) bool { return p.Contains(addr) }
	if slices.ContainsFunc(allow, contains) {
		return public
	}
	if !addr.IsValid() || addr.IsUnspecified() || addr.IsLinkLocalUnicast() || addr.IsMulticast() ||
		thisNetwork.Contains(addr) || slices.Contains(metadata, addr) {
		return never
	}
	for _, c := range carriers {
		if c.prefix.Contains(addr) && addr != netip.IPv6Loopback() {
			b := addr.As16()
			inside := standingOf(netip.AddrFrom4([4]byte(b[c.offset:c.offset+4])), allow)
			return max(inside, c.least)
		}
	}
	if addr.IsLoopback() || addr.IsPrivate() || slices.ContainsFunc(special, contains) {
		return private
	}
	return public
}

// Private reports whether addr belongs to this machine, its network or nobody, rather than to a
// public host: loopback, private (RFC 1918, RFC 4193), link-local, carrier-grade NAT, multicast,
// reserved, and IPv6 addresses that embed such an IPv4 address. A [Client] refuses to connect to
// such an address if a stranger named it.
func Private(addr netip.Addr) bool { return standingOf(addr, nil) != public }

// vouched reports whether the document at origin may name u even if u has a private address. It may
// if u is on the document's own host, or if the document is on a host of this machine or its
// network. The host must then be an address, or a name that no public name server resolves, as a
// stranger could make a public name resolve to a private address later.
func vouched(origin string, u *url.URL) bool {
	o, err := feedurl.Parse(origin)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(o.Hostname(), ".")
	if strings.EqualFold(host, strings.TrimSuffix(u.Hostname(), ".")) {
		return true
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return standingOf(addr, nil) == private
	}
	if !strings.Contains(host, ".") {
		// No public name is without a dot. Some resolvers take a number for an address.
		return host[0] > '9'
	}
	return slices.ContainsFunc(localDomains, func(d string) bool { return strings.HasSuffix(host, d) })
}

// localDomains are reserved for names of this machine or its network (RFC 6761, RFC 6762, RFC 8375,
// and ICANN for .internal).
var localDomains = []string{".localhost", ".local", ".home.arpa", ".internal"}

// RefusesHost returns the reason why a feed that others name must not be added because of the host
// in its URL; "" if it may. An address in a private network, which is returned too, is refused
// unless it is in allow, and so is a number that a resolver may take for an address, such as
// 127.1. The address of a name is checked when it is requested, see [httpmsg.Request].
func RefusesHost(raw string, allow []netip.Prefix) (why string, addr netip.Addr) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", addr
	}
	host := strings.ToLower(u.Hostname())
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		host = ascii // the form in which it is requested: full-width digits are digits
	}
	host = strings.TrimSuffix(host, ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		host = "127.0.0.1"
	}
	addr, err = netip.ParseAddr(host)
	if err != nil {
		last := host[strings.LastIndexByte(host, '.')+1:]
		if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
			return "its host is a number but not an IP address", netip.Addr{}
		}
		return "", netip.Addr{}
	}
	if addr = addr.Unmap().WithZone(""); !Private(addr) ||
		slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return "", netip.Addr{}
	}
	return addr.String() + " is in a private network", addr
}
