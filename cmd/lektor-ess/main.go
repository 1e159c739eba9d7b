// Lektor-ess makes, aggregates and polls ESS and NNO documents. Its manual is
// lektor-ess(1).
package main

import (
	"context"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	app "github.com/lektordir/lektor/internal/app/ess"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/ess"
	"github.com/lektordir/lektor/internal/fetch"
)

func main() { os.Exit(command.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-ess",
		Usage: "update notices for feeds that fit into a kilobyte",
		Description: `ESS tells when the entries of a feed were published, NNO those of many feeds;
the formats are described in ess(5) and nno(5).

   lektor-ess poll; lektor-fetch
   lektor-ess build https://example.com/feed > feed.ess
   lektor-ess top -n 50 *.ess`,
		Flags: []cli.Flag{command.DirFlag()},
		Commands: []*cli.Command{
			buildCommand(), nnoCommand(), topCommand(), pollCommand(), resolveCommand(),
			publishCommand(), discoverCommand(), checksumCommand(), decodeCommand(), checkCommand(),
		},
	}
}

// maxBytes is the largest document that is fetched unless a flag says
// otherwise: an ESS is a kilobyte, and an NNO has as much for every 25 entries.
const maxBytes = 1 << 20

// fetchFlags are those of all commands that make requests.
func fetchFlags() []cli.Flag {
	d := fetch.DefaultConfig()
	return []cli.Flag{
		&cli.IntFlag{Name: "per-host", Value: d.PerHost, Usage: "make `N` requests at once to one host"},
		&cli.DurationFlag{Name: "gap", Value: d.Gap, Usage: "wait for `TIME` between two requests to one host"},
		&cli.DurationFlag{Name: fetch.FlagTimeout, Value: d.Deadline, Usage: "give up an exchange after `TIME`"},
		&cli.Int64Flag{Name: fetch.FlagMaxBytes, Value: maxBytes, Usage: "refuse documents of more than `N` bytes as transferred"},
		&cli.Int64Flag{Name: fetch.FlagMaxDecoded, Value: maxBytes, Usage: "refuse documents of more than `N` bytes after decompression"},
		&cli.IntFlag{Name: fetch.FlagMaxRedirects, Value: d.MaxRedirects, Usage: "follow `N` redirects"},
		&cli.Int64Flag{Name: fetch.FlagMaxHeader, Value: d.MaxHeader, Usage: "refuse response headers of more than `N` bytes"},
		&cli.StringSliceFlag{Name: "allow-private", Usage: "let public servers redirect to the private network `PREFIX`; may be repeated"},
		&cli.StringFlag{Name: "user-agent", Usage: "tell servers that we are `NAME`"},
	}
}

func atFlag() cli.Flag {
	return &cli.StringFlag{Name: "at", Usage: "build as of `TIME`, such as 2026-01-31T12:00:00Z, or @ and seconds since 1970", DefaultText: "now"}
}

func entriesFlag() cli.Flag {
	return &cli.IntFlag{Name: "entries", Aliases: []string{"n"}, Value: app.DefaultEntries, Usage: "at most `N` entries of a feed, 0 for all"}
}

func newestFlag(usage string) cli.Flag {
	return &cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Value: ess.DefaultTop, Usage: usage}
}

func outputFileFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Usage: "write to `FILE`"}
}

func rawFlag() cli.Flag {
	return &cli.BoolFlag{Name: "raw", Usage: "do not clean text of what might harm a terminal"}
}

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "change nothing, only tell what would be done"}
}

// common reads the flags that several commands have.
func common(c *cli.Context) (app.Common, error) {
	o := app.Common{Dir: command.Dir(c)}
	if at := c.String("at"); at != "" {
		t, err := app.ParseTime(at, time.Local)
		if err != nil {
			return o, command.Usagef("--at: %v", err)
		}
		if t.Unix() < 60 {
			return o, command.Usagef("--at %s: a build time lies after 1970", at)
		}
		if t.Unix() >= ess.Milliseconds {
			return o, command.Usagef("--at %s: a build time has seconds, and lies before the year 5138", at)
		}
		o.At = t
	}
	o.Fetch = fetch.Config{UserAgent: userAgent(), MaxBytes: maxBytes, MaxDecoded: maxBytes}
	if !has(c, "gap") {
		return o, nil
	}
	o.Fetch = fetch.Config{
		UserAgent:    c.String("user-agent"),
		PerHost:      c.Int("per-host"),
		Gap:          c.Duration("gap"),
		Deadline:     c.Duration(fetch.FlagTimeout),
		MaxBytes:     c.Int64(fetch.FlagMaxBytes),
		MaxDecoded:   c.Int64(fetch.FlagMaxDecoded),
		MaxRedirects: c.Int(fetch.FlagMaxRedirects),
		MaxHeader:    c.Int64(fetch.FlagMaxHeader),
		Proxy:        http.ProxyFromEnvironment,
	}
	if o.Fetch.UserAgent == "" {
		o.Fetch.UserAgent = userAgent()
	}
	if n := o.Fetch.PerHost; n < 1 || n > 1000 {
		return o, command.Usagef("--per-host %d: it is a number from 1 to 1000", n)
	}
	for _, name := range []string{fetch.FlagMaxBytes, fetch.FlagMaxDecoded, fetch.FlagMaxHeader} {
		if n := c.Int64(name); n < 1 {
			return o, command.Usagef("--%s %d: it is a number of bytes", name, n)
		}
	}
	for name, d := range map[string]time.Duration{"gap": o.Fetch.Gap, fetch.FlagTimeout: o.Fetch.Deadline} {
		if d < 0 || d == 0 && name != "gap" {
			return o, command.Usagef("--%s %v: it is a time such as 30s", name, d)
		}
	}
	for _, p := range c.StringSlice("allow-private") {
		prefix, err := netip.ParsePrefix(p)
		if err != nil {
			return o, command.Usagef("--allow-private %s: it is a prefix such as 10.0.0.0/8", p)
		}
		o.Fetch.AllowPrivate = append(o.Fetch.AllowPrivate, prefix)
	}
	return o, nil
}

// has reports whether the command takes a flag.
func has(c *cli.Context, name string) bool {
	for _, f := range c.Command.Flags {
		for _, n := range f.Names() {
			if n == name {
				return true
			}
		}
	}
	return false
}

func userAgent() string {
	return strings.Replace(fetch.DefaultUserAgent, "lektor-fetch ", "lektor-ess/"+command.Version()+" ", 1)
}

func printing(c *cli.Context) command.PrinterOptions {
	return command.PrinterOptions{Format: command.OutputFormat(c), Raw: c.Bool("raw")}
}

// number reads a flag that is a number of at least least.
func number(c *cli.Context, name string, least int) (int, error) {
	n := c.Int(name)
	if n < least {
		return 0, command.Usagef("--%s %d: it is a number of at least %d", name, n, least)
	}
	return n, nil
}

func since(c *cli.Context) (time.Time, error) {
	v := c.String("since")
	if v == "" {
		return time.Time{}, nil
	}
	t, err := app.ParseSince(v, time.Now())
	if err != nil {
		return t, command.Usagef("--since: %v", err)
	}
	return t, nil
}

func buildCommand() *cli.Command {
	return &cli.Command{
		Name:      "build",
		Usage:     "write the ESS document of a feed, or of each feed",
		ArgsUsage: "[FEED…|-]",
		Description: `The document of one FEED is written as it is. Of several, or of all without a
FEED, each is one line.

   lektor-ess build https://example.com/feed > feed.ess
   curl -s https://example.com/feed | lektor-ess build --from-document --url https://example.com/feed`,
		Flags: []cli.Flag{
			entriesFlag(),
			&cli.StringFlag{Name: "since", Usage: "only entries since `TIME`, such as 2d, 12h or 2026-01-31"},
			atFlag(),
			&cli.BoolFlag{Name: "from-document", Usage: "of the feed document on standard input, without a lektor-dir"},
			&cli.StringFlag{Name: "url", Usage: "that document is the feed at `URL`", DefaultText: "as it says itself"},
			&cli.StringFlag{Name: "content-type", Usage: "that document has the MIME `TYPE`, and perhaps a charset"},
			outputFileFlag(), command.NulFlag(),
		},
		Action: func(c *cli.Context) error {
			o, err := common(c)
			if err != nil {
				return err
			}
			n, err := number(c, "entries", 0)
			if err != nil {
				return err
			}
			from, err := since(c)
			if err != nil {
				return err
			}
			if c.Bool("from-document") {
				if c.NArg() > 1 || c.NArg() == 1 && c.Args().First() != "-" {
					return command.Usagef("--from-document reads standard input; FEED makes no sense with it")
				}
				return app.FromDocument(c.Context, app.FromDocumentOptions{
					Common: o, URL: c.String("url"), ContentType: c.String("content-type"), N: n, Since: from, Output: c.String("output"),
				}, command.StreamsOf(c))
			}
			if c.IsSet("url") || c.IsSet("content-type") {
				return command.Usagef("--url and --content-type are about --from-document")
			}
			return app.Build(c.Context, app.BuildOptions{
				Common: o, Feeds: c.Args().Slice(), Nul: command.Nul(c), N: n, Since: from, Output: c.String("output"),
			}, command.StreamsOf(c))
		},
	}
}

func nnoCommand() *cli.Command {
	return &cli.Command{
		Name:      "nno",
		Usage:     "write the NNO of the newest entries in the lektor-dir",
		ArgsUsage: "[QUERY|-]",
		Description: `Of all entries, read or not; of those that a QUERY selects (see
lektor-query(7)); or with "-" of those whose paths are on standard input.

   lektor-ess nno -n 20 feed:lwn
   lektor-view ls -o path | lektor-ess nno -`,
		Flags: []cli.Flag{
			newestFlag("at most `N` entries, 0 for all"), atFlag(),
			command.OutputFlag("print `FORMAT` instead of an NNO: url, tsv, json, another field or a template"),
			outputFileFlag(), rawFlag(), command.NulFlag(),
		},
		Action: func(c *cli.Context) error {
			o, err := common(c)
			if err != nil {
				return err
			}
			n, err := number(c, "newest", 0)
			if err != nil {
				return err
			}
			no := app.NNOOptions{Common: o, N: n, Nul: command.Nul(c), Output: c.String("output"), Print: printing(c)}
			if c.NArg() == 1 && c.Args().First() == "-" {
				no.Paths = true
			} else {
				no.Query = c.Args().Slice()
			}
			return app.MakeNNO(c.Context, no, command.StreamsOf(c))
		},
	}
}

func topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "aggregate ESS and NNO documents to the NNO of the newest entries",
		ArgsUsage: "DOCUMENT…|-",
		Description: `DOCUMENT is a file or URL; "-" reads their names from standard input. Any number
of documents takes no more memory than N entries.

   find ess -name '*.ess' -print0 | lektor-ess top -n 1000 -0 -`,
		Flags: append([]cli.Flag{
			newestFlag("the `N` newest entries"), atFlag(),
			command.OutputFlag("print `FORMAT` instead of an NNO: url, tsv, json, another field or a template"),
			outputFileFlag(), rawFlag(), command.NulFlag(),
		}, fetchFlags()...),
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "a DOCUMENT"); err != nil {
				return err
			}
			o, err := common(c)
			if err != nil {
				return err
			}
			n, err := number(c, "newest", 1)
			if err != nil {
				return err
			}
			return app.Top(c.Context, app.TopOptions{
				Common: o, Documents: c.Args().Slice(), Nul: command.Nul(c), N: n, Output: c.String("output"), Print: printing(c),
			}, command.StreamsOf(c))
		},
	}
}

func pollCommand() *cli.Command {
	return &cli.Command{
		Name:      "poll",
		Usage:     "find out from their ESS which feeds have something new",
		ArgsUsage: "[FEED…|URL…|-]",
		Description: `It makes conditional requests for the ESS documents of subscriptions, and for
nothing else. A feed with a new entry gets a due marker, at which lektor-fetch
fetches it.

   lektor-ess poll; lektor-fetch
   lektor-ess poll -o url | lektor-fetch update -`,
		Flags: append([]cli.Flag{
			newestFlag("an entry must be newer than the oldest of the `N` newest in the lektor-dir"),
			command.OutputFlag("print the feeds that are due in `FORMAT`, and leave no marker: url, tsv, json, another field or a template"),
			&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Value: app.DefaultJobs, Usage: "fetch `N` documents at once"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no summary"},
			dryRunFlag(), rawFlag(), command.NulFlag(),
		}, fetchFlags()...),
		Action: func(c *cli.Context) error {
			o, err := common(c)
			if err != nil {
				return err
			}
			n, err := number(c, "newest", 1)
			if err != nil {
				return err
			}
			jobs, err := number(c, "jobs", 1)
			if err != nil {
				return err
			}
			return app.Poll(c.Context, app.PollOptions{
				Common: o, Feeds: c.Args().Slice(), Nul: command.Nul(c), N: n, Jobs: jobs,
				DryRun: c.Bool("dry-run"), Quiet: c.Bool("quiet"), Print: printing(c),
			}, command.StreamsOf(c))
		},
	}
}

func resolveCommand() *cli.Command {
	return &cli.Command{
		Name:      "resolve",
		Usage:     "print the entries of an NNO as paths in the lektor-dir",
		ArgsUsage: "NNO…|-",
		Description: `NNO is a file or URL, "-" the document on standard input. A feed of which
something is missing gets a due marker.

   lektor-ess resolve --subscribe friends.nno; lektor-fetch
   lektor-ess resolve friends.nno | lektor-view show -`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "subscribe", Usage: "subscribe to feeds that are not subscribed to"},
			command.OutputFlag("print `FORMAT`: path (the default), url, tsv, json, another field or a template"),
			dryRunFlag(), rawFlag(),
		}, fetchFlags()...),
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "an NNO"); err != nil {
				return err
			}
			o, err := common(c)
			if err != nil {
				return err
			}
			return app.Resolve(c.Context, app.ResolveOptions{
				Common: o, Documents: c.Args().Slice(), Subscribe: c.Bool("subscribe"), DryRun: c.Bool("dry-run"), Print: printing(c),
			}, command.StreamsOf(c))
		},
	}
}

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "write ESS, NNO and an index page for a web server",
		ArgsUsage: "DIR",
		Description: `Files that have not changed are left alone.

   lektor-ess publish --base-url https://example.com/ess/ /srv/www/ess`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base-url", Usage: "the directory is at `URL`: write absolute links"},
			entriesFlag(),
			&cli.IntFlag{Name: "newest", Value: ess.DefaultTop, Usage: "at most `N` entries in the NNO, 0 for all"},
			&cli.StringFlag{Name: "title", Usage: "call the page `TITLE`"},
			atFlag(), dryRunFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return command.Usagef("publish takes one directory")
			}
			o, err := common(c)
			if err != nil {
				return err
			}
			n, err := number(c, "entries", 0)
			if err != nil {
				return err
			}
			newest, err := number(c, "newest", 0)
			if err != nil {
				return err
			}
			return app.Publish(c.Context, app.PublishOptions{
				Common: o, To: c.Args().First(), BaseURL: c.String("base-url"), N: n, Newest: newest, Title: c.String("title"), DryRun: c.Bool("dry-run"),
			}, command.StreamsOf(c))
		},
	}
}

func discoverCommand() *cli.Command {
	return &cli.Command{
		Name:      "discover",
		Usage:     "print the ESS and NNO documents that a page or feed links to",
		ArgsUsage: "URL…|-",
		Description: `   lektor-ess discover https://example.com/
   lektor-ess discover -o url https://example.com/`,
		Flags: append([]cli.Flag{
			command.OutputFlag("print `FORMAT`: tsv (the default), url, json, another field or a template"),
			rawFlag(), command.NulFlag(),
		}, fetchFlags()...),
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "a URL"); err != nil {
				return err
			}
			o, err := common(c)
			if err != nil {
				return err
			}
			if !c.IsSet(fetch.FlagMaxBytes) && !c.IsSet(fetch.FlagMaxDecoded) {
				// A page or a feed is larger than the documents.
				o.Fetch.MaxBytes, o.Fetch.MaxDecoded = fetch.DefaultMaxBytes, fetch.DefaultMaxDecoded
			}
			return app.Discover(c.Context, app.DiscoverOptions{
				Common: o, URLs: c.Args().Slice(), Nul: command.Nul(c), Print: printing(c),
			}, command.StreamsOf(c))
		},
	}
}

func checksumCommand() *cli.Command {
	return &cli.Command{
		Name:      "checksum",
		Usage:     "print the checksum of titles",
		ArgsUsage: "TITLE…|-",
		Description: `   lektor-ess checksum "hello world"
   lektor-view ls -o title | lektor-ess checksum -o tsv -`,
		Flags: []cli.Flag{
			command.OutputFlag("print `FORMAT`: checksum (the default), loop, title, tsv, json or a template"),
			rawFlag(), command.NulFlag(), command.NumericArgs(),
		},
		Action: func(c *cli.Context) error {
			if err := command.NeedArgs(c, "a TITLE"); err != nil {
				return err
			}
			return app.Checksums(c.Args().Slice(), command.Nul(c), printing(c), command.StreamsOf(c))
		},
	}
}

func decodeCommand() *cli.Command {
	return &cli.Command{
		Name:      "decode",
		Usage:     "print the entries of ESS and NNO documents with absolute times",
		ArgsUsage: "[DOCUMENT…|-]",
		Description: `DOCUMENT is a file or URL, "-" the document on standard input.

   lektor-ess decode -o json feed.ess`,
		Flags: append([]cli.Flag{
			command.OutputFlag("print `FORMAT`: tsv (the default), json, url, another field or a template"),
			rawFlag(),
		}, fetchFlags()...),
		Action: func(c *cli.Context) error { return documents(c, app.Decode) },
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "verify ESS and NNO documents strictly",
		ArgsUsage: "[DOCUMENT…|-]",
		Description: `Everything is told that a strict writer would not have written, by line and
field. It ends with status 1 if there is anything.

   lektor-ess check https://example.com/feed.ess`,
		Flags: append([]cli.Flag{
			command.OutputFlag("print `FORMAT`: tsv, json, the name of a field or a template"),
			rawFlag(),
		}, fetchFlags()...),
		Action: func(c *cli.Context) error { return documents(c, app.Check) },
	}
}

// documents runs a command on the documents that are its arguments.
func documents(c *cli.Context, run func(ctx context.Context, o app.DocumentOptions, s *command.Streams) error) error {
	o, err := common(c)
	if err != nil {
		return err
	}
	return run(c.Context, app.DocumentOptions{Common: o, Documents: c.Args().Slice(), Print: printing(c)}, command.StreamsOf(c))
}
