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
	return &cli.App{
		Name:  "lektor-fetch",
		Usage: "fetch feeds into a lektor-dir",
		Description: `Without a command it fetches the feeds that are due.

Example:
   lektor-fetch add https://daringfireball.net/
   lektor-fetch && lektor-view ls`,
		Flags:  append(append([]cli.Flag{command.DirFlag()}, updateFlags()...), fetchFlags()...),
		Action: updateAction,
		Commands: []*cli.Command{
			{
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
					&cli.StringSliceFlag{Name: "category", Usage: "put it into the category `NAME`, a/b for b in a; may be repeated"},
					dryRunFlag(), command.NulFlag(),
				}, fetchFlags()...),
				Action: func(c *cli.Context) error {
					if err := command.NeedArgs(c, "a URL"); err != nil {
						return err
					}
					o, err := fetchOptions(c)
					if err != nil {
						return err
					}
					return add(c.Context, addOptions{
						options: o, args: c.Args().Slice(), nul: command.Nul(c),
						add: fetcher.AddOptions{
							First: c.Bool("first"), NoFetch: c.Bool("no-fetch"), AsIs: c.Bool("as-is"), DryRun: c.Bool("dry-run"),
							Alias: c.String("alias"), Interval: c.String("interval"), Categories: c.StringSlice("category"),
						},
					}, command.StreamsOf(c))
				},
			},
			{
				Name:      "rm",
				Usage:     "unsubscribe; entries stay unless they are purged",
				ArgsUsage: "FEED…|-",
				Description: `Example:
   lektor-fetch ls -o tsv | awk -F'\t' '$6 ~ /410 Gone/ { print $1 }' | lektor-fetch rm -`,
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "purge", Usage: "remove the feed with all its entries, read and unread"},
					dryRunFlag(), command.NulFlag(),
				},
				Action: func(c *cli.Context) error {
					if err := command.NeedArgs(c, "a feed"); err != nil {
						return err
					}
					return rm(c.Context, rmOptions{
						options: options{dir: command.Dir(c)}, args: c.Args().Slice(), nul: command.Nul(c),
						purge: c.Bool("purge"), dryRun: c.Bool("dry-run"),
					}, command.StreamsOf(c))
				},
			},
			{
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
				Action: func(c *cli.Context) error {
					return ls(c.Context, lsOptions{
						options: options{dir: command.Dir(c)}, args: c.Args().Slice(), nul: command.Nul(c),
						format: command.OutputFormat(c), raw: c.Bool("raw"), broken: c.Bool("broken"), category: c.String("category"),
					}, command.StreamsOf(c))
				},
			},
			{
				Name:      "set",
				Usage:     "show or change the settings of a feed",
				ArgsUsage: "FEED [SETTING [VALUE…]]",
				Description: `Settings are url, alias, interval, on-update, categories, headers and filter.

Example:
   lektor-fetch set https://daringfireball.net/feeds/main interval 4h`,
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "unset", Usage: "remove the setting, so that the default holds"},
					dryRunFlag(),
				},
				Action: func(c *cli.Context) error {
					if err := command.NeedArgs(c, "a feed"); err != nil {
						return err
					}
					return set(c.Context, setOptions{
						options: options{dir: command.Dir(c)}, feed: c.Args().First(), args: c.Args().Tail(),
						unset: c.Bool("unset"), dryRun: c.Bool("dry-run"),
					}, command.StreamsOf(c))
				},
			},
			{
				Name:      "update",
				Usage:     "fetch the feeds that are due, or those named",
				ArgsUsage: "[FEED…|-]",
				Description: `Example:
   lektor-fetch update -a -o path | lektor-view show -`,
				Flags:  append(append(updateFlags(), command.NulFlag()), fetchFlags()...),
				Action: updateAction,
			},
			{
				Name:  "watch",
				Usage: "stay, and fetch each feed when it is due",
				Description: `Example:
   lektor-fetch watch &`,
				Flags: append([]cli.Flag{
					command.OutputFlag("print the entries that are delivered in `FORMAT`: path"),
				}, fetchFlags()...),
				Action: func(c *cli.Context) error {
					if err := command.NoArgs(c); err != nil {
						return err
					}
					o, err := fetchOptions(c)
					if err != nil {
						return err
					}
					return watch(c.Context, watchOptions{options: o, format: command.OutputFormat(c)}, command.StreamsOf(c))
				},
			},
			{
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
				Action: func(c *cli.Context) error {
					if err := command.NoArgs(c); err != nil {
						return err
					}
					if err := positive(c, fetch.FlagMaxDecoded); err != nil {
						return err
					}
					if n := c.Int(fetcher.FlagMaxEntries); n < 0 {
						return command.Usagef("--max-entries %d: it is not less than 0", n)
					}
					return deliver(c.Context, deliverOptions{
						options: options{dir: command.Dir(c), maxEntries: c.Int(fetcher.FlagMaxEntries), fetch: fetch.Config{MaxDecoded: c.Int64("max-decoded")}},
						doc:     fetcher.Document{ID: c.String("id"), Name: c.String("name"), URL: c.String("url"), ContentType: c.String("content-type"), DryRun: c.Bool("dry-run")},
						format:  command.OutputFormat(c),
					}, command.StreamsOf(c))
				},
			},
			{
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
				Action: func(c *cli.Context) error {
					if err := command.NoArgs(c); err != nil {
						return err
					}
					return put(c.Context, putOptions{
						options: options{dir: command.Dir(c)},
						feedID:  c.String("feed-id"), feedName: c.String("feed-name"), id: c.String("id"), title: c.String("title"),
						link: c.String("link"), author: c.String("author"), date: c.String("date"), mime: c.String("type"),
						summary: c.String("summary"), categories: c.StringSlice("category"), enclosures: c.StringSlice("enclosure"),
						dryRun: c.Bool("dry-run"),
					}, command.StreamsOf(c))
				},
			},
			{
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
				Action: func(c *cli.Context) error {
					if c.NArg() != 1 {
						return command.Usagef("import takes one list, a file or - for standard input")
					}
					o, err := fetchOptions(c)
					if err != nil {
						return err
					}
					return importList(c.Context, importOptions{options: o, file: c.Args().First(), noFetch: c.Bool("no-fetch"), dryRun: c.Bool("dry-run")}, command.StreamsOf(c))
				},
			},
			{
				Name:  "export",
				Usage: "write the subscriptions as an OPML list",
				Description: `Example:
   lektor-fetch export --output Subs.opml`,
				Flags: []cli.Flag{
					&cli.StringFlag{Name: "output", Usage: "write to `FILE`"},
				},
				Action: func(c *cli.Context) error {
					if err := command.NoArgs(c); err != nil {
						return err
					}
					return export(c.Context, exportOptions{options: options{dir: command.Dir(c)}, output: c.String("output")}, command.StreamsOf(c))
				},
			},
			{
				Name:  "check",
				Usage: "verify the lektor-dir",
				Description: `It prints what is wrong, a line each, and ends with status 1 if that is more than
it repaired.

Example:
   lektor-fetch check --repair`,
				Flags: []cli.Flag{
					&cli.BoolFlag{Name: "repair", Usage: "mend what can be mended without losing anything"},
				},
				Action: func(c *cli.Context) error {
					if err := command.NoArgs(c); err != nil {
						return err
					}
					return check(c.Context, checkOptions{options: options{dir: command.Dir(c)}, repair: c.Bool("repair")}, command.StreamsOf(c))
				},
			},
		},
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
func fetchOptions(c *cli.Context) (options, error) {
	integer := func(name string) int { return given(c, name).Int(name) }
	long := func(name string) int64 { return given(c, name).Int64(name) }
	o := options{
		dir:        command.Dir(c),
		jobs:       integer("jobs"),
		maxEntries: integer(fetcher.FlagMaxEntries),
		fetch: fetch.Config{
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
	if o.fetch.UserAgent == "" {
		o.fetch.UserAgent = strings.Replace(fetch.DefaultUserAgent, "lektor-fetch ", "lektor-fetch/"+command.Version()+" ", 1)
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
	if o.fetch.Deadline <= 0 || o.fetch.Deadline > time.Hour {
		return o, command.Usagef("--%s %s: it is a time such as 30s, up to an hour", fetch.FlagTimeout, o.fetch.Deadline)
	}
	if o.fetch.Gap < 0 || o.fetch.MaxRedirects < 1 || o.maxEntries < 0 {
		return o, command.Usagef("--gap and --max-entries are not less than 0, --%s not less than 1", fetch.FlagMaxRedirects)
	}
	if v := given(c, "default-interval").String("default-interval"); v != "" {
		d, err := units.ParseInterval(v)
		if err != nil {
			return o, command.Usagef("--default-interval: %w", err)
		}
		o.interval = d
	}
	for _, v := range given(c, "allow-private").StringSlice("allow-private") {
		p, err := netip.ParsePrefix(v)
		if err != nil {
			a, aerr := netip.ParseAddr(v)
			if aerr != nil {
				return o, command.Usagef("--allow-private %s: it is a network such as 10.0.0.0/8, or an address", v)
			}
			p = netip.PrefixFrom(a, a.BitLen())
		}
		o.fetch.AllowPrivate = append(o.fetch.AllowPrivate, p)
	}
	return o, nil
}

func updateAction(c *cli.Context) error {
	o, err := fetchOptions(c)
	if err != nil {
		return err
	}
	return runUpdate(c.Context, updateOptions{
		options: o, args: c.Args().Slice(), nul: c.Bool("null"),
		all: given(c, "all").Bool("all"), format: given(c, "format").String("format"),
		quiet: given(c, "quiet").Bool("quiet"), dryRun: given(c, "dry-run").Bool("dry-run"),
	}, command.StreamsOf(c))
}
