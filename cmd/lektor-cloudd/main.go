// Lektor-cloudd receives notifications of feeds by rssCloud and WebSub, notifies clouds of
// updates of the user's own feeds, and is a cloud and hub itself. See lektor-cloudd(1).
package main

import (
	"net/url"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/listener"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fetchcmd"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/text/feedurl"
)

func main() {
	// This is enough for a round of notifications to thousands. Requests of strangers must not
	// increase it.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(192 << 20)
	}
	os.Exit(cmdline.Main(newApp(), os.Args))
}

// userVar is the environment variable for the user of save.
const userVar = "LEKTOR_CLOUD_USER"

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-cloudd",
		Usage: "receive notifications of feeds (rssCloud, WebSub), send your own, and run a hub",
		Description: `Example:
   lektor-cloudd listen --public-url https://me.example/lektor &
   lektor-fetch watch`,
		Flags:    []cli.Flag{cmdline.DirFlag()},
		Commands: []*cli.Command{listenCommand(), statusCommand(), pingCommand(), saveCommand(), hubCommand()},
	}
}

func listenCommand() *cli.Command {
	return &cli.Command{
		Name:  "listen",
		Usage: "register with the services of all feeds, and leave a due marker for each that is updated",
		Description: `Example:
   lektor-cloudd listen --public-url http://me.example:5337/`,
		Flags: append(append(serverFlags(), []cli.Flag{
			&cli.StringFlag{Name: "public-url", Usage: "services reach this machine at `URL`"},
			&cli.DurationFlag{Name: "cooldown", Value: listener.DefaultCooldown,
				Usage: "leave at most one marker for a feed within `TIME`"},
			&cli.IntFlag{Name: "per-host", Value: 2, Usage: "make at most `N` requests at once to one service"},
			&cli.DurationFlag{Name: "gap", Value: fetch.DefaultGap,
				Usage: "wait `TIME` between two requests to one service"},
			&cli.BoolFlag{Name: "self-test", Usage: "only test whether a request to the public URL arrives here"},
			&cli.BoolFlag{Name: "verbose", Usage: "report each registration and notification"},
		}...), askFlags()...),
		Action: cmdline.Run(listener.Listen, "", func(f *cmdline.Flags) listener.ListenOptions {
			o := listener.ListenOptions{
				Common: common(f), Options: serverOptions(f),
				Public: publicURL(f), TrustedProxies: fetchcmd.Prefixes(f, "trusted-proxy"),
				Cooldown: f.Time("cooldown"), Verbose: f.Bool("verbose"), SelfTest: f.Bool("self-test"),
			}
			o.Fetch.PerHost, o.Fetch.Gap = f.Number("per-host", 1, 1000), f.Time("gap")
			return o
		}),
	}
}

// publicURL reads the flag of that name, nil for none.
func publicURL(f *cmdline.Flags) *url.URL {
	v := f.String("public-url")
	if v == "" {
		return nil
	}
	u, err := feedurl.Parse(v)
	switch {
	case err != nil:
		f.Fail(cmdline.Usagef("--public-url: %w", err))
	case u.RawQuery != "" || u.User != nil:
		f.Fail(cmdline.Usagef("--public-url %s: it must not have a query or a password", v))
	}
	return u
}

func statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "list the feeds that name a service, with the state of their registration",
		Description: `Example:
   lektor-cloudd status -o '{{.url}} {{.error}}'`,
		Flags: []cli.Flag{
			cmdline.OutputFlag("print `FORMAT`: tsv, json, the name of a column, or a template"),
			cmdline.RawFlag(),
		},
		Action: cmdline.Run(listener.Status, "", func(f *cmdline.Flags) listener.StatusOptions {
			return listener.StatusOptions{Common: listener.Common{Dir: cmdline.Dir(f.Context)},
				Format: cmdline.OutputFormat(f.Context), Raw: f.Bool("raw")}
		}),
	}
}

func pingCommand() *cli.Command {
	return &cli.Command{
		Name:      "ping",
		Usage:     "notify the clouds and hubs that a feed names of an update",
		ArgsUsage: "URL…|-",
		Description: `Example:
   lektor-cloudd ping https://me.example/feed.xml`,
		Flags: append([]cli.Flag{
			cloudFlag("notify only the cloud at `URL`; xmlrpc://… or a path /RPC2 means XML-RPC"),
			&cli.StringFlag{Name: "hub", Usage: "notify only the WebSub hub at `URL`"},
			cmdline.DryRunFlag(), cmdline.NulFlag(),
		}, askFlags()...),
		Action: cmdline.Run(listener.Ping, "the URL of a feed", func(f *cmdline.Flags) listener.PingOptions {
			return listener.PingOptions{
				Common: common(f), Feeds: f.Words(), Nul: cmdline.Nul(f.Context),
				Cloud: oneCloud(f), Hub: f.String("hub"), DryRun: f.Bool("dry-run"),
			}
		}),
	}
}

func saveCommand() *cli.Command {
	return &cli.Command{
		Name:      "save",
		Usage:     "store a feed document in a cloud, and print its URL there",
		ArgsUsage: "FILE|-",
		Description: `The password is in $` + listener.PasswordVar + ` or in the file of --password-file.

Example:
   lektor-cloudd save --cloud https://rpc.example.org/RPC2 --user bull feed.xml`,
		Flags: append([]cli.Flag{
			cloudFlag("the `URL` of the cloud for XML-RPC (default: the one in the document)"),
			&cli.StringFlag{Name: "user", Required: true, EnvVars: []string{userVar},
				Usage: "your `NAME` in the cloud"},
			&cli.StringFlag{Name: "password-file", Usage: "read the password from the first line of `FILE`"},
			cmdline.DryRunFlag(),
		}, askFlags()...),
		Action: cmdline.Run(listener.Save, "", func(f *cmdline.Flags) listener.SaveOptions {
			if f.NArg() != 1 {
				f.Fail(cmdline.Usagef("save takes one document, a file or - for standard input"))
			}
			return listener.SaveOptions{
				Common: common(f), File: f.Args().First(), Cloud: oneCloud(f), User: f.String("user"),
				PasswordFile: f.String("password-file"), Password: os.Getenv(listener.PasswordVar),
				DryRun: f.Bool("dry-run"),
			}
		}),
	}
}

const defaultListen = ":5337"

// cloudFlag names a cloud. It is a slice, so that a second one is an error.
func cloudFlag(usage string) cli.Flag { return &cli.StringSliceFlag{Name: "cloud", Usage: usage} }

// oneCloud returns the cloud that the flag names, "" for none.
func oneCloud(f *cmdline.Flags) string {
	switch list := f.StringSlice("cloud"); len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	f.Fail(cmdline.Usagef("--cloud can be set only once, because a feed has one cloud"))
	return ""
}

// askFlags are the flags of all commands that make requests.
func askFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "allow", Usage: "allow services in the private network `PREFIX`; may be repeated"},
		&cli.DurationFlag{Name: httpmsg.FlagTimeout, Value: fetch.DefaultDeadline,
			Usage: "stop an exchange after `TIME`"},
		&cli.IntFlag{Name: httpmsg.FlagMaxRedirects, Value: 5, Usage: "follow at most `N` redirects"},
		&cli.StringFlag{Name: "user-agent", Usage: "send `NAME` as the User-Agent"},
	}
}

// common reads the flags of askFlags, and the lektor-dir.
func common(f *cmdline.Flags) listener.Common {
	return listener.Common{Dir: cmdline.Dir(f.Context), Fetch: fetchcmd.Asking(f)}
}
