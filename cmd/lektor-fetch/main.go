// Lektor-fetch subscribes to feeds, fetches them and delivers their entries
// into a lektor-dir. See lektor-fetch(1).
package main

import (
	"cmp"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/urfave/cli/v2"

	"github.com/lektordir/lektor/internal/app/fetcher"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fetchcmd"
	"github.com/lektordir/lektor/internal/feeds/settings"
	"github.com/lektordir/lektor/internal/feeds/subscriptions"
	"github.com/lektordir/lektor/internal/http/fetch"
	"github.com/lektordir/lektor/internal/http/httpmsg"
	"github.com/lektordir/lektor/internal/protocol/rfc5005"
	names "github.com/lektordir/lektor/internal/read/entrystore"
	"github.com/lektordir/lektor/internal/text/humanize"
)

func main() {
	// A fetcher must leave memory to other programs. The size of each document is limited; the
	// memory limit makes the garbage collector run more often when many documents add up.
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(160 << 20)
	}
	// Below the limit, collect less often: with the default of 100, a first fetch takes 10 % more
	// processor time.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	os.Exit(cmdline.Main(newApp(), os.Args))
}

func newApp() *cli.App {
	update := updateCommand()
	return cmdline.Completing(&cli.App{
		Name:  "lektor-fetch",
		Usage: "subscribe to feeds and fetch them into a lektor-dir",
		Description: `Without a command, it fetches the feeds that are due.

Example:
   lektor-fetch add https://daringfireball.net/
   lektor-fetch && lektor-view ls`,
		Flags:  append(append([]cli.Flag{cmdline.DirFlag()}, updateFlags()...), fetchFlags()...),
		Action: update.Action,
		Commands: []*cli.Command{
			addCommand(), rmCommand(), lsCommand(), setCommand(), editCommand(), update, watchCommand(),
			historyCommand(), deliverCommand(), putCommand(), importCommand(), exportCommand(), checkCommand(),
		},
	}, names.CompleteSubscribed)
}

// common returns the options of all commands.
func common(f *cmdline.Flags) fetcher.Common { return fetcher.Common{Dir: cmdline.Dir(f.Context)} }

// fetching returns the options of commands with the flags of fetchFlags.
func fetching(f *cmdline.Flags) fetcher.Common {
	o := common(f)
	o.Fetch, o.Jobs, o.MaxEntries = fetchcmd.Fetch(f), f.Number("jobs", 1, 1000), f.Number(fetcher.FlagMaxEntries, 0, 0)
	if v := f.Given("default-interval").String("default-interval"); v != "" {
		if err := settings.Check("interval", v); err != nil {
			f.Fail(cmdline.Usagef("--default-interval: %w", err))
		}
		o.Interval, _ = humanize.ParseInterval(v)
	}
	o.History = rfc5005.Limits{
		Documents: f.Number(rfc5005.FlagDocuments, 1, 0), Entries: f.Number(rfc5005.FlagEntries, 1, 0),
		Bytes: f.Size(rfc5005.FlagBytes),
	}
	return o
}

func addCommand() *cli.Command {
	return &cli.Command{
		Name:      "add",
		Usage:     "subscribe to feeds, by their URLs or those of pages, and deliver their entries",
		ArgsUsage: "URL…|-",
		Description: `Example:
   lektor-fetch add --category Tech https://daringfireball.net/`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "history", Usage: "also deliver the entries in the feed's archives"},
			&cli.BoolFlag{Name: "first", Usage: "if a page links to several feeds, take the first"},
			&cli.BoolFlag{Name: "no-fetch", Usage: "subscribe, and deliver nothing yet"},
			&cli.BoolFlag{Name: "as-is", Usage: "use the URL as that of a feed without looking at it"},
			&cli.StringFlag{Name: "alias", Aliases: []string{"title"},
				Usage: "use `NAME` instead of the feed's own name"},
			&cli.StringFlag{Name: "interval",
				Usage: "fetch the feed at most once within `TIME`, such as 30m, 2h or 1d"},
			&cli.BoolFlag{Name: "force", Usage: "accept an interval of less than a minute"},
			&cli.BoolFlag{Name: "guess", Value: true, Usage: "if a page links to no feed, look at the usual URLs"},
			&cli.StringSliceFlag{Name: "header",
				Usage: "send the header `FIELD` to the feed's server, such as 'Authorization: Bearer secret'; may be repeated"},
			&cli.BoolFlag{Name: "private", Usage: "keep the feed out of everything that leaves this machine"},
			&cli.BoolFlag{Name: "fulltext", Usage: "replace the text of entries by the articles of their pages"},
			&cli.StringSliceFlag{Name: "category",
				Usage: "put the feed into the category `NAME`, a/b for b in a; may be repeated"},
			&cli.BoolFlag{Name: "progress",
				Usage: "print the progress and the hashes of new subscriptions to standard output, for other programs"},
			cmdline.DryRunFlag(), cmdline.NulFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(fetcher.Add, "a URL", func(f *cmdline.Flags) fetcher.AddOptions {
			look := fetcher.LookAtPage
			switch {
			case f.Bool("as-is"):
				look = fetcher.LookNowhere
			case f.Bool("guess"):
				look = fetcher.LookAround
			}
			o := fetcher.AddOptions{
				Common: fetching(f), Sources: f.Words(), Nul: cmdline.Nul(f.Context),
				Look: look, First: f.Bool("first"), History: f.Bool("history"), NoFetch: f.Bool("no-fetch"),
				DryRun: f.Bool("dry-run"), Force: f.Bool("force"), Headers: f.StringSlice("header"),
				FullText: f.Bool("fulltext"),
				Feed: subscriptions.Subscription{Alias: f.String("alias"), Interval: f.String("interval"),
					Categories: f.StringSlice("category"), Private: f.Bool("private")},
			}
			o.Steps = f.Bool("progress")
			return o
		}),
	}
}

func rmCommand() *cli.Command {
	return &cli.Command{
		Name:      "rm",
		Usage:     "unsubscribe from feeds; their entries stay",
		ArgsUsage: "FEED…|-",
		Description: `Example:
   lektor-fetch ls -o tsv | awk -F'\t' '$6 ~ /410 Gone/ { print $1 }' | lektor-fetch rm -`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "purge", Usage: "remove the feed with all its entries, read and unread"},
			cmdline.DryRunFlag(), cmdline.NulFlag(),
		},
		Action: cmdline.Run(fetcher.Remove, "a feed", func(f *cmdline.Flags) fetcher.RemoveOptions {
			return fetcher.RemoveOptions{
				Common: common(f), Feeds: f.Words(), Nul: cmdline.Nul(f.Context),
				Purge: f.Bool("purge"), DryRun: f.Bool("dry-run"),
			}
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
			cmdline.OutputFlag("print `FORMAT`: path, url, tsv, json, the name of a column, or a template"),
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also feeds to which you are not subscribed"},
			&cli.BoolFlag{Name: "broken", Usage: "only feeds whose last fetch failed"},
			&cli.StringFlag{Name: "category", Usage: "only feeds in the category `NAME`, or in one below it"},
			cmdline.RawFlag(),
			cmdline.NulFlag(),
		},
		Action: cmdline.Run(fetcher.List, "", func(f *cmdline.Flags) fetcher.ListOptions {
			return fetcher.ListOptions{
				Common: common(f), Feeds: f.Words(), All: f.Bool("all"), Broken: f.Bool("broken"),
				Category: f.String("category"),
				Print: cmdline.PrinterOptions{Format: cmdline.OutputFormat(f.Context), Nul: cmdline.Nul(f.Context),
					Raw: f.Bool("raw")},
				Screen: f.Streams().Screen(),
			}
		}),
	}
}

func setCommand() *cli.Command {
	return &cli.Command{
		Name:      "set",
		Usage:     "change a setting of a feed, or print its settings",
		ArgsUsage: "FEED [SETTING [VALUE…]|-] | --undo -",
		Description: `Settings are url, alias, interval, on-update, categories, headers, filter, private,
history, keep, fulltext and paused.

Example:
   lektor-fetch set https://daringfireball.net/feeds/main interval 4h`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "unset", Usage: "remove the setting, so its default applies"},
			&cli.BoolFlag{Name: "force",
				Usage: "accept an interval of less than a minute, and with - every value that was printed"},
			&cli.BoolFlag{Name: "raw", Usage: "print values as they are, even if they could harm a terminal"},
			&cli.BoolFlag{Name: "undo", Usage: "take back the changes on standard input, for lektor-view undo"},
			cmdline.DryRunFlag("check whether the value is valid, or print the outcomes"),
		},
		Action: cmdline.Run(fetcher.Set, "a feed", func(f *cmdline.Flags) fetcher.SetOptions {
			args := f.Args().Tail()
			o := fetcher.SetOptions{
				Common: common(f), Feed: f.Args().First(),
				Unset: f.Bool("unset"), DryRun: f.Bool("dry-run"), Force: f.Bool("force"), Raw: f.Bool("raw"),
				Undo: f.Bool("undo"),
			}
			if len(args) > 0 {
				o.Key, o.Values = args[0], args[1:]
			}
			switch {
			case o.Undo && (o.Feed != "-" || len(args) > 0 || o.Unset):
				f.Fail(cmdline.Usagef("--undo takes only -, for standard input"))
			case o.Unset && len(args) != 1:
				f.Fail(cmdline.Usagef("--unset takes a feed and one setting"))
			case len(o.Values) > 1 && o.Key != "headers" && o.Key != "categories":
				f.Fail(cmdline.Usagef("%s has one value; quote it if it has spaces", o.Key))
			}
			return o
		}),
	}
}

func editCommand() *cli.Command {
	return &cli.Command{
		Name:  "edit",
		Usage: "edit the list of subscriptions in $VISUAL or $EDITOR",
		Description: `The list has a line for each feed, with URL, folders and title. The difference is
applied when the editor ends.

Example:
   lektor-fetch edit`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "yes", Usage: "unsubscribe without asking"},
			&cli.BoolFlag{Name: "no-fetch", Usage: "subscribe to new feeds without looking at their URLs"},
		}, fetchFlags()...),
		Action: cmdline.Run(fetcher.Edit, "", func(f *cmdline.Flags) fetcher.EditOptions {
			return fetcher.EditOptions{
				Common: fetching(f), Yes: f.Bool("yes"), NoFetch: f.Bool("no-fetch"),
				Editor: cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi"),
			}
		}),
	}
}

func updateCommand() *cli.Command {
	return &cli.Command{
		Name:      "update",
		Usage:     "fetch the feeds that are due, or the named feeds",
		ArgsUsage: "[FEED…|-]",
		Description: `Example:
   lektor-fetch update -a -o path | lektor-view show -`,
		Flags: append(append(updateFlags(), cmdline.NulFlag()), fetchFlags()...),
		Action: cmdline.Run(fetcher.Update, "", func(f *cmdline.Flags) fetcher.UpdateOptions {
			o := fetcher.UpdateOptions{
				Common: fetching(f), Feeds: f.Words(), Nul: f.Bool("null"),
				All: f.Given("all").Bool("all"), Format: f.Given("format").String("format"),
				Quiet: f.Given("quiet").Bool("quiet"), DryRun: f.Given("dry-run").Bool("dry-run"),
				Want: fetcher.Want{FullText: f.Given("fulltext").Bool("fulltext")},
			}
			if o.Steps = f.Given("progress").Bool("progress"); o.Steps && o.Format != "" {
				f.Fail(cmdline.Usagef("--progress and --format both write to standard output; give one of them"))
			}
			if o.All && len(o.Feeds) > 0 {
				f.Fail(cmdline.Usagef("-a fetches all feeds; do not name feeds with it"))
			}
			return o
		}),
	}
}

func watchCommand() *cli.Command {
	return &cli.Command{
		Name:  "watch",
		Usage: "keep running, and fetch each feed when it is due",
		Description: `Example:
   lektor-fetch watch &`,
		Flags: append([]cli.Flag{
			cmdline.OutputFlag("print each delivered entry in `FORMAT`: path, url, tsv, json, another column or a template"),
		}, fetchFlags()...),
		Action: cmdline.Run(fetcher.Watch, "", func(f *cmdline.Flags) fetcher.WatchOptions {
			return fetcher.WatchOptions{Common: fetching(f), Format: cmdline.OutputFormat(f.Context)}
		}),
	}
}

func historyCommand() *cli.Command {
	return &cli.Command{
		Name:      "history",
		Usage:     "fetch feeds and deliver the entries in their archives, or in their pages",
		ArgsUsage: "[FEED…|-]",
		Description: `Example:
   lektor-fetch history -o path https://example.org/feed | lektor-view mark --set S -`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "pages",
				Usage: "instead of archives, fetch the first `N` pages of a paged feed, or all"},
			cmdline.OutputFlag("print each delivered entry in `FORMAT`: path, url, tsv, json, another column or a template"),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print no summary"},
			cmdline.DryRunFlag("fetch the document of each feed, and print its kind and archives"),
			cmdline.NulFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(fetcher.History, "", func(f *cmdline.Flags) fetcher.UpdateOptions {
			o := fetcher.UpdateOptions{
				Common: fetching(f), Feeds: f.Words(), Nul: cmdline.Nul(f.Context),
				Format: cmdline.OutputFormat(f.Context), Quiet: f.Given("quiet").Bool("quiet"),
				DryRun: f.Given("dry-run").Bool("dry-run"),
			}
			if v := f.String("pages"); v == "all" {
				o.Pages = fetcher.AllPages
			} else if f.IsSet("pages") {
				n, err := strconv.Atoi(v)
				if err != nil || n < 1 {
					f.Fail(cmdline.Usagef("--pages %s: give a number of at least 1, or all", v))
				}
				o.Pages = n
			}
			return o
		}),
	}
}

func deliverCommand() *cli.Command {
	return &cli.Command{
		Name:  "deliver",
		Usage: "deliver the new entries of a feed document on standard input",
		Description: `Example:
   curl -s https://example.com/feed | lektor-fetch deliver --id https://example.com/feed`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "id", Required: true, Usage: "the id of the feed, a `URI`"},
			&cli.StringFlag{Name: "name", Usage: "the `NAME` of the feed", DefaultText: "the one in the document"},
			&cli.StringFlag{Name: "url", Usage: "resolve relative references against `BASE`", DefaultText: "the id"},
			&cli.StringFlag{Name: "content-type", Usage: "the MIME `TYPE` of the document, with an optional charset"},
			&cli.IntFlag{Name: fetcher.FlagMaxEntries, Usage: "take at most `N` entries", DefaultText: "20000"},
			&cli.Int64Flag{Name: "max-decoded", Value: fetch.DefaultMaxDecoded, Usage: "read at most `N` bytes"},
			cmdline.OutputFlag("print each delivered entry in `FORMAT`: path, url, tsv, json, another column or a template"),
			cmdline.DryRunFlag("only read the document"),
		},
		Action: cmdline.Run(fetcher.Deliver, "", func(f *cmdline.Flags) fetcher.DeliverOptions {
			o := fetcher.DeliverOptions{
				Common: common(f), Format: cmdline.OutputFormat(f.Context),
				Document: fetcher.Document{
					ID: f.String("id"), Name: f.String("name"), URL: f.String("url"),
					ContentType: f.String("content-type"), DryRun: f.Bool("dry-run"),
				},
			}
			o.Fetch.MaxDecoded, o.MaxEntries = f.Bytes(httpmsg.FlagMaxDecoded), f.Number(fetcher.FlagMaxEntries, 0, 0)
			return o
		}),
	}
}

func putCommand() *cli.Command {
	return &cli.Command{
		Name:  "put",
		Usage: "deliver one entry with its content from standard input",
		Description: `It prints the path of the entry. If you put the same entry again, nothing changes.

Example:
   uptime | lektor-fetch put --feed-id urn:x:uptime --feed-name Uptime --id urn:x:uptime:1 --title "It is up"`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "feed-id", Required: true, Usage: "the id of the feed, a `URI`"},
			&cli.StringFlag{Name: "feed-name", Usage: "the `NAME` of the feed"},
			&cli.StringFlag{Name: "id", Required: true, Usage: "the id of the entry, a `URI`"},
			&cli.StringFlag{Name: "title", Usage: "the `TITLE` of the entry"},
			&cli.StringFlag{Name: "link", Usage: "the `URL` of the entry's page"},
			&cli.StringFlag{Name: "author", Usage: "the author of the entry, as `NAME <MAIL>`"},
			&cli.StringFlag{Name: "date",
				Usage: "the date of publication, `WHEN`, such as 2026-01-31T12:00:00Z, or @ and seconds since 1970"},
			&cli.StringFlag{Name: "type", Usage: "the MIME `TYPE` of the content", DefaultText: "text/plain"},
			&cli.StringFlag{Name: "summary", Usage: "a summary `TEXT` beside the content"},
			&cli.StringSliceFlag{Name: "category", Usage: "the `NAME` of a category; may be repeated"},
			&cli.StringSliceFlag{Name: "enclosure",
				Usage: "a file that belongs to the entry: `URL`, and after spaces its type and length in bytes; may be repeated"},
			cmdline.DryRunFlag("only check the arguments"),
		},
		Action: cmdline.Run(fetcher.Put, "", func(f *cmdline.Flags) fetcher.PutOptions {
			return fetcher.PutOptions{
				Common: common(f), FeedID: f.String("feed-id"), FeedName: f.String("feed-name"),
				ID: f.String("id"), Title: f.String("title"),
				Link: f.String("link"), Author: f.String("author"), Date: f.String("date"), Type: f.String("type"),
				Summary: f.String("summary"), Categories: f.StringSlice("category"),
				Enclosures: f.StringSlice("enclosure"),
				DryRun:     f.Bool("dry-run"),
			}
		}),
	}
}

func importCommand() *cli.Command {
	return &cli.Command{
		Name:      "import",
		Usage:     "subscribe to the feeds of an OPML list, or move in from another reader",
		ArgsUsage: "FILE|-|--from READER [PATH…]",
		Description: `Folders become categories. Unknown parts of the list are kept for export.

With --from, names, folders, saved queries and the read state of entries move in from
another reader; see lektor-import(1).

Example:
   lektor-fetch import --no-fetch Subs.opml
   lektor-fetch import --from newsboat`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "from",
				Usage: "move in from `READER`: newsboat, sfeed, r2e, feedly, inoreader or miniflux; PATH is its file"},
			&cli.BoolFlag{Name: "yes", Usage: "with --from, take over commands without asking"},
			&cli.BoolFlag{Name: "no-fetch", Usage: "subscribe, and fetch nothing"},
			cmdline.DryRunFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(fetcher.Import, "", func(f *cmdline.Flags) fetcher.ImportOptions {
			o := fetcher.ImportOptions{
				Common: fetching(f), File: f.Args().First(), NoFetch: f.Bool("no-fetch"), DryRun: f.Bool("dry-run"),
				From: f.String("from"), Yes: f.Bool("yes"),
			}
			switch {
			case o.From != "":
				o.Paths = f.Words()
			case f.IsSet("from"):
				f.Fail(cmdline.Usagef("--from needs the name of a reader"))
			case o.Yes:
				f.Fail(cmdline.Usagef("--yes is for --from: a list names no commands"))
			case f.NArg() != 1:
				f.Fail(cmdline.Usagef("import takes one list, a file or - for standard input"))
			}
			return o
		}),
	}
}

func exportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "write the subscriptions as an OPML list",
		Description: `Example:
   lektor-fetch export --output Subs.opml`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Usage: "write to `FILE`"},
			&cli.BoolFlag{Name: "public",
				Usage: "write a list for others, with only title and folders of private feeds"},
			&cli.BoolFlag{Name: "passwords", Usage: "include user names and passwords in URLs"},
		},
		Action: cmdline.Run(fetcher.Export, "", func(f *cmdline.Flags) fetcher.ExportOptions {
			return fetcher.ExportOptions{Common: common(f), Output: f.String("output"),
				Public: f.Bool("public"), Passwords: f.Bool("passwords")}
		}),
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "verify the lektor-dir, and print each problem",
		Description: `If a problem is left, the exit status is 1.

Example:
   lektor-fetch check --repair`,
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "repair", Usage: "repair each problem that can be repaired without losing data"},
		},
		Action: cmdline.Run(fetcher.Check, "", func(f *cmdline.Flags) fetcher.CheckOptions {
			return fetcher.CheckOptions{Common: common(f), Repair: f.Bool("repair")}
		}),
	}
}

// updateFlags returns the flags of update, which lektor-fetch also takes without a command.
func updateFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "fetch all feeds, due or not"},
		cmdline.OutputFlag("print each delivered entry in `FORMAT`: path, url, tsv, json, another column or a template"),
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print no summary"},
		&cli.BoolFlag{Name: "progress",
			Usage: "print the progress and the summary to standard output, for other programs"},
		&cli.BoolFlag{Name: "fulltext",
			Usage: "also fetch the full text of unread entries that were delivered without it"},
		cmdline.DryRunFlag(),
	}
}

// fetchFlags returns the flags of all commands that make requests.
func fetchFlags() []cli.Flag {
	return append(fetchcmd.FetchFlags(0),
		&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Value: fetcher.DefaultJobs,
			Usage: "fetch `N` feeds at once"},
		&cli.IntFlag{Name: fetcher.FlagMaxEntries, Usage: "take at most `N` entries of a document",
			DefaultText: "20000"},
		&cli.IntFlag{Name: rfc5005.FlagDocuments, Value: fetcher.DefaultLimitDocuments,
			Usage: "request at most `N` documents of a feed's history in one walk"},
		&cli.IntFlag{Name: rfc5005.FlagEntries, Value: fetcher.DefaultLimitEntries,
			Usage: "end a walk through a feed's history after `N` entries"},
		&cli.StringFlag{Name: rfc5005.FlagBytes, Value: "256M",
			Usage: "end a walk through a feed's history after `SIZE` bytes, such as 256M"},
		&cli.StringFlag{Name: "default-interval",
			Usage: "the interval of feeds without their own, `TIME` such as 30m, 2h or 1d", DefaultText: "1h"},
	)
}
