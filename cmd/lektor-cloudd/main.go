// Lektor-cloudd hears of updates of feeds by rssCloud and WebSub, and tells
// clouds of the user's own. See lektor-cloudd(1).
package main

import (
	"net/netip"
	"net/url"
	"os"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/listener"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/fetch"
)

func main() {
	// It has little to remember, and strangers must not make it more.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(96 << 20)
	}
	os.Exit(command.Main(newApp(), os.Args))
}

// passwordVar names the password of save where no file does.
const passwordVar = "LEKTOR_CLOUD_PASSWORD"

// userVar names the user of save where no flag does.
const userVar = "LEKTOR_CLOUD_USER"

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-cloudd",
		Usage: "hear of feeds' updates at once (rssCloud, WebSub), and tell of one's own",
		Description: `Example:
   lektor-cloudd listen --public-url https://me.example/lektor &
   lektor-fetch watch`,
		Flags: []cli.Flag{command.DirFlag()},
		Commands: []*cli.Command{
			{
				Name:  "listen",
				Usage: "register with the hubs of all feeds, and leave a due marker when one is updated",
				Description: `Example:
   lektor-cloudd listen --public-url http://me.example:5337/`,
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "listen", Value: defaultListen, Usage: "listen on `ADDRESS`, a host and port"},
					&cli.StringFlag{Name: "public-url", Usage: "hubs reach us at `URL`"},
					&cli.StringFlag{Name: "cert", Usage: "speak TLS, with the certificate in `FILE`"},
					&cli.StringFlag{Name: "key", Usage: "and the key in `FILE`"},
					&cli.StringSliceFlag{Name: "trusted-proxy", Usage: "believe X-Forwarded-For of proxies in the network `PREFIX`; may be repeated"},
					&cli.DurationFlag{Name: "cooldown", Value: listener.DefaultCooldown, Usage: "leave a marker for a feed every `TIME` at most"},
					&cli.IntFlag{Name: "max-connections", Value: listener.DefaultMaxConns, Usage: "keep `N` connections open at once"},
					&cli.IntFlag{Name: "per-host", Value: 2, Usage: "make `N` requests at once to one hub"},
					&cli.DurationFlag{Name: "gap", Value: fetch.DefaultGap, Usage: "wait for `TIME` between two requests to one hub"},
					&cli.BoolFlag{Name: "verbose", Usage: "tell of every registration and notification"},
				}, askFlags()...),
				Action: func(c *cli.Context) error {
					if err := command.NoArgs(c); err != nil {
						return err
					}
					o := listenOptions{
						dir: command.Dir(c), listen: c.String("listen"), listenSet: c.IsSet("listen"), cert: c.String("cert"), key: c.String("key"),
						maxConns: c.Int("max-connections"), cooldown: c.Duration("cooldown"), verbose: c.Bool("verbose"),
					}
					var err error
					if o.fetch, err = askOptions(c); err != nil {
						return err
					}
					o.fetch.PerHost, o.fetch.Gap = c.Int("per-host"), c.Duration("gap")
					switch {
					case o.fetch.PerHost < 1 || o.fetch.PerHost > 1000 || o.maxConns < 1:
						return command.Usagef("--per-host and --max-connections are numbers from 1 on")
					case o.fetch.Gap < 0 || o.cooldown < 0:
						return command.Usagef("--gap and --cooldown are not less than 0")
					case (o.cert == "") != (o.key == ""):
						return command.Usagef("--cert and --key go together")
					}
					if o.proxies, err = prefixes(c, "trusted-proxy"); err != nil {
						return err
					}
					if v := c.String("public-url"); v != "" {
						u, err := fetch.ParseURL(v)
						if err != nil {
							return command.Usagef("--public-url: %w", err)
						}
						if u.RawQuery != "" || u.User != nil {
							return command.Usagef("--public-url %s: it can have a path, but no query and no password", v)
						}
						o.public = u
					}
					return listen(c.Context, o, command.StreamsOf(c))
				},
			},
			{
				Name:  "status",
				Usage: "list feeds with their hub, and what became of the registration",
				Description: `Example:
   lektor-cloudd status -o '{{.url}} {{.error}}'`,
				Flags: []cli.Flag{
					command.OutputFlag("print `FORMAT`: tsv, json, the name of a column, or a template"),
					&cli.BoolFlag{Name: "raw", Usage: "do not clean the text of feeds and hubs for the terminal"},
				},
				Action: func(c *cli.Context) error {
					if err := command.NoArgs(c); err != nil {
						return err
					}
					return status(c.Context, statusOptions{dir: command.Dir(c), format: command.OutputFormat(c), raw: c.Bool("raw"), now: time.Now()}, command.StreamsOf(c))
				},
			},
			{
				Name:      "ping",
				Usage:     "tell the clouds and hubs of feeds that these were updated",
				ArgsUsage: "URL…|-",
				Description: `Example:
   lektor-cloudd ping https://me.example/feed.xml`,
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "cloud", Usage: "tell the cloud at `URL`, whatever the feed says; xmlrpc://… or a path /RPC2 for XML-RPC"},
					command.NulFlag(),
				}, askFlags()...),
				Action: func(c *cli.Context) error {
					if err := command.NeedArgs(c, "the URL of a feed"); err != nil {
						return err
					}
					f, err := askOptions(c)
					if err != nil {
						return err
					}
					return ping(c.Context, pingOptions{dir: command.Dir(c), args: c.Args().Slice(), nul: command.Nul(c), cloud: c.String("cloud"), fetch: f}, command.StreamsOf(c))
				},
			},
			{
				Name:      "save",
				Usage:     "store a feed document in a cloud, and print its URL there",
				ArgsUsage: "FILE|-",
				Description: `The password is in $` + passwordVar + ` or in a file.

Example:
   lektor-cloudd save --cloud http://rpc.example.org:5337/RPC2 --user bull feed.xml`,
				Flags: append([]cli.Flag{
					&cli.StringFlag{Name: "cloud", Usage: "the `URL` of the cloud's XML-RPC, else what the document names"},
					&cli.StringFlag{Name: "user", Required: true, EnvVars: []string{userVar}, Usage: "the `NAME` by which the cloud knows you"},
					&cli.StringFlag{Name: "password-file", Usage: "the password is the first line of `FILE`"},
				}, askFlags()...),
				Action: func(c *cli.Context) error {
					if c.NArg() != 1 {
						return command.Usagef("save takes one document, a file or - for standard input")
					}
					f, err := askOptions(c)
					if err != nil {
						return err
					}
					return save(c.Context, saveOptions{
						file: c.Args().First(), cloud: c.String("cloud"), user: c.String("user"),
						passwordFile: c.String("password-file"), password: os.Getenv(passwordVar), fetch: f,
					}, command.StreamsOf(c))
				},
			},
		},
	}
}

const defaultListen = ":5337"

// askFlags are those of all commands that make requests.
func askFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "allow", Usage: "hubs may be in the private network `PREFIX`; may be repeated"},
		&cli.DurationFlag{Name: fetch.FlagTimeout, Value: fetch.DefaultDeadline, Usage: "give up an exchange after `TIME`"},
		&cli.IntFlag{Name: fetch.FlagMaxRedirects, Value: 5, Usage: "follow `N` redirects"},
		&cli.StringFlag{Name: "user-agent", Usage: "tell servers that we are `NAME`"},
	}
}

// askOptions reads the flags of askFlags.
func askOptions(c *cli.Context) (fetch.Config, error) {
	f := fetch.Config{UserAgent: c.String("user-agent"), Deadline: c.Duration(fetch.FlagTimeout), MaxRedirects: c.Int(fetch.FlagMaxRedirects)}
	if f.UserAgent == "" {
		f.UserAgent = "lektor-cloudd/" + command.Version() + " (+https://github.com/lektordir/lektor)"
	}
	if f.Deadline <= 0 || f.Deadline > time.Hour {
		return f, command.Usagef("--%s %s: it is a time such as 30s, up to an hour", fetch.FlagTimeout, f.Deadline)
	}
	if f.MaxRedirects < 1 {
		return f, command.Usagef("--%s is not less than 1", fetch.FlagMaxRedirects)
	}
	var err error
	f.AllowPrivate, err = prefixes(c, "allow")
	return f, err
}

func prefixes(c *cli.Context, flag string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, v := range c.StringSlice(flag) {
		p, err := fetch.ParsePrefix(v)
		if err != nil {
			return nil, command.Usagef("--%s %w", flag, err)
		}
		out = append(out, p)
	}
	return out, nil
}

type listenOptions struct {
	dir       string
	listen    string
	listenSet bool
	public    *url.URL
	cert, key string
	proxies   []netip.Prefix
	cooldown  time.Duration
	maxConns  int
	verbose   bool
	fetch     fetch.Config
}
