package listener

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lektordir/lektor/feedconv"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/rsscloud"
	"github.com/lektordir/lektor/internal/websub"
	"github.com/lektordir/lektor/lektordir"
)

// PingOptions are the options of [Ping].
type PingOptions struct {
	Common
	Feeds []string // URLs; "-" for those on standard input
	Nul   bool
	// DryRun makes no request but for the feeds, and tells whom it would tell.
	DryRun bool
	// Cloud and Hub, or one of the two, are told whatever the feeds say: a cloud as
	// [rsscloud.ParsePingTarget] has it, and the URL of a hub of WebSub.
	Cloud, Hub string
}

// Ping tells the clouds and hubs of feeds that these were updated.
func Ping(ctx context.Context, o PingOptions, s *command.Streams) error {
	var named []Target
	if o.Cloud != "" {
		t, err := CloudTarget(o.Cloud)
		if err != nil {
			return command.Usagef("--cloud: %w", err)
		}
		named = append(named, t)
	}
	if o.Hub != "" {
		u, err := fetch.ParseURL(o.Hub)
		if err != nil {
			return command.Usagef("--hub: %w", err)
		}
		named = append(named, Target{Name: u.String(), hub: u.String(), chosen: true})
	}
	// An author need not have a lektor-dir.
	d, err := lektordir.Open(o.Dir, nil)
	if err != nil {
		d = nil
	}
	c := fetch.NewClient(o.Fetch)
	defer c.Close()
	for arg, err := range command.ReadArgs(o.Feeds, s.In, o.Nul) {
		if err != nil {
			return err
		}
		u, err := fetch.ParseURL(arg)
		if err != nil {
			s.Report.Print(command.Hint(err, "ping takes the URL of a feed, as the cloud knows it"))
			continue
		}
		feed := u.String()
		u.User = nil // a password is for the feed's server, not for messages
		targets := slices.Clone(named)
		if len(named) > 0 {
			for i := range targets {
				targets[i].topic = fetch.Public(feed)
			}
		} else if targets, err = Targets(ctx, c, d, feed); err != nil {
			if _, ok := errors.AsType[*NoCloudError](err); ok {
				err = command.Hint(err, "name a cloud with --cloud, or a hub with --hub")
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.Report.Print(err)
			continue
		}
		for _, t := range targets {
			if o.DryRun {
				s.Report.Info("%s: would tell %s", u, t.Name)
			} else if t.tell(ctx, c, feed, u.String(), s); ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// tell pings a target, and reports what it said. name is the feed's URL in messages.
func (t Target) tell(ctx context.Context, c *fetch.Client, feed, name string, s *command.Streams) {
	msg, err := t.Ping(ctx, c, feed)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.Report.Print(err)
	case msg == "":
		s.Report.Info("%s: told %s", name, t.Name)
	default:
		s.Report.Info("%s: told %s: %s", name, t.Name, msg)
	}
}

// Target is a cloud or hub that an author tells of an update.
type Target struct {
	Name  string // its URL
	ping  rsscloud.PingTarget
	hub   string // of WebSub
	topic string
	// chosen is that the user named the hub; see [fetch.Post].
	chosen bool
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
			_, list, _ = readOffers(d, hash, feeddir.PublicURL(d, hash))
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
		list, err = offers(feeddir.PushOf(doc.Clouds, websub.Links(resp.Header, resp.FinalURL, doc.Links)), fetch.Public(feed))
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

// CloudTarget is the cloud that a user names; see [rsscloud.ParsePingTarget].
func CloudTarget(cloud string) (Target, error) {
	p, err := rsscloud.ParsePingTarget(cloud)
	if err != nil {
		return Target{}, err
	}
	return Target{Name: p.URLs[0], ping: p}, nil
}

// Ping tells the target that the feed was updated, and returns what it said to
// that, in one line. A password in the feed's URL is not told.
func (t Target) Ping(ctx context.Context, c *fetch.Client, feed string) (string, error) {
	var msg string
	var err error
	if t.hub != "" {
		err = websub.Publish(ctx, c, t.hub, t.chosen, t.topic)
	} else {
		msg, err = rsscloud.Ping(ctx, c, t.ping, fetch.Public(feed))
	}
	if isA[*fetch.PrivateError](err) {
		return "", errors.New(explain(err))
	}
	return msg, err
}
