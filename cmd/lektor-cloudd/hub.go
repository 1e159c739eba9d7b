package main

import (
	"cmp"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/hub"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fetchcmd"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/http/httpserver"
)

func hubCommand() *cli.Command {
	return &cli.Command{
		Name:  "hub",
		Usage: "run a cloud of rssCloud and a hub of WebSub",
		Description: `Example:
   lektor-cloudd hub --public-url https://hub.example`,
		Flags: append(serverFlags(), []cli.Flag{
			&cli.StringFlag{Name: "public-url", Usage: "others reach the hub at `URL`"},
			&cli.StringFlag{Name: "state", Usage: "keep the state in `DIR`", DefaultText: "$XDG_STATE_HOME/lektor-hub"},
			&cli.StringFlag{Name: "htpasswd",
				Usage: "store feeds (saveRss) of the users in `FILE`, which has bcrypt hashes"},
			&cli.StringSliceFlag{Name: "feed",
				Usage: "read feeds whose URL begins with `URL` at each ping, even without subscribers; may be repeated"},
			&cli.StringSliceFlag{Name: "allow-feeds",
				Usage: "allow feeds in the private network `PREFIX`; may be repeated"},
			&cli.StringSliceFlag{Name: "allow-callbacks",
				Usage: "allow subscribers in the private network `PREFIX`; may be repeated"},
			&cli.IntFlag{Name: "max-urls", Value: hub.DefaultMaxURLs, Usage: "accept at most `N` feeds in a request"},
			&cli.IntFlag{Name: "max-per-caller", Value: hub.DefaultPerCaller,
				Usage: "keep at most `N` subscriptions of one address"},
			&cli.IntFlag{Name: "max-subscriptions", Value: hub.DefaultMost,
				Usage: "keep at most `N` subscriptions in all"},
			&cli.IntFlag{Name: "max-feed", Value: hub.DefaultMaxFeed, Usage: "read at most `BYTES` of a feed"},
			&cli.IntFlag{Name: "max-form", Value: hub.DefaultMaxForm, Usage: "accept forms of at most `BYTES`"},
			&cli.IntFlag{Name: "max-save", Value: hub.DefaultMaxSave, Usage: "store feeds of at most `BYTES`"},
			&cli.IntFlag{Name: "at-once", Value: hub.DefaultNotifyAtOnce,
				Usage: "notify at most `N` subscribers at once"},
			&cli.IntFlag{Name: "per-host", Value: hub.DefaultPerHost,
				Usage: "notify at most `N` subscribers at once at one host"},
			&cli.DurationFlag{Name: "ping-gap", Usage: "read a feed for pings at most once within `TIME`",
				DefaultText: "at every ping"},
			&cli.DurationFlag{Name: httpmsg.FlagTimeout, Value: hub.DefaultTimeout,
				Usage: "stop an exchange after `TIME`, less than 8s"},
			&cli.IntFlag{Name: httpmsg.FlagMaxRedirects, Value: 5, Usage: "follow at most `N` redirects"},
			&cli.StringFlag{Name: "user-agent", Usage: "send `NAME` as the User-Agent"},
			&cli.BoolFlag{Name: "no-page", Usage: "show no page at /"},
			&cli.BoolFlag{Name: "expire-now", Usage: "only remove ended subscriptions"},
			&cli.BoolFlag{Name: "verbose", Usage: "print all lines of the log"},
		}...),
		Action: cmdline.Run(hub.Serve, "", hubOptions),
	}
}

// serverFlags are the flags of servers that are exposed to strangers.
func serverFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "listen", Value: defaultListen, Usage: "listen on `ADDRESS`, a host and port"},
		&cli.StringFlag{Name: "cert", Usage: "use TLS with the certificate in `FILE`"},
		&cli.StringFlag{Name: "key", Usage: "use TLS with the key in `FILE`"},
		&cli.StringSliceFlag{Name: "trusted-proxy", Aliases: []string{"trust-proxy"},
			Usage: "trust X-Forwarded-For from proxies in the network `PREFIX`; may be repeated"},
		&cli.IntFlag{Name: "max-connections", Value: httpserver.DefaultMaxConns,
			Usage: "keep at most `N` connections open"},
	}
}

// serverOptions reads the flags of serverFlags, except --trusted-proxy.
func serverOptions(f *cmdline.Flags) httpserver.Options {
	o := httpserver.Options{
		Address: f.String("listen"), Given: f.IsSet("listen"), Cert: f.String("cert"), Key: f.String("key"),
		MaxConns: f.Number("max-connections", 1, 0),
	}
	if (o.Cert == "") != (o.Key == "") {
		f.Fail(cmdline.Usagef("--cert and --key need each other"))
	}
	return o
}

func hubOptions(f *cmdline.Flags) hub.ServeOptions {
	config := fetchcmd.Asking(f)
	config.PerHost = f.Number("per-host", 4, 1000) // many subscribers share a host
	config.MaxBytes = int64(f.Number("max-feed", 1, 0))
	config.MaxDecoded = config.MaxBytes
	if config.Deadline >= hub.MaxTimeout {
		f.Fail(cmdline.Usagef("--%s must be less than %s: callers wait for the result", httpmsg.FlagTimeout,
			hub.MaxTimeout))
	}
	o := hub.ServeOptions{ExpireNow: f.Bool("expire-now"), Options: hub.Options{Now: time.Now,
		Options: serverOptions(f), State: cmp.Or(f.String("state"), hub.DefaultState()),
		Public: publicURL(f), TrustedProxies: fetchcmd.Prefixes(f, "trusted-proxy"), Feeds: config, Callbacks: config,
		Allowed: f.StringSlice("feed"), Users: f.String("htpasswd"),
		MaxURLs: f.Number("max-urls", 1, 0), PerCaller: f.Number("max-per-caller", 1, 0),
		Most:   f.Number("max-subscriptions", 1, 0),
		AtOnce: f.Number("at-once", 1, 0), PingGap: f.Time("ping-gap"), MaxForm: f.Number("max-form", 1, 0),
		MaxSave: f.Number("max-save", 1, 0), NoPage: f.Bool("no-page"), Verbose: f.Bool("verbose"),
	}}
	o.Feeds.AllowPrivate, o.Callbacks.AllowPrivate = fetchcmd.Prefixes(f, "allow-feeds"),
		fetchcmd.Prefixes(f, "allow-callbacks")
	return o
}
