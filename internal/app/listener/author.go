package listener

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/websub"
	"github.com/lektordir/lektor/lektordir"
)

// Target is a cloud or hub that an author tells of an update.
type Target struct {
	Name  string // its URL
	ping  rsscloud.PingTarget
	hub   string // of WebSub
	topic string
}

// NoCloudError is the error for a feed that names neither cloud nor hub.
type NoCloudError struct{ URL string }

func (e *NoCloudError) Error() string {
	return e.URL + ": the feed names no cloud and no hub"
}

// Targets finds out whom a feed names to be told of its updates: from the
// lektor-dir d where it is subscribed to, else from the feed itself. d may be
// nil. feed is the URL of the feed as the user gives it.
func Targets(ctx context.Context, c *fetch.Client, d *lektordir.Dir, feed string) ([]Target, error) {
	var list []offer
	if d != nil {
		if hash, err := d.FindFeed(lektordir.NormalizeID(feed)); err == nil {
			if u := subscription(d, hash); u != "" {
				list, _ = offers(d, hash, u)
			}
		}
	}
	if len(list) == 0 {
		resp, err := c.Get(ctx, &fetch.Request{URL: feed})
		if err != nil {
			return nil, err
		}
		doc, err := feedconv.ParseBytes(resp.Body, feedconv.Options{URL: resp.FinalURL, ContentType: resp.Header.Get("Content-Type")})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", feed, err)
		}
		list, err = offersOf(doc, websub.Links(resp.Header, resp.FinalURL, doc.Links), fetch.Public(feed))
		if err != nil && len(list) == 0 {
			return nil, fmt.Errorf("%s: %w", feed, err)
		}
	}
	var out []Target
	for _, o := range list {
		t := Target{Name: o.hub, topic: fetch.Public(feed)}
		if o.protocol == WebSub {
			t.hub, t.topic = o.hub, o.topic
		} else {
			p, err := o.cloud.PingTarget()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", feed, err)
			}
			t.ping = p
		}
		out = append(out, t)
	}
	if len(out) == 0 {
		return nil, &NoCloudError{URL: feed}
	}
	return out, nil
}

// offersOf gives the offers of a document.
func offersOf(doc *feedconv.Feed, links []feedconv.Link, feedURL string) (out []offer, err error) {
	topic := feedURL
	for _, l := range links {
		if l.Rel == "self" && fetch.IsHTTP(l.Href) {
			topic = l.Href
			break
		}
	}
	for _, l := range links {
		if l.Rel == "hub" && fetch.IsHTTP(l.Href) {
			out = append(out, offer{protocol: WebSub, hub: l.Href, topic: topic})
		}
	}
	for _, fc := range doc.Clouds {
		c := rsscloud.Cloud(fc)
		u, cerr := c.URL()
		if cerr != nil {
			err = errors.Join(err, cerr)
			continue
		}
		out = append(out, offer{protocol: rsscloud.HTTPPost, hub: u, cloud: c})
	}
	return out, err
}

// CloudTarget is the cloud that a user names; see [rsscloud.ParsePingTarget].
func CloudTarget(cloud string) (Target, error) {
	p, err := rsscloud.ParsePingTarget(cloud)
	if err != nil {
		return Target{}, err
	}
	return Target{Name: p.URLs[0], ping: p}, nil
}

// Ping tells the target that the feed was updated, and gives what it said to
// that, in one line. A password in the feed's URL is not told.
func (t Target) Ping(ctx context.Context, c *fetch.Client, feed string) (string, error) {
	var msg string
	var err error
	if t.hub != "" {
		err = websub.Publish(ctx, c, t.hub, false, t.topic)
	} else {
		msg, err = rsscloud.Ping(ctx, c, t.ping, fetch.Public(feed))
	}
	var private *fetch.PrivateError
	if errors.As(err, &private) {
		return "", errors.New(explain(err))
	}
	return msg, err
}

// SaveURL is where a document asks to be saved: the XML-RPC cloud that it
// names, or "".
func SaveURL(document []byte) string {
	doc, err := feedconv.Parse(bytes.NewReader(document), feedconv.Options{})
	if err != nil {
		return ""
	}
	for _, fc := range doc.Clouds {
		if c := rsscloud.Cloud(fc); c.IsXMLRPC() {
			if u, err := c.URL(); err == nil {
				return u
			}
		}
	}
	return ""
}
