package main

import (
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/hub"
	"github.com/lektordir/lektor/internal/app/listener"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/serve"
)

func hubCommand() *cli.Command {
	return &cli.Command{
		Name:  "hub",
		Usage: "be a cloud of rssCloud and a hub of WebSub, for the feeds of others or one's own",
		Description: `Example:
   lektor-cloudd hub --public-url https://hub.example`,
		Flags: append(serverFlags(), []cli.Flag{
			&cli.StringFlag{Name: "public-url", Usage: "the world reaches us at `URL`"},
			&cli.StringFlag{Name: "state", Usage: "keep subscriptions in `DIR`", DefaultText: "$XDG_STATE_HOME/lektor-hub"},
			&cli.StringFlag{Name: "htpasswd", Usage: "store feeds (saveRss) of the users in `FILE`, with passwords by bcrypt"},
			&cli.StringSliceFlag{Name: "feed", Usage: "read feeds whose URL begins with `URL` at every ping, though nobody subscribes; may be repeated"},
			&cli.StringSliceFlag{Name: "allow-feeds", Usage: "feeds may be in the private network `PREFIX`; may be repeated"},
			&cli.StringSliceFlag{Name: "allow-callbacks", Usage: "subscribers may be in the private network `PREFIX`; may be repeated"},
			&cli.IntFlag{Name: "max-urls", Value: hub.DefaultMaxURLs, Usage: "take `N` feeds in a request"},
			&cli.IntFlag{Name: "max-per-caller", Value: hub.DefaultPerCaller, Usage: "keep `N` subscriptions of one address"},
			&cli.IntFlag{Name: "max-subscriptions", Value: hub.DefaultMost, Usage: "keep `N` subscriptions in all"},
			&cli.IntFlag{Name: "max-feed", Value: hub.DefaultMaxFeed, Usage: "read `BYTES` of a feed"},
			&cli.IntFlag{Name: "max-save", Value: hub.DefaultMaxSave, Usage: "store `BYTES` of a feed"},
			&cli.IntFlag{Name: "at-once", Value: hub.DefaultNotifyAtOnce, Usage: "notify `N` subscribers at once"},
			&cli.IntFlag{Name: "per-host", Value: hub.DefaultPerHost, Usage: "and `N` at one host"},
			&cli.DurationFlag{Name: "ping-gap", Usage: "read a feed for pings every `TIME` at most", DefaultText: "at every ping"},
			&cli.DurationFlag{Name: fetch.FlagTimeout, Value: hub.DefaultTimeout, Usage: "give up an exchange after `TIME`, less than 8s"},
			&cli.IntFlag{Name: fetch.FlagMaxRedirects, Value: 5, Usage: "follow `N` redirects"},
			&cli.StringFlag{Name: "user-agent", Usage: "tell servers that we are `NAME`"},
			&cli.BoolFlag{Name: "expire-now", Usage: "only remove the subscriptions that have ended"},
			&cli.BoolFlag{Name: "verbose", Usage: "tell of all that the log has"},
		}...),
		Action: func(c *cli.Context) error {
			if err := command.NoArgs(c); err != nil {
				return err
			}
			o, err := hubOptions(c)
			if err != nil {
				return err
			}
			// A round of notifications to thousands needs more than a listener.
			debug.SetMemoryLimit(max(debug.SetMemoryLimit(-1), 192<<20))
			return hub.Serve(c.Context, o, command.StreamsOf(c))
		},
	}
}

// serverFlags are those of servers that strangers reach.
func serverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "listen", Value: defaultListen, Usage: "listen on `ADDRESS`, a host and port"},
		&cli.StringFlag{Name: "cert", Usage: "speak TLS, with the certificate in `FILE`"},
		&cli.StringFlag{Name: "key", Usage: "and the key in `FILE`"},
		&cli.StringSliceFlag{Name: "trusted-proxy", Aliases: []string{"trust-proxy"}, Usage: "believe X-Forwarded-For of proxies in the network `PREFIX`; may be repeated"},
		&cli.IntFlag{Name: "max-connections", Value: serve.DefaultMaxConns, Usage: "keep `N` connections open at once"},
	}
}

// serverOptions reads the flags of serverFlags.
func serverOptions(c *cli.Context) (o serve.Options, proxies []netip.Prefix, err error) {
	o = serve.Options{
		Address: c.String("listen"), Given: c.IsSet("listen"), Cert: c.String("cert"), Key: c.String("key"),
		MaxConns: c.Int("max-connections"),
	}
	switch {
	case o.MaxConns < 1:
		return o, nil, command.Usagef("--max-connections is a number from 1 on")
	case (o.Cert == "") != (o.Key == ""):
		return o, nil, command.Usagef("--cert and --key go together")
	}
	proxies, err = prefixes(c, "trusted-proxy")
	return o, proxies, err
}

func hubOptions(c *cli.Context) (hub.ServeOptions, error) {
	var common listener.Common
	var o hub.ServeOptions
	var err error
	if o.Options.Options, o.TrustedProxies, err = serverOptions(c); err != nil {
		return o, err
	}
	if common, err = commonOptions(c); err != nil {
		return o, err
	}
	if o.Public, err = publicURL(c.String("public-url")); err != nil {
		return o, err
	}
	o.State, o.Users, o.ExpireNow, o.Verbose = c.String("state"), c.String("htpasswd"), c.Bool("expire-now"), c.Bool("verbose")
	if o.State == "" {
		o.State = hub.DefaultState()
	}
	o.MaxURLs, o.PerCaller, o.Most, o.AtOnce = c.Int("max-urls"), c.Int("max-per-caller"), c.Int("max-subscriptions"), c.Int("at-once")
	o.MaxSave, o.PingGap, o.Allowed = c.Int("max-save"), c.Duration("ping-gap"), c.StringSlice("feed")
	o.Feeds = common.Fetch
	o.Feeds.PerHost, o.Feeds.MaxBytes, o.Feeds.MaxDecoded = c.Int("per-host"), int64(c.Int("max-feed")), int64(c.Int("max-feed"))
	o.Callbacks = o.Feeds
	for _, n := range []string{"max-urls", "max-per-caller", "max-subscriptions", "max-feed", "max-save", "at-once"} {
		if c.Int(n) < 1 {
			return o, command.Usagef("--%s is a number from 1 on", n)
		}
	}
	switch {
	case o.Feeds.PerHost < 4 || o.Feeds.PerHost > 1000:
		return o, command.Usagef("--per-host is a number from 4 to 1000: many subscribers share a host")
	case o.PingGap < 0 || o.PingGap > time.Hour:
		return o, command.Usagef("--ping-gap is a time up to an hour")
	case o.Feeds.Deadline >= hub.MaxTimeout:
		return o, command.Usagef("--%s is less than %s: callers wait for what comes of it", fetch.FlagTimeout, hub.MaxTimeout)
	}
	if o.Feeds.AllowPrivate, err = prefixes(c, "allow-feeds"); err != nil {
		return o, err
	}
	o.Callbacks.AllowPrivate, err = prefixes(c, "allow-callbacks")
	return o, err
}
