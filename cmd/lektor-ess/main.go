// Lektor-ess makes, aggregates and polls ESS and NNO documents. Its manual is
// lektor-ess(1).
package main

import (
	"os"
	"time"

	"github.com/urfave/cli/v2"

	app "github.com/lektordir/lektor/internal/app/ess"
	"github.com/lektordir/lektor/internal/cli/cmdline"
	"github.com/lektordir/lektor/internal/cli/fetchcmd"
	"github.com/lektordir/lektor/internal/protocol/ess"
	"github.com/lektordir/lektor/internal/text/humanize"
)

func main() { os.Exit(cmdline.Main(newApp(), os.Args)) }

func newApp() *cli.App {
	return &cli.App{
		Name:  "lektor-ess",
		Usage: "make, aggregate and poll update notices for feeds",
		Description: `An ESS document lists when the entries of a feed were published, and an NNO document
lists entries of many feeds. ess(5) and nno(5) describe the formats.

   lektor-ess poll; lektor-fetch
   lektor-ess build https://example.com/feed > feed.ess
   lektor-ess top -n 50 *.ess`,
		Flags: []cli.Flag{cmdline.DirFlag()},
		Commands: []*cli.Command{
			buildCommand(), nnoCommand(), topCommand(), pollCommand(), resolveCommand(),
			publishCommand(), discoverCommand(), checksumCommand(), decodeCommand(), checkCommand(),
		},
	}
}

// maxBytes is the default size of the largest document that is fetched. An ESS document has
// a kilobyte, and an NNO has a kilobyte for every 25 entries.
const maxBytes = 1 << 20

// fetchFlags are the flags of all commands that make requests.
func fetchFlags() []cli.Flag { return fetchcmd.FetchFlags(maxBytes) }

func atFlag() cli.Flag {
	return &cli.StringFlag{Name: "at",
		Usage:       "use `TIME` as the build time, such as 2026-01-31T12:00:00Z, or @ and seconds since 1970",
		DefaultText: "now"}
}

func linesFlag(usage string) cli.Flag { return &cli.BoolFlag{Name: "lines", Usage: usage} }

func entriesFlag() cli.Flag {
	return &cli.IntFlag{Name: "entries", Aliases: []string{"n"}, Value: app.DefaultEntries,
		Usage: "write at most `N` entries of a feed, 0 for all"}
}

func newestFlag(usage string) cli.Flag {
	return &cli.IntFlag{Name: "newest", Aliases: []string{"n"}, Value: ess.DefaultTop, Usage: usage}
}

func outputFileFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Usage: "write to `FILE`"}
}

// common reads the flags that several commands have.
func common(f *cmdline.Flags) app.Common {
	o := app.Common{Dir: cmdline.Dir(f.Context)}
	if at := f.String("at"); at != "" {
		t, err := humanize.ParseTime(at, time.Local)
		switch {
		case err != nil:
			f.Fail(cmdline.Usagef("--at: %v", err))
		case t.Unix() < 60:
			f.Fail(cmdline.Usagef("--at %s: a build time must be after 1970", at))
		case t.Unix() >= ess.Milliseconds:
			f.Fail(cmdline.Usagef("--at %s: a build time is in seconds, and must be before the year 5138", at))
		}
		o.At = t
	}
	return o
}

// fetching reads the flags of common and those of requests.
func fetching(f *cmdline.Flags) app.Common {
	o := common(f)
	o.Fetch = fetchcmd.Fetch(f)
	return o
}

// selection returns the selection of the named feeds and --category.
func selection(f *cmdline.Flags, feeds []string) app.Selection {
	return app.Selection{Feeds: feeds, Nul: cmdline.Nul(f.Context), Category: f.String("category")}
}

func categoryFlag() cli.Flag {
	return &cli.StringFlag{Name: "category", Usage: "only feeds in the category `NAME`, or in one below it"}
}

func since(f *cmdline.Flags) time.Time {
	v := f.String("since")
	if v == "" {
		return time.Time{}
	}
	t, err := app.ParseSince(v, time.Now())
	if err != nil {
		f.Fail(cmdline.Usagef("--since: %v", err))
	}
	return t
}

func buildCommand() *cli.Command {
	return &cli.Command{
		Name:      "build",
		Usage:     "write the ESS document of a feed, or of each feed",
		ArgsUsage: "[FEED…|-]",
		Description: `If you name one FEED, its document has no newline at the end. If you name several
or none, each document is one line; none means all feeds.

   lektor-ess build https://example.com/feed > feed.ess
   curl -s https://example.com/feed | lektor-ess build --from-document --url https://example.com/feed`,
		Flags: []cli.Flag{
			entriesFlag(), linesFlag("write each document as one line, even for one FEED"),
			categoryFlag(),
			&cli.StringFlag{Name: "since", Usage: "only entries since `TIME`, such as 2d, 12h or 2026-01-31"},
			atFlag(),
			&cli.BoolFlag{Name: "from-document", Usage: "use the feed document on standard input; needs no lektor-dir"},
			&cli.StringFlag{Name: "url", Usage: "the `URL` of the feed in that document", DefaultText: "its link self"},
			&cli.StringFlag{Name: "content-type", Usage: "the MIME `TYPE` of that document, with an optional charset"},
			outputFileFlag(), cmdline.NulFlag(),
		},
		Action: cmdline.Run(app.Build, "", func(f *cmdline.Flags) app.BuildOptions {
			return app.BuildOptions{
				Common: common(f), Selection: selection(f, f.Words()), Lines: f.Bool("lines"),
				N: f.Number("entries", 0, 0), Since: since(f), Output: f.String("output"),
				FromDocument: f.Bool("from-document"), URL: f.String("url"), ContentType: f.String("content-type"),
			}
		}),
	}
}

func nnoCommand() *cli.Command {
	return &cli.Command{
		Name:      "nno",
		Usage:     "write the NNO of the newest entries in the lektor-dir",
		ArgsUsage: "[QUERY|-]",
		Description: `It has the entries that match QUERY, see lektor-query(7); with "-", the entries whose
paths are on standard input; else all entries, read or not.

   lektor-ess nno -n 20 feed:lwn
   lektor-view ls -o path | lektor-ess nno -`,
		Flags: []cli.Flag{
			newestFlag("write at most `N` entries, 0 for all"), atFlag(),
			cmdline.OutputFlag("print `FORMAT` instead of an NNO: url, tsv, json, another field or a template"),
			&cli.StringSliceFlag{Name: "include",
				Usage: "include entries of `FEED`, even if it is not for others; may be repeated"},
			outputFileFlag(), cmdline.RawFlag(), cmdline.NulFlag(),
		},
		Action: cmdline.Run(app.MakeNNO, "", func(f *cmdline.Flags) app.NNOOptions {
			return app.NNOOptions{
				Common: common(f), Query: f.Words(), Nul: cmdline.Nul(f.Context), N: f.Number("newest", 0, 0),
				Output: f.String("output"), Print: f.Printing(), Include: f.StringSlice("include"),
			}
		}),
	}
}

func topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "write the NNO of the newest entries in ESS and NNO documents",
		ArgsUsage: "[DOCUMENT…|-]",
		Description: `DOCUMENT is a file or URL; "-" reads their names from standard input. Memory grows
with N, and by about 300 bytes for each feed.

   find ess -name '*.ess' -print0 | lektor-ess top -n 1000 -0 -
   lektor-ess build | lektor-ess top -n 20 --lines`,
		Flags: append([]cli.Flag{
			newestFlag("write the `N` newest entries"), atFlag(),
			linesFlag("read files, or standard input, with one document a line; write the NNO as one line"),
			cmdline.OutputFlag("print `FORMAT` instead of an NNO: url, tsv, json, another field or a template"),
			outputFileFlag(), cmdline.RawFlag(), cmdline.NulFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(app.Top, "", func(f *cmdline.Flags) app.TopOptions {
			return app.TopOptions{
				Common: fetching(f), Documents: f.Words(), Nul: cmdline.Nul(f.Context), Lines: f.Bool("lines"),
				N:      f.Number("newest", 1, 0),
				Output: f.String("output"), Print: f.Printing(),
			}
		}),
	}
}

func pollCommand() *cli.Command {
	return &cli.Command{
		Name:      "poll",
		Usage:     "find out from their ESS documents which feeds have something new",
		ArgsUsage: "[FEED…|URL…|-]",
		Description: `It makes conditional requests for the ESS documents of subscriptions, and no other requests.
A feed with a new entry gets a due marker, and lektor-fetch fetches it.

   lektor-ess poll; lektor-fetch
   lektor-ess poll -o url | lektor-fetch update -`,
		Flags: append([]cli.Flag{
			newestFlag("compare with the `N` newest entries in the lektor-dir"),
			cmdline.OutputFlag("print the feeds that are due in `FORMAT`, and leave no markers: url, tsv, json, another field or a template"),
			&cli.IntFlag{Name: "jobs", Aliases: []string{"j"}, Value: app.DefaultJobs,
				Usage: "request `N` documents at once"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print no summary"},
			cmdline.DryRunFlag(), cmdline.RawFlag(), cmdline.NulFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(app.Poll, "", func(f *cmdline.Flags) app.PollOptions {
			return app.PollOptions{
				Common: fetching(f), Feeds: f.Words(), Nul: cmdline.Nul(f.Context), N: f.Number("newest", 1, 0),
				Jobs:   f.Number("jobs", 1, 0),
				DryRun: f.Bool("dry-run"), Quiet: f.Bool("quiet"), Print: f.Printing(),
			}
		}),
	}
}

func resolveCommand() *cli.Command {
	return &cli.Command{
		Name:      "resolve",
		Usage:     "print the entries of an NNO as paths in the lektor-dir",
		ArgsUsage: "NNO…|-",
		Description: `NNO is a file or URL, or "-" for the document on standard input. A feed that lacks an
entry gets a due marker.

   lektor-ess resolve --subscribe friends.nno; lektor-fetch
   lektor-ess resolve friends.nno | lektor-view show -`,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "subscribe",
				Usage: "subscribe to the feeds of the NNO to which you are not subscribed"},
			cmdline.OutputFlag("print `FORMAT`: path (the default), url, tsv, json, another field or a template"),
			cmdline.DryRunFlag(), cmdline.RawFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(app.Resolve, "an NNO", func(f *cmdline.Flags) app.ResolveOptions {
			return app.ResolveOptions{
				Common: fetching(f), Documents: f.Words(), Subscribe: f.Bool("subscribe"), DryRun: f.Bool("dry-run"),
				Print: f.Printing(),
			}
		}),
	}
}

func publishCommand() *cli.Command {
	return &cli.Command{
		Name:      "publish",
		Usage:     "write ESS, NNO and an index page for a web server",
		ArgsUsage: "DIR [FEED…|-]",
		Description: `Files that have not changed are not written. Unless you name them, feeds are left out
that are private, or fetched with a password, with headers, through a filter, from a
file or from a command.

   lektor-ess publish --base-url https://example.com/ess/ /srv/www/ess`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base-url", Usage: "write absolute links below `URL`"},
			entriesFlag(),
			&cli.IntFlag{Name: "newest", Value: ess.DefaultTop,
				Usage: "write at most `N` entries in the NNO, 0 for all"},
			&cli.StringFlag{Name: "title", Usage: "the `TITLE` of the page"},
			categoryFlag(), atFlag(), cmdline.DryRunFlag(), cmdline.NulFlag(),
		},
		Action: cmdline.Run(app.Publish, "DIR", func(f *cmdline.Flags) app.PublishOptions {
			return app.PublishOptions{
				Common: common(f), To: f.Args().First(), Selection: selection(f, f.Args().Tail()),
				BaseURL: f.String("base-url"), N: f.Number("entries", 0, 0), Newest: f.Number("newest", 0, 0),
				Title: f.String("title"), DryRun: f.Bool("dry-run"),
			}
		}),
	}
}

func discoverCommand() *cli.Command {
	return &cli.Command{
		Name:      "discover",
		Usage:     "print the ESS and NNO documents to which a page or a feed links",
		ArgsUsage: "URL…|-",
		Description: `   lektor-ess discover https://example.com/
   lektor-ess discover -o url https://example.com/`,
		Flags: append([]cli.Flag{
			cmdline.OutputFlag("print `FORMAT`: tsv (the default), url, json, another field or a template"),
			cmdline.RawFlag(), cmdline.NulFlag(),
		}, fetchcmd.FetchFlags(0)...), // a page or a feed is larger than the documents
		Action: cmdline.Run(app.Discover, "a URL", func(f *cmdline.Flags) app.DiscoverOptions {
			return app.DiscoverOptions{Common: fetching(f), URLs: f.Words(), Nul: cmdline.Nul(f.Context),
				Print: f.Printing()}
		}),
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
			cmdline.OutputFlag("print `FORMAT`: checksum (the default), loop, title, tsv, json or a template"),
			cmdline.RawFlag(), cmdline.NulFlag(), cmdline.NumericArgs(),
		},
		Action: cmdline.Run(app.Checksums, "a TITLE", func(f *cmdline.Flags) app.ChecksumOptions {
			return app.ChecksumOptions{Titles: f.Words(), Nul: cmdline.Nul(f.Context), Print: f.Printing()}
		}),
	}
}

func decodeCommand() *cli.Command {
	return &cli.Command{
		Name:      "decode",
		Usage:     "print the entries of ESS and NNO documents with absolute times",
		ArgsUsage: "[DOCUMENT…|-]",
		Description: `DOCUMENT is a file or URL, or "-" for the document on standard input (default "-").

   lektor-ess decode -o json feed.ess`,
		Flags: append([]cli.Flag{
			cmdline.OutputFlag("print `FORMAT`: tsv (the default), json, url, another field or a template"),
			cmdline.RawFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(app.Decode, "", documents),
	}
}

func checkCommand() *cli.Command {
	return &cli.Command{
		Name:      "check",
		Usage:     "print each fault of ESS and NNO documents",
		ArgsUsage: "[DOCUMENT…|-]",
		Description: `A fault is everything that a strict writer would not write. If there is a fault, the
exit status is 1.

   lektor-ess check https://example.com/feed.ess`,
		Flags: append([]cli.Flag{
			cmdline.OutputFlag("print `FORMAT`: tsv, json, the name of a field or a template"),
			cmdline.RawFlag(),
		}, fetchFlags()...),
		Action: cmdline.Run(app.Check, "", documents),
	}
}

// documents are the options of commands on the documents that are their
// arguments.
func documents(f *cmdline.Flags) app.DocumentOptions {
	return app.DocumentOptions{Common: fetching(f), Documents: f.Words(), Print: f.Printing()}
}
