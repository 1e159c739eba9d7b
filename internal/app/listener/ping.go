package listener

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/feeds/push"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rsscloud"
	"github.com/lektordir/lektor/internal/protocol/websub"
	"github.com/lektordir/lektor/internal/text/feedurl"
	"github.com/lektordir/lektor/lektordir"
)

// PingOptions are the options of [Ping].
type PingOptions struct {
	Common
	Feeds []string // URLs; "-" reads them from standard input
	Nul   bool
	// DryRun requests only the feeds, and prints the targets.
	DryRun bool
	// Cloud and Hub, or one of them, are notified instead of the targets that the feeds
	// name: a cloud as in [rsscloud.ParsePingTarget], and the URL of a WebSub hub.
	Cloud, Hub string
}

// Ping notifies the clouds and hubs of feeds of an update.
func Ping(ctx context.Context, o PingOptions, s *cmdline.Streams) error {
	var named []Target
	if o.Cloud != "" {
		t, err := rsscloud.ParsePingTarget(o.Cloud)
		if err != nil {
			return cmdline.Usagef("--cloud: %w", err)
		}
		named = append(named, cloudTarget(t.URLs[0], t))
	}
	if o.Hub != "" {
		u, err := feedurl.Parse(o.Hub)
		if err != nil {
			return cmdline.Usagef("--hub: %w", err)
		}
		named = append(named, hubTarget(u.String(), true, ""))
	}
	// A publisher may have no lektor-dir.
	d, err := lektordir.Open(o.Dir, nil)
	if err != nil {
		d = nil
	}
	c := fetch.NewClient(o.Fetch)
	defer c.Close()
	for arg, err := range cmdline.ReadArgs(o.Feeds, s.In, o.Nul) {
		if err != nil {
			return err
		}
		u, err := feedurl.Parse(arg)
		if err != nil {
			s.Report.Print(cmdline.Hint(err, "use the URL by which the cloud knows the feed"))
			continue
		}
		feed := u.String()
		u.User = nil // a password is for the feed's server only
		targets := named
		if len(named) == 0 {
			targets, err = Targets(ctx, c, d, feed)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.Report.Print(err)
			continue
		}
		for _, t := range targets {
			if o.DryRun {
				s.Report.Info("%s: would notify %s", u, t.Name)
			} else if t.notify(ctx, c, feed, u.String(), s); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// notify pings a target, and prints its answer. name is the feed's URL for messages.
func (t Target) notify(ctx context.Context, c *fetch.Client, feed, name string, s *cmdline.Streams) {
	msg, err := t.ping(ctx, c, feed)
	switch {
	case ctx.Err() != nil:
	case isA[*httpmsg.PrivateError](err):
		s.Report.Print(errors.New(explain(err)))
	case err != nil:
		s.Report.Print(err)
	case msg == "":
		s.Report.Info("%s: notified %s", name, t.Name)
	default:
		s.Report.Info("%s: notified %s: %s", name, t.Name, msg)
	}
}

// Target is a cloud or hub that a publisher notifies of an update.
type Target struct {
	Name string // its URL
	// ping notifies it of an update of the feed at a URL, without the password in that, and returns its answer in one
	// line.
	ping func(ctx context.Context, c *fetch.Client, feed string) (string, error)
}

func cloudTarget(name string, t rsscloud.PingTarget) Target {
	return Target{name, func(ctx context.Context, c *fetch.Client, feed string) (string, error) {
		return rsscloud.Ping(ctx, c, t, feedurl.Public(feed))
	}}
}

// hubTarget returns a WebSub hub. For chosen see [fetch.Post]; the topic "" is the URL of the feed.
func hubTarget(hub string, chosen bool, topic string) Target {
	return Target{hub, func(ctx context.Context, c *fetch.Client, feed string) (string, error) {
		return "", websub.Publish(ctx, c, hub, chosen, cmp.Or(topic, feedurl.Public(feed)))
	}}
}

// Targets returns the targets that a feed names, from the lektor-dir d if it is subscribed
// to there, otherwise from the feed itself. d may be nil. feed is the URL of the feed.
func Targets(ctx context.Context, c *fetch.Client, d *lektordir.Dir, feed string) ([]Target, error) {
	name := feedurl.Public(feed)
	var list []offer
	if d != nil {
		if hash, err := d.FindFeed(lektordir.NormalizeID(feed)); err == nil {
			_, list, _ = readOffers(d, hash, subscriptions.PublicURL(d, hash))
		}
	}
	if len(list) == 0 {
		resp, err := c.Get(ctx, &httpmsg.Request{URL: feed})
		if err != nil {
			return nil, err
		}
		doc, err := feedconv.ParseBytes(resp.Body,
			feedconv.Options{URL: resp.FinalURL, ContentType: resp.Header.Get("Content-Type")})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list, err = offers(push.Of(doc.Clouds, websub.Links(resp.Header, resp.FinalURL, doc.Links)), name)
		if err != nil && len(list) == 0 {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	var out []Target
	for _, o := range list {
		if o.protocol == WebSub {
			out = append(out, hubTarget(o.hub, false, o.topic))
			continue
		}
		t, err := o.cloud.PingTarget()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, cloudTarget(o.hub, t))
	}
	if len(out) == 0 {
		return nil, cmdline.Hint(fmt.Errorf("%s: the feed names no cloud and no hub", name),
			"name a cloud with --cloud, or a hub with --hub")
	}
	return out, nil
}
