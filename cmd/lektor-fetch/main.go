// Lektor-fetch subscribes to feeds, fetches them and delivers their entries
// into a lektor-dir. See lektor-fetch(1).
package main

import (
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/command"
	"github.com/lektordir/lektor/internal/feeddir"
	"github.com/lektordir/lektor/internal/fetch"
	"github.com/lektordir/lektor/internal/units"
)

func main() {
	// A fetcher shares the machine with what its user really does. Documents
	// are bounded one by one; this makes the collector work harder before
	// many of them add up.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(160 << 20)
	}
	// Until then it need not run after every few megabytes: what is kept is
	// little, and what is thrown away is much.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(command.Main(newApp(), os.Args))
}

func newApp() *cli.App {
	update := updateCommand()
	return &cli.App{
		Name:  "lektor-fetch",
		Usage: "fetch feeds into a lektor-dir",
		Description: `Without a command it fetches the feeds that are due.

Example:
   lektor-fetch add https://daringfireball.net/
   lektor-fetch && lektor-view ls`,
		Flags:  append(append([]cli.Flag{command.DirFlag()}, updateFlags()...), fetchFlags()...),
		Action: update.Action,
		Commands: []*cli.Command{
			addCommand(), rmCommand(), lsCommand(), setCommand(), update, watchCommand(),
			deliverCommand(), putCommand(), importCommand(), exportCommand(), checkCommand(),
		},
	}
}

// action is what a command does once its options are read.
type action func(c *cli.Context, o fetcher.Common, s *command.Streams) error

// local is the action of a command that makes no requests; args checks its
// arguments.
func local(args func(*cli.Context) error, do action) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := args(c); err != nil {
			return err
		}
		return do(c, fetcher.Common{Dir: command.Dir(c)}, command.StreamsOf(c))
	}
}

// network is the action of a command that takes the flags of fetchFlags.
func network(args func(*cli.Context) error, do action) cli.ActionFunc {
	return local(args, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
		var err error
		if o.Options, err = fetchOptions(c); err != nil {
			return err
		}
		return do(c, o, s)
	})
}

func anyArgs(*cli.Context) error { return nil }

// need checks that there is an argument.
func need(what string) func(*cli.Context) error {
	return func(c *cli.Context) error { return command.NeedArgs(c, what) }
}

func addCommand() *cli.Command {
	return &cli.Command{
		Name:      "add",
		Usage:     "subscribe to feeds, by their URL or that of a page",
		ArgsUsage: "URL…|-",
		Description: `Example:
   lektor-fetch add --category Tech https://daringfireball.net/`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "first", Usage: "of several feeds that a page links to, take the first"},
			&cli.BoolFlag{Name: "no-fetch", Usage: "subscribe, and deliver nothing yet"},
			&cli.BoolFlag{Name: "as-is", Usage: "the URL is that of a feed: do not look for one"},
			&cli.StringFlag{Name: "alias", Aliases: []string{"title"}, Usage: "call the feed `NAME`"},
			&cli.StringFlag{Name: "interval", Usage: "fetch it every `TIME` at most, such as 30m, 2h or 1d"},
			&cli.BoolFlag{Name: "force", Usage: "let the interval be less than a minute"},
			&cli.StringSliceFlag{Name: "category", Usage: "put it into the category `NAME`, a/b for b in a; may be repeated"},
			dryRunFlag(), command.NulFlag(),
		}, fetchFlags()...),
		Action: network(need("a URL"), func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			a := fetcher.AddOptions{
				Common: o, Sources: c.Args().Slice(), Nul: command.Nul(c),
				First: c.Bool("first"), NoFetch: c.Bool("no-fetch"), AsIs: c.Bool("as-is"), DryRun: c.Bool("dry-run"),
				Alias: c.String("alias"), Interval: c.String("interval"), Categories: c.StringSlice("category"),
			}
			if a.Interval != "" {
				if err := feeddir.Check("interval", a.Interval, c.Bool("force")); err != nil {
					return command.Usagef("--interval: %w", err)
				}
			}
			if a.Alias != "" && len(a.Sources) > 1 {
				return command.Usagef("--alias names one feed, and several URLs were given")
			}
			return fetcher.Add(c.Context, a, s)
		}),
	}
}

func rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "unsubscribe; entries stay unless they are purged",
		ArgsUsage: "FEED…|-",
		Description: `Example:
   lektor-fetch ls -o tsv | awk -F'\t' '$6 ~ /410 Gone/ { print $1 }' | lektor-fetch rm -`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "purge", Usage: "remove the feed with all its entries, read and unread"},
			dryRunFlag(), command.NulFlag(),
		},
		Action: local(need("a feed"), func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			return fetcher.Remove(c.Context, fetcher.RemoveOptions{
				Common: o, Feeds: c.Args().Slice(), Nul: command.Nul(c),
				Purge: c.Bool("purge"), DryRun: c.Bool("dry-run"),
			}, s)
		}),
	}
}

func lsCommand() *cli.Command {
	return &cli.Command{
		Name:      "ls",
		Usage:     "list subscriptions",
		ArgsUsage: "[FEED…|-]",
		Description: `Example:
   lektor-fetch ls -o '{{.title}}: {{.error}}' --broken`,
		Flags: []cli.Flag{
			command.OutputFlag("print `FORMAT`: path, url, tsv, json, the name of a column, or a template"),
			&cli.BoolFlag{Name: "broken", Usage: "only feeds whose last fetch failed"},
			&cli.StringFlag{Name: "category", Usage: "only feeds in the category `NAME`, or in one below it"},
			&cli.BoolFlag{Name: "raw", Usage: "do not clean the text of feeds for the terminal"},
			command.NulFlag(),
		},
		Action: local(anyArgs, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			return fetcher.List(c.Context, fetcher.ListOptions{
				Common: o, Feeds: c.Args().Slice(), Broken: c.Bool("broken"), Category: c.String("category"),
				Print: command.PrinterOptions{Format: command.OutputFormat(c), Nul: command.Nul(c), Raw: c.Bool("raw")},
			}, s)
		}),
	}
}

func setCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "show or change the settings of a feed",
		ArgsUsage: "FEED [SETTING [VALUE…]]",
		Description: `Settings are url, alias, interval, on-update, categories, headers and filter.

Example:
   lektor-fetch set https://daringfireball.net/feeds/main interval 4h`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "unset", Usage: "remove the setting, so that the default holds"},
			&cli.BoolFlag{Name: "force", Usage: "let an interval be less than a minute"},
			dryRunFlag(),
		},
		Action: local(need("a feed"), setAction),
	}
}

// setAction shows a setting, or all; or changes one.
func setAction(c *cli.Context, o fetcher.Common, s *command.Streams) error {
	feed, args := c.Args().First(), c.Args().Tail()
	unset := c.Bool("unset")
	switch {
	case unset && len(args) != 1:
		return command.Usagef("--unset takes a feed and one setting")
	case len(args) == 0:
		return fetcher.Settings(c.Context, fetcher.SettingsOptions{Common: o, Feed: feed}, s)
	case len(args) == 1 && !unset:
		return fetcher.Settings(c.Context, fetcher.SettingsOptions{Common: o, Feed: feed, Key: args[0]}, s)
	case len(args) > 2 && args[0] != "headers" && args[0] != "categories":
		return command.Usagef("%s has one value; quote it if it has spaces", args[0])
	}
	return fetcher.Set(c.Context, fetcher.SetOptions{
		Common: o, Feed: feed, Key: args[0], Values: args[1:], Unset: unset, DryRun: c.Bool("dry-run"), Force: c.Bool("force"),
	}, s)
}

func updateCommand() *cli.Command {
	return &cli.Command{
		Name:      "update",
		Usage:     "fetch the feeds that are due, or those named",
		ArgsUsage: "[FEED…|-]",
		Description: `Example:
   lektor-fetch update -a -o path | lektor-view show -`,
		Flags: append(append(updateFlags(), command.NulFlag()), fetchFlags()...),
		Action: network(anyArgs, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			u := fetcher.UpdateOptions{
				Common: o, Feeds: c.Args().Slice(), Nul: c.Bool("null"),
				All: given(c, "all").Bool("all"), Format: given(c, "format").String("format"),
				Quiet: given(c, "quiet").Bool("quiet"), DryRun: given(c, "dry-run").Bool("dry-run"),
			}
			if u.All && len(u.Feeds) > 0 {
				return command.Usagef("either feeds are named, or all of them are fetched with -a")
			}
			return fetcher.Update(c.Context, u, s)
		}),
	}
}

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:  "watch",
		Usage: "stay, and fetch each feed when it is due",
		Description: `Example:
   lektor-fetch watch &`,
		Flags: append([]cli.Flag{
			command.OutputFlag("print the entries that are delivered in `FORMAT`: path"),
		}, fetchFlags()...),
		Action: network(command.NoArgs, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			return fetcher.Watch(c.Context, fetcher.WatchOptions{Common: o, Format: command.OutputFormat(c)}, s)
		}),
	}
}

func deliverCommand() *cli.Command {
	return &cli.Command{
		Name:  "deliver",
		Usage: "deliver a feed document from standard input",
		Description: `Example:
   curl -s https://example.com/feed | lektor-fetch deliver --id https://example.com/feed`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "id", Required: true, Usage: "the id of the feed, a `URI`"},
			&cli.StringFlag{Name: "name", Usage: "call the feed `NAME` rather than what the document says"},
			&cli.StringFlag{Name: "url", Usage: "the document is from `BASE`: relative references start there"},
			&cli.StringFlag{Name: "content-type", Usage: "the document has the MIME `TYPE`, and perhaps a charset"},
			&cli.IntFlag{Name: fetcher.FlagMaxEntries, Usage: "take at most `N` entries"},
			&cli.Int64Flag{Name: "max-decoded", Value: fetch.DefaultMaxDecoded, Usage: "read at most `N` bytes"},
			command.OutputFlag("print the entries that are delivered in `FORMAT`: path"),
			dryRunFlag(),
		},
		Action: local(command.NoArgs, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			o.Fetch.MaxDecoded, o.MaxEntries = c.Int64(fetch.FlagMaxDecoded), c.Int(fetcher.FlagMaxEntries)
			if err := positive(c, fetch.FlagMaxDecoded); err != nil {
				return err
			}
			if o.MaxEntries < 0 {
				return command.Usagef("--max-entries %d: it is not less than 0", o.MaxEntries)
			}
			return fetcher.Deliver(c.Context, fetcher.DeliverOptions{Common: o, Format: command.OutputFormat(c), Document: fetcher.Document{
				ID: c.String("id"), Name: c.String("name"), URL: c.String("url"), ContentType: c.String("content-type"), DryRun: c.Bool("dry-run"),
			}}, s)
		}),
	}
}

func putCommand() *cli.Command {
	return &cli.Command{
		Name:  "put",
		Usage: "deliver one entry, its content from standard input",
		Description: `It prints the path of the entry. The same entry put again changes nothing.

Example:
   uptime | lektor-fetch put --feed-id urn:x:uptime --feed-name Uptime --id urn:x:uptime:1 --title "It is up"`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "feed-id", Required: true, Usage: "the id of the feed, a `URI`"},
			&cli.StringFlag{Name: "feed-name", Usage: "call the feed `NAME`"},
			&cli.StringFlag{Name: "id", Required: true, Usage: "the id of the entry, a `URI`"},
			&cli.StringFlag{Name: "title", Usage: "the entry's `TITLE`"},
			&cli.StringFlag{Name: "link", Usage: "the `URL` of the entry's page"},
			&cli.StringFlag{Name: "author", Usage: "who wrote it, as `NAME <MAIL>`"},
			&cli.StringFlag{Name: "date", Usage: "`WHEN` it was published, such as 2026-01-31T12:00:00Z, or @ and seconds since 1970"},
			&cli.StringFlag{Name: "type", Usage: "the MIME `TYPE` of the content, text/plain without it"},
			&cli.StringFlag{Name: "summary", Usage: "a `TEXT` beside the content"},
			&cli.StringSliceFlag{Name: "category", Usage: "a category's `NAME`; may be repeated"},
			&cli.StringSliceFlag{Name: "enclosure", Usage: "a file that belongs to it: `URL`, and after spaces its type and length; may be repeated"},
			dryRunFlag(),
		},
		Action: local(command.NoArgs, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			return fetcher.Put(c.Context, fetcher.PutOptions{
				Common: o, FeedID: c.String("feed-id"), FeedName: c.String("feed-name"), ID: c.String("id"), Title: c.String("title"),
				Link: c.String("link"), Author: c.String("author"), Date: c.String("date"), Type: c.String("type"),
				Summary: c.String("summary"), Categories: c.StringSlice("category"), Enclosures: c.StringSlice("enclosure"),
				DryRun: c.Bool("dry-run"),
			}, s)
		}),
	}
}

func importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "subscribe to the feeds of an OPML list",
		ArgsUsage: "FILE|-",
		Description: `Folders become categories. What lektor does not understand of the list comes
back with export.

Example:
   lektor-fetch import --no-fetch Subs.opml`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "no-fetch", Usage: "subscribe, and fetch nothing yet"},
			dryRunFlag(),
		}, fetchFlags()...),
		Action: network(oneList, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			return fetcher.Import(c.Context, fetcher.ImportOptions{
				Common: o, File: c.Args().First(), NoFetch: c.Bool("no-fetch"), DryRun: c.Bool("dry-run"),
			}, s)
		}),
	}
}

func oneList(c *cli.Context) error {
	if c.NArg() != 1 {
		return command.Usagef("import takes one list, a file or - for standard input")
	}
	return nil
}

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write the subscriptions as an OPML list",
		Description: `Example:
   lektor-fetch export --output Subs.opml`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Usage: "write to `FILE`"},
		},
		Action: local(command.NoArgs, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			return fetcher.Export(c.Context, fetcher.ExportOptions{Common: o, Output: c.String("output")}, s)
		}),
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "verify the lektor-dir",
		Description: `It prints what is wrong, a line each, and ends with status 1 if that is more than
it repaired.

Example:
   lektor-fetch check --repair`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "repair", Usage: "mend what can be mended without losing anything"},
		},
		Action: local(command.NoArgs, func(c *cli.Context, o fetcher.Common, s *command.Streams) error {
			return fetcher.Check(c.Context, fetcher.CheckOptions{Common: o, Repair: c.Bool("repair")}, s)
		}),
	}
}

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "only tell what would be done"}
}

// updateFlags are those of update, which the program takes without it, too.
func updateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "fetch all feeds, due or not"},
		command.OutputFlag("print the entries that are delivered in `FORMAT`: path"),
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "no summary"},
		dryRunFlag(),
	}
}

// fetchFlags are those of all commands that make requests.
func fetchFlags() []cli.Flag {
	d := fetch.DefaultConfig()
	return []cli.Flag{
		&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Value: fetcher.DefaultJobs, Usage: "fetch `N` feeds at once"},
		&cli.IntFlag{Name: "per-host", Value: d.PerHost, Usage: "make `N` requests at once to one host"},
		&cli.DurationFlag{Name: "gap", Value: d.Gap, Usage: "wait for `TIME` between two requests to one host"},
		&cli.DurationFlag{Name: fetch.FlagTimeout, Value: d.Deadline, Usage: "give up an exchange after `TIME`"},
		&cli.Int64Flag{Name: fetch.FlagMaxBytes, Value: d.MaxBytes, Usage: "refuse documents of more than `N` bytes as transferred"},
		&cli.Int64Flag{Name: fetch.FlagMaxDecoded, Value: d.MaxDecoded, Usage: "refuse documents of more than `N` bytes after decompression"},
		&cli.IntFlag{Name: fetch.FlagMaxRedirects, Value: d.MaxRedirects, Usage: "follow `N` redirects"},
		&cli.Int64Flag{Name: fetch.FlagMaxHeader, Value: d.MaxHeader, Usage: "refuse response headers of more than `N` bytes"},
		&cli.IntFlag{Name: fetcher.FlagMaxEntries, Usage: "take at most `N` entries of a document"},
		&cli.StringFlag{Name: "default-interval", Usage: "fetch feeds without an interval of their own every `TIME` at most, such as 30m, 2h or 1d"},
		&cli.StringSliceFlag{Name: "allow-private", Usage: "let public servers redirect to the private network `PREFIX`; may be repeated"},
		&cli.StringFlag{Name: "user-agent", Usage: "tell servers that we are `NAME`"},
	}
}

// given is the context in which a flag was given: the command's own, else the
// program's, for "lektor-fetch --gap 0 update".
func given(c *cli.Context, name string) *cli.Context {
	for _, ctx := range c.Lineage() {
		if ctx.Command != nil && ctx.IsSet(name) {
			return ctx
		}
	}
	return c
}

// positive checks a limit in bytes.
func positive(c *cli.Context, name string) error {
	if n := given(c, name).Int64(name); n < 1 {
		return command.Usagef("--%s %d: it is a number of bytes, at least 1", name, n)
	}
	return nil
}

// fetchOptions reads the flags of fetchFlags.
func fetchOptions(c *cli.Context) (o fetcher.Options, err error) {
	integer := func(name string) int { return given(c, name).Int(name) }
	long := func(name string) int64 { return given(c, name).Int64(name) }
	o = fetcher.Options{
		Jobs:       integer("jobs"),
		MaxEntries: integer(fetcher.FlagMaxEntries),
		Fetch: fetch.Config{
			UserAgent:    given(c, "user-agent").String("user-agent"),
			PerHost:      integer("per-host"),
			Gap:          given(c, "gap").Duration("gap"),
			Deadline:     given(c, fetch.FlagTimeout).Duration(fetch.FlagTimeout),
			MaxBytes:     long(fetch.FlagMaxBytes),
			MaxDecoded:   long(fetch.FlagMaxDecoded),
			MaxRedirects: integer(fetch.FlagMaxRedirects),
			MaxHeader:    long(fetch.FlagMaxHeader),
			Proxy:        http.ProxyFromEnvironment,
		},
	}
	if o.Fetch.UserAgent == "" {
		o.Fetch.UserAgent = strings.Replace(fetch.DefaultUserAgent, "lektor-fetch ", "lektor-fetch/"+command.Version()+" ", 1)
	}
	for _, name := range []string{"jobs", "per-host"} {
		if n := integer(name); n < 1 || n > 1000 {
			return o, command.Usagef("--%s %d: it is a number from 1 to 1000", name, n)
		}
	}
	for _, name := range []string{fetch.FlagMaxBytes, fetch.FlagMaxDecoded, fetch.FlagMaxHeader} {
		if err := positive(c, name); err != nil {
			return o, err
		}
	}
	if o.Fetch.Deadline <= 0 || o.Fetch.Deadline > time.Hour {
		return o, command.Usagef("--%s %s: it is a time such as 30s, up to an hour", fetch.FlagTimeout, o.Fetch.Deadline)
	}
	if o.Fetch.Gap < 0 || o.Fetch.MaxRedirects < 1 || o.MaxEntries < 0 {
		return o, command.Usagef("--gap and --max-entries are not less than 0, --%s not less than 1", fetch.FlagMaxRedirects)
	}
	if v := given(c, "default-interval").String("default-interval"); v != "" {
		if o.Interval, err = units.ParseInterval(v); err != nil {
			return o, command.Usagef("--default-interval: %w", err)
		}
	}
	o.Fetch.AllowPrivate, err = prefixes(given(c, "allow-private").StringSlice("allow-private"))
	return o, err
}

// prefixes reads networks and addresses.
func prefixes(values []string) (out []netip.Prefix, err error) {
	for _, v := range values {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			a, err := netip.ParseAddr(v)
			if err != nil {
				return nil, command.Usagef("--allow-private %s: it is a network such as 10.0.0.0/8, or an address", v)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		out = append(out, p)
	}
	return out, nil
}
