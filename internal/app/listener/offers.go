package listener

import (
	"errors"
	"slices"
	"strings"

	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// offers returns the offers of a feed at a URL to notify of updates. WebSub comes first,
// because its hubs sign deliveries and name the duration of a subscription. Offers that
// cannot be used are returned as an error.
func offers(p push.Offers, feedURL string) (out []offer, bad error) {
	topic := feedURL
	if len(p.Self) > 0 && feedurl.IsHTTP(p.Self[0]) {
		topic = p.Self[0]
	}
	for _, h := range p.Hubs {
		if feedurl.IsHTTP(h) {
			out = append(out, offer{protocol: WebSub, hub: h, topic: topic})
		}
	}
	for _, fc := range p.Clouds {
		c := rsscloud.Cloud(fc)
		u, err := c.URL()
		if err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		o := offer{protocol: rsscloud.HTTPPost, hub: u, cloud: c, topic: feedURL}
		switch {
		case c.IsXMLRPC():
			o.protocol = rsscloud.XMLRPC
		case strings.HasPrefix(u, "https:"):
			o.protocol = rsscloud.HTTPSPost
		}
		if !slices.ContainsFunc(out, func(p offer) bool { return p.key() == o.key() }) {
			out = append(out, o)
		}
	}
	return out, bad
}

// readOffers returns the offers in the lektor-dir of a feed at a URL, and their source. A
// URL that is not http or https has no offers.
func readOffers(d *lektordir.Dir, hash, feedURL string) (p push.Offers, out []offer, bad error) {
	p, bad = push.Read(d, hash)
	if !feedurl.IsHTTP(feedURL) {
		return p, nil, nil
	}
	out, err := offers(p, feedURL)
	return p, out, errors.Join(bad, err)
}
