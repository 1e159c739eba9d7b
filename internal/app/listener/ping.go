package listener

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
		t, err := CloudTarget(o.Cloud)
		if err != nil {
			return cmdline.Usagef("--cloud: %w", err)
		}
		named = append(named, t)
	}
	if o.Hub != "" {
		u, err := feedurl.Parse(o.Hub)
		if err != nil {
			return cmdline.Usagef("--hub: %w", err)
		}
		named = append(named, Target{Name: u.String(), hub: u.String(), chosen: true})
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
		targets := slices.Clone(named)
		if len(named) > 0 {
			for i := range targets {
				targets[i].topic = feedurl.Public(feed)
			}
		} else if targets, err = Targets(ctx, c, d, feed); err != nil {
			if _, ok := errors.AsType[*NoCloudError](err); ok {
				err = cmdline.Hint(err, "name a cloud with --cloud, or a hub with --hub")
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
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
	msg, err := t.Ping(ctx, c, feed)
	switch {
	case ctx.Err() != nil:
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
	Name  string // its URL
	ping  rsscloud.PingTarget
	hub   string // URL of a WebSub hub
	topic string
	// chosen is true if the user named the hub; see [fetch.Post].
	chosen bool
}

// NoCloudError is the error for a feed that names neither a cloud nor a hub.
type NoCloudError struct{ URL string }

func (e *NoCloudError) Error() string {
	return e.URL + ": the feed names no cloud and no hub"
}

// Targets returns the targets that a feed names, from the lektor-dir d if it is subscribed
// to there, otherwise from the feed itself. d may be nil. feed is the URL of the feed.
func Targets(ctx context.Context, c *fetch.Client, d *lektordir.Dir, feed string) ([]Target, error) {
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
			return nil, fmt.Errorf("%s: %w", feed, err)
		}
		list, err = offers(push.Of(doc.Clouds, websub.Links(resp.Header, resp.FinalURL, doc.Links)),
			feedurl.Public(feed))
		if err != nil && len(list) == 0 {
			return nil, fmt.Errorf("%s: %w", feed, err)
		}
	}
	var out []Target
	for _, o := range list {
		t := Target{Name: o.hub, topic: feedurl.Public(feed)}
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

// CloudTarget returns the target for a cloud named by the user; see
// [rsscloud.ParsePingTarget].
func CloudTarget(cloud string) (Target, error) {
	p, err := rsscloud.ParsePingTarget(cloud)
	if err != nil {
		return Target{}, err
	}
	return Target{Name: p.URLs[0], ping: p}, nil
}

// Ping notifies the target of an update of a feed, and returns its answer in one line. It
// does not send a password in the feed's URL.
func (t Target) Ping(ctx context.Context, c *fetch.Client, feed string) (string, error) {
	var msg string
	var err error
	if t.hub != "" {
		err = websub.Publish(ctx, c, t.hub, t.chosen, t.topic)
	} else {
		msg, err = rsscloud.Ping(ctx, c, t.ping, feedurl.Public(feed))
	}
	if isA[*httpmsg.PrivateError](err) {
		return "", errors.New(explain(err))
	}
	return msg, err
}
