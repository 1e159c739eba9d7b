// Lektor-cloudd hears of updates of feeds by rssCloud and WebSub, tells clouds of
// the user's own, and is a cloud and hub itself. See lektor-cloudd(1).
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

// userVar names the user of save where no flag does.
const userVar = "LEKTOR_CLOUD_USER"

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-cloudd",
		Usage: "hear of feeds' updates at once (rssCloud, WebSub), and tell of one's own",
		Description: `Example:
   lektor-cloudd listen --public-url https://me.example/lektor &
   lektor-fetch watch`,
		Flags:    []cli.Flag{command.DirFlag()},
		Commands: []*cli.Command{listenCommand(), statusCommand(), pingCommand(), saveCommand(), hubCommand()},
	}
}

func listenCommand() *cli.Command {
	return &cli.Command{
		Name:  "listen",
		Usage: "register with the hubs of all feeds, and leave a due marker when one is updated",
		Description: `Example:
   lektor-cloudd listen --public-url http://me.example:5337/`,
		Flags: append(append(serverFlags(), []cli.Flag{
			&cli.StringFlag{Name: "public-url", Usage: "hubs reach us at `URL`"},
			&cli.DurationFlag{Name: "cooldown", Value: listener.DefaultCooldown, Usage: "leave a marker for a feed every `TIME` at most"},
			&cli.IntFlag{Name: "per-host", Value: 2, Usage: "make `N` requests at once to one hub"},
			&cli.DurationFlag{Name: "gap", Value: fetch.DefaultGap, Usage: "wait for `TIME` between two requests to one hub"},
			&cli.BoolFlag{Name: "self-test", Usage: "only try whether we are reached at the public URL"},
			&cli.BoolFlag{Name: "verbose", Usage: "tell of every registration and notification"},
		}...), askFlags()...),
		Action: func(c *cli.Context) error {
			if err := command.NoArgs(c); err != nil {
				return err
			}
			common, err := commonOptions(c)
			if err != nil {
				return err
			}
			common.Fetch.PerHost, common.Fetch.Gap = c.Int("per-host"), c.Duration("gap")
			o := listener.ListenOptions{Common: common, Cooldown: c.Duration("cooldown"), Verbose: c.Bool("verbose"), SelfTest: c.Bool("self-test")}
			switch {
			case o.Fetch.PerHost < 1 || o.Fetch.PerHost > 1000:
				return command.Usagef("--per-host is a number from 1 to 1000")
			case o.Fetch.Gap < 0 || o.Cooldown < 0:
				return command.Usagef("--gap and --cooldown are not less than 0")
			}
			if o.Options, o.TrustedProxies, err = serverOptions(c); err != nil {
				return err
			}
			if o.Public, err = publicURL(c.String("public-url")); err != nil {
				return err
			}
			return listener.Listen(c.Context, o, command.StreamsOf(c))
		},
	}
}

// publicURL reads the flag of that name, nil for "".
func publicURL(v string) (*url.URL, error) {
	if v == "" {
		return nil, nil
	}
	u, err := fetch.ParseURL(v)
	if err != nil {
		return nil, command.Usagef("--public-url: %w", err)
	}
	if u.RawQuery != "" || u.User != nil {
		return nil, command.Usagef("--public-url %s: it can have a path, but no query and no password", v)
	}
	return u, nil
}

func statusCommand() *cli.Command {
	return &cli.Command{
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
			o := listener.StatusOptions{Common: listener.Common{Dir: command.Dir(c)}, Format: command.OutputFormat(c), Raw: c.Bool("raw")}
			return listener.Status(c.Context, o, command.StreamsOf(c))
		},
	}
}

func pingCommand() *cli.Command {
	return &cli.Command{
		Name:      "ping",
		Usage:     "tell the clouds and hubs of feeds that these were updated",
		ArgsUsage: "URL…|-",
		Description: `Example:
   lektor-cloudd ping https://me.example/feed.xml`,
		Flags: append([]cli.Flag{
			cloudFlag("tell the cloud at `URL`, whatever the feed says; xmlrpc://… or a path /RPC2 for XML-RPC"),
			&cli.StringFlag{Name: "hub", Usage: "tell the WebSub hub at `URL`, whatever the feed says"},
			dryRunFlag(), command.NulFlag(),
		}, askFlags()...),
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "the URL of a feed"); err != nil {
				return err
			}
			common, err := commonOptions(c)
			if err != nil {
				return err
			}
			o := listener.PingOptions{Common: common, Feeds: c.Args().Slice(), Nul: command.Nul(c), Hub: c.String("hub"), DryRun: c.Bool("dry-run")}
			if o.Cloud, err = oneCloud(c); err != nil {
				return err
			}
			return listener.Ping(c.Context, o, command.StreamsOf(c))
		},
	}
}

func saveCommand() *cli.Command {
	return &cli.Command{
		Name:      "save",
		Usage:     "store a feed document in a cloud, and print its URL there",
		ArgsUsage: "FILE|-",
		Description: `The password is in $` + listener.PasswordVar + ` or in a file.

Example:
   lektor-cloudd save --cloud http://rpc.example.org:5337/RPC2 --user bull feed.xml`,
		Flags: append([]cli.Flag{
			cloudFlag("the `URL` of the cloud's XML-RPC, else what the document names"),
			&cli.StringFlag{Name: "user", Required: true, EnvVars: []string{userVar}, Usage: "the `NAME` by which the cloud knows you"},
			&cli.StringFlag{Name: "password-file", Usage: "the password is the first line of `FILE`"},
			dryRunFlag(),
		}, askFlags()...),
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return command.Usagef("save takes one document, a file or - for standard input")
			}
			common, err := commonOptions(c)
			if err != nil {
				return err
			}
			o := listener.SaveOptions{
				Common: common, File: c.Args().First(), User: c.String("user"),
				PasswordFile: c.String("password-file"), Password: os.Getenv(listener.PasswordVar), DryRun: c.Bool("dry-run"),
			}
			if o.Cloud, err = oneCloud(c); err != nil {
				return err
			}
			return listener.Save(c.Context, o, command.StreamsOf(c))
		},
	}
}

const defaultListen = ":5337"

// cloudFlag names a cloud. It is a slice so that a second one is noticed.
func cloudFlag(usage string) cli.Flag { return &cli.StringSliceFlag{Name: "cloud", Usage: usage} }

// oneCloud gives the cloud that the flag names, "" for none.
func oneCloud(c *cli.Context) (string, error) {
	switch list := c.StringSlice("cloud"); len(list) {
	case 0:
		return "", nil
	case 1:
		return list[0], nil
	}
	return "", command.Usagef("--cloud can be given once: there is one cloud to a feed")
}

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "only tell what would be done"}
}

// askFlags are those of all commands that make requests.
func askFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "allow", Usage: "hubs may be in the private network `PREFIX`; may be repeated"},
		&cli.DurationFlag{Name: fetch.FlagTimeout, Value: fetch.DefaultDeadline, Usage: "give up an exchange after `TIME`"},
		&cli.IntFlag{Name: fetch.FlagMaxRedirects, Value: 5, Usage: "follow `N` redirects"},
		&cli.StringFlag{Name: "user-agent", Usage: "tell servers that we are `NAME`"},
	}
}

// commonOptions reads the flags of askFlags, and the lektor-dir.
func commonOptions(c *cli.Context) (listener.Common, error) {
	o := listener.Common{Dir: command.Dir(c)}
	f := &o.Fetch
	f.UserAgent, f.Deadline, f.MaxRedirects = c.String("user-agent"), c.Duration(fetch.FlagTimeout), c.Int(fetch.FlagMaxRedirects)
	if f.UserAgent == "" {
		f.UserAgent = "lektor-cloudd/" + command.Version() + " (+https://github.com/lektordir/lektor)"
	}
	if f.Deadline <= 0 || f.Deadline > time.Hour {
		return o, command.Usagef("--%s %s: it is a time such as 30s, up to an hour", fetch.FlagTimeout, f.Deadline)
	}
	if f.MaxRedirects < 1 {
		return o, command.Usagef("--%s is not less than 1", fetch.FlagMaxRedirects)
	}
	var err error
	f.AllowPrivate, err = prefixes(c, "allow")
	return o, err
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
